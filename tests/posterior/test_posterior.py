from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from equifinal.errors import DataError
from equifinal.formats.toml import loads
from equifinal.posterior import likelihood
from equifinal.posterior.posterior import Posterior
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.problem import Problem
from tests.support.problems import DECAY, EXPERIMENTS, decay, decay_log_likelihood, si


def logistic(theta: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Reported cases of the SI model in closed form; theta = (beta, rho, gamma, I0)."""
    beta, rho, gamma, i0 = (column[:, None] for column in theta.T)
    rate = beta * 10_000 - gamma
    growth = np.exp(rate * t)
    return rho * rate * i0 * growth / (rate + beta * i0 * (growth - 1))


def test_si_likelihood_against_its_closed_form() -> None:
    posterior = si()
    theta = posterior.sample_prior(np.random.default_rng(0), 200)
    (entry,) = posterior.problem.experiments[0].observations
    expected = stats.norm(logistic(theta, entry.times), 5).logpdf(entry.values).sum(axis=1)
    found = posterior.log_likelihood(theta)
    assert (found.failures == 0).all()
    np.testing.assert_allclose(found.values, expected, rtol=1e-4)
    truth = np.array([[2.5e-4, 0.25, 0.6, 40.0]])
    assert posterior.log_likelihood(truth).values[0] == pytest.approx(
        stats.norm(logistic(truth, entry.times), 5).logpdf(entry.values).sum(), abs=1e-3
    )


def test_likelihood_is_constant_along_the_fibre_of_si() -> None:
    posterior = si()
    rho = np.linspace(0.2, 0.28, 9)
    c1, c2, c3 = 1.9, 1e-3, 10.0
    theta = np.column_stack([c2 * rho, rho, c2 * rho * 10_000 - c1, c3 / rho])
    values = posterior.log_likelihood(theta).values
    assert np.ptp(values) < 1e-3


def test_pointwise_sums_to_the_total() -> None:
    theta = si().sample_prior(np.random.default_rng(1), 20)
    pointwise = si().pointwise(theta)
    assert list(pointwise) == [("", "cases")]
    np.testing.assert_allclose(pointwise["", "cases"].sum(axis=1), si().log_likelihood(theta).values)


def test_density_in_coordinates_carries_the_jacobian() -> None:
    posterior = decay()
    theta = posterior.sample_prior(np.random.default_rng(2), 50)
    u = posterior.to_coordinates(theta)
    np.testing.assert_allclose(posterior.to_theta(u), theta, rtol=1e-12)
    found = posterior.evaluate(u)
    step = 1e-6
    log_jacobian = np.zeros(50)
    for j in range(2):
        up, down = u.copy(), u.copy()
        up[:, j] += step
        down[:, j] -= step
        log_jacobian += np.log(np.abs(posterior.to_theta(up) - posterior.to_theta(down))[:, j] / (2 * step))
    np.testing.assert_allclose(found.log_prior, posterior.log_prior(theta) + log_jacobian, atol=1e-6)
    np.testing.assert_allclose(found.log_likelihood, decay_log_likelihood(theta), atol=1e-4)


def test_no_solve_is_spent_outside_the_prior() -> None:
    posterior = si()
    u = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(3), 4))
    u[1, 0] = 5.0
    u[2, 1] = np.nan
    found = posterior.evaluate(u)
    assert found.solves.tolist() == [1, 0, 0, 1]
    assert found.log_prior[1] == found.log_prior[2] == -np.inf


def test_lanes_do_not_depend_on_their_company() -> None:
    posterior = si()
    u = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(4), 37))
    together = posterior.evaluate(u)
    alone = [posterior.evaluate(u[i]) for i in range(37)]
    np.testing.assert_array_equal(together.log_likelihood, [one.log_likelihood[0] for one in alone])
    np.testing.assert_array_equal(together.log_prior, [one.log_prior[0] for one in alone])


def test_failed_solves_have_no_likelihood() -> None:
    text = DECAY.replace("-k*x", "k*x*x").replace("lower = 0.1, upper = 2", "lower = 10, upper = 20")
    found = Posterior(loads(text)).log_likelihood(np.array([[15.0, 2.0]]))
    assert found.failures.tolist() == [1]
    assert found.values.tolist() == [-np.inf]


def test_increments_and_noise_parameters() -> None:
    text = '''
[model]
equations = """
x' = k
x(0) = 0
y = x
"""
outputs = ["y"]
[parameters]
k = { prior = "uniform", lower = 0, upper = 20 }
s = { prior = "halfnormal", sd = 1 }
[noise]
y = { family = "normal", sd = "s" }
[data]
time = [1, 3, 4]
y = [5, 11, 4]
increments = ["y"]
'''
    posterior = Posterior(loads(text))
    expected = stats.norm([5, 10, 5], 0.7).logpdf([5, 11, 4]).sum()
    assert posterior.log_likelihood(np.array([[5.0, 0.7]])).values[0] == pytest.approx(expected, abs=1e-6)


def test_several_experiments_add_up() -> None:
    split = DECAY.split("[data]")[0] + (
        "[[experiment]]\nname = 'one'\ndata = { time = [0, 1, 4], y = [1.9, 1.1, 0.1] }\n"
        "[[experiment]]\nname = 'two'\ndata = { time = [0.5, 2], y = [1.6, 0.8] }\n"
    )
    both = Posterior(loads(split))
    theta = both.sample_prior(np.random.default_rng(5), 10)
    np.testing.assert_allclose(both.log_likelihood(theta).values, decay_log_likelihood(theta), atol=1e-4)
    assert both.log_likelihood(theta).solves.tolist() == [2] * 10


def test_inputs_drive_the_model() -> None:
    text = (
        DECAY.replace("-k*x", "u")
        .replace('outputs = ["y"]', 'outputs = ["y"]\ninputs = ["u"]')
        .replace("x(0) = a", "x(0) = 0*k + a")
    )
    text += '[inputs]\nu = { time = [0, 1, 3], value = [2, 0, 1], interpolation = "step" }\n'
    posterior = Posterior(loads(text))
    outputs, status = posterior.likelihoods[0].outputs(np.array([[1.0, 0.5]]))
    assert status.tolist() == [0]
    np.testing.assert_allclose(outputs[0, :, 0], 0.5 + np.array([0, 1, 2, 2, 3]), atol=1e-8)
    linear = Posterior(loads(text.replace("step", "linear")))
    outputs, _ = linear.likelihoods[0].outputs(np.array([[1.0, 0.5]]))
    # u falls from 2 to 0 over [0, 1], rises to 1 over [1, 3], is held at 1 after
    np.testing.assert_allclose(outputs[0, :, 0], 0.5 + np.array([0, 0.75, 1, 1.25, 3]), atol=1e-8)


def test_quantities() -> None:
    found = si().quantities(np.array([[2.5e-4, 0.25, 0.5, 40.0], [2.5e-4, 0.25, 0.0, 40.0]]))
    assert found["R0"].tolist() == [5.0, np.inf]


def two_experiments(**second: object) -> Problem:
    text = DECAY.split("[data]")[0]
    model = loads(text).model
    noise = Noise("normal", sd=0.2)
    one = Experiment(model, (Observations("y", [0, 1, 4], [1.9, 1.1, 0.1], noise),))
    two = Experiment(model, (Observations("y", [0.5, 2], [1.6, 0.8], noise),), **second)
    return Problem((one, two), loads(text).priors)


def test_experiments_without_names_are_told_apart() -> None:
    posterior = Posterior(two_experiments())
    theta = posterior.sample_prior(np.random.default_rng(5), 10)
    pointwise = posterior.pointwise(theta)
    assert list(pointwise) == [("experiment 1", "y"), ("experiment 2", "y")]
    total = sum(part.sum(axis=1) for part in pointwise.values())
    np.testing.assert_allclose(total, posterior.log_likelihood(theta).values)
    with pytest.raises(DataError, match="two experiments are named"):
        Problem(tuple(replace(e, name="same") for e in posterior.problem.experiments), posterior.problem.priors)


def test_an_experiment_without_data_is_named() -> None:
    problem = two_experiments()
    empty = replace(problem.experiments[1], observations=())
    with pytest.raises(DataError, match="data for experiment 'experiment 2'"):
        Posterior(Problem((problem.experiments[0], empty), problem.priors))


def test_fingerprints_see_every_digit() -> None:
    other = loads(DECAY.replace("sd = 0.2", "sd = 0.2000000001"))
    assert other.fingerprint() != decay().problem.fingerprint()
    other = loads(DECAY.replace("0.693147/k", "0.6931471/k"))
    assert other.fingerprint() != decay().problem.fingerprint()


def test_quantities_of_several_experiments() -> None:
    text = DECAY.replace("x(0) = a", "x(0) = dose*a").replace("0.693147/k", "dose*k").split("[data]")[0]
    text += "[constants]\ndose = 1\n[[experiment]]\ndata = { time = [1], y = [1] }\n"
    same = loads(text + "[[experiment]]\ndata = { time = [1], y = [1] }\n")
    np.testing.assert_allclose(Posterior(same).quantities(np.array([[0.5, 1.0]]))["half_life"], [0.5])
    other = loads(text + "[[experiment]]\nconstants = { dose = 2 }\ndata = { time = [1], y = [1] }\n")
    values = Posterior(other).quantities(np.array([[0.5, 1.0]]))
    assert {name: value.tolist() for name, value in values.items()} == {
        "half_life [experiment 1]": [0.5],
        "half_life [experiment 2]": [1.0],
    }


@pytest.mark.parametrize("name", ["chain", "draw"])
def test_names_that_arviz_needs_for_itself(name: str) -> None:
    with pytest.raises(DataError, match="ArviZ"):
        loads(DECAY.replace("-k*x", f"-{name}*x").replace("k =", f"{name} =").replace("0.693147/k", "1"))
    with pytest.raises(DataError, match="ArviZ"):
        loads(DECAY.replace("half_life", name))


@pytest.mark.parametrize("name", ["chain", "lp", "log_like", "acceptance_rate"])
def test_outputs_that_would_hide_statistics(name: str) -> None:
    with pytest.raises(DataError, match=r"cannot be (an output|a parameter)"):
        loads(DECAY.replace("\ny = ", f"\n{name} = ").replace('"y"', f'"{name}"'))


def test_an_incomplete_problem_is_refused() -> None:
    with pytest.raises(DataError, match="data for output 'y'"):
        Posterior(loads(DECAY.split("[data]")[0]))


def test_pickling_sends_the_problem() -> None:
    again = pickle.loads(pickle.dumps(si()))
    theta = si().sample_prior(np.random.default_rng(6), 3)
    np.testing.assert_array_equal(again.log_likelihood(theta).values, si().log_likelihood(theta).values)


# --- early rejection ---

ESTIMATED = DECAY.replace("sd = 0.2", 'sd = "s"').replace(
    "[noise]", 's = { prior = "loguniform", lower = 0.01, upper = 10 }\n[noise]'
)


def three_experiments(text: str = DECAY) -> Posterior:
    return Posterior(loads(text.split("[data]")[0] + EXPERIMENTS))


@pytest.mark.parametrize("text", [DECAY, ESTIMATED], ids=["sd known", "sd estimated"])
def test_early_rejection_loses_nothing(text: str) -> None:
    posterior, rng = three_experiments(text), np.random.default_rng(7)
    theta = posterior.sample_prior(rng, 400)
    full = posterior.log_likelihood(theta)
    # a thousand times the margin for rounding, which is relative
    offset = rng.choice([-10.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 10.0], 400)
    least = full.values + offset * (1 + np.abs(full.values))
    least[:3] = -np.inf, np.inf, np.nan
    found = posterior.log_likelihood(theta, least)
    reached = full.values >= least
    np.testing.assert_array_equal(found.values, np.where(reached, full.values, -np.inf))
    assert (found.solves[reached] == 3).all()
    assert (found.solves <= 3).all()
    assert found.solves.sum() < full.solves.sum()


def test_early_rejection_stops_at_the_experiment_that_decides() -> None:
    posterior = three_experiments()
    theta = posterior.sample_prior(np.random.default_rng(8), 50)
    parts = [values.sum(axis=1) for values in posterior.pointwise(theta).values()]
    best = [stats.norm(0, 0.2).logpdf(0) * experiment.size for experiment in posterior.problem.experiments]
    for solved in range(3):
        reach = sum(parts[:solved]) + sum(best[solved:])
        before = sum(parts[: solved - 1]) + sum(best[solved - 1 :]) if solved else np.full(50, np.inf)
        # what an experiment is solved for and what it turns out to give, with `least` between them
        least = np.where(before < np.inf, 0.5 * (reach + before), reach + 1.0)
        assert (posterior.log_likelihood(theta, least).solves == solved).all()


def test_the_bound_follows_estimated_noise() -> None:
    posterior = three_experiments(ESTIMATED)
    theta = np.column_stack([np.full(3, 0.6), np.full(3, 2.0), [0.1, 1.0, 5.0]])
    # seven observations: at most -7 log(s sqrt(2 pi))
    assert posterior.log_likelihood(theta, np.full(3, -7.0)).solves.tolist() == [3, 3, 0]


def test_early_rejection_of_failed_solves() -> None:
    text = DECAY.replace("-k*x", "k*x*x").replace("lower = 0.1, upper = 2", "lower = 0.001, upper = 20")
    posterior = three_experiments(text)
    theta = np.array([[15.0, 2.0], [0.001, 2.0], [15.0, 2.0]])
    found = posterior.log_likelihood(theta, np.array([-1e300, -1e300, -np.inf]))
    assert found.failures.tolist() == [1, 0, 3]
    assert found.solves.tolist() == [1, 3, 3]
    assert found.values[0] == found.values[2] == -np.inf
    assert found.values[1] == posterior.log_likelihood(theta[1]).values[0]


def test_relative_noise_is_never_rejected_early() -> None:
    posterior = three_experiments(DECAY.replace("sd = 0.2", "relative = 0.2"))
    theta = posterior.sample_prior(np.random.default_rng(9), 5)
    assert (posterior.log_likelihood(theta, np.full(5, 1e6)).solves == 3).all()


def test_nothing_is_solved_where_nothing_can_be_reached() -> None:
    theta = si().sample_prior(np.random.default_rng(10), 3)
    found = si().log_likelihood(theta, np.zeros(3))
    assert found.solves.tolist() == [0, 0, 0]
    assert (found.values == -np.inf).all()


def test_batches_that_are_solved_in_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = decay()
    theta = posterior.sample_prior(np.random.default_rng(3), 23)
    whole = posterior.log_likelihood(theta), posterior.expand(theta), posterior.pointwise(theta)
    monkeypatch.setattr(likelihood, "MOST_NUMBERS", 40)
    pieces = posterior.log_likelihood(theta), posterior.expand(theta), posterior.pointwise(theta)
    assert len(list(posterior.likelihoods[0]._pieces(23))) > 3
    for one, other in zip(
        (*whole[0], *whole[1], *whole[2].values()), (*pieces[0], *pieces[1], *pieces[2].values()), strict=True
    ):
        np.testing.assert_array_equal(one, other)
