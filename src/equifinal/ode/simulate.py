"""Solve a compiled system for a batch of parameter vectors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equifinal.errors import SolverError
from equifinal.machine.native import address
from equifinal.ode.compile import System
from equifinal.ode.inputs import Inputs
from equifinal.ode.integrator import integrator
from equifinal.ode.layout import Batch
from equifinal.ode.rodas5p import TABLEAU

_METHODS = {"auto": 0, "explicit": 1, "stiff": 2}
_NO_INPUTS, _TIME = np.zeros((1, 1)), np.array([[0.0, 0.0, 1.0]])
_RETURN_VALUE = np.zeros(2, dtype=np.int64)  # the integrator's calling convention wants a place for a result it lacks
_RETURN_AT, _TABLEAU_AT = address(_RETURN_VALUE), address(TABLEAU)
_WORTH_A_THREAD = 2e-4  # seconds of work below which handing it to another thread costs more than it saves


class Status(IntEnum):
    """How the solve of a lane ended; ``message`` says what may be done about it."""

    ok = 0
    too_many_steps = 1
    step_too_small = 2
    not_finite = 3

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
    max_steps: int = 10_000,
    method: Literal["auto", "explicit", "stiff"] = "auto",
    sensitivities: bool = False,
    threads: int | None = None,
) -> Trajectories:
    """Solve the system from time 0 for each row of ``p``.

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
        Ascending times >= 0 at which states and outputs are wanted.
    inputs
        The known inputs, if the model has any.
    rtol, atol
        A step is accepted when the root mean square over the states of error / (a + rtol |x|) is at most 1;
        a is ``atol``, but never more than 1e-5 ``rtol`` times the state at its largest so far.
    max_steps
        Attempted steps before a lane is given up, beside those that end on a time of output or a break of
        the inputs.
    method
        ``explicit`` (Dormand-Prince 5), ``stiff`` (Rodas5P), or ``auto``: explicit until stiffness shows.
    sensitivities
        Whether derivatives by the parameters are wanted; states and outputs are the same with and without.
    threads
        At most so many; by default, as many as there are processors where the batch is worth it.
    """
    p = np.ascontiguousarray(p, dtype=np.float64)
    times = np.ascontiguousarray(times, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] != len(system.arguments):
        raise SolverError(f"p must have {len(system.arguments)} columns {system.arguments}; its shape is {p.shape}")
    if times.ndim != 1:
        raise SolverError("times must be a list of numbers")
    n_lanes, n_times = len(p), len(times)
    if n_times and not (times[0] >= 0 and times[-1] < np.inf and (times[1:] >= times[:-1]).all()):
        raise SolverError("times must be finite, ascending and not negative")
    if method not in _METHODS:
        raise SolverError(f"method must be one of {', '.join(_METHODS)}, not {method!r}")
    if not (0 < rtol < np.inf and 0 < atol < np.inf):
        raise SolverError("rtol and atol must be positive")
    table, n_segments = _input_table(system, inputs)

    compiled = system._with_sensitivities if sensitivities else system._plain
    outputs = np.empty((n_lanes, n_times, system.n_outputs))
    states = np.empty((n_lanes, n_times, system.n_states))
    by_parameters = states_by_parameters = None
    by_parameters_at = states_by_parameters_at = 0
    if sensitivities:
        by_parameters = np.empty((n_lanes, n_times, system.n_outputs, system.n_sensitivities))
        states_by_parameters = np.empty((n_lanes, n_times, system.n_states, system.n_sensitivities))
        by_parameters_at, states_by_parameters_at = address(by_parameters), address(states_by_parameters)
    bookkeeping = np.zeros(2 * n_lanes + 1, dtype=np.int64)  # status, steps, the counter that deals out lanes
    status, steps = bookkeeping[:n_lanes], bookkeeping[n_lanes:-1]
    status_at = address(bookkeeping)
    tolerances = np.array([rtol, atol])
    batch = Batch(
        system=compiled.address,
        method=_METHODS[method],
        arguments=address(p),
        n_arguments=p.shape[1],
        n_lanes=n_lanes,
        counter=status_at + 16 * n_lanes,
        times=address(times),
        n_times=n_times,
        inputs=address(table),
        n_segments=n_segments,
        tolerances=address(tolerances),
        max_steps=max_steps,
        tableau=_TABLEAU_AT,
        states=address(states),
        outputs=address(outputs),
        sensitivities=by_parameters_at,
        state_sensitivities=states_by_parameters_at,
        status=status_at,
        steps=status_at + 8 * n_lanes,
    )
    batch_table = np.array(batch, dtype=np.int64)
    batch_at = address(batch_table)
    solve = integrator()
    # an interrupt may end this call while other threads still write: they keep what they write to
    arrays = (p, times, table, outputs, states, by_parameters, states_by_parameters, bookkeeping)

    def run(_held: tuple = (*arrays, tolerances, batch_table)) -> None:
        work = np.empty(compiled.work_size)  # a thread's own
        solve(_RETURN_AT, None, batch_at, address(work))

    if n_lanes:
        _run_in_threads(run, n_lanes, threads, system._pace)
    return Trajectories(outputs, states, by_parameters, states_by_parameters, status, steps)


def _input_table(system: System, inputs: Inputs | None) -> tuple[np.ndarray, int]:
    if system.n_inputs == 0:
        return (_TIME, 1) if system.model.uses_time else (_NO_INPUTS, 1)
    if inputs is None:
        raise SolverError(f"the model has inputs ({', '.join(system.model.inputs)}), which must be given")
    if inputs.values.shape[1] != system.n_inputs:
        raise SolverError(f"the model has {system.n_inputs} inputs, but {inputs.values.shape[1]} are given")
    return inputs.table_with_time if system.model.uses_time else inputs.table, len(inputs.breaks)


# --- threads ----------------------------------------------------------------------------------------------

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _forget_pool() -> None:
    """A forked process has none of its parent's threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PROCESSORS = processors()


def _run_in_threads(run: Callable[[], None], n_lanes: int, threads: int | None, pace: list[float]) -> None:
    """Run the same work in this thread and possibly others; the work itself deals out lanes among them.

    The clock chooses how many threads there are, and nothing else: a lane is one solve, which only reads its own
    arguments and writes its own row, so that its numbers are the same whoever computes it, and in whatever order.
    """
    if threads is None:
        threads = _PROCESSORS if n_lanes * pace[0] > _WORTH_A_THREAD else 1
    threads = min(threads, n_lanes)
    began = time.perf_counter()
    if threads <= 1:
        run()
    else:
        _share(run, threads)
    pace[0] = (time.perf_counter() - began) * max(threads, 1) / n_lanes


def _share(run: Callable[[], None], threads: int) -> None:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(_PROCESSORS - 1, 1), thread_name_prefix="equifinal-ode")
        shares = [_pool.submit(run) for _ in range(min(threads - 1, _pool._max_workers))]
    try:
        run()
    finally:
        for share in shares:
            if not share.cancel():  # what has not begun by now has nothing left to do
                share.result()
