"""The posterior: log prior and log likelihood in batches, in parameters theta and in sampling coordinates u.

With u = t(theta), one monotone map a parameter, the density that samplers see is

    log pi(u) = log L(theta) + log p(theta) + log |dtheta/du|,   theta = t^-1(u).

A lane whose solve fails has log likelihood minus infinity and is counted; a lane outside the prior's support costs no
solve. What is computed for a lane never depends on the other lanes of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.language.expression import evaluate
from equifinal.problem import noise
from equifinal.problem.data import Experiment
from equifinal.problem.prior import from_theta, log_prior, prior_table, to_theta
from equifinal.problem.problem import Problem, SolverSettings
from equifinal.problem.score import Expansion, expand

Array = NDArray[np.float64]
_NOTHING = np.empty((0, 0))
ROUNDING = 1e-9  # of a log likelihood, so that a lane exactly at the least one wanted is never lost


class Likelihood(NamedTuple):
    """log likelihood of each lane, how many ODE solves it took, and how many of them failed."""

    values: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Outputs(NamedTuple):
    """Outputs at the times of the data (lanes, times, outputs) of each experiment; solves and failures of each lane."""

    values: tuple[Array, ...]
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Evaluation(NamedTuple):
    """A batch evaluated in sampling coordinates; ``log_prior`` contains log |dtheta/du|."""

    log_prior: Array
    log_likelihood: Array
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
        Parameters of the noise that no model has: they change the likelihood of a trajectory, never the trajectory.
    """

    def __init__(self, problem: Problem):
        problem.require_complete()
        self.problem = problem
        self.parameters = problem.parameters
        self.dimension = len(self.parameters)
        self.table = prior_table([problem.priors[name] for name in self.parameters])
        self.arms = tuple(Arm(experiment, self.parameters, problem.solver) for experiment in problem.experiments)
        solved = {name for experiment in problem.experiments for name in experiment.model.parameters}
        scatter = {name for experiment in problem.experiments for name in experiment.noise_parameters}
        self.noise_only = tuple(name for name in self.parameters if name in scatter - solved)

    def __reduce__(self):
        return _remembered, (self.problem,)

    @property
    def compile_seconds(self) -> float:
        return sum(arm.system.compile_seconds for arm in self.arms)

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
        found = self.outputs(theta)
        return Likelihood(self.log_likelihood_of(found, theta), found.solves, found.failures)

    def outputs(self, theta: Array) -> Outputs:
        """What the models do at each row."""
        theta = _batch(theta)
        made = [arm.outputs(theta) for arm in self.arms]
        failures = np.array([status != 0 for _, status in made]).sum(axis=0, dtype=np.int64)
        return Outputs(tuple(outputs for outputs, _ in made), np.full(len(theta), len(self.arms)), failures)

    def log_likelihood_of(self, found: Outputs, theta: Array) -> Array:
        """log L of trajectories that are known, with the noise parameters of theta: so many rows for each of them."""
        total = np.zeros(len(theta))
        for arm, outputs in zip(self.arms, found.values, strict=True):
            total += arm.log_likelihood(outputs, theta, _NOTHING)
        failed = np.repeat(found.failures > 0, len(theta) // max(1, len(found.failures)))
        # NaN or infinity would be a silent hole: what cannot be evaluated has no likelihood
        total[failed | ~(total < np.inf)] = -np.inf
        return total

    def _log_likelihood_from(self, theta: Array, least: Array) -> Likelihood:
        lanes = theta.shape[0]
        with np.errstate(invalid="ignore"):
            least = np.broadcast_to(least - ROUNDING * (1 + np.abs(least)), lanes)
        bounds = [arm.log_likelihood_bound(theta) for arm in self.arms]
        total, alive = np.zeros(lanes), np.arange(lanes)
        solves, failures = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        for i, arm in enumerate(self.arms):
            alive = alive[_reach(total, bounds[i:], alive) >= least[alive]]
            if not alive.size:
                break
            rows = theta[alive]
            outputs, status = arm.outputs(rows)
            total[alive] += arm.log_likelihood(outputs, rows, _NOTHING)
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
        for arm in self.arms:
            outputs, sensitivities, status = arm.outputs_and_sensitivities(theta)
            total += arm.log_likelihood(outputs, theta, _NOTHING)
            arm.expand(outputs, sensitivities, theta, gradient, information)
            failures += status != 0
        broken = ~np.isfinite(gradient).all(axis=1) | ~np.isfinite(information).all(axis=(1, 2))
        total[(failures > 0) | broken | ~(total < np.inf)] = -np.inf
        return Expansion(total, gradient, information, np.full(lanes, len(self.arms)), failures)

    def pointwise(self, theta: Array) -> Mapping[tuple[str, str], Array]:
        """Log likelihood of every observation: for each (experiment, output) an array (lanes, observations)."""
        theta = _batch(theta)
        found: dict[tuple[str, str], Array] = {}
        for arm in self.arms:
            outputs, _ = arm.outputs(theta)
            values = np.empty((theta.shape[0], arm.experiment.size))
            arm.log_likelihood(outputs, theta, values)
            start = 0
            for entry in arm.experiment.observations:
                stop = start + entry.values.size
                found[arm.experiment.name, entry.output] = values[:, start:stop]
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
            found = {name: evaluate(e, values, float) for name, e in self.problem.quantities.items()}
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


def _batch(rows: Array) -> Array:
    return np.atleast_2d(np.ascontiguousarray(rows, dtype=np.float64))


class Arm:
    """One experiment, compiled: its solver, its observations as arrays."""

    def __init__(self, experiment: Experiment, parameters: tuple[str, ...], solver: SolverSettings):
        self.experiment = experiment
        self.settings = vars(solver)
        model = experiment.model
        used = tuple(name for name in parameters if name in model.parameters)
        self.columns = np.array([parameters.index(name) for name in used], dtype=np.int64)
        self.system = ode.compile_system(model, used)
        self.constants = np.array([float(value) for value in model.constants.values()])
        self.times = experiment.grid()
        self.inputs = known_inputs(experiment)
        self._arrange_observations(parameters)

    def _arrange_observations(self, parameters: tuple[str, ...]) -> None:
        entries = self.experiment.observations
        outputs = self.experiment.model.outputs
        where, codes, slots, fixed = [], [], [], []
        for entry in entries:
            slot, number = np.full(3, -1, np.int64), np.zeros(3)
            for argument, value in entry.noise.arguments.items():
                if isinstance(value, str):
                    slot[noise.SLOTS[argument]] = parameters.index(value)
                else:
                    number[noise.SLOTS[argument]] = value
            at = np.searchsorted(self.times, entry.times)
            previous = np.where(np.isnan(entry.previous), -1, np.searchsorted(self.times, entry.previous))
            where.append(np.column_stack([np.full_like(at, outputs.index(entry.output)), at, previous]))
            codes.append(np.full(at.size, entry.noise.code))
            slots.append(np.tile(slot, (at.size, 1)))
            fixed.append(np.tile(number, (at.size, 1)))
        self.y = np.concatenate([entry.values for entry in entries])
        self.where = np.concatenate(where).astype(np.int64)
        self.codes = np.concatenate(codes).astype(np.int64)
        self.slots = np.concatenate(slots).astype(np.int64)
        self.fixed = np.concatenate(fixed)

    def arguments(self, theta: Array) -> Array:
        """What the solver takes: the model's parameters, then its constants."""
        p = np.empty((theta.shape[0], self.columns.size + self.constants.size))
        p[:, : self.columns.size] = theta[:, self.columns]
        p[:, self.columns.size :] = self.constants
        return p

    def outputs(self, theta: Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The outputs at the times of the data, (lanes, times, outputs), and the status of each solve."""
        found = ode.simulate(self.system, self.arguments(theta), self.times, inputs=self.inputs, **self.settings)
        return found.outputs, found.status

    def outputs_and_sensitivities(self, theta: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        found = ode.simulate(
            self.system, self.arguments(theta), self.times, inputs=self.inputs, sensitivities=True, **self.settings
        )
        assert found.sensitivities is not None
        return found.outputs, found.sensitivities, found.status

    def expand(self, outputs: Array, sensitivities: Array, theta: Array, gradient: Array, information: Array) -> None:
        """Add this experiment's gradient and information by theta."""
        seen = (self.y, self.where, self.codes, self.slots, self.fixed)
        expand(outputs, sensitivities, self.columns, theta, *seen, gradient, information)

    def log_likelihood(self, outputs: NDArray[np.float64], theta: Array, pointwise: Array) -> Array:
        return noise.log_likelihood(outputs, theta, self.y, self.where, self.codes, self.slots, self.fixed, pointwise)

    def log_likelihood_bound(self, theta: Array) -> Array:
        return noise.log_likelihood_bound(theta, self.y, self.codes, self.slots, self.fixed)


def known_inputs(experiment: Experiment) -> ode.Inputs | None:
    """All inputs of an experiment on one set of breaks."""
    names = experiment.model.inputs
    if not names:
        return None
    series = [experiment.inputs[name] for name in names]
    breaks = np.unique(np.concatenate([[0.0], *(s.times for s in series)]))
    values, slopes = np.empty((breaks.size, len(names))), np.zeros((breaks.size, len(names)))
    for j, s in enumerate(series):
        if s.interpolation == "step":
            at = np.clip(np.searchsorted(s.times, breaks, side="right") - 1, 0, None)
            values[:, j] = s.values[at]
        else:
            values[:, j] = np.interp(breaks, s.times, s.values)
            slopes[:-1, j] = np.diff(values[:, j]) / np.diff(breaks)
    return ode.Inputs(breaks, values, slopes)
