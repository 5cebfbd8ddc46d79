"""Every family of noise against SciPy, differences and simulation: a new one is in `CASES`, or the first test fails."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.problem.noise import Noise
from equifinal.problem.noise_families import FAMILIES
from tests.support.noise import CASES, IDS, arguments, bound, log_density, slope_and_information

Y, M = 7.0, 5.5

USUAL = {family: given for family, given, _ in reversed(CASES)}
every_case = pytest.mark.parametrize(("family", "given", "reference"), CASES, ids=IDS)


def test_every_family_is_covered() -> None:
    assert list(USUAL)[::-1] == list(FAMILIES)


@every_case
def test_density_agrees_with_scipy(family, given, reference) -> None:
    dist = reference(M)
    log_p = dist.logpmf if hasattr(dist.dist, "logpmf") else dist.logpdf
    for y in (0.0, 1.0, Y, 40.0):
        if FAMILIES[family].support.allows(np.array([y]))[0]:
            assert log_density(family, y, M, **given) == pytest.approx(log_p(y), rel=1e-10)


@every_case
def test_simulated_observations_follow_the_density(family, given, reference) -> None:
    drawn = Noise(family, **given).simulate(np.full(40_000, M), {}, np.random.default_rng(3))
    Noise(family, **given).check_values(drawn, "y")
    dist = reference(M)
    # |z| < 5: a false alarm about once in two million
    for function in (lambda y: y, lambda y: y > M, lambda y: y > 2 * M):
        values = np.asarray(function(drawn), float)
        expected = dist.expect(function) if hasattr(dist.dist, "logpmf") else dist.expect(function, limit=200)
        assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(values.size) + 1e-6


@every_case
def test_simulation_with_arguments_that_are_parameters(family, given, reference) -> None:
    """The same random numbers make the same observations, whatever shape the arguments have."""
    mean = np.full((3, 4), M)
    named = Noise(family, **{name: f"p_{name}" for name in given})
    rows = {f"p_{name}": np.full((3, 1), value) for name, value in given.items()}
    drawn = named.simulate(mean, rows, np.random.default_rng(5))
    np.testing.assert_array_equal(drawn, Noise(family, **given).simulate(mean, {}, np.random.default_rng(5)))


@every_case
def test_one_sum_is_all_that_it_needs(family, given, reference) -> None:
    noise, short = Noise(family, **given), FAMILIES[family].sum
    assert (noise.sum >= 0) == (family.endswith("normal") and "relative" not in given)
    if noise.sum >= 0:
        rng = np.random.default_rng(4)
        m = rng.uniform(1, 9, 20)
        y = noise.simulate(m, {}, rng)
        log_y = [FAMILIES[family].of_data(value) for value in y]
        terms = sum(short.term(*row) for row in zip(y, log_y, m, strict=True))
        expected = sum(log_density(family, *row, **given) for row in zip(y, m, strict=True))
        found = short.log_density(terms, sum(log_y), 20, arguments(family, **given))
        assert found == pytest.approx(expected, rel=1e-12)


@every_case
def test_the_information_is_the_mean_square_of_the_slope(family, given, reference) -> None:
    m, n = 2.5, 40_000
    y = Noise(family, **given).simulate(np.full(n, m), {}, np.random.default_rng(3))
    slopes = np.array([slope_and_information(family, value, m, **given)[0] for value in y])
    information = slope_and_information(family, y[0], m, **given)[1]
    # |z| < 5, twice for each of sixteen cases: a false alarm once in 50,000 seeds
    assert abs(slopes.mean()) < 5 * slopes.std() / np.sqrt(n)
    assert abs((slopes**2).mean() - information) < 5 * (slopes**2).std() / np.sqrt(n) + 1e-12
    for value in y[:5]:
        slope = slope_and_information(family, value, m, **given)[0]
        above, below = (log_density(family, value, m + step, **given) for step in (1e-5, -1e-5))
        assert slope == pytest.approx((above - below) / 2e-5, abs=1e-5)


@pytest.mark.parametrize("m", [math.nan, math.inf, -math.inf, 0.0, -1.0])
@every_case
def test_where_the_family_is_not_defined_there_is_no_slope(family, given, reference, m: float) -> None:
    slope, information = slope_and_information(family, 1.0, m, **given)
    assert math.isfinite(slope)
    assert math.isfinite(information)
    assert information >= 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("m", [math.nan, math.inf, -math.inf, -3.0, 0.0])
def test_bad_outputs_never_give_nan(family: str, m: float) -> None:
    value = log_density(family, Y, m, **USUAL[family])
    assert not math.isnan(value)
    if not (family in ("normal", "student-t", "laplace") and math.isfinite(m)):
        assert value == -math.inf


@pytest.mark.parametrize(
    ("family", "argument"), [(family, rule.name) for family, record in FAMILIES.items() for rule in record.arguments]
)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_arguments_that_are_not_positive_have_no_density(family: str, argument: str, bad: float) -> None:
    optional = argument == "relative" and bad == 0.0
    assert (log_density(family, Y, M, **USUAL[family] | {argument: bad}) == -math.inf) != optional


def test_an_expected_count_of_zero() -> None:
    for family in ("poisson", "negative-binomial"):
        given = USUAL[family]
        assert log_density(family, 0.0, -1e-12, **given) == 0.0
        assert log_density(family, 1.0, 0.0, **given) == -math.inf
        assert log_density(family, 0.0, -1.0, **given) == -math.inf


def random_case(family: str, rng: np.random.Generator) -> tuple[float, float, dict[str, float]]:
    """An observation, an output that is often close to it, and arguments."""
    y = float(10 ** rng.uniform(-3, 6))
    if not FAMILIES[family].support.allows(np.array([y]))[0]:
        y = float(round(y))
    m = y * float(1 + 10 ** rng.uniform(-12, 1) * rng.choice([-1, 1])) if rng.random() < 0.8 else rng.normal(0, 100)
    given = {rule.name: float(10 ** rng.uniform(-9, 3)) for rule in FAMILIES[family].arguments}
    if "relative" in given:
        given["relative"] *= float(rng.random() < 0.5)
    return y, m, given


@pytest.mark.parametrize("family", FAMILIES)
def test_bound_of_the_density(family: str) -> None:
    rng = np.random.default_rng(8)
    for _ in range(20_000):
        y, m, given = random_case(family, rng)
        assert log_density(family, y, m, **given) <= bound(family, y, **given)


@pytest.mark.parametrize("family", FAMILIES)
def test_bound_is_reached(family: str) -> None:
    rng = np.random.default_rng(9)
    for _ in range(1000):
        y, _, given = random_case(family, rng)
        given.pop("relative", None)
        assert bound(family, y, **given) == pytest.approx(log_density(family, y, y, **given), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("family", "scale", "others"),
    [("normal", "sd", {}), ("student-t", "scale", {"df": 4.0}), ("laplace", "scale", {})],
)
def test_relative_noise_alone_has_no_bound(family: str, scale: str, others: dict) -> None:
    assert bound(family, Y, relative=0.1, **others) == math.inf
    assert bound(family, Y, relative=0.1, **others | {scale: 1e-200}) == math.inf  # its square is zero
    assert bound(family, Y, **others) == -math.inf


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
    assert log_density("negative-binomial", y, m, overdispersion=a) == pytest.approx(
        exact, abs=1e-9 + 1e-15 * math.lgamma(y + 1)
    )


@pytest.mark.parametrize("df", [0.5, 3.0, 9e4, 1.1e5, 1e9, 1e16, 1e300])
def test_student_t_from_heavy_to_normal(df: float) -> None:
    with mpmath.workdps(400):
        v = mpmath.mpf(df)
        constant = mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2) - mpmath.log(v * mpmath.pi) / 2
        exact = float(constant - (v + 1) / 2 * mpmath.log(1 + 1 / v))
    assert log_density("student-t", 1.0, 0.0, scale=1.0, df=df) == pytest.approx(exact, abs=1e-9)


def test_tiny_lognormal_values() -> None:
    assert math.isfinite(log_density("lognormal", 1e-200, 1e-200, sdlog=1e-150))


@pytest.mark.parametrize(
    ("family", "given", "words"),
    [
        ("norml", {}, "did you mean 'normal'"),
        ("normal", {}, "needs 'sd' or 'relative'"),
        ("normal", {"sd": 0}, "positive number or the name"),
        ("normal", {"std": 1}, "did you mean 'sd'"),
        ("poisson", {"sd": 1}, r"takes: below, above"),
        ("normal", {"sd": "a +"}, r"'sd', column \d"),
        ("normal", {"sd": ""}, "name of a parameter or an expression"),
        ("normal", {"sd": "1 - 1"}, "positive number"),
        ("normal", {"sd": "1/0"}, "column 3: division by zero"),
        ("normal", {"sd": [1.0, -1.0]}, "positive number"),
        ("normal", {"sd": [1.0, "a"]}, "positive number"),
        ("normal", {"sd": 1.0, "below": "low"}, "'below' must be a number"),
        ("normal", {"sd": 1.0, "below": True}, "'below' must be a number"),
        ("normal", {"sd": 1.0, "above": -math.inf}, "finite"),
        ("normal", {"sd": 1.0, "below": 3, "above": 2}, "must be less than"),
        ("student-t", {"scale": 1}, "needs 'df'"),
    ],
)
def test_errors(family: str, given: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Noise(family, **given)


def test_other_names() -> None:
    assert Noise("gaussian", sd=1) == Noise("normal", sd=1)
    assert Noise("t", df=3, scale="s").family == Noise("student_t", df=3, scale="s").family == "student-t"


def test_data_that_the_family_excludes() -> None:
    with pytest.raises(DataError, match=r"counts; found 2\.5"):
        Noise("poisson").check_values(np.array([1.0, 2.5]), "y")
    with pytest.raises(DataError, match="positive; found 0"):
        Noise("lognormal", sdlog=1).check_values(np.array([1.0, 0.0]), "y")
    Noise("poisson").check_values(np.array([1.0, np.nan]), "y")
