"""Data that were never measured: the truth from the prior, observations from the model, at the times of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SolverError
from equifinal.posterior.likelihood import ExperimentLikelihood
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem

Array = NDArray[np.float64]

TRIES = 1000


class Simulated(NamedTuple):
    """A problem with simulated data, the parameters they were simulated with, and how many draws were passed over."""

    problem: Problem
    theta: Array
    passed_over: int


def from_prior(posterior: Posterior, rng: np.random.Generator) -> Simulated:
    """Parameters from the prior and data from them.

    Where the model cannot be solved, or the noise is not defined, the likelihood is zero by convention: that restricts
    the prior of every fit, so the truth is drawn from the prior so restricted. How often that happens is counted.
    """
    for tried in range(TRIES):
        theta = posterior.sample_prior(rng, 1)
        values = observations_at(posterior, theta, rng)
        if values is not None:
            return Simulated(with_values(posterior.problem, values), theta[0], tried)
    raise SolverError(f"the model could not be solved at any of {TRIES} draws from the prior")


def observations_at(posterior: Posterior, theta: Array, rng: np.random.Generator) -> list[list[Array]] | None:
    """Noisy values for each entry of each experiment at one row of parameters; nothing if a solve fails."""
    found = []
    parameters = dict(zip(posterior.parameters, theta[0], strict=True))
    for likelihood in posterior.likelihoods:
        outputs, status = likelihood.outputs(theta)
        if status[0] != 0:
            return None
        values = _scattered(likelihood, outputs[0], parameters, rng)
        if not all(np.isfinite(entry).all() for entry in values):
            return None
        found.append(values)
    return found


def with_values(problem: Problem, values: list[list[Array]]) -> Problem:
    """The same problem with these values for each entry of each experiment."""
    experiments = []
    for experiment, entries in zip(problem.experiments, values, strict=True):
        pairs = zip(experiment.observations, entries, strict=True)
        experiments.append(replace(experiment, observations=tuple(old.with_values(new) for old, new in pairs)))
    return replace(problem, experiments=tuple(experiments))


def without_values(problem: Problem) -> Problem:
    """The same problem with values that say nothing: whatever is equal here simulates the same data."""
    return with_values(problem, [[np.ones(o.values.size) for o in e.observations] for e in problem.experiments])


def _scattered(
    likelihood: ExperimentLikelihood, outputs: Array, parameters: dict[str, Any], rng: np.random.Generator
) -> list[Array]:
    """Draw observations around the outputs, or what was added to them; replicates at one time scatter independently."""
    seen = likelihood.observed
    mean = outputs[seen["time"], seen["output"]]
    mean = np.where(seen["previous"] >= 0, mean - outputs[seen["previous"], seen["output"]], mean)
    entries, columns = likelihood.experiment.observations, likelihood.experiment.solved.outputs
    ends = np.cumsum([entry.values.size for entry in entries])[:-1]
    found = []
    for entry, own, times in zip(entries, np.split(mean, ends), np.split(seen["time"], ends), strict=True):
        computed = {text: outputs[times, columns.index(text)] for text in likelihood.experiment.noise_expressions}
        found.append(entry.noise.simulate(own, parameters | computed, rng))
    return found
