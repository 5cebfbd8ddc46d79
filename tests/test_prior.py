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
from equifinal.prior import FAMILIES, Prior, from_theta, log_prior, prior_table, to_theta

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
