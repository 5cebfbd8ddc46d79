"""Solve a compiled system for a batch of parameter vectors."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equifinal.errors import SolverError
from equifinal.machine.native import address
from equifinal.ode.compile import System, Table
from equifinal.ode.inputs import Inputs
from equifinal.ode.integrator import integrator
from equifinal.ode.steady import initial_values, rest
from equifinal.ode.stepping.layout import N_SENSITIVITIES, N_STATES, TANGENT, Batch
from equifinal.ode.stepping.rodas5p import TABLEAU
from equifinal.ode.threads import run_in_threads

_METHODS = {"auto": 0, "explicit": 1, "stiff": 2}
_NO_INPUTS, _TIME = np.zeros((1, 1)), np.array([[0.0, 0.0, 1.0]])
_RETURN_VALUE = np.zeros(2, dtype=np.int64)  # the integrator's calling convention wants a place for a result it lacks
_RETURN_AT, _TABLEAU_AT = address(_RETURN_VALUE), address(TABLEAU)


class Status(IntEnum):
    """How the solve of a lane ended; ``message`` says what may be done about it."""

    ok = 0
    too_many_steps = 1
    step_too_small = 2
    not_finite = 3
    no_steady_state = 4

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.ok: "solved",
    Status.too_many_steps: (
        "the solver used up its steps before the last time; raise max_steps, loosen rtol and atol, or look "
        "for parameters so extreme that the solution changes much faster than the data show"
    ),
    Status.step_too_small: (
        "the step became too small to go on, as happens when a solution grows without bound in finite time; "
        "restrict the parameters with priors, or check the signs of the equations"
    ),
    Status.not_finite: (
        "a value became infinite or undefined (a division by zero, an overflow, or a parameter that is "
        "itself not a number); restrict the parameters to where the equations are defined"
    ),
    Status.no_steady_state: (
        "no steady state was reached: the model grows, oscillates or drifts for ever, or comes to rest more slowly "
        "than can be followed; check the conditions that held before, or restrict the parameters with priors"
    ),
}


class Trajectories(NamedTuple):
    """Solutions of a batch of B lanes at T times.

    Attributes
    ----------
    outputs, states
        Shapes (B, T, n_outputs) and (B, T, n_states). Where a lane failed, NaN from the failure on.
    sensitivities, state_sensitivities
        Derivatives of outputs and states by the parameters, (B, T, n_outputs, n_sensitivities) and
        (B, T, n_states, n_sensitivities); None unless asked for.
    status
        A `Status` for each lane, (B,).
    steps
        Steps attempted for each lane, (B,).
    """

    outputs: np.ndarray
    states: np.ndarray
    sensitivities: np.ndarray | None
    state_sensitivities: np.ndarray | None
    status: np.ndarray
    steps: np.ndarray


def simulate(
    system: System,
    p: ArrayLike,
    times: ArrayLike,
    *,
    inputs: Inputs | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 50_000,
    method: Literal["auto", "explicit", "stiff"] = "auto",
    sensitivities: bool = False,
    threads: int | None = None,
    wanted: np.ndarray | None = None,
) -> Trajectories:
    """Solve the system from its start for each row of ``p``.

    A lane that cannot be solved has a status and NaNs; it never raises. A lane's result is the same to the
    last bit whatever lanes it is solved with, in whatever order, and with however many threads.

    Parameters
    ----------
    system
        From `compile_system`.
    p
        Parameters and constants in the order of ``system.arguments``, a row for each
        lane: (B, len(arguments)).
    times
        Ascending times at which states and outputs are wanted. Without an onset the model starts at time 0, and times
        are not negative; with one they may be, and until the onset everything is as at the start. The last may be
        infinite: the steady state that the model comes to.
    inputs
        The known inputs, if the model has any.
    rtol, atol
        A step is accepted when the root mean square over the states of error / (a + rtol |x|) is at most 1;
        a is ``atol``, but never more than 1e-5 ``rtol`` times the state at its largest so far.
    max_steps
        Attempted steps before a lane is given up, beside those that end on a time of output or a break of
        the inputs, and 100 for every event.
    method
        ``explicit`` (Dormand-Prince 5), ``stiff`` (Rodas5P), or ``auto``: explicit until stiffness shows.
    sensitivities
        Whether derivatives by the parameters are wanted; states and outputs are the same with and without.
    threads
        At most so many; by default, as many as there are processors where the batch is worth it.
    wanted
        Which outputs matter at which times, (times, outputs); elsewhere they may be undefined, as a quotient that
        is 0/0 before anything has happened. By default all matter.
    """
    p = np.ascontiguousarray(p, dtype=np.float64)
    times = np.ascontiguousarray(times, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] != len(system.arguments):
        raise SolverError(f"p must have {len(system.arguments)} columns {system.arguments}; its shape is {p.shape}")
    if times.ndim != 1:
        raise SolverError("times must be a list of numbers")
    ascending = len(times) == 0 or (times[0] > -np.inf and (times[1:] >= times[:-1]).all())
    if not ascending or (len(times) > 1 and times[-2] == np.inf):
        raise SolverError("times must be ascending and finite, but for the last, which may be infinite")
    if len(times) and times[0] < 0 and system.model.onset is None:
        raise SolverError("times must not be negative; the model starts at time 0")
    if method not in _METHODS:
        raise SolverError(f"method must be one of {', '.join(_METHODS)}, not {method!r}")
    if not (0 < rtol < np.inf and 0 < atol < np.inf):
        raise SolverError("rtol and atol must be positive")
    table, n_segments = _input_table(system, inputs)
    how = _How(rtol, atol, max_steps, _METHODS[method], threads, wanted is not None)
    compiled = system._with_sensitivities if sensitivities else system._plain
    before = None
    if system._before is not None:
        before = _at_rest_before(system, p, how, sensitivities)
    found = _solve(system, compiled, p, times, table, n_segments, how, None if before is None else before.starts)
    if before is not None:
        found.status[before.status != Status.ok] = before.status[before.status != Status.ok]
        found.steps[:] += before.steps
    if len(times) and times[-1] == np.inf:
        _come_to_rest(system, p, table, how, found)
    if wanted is not None:
        _require(found, wanted)
    if found.states.shape[2] > system.n_states:  # levels do not show
        found = found._replace(states=found.states[:, :, : system.n_states])
        if found.state_sensitivities is not None:
            found = found._replace(state_sensitivities=found.state_sensitivities[:, :, : system.n_states])
    return found


class _How(NamedTuple):
    """Tolerances and the like, which are the same for all lanes."""

    rtol: float
    atol: float
    max_steps: int
    method: int
    threads: int | None
    undefined: bool = False  # whether outputs may be


def _require(found: Trajectories, wanted: np.ndarray) -> None:
    """Let lanes fail at the first time at which an output that matters is not finite."""
    defined = np.isfinite(found.outputs)
    if found.sensitivities is not None:
        defined &= np.isfinite(found.sensitivities).all(axis=3)
    missing = (wanted & ~defined).any(axis=2) & (found.status == Status.ok)[:, None]
    for lane in np.flatnonzero(missing.any(axis=1)):
        found.status[lane] = Status.not_finite
        for values in found[:4]:
            if values is not None:
                values[lane, missing[lane].argmax() :] = np.nan


def _solve(
    system: System,
    compiled: Table,
    p: np.ndarray,
    times: np.ndarray,
    table: np.ndarray,
    n_segments: int,
    how: _How,
    starts: np.ndarray | None = None,
) -> Trajectories:
    """Hand a batch to the integrators. States of the result include levels."""
    n_lanes, n_times = len(p), len(times)
    n_integrated, width = int(compiled.entries[N_STATES]), int(compiled.entries[N_SENSITIVITIES])
    sensitivities = compiled.entries[TANGENT] != 0
    outputs = np.empty((n_lanes, n_times, system.n_outputs))
    states = np.empty((n_lanes, n_times, n_integrated))
    by_parameters = states_by_parameters = None
    by_parameters_at = states_by_parameters_at = 0
    if sensitivities:
        by_parameters = np.empty((n_lanes, n_times, system.n_outputs, width))
        states_by_parameters = np.empty((n_lanes, n_times, n_integrated, width))
        by_parameters_at, states_by_parameters_at = address(by_parameters), address(states_by_parameters)
    bookkeeping = np.zeros(2 * n_lanes + 1, dtype=np.int64)  # status, steps, the counter that deals out lanes
    status, steps = bookkeeping[:n_lanes], bookkeeping[n_lanes:-1]
    status_at = address(bookkeeping)
    tolerances = np.array([how.rtol, how.atol])
    batch = Batch(
        system=compiled.address,
        method=how.method,
        arguments=address(p),
        n_arguments=p.shape[1],
        starts=address(starts) if starts is not None else 0,
        n_lanes=n_lanes,
        counter=status_at + 16 * n_lanes,
        times=address(times),
        n_times=n_times,
        inputs=address(table),
        n_segments=n_segments,
        tolerances=address(tolerances),
        max_steps=how.max_steps,
        tableau=_TABLEAU_AT,
        states=address(states),
        outputs=address(outputs),
        sensitivities=by_parameters_at,
        state_sensitivities=states_by_parameters_at,
        status=status_at,
        steps=status_at + 8 * n_lanes,
        undefined=int(how.undefined),
    )
    batch_table = np.array(batch, dtype=np.int64)
    batch_at = address(batch_table)
    solve = integrator()
    # an interrupt may end this call while other threads still write: they keep what they write to
    arrays = (p, times, table, starts, outputs, states, by_parameters, states_by_parameters, bookkeeping)

    def run(_held: tuple = (*arrays, tolerances, batch_table)) -> None:
        work = np.empty(compiled.work_size)  # a thread's own
        solve(_RETURN_AT, None, batch_at, address(work))

    if n_lanes:
        run_in_threads(run, n_lanes, how.threads, system._pace)
    return Trajectories(outputs, states, by_parameters, states_by_parameters, status, steps)


# --- steady states ----------------------------------------------------------------------------------------


class _Before(NamedTuple):
    """What lanes start from: for each, states and sensitivities one after another; NaN if there is no steady state."""

    starts: np.ndarray
    status: np.ndarray
    steps: np.ndarray


def _at_rest_before(system: System, p: np.ndarray, how: _How, sensitivities: bool) -> _Before:
    """The steady states of the model that held before, and the levels of this one."""
    before = system._before
    assert before is not None
    constants = [float(value) for value in before.model.constants.values()]
    arguments = np.hstack([p[:, : len(system.parameters)], np.tile(constants, (len(p), 1))])
    method = next(name for name, code in _METHODS.items() if code == how.method)
    options = how._asdict() | {"method": method, "sensitivities": sensitivities}
    options.pop("undefined")
    found = simulate(before, arguments, [np.inf], **options)
    states, slopes = initial_values(system, p, sensitivities)
    states[:, : system.n_states] = found.states[:, 0]
    if found.state_sensitivities is not None:
        slopes[:, : system.n_states] = found.state_sensitivities[:, 0]
    slopes = slopes.reshape(len(p), states.shape[1] * slopes.shape[2])
    return _Before(np.hstack([states, slopes]), found.status, found.steps)


def _come_to_rest(system: System, p: np.ndarray, table: np.ndarray, how: _How, found: Trajectories) -> None:
    """Put steady states into the last row, which has the states when all events were over."""
    last, n = found.states[:, -1].copy(), found.states.shape[2]
    calm, u = _calm_inputs(table)
    lanes = np.flatnonzero(found.status == Status.ok)
    if lanes.size == 0:
        return

    def advance(places: np.ndarray, x: np.ndarray, stretch: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        starts = np.ascontiguousarray(x)
        after = _solve(system, system._plain_afterwards, p[lanes[places]], np.array([stretch]), calm, 1, how, starts)
        return after.states[:, 0], after.status, after.steps

    s0 = found.state_sensitivities[lanes, -1] if found.state_sensitivities is not None else None
    came = rest(system, p[lanes], last[lanes], s0, u, advance, how.max_steps)
    found.steps[lanes] += came.steps
    found.status[lanes] = np.where(came.defined, Status.no_steady_state, Status.not_finite)
    starts = np.zeros((len(lanes), n * (1 + (0 if s0 is None else s0.shape[2]))))
    starts[:, :n] = came.states
    compiled = system._plain_afterwards
    if came.sensitivities is not None:
        compiled = system._sensitivities_afterwards
        starts[:, n:] = came.sensitivities.reshape(len(lanes), -1)
    ended = _solve(system, compiled, p[lanes], np.zeros(1), calm, 1, how, starts)
    found.status[lanes[came.reached]] = ended.status[came.reached]
    for whole, part in zip(found[:4], ended[:4], strict=True):
        if whole is not None and part is not None:
            whole[lanes, -1] = part[:, 0]


def _calm_inputs(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as they stay after their last break: a table, and their values. Time, if it is among them, is infinite."""
    count = (table.shape[1] - 1) // 2
    calm = np.zeros((1, max(table.shape[1], 2)))
    slopes = table[-1, 1 + count :]
    calm[0, 1 : 1 + count] = np.where(slopes == 0.0, table[-1, 1 : 1 + count], np.inf)
    return calm, calm[0, 1 : 2 + count].copy()


def _input_table(system: System, inputs: Inputs | None) -> tuple[np.ndarray, int]:
    if system.n_inputs == 0:
        return (_TIME, 1) if system._integrated.uses_time else (_NO_INPUTS, 1)
    if inputs is None:
        raise SolverError(f"the model has inputs ({', '.join(system.model.inputs)}), which must be given")
    if inputs.values.shape[1] != system.n_inputs:
        raise SolverError(f"the model has {system.n_inputs} inputs, but {inputs.values.shape[1]} are given")
    if system.model.onset is not None:  # which may be before the first break
        inputs = inputs.held_before
    return inputs.table_with_time if system._integrated.uses_time else inputs.table, len(inputs.breaks)
