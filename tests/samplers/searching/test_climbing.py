"""The search for a start: it climbs, stays inside the support, and finds modes from prior draws."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from equifinal.errors import SamplingError
from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.running.beginning import spawn_generators
from equifinal.samplers.searching import climbing as searching
from equifinal.samplers.searching.climbing import climb, laplace, prior_start, search
from tests.support.problems import DECAY, decay


@cache
def posterior(name: str) -> Posterior:
    return decay() if name == "decay" else Posterior(load(example_path(name)))


def density(known: Posterior, u: np.ndarray) -> np.ndarray:
    """What climbers climb: the posterior without flat priors; minus infinity outside the support."""
    found = known.evaluate(u)
    return np.where(np.isfinite(found.log_prior), searching._log_prior(u, known.table) + found.log_likelihood, -np.inf)


# --- climbing ---


@pytest.mark.parametrize("name", ["decay", "si", "influenza"])
def test_climbs_never_lead_down_or_out(name: str) -> None:
    known = posterior(name)
    u = known.to_coordinates(known.sample_prior(np.random.default_rng(0), 12))
    lower, upper, _ = searching._box(known)
    before = density(known, np.clip(u, lower, upper))
    for steps in (1, 5, 20):
        ends = climb(known, u, steps)
        start = np.isfinite(before)
        assert (ends.log_density[start] >= before[start] - 1e-3 * (1 + np.abs(before[start]))).all()
        assert np.isfinite(known.log_prior(known.to_theta(ends.position))).all()
        assert ((ends.position >= lower) & (ends.position <= upper)).all()
        fine = np.isfinite(ends.log_density)
        np.testing.assert_allclose(ends.log_density[fine], density(known, ends.position)[fine], rtol=1e-4, atol=1e-3)
    assert (climb(known, u, 30).log_density >= climb(known, u, 3).log_density - 1e-9)[np.isfinite(before)].all()


def test_a_climber_does_not_depend_on_its_company() -> None:
    known = posterior("si")
    u = known.to_coordinates(known.sample_prior(np.random.default_rng(1), 6))
    together = climb(known, u, 15)
    for i in range(6):
        alone = climb(known, u[i : i + 1], 15)
        np.testing.assert_array_equal(alone.position[0], together.position[i])
        np.testing.assert_array_equal(alone.log_density[0], together.log_density[i])


@pytest.mark.parametrize("name", ["decay", "si", "hiv"])
def test_a_climber_at_the_top_soon_knows_it(name: str) -> None:
    """There rounding decides whether a step gains or loses something."""
    known = posterior(name)
    mode = search(known, np.random.default_rng(1)).position
    again = climb(known, mode[None], 30)
    assert again.arrived.all()
    assert again.solves <= 6


def test_climbs_do_not_change_what_they_are_given() -> None:
    known = decay()
    u = known.to_coordinates(known.sample_prior(np.random.default_rng(1), 3))
    before = u.copy()
    climb(known, u, 5)
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("coordinate", ["identity", "log", "logit"])
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_mode_on_the_border_is_reached(coordinate: str, bound: str) -> None:
    """The data want k near 0.6, which the prior's bounds exclude."""
    bounds = "lower = 0.9, upper = 2" if bound == "lower" else "lower = 0.05, upper = 0.3"
    text = DECAY.replace("lower = 0.1, upper = 2", f'{bounds}, coordinate = "{coordinate}"')
    known = Posterior(loads(text))
    start = search(known, np.random.default_rng(0))
    k = known.to_theta(start.position)[0, 0]
    edge = 0.9 if bound == "lower" else 0.3
    assert k == pytest.approx(edge, rel=0.15)
    assert 0.9 <= k <= 2 if bound == "lower" else 0.05 <= k <= 0.3
    assert np.isfinite(density(known, start.position[None])).all()


# --- searching ---

BEST: dict[str, float] = {}


def best(name: str) -> float:
    """By a longer search than any start gets."""
    if name not in BEST:
        known = posterior(name)
        u = known.to_coordinates(known.sample_prior(np.random.default_rng(99), 400))
        order = np.argsort(-density(known, u))[:12]
        BEST[name] = float(climb(known, u[order], 200).log_density.max())
    return BEST[name]


@pytest.mark.parametrize("name", ["si", "hiv", "influenza"])
def test_modes_are_found_from_prior_draws(name: str) -> None:
    known = posterior(name)
    for seed in range(5):
        start = search(known, np.random.default_rng(seed))
        reached = density(known, start.position[None])[0]
        assert reached > best(name) - 3.0, (seed, reached, best(name))
        assert start.solves > 0


def test_starts_are_spread_along_the_fibre() -> None:
    known = posterior("si")
    ends = known.to_theta(np.stack([search(known, np.random.default_rng(seed)).position for seed in range(6)]))
    gamma = ends[:, 2]
    assert np.ptp(gamma) > 0.2
    growth = ends[:, 0] * 1e4 - gamma
    assert np.ptp(growth) < 0.01


def test_chains_search_by_themselves() -> None:
    known = decay()
    three = [search(known, rng) for rng in spawn_generators(5, 3)]
    one = search(known, spawn_generators(5, 1)[0])
    np.testing.assert_array_equal(three[0].position, one.position)
    assert not np.array_equal(three[0].position, three[1].position)


@pytest.mark.parametrize("start", [search, prior_start])
def test_priors_that_exclude_the_data(start) -> None:
    text = DECAY.replace('family = "normal", sd = 0.2', 'family = "lognormal", sdlog = 1').replace("y = x", "y = 0 - x")
    with pytest.raises(SamplingError, match=r"no starting point: none of \d+ prior draws.*Check that the priors allow"):
        start(Posterior(loads(text)), np.random.default_rng(0))


@pytest.mark.parametrize("start", [search, prior_start])
def test_solves_that_fail_are_counted_and_avoided(start) -> None:
    """x' = k x^2 runs off to infinity for most of the prior."""
    text = DECAY.replace("-k*x", "k*x*x").replace("lower = 0.1, upper = 2", "lower = 0.001, upper = 20")
    known = Posterior(loads(text))
    found = start(known, np.random.default_rng(1))
    assert found.failures > 0
    assert np.isfinite(density(known, found.position[None])).all()
    assert np.isfinite(found.position).all()


def test_the_covariance_at_a_mode() -> None:
    """Of a nearly Gaussian posterior, against differences of the log density; never wider than the prior."""
    known = decay()
    mode = search(known, np.random.default_rng(0)).position
    covariance, solves = laplace(known, mode[None])
    assert solves == 1
    step, hessian = 1e-3, np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            a, b = np.eye(2)[i] * step, np.eye(2)[j] * step
            values = density(known, mode + np.array([a + b, a - b, b - a, -a - b]))
            hessian[i, j] = -(values @ [1, -1, -1, 1]) / (4 * step**2)
    np.testing.assert_allclose(covariance[0], np.linalg.inv(hessian), rtol=0.5, atol=0.002)
    assert (np.linalg.eigvalsh(covariance[0]) > 0).all()
    si = posterior("si")
    wide, _ = laplace(si, si.to_coordinates(si.sample_prior(np.random.default_rng(0), 20)))
    spread = searching._box(si)[2]
    assert (np.sqrt(np.diagonal(wide, axis1=1, axis2=2)) <= spread * (1 + 1e-9)).all()


def test_the_covariance_of_rates_known_far_better_than_others_is_positive_definite() -> None:
    text = """
    [model]
    equations = '''
    x' = -(a + b)*x
    z' = -c*d*z
    x(0) = s
    z(0) = s
    '''
    outputs = ["x", "z"]
    [parameters]
    a = { prior = "loguniform", lower = 1e-10, upper = 1e3 }
    b = { prior = "loguniform", lower = 1e-10, upper = 1e3 }
    c = { prior = "loguniform", lower = 1e-10, upper = 1e3 }
    d = { prior = "loguniform", lower = 1e-10, upper = 1e3 }
    s = { prior = "loguniform", lower = 1e-10, upper = 1e3 }
    [noise]
    x = { family = "normal", sd = 1e-7 }
    z = { family = "normal", sd = 1e-7 }
    [data]
    time = [1, 2, 3]
    x = [0.9, 0.81, 0.729]
    z = [0.9, 0.81, 0.729]
    """
    known = Posterior(loads(text))
    covariance, _ = laplace(
        known, known.to_coordinates(np.array([[0.1, 1e-7, 0.5, 0.2, 1.0], [3.0, 0.1, 2.0, 7.0, 2.0]]))
    )
    np.testing.assert_allclose(covariance, np.swapaxes(covariance, 1, 2), rtol=0, atol=1e-13)
    assert (np.linalg.eigvalsh(covariance) > -1e-12).all()


def test_screening_tells_how_far_it_is() -> None:
    """So that a limit of time can end it; pieces give the same numbers as all draws at once."""
    known, told = decay(), []
    found = searching.screen(known, np.random.default_rng(1), 150, told.append)
    assert told == [0, 64 / 150, 128 / 150]
    whole = known.evaluate(found.position)
    np.testing.assert_array_equal(found.log_density, whole.log_prior + whole.log_likelihood)
    assert found.solves == 150

    def over(done: float) -> None:
        if done > 0:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        searching.screen(known, np.random.default_rng(1), 150, over)
