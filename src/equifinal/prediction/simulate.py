"""Trajectories of a problem's experiments at given parameters, with or without measurement noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.errors import DataError, SolverError, did_you_mean
from equifinal.posterior.likelihood import known_inputs
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.problem import Problem, SolverSettings

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One experiment at one parameter vector: columns over ``times``.

    ``observed`` holds simulated observations where noise was asked for; increments are what was added since the
    previous time (the first: since time 0).
    """

    experiment: str
    times: Array
    states: Mapping[str, Array]
    outputs: Mapping[str, Array]
    observed: Mapping[str, Array]


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
    model = experiment.model
    needed = [*model.parameters, *(experiment.noise_parameters if rng is not None else ())]
    missing = [name for name in needed if name not in values]
    if missing:
        raise DataError(f"no value is given for {', '.join(missing)}")
    if any(name not in experiment.inputs for name in model.inputs):
        raise DataError(f"no values for the inputs {', '.join(model.inputs)}; give them under [inputs]")
    asked = np.unique(np.asarray(experiment.times() if times is None else times, float))
    if asked.size == 0:
        raise DataError("there are no data, so the simulation times must be given (`times`)")
    if not np.isfinite(asked).all() or (asked[0] < 0 and model.onset is None):
        raise DataError("times must be finite and not negative; the model starts at time 0")
    grid = np.unique(np.concatenate([[0.0], asked]))
    system = ode.compile_system(model, model.parameters)
    arguments = [values[name] for name in model.parameters] + [float(c) for c in model.constants.values()]
    found = ode.simulate(
        system,
        np.array([arguments]),
        grid,
        inputs=known_inputs(experiment),
        **vars(solver),
    )
    if found.status[0] != 0:
        where = f"experiment '{experiment.name}': " if experiment.name else ""
        raise SolverError(f"{where}{ode.Status(found.status[0]).message}")
    keep = np.isin(grid, asked)
    states = {name: found.states[0, keep, j] for j, name in enumerate(model.states)}
    outputs = {name: found.outputs[0, :, j] for j, name in enumerate(model.outputs)}
    observed = {}
    if rng is not None:
        for entry in experiment.observations:
            observed[entry.output] = _scatter(entry, outputs[entry.output], grid, asked, values, rng)
    return Trajectory(experiment.name, asked, states, {k: v[keep] for k, v in outputs.items()}, observed)


def _scatter(
    entry: Observations,
    output: Array,
    grid: Array,
    asked: Array,
    values: Mapping[str, float],
    rng: np.random.Generator,
) -> Array:
    at = np.searchsorted(grid, asked)
    mean = output[at]
    if entry.increment:
        mean = np.where(asked > 0, mean - output[np.concatenate([[0], at[:-1]])], np.nan)  # nothing is new at time 0
    return entry.noise.simulate(mean, values, rng)
