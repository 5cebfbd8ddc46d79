"""What data told about a quantity, where the answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equifinal.language.expression import Name
from equifinal.problem.prior import Prior
from equifinal.results.information import against_draws, information
from equifinal.results.meaning import PARAMETER, Finding, _against_prior
from equifinal.words.meaning import bits_text, bound_text, driven_by

N = 4000
_RNG = np.random.default_rng(7)
_U, _Z, _E = _RNG.random(N), _RNG.standard_normal(N), _RNG.exponential(size=N)

# laws of v = F(x), the bits and the shrinkage they have, and what they are called
KNOWN = {
    "the prior itself": (_U, 0.0, 0.0, "barely informed"),
    "the lower half": (0.5 * _U, 1.0, 0.75, "bounded above"),
    "the upper tenth": (1 - 0.1 * _U, math.log2(10), 0.99, "bounded below"),
    "close to nothing": (0.01 * _E, math.log2(100 / math.e), 0.9988, "bounded above"),
    "a narrow peak": (0.5 + 0.01 * _Z, -math.log2(0.01 * math.sqrt(2 * math.pi * math.e)), 0.9988, "determined"),
    "a peak near zero": (5e-6 + 1e-6 * _Z, -math.log2(1e-6 * math.sqrt(2 * math.pi * math.e)), 1.0, "determined"),
    "a peak near one": (0.999 + 1e-4 * _Z, -math.log2(1e-4 * math.sqrt(2 * math.pi * math.e)), 1.0, "determined"),
    "two peaks": (np.where(_U < 0.5, 0.3, 0.6) + 0.01 * _Z, None, None, "determined"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_known_answers(case: str) -> None:
    v, bits, shrinkage, kind = KNOWN[case]
    found = information(v)
    assert found.kind == kind
    if bits is not None:
        assert found.bits == pytest.approx(bits, abs=0.15)
        assert found.shrinkage == pytest.approx(shrinkage, abs=0.04)


def test_an_upper_bound_is_not_called_determined() -> None:
    """A loguniform prior from 1 to 1000 that the data cut off at 30: much narrower, and no lower bound."""
    prior = Prior("loguniform", lower=1, upper=1000)
    posterior = 30**_U
    told = _against_prior(prior, posterior)
    assert told.kind == "bounded above"
    assert told.bits == pytest.approx(math.log2(math.log(1000) / math.log(30)), abs=0.1)
    assert told.shrinkage < 0.8
    finding = Finding("I0", PARAMETER, Name("I0"), "globally", 0, prior.sample(_RNG, N), posterior, told, 0.0)
    assert bound_text(finding).startswith("at most 25")
    assert "how small it is, they leave open" in bound_text(finding)
    assert driven_by(finding) == "data, a bound only"


def test_the_scale_of_a_prior_does_not_matter() -> None:
    """The same law of v, whatever the prior: a lognormal, a uniform, a Cauchy prior, or draws of one."""
    v = 0.4 + 0.05 * _Z
    for prior in (
        Prior("lognormal", meanlog=3, sdlog=2),
        Prior("uniform", lower=-1, upper=5),
        Prior("cauchy", location=0, scale=1),
    ):
        x = prior.quantile(v)
        exact, drawn = _against_prior(prior, x), against_draws(prior.sample(_RNG, 100_000), x)
        assert exact.bits == pytest.approx(information(v).bits, abs=0.01)
        assert drawn.bits == pytest.approx(exact.bits, abs=0.05)
        assert drawn.shrinkage == pytest.approx(exact.shrinkage, abs=0.01)


def test_conflict_with_the_prior() -> None:
    assert information(np.full(N, 1 - 1e-6) + 1e-8 * _U).in_tail
    assert not information(0.5 + 0.1 * _Z).in_tail
    assert information(1 - 0.01 * _E).presses_above
    assert information(0.01 * _E).presses_below
    assert not information(1 - 0.4 * _U).presses_above


def test_nothing_to_compare() -> None:
    for found in (against_draws(np.full(10, np.nan), _Z), against_draws(np.ones(10), _Z), information(np.array([0.5]))):
        assert math.isnan(found.bits)
        assert found.kind == "barely informed"
    assert bits_text(math.nan) == ""
    assert bits_text(0.34) == "0.3 bits"
    assert bits_text(17.0) == "over 10 bits"
