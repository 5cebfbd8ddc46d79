"""Tempered populations: right for known laws, counted, repeatable; and modes that climbers miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.collapsed import plan as planning
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.collapsed.tools import Tools
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.marginal.noise_integral import nothing
from equifinal.samplers.marginal.target import CountedTarget, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.describing import described
from equifinal.samplers.searching import modes as searching
from equifinal.samplers.searching import populations, prior_draws
from equifinal.samplers.searching.importance import prior_law
from equifinal.samplers.searching.modes import Modes, bent, find_modes
from equifinal.samplers.searching.populations import Populations, Settled, next_power, systematic
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


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(populations, "LEAST_NUMBER", 200)
    monkeypatch.setattr(populations, "LEAST_ROUNDS", 1)
    monkeypatch.setattr(prior_draws, "LEAST", 4000)
    monkeypatch.setattr(prior_draws, "MOST", 4000)


def populations_of(posterior: Posterior, seed: int) -> tuple[Populations, CountedTarget]:
    """Populations in which each parameter stands for itself."""
    fibre = Fibre(list(posterior.parameters), posterior.problem.priors)
    tool = Tools(fibre, collapsed.Settings()).make(1, 0)
    width = 2 * len(posterior.parameters)
    moments = Moments(np.zeros((1, width)), np.eye(width)[None])
    target = Target(posterior, fibre, tool, nothing(posterior))
    counted = CountedTarget(target, moments, np.random.default_rng(seed))
    return Populations.from_prior(counted), counted


def settled(posterior: Posterior, seed: int) -> Settled:
    found = populations_of(posterior, seed)[0].settle(lambda text: None)
    assert found is not None
    return found


def theta_of(posterior: Posterior, x: np.ndarray) -> np.ndarray:
    """Here x is the position in sampling coordinates."""
    return posterior.to_theta(x.reshape(-1, x.shape[-1])).reshape(x.shape)


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
    """Means and mean squares of both parameters over 2 x 10 populations; 5 standard errors, 4 comparisons."""
    known = decay()
    draws = [theta_of(known, part) for seed in range(10) for part in settled(known, seed).draws]
    k, a = (part.ravel() for part in np.meshgrid(np.linspace(0.1, 2, 400), np.linspace(0, 5, 400)))
    weights = np.exp(decay_log_likelihood(np.column_stack([k, a])) - 0.5 * (a - 2) ** 2)
    for power in (1, 2):
        means = np.array([(theta**power).mean(axis=0) for theta in draws])
        exact = np.array([k**power @ weights, a**power @ weights]) / weights.sum()
        assert (np.abs(means.mean(axis=0) - exact) < 5 * means.std(axis=0, ddof=1) / np.sqrt(len(means))).all()


def test_the_wide_part_describes_the_square_root_of_the_posterior() -> None:
    """Standard deviations in sampling coordinates, beside quadrature: those of the posterior itself are a third less.

    Over ten seeds they vary by 8% at the most.
    """
    known = decay()
    found = settled(known, 3)
    x = found.wide.sample(np.random.default_rng(0), 20_000)
    around = found.draws.reshape(-1, 2)
    middle, spread = around.mean(axis=0), around.std(axis=0)
    grid = np.stack(np.meshgrid(*np.linspace(middle - 8 * spread, middle + 8 * spread, 200).T), axis=-1).reshape(-1, 2)
    evaluated = known.evaluate(grid)
    log_density = evaluated.log_prior + evaluated.log_likelihood
    deviations = []
    for power in (populations.FLATTENED, 1.0):
        weights = np.exp(power * (log_density - log_density.max()))
        centre = weights @ grid / weights.sum()
        deviations.append(np.sqrt(weights @ (grid - centre) ** 2 / weights.sum()))
    inside = np.quantile(np.abs(x - np.median(x, axis=0)), 0.683, axis=0)  # of a normal law, one standard deviation
    np.testing.assert_allclose(inside, deviations[0], rtol=0.15)
    assert (inside > 1.2 * deviations[1]).all()


def test_particles_are_chosen_from_draws_of_the_prior() -> None:
    """At the first power at which these are worth as many; none of them is in both populations."""
    made, _ = populations_of(decay(), 2)
    assert [(pool.x.shape, pool.made) for pool in made.pool] == [((2000, 2), 2000)] * 2
    assert 0 < made.power < 1
    worth = [prior_draws.effective(made.power * pool.log_likelihood) for pool in made.pool]
    assert min(worth) == pytest.approx(made.number, rel=1e-6)
    one, other = ({tuple(row) for row in x} for x in made.x)
    assert one <= {tuple(row) for row in made.pool[0].x}
    assert other <= {tuple(row) for row in made.pool[1].x}
    assert not one & other


def test_more_draws_of_the_prior_where_each_is_worth_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hundredths of a draw of the posterior; with a tenth of the noise a few ten thousandths."""
    monkeypatch.setattr(prior_draws, "MOST", 40_000)
    monkeypatch.setattr(prior_draws, "LOOK_EVERY", prior_draws.PIECE)
    monkeypatch.setattr(prior_draws, "WORTH", 300)
    made, _ = populations_of(decay(), 2)
    assert 4000 < sum(pool.made for pool in made.pool) < 40_000
    assert sum(pool.worth for pool in made.pool) == pytest.approx(300, rel=0.3)
    made, _ = populations_of(Posterior(loads(DECAY.replace("sd = 0.2", "sd = 0.02"))), 2)
    assert sum(pool.made for pool in made.pool) == 4000


def test_prior_draws_that_fail_end_it_early_and_are_not_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thirds of them fail: enough for particles are there long before the least number."""
    monkeypatch.setattr(prior_draws, "LEAST", 40_000)
    monkeypatch.setattr(prior_draws, "MOST", 40_000)
    made, counted = populations_of(Posterior(loads(BLOW_UP, name="explosion")), 0)
    assert sum(pool.made for pool in made.pool) == prior_draws.PIECE
    assert counted.failures == 0
    assert counted.solves == prior_draws.PIECE


LOG_Z = -1.23  # of UNEQUAL


def one_mode_and_the_other(known: Posterior, draws: np.ndarray) -> tuple[mixtures.Mixture, np.ndarray]:
    """A t law at the mode of a > 0, and draws at the other."""
    lower = theta_of(known, draws)[:, 0] < 0
    upper = draws[~lower]
    return mixtures.single(upper.mean(axis=0), np.cov(upper.T).reshape(1, 1), 12.0), draws[lower]


@pytest.mark.parametrize("alone", [False, True])
def test_populations_explore_what_a_mixture_misses(alone: bool) -> None:
    """A mixture of one mode: most of the law pi min(pi/q, c) is at the other, with 2.3% of the posterior.

    So it is if draws of the prior alone have seen that.
    """
    known = Posterior(loads(UNEQUAL, name="unequal"))
    made, _ = populations_of(known, 1)
    found = made.settle(lambda text: None)
    assert found is not None
    one_mode, there = one_mode_and_the_other(known, found.draws.reshape(-1, 1))
    assert 0.005 < len(there) / found.draws.size < 0.1
    if alone:
        for own in made.at_rest:
            for k, part in enumerate(own):
                upper = theta_of(known, part.x)[:, 0] > 0
                own[k] = populations.Particles(*(values[upper] for values in part))
    names = ("x", "log_prior", "log_likelihood", "shares", "_made", "_gained")
    before = {name: getattr(made, name).copy() for name in names}
    said: list[str] = []
    missed = made.missed_by(one_mode, LOG_Z, said.append)
    assert missed is not None
    assert 1.0 < float(said[0].split("%")[0].split()[-1]) < 5.0
    x = missed.sample(np.random.default_rng(0), 4000)
    explored = x[theta_of(known, x)[:, 0] < 0]
    assert len(explored) > 0.5 * len(x)
    np.testing.assert_allclose(explored.mean(), there.mean(), atol=0.05)
    np.testing.assert_allclose(explored.std(), there.std(), rtol=0.4)
    # and come back to where they were
    for name, part in before.items():
        np.testing.assert_array_equal(getattr(made, name), part)
    assert made.flattened == 1
    assert made.missed_by(one_mode.joined(missed, 0.1), LOG_Z, said.append) is None
    assert len(said) == 1


def test_draws_of_the_prior_check_a_proposal() -> None:
    known = Posterior(loads(UNEQUAL, name="unequal"))
    made, counted = populations_of(known, 1)
    found = made.settle(lambda text: None)
    assert found is not None
    one_mode, there = one_mode_and_the_other(known, found.draws.reshape(-1, 1))
    both = one_mode.joined(mixtures.single(there.mean(axis=0), np.cov(there.T).reshape(1, 1), 12.0), 0.03)
    told: list[int] = []
    assert prior_draws.see_more(counted, one_mode, LOG_Z, told.append)
    assert told == [0]  # no more than are needed
    assert not prior_draws.see_more(counted, both, LOG_Z, told.append)
    assert told[1:] == [0, 1000, 2000, 3000]


ELBOW = '''
[model]
equations = """
x' = 0
x(0) = a + b
"""
outputs = ["x"]
[parameters]
a = { prior = "lognormal", meanlog = 0, sdlog = 1 }
b = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
x = { family = "normal", sd = 0.02 }
[data]
time = [0]
x = [2]
'''


def test_bent_coordinates_change_nothing_else() -> None:
    """Where particles and draws of the prior are, and the density of that."""
    known = Posterior(loads(ELBOW, name="elbow"))
    made, counted = populations_of(known, 1)
    assert made.settle(lambda text: None) is not None
    assert made.counted.coordinates.bend.side.tolist() == [1, 1]
    for own in (*made.pool, *made._particles(), made.at_rest[0][-1]):
        h, log_slope = counted.coordinates.bend.backward(own.x)
        there = known.evaluate(h)
        np.testing.assert_allclose(own.log_likelihood, there.log_likelihood, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(own.log_prior, there.log_prior + log_slope.sum(axis=1), rtol=1e-9, atol=1e-9)


def test_the_law_of_the_prior_covers_it_where_coordinates_are_bent() -> None:
    """One t law is e^10 to e^14 times too low for a thousandth of this prior, and e^20 and more for single draws."""
    known = Posterior(loads(ELBOW.replace("sdlog = 1", "sdlog = 2"), name="elbow"))
    _, counted = populations_of(known, 1)
    for turn in (-4.0, -1.0, 2.0):
        counted.bend(Bend(np.array([1.0, -1.0]), np.full(2, turn)))
        law = prior_law(counted)
        u = known.to_coordinates(known.sample_prior(np.random.default_rng(3), 20_000))
        x = counted.coordinates.at(u)
        log_prior = known.evaluate(u).log_prior + counted.coordinates.bend.backward(x)[1].sum(axis=1)
        log_ratio = log_prior - law.log_density(x)
        assert np.quantile(log_ratio, 0.999) < np.log(100)
        assert log_ratio.max() < 12


def test_modes_in_bent_coordinates_have_the_volume_that_they_have() -> None:
    known = Posterior(loads(ELBOW, name="elbow"))
    _, counted = populations_of(known, 1)
    fibre = counted.target.fibre
    straight = find_modes(known, fibre, np.random.default_rng(1))
    there = bent(straight, Bend(np.array([1.0, -1.0]), np.array([-1.0, 0.5])))

    def log_volume(modes: Modes) -> np.ndarray:
        return modes.log_density + 0.5 * np.linalg.slogdet(modes.covariance)[1]

    assert np.abs(there.h - straight.h).min() > 0.01
    np.testing.assert_allclose(log_volume(there), log_volume(straight))


def test_systematic_resampling_takes_nothing_that_is_not_there() -> None:
    """Even if rounding puts the last place at one."""
    assert systematic(np.ones(3), 3, 1.0).tolist() == [1, 2, 2]


def test_populations_go_on_at_the_posterior() -> None:
    """Not at the power of it to which they went last: there they would be wider by a factor of 1.4."""
    made, counted = populations_of(decay(), 4)
    found = made.settle(lambda text: None)
    assert found is not None
    said: list[str] = []
    onward = made.go_on(described(*found.draws, counted.rng, both=True), said.append)
    assert onward.shape[1] % made.number == 0
    before, after = (x.reshape(-1, x.shape[2]) for x in (found.draws, onward[:, made.number :]))
    np.testing.assert_allclose(after.std(axis=0), before.std(axis=0), rtol=0.15)
    assert (np.abs(after.mean(axis=0) - before.mean(axis=0)) < 0.2 * before.std(axis=0)).all()
    assert said[0].startswith("populations gone on with it, 10 sweeps, correlation 0.")


def test_mixtures_are_fitted_to_the_other_population() -> None:
    """What moves a population knows nothing of where its particles are."""
    made, _ = populations_of(decay(), 1)
    made.x[0] += 100.0
    made._refit()
    assert made._mixtures[0].centre.max() < 50 < made._mixtures[1].centre.min()


def test_the_last_mixture_is_fitted_to_all_particles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second draw would be every second particle of each snapshot: half of them, again and again."""
    known = decay()
    fibre = Fibre(["k", "a"], known.problem.priors)
    given: list[np.ndarray] = []

    def noted(x: np.ndarray, others: np.ndarray, *rest: Any, **more: Any) -> Any:
        given.append(x)
        return described(x, others, *rest, **more)

    monkeypatch.setattr(planning, "described", noted)
    monkeypatch.setattr(planning, "FITTED", 200)
    monkeypatch.setattr(planning, "JUDGED", 500)
    rng = np.random.default_rng(3)
    plan = planning.prepare_again(known, fibre, Tools(fibre, collapsed.Settings()), rng, lambda text: None)
    (x,) = given
    rows = [int(np.flatnonzero((plan.start[0] == row).all(axis=1))[0]) for row in x]
    assert len(x) == 200
    assert len({row % 200 for row in rows}) > 100  # snapshots of 200 particles each


@pytest.mark.slow
def test_two_modes_have_the_right_shares() -> None:
    known = Posterior(loads(UNEQUAL, name="unequal"))
    shares = [(theta_of(known, part) < 0).mean() for seed in range(10) for part in settled(known, seed).draws]

    def density(x: float) -> float:
        return float(np.exp(-0.5 * ((x * x - 1) / 0.2) ** 2 - 0.5 * ((x - 0.6) / 0.55) ** 2))

    below, above = (integrate.quad(density, *ends, points=(at,))[0] for ends, at in (((-3, 0), -1), ((0, 3), 1)))
    share = below / (below + above)
    assert 0.01 < share < 0.2
    assert abs(np.mean(shares) - share) < 5 * np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert np.std(shares) < share


def test_the_generator_decides() -> None:
    one, same, other = (settled(decay(), seed) for seed in (1, 1, 2))
    np.testing.assert_equal(one, same)
    assert (one.draws != other.draws).any()


def test_failing_solves_are_never_kept() -> None:
    known = Posterior(loads(BLOW_UP, name="explosion"))
    made, _ = populations_of(known, 0)
    found = made.settle(lambda text: None)
    assert found is not None
    assert np.isfinite(made.log_prior).all()
    there = known.evaluate(made.x.reshape(-1, 1))
    np.testing.assert_allclose(made.log_likelihood.ravel(), there.log_likelihood, rtol=1e-12)
    assert theta_of(known, found.draws).mean() == pytest.approx(0.5, abs=0.05)


def test_there_is_an_end_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(populations, "MOST", 500)
    made, counted = populations_of(decay(), 0)
    before = counted.solves
    assert made.settle(lambda text: None) is None
    assert before + 500 < counted.solves < before + 500 + 2 * made.number * populations.MOST_SWEEPS


def test_priors_that_exclude_the_data() -> None:
    text = DECAY.replace('family = "normal", sd = 0.2', 'family = "lognormal", sdlog = 1').replace("y = x", "y = 0 - x")
    with pytest.raises(SamplingError, match="no particles"):
        populations_of(Posterior(loads(text)), 0)


# --- modes ---


def test_populations_find_a_mode_that_climbers_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Climbers miss it from 60 of 100 sets of prior draws."""
    monkeypatch.setattr(populations, "LEAST_NUMBER", 500)
    known, fibre = hidden()
    missed = [s for s in range(20) if len(find_modes(known, fibre, np.random.default_rng(s)).h) == 1]
    assert len(missed) >= 8
    shares = [(theta_of(known, settled(known, 100 + seed).draws)[..., 0] > 1.7).mean() for seed in range(6)]
    assert sum(share > 0.3 for share in shares) >= 4  # it has 79% of the posterior


def test_climbers_that_disagree_or_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    known, fibre = hidden()
    said: list[str] = []
    assert not all(find_modes(known, fibre, np.random.default_rng(s), said.append).agreed for s in range(20))
    assert "10 starts, 2 modes" in said
    known = decay()
    fibre = Fibre(["k", "a"], known.problem.priors)
    assert find_modes(known, fibre, np.random.default_rng(0)).agreed
    monkeypatch.setattr(searching, "LEGS", ((0, 60.0), (0, 30.0), (0, 15.0)))  # none arrives
    assert not find_modes(known, fibre, np.random.default_rng(0), said.append).agreed
    assert said[-1].endswith("but most do not arrive")


def test_a_start_of_few_components_does_not_keep_others_from_being_tried() -> None:
    """Two arcs, far from each other: a component for each is far better than one for both, and worse than many."""
    rng = np.random.default_rng(5)

    def arcs(n: int) -> np.ndarray:
        angle, side = rng.uniform(0, np.pi, n), rng.choice([-1.0, 1.0], n)
        return np.column_stack([5 * side + np.cos(angle), side * np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))

    two = mixtures.equal(np.array([[-5.0, 0.0], [5.0, 0.0]]), np.eye(2))
    found = described(arcs(2000), arcs(2000), rng, two, both=True)
    assert len(found.share) > 2
