from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from equifinal.errors import DataError
from equifinal.problem.prior import FAMILIES, Prior, from_theta, log_prior, prior_table, to_theta


class Truncated:
    """A distribution of SciPy's between bounds, from whichever tail keeps it precise."""

    def __init__(self, whole, lower: float, upper: float):
        self.whole, self.lower, self.upper = whole, lower, upper
        self.from_above = whole.cdf(lower) > 0.5
        self.ends = (whole.sf if self.from_above else whole.cdf)(np.array([lower, upper]))

    def ppf(self, q):
        tail = self.ends[0] + q * (self.ends[1] - self.ends[0])
        return self.whole.isf(tail) if self.from_above else self.whole.ppf(tail)

    def cdf(self, x):
        measure = self.whole.sf if self.from_above else self.whole.cdf
        return (measure(np.clip(x, self.lower, self.upper)) - self.ends[0]) / (self.ends[1] - self.ends[0])

    def logpdf(self, x):
        return self.whole.logpdf(x) - math.log(abs(self.ends[1] - self.ends[0]))


# each prior beside SciPy's own distribution, truncated where bounds are given
CASES = [
    (Prior("uniform", lower=1e-5, upper=1e-3), stats.uniform(1e-5, 1e-3 - 1e-5)),
    (Prior("uniform", lower=1, upper=500, coordinate="log"), stats.uniform(1, 499)),
    (Prior("loguniform", lower=0.1, upper=30), stats.loguniform(0.1, 30)),
    (Prior("normal", mean=1, sd=0.5), stats.norm(1, 0.5)),
    (Prior("normal", mean=1, sd=0.5, lower=0), stats.truncnorm(-2, np.inf, 1, 0.5)),
    (Prior("normal", mean=0, sd=1, lower=8), stats.truncnorm(8, np.inf)),
    (Prior("normal", mean=0, sd=2, upper=1), stats.truncnorm(-np.inf, 0.5, 0, 2)),
    (Prior("normal", mean=0, sd=2, lower=-1, upper=3, coordinate="identity"), stats.truncnorm(-0.5, 1.5, 0, 2)),
    (Prior("halfnormal", sd=3), stats.halfnorm(0, 3)),
    (Prior("lognormal", meanlog=0.5, sdlog=1.2), stats.lognorm(1.2, scale=math.exp(0.5))),
    (Prior("gamma", shape=2.5, rate=3), stats.gamma(2.5, scale=1 / 3)),
    (Prior("gamma", shape=0.4, rate=3), stats.gamma(0.4, scale=1 / 3)),
    (Prior("exponential", rate=5), stats.expon(0, 0.2)),
    (Prior("chi-squared", df=3), stats.chi2(3)),
    (Prior("rayleigh", scale=2.5), stats.rayleigh(0, 2.5)),
    (Prior("rayleigh", scale=2.5, upper=1), Truncated(stats.rayleigh(0, 2.5), 0, 1)),
    (Prior("rayleigh", scale=1, lower=9), Truncated(stats.rayleigh(), 9, np.inf)),
    (Prior("laplace", location=-1, scale=2), stats.laplace(-1, 2)),
    (Prior("laplace", location=-1, scale=2, lower=-3, upper=4), Truncated(stats.laplace(-1, 2), -3, 4)),
    (Prior("laplace", location=0, scale=1, lower=30), Truncated(stats.laplace(), 30, np.inf)),
    (Prior("loglaplace", location=0.5, scale=0.4), stats.loglaplace(1 / 0.4, scale=math.exp(0.5))),
    (
        Prior("loglaplace", location=0.5, scale=0.4, lower=1, upper=3),
        Truncated(stats.loglaplace(1 / 0.4, scale=math.exp(0.5)), 1, 3),
    ),
    (Prior("beta", a=2, b=0.7), stats.beta(2, 0.7)),
    (Prior("student-t", df=3, location=-1, scale=2), stats.t(3, -1, 2)),
    (Prior("cauchy", location=1, scale=0.5), stats.cauchy(1, 0.5)),
    (Prior("halfcauchy", scale=2.5), stats.halfcauchy(0, 2.5)),
]


def test_every_family_is_covered() -> None:
    assert {made.family for made, _ in CASES} == set(FAMILIES)


@pytest.mark.parametrize(("made", "reference"), CASES, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_agrees_with_scipy(made, reference) -> None:
    q = np.array([1e-4, 0.01, 0.2, 0.5, 0.8, 0.99])
    x = reference.ppf(q)
    np.testing.assert_allclose(made.quantile(q), x, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(made.cdf(x), q, rtol=1e-8)
    np.testing.assert_allclose(made.log_density(x), reference.logpdf(x), rtol=1e-9, atol=1e-9)
    draws = made.sample(np.random.default_rng(1), 20_000)
    # a false alarm once in a million
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-6


@pytest.mark.parametrize(("made", "_"), CASES, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_density_in_sampling_coordinates_integrates_to_one(made, _) -> None:
    table = prior_table([made])

    def density(u: float) -> float:
        theta, log_jacobian = to_theta(np.array([[u]]), table)
        return float(np.exp(log_prior(theta, table) + log_jacobian)[0])

    shares = np.array([1e-7, 1e-5, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-5, 1 - 1e-7])
    edges = np.sort(from_theta(made.quantile(shares)[:, None], table)[:, 0])
    total = sum(integrate.quad(density, *pair, limit=200)[0] for pair in itertools.pairwise(edges))
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("made", "_"), CASES, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_coordinates_go_there_and_back(made, _) -> None:
    table = prior_table([made])
    theta = made.quantile(np.linspace(0.01, 0.99, 9))[:, None]
    u = from_theta(theta, table)
    back, log_jacobian = to_theta(u, table)
    np.testing.assert_allclose(back, theta, rtol=1e-10)
    step = 1e-6
    slope = (to_theta(u + step, table)[0] - to_theta(u - step, table)[0])[:, 0] / (2 * step)
    np.testing.assert_allclose(np.log(np.abs(slope)), log_jacobian, atol=1e-6)


def test_outside_the_support_and_on_its_border() -> None:
    made = Prior("gamma", shape=0.5, rate=1)
    assert made.log_density([-1.0, 0.0, np.nan, np.inf]).tolist() == [-np.inf] * 4
    bounded = Prior("uniform", lower=0, upper=2)
    np.testing.assert_allclose(bounded.log_density([-0.1, 0, 1, 2, 2.1]), [-np.inf, *[-math.log(2)] * 3, -np.inf])


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_coordinate_gives_a_number(u: float) -> None:
    for made, _ in CASES:
        table = prior_table([made])
        theta, log_jacobian = to_theta(np.array([[u]]), table)
        total = log_prior(theta, table) + log_jacobian
        assert total[0] <= 1e4


def test_default_coordinates() -> None:
    assert Prior("normal", mean=0, sd=1).coordinate == "identity"
    assert Prior("lognormal", meanlog=0, sdlog=1).coordinate == "log"
    assert Prior("uniform", lower=0, upper=1).coordinate == "logit"


@pytest.mark.parametrize(
    ("family", "arguments", "words"),
    [
        ("unifrom", {}, "did you mean 'uniform'"),
        ("normal", {"mean": 0}, "needs 'sd'"),
        ("normal", {"mean": 0, "std": 1}, "no argument 'std'; did you mean 'sd'"),
        ("normal", {"mean": 0, "sd": -1}, "must be positive"),
        ("normal", {"mean": math.nan, "sd": 1}, "finite number"),
        ("normal", {"mean": "0", "sd": 1}, "finite number"),
        ("normal", {"mean": 10**400, "sd": 1}, "finite number"),
        ("normal", {"mean": 0, "sd": 1, "family": 2}, "no argument 'family'"),
        ("uniform", {"lower": 0}, "both 'lower' and 'upper'"),
        ("uniform", {"lower": 1, "upper": 1}, "must be below"),
        ("uniform", {"lower": 0, "upper": math.inf}, "finite number"),
        ("loguniform", {"lower": 0, "upper": 1}, "positive"),
        ("normal", {"mean": 0, "sd": 1, "lower": 60}, "no mass"),
        ("normal", {"mean": 0, "sd": 1, "coordinate": "log"}, "positive"),
        ("uniform", {"lower": -1, "upper": 1, "coordinate": "log"}, "positive"),
        ("halfnormal", {"sd": 1, "coordinate": "logit"}, "finite bounds"),
        ("halfnormal", {"sd": 1, "coordinate": "lgo"}, "did you mean 'log'"),
        ("beta", {"a": 1, "b": 1, "lower": 2, "upper": 3}, "must be below"),
    ],
)
def test_errors(family: str, arguments: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Prior(family, **arguments)


def test_draws_never_fall_on_a_border() -> None:
    made = Prior("beta", a=0.05, b=0.05)
    draws = made.sample(np.random.default_rng(0), 2000)
    assert np.isfinite(made.log_density(draws)).all()
    assert made.log_density(draws.reshape(2, -1)).shape == (2, 1000)


def test_pickles() -> None:
    made = CASES[4][0]
    assert pickle.loads(pickle.dumps(made)) == made


# --- intervals of the support ---

TRUNCATED = [
    (Prior("lognormal", meanlog=0.5, sdlog=1.2, upper=100), stats.lognorm(1.2, scale=math.exp(0.5))),
    (Prior("gamma", shape=2.5, rate=3, lower=4), stats.gamma(2.5, scale=1 / 3)),
    (Prior("beta", a=2, b=5, lower=0.1, upper=0.9), stats.beta(2, 5)),
    (Prior("student-t", df=3, location=-1, scale=2, lower=10, upper=1000), stats.t(3, -1, 2)),
    (Prior("cauchy", location=1, scale=0.5, upper=-50), stats.cauchy(1, 0.5)),
    (Prior("normal", mean=0, sd=1, lower=8), stats.norm()),
]


@pytest.mark.parametrize(("made", "reference"), CASES + TRUNCATED, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_mass_of_intervals(made, reference) -> None:
    x = made.quantile([1e-6, 0.01, 0.3, 0.6, 0.99, 1 - 1e-6])
    lower, upper = np.append(x[:-1], x[0]), np.append(x[1:], x[-1])
    expected = made.cdf(upper) - made.cdf(lower)
    np.testing.assert_allclose(made.mass(lower, upper), expected, rtol=1e-7, atol=1e-12)
    assert made.mass(made.lower, made.upper) == pytest.approx(1, rel=1e-12)
    pieces = made.mass(np.append(made.lower, x), np.append(x, made.upper))
    assert pieces.sum() == pytest.approx(1, rel=1e-9)
    assert made.mass(x, x).tolist() == [0.0] * 6


@pytest.mark.parametrize(("made", "reference"), CASES + TRUNCATED, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_points_between_two_ends(made, reference) -> None:
    """The share of the interval below a point is what was asked for."""
    ends = made.quantile(np.array([[1e-8, 1e-6], [0.01, 0.02], [0.2, 0.9], [0.99, 0.999], [1 - 1e-6, 1 - 1e-9]]))
    share = np.array([0.001, 0.3, 0.5, 0.9, 0.999])
    lower, upper = ends[:, :1], ends[:, 1:]
    x = made.between(lower, upper, share)
    assert ((x > lower) & (x < upper)).all()
    shares = made.mass(lower, x) / made.mass(lower, upper)
    np.testing.assert_allclose(shares, np.tile(share, (5, 1)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(made.between(made.lower, made.upper, share), made.quantile(share), rtol=1e-9)
    inside = made.between(lower, upper, np.array([0.0, 1.0]))
    assert ((inside > lower) & (inside < upper)).all()
    assert np.isfinite(made.log_density(inside)).all()


FAR = [
    (Prior("normal", mean=1, sd=0.5), [(6, 6.5), (-7, -6), (11, 12), (16, np.inf), (-np.inf, -16)]),
    (Prior("lognormal", meanlog=0, sdlog=1), [(math.exp(10), math.exp(11)), (math.exp(-21), math.exp(-20)), (0, 1e-8)]),
    (Prior("gamma", shape=2.5, rate=3), [(30, 31), (100, 101), (1e-12, 1e-11), (0, 1e-20), (60, np.inf)]),
    (Prior("exponential", rate=5), [(20, 20.1), (100, np.inf), (0, 1e-15)]),
    (Prior("beta", a=20, b=30), [(0.97, 0.99), (1e-4, 1e-3)]),
    (Prior("student-t", df=3, location=-1, scale=2), [(1e4, 2e4), (-1e9, -1e8), (1e6, np.inf)]),
    (Prior("student-t", df=30, location=0, scale=1), [(15, 16), (-40, -30)]),
    (Prior("cauchy", location=1, scale=0.5), [(1e8, 1e9), (-1e12, -1e11)]),
    (Prior("halfnormal", sd=3), [(30, 31), (60, 61)]),
    (Prior("halfcauchy", scale=2.5), [(1e10, 1e11)]),
    (Prior("normal", mean=0, sd=1, lower=8), [(10, 11), (20, np.inf), (8, 8.0001)]),
    (Prior("normal", mean=0, sd=1, upper=-8), [(-11, -10), (-np.inf, -20)]),
    (Prior("normal", mean=0, sd=1, lower=-12, upper=12), [(-11.5, -11), (11, 11.5)]),
]


@pytest.mark.parametrize(("made", "intervals"), FAR, ids=lambda x: str(x) if hasattr(x, "family") else "")
def test_mass_far_out_in_the_tails(made, intervals) -> None:
    """Against quadrature of the density, in logarithms so that nothing underflows."""
    for lower, upper in intervals:
        top, low = _tail_of(made, lower, upper)
        scale = float(max(made.log_density(top), made.log_density(low)))

        def density(s: float, a: float = low, b: float = top, scale: float = scale) -> float:
            x = a + (b - a) * s
            return float(np.exp(made.log_density(x) - scale)) * abs(b - a)

        knots = [0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
        knots = sorted({*knots, *(1 - k for k in knots), 1})
        total = sum(integrate.quad(density, *pair, epsabs=0, limit=200)[0] for pair in itertools.pairwise(knots))
        assert math.log(made.mass(lower, upper)) == pytest.approx(math.log(total) + scale, abs=1e-6), (lower, upper)
        share = np.array([0.01, 0.5, 0.99])
        x = made.between(lower, upper, share)
        np.testing.assert_allclose(made.mass(np.full(3, lower), x) / made.mass(lower, upper), share, rtol=1e-6)
        assert (np.diff(x) > 0).all()


def _tail_of(made: Prior, lower: float, upper: float) -> tuple[float, float]:
    """Finite ends beyond which nothing is left of the interval."""
    edge = made.between(lower, upper, np.array([1e-13, 1 - 1e-13]))
    low = lower if math.isfinite(lower) and lower > 0 else float(edge[0])
    return (upper if math.isfinite(upper) else float(edge[1])), (lower if math.isfinite(lower) and lower < 0 else low)


def test_endless_tails_of_a_cauchy() -> None:
    made = Prior("cauchy", location=1, scale=0.5)
    far = np.array([-1e10, -1e50, -1e100])
    np.testing.assert_allclose(made.mass(np.full(3, -np.inf), far), -0.5 / (math.pi * (far - 1)), rtol=1e-12)
    np.testing.assert_allclose(made.mass(-far, np.full(3, np.inf)), -0.5 / (math.pi * (far + 1)), rtol=1e-12)


@pytest.mark.parametrize("df", [0.7, 1.0, 3.0, 30.0])
def test_narrow_intervals_near_the_centre_of_a_student_t(df: float) -> None:
    made = Prior("student-t", df=df, location=0, scale=1)
    ends = np.array([0.0, 1e-10, 1e-9, 1e-8, 1e-7])
    expected = np.diff(ends) * math.exp(made.log_density(0.0))
    np.testing.assert_allclose(made.mass(ends[:-1], ends[1:]), expected, rtol=1e-5)
    np.testing.assert_allclose(made.mass(-ends[1:], -ends[:-1]), expected, rtol=1e-5)
    middle = made.between(ends[:-1], ends[1:], 0.5)
    np.testing.assert_allclose(middle, (ends[:-1] + ends[1:]) / 2, rtol=1e-5)


def test_intervals_that_are_not_there() -> None:
    for made in (Prior("normal", mean=0, sd=1), Prior("uniform", lower=0, upper=1), Prior("gamma", shape=2, rate=1)):
        assert np.isnan(made.mass(np.nan, np.nan))
        assert np.isnan(made.between(np.nan, np.nan, 0.5))
