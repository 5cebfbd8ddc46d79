"""A published problem with nine experiments and a fibre of two dimensions, against published simulations."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from scipy import stats

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.algebra.arithmetic.local_rank import analyse_locally, moving
from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.identifiability.constancy import require_constant_output
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import SolverSettings
from tests.support.marks import slow_but
from tests.support.sneyd import COMBINATIONS, nominal, sneyd_problem, table

pytestmark = pytest.mark.usefixtures("petab")

CAREFUL = SolverSettings(rtol=1e-9, atol=1e-12, max_steps=100_000)
# the simulations at 3 and at 10 uM calcium carry each other's label
EXCHANGED = {"Ca_dose_response__5": "Ca_dose_response__6", "Ca_dose_response__6": "Ca_dose_response__5"}
MOVING = {"k1", "k_1", "l2", "l_2", "k4", "k_4", "l6", "l_6"}


@cache
def careful() -> Posterior:
    return Posterior(sneyd_problem(solver=CAREFUL))


@cache
def fibre() -> Fibre:
    return fibre_of(sneyd_problem(), COMBINATIONS)


def published() -> np.ndarray:
    values = nominal()
    return np.array([[values[name] for name in careful().parameters]])


def simulated(*, as_labelled: bool = False) -> dict[str, np.ndarray]:
    """For each condition the published simulation at the published estimates, in order of time."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in table("simulatedData"):
        label = row["simulationConditionId"]
        name = label if as_labelled else EXCHANGED.get(label, label)
        found.setdefault(name, []).append((float(row["time"]), float(row["simulation"])))
    return {name: np.array(sorted(rows))[:, 1] for name, rows in found.items()}


def observed() -> dict[str, np.ndarray]:
    return {e.name: e.observations[0].values for e in sneyd_problem().experiments}


def test_the_problem_is_the_published_one() -> None:
    problem = sneyd_problem()
    assert (len(problem.experiments), len(problem.parameters), len(problem.model.states)) == (9, 15, 6)
    assert sum(e.size for e in problem.experiments) == len(table("measurementData")) == 135
    assert {str(p.coordinate) for p in problem.priors.values()} == {"log"}


def test_solutions_against_published_simulations() -> None:
    curves = simulated()
    for settings in (CAREFUL, SolverSettings()):
        for likelihood in Posterior(sneyd_problem(solver=settings)).likelihoods:
            outputs, status = likelihood.outputs(published())
            assert status.tolist() == [0]
            # outputs reach 0.26, and the published ones are as precise as this
            np.testing.assert_allclose(outputs[0, :, 0], curves[likelihood.experiment.name], rtol=0, atol=2e-6)


def test_labels_of_the_published_simulations() -> None:
    """The condition table is right, not the labels: the published sigma is that of the residuals under it alone."""

    def root_mean_square(curves: dict[str, np.ndarray]) -> float:
        residuals = [values - curves[name] for name, values in observed().items()]
        return float(np.sqrt(np.mean(np.concatenate(residuals) ** 2)))

    assert root_mean_square(simulated()) == pytest.approx(nominal()["sigma"], rel=2e-3)
    assert root_mean_square(simulated(as_labelled=True)) != pytest.approx(nominal()["sigma"], rel=1e-2)


def test_likelihood_against_published_simulations() -> None:
    curves, sigma = simulated(), nominal()["sigma"]
    expected = sum(stats.norm(curves[name], sigma).logpdf(values).sum() for name, values in observed().items())
    assert careful().log_likelihood(published()).values[0] == pytest.approx(expected, abs=2e-3)


def test_experiments_that_cannot_help_are_not_solved() -> None:
    posterior, rng = Posterior(sneyd_problem()), np.random.default_rng(0)
    best = posterior.log_likelihood(published()).values[0]
    theta = np.exp(np.log(published()) + 0.1 * rng.standard_normal((100, 15)))
    full = posterior.log_likelihood(theta)
    found = posterior.log_likelihood(theta, np.full(100, best - 10.0))
    reached = full.values >= best - 10.0
    assert reached.any()
    np.testing.assert_array_equal(found.values, np.where(reached, full.values, -np.inf))
    assert found.solves.sum() < full.solves.sum()


# --- the fibre ---


def test_two_freedoms() -> None:
    models = [e.model for e in sneyd_problem().experiments]
    local = analyse_locally(models, models[0].parameters, random.Random(0), Budget(60 * SECOND))
    assert len(local.kernel) == 2
    assert set(moving(local)) == MOVING


def test_fibre() -> None:
    assert fibre().dimension == 2
    assert (fibre().chart.kind, fibre().chart.degree) == ("rational", 1)


@pytest.mark.parametrize("left_out", slow_but(0, 4, of=range(6)))
def test_every_combination_is_needed(left_out: int) -> None:
    models = [e.model for e in sneyd_problem().experiments]
    fewer = [c for i, c in enumerate(COMBINATIONS) if i != left_out]
    with pytest.raises(IdentifiabilityError, match="the output is not constant"):
        require_constant_output(models, fewer)


def test_equivalents_have_the_same_output() -> None:
    names = careful().parameters
    # the published estimates are at the bounds, where fibres end
    inside = nominal() | {"k2": 5e4, "k4": 3e3, "k_2": 2e-3, "k_4": 100.0, "l6": 3e3, "l_6": 0.3}
    found = fibre().search(np.array([inside[name] for name in names]), 6, seed=1)
    assert found.certain
    assert len(found.theta) == 6
    assert {
        name for name, column in zip(names, found.theta.T, strict=True) if np.ptp(column) > 0.01 * column[0]
    } == MOVING
    for likelihood in careful().likelihoods:
        outputs, status = likelihood.outputs(found.theta)
        assert (status == 0).all()
        np.testing.assert_allclose(outputs, outputs[[0] * 6], rtol=1e-6, atol=1e-9)
