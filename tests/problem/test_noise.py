from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from equifinal.errors import DataError
from equifinal.problem.noise import FAMILIES, Noise, log_density, log_density_bound, simulate_observation

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


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "poisson"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_scales_that_are_not_positive_have_no_density(family: str, bad: float) -> None:
    code, good = FAMILIES[family].code, 2.0
    if family != "negative-binomial":
        assert log_density(code, Y, M, bad, 0.0, good) == -math.inf
    if family in ("student-t", "negative-binomial"):
        assert log_density(code, Y, M, good, 0.0, bad) == -math.inf
    if family in ("normal", "student-t") and bad < 0:
        assert log_density(code, Y, M, good, bad, good) == -math.inf


def test_an_expected_count_of_zero() -> None:
    for family in ("poisson", "negative-binomial"):
        code = FAMILIES[family].code
        assert log_density(code, 0.0, -1e-12, 0.0, 0.0, 0.1) == 0.0
        assert log_density(code, 1.0, 0.0, 0.0, 0.0, 0.1) == -math.inf
        assert log_density(code, 0.0, -1.0, 0.0, 0.0, 0.1) == -math.inf


def random_case(family: str, rng: np.random.Generator) -> tuple[float, float, float, float, float]:
    """An observation, an output that is often close to it, and arguments (additive, relative, shape)."""
    y = float(10 ** rng.uniform(-3, 6))
    if family in ("poisson", "negative-binomial"):
        y = float(round(y))
    m = y * float(1 + 10 ** rng.uniform(-12, 1) * rng.choice([-1, 1])) if rng.random() < 0.8 else rng.normal(0, 100)
    additive, relative, shape = (float(10 ** rng.uniform(-9, 3)) for _ in range(3))
    return y, m, additive, relative * float(rng.random() < 0.5), shape


@pytest.mark.parametrize("family", FAMILIES)
def test_bound_of_the_density(family: str) -> None:
    rng, code = np.random.default_rng(8), FAMILIES[family].code
    for _ in range(20_000):
        y, m, additive, relative, shape = random_case(family, rng)
        assert log_density(code, y, m, additive, relative, shape) <= log_density_bound(
            code, y, additive, relative, shape
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_bound_is_reached(family: str) -> None:
    rng, code = np.random.default_rng(9), FAMILIES[family].code
    for _ in range(1000):
        y, _, additive, _, shape = random_case(family, rng)
        highest = log_density(code, y, y, additive, 0.0, shape)
        assert log_density_bound(code, y, additive, 0.0, shape) == pytest.approx(highest, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("family", ["normal", "student-t"])
def test_relative_noise_alone_has_no_bound(family: str) -> None:
    code = FAMILIES[family].code
    assert log_density_bound(code, Y, 0.0, 0.1, 4.0) == math.inf
    assert log_density_bound(code, Y, 1e-200, 0.1, 4.0) == math.inf  # its square is zero
    assert log_density_bound(code, Y, 0.0, 0.0, 4.0) == -math.inf


def exact_negative_binomial(y: float, m: float, a: float) -> float:
    y_, m_, a_ = mpmath.mpf(y), mpmath.mpf(m), mpmath.mpf(a)
    k = 1 / a_
    binomial = mpmath.loggamma(y_ + k) - mpmath.loggamma(k) - mpmath.loggamma(y_ + 1)
    return float(binomial + y_ * mpmath.log(a_ * m_ / (1 + a_ * m_)) - k * mpmath.log(1 + a_ * m_))


@pytest.mark.parametrize("m", [0.3, 300.0, 1e6, 1e9])
@pytest.mark.parametrize("a", [1e-20, 9.9e-9, 1e-6, 9e-6, 1.1e-5, 1e-3, 0.3, 10.0])
def test_negative_binomial_from_poisson_to_very_dispersed(m: float, a: float) -> None:
    y = float(round(m + 6 * math.sqrt(m)))
    with mpmath.workdps(80):
        exact = exact_negative_binomial(y, m, a)
    # lgamma(y + 1) itself is known to about 1e-16 of its size
    assert log_density(FAMILIES["negative-binomial"].code, y, m, 0.0, 0.0, a) == pytest.approx(
        exact, abs=1e-9 + 1e-15 * math.lgamma(y + 1)
    )


@pytest.mark.parametrize("df", [0.5, 3.0, 9e4, 1.1e5, 1e9, 1e16, 1e300])
def test_student_t_from_heavy_to_normal(df: float) -> None:
    with mpmath.workdps(400):
        v = mpmath.mpf(df)
        constant = mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2) - mpmath.log(v * mpmath.pi) / 2
        exact = float(constant - (v + 1) / 2 * mpmath.log(1 + 1 / v))
    assert log_density(FAMILIES["student-t"].code, 1.0, 0.0, 1.0, 0.0, df) == pytest.approx(exact, abs=1e-9)


def test_tiny_lognormal_values() -> None:
    assert math.isfinite(log_density(FAMILIES["lognormal"].code, 1e-200, 1e-200, 1e-150, 0.0, 0.0))


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
