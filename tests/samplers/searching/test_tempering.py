"""Tempered particles: right for known laws, counted, repeatable; and the modes that only they find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.searching import modes as searching
from equifinal.samplers.searching import tempering as tempered
from equifinal.samplers.searching.modes import find_modes, find_more_modes, news
from equifinal.samplers.searching.tempering import next_power, systematic, temper
from tests.support.problems import DECAY, decay, decay_log_likelihood, hidden

# two modes, the one of a < 0 with a tenth of the prior mass of the other
UNEQUAL = '''
[model]
equations = """
x' = 0
x(0) = a^2
"""
outputs = ["x"]
[parameters]
a = { prior = "normal", mean = 0.6, sd = 0.55 }
[noise]
x = { family = "normal", sd = 0.2 }
[data]
time = [0]
x = [1]
'''
BLOW_UP = '''
[model]
equations = """
x' = x^2
x(0) = a
"""
outputs = ["x"]
[parameters]
a = { prior = "uniform", lower = 0.1, upper = 3 }
[noise]
x = { family = "normal", sd = 0.1 }
[data]
time = [0, 0.5, 1]
x = [0.5, 0.67, 1]
'''


def climbed_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> searching.Modes:
    with monkeypatch.context() as patch:
        patch.setattr(searching, "find_more_modes", lambda posterior, fibre, rng, known: known)
        return find_modes(*hidden(), np.random.default_rng(seed))


# --- particles ---


def test_powers_halve_the_effective_sample_size() -> None:
    values = np.random.default_rng(0).normal(-300, 40, 1000)
    power = next_power(values, 0.1)
    weights = np.exp((power - 0.1) * (values - values.max()))
    assert weights.sum() ** 2 / (weights @ weights) == pytest.approx(500, rel=1e-6)
    assert next_power(values, 0.999) == 1.0
    assert 0 < next_power(-np.logspace(0, 300, 100), 0.0) < 1


def test_resampling_is_systematic() -> None:
    weights = np.array([0.0, 3.0, 1.0, 0.0, 4.0])
    for uniform in (0.0, 0.3, 0.999):
        assert np.bincount(systematic(weights, 16, uniform), minlength=5).tolist() == [0, 6, 2, 0, 8]


def test_decay_by_quadrature() -> None:
    """Means of both parameters over independent clouds."""
    known = decay()
    clouds = [known.to_theta(temper(known, np.random.default_rng(i), 300).position) for i in range(20)]
    means = np.array([theta.mean(axis=0) for theta in clouds])
    k, a = (part.ravel() for part in np.meshgrid(np.linspace(0.1, 2, 400), np.linspace(0, 5, 400)))
    weights = np.exp(decay_log_likelihood(np.column_stack([k, a])) - 0.5 * (a - 2) ** 2)
    exact = np.array([k @ weights, a @ weights]) / weights.sum()
    assert (np.abs(means.mean(axis=0) - exact) < 5 * means.std(axis=0, ddof=1) / np.sqrt(len(means))).all()
    squares = np.array([(theta**2).mean(axis=0) for theta in clouds])
    exact = np.array([k**2 @ weights, a**2 @ weights]) / weights.sum()
    assert (np.abs(squares.mean(axis=0) - exact) < 5 * squares.std(axis=0, ddof=1) / np.sqrt(len(squares))).all()


def test_two_modes_have_the_right_shares() -> None:
    known = Posterior(loads(UNEQUAL, name="unequal"))
    shares = [(known.to_theta(temper(known, np.random.default_rng(i)).position) < 0).mean() for i in range(30)]

    def density(x: float) -> float:
        return float(np.exp(-0.5 * ((x * x - 1) / 0.2) ** 2 - 0.5 * ((x - 0.6) / 0.55) ** 2))

    below, above = (integrate.quad(density, *ends, points=(at,))[0] for ends, at in (((-3, 0), -1), ((0, 3), 1)))
    share = below / (below + above)
    assert 0.01 < share < 0.2
    assert abs(np.mean(shares) - share) < 5 * np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert np.std(shares) < share


def test_the_generator_decides() -> None:
    one, same, other = (temper(decay(), np.random.default_rng(seed), 100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.position, same.position)
    np.testing.assert_array_equal(one.log_density, same.log_density)
    assert one[2:] == same[2:]
    assert (one.position != other.position).any()


def test_failing_solves_are_counted_and_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Posterior(loads(BLOW_UP, name="explosion"))
    counted = []
    evaluate = known.evaluate

    def counting(u: np.ndarray):
        found = evaluate(u)
        counted.append((found.solves.sum(), found.failures.sum()))
        return found

    monkeypatch.setattr(known, "evaluate", counting)
    found = temper(known, np.random.default_rng(0), 200)
    assert (found.solves, found.failures) == tuple(np.sum(counted, axis=0))
    assert found.failures > 100  # two thirds of the prior draws
    assert found.power == 1.0
    assert np.isfinite(found.log_density).all()
    there = evaluate(found.position)
    np.testing.assert_array_equal(found.log_density, there.log_prior + there.log_likelihood)
    a = known.to_theta(found.position)
    assert a.mean() == pytest.approx(0.5, abs=0.05)


def test_there_is_an_end_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempered, "MOST", 3000)
    found = temper(decay(), np.random.default_rng(0))
    assert found.solves <= 3000
    assert 0 < found.power < 1
    assert found.position.shape == (tempered.NUMBER, 2)


def test_priors_that_exclude_the_data() -> None:
    text = DECAY.replace('family = "normal", sd = 0.2', 'family = "lognormal", sdlog = 1').replace("y = x", "y = 0 - x")
    with pytest.raises(SamplingError, match="no particles"):
        temper(Posterior(loads(text)), np.random.default_rng(0), 50)


# --- modes ---


def test_particles_find_a_mode_that_climbers_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Climbers miss it from 60 of 100 sets of prior draws; 500 particles found it 68 times of 93, 2000 each time."""
    known, fibre = hidden()
    missed = [alone for seed in range(20) if len((alone := climbed_alone(seed, monkeypatch)).h) == 1]
    assert len(missed) >= 8
    found = 0
    for seed, alone in enumerate(missed[:6]):
        assert not alone.tempered
        more = find_more_modes(known, fibre, np.random.default_rng(100 + seed), alone, 2000)
        assert more.tempered
        assert more.solves > 10 * 2000
        if news(more, alone):
            found += 1
            np.testing.assert_allclose(known.to_theta(more.position), [[2, 0], [-2, 0]], atol=0.2)
            assert more.log_density[0] > more.log_density[1]
    assert found >= 5


def test_particles_are_asked_where_climbers_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    known, fibre = hidden()
    seed = next(seed for seed in range(20) if len(climbed_alone(seed, monkeypatch).h) > 1)
    said: list[str] = []
    modes = find_modes(known, fibre, np.random.default_rng(seed), said.append)
    assert modes.tempered
    assert said[1:] == ["10 starts, 2 modes", "starts disagree: 500 tempered particles", "2 modes"]


def test_particles_are_asked_where_climbers_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "LEGS", ((0, 60.0), (0, 30.0), (0, 15.0)))  # none arrives
    known = decay()
    said: list[str] = []
    assert find_modes(known, Fibre(["k", "a"], known.problem.priors), np.random.default_rng(0), said.append).tempered
    assert "starts fail: 500 tempered particles" in said


def test_one_mode_does_without_particles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(searching, "temper")
    known = decay()
    for seed in range(10):
        modes = find_modes(known, Fibre(["k", "a"], known.problem.priors), np.random.default_rng(seed))
        assert (len(modes.h), modes.tempered) == (1, False)
        assert modes.solves < 1000
