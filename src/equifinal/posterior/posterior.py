"""The posterior: log prior and log likelihood in batches, in parameters theta and in sampling coordinates u.

With u = t(theta), one monotone map a parameter, the density that samplers see is

    log pi(u) = log L(theta) + log p(theta) + log |dtheta/du|,   theta = t^-1(u).

A lane whose solve fails has log likelihood minus infinity and is counted; a lane outside the prior's support costs no
solve. What is computed for a lane never depends on the other lanes of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.language.expression import evaluate
from equifinal.language.functions import call_on_arrays
from equifinal.posterior.likelihood import ExperimentLikelihood
from equifinal.problem.prior import from_theta, log_prior, prior_table, to_theta
from equifinal.problem.problem import Problem

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of a log likelihood, so that a lane exactly at the least one wanted is never lost


class Likelihood(NamedTuple):
    """log likelihood of each lane, how many ODE solves it took, and how many of them failed."""

    values: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Outputs(NamedTuple):
    """Outputs at the times of the data (lanes, times, outputs) of each experiment; solves and failures of each lane.

    And what the log likelihood needs of them, summed once for all values of noise parameters.
    """

    values: tuple[Array, ...]
    sums: tuple[Array, ...]
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]

    def at(self, lanes: NDArray[np.int64]) -> Outputs:
        values, sums = (tuple(part[lanes] for part in parts) for parts in self[:2])
        return Outputs(values, sums, self.solves[lanes], self.failures[lanes])


class Evaluation(NamedTuple):
    """A batch evaluated in sampling coordinates; ``log_prior`` contains log |dtheta/du|."""

    log_prior: Array
    log_likelihood: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Expansion(NamedTuple):
    """log L (n,), its gradient (n, d) and information (n, d, d) by theta, solves and failures (n,)."""

    log_likelihood: Array
    gradient: Array
    information: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Posterior:
    """The posterior of a complete `Problem`. Pickling it sends the problem and compiles anew (once) on the other side.

    Parameters
    ----------
    problem
        Raises `DataError` naming everything that is missing, if something is.

    Attributes
    ----------
    noise_only
        Parameters of the noise that the solver does not need, because no model has them, nor an expression of the
        noise: they change the likelihood of a trajectory, never the trajectory.
    """

    parameters: tuple[str, ...]
    dimension: int
    table: Array
    likelihoods: tuple[ExperimentLikelihood, ...]
    noise_only: tuple[str, ...]

    def __init__(self, problem: Problem):
        problem.require_complete()
        self.problem = problem
        self.parameters = problem.parameters
        self.dimension = len(self.parameters)
        self.table = prior_table([problem.priors[name] for name in self.parameters])
        self.likelihoods = tuple(
            ExperimentLikelihood(experiment, self.parameters, problem.solver) for experiment in problem.experiments
        )
        solved = {name for experiment in problem.experiments for name in experiment.solved.parameters}
        scatter = {name for experiment in problem.experiments for name in experiment.noise_parameters}
        self.noise_only = tuple(name for name in self.parameters if name in scatter - solved)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remembered, (self.problem,)

    @property
    def compile_seconds(self) -> float:
        return sum(likelihood.system.compile_seconds for likelihood in self.likelihoods)

    # --- coordinates ---

    def to_theta(self, u: Array) -> Array:
        return to_theta(_batch(u), self.table)[0]

    def to_coordinates(self, theta: Array) -> Array:
        return from_theta(_batch(theta), self.table)

    # --- densities ---

    def log_prior(self, theta: Array) -> Array:
        """log p(theta) of each row."""
        return log_prior(_batch(theta), self.table)

    def log_likelihood(self, theta: Array, least: Array | None = None) -> Likelihood:
        """log L(theta) of each row.

        Parameters
        ----------
        least
            For each row, the log likelihood below which its value does not matter: such a row gets minus infinity,
            and experiments that cannot lift it to `least` any more are not solved.
        """
        theta = _batch(theta)
        if least is not None:
            return self._log_likelihood_from(theta, np.asarray(least, float))
        total, failures = np.zeros(len(theta)), np.zeros(len(theta), np.int64)
        for likelihood in self.likelihoods:
            values, status = likelihood.solve(theta)
            total += values
            failures += status != 0
        return Likelihood(_known(total, failures > 0), np.full(len(theta), len(self.likelihoods)), failures)

    def outputs(self, theta: Array) -> Outputs:
        """What the models do at each row."""
        theta = _batch(theta)
        made = [likelihood.outputs(theta) for likelihood in self.likelihoods]
        failures = np.array([status != 0 for _, status in made]).sum(axis=0, dtype=np.int64)
        values = tuple(outputs for outputs, _ in made)
        sums = tuple(likelihood.sums(own) for likelihood, own in zip(self.likelihoods, values, strict=True))
        return Outputs(values, sums, np.full(len(theta), len(self.likelihoods)), failures)

    def log_likelihood_of(self, found: Outputs, theta: Array) -> Array:
        """log L of trajectories that are known, with the noise parameters of theta: so many rows for each of them."""
        total = np.zeros(len(theta))
        for likelihood, outputs, sums in zip(self.likelihoods, found.values, found.sums, strict=True):
            total += likelihood.log_likelihood(outputs, sums, theta)
        failed = np.repeat(found.failures > 0, len(theta) // max(1, len(found.failures)))
        return _known(total, failed)

    def _log_likelihood_from(self, theta: Array, least: Array) -> Likelihood:
        lanes = theta.shape[0]
        with np.errstate(invalid="ignore"):
            least = np.broadcast_to(least - ROUNDING * (1 + np.abs(least)), lanes)
        bounds = [likelihood.log_likelihood_bound(theta) for likelihood in self.likelihoods]
        total, alive = np.zeros(lanes), np.arange(lanes)
        solves, failures = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        for i, likelihood in enumerate(self.likelihoods):
            alive = alive[_reach(total, bounds[i:], alive) >= least[alive]]
            if not alive.size:
                break
            rows = theta[alive]
            own, status = likelihood.solve(rows)
            total[alive] += own
            total[alive[status != 0]] = -np.inf
            solves[alive] += 1
            failures[alive] += status != 0
        values = np.full(lanes, -np.inf)
        reached = alive[(total[alive] >= least[alive]) & (total[alive] < np.inf)]
        values[reached] = total[reached]
        return Likelihood(values, solves, failures)

    def expand(self, theta: Array) -> Expansion:
        """log L with its gradient and information, by solves with sensitivities (of two to three times the cost)."""
        theta = _batch(theta)
        lanes, d = theta.shape
        total, failures = np.zeros(lanes), np.zeros(lanes, np.int64)
        gradient, information = np.zeros((lanes, d)), np.zeros((lanes, d, d))
        for likelihood in self.likelihoods:
            own, status = likelihood.expand(theta, gradient, information)
            total += own
            failures += status != 0
        broken = ~np.isfinite(gradient).all(axis=1) | ~np.isfinite(information).all(axis=(1, 2))
        total = _known(total, (failures > 0) | broken)
        return Expansion(total, gradient, information, np.full(lanes, len(self.likelihoods)), failures)

    def pointwise(self, theta: Array) -> Mapping[tuple[str, str], Array]:
        """Log likelihood of every observation: for each (experiment, output) an array (lanes, observations)."""
        theta = _batch(theta)
        found: dict[tuple[str, str], Array] = {}
        for likelihood in self.likelihoods:
            values = np.empty((theta.shape[0], likelihood.experiment.size))
            likelihood.solve(theta, values)
            start = 0
            for entry in likelihood.experiment.observations:
                stop = start + entry.values.size
                found[likelihood.experiment.name, entry.output] = values[:, start:stop]
                start = stop
        return found

    def evaluate(self, u: Array) -> Evaluation:
        """Log prior and log likelihood in sampling coordinates; no solve is spent outside the prior's support."""
        u = _batch(u)
        theta, log_jacobian = to_theta(u, self.table)
        prior = log_prior(theta, self.table) + log_jacobian
        inside = np.isfinite(prior)
        if inside.all():
            return Evaluation(prior, *self.log_likelihood(theta))
        prior[~inside] = -np.inf
        likelihood = np.full(u.shape[0], -np.inf)
        solves, failures = np.zeros(u.shape[0], np.int64), np.zeros(u.shape[0], np.int64)
        if inside.any():
            likelihood[inside], solves[inside], failures[inside] = self.log_likelihood(theta[inside])
        return Evaluation(prior, likelihood, solves, failures)

    # --- around it ---

    def sample_prior(self, rng: np.random.Generator, size: int) -> Array:
        """Draws of theta from the prior, one per row."""
        priors = [self.problem.priors[name] for name in self.parameters]
        uniforms = rng.random((size, self.dimension))
        return np.column_stack([p.quantile(uniforms[:, j]) for j, p in enumerate(priors)])

    def quantities(self, theta: Array) -> Mapping[str, Array]:
        """Quantities of interest at each row; where one divides by zero it is infinite or NaN."""
        theta = _batch(theta)
        values = {name: theta[:, j] for j, name in enumerate(self.parameters)}
        with np.errstate(all="ignore"):
            found = {name: evaluate(e, values, float, call_on_arrays) for name, e in self.problem.quantities.items()}
        return {name: np.broadcast_to(np.asarray(v, float), theta.shape[:1]).copy() for name, v in found.items()}


_memory: dict[str, Posterior] = {}
REMEMBERED = 8


def _remembered(problem: Problem) -> Posterior:
    """One posterior a problem in this process, so that workers compile it once."""
    key = problem.fingerprint()
    if key not in _memory:
        while len(_memory) >= REMEMBERED:
            _memory.pop(next(iter(_memory)), None)
        _memory[key] = Posterior(problem)
    return _memory[key]


def _reach(total: Array, bounds: Sequence[Array], lanes: NDArray[np.int64]) -> Array:
    """What the totals may still become; NaN where that is nothing, for infinity less infinity.

    Added in the order of the likelihood itself, for then rounding, which is monotone, leaves a bound a bound.
    """
    reach = total[lanes]
    with np.errstate(invalid="ignore"):
        for bound in bounds:
            reach += bound[lanes]
    return reach


def _known(total: Array, failed: NDArray[np.bool_]) -> Array:
    """The totals, minus infinity where they are none: NaN or infinity would be a silent hole."""
    total[failed | ~(total < np.inf)] = -np.inf
    return total


def _batch(rows: Array) -> Array:
    return np.atleast_2d(np.ascontiguousarray(rows, dtype=np.float64))
