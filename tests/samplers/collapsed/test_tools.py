"""Charts and laws of points, chosen by how few points they need."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.fibre import Fibre
from equifinal.problem.prior import Prior
from equifinal.samplers.collapsed.sampler import Settings
from equifinal.samplers.collapsed.tools import LITTLE_NOISE, Tools
from equifinal.samplers.points.estimator import log_variance
from equifinal.samplers.points.law import Moments
from equifinal.samplers.points.mixing import charts_to_mix


@pytest.fixture(scope="module")
def fibre() -> Fibre:
    """Two pools that exchange, seen through their sum: two dimensions, and charts of very different use."""
    priors = {name: Prior("halfnormal", sd=1) for name in ("k1", "k2", "alpha21", "alpha12")}
    priors["gamma"] = Prior("beta", a=10, b=1)
    combinations = [
        "k1 + k2",
        "k1*k2 - k1*k2*alpha12*alpha21",
        "alpha12*k2*gamma + k1*gamma + k2 - k1*alpha21*gamma - alpha12*k2 - k2*gamma",
    ]
    return Fibre(combinations, priors, partition=("k2", "alpha21"))


@pytest.fixture(scope="module")
def at() -> np.ndarray:
    """theta where data that were measured lead to."""
    return np.array([[0.1, 0.05, 0.3, 0.4, 0.9]])


def _moments(fibre: Fibre, theta: np.ndarray) -> Moments:
    mean = np.concatenate([fibre.xi(theta), fibre.to_coordinates(theta)], axis=1)
    return Moments(mean, np.eye(mean.shape[1])[None] * 0.25)


def test_another_chart_needs_fewer_points(fibre: Fibre, at: np.ndarray) -> None:
    tools, moments, rng = Tools(fibre, Settings()), _moments(fibre, at), np.random.default_rng(1)
    c = fibre.xi(at)
    own = tools.at_least(16, 0, c, moments, rng)
    best = tools.enough(c, moments, rng)
    assert best.noise < LITTLE_NOISE
    assert best.way > 0
    assert 4 * best.number <= own.number


def test_one_point_is_enough_where_there_is_no_noise() -> None:
    """On lines k*m of loguniform priors the law of points is the prior's; not so with normal ones, off their mean."""
    found = {}
    for prior in (Prior("loguniform", lower=0.01, upper=100), Prior("normal", mean=1, sd=1, lower=0)):
        fibre = Fibre(["k*m"], {"k": prior, "m": prior})
        theta = np.array([[0.3, 5.0]])
        tools = Tools(fibre, Settings())
        found[prior.family] = tools.enough(fibre.xi(theta), _moments(fibre, theta), np.random.default_rng(3))
    assert found["loguniform"].number == 1
    assert found["normal"].number > 1
    assert max(one.noise for one in found.values()) < LITTLE_NOISE


def test_all_ways_estimate_the_same_density(fibre: Fibre, at: np.ndarray) -> None:
    """Means of many estimates, whatever chart and law; a false alarm once in some 100,000 times."""
    tools, rng, c = Tools(fibre, Settings()), np.random.default_rng(2), fibre.xi(at)
    repeated = Moments(*(np.repeat(part, 200, axis=0) for part in _moments(fibre, at)))
    found = []
    for way in range(len(tools.ways)):
        tool = tools.make(256, way)
        log_p = tool.estimate(np.repeat(c, 200, axis=0), tool.many_uniforms(rng, 200), repeated).log_p
        p = np.exp(log_p)
        found.append((p.mean(), p.std() / np.sqrt(len(p))))
    best, error = min(found, key=lambda pair: pair[1])
    for mean, own in found:
        assert abs(mean - best) < 5 * np.hypot(own, error)


def test_what_is_asked_for_is_what_is_used(fibre: Fibre) -> None:
    assert len(Tools(fibre, Settings(law="prior")).ways) == 1
    assert len(Tools(fibre, Settings(aux=64)).ways) == 1
    assert len(Tools(fibre, Settings(partition=["k1", "gamma"])).ways) == 1


def test_zero_estimates_are_noise() -> None:
    """An estimate that is zero half of the time has a relative variance of one; one that always is, of infinity."""
    log_p = np.array([[0.0, -np.inf] * 50, [-np.inf] * 100, [1.0] * 100])
    np.testing.assert_allclose(log_variance(log_p), [np.log(2), np.inf, 0.0])


def test_charts_are_mixed_where_each_describes_a_part() -> None:
    """Sums of rates with wide log-uniform priors: no single chart sees all decades of both terms.

    The mean over many estimates is the density, in closed form, to 5 standard errors.
    """
    rates = {name: Prior("loguniform", lower=1e-3, upper=1e5) for name in ("a", "b", "c", "e", "f")}
    fibre = Fibre(["a + b", "b/c", "e + f"], rates)
    assert charts_to_mix(fibre) == (("a", "e"), ("a", "f"), ("c", "e"), ("c", "f"))  # c is b but for a constant
    tools, rng = Tools(fibre, Settings()), np.random.default_rng(2)
    theta = np.array([[30.0, 2.0, 0.5, 3.0, 40.0]])
    c, moments = fibre.xi(theta), _moments(fibre, theta)
    found = tools.enough(c, moments, rng)
    assert found.noise < LITTLE_NOISE
    assert found.number <= 64
    assert len(tools.ways[found.way].charts) == 4
    assert all(tools._tried(1024, way, c, moments, rng).noise > 2 * LITTLE_NOISE for way in range(found.way))
    tool, n = tools.make(16, found.way), 4000
    repeated = Moments(*(np.repeat(part, n, axis=0) for part in moments))
    p = np.exp(tool.estimate(np.repeat(c, n, axis=0), tool.many_uniforms(rng, n), repeated).log_p)
    low, width = 1e-3, np.log(1e8)
    ((one, ratio, other),) = c

    def logit(x: float, whole: float) -> float:
        return float(np.log(x / (whole - x)))

    first = (logit(one - low, one) - logit(low * ratio, one)) / (one * ratio * width**3)
    second = (logit(other - low, other) - logit(low, other)) / (other * width**2)
    assert abs(p.mean() - first * second) < 5 * p.std() / np.sqrt(n)
    assert p.std() / np.sqrt(n) < 0.005 * first * second


def test_charts_that_are_the_same_but_for_constants_are_not_mixed() -> None:
    """On k*m the logarithms of k and m add up to a constant: even points of one are even points of the other."""
    prior = Prior("loguniform", lower=0.01, upper=100)
    assert charts_to_mix(Fibre(["k*m"], {"k": prior, "m": prior})) == ()
    assert len(Tools(Fibre(["k*m"], {"k": prior, "m": prior}), Settings()).ways) == 1
