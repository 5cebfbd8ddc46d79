"""Data that were never measured: the truth from the prior, observations from the model, at the times of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SolverError
from equifinal.posterior.posterior import Arm, Posterior
from equifinal.problem import noise
from equifinal.problem.data import Observations
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
    for arm in posterior.arms:
        outputs, status = arm.outputs(theta)
        if status[0] != 0:
            return None
        values = [_scatter(arm, k, outputs[0], theta[0], rng) for k in range(len(arm.experiment.observations))]
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


def _scatter(arm: Arm, which: int, outputs: Array, theta: Array, rng: np.random.Generator) -> Array:
    """Draw observations around the output, or around its increments; replicates at one time scatter independently."""
    entry: Observations = arm.experiment.observations[which]
    start = sum(o.values.size for o in arm.experiment.observations[:which])
    rows = slice(start, start + entry.values.size)
    column, at, previous = arm.where[rows].T
    mean = outputs[at, column]
    mean = np.where(previous >= 0, mean - outputs[previous, column], mean)
    additive, relative, shape = np.where(arm.slots[rows] >= 0, theta[arm.slots[rows]], arm.fixed[rows]).T
    return noise.simulate_observation(entry.noise.code, mean, additive, relative, shape, rng)
