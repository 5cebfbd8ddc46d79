from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equifinal.errors import DataError
from equifinal.noise import FAMILIES, Noise, log_density, simulate_observation

Y, M = 7.0, 5.5

# family arguments in slots (additive, relative, shape), and SciPy's distribution of y around m
CASES = [
    ("normal", (2.0, 0.0, 0.0), lambda m: stats.norm(m, 2)),
    ("normal", (2.0, 0.3, 0.0), lambda m: stats.norm(m, math.hypot(2, 0.3 * m))),
    ("student-t", (2.0, 0.0, 4.0), lambda m: stats.t(4, m, 2)),
    ("lognormal", (0.4, 0.0, 0.0), lambda m: stats.lognorm(0.4, scale=m)),
    ("poisson", (0.0, 0.0, 0.0), lambda m: stats.poisson(m)),
    ("negative-binomial", (0.0, 0.0, 0.35), lambda m: stats.nbinom(1 / 0.35, 1 / (1 + 0.35 * m))),
]


def test_every_family_is_covered() -> None:
    assert {case[0] for case in CASES} == set(FAMILIES)


@pytest.mark.parametrize(("family", "arguments", "reference"), CASES)
def test_density_agrees_with_scipy(family, arguments, reference) -> None:
    dist = reference(M)
    log_p = dist.logpmf if hasattr(dist.dist, "logpmf") else dist.logpdf
    for y in (0.0, 1.0, Y, 40.0):
        if family == "lognormal" and y == 0:
            continue
        assert log_density(FAMILIES[family].code, y, M, *arguments) == pytest.approx(log_p(y), rel=1e-10)


@pytest.mark.parametrize(("family", "arguments", "reference"), CASES)
def test_simulated_observations_follow_the_density(family, arguments, reference) -> None:
    rng = np.random.default_rng(3)
    drawn = simulate_observation(FAMILIES[family].code, np.full(40_000, M), *map(np.asarray, arguments), rng)
    dist = reference(M)
    # |z| < 5: a false alarm about once in two million
    for function in (lambda y: y, lambda y: y > M, lambda y: y > 2 * M):
        values = np.asarray(function(drawn), float)
        expected = dist.expect(function) if hasattr(dist.dist, "logpmf") else dist.expect(function, limit=200)
        assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(values.size) + 1e-6


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("m", [math.nan, math.inf, -math.inf, -3.0, 0.0])
def test_bad_outputs_never_give_nan(family: str, m: float) -> None:
    arguments = {c[0]: c[1] for c in CASES}[family]
    value = log_density(FAMILIES[family].code, Y, m, *arguments)
    assert not math.isnan(value)
    if not (family in ("normal", "student-t") and math.isfinite(m)):
        assert value == -math.inf


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_bad_scales_never_give_nan(family: str, scale: float) -> None:
    if family == "poisson":
        return
    value = log_density(FAMILIES[family].code, Y, M, scale, 0.0, scale)
    assert value == -math.inf or (family == "lognormal" and scale == math.inf) or (family == "normal" and scale == -1)


def test_an_expected_count_of_zero() -> None:
    for family in ("poisson", "negative-binomial"):
        code = FAMILIES[family].code
        assert log_density(code, 0.0, -1e-12, 0.0, 0.0, 0.1) == 0.0
        assert log_density(code, 1.0, 0.0, 0.0, 0.0, 0.1) == -math.inf
        assert log_density(code, 0.0, -1.0, 0.0, 0.0, 0.1) == -math.inf


def test_small_overdispersion_is_poisson() -> None:
    poisson = stats.poisson(300).logpmf(280)
    for a in (1e-6, 1e-9, 1e-20):
        assert log_density(FAMILIES["negative-binomial"].code, 280.0, 300.0, 0.0, 0.0, a) == pytest.approx(
            poisson, rel=1e-3
        )


@pytest.mark.parametrize(
    ("family", "arguments", "words"),
    [
        ("norml", {}, "did you mean 'normal'"),
        ("normal", {}, "needs 'sd' or 'relative'"),
        ("normal", {"sd": 0}, "positive number or the name"),
        ("normal", {"std": 1}, "did you mean 'sd'"),
        ("poisson", {"sd": 1}, "no arguments"),
        ("student-t", {"scale": 1}, "needs 'df'"),
    ],
)
def test_errors(family: str, arguments: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Noise(family, **arguments)


def test_data_that_the_family_excludes() -> None:
    with pytest.raises(DataError, match=r"counts; found 2\.5"):
        Noise("poisson").check_values(np.array([1.0, 2.5]), "y")
    with pytest.raises(DataError, match="positive; found 0"):
        Noise("lognormal", sdlog=1).check_values(np.array([1.0, 0.0]), "y")
    Noise("poisson").check_values(np.array([1.0, np.nan]), "y")
