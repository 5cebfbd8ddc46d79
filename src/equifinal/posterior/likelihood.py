"""The likelihood of one experiment: its solver, and its observations as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.ode.threads import in_pieces
from equifinal.posterior import observed
from equifinal.problem.data import Experiment
from equifinal.problem.problem import SolverSettings

Array = NDArray[np.float64]

SECONDS_EACH = 1e-9  # of a product of two sensitivities
MOST_NUMBERS = 20_000_000  # that the trajectories of a batch hold: of more lanes, some are solved at a time
_NO_OUTPUTS, _NOTHING = np.empty((0, 0, 0)), np.empty((0, 0))


class ExperimentLikelihood:
    """One experiment, compiled.

    Attributes
    ----------
    observed
        Its observations.
    columns
        Which parameters are those of its model, with the noise arguments that the solver computes.
    """

    settings: dict[str, Any]
    columns: NDArray[np.int64]
    system: ode.System
    constants: Array
    times: Array
    inputs: ode.Inputs | None
    observed: observed.Observed
    wanted: NDArray[np.bool_] | None

    def __init__(self, experiment: Experiment, parameters: tuple[str, ...], solver: SolverSettings):
        self.experiment = experiment
        self.settings = vars(solver)
        model = experiment.solved
        used = tuple(name for name in parameters if name in model.parameters)
        self.columns = np.array([parameters.index(name) for name in used], dtype=np.int64)
        self.system = ode.compile_system(model, used)
        self.constants = np.array([float(value) for value in model.constants.values()])
        self.times = experiment.grid()
        self.inputs = known_inputs(experiment)
        self.observed = observed.observed(experiment, parameters, self.times)
        needed = experiment.needed()
        self.wanted = None if needed.all() else needed

    @property
    def numbers(self) -> int:
        """How many numbers a trajectory has."""
        model = self.system.model
        return self.times.size * (len(model.states) + len(model.outputs))

    def arguments(self, theta: Array) -> Array:
        """What the solver takes: the model's parameters, then its constants."""
        p = np.empty((theta.shape[0], self.columns.size + self.constants.size))
        p[:, : self.columns.size] = theta[:, self.columns]
        p[:, self.columns.size :] = self.constants
        return p

    def _solved(self, theta: Array, sensitivities: bool = False) -> ode.Trajectories:
        return ode.simulate(
            self.system,
            self.arguments(theta),
            self.times,
            inputs=self.inputs,
            sensitivities=sensitivities,
            wanted=self.wanted,
            **self.settings,
        )

    def outputs(self, theta: Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The outputs at the times of the data, (lanes, times, outputs), and the status of each solve."""
        found = self._solved(theta)
        return found.outputs, found.status

    def _pieces(self, lanes: int, each: int = 1) -> Iterator[slice]:
        """Rows to be solved together; ``each`` is how many numbers a state or an output stands for."""
        step = max(1, MOST_NUMBERS // max(1, self.numbers * each))
        return (slice(start, start + step) for start in range(0, lanes, step))

    def solve(self, theta: Array, pointwise: Array = _NOTHING) -> tuple[Array, NDArray[np.int64]]:
        """The log likelihood of each row, and the status of its solve; of every observation in ``pointwise``."""
        values, status = np.empty(len(theta)), np.empty(len(theta), np.int64)
        for own in self._pieces(len(theta)):
            outputs, status[own] = self.outputs(theta[own])
            values[own] = self.log_likelihood(outputs, self.sums(outputs), theta[own], pointwise[own])
        return values, status

    def expand(self, theta: Array, gradient: Array, information: Array) -> tuple[Array, NDArray[np.int64]]:
        """As `solve`; this experiment's gradient and information by theta are added to those given."""
        values, status = np.empty(len(theta)), np.empty(len(theta), np.int64)
        for own in self._pieces(len(theta), 1 + self.columns.size):
            outputs, sensitivities, status[own] = self._outputs_and_sensitivities(theta[own])
            values[own] = self.log_likelihood(outputs, self.sums(outputs), theta[own])
            self._expand(outputs, sensitivities, theta[own], gradient[own], information[own])
        return values, status

    def _outputs_and_sensitivities(self, theta: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        found = self._solved(theta, sensitivities=True)
        assert found.sensitivities is not None
        return found.outputs, found.sensitivities, found.status

    def _expand(self, outputs: Array, sensitivities: Array, theta: Array, gradient: Array, information: Array) -> None:
        def work(own: slice) -> None:
            parts = outputs[own], sensitivities[own], self.columns, theta[own], self.observed
            observed.expand(*parts, gradient[own], information[own])

        products = len(theta) * self.observed.size * self.columns.size**2 / 2
        in_pieces(work, len(theta), SECONDS_EACH * products)

    def sums(self, outputs: Array) -> Array:
        """What the log likelihood needs of outputs, where that is the same for all values of noise parameters."""
        return observed.sums(outputs, self.observed)

    def log_likelihood(self, outputs: Array, summed: Array, theta: Array, pointwise: Array = _NOTHING) -> Array:
        """Of outputs, with their sums, at rows of theta."""
        return observed.log_likelihood(outputs, summed, theta, self.observed, pointwise)

    def log_likelihood_bound(self, theta: Array, outputs: Array = _NO_OUTPUTS) -> Array:
        """What the log likelihood cannot exceed: with outputs, for noise arguments as they are there."""
        return observed.log_likelihood_bound(outputs, theta, self.observed)


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
