"""Trajectories of a problem's experiments at given parameters, with or without measurement noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.errors import DataError, SolverError, did_you_mean
from equifinal.posterior.likelihood import known_inputs
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Sides, censored
from equifinal.problem.problem import Problem, SolverSettings

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One experiment at one parameter vector: columns over ``times``.

    ``observed`` holds simulated observations where noise was asked for; increments are what was added since the
    previous time (the first: since time 0). Those beyond a limit of the noise are the limit, and ``censored`` says
    which these are: -1 below, 1 above, else 0.
    """

    experiment: str
    times: Array
    states: Mapping[str, Array]
    outputs: Mapping[str, Array]
    observed: Mapping[str, Array]
    censored: Mapping[str, Sides] = field(default_factory=dict)


def simulate(
    problem: Problem,
    values: Mapping[str, float],
    *,
    times: Sequence[float] | Array | None = None,
    rng: np.random.Generator | None = None,
) -> list[Trajectory]:
    """Solve every experiment of a problem at given parameters.

    Parameters
    ----------
    values
        A number for every unknown; noise parameters only if ``rng`` is given.
    times
        When to report; left out, the times of the data.
    rng
        If given, observations are drawn around the outputs.

    Raises
    ------
    SolverError
        If a solve fails, saying how.

    Examples
    --------
    >>> import equifinal
    >>> values = {"beta": 2e-4, "rho": 0.2, "gamma": 0.1, "I0": 50}
    >>> (found,) = equifinal.simulate(equifinal.load("si"), values, times=[0, 1])
    >>> found.outputs["cases"].round(1)
    array([10. , 64.9])
    """
    checked = checked_values(problem, values)
    return [_simulate(e, checked, problem.solver, times, rng) for e in problem.experiments]


def checked_values(problem: Problem, values: Mapping[str, float]) -> dict[str, float]:
    known = problem.parameters
    found: dict[str, float] = {}
    for name, value in values.items():
        if name not in known:
            raise DataError(f"'{name}' is not a parameter{did_you_mean(name, known)} (parameters: {', '.join(known)})")
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not np.isfinite(value):
            raise DataError(f"parameter '{name}' must be a finite number, not {value!r}")
        found[name] = float(value)
    return found


def _simulate(
    experiment: Experiment,
    values: Mapping[str, float],
    solver: SolverSettings,
    times: Any,
    rng: np.random.Generator | None,
) -> Trajectory:
    model = experiment.model if rng is None else experiment.solved
    needed = [*model.parameters, *(experiment.noise_parameters if rng is not None else ())]
    missing = [name for name in needed if name not in values]
    if missing:
        raise DataError(f"no value is given for {', '.join(missing)}")
    if any(name not in experiment.inputs for name in model.inputs):
        raise DataError(f"no values for the inputs {', '.join(model.inputs)}; give them under [inputs]")
    asked = np.unique(np.asarray(experiment.times() if times is None else times, float))
    if asked.size == 0:
        raise DataError("there are no data, so the simulation times must be given (`times`)")
    check_times(asked, experiment)
    grid = np.unique(np.concatenate([[0.0], asked]))
    system = ode.compile_system(model, model.parameters)
    arguments = [values[name] for name in model.parameters] + [float(c) for c in model.constants.values()]
    found = ode.simulate(
        system,
        np.array([arguments]),
        grid,
        inputs=known_inputs(experiment),
        wanted=np.zeros((grid.size, len(model.outputs)), dtype=bool),
        **vars(solver),
    )
    found = somewhere_defined(found, np.isin(grid, asked))
    if found.status[0] != 0:
        where = f"experiment '{experiment.name}': " if experiment.name else ""
        raise SolverError(f"{where}{ode.Status(found.status[0]).message}")
    keep = np.isin(grid, asked)
    states = {name: found.states[0, keep, j] for j, name in enumerate(model.states)}
    outputs = {name: found.outputs[0, :, j] for j, name in enumerate(model.outputs)}
    observed, sides = {}, {}
    if rng is not None:
        for entry in experiment.observations:
            made = _scatter(entry, outputs, grid, asked, values, rng)
            observed[entry.output], sides[entry.output] = made
    shown = {name: outputs[name][keep] for name in experiment.model.outputs}
    return Trajectory(experiment.name, asked, states, shown, observed, sides)


def somewhere_defined(found: ode.Trajectories, asked: Any = slice(None)) -> ode.Trajectories:
    """Outputs are no numbers where they are undefined, as a share of nothing is; a lane fails where one always is."""
    outputs = np.where(np.isfinite(found.outputs), found.outputs, np.nan)
    undefined = np.any(np.isnan(outputs[:, asked]).all(axis=1), axis=1)
    status = np.where((found.status == ode.Status.ok) & undefined, ode.Status.not_finite, found.status)
    return found._replace(outputs=outputs, status=status)


def check_times(times: Array, experiment: Experiment) -> None:
    """Refuse times that a model has no states for; one with an onset is as at its start before it."""
    starts_at_zero = experiment.model.onset is None
    if not times.size or not np.isfinite(times).all() or (times[0] < 0 and starts_at_zero):
        raise DataError("times must be finite and not negative; the model starts at time 0")


def _scatter(
    entry: Observations,
    outputs: Mapping[str, Array],
    grid: Array,
    asked: Array,
    values: Mapping[str, float],
    rng: np.random.Generator,
) -> tuple[Array, Sides]:
    """Observations at the times that are asked for, censored at the limits of the noise."""
    at = np.searchsorted(grid, asked)
    mean = outputs[entry.output][at]
    if entry.increment:
        before = outputs[entry.output][np.concatenate([[0], at[:-1]])]
        mean = np.where(asked > 0, mean - before, np.nan)  # nothing is new at time 0
    known = {**values, **{name: y[at] for name, y in outputs.items()}}
    if not np.isin(asked, entry.times).all():
        if entry.noise.by_row:
            raise DataError(f"the noise of '{entry.output}' is given by row: it is known at the times of the data only")
        return censored(entry.noise.simulate(mean, known, rng), *entry.noise.general_limits)
    rows = np.searchsorted(entry.times, asked)  # of several at one time the first
    noise = entry.noise.at_rows(rows, entry.times.size, entry.output)
    return censored(noise.simulate(mean, known, rng), entry.below[rows], entry.above[rows])
