"""Limits: probabilities far out in the tails, their slopes, and what becomes of data beyond a limit."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.problem.data import Observations
from equifinal.problem.noise import Noise
from equifinal.problem.noise_families import FAMILIES
from tests.support.noise import CASES, IDS, expansion, log_density

every_case = pytest.mark.parametrize(("family", "given", "reference"), CASES, ids=IDS)
SIDES = (-1, 1)


def beyond(reference, family: str, limit: float, m: float, side: int) -> float:
    """SciPy's answer; a count below a limit is less, so at most one less."""
    dist = reference(m)
    last = limit - 1 if FAMILIES[family].support.word == "counts" and side < 0 else limit
    return float(dist.logcdf(last) if side < 0 else dist.logsf(last))


@every_case
@pytest.mark.parametrize("side", SIDES)
def test_probabilities_agree_with_scipy(family, given, reference, side: int) -> None:
    for limit in (1.0, 4.0, 7.0, 15.0):
        expected = beyond(reference, family, limit, 5.5, side)
        assert log_density(family, limit, 5.5, side, **given) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def exact(family: str, limit: float, m: float, **given: float) -> float:
    """log P(Y below the limit), to as many digits as are wanted."""
    y, m = mpmath.mpf(limit), mpmath.mpf(m)
    unit = FAMILIES[family].arguments[-1].unit if FAMILIES[family].arguments else 1.0
    if family in ("poisson", "negative-binomial"):
        a = mpmath.mpf(given.get("overdispersion", 0.0))
        k = mpmath.ceil(y) - 1
        if a == 0:
            return float(mpmath.log(mpmath.gammainc(k + 1, m, regularized=True)))
        return float(mpmath.log(mpmath.betainc(1 / a, k + 1, 0, 1 / (1 + a * m), regularized=True)))
    scale = mpmath.mpf(next(given[name] for name in ("sd", "scale", "sdlog") if name in given)) * unit
    z = (mpmath.log(y) - mpmath.log(m)) / scale if family.startswith("log") else (y - m) / scale
    if family.endswith("laplace"):
        return float(z - mpmath.log(2)) if z < 0 else float(mpmath.log1p(-mpmath.exp(-z) / 2))
    if family == "student-t":
        df = mpmath.mpf(given["df"])
        half = mpmath.betainc(df / 2, mpmath.mpf("0.5"), 0, df / (df + z * z), regularized=True) / 2
        return float(mpmath.log(half if z < 0 else 1 - half))
    return float(mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2))


FAR = [
    *(("normal", {"sd": 1.0}, 0.0, m) for m in (-30.0, -2.0, 1.0, 19.9, 20.1, 40.0, 1e4)),
    *(("laplace", {"scale": 1.0}, 0.0, m) for m in (-50.0, 3.0, 1e5)),
    *(("student-t", {"df": df, "scale": 1.0}, 0.0, m) for df in (0.3, 3.0, 80.0) for m in (-1e3, 0.1, 9.0, 1e8)),
    *(("lognormal", {"sdlog": 0.1}, 50.0, m) for m in (1.0, 60.0, 1e6)),
    *(("log10-normal", {"sd": 0.1}, 50.0, m) for m in (1.0, 60.0, 1e6)),
    *(("log2-normal", {"sd": 0.1}, 50.0, m) for m in (1.0, 60.0, 1e6)),
    *(("log-laplace", {"scale": 0.01}, 50.0, m) for m in (1.0, 60.0, 1e6)),
    *(("log10-laplace", {"scale": 0.01}, 50.0, m) for m in (1.0, 60.0, 1e6)),
    *(("poisson", {}, 50.0, m) for m in (0.1, 49.0, 51.0, 2e4)),
    *(("negative-binomial", {"overdispersion": a}, 50.0, m) for a in (1e-6, 0.1, 3.0) for m in (0.1, 49.0, 51.0, 2e4)),
]


def test_every_family_goes_far() -> None:
    assert {family for family, *_ in FAR} == set(FAMILIES)


@pytest.mark.parametrize(("family", "given", "limit", "m"), FAR)
def test_no_digits_are_lost_in_the_tails(family: str, given: dict, limit: float, m: float) -> None:
    with mpmath.workdps(300):
        expected = exact(family, limit, m, **given)
        rest = mpmath.log1p(-mpmath.exp(exact(family, limit, m, **given))) if expected < -1e-6 else None
    found = log_density(family, limit, m, -1, **given)
    assert found == pytest.approx(expected, rel=1e-11, abs=0)
    if rest is not None and FAMILIES[family].support.word != "counts":
        assert log_density(family, limit, m, 1, **given) == pytest.approx(float(rest), rel=1e-7)


def test_counts_below_and_above_a_limit() -> None:
    """Below 3 is 0, 1 or 2; above 3 is 4 or more."""
    for family, given in (("poisson", {}), ("negative-binomial", {"overdispersion": 0.4})):
        p = [math.exp(log_density(family, y, 2.5, **given)) for y in range(4)]
        assert log_density(family, 3.0, 2.5, -1, **given) == pytest.approx(math.log(sum(p[:3])))
        assert log_density(family, 3.0, 2.5, 1, **given) == pytest.approx(math.log(1 - sum(p)))


def test_counts_where_none_is_expected() -> None:
    for family, given in (("poisson", {}), ("negative-binomial", {"overdispersion": 0.4})):
        assert log_density(family, 3.0, 0.0, -1, **given) == 0.0
        assert log_density(family, 3.0, 0.0, 1, **given) == -math.inf
        assert log_density(family, 3.0, -1.0, -1, **given) == -math.inf


def test_large_limits_of_counts_do_not_take_forever() -> None:
    for given in ({}, {"overdispersion": 0.3}, {"overdispersion": 1e-9}):
        family = "negative-binomial" if given else "poisson"
        found = log_density(family, 1e9, 1e9, -1, **given)
        assert -1 < found < -0.3


@every_case
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_slopes_by_differences(family, given, reference, side: int) -> None:
    """By the output and every argument, for numbers and for limits, far and near."""
    for y, m in ((7.0, 5.5), (7.0, 2.0), (7.0, 40.0), (3.0, 5.0)):
        score, information = expansion(family, y, m, side, **given)
        steps = [("m", 1e-5 * m), *((name, 1e-5 * value) for name, value in given.items())]
        for name, step in steps:
            values = []
            for sign in (1, -1):
                moved = {**given, **({name: given[name] + sign * step} if name in given else {})}
                values.append(log_density(family, y, m + sign * step * (name == "m"), side, **moved))
            k = 0 if name == "m" else 1 + [rule.name for rule in FAMILIES[family].arguments].index(name)
            numerical = (values[0] - values[1]) / (2 * step)
            assert score[k] == pytest.approx(numerical, rel=1e-5, abs=1e-7)
        assert np.linalg.eigvalsh(information).min() > -1e-9 * np.abs(information).max()
        assert np.isfinite(information).all()


@every_case
def test_the_information_on_all_arguments_is_the_mean_square_of_the_slopes(family, given, reference) -> None:
    m, n = 2.5, 20_000
    y = Noise(family, **given).simulate(np.full(n, m), {}, np.random.default_rng(5))
    scores = np.array([expansion(family, value, m, **given)[0] for value in y])
    shape = {"student-t": 1, "negative-binomial": 1}.get(family)  # by its squared slope, which is right on the mean
    information = expansion(family, y[0], m, **given)[1]
    products = np.einsum("ni,nj->nij", scores, scores)
    error = products.std(axis=0) / math.sqrt(n)
    for i in range(scores.shape[1]):
        for j in range(scores.shape[1]):
            if shape not in (i, j):
                # |z| < 5 for at most 8 numbers of 16 cases: a false alarm once in 10,000 seeds
                assert abs(products[:, i, j].mean() - information[i, j]) < 5 * error[i, j] + 1e-12


@every_case
def test_a_limit_that_says_nothing_has_no_information(family, given, reference) -> None:
    if family == "student-t":
        return  # its tails are too heavy for that
    score, information = expansion(family, 1e4, 1.0, -1, **given)
    assert np.abs(score).max() < 1e-9
    assert np.abs(information).max() < 1e-9


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
@every_case
def test_arguments_that_are_not_positive_have_no_probability(family, given, reference, bad: float) -> None:
    for name in given:
        if name == "relative" and bad == 0.0:
            continue
        if given.get("relative") and bad == 0.0:
            continue
        assert log_density(family, 7.0, 5.5, -1, **given | {name: bad}) == -math.inf


# --- observations ---

NOISE = Noise("lognormal", sdlog=0.5)


def test_limits_as_text() -> None:
    found = Observations("V", [3, 1, 2, 4], [100, "<50", float("nan"), "> 1e4"], NOISE)
    assert found.times.tolist() == [1, 3, 4]
    assert found.values.tolist() == [50, 100, 1e4]
    assert found.censored.tolist() == [-1, 0, 1]
    assert found.below.tolist() == [50.0, -math.inf, -math.inf]
    assert found.above.tolist() == [math.inf, math.inf, 1e4]
    assert found.noise == NOISE


def test_limits_of_the_noise() -> None:
    """Zeros are what some laboratories write for what they cannot see; a number on the limit is a number."""
    noise = Noise("lognormal", sdlog=0.5, below=50, above=1e4)
    found = Observations("V", [1, 2, 3, 4, 5], [0, 50, 60, 2e4, "<20"], noise)
    assert found.values.tolist() == [50, 50, 60, 1e4, 20]
    assert found.censored.tolist() == [-1, 0, 0, 1, -1]
    again = found.with_values(np.array([30.0, 40.0, 55.0, 60.0, 30.0]))
    assert again.values.tolist() == [50, 50, 55, 60, 30]
    assert again.censored.tolist() == [-1, -1, 0, 0, 0]
    assert found.noise.general_limits == (50, 1e4)


def test_limits_and_arguments_by_row() -> None:
    noise = Noise("normal", sd=[1, 2, math.nan, 4], below=[math.nan, 5, 5, 5])
    found = Observations("V", [4, 3, 2, 1], [1, 2, math.nan, 7], noise)
    assert found.noise.arguments == {"sd": (4.0, 2.0, 1.0)}
    assert found.values.tolist() == [7, 5, 1]
    assert found.censored.tolist() == [0, -1, 0]


@pytest.mark.parametrize(
    ("values", "noise", "words"),
    [
        ([1, "<abc"], NOISE, "'<50'; found '<abc'"),
        ([1, "abc"], NOISE, "found 'abc'"),
        ([1, "<-1"], NOISE, "must be positive; found -1"),
        ([1, "<0"], Noise("poisson"), "nothing lies below 0"),
        ([1, "<2.5"], Noise("poisson"), "must be counts; found 2.5"),
        ([-1, 2], NOISE, "must be positive; found -1"),
        ([1, ">3"], Noise("normal", sd=1, below=4), "'below' is not less than 'above'"),
        ([1, 2], Noise("normal", sd=[1, 2, 3]), "'sd' of its noise has 3 numbers for 2 rows"),
        ([1, 2], Noise("normal", sd=[1, math.nan]), "'sd' of its noise is missing"),
    ],
)
def test_errors(values: list, noise: Noise, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Observations("V", [1, 2], values, noise)
