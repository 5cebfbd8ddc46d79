"""What the integrators' functions share: the lane that is solved, room to work in, and rows for the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from equifinal.machine.pointers import DoublePointer, IntegerPointer, Integers, doubles_at, integers_at, shift
from equifinal.ode.stepping.layout import (
    N_COLUMNS,
    N_EVENTS,
    N_INPUTS,
    N_OUTPUTS,
    N_SENSITIVITIES,
    N_STATES,
    NNZ_JACOBIAN,
    Batch,
)

# Division by zero gives inf or nan, as in C; a product and a sum may be one instruction; nothing but the whole can be
# called from outside.
OPTIONS: dict[str, Any] = {
    **{"error_model": "numpy", "fastmath": {"contract"}},
    **{"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
}
Index = int | np.int64  # of a row or an event: literals would have functions compiled once more
Function = TypeVar("Function", bound=Callable[..., Any])


class Compiler(Protocol):
    """What makes machine code of a function, which is called as before."""

    def __call__(self, function: Function, /) -> Function: ...


compiled: Compiler = njit(**OPTIONS)
inlined: Compiler = njit(
    **OPTIONS, inline="always"
)  # for what is called at one place: by itself it would be compiled twice


class Lane(NamedTuple):
    """One solve of a system: its table, arguments, times and inputs, and how it is to be solved."""

    system: Any
    p: Any
    starts: Any  # address of what to start from, or 0
    times: Any
    n_times: Any
    inputs: Any
    n_segments: Any
    method: Any
    rtol: Any
    atol: Any
    max_steps: Any
    steps: Any  # attempted so far
    tableau: Any  # of the stiff method
    undefined: Any  # whether outputs may be


class Work(NamedTuple):
    """Room for z = (x, S) and all that a step needs."""

    z: Any
    z_new: Any
    f0: Any  # z' at the beginning of the step
    scratch: Any
    middle: Any
    k: Any  # eight stages
    floors: Any  # absolute tolerances
    largest: Any  # size of each entry so far
    sizes: Any  # that entries are known or guessed to come to
    slips: Any  # largest error of each entry in any step
    u: Any  # inputs, now and at the beginning of the step
    u0: Any
    direction: Any
    drift: Any
    pivots: Any
    spare: Any  # for a row of states and outputs
    w: Any
    clock: Any  # when the lane starts, and steps that its events allow for
    taus: Any  # when events happen
    order: Any  # in which they do
    jacobian: Any
    entries: Any


class Rows(NamedTuple):
    """Where results go. A width is the distance to the next row: 0 if states and outputs are not kept."""

    states: Any
    outputs: Any
    sensitivities: Any
    state_sensitivities: Any
    x_width: Any
    y_width: Any


@compiled
def divided(d: IntegerPointer, room: DoublePointer) -> Work:
    """The parts of a thread's room; `equifinal.ode.compile` knows how large it must be."""
    n, n_inputs = d[N_STATES], d[N_INPUTS]
    size = n * (1 + d[N_COLUMNS])
    vectors, u = shift(room, 5 * size), shift(room, 17 * size)
    drift = shift(u, 3 * n_inputs)
    w = shift(drift, 5 * n + d[N_OUTPUTS])
    clock = shift(w, n * n)
    taus = shift(clock, 2)
    order = shift(taus, d[N_EVENTS] + 1)
    jacobian = shift(order, d[N_EVENTS] + 1)
    return Work(
        z=room,
        z_new=shift(room, size),
        f0=shift(room, 2 * size),
        scratch=shift(room, 3 * size),
        middle=shift(room, 4 * size),
        k=vectors,
        floors=shift(vectors, 8 * size),
        largest=shift(vectors, 9 * size),
        sizes=shift(vectors, 10 * size),
        slips=shift(vectors, 11 * size),
        u=u,
        u0=shift(u, n_inputs),
        direction=shift(u, 2 * n_inputs),
        drift=drift,
        pivots=shift(drift, n),
        spare=shift(drift, 4 * n),
        w=w,
        clock=clock,
        taus=taus,
        order=order,
        jacobian=jacobian,
        entries=shift(jacobian, d[NNZ_JACOBIAN]),
    )


def _read_batch(typing_context, table):
    """A table of integers as a `Batch`."""
    kind = types.NamedUniTuple(types.int64, len(Batch._fields), Batch)

    def generate(context, builder, signature, arguments):
        places = [ir.Constant(ir.IntType(64), place) for place in range(len(Batch._fields))]
        values = [builder.load(builder.gep(arguments[0], [place])) for place in places]
        return context.make_tuple(builder, kind, values)

    return kind(Integers), generate


read_batch: Any = intrinsic(_read_batch)


@compiled
def lane_of(batch: Batch, lane: int) -> Lane:
    d, tolerances = integers_at(batch.system), doubles_at(batch.tolerances)
    starts = batch.starts
    if starts != 0:
        starts += 8 * lane * d[N_STATES] * (1 + d[N_SENSITIVITIES])
    steps = shift(integers_at(batch.steps), lane)
    return Lane(
        system=d,
        p=shift(doubles_at(batch.arguments), lane * batch.n_arguments),
        starts=starts,
        times=doubles_at(batch.times),
        n_times=batch.n_times,
        inputs=doubles_at(batch.inputs),
        n_segments=batch.n_segments,
        method=batch.method,
        rtol=tolerances[0],
        atol=tolerances[1],
        max_steps=batch.max_steps,
        steps=steps,
        tableau=doubles_at(batch.tableau),
        undefined=batch.undefined,
    )


@compiled
def rows_of(batch: Batch, lane: int) -> Rows:
    d = integers_at(batch.system)
    n, n_outputs, width = d[N_STATES], d[N_OUTPUTS], d[N_SENSITIVITIES]
    first = lane * batch.n_times
    return Rows(
        states=shift(doubles_at(batch.states), first * n),
        outputs=shift(doubles_at(batch.outputs), first * n_outputs),
        sensitivities=shift(doubles_at(batch.sensitivities), first * n_outputs * width),
        state_sensitivities=shift(doubles_at(batch.state_sensitivities), first * n * width),
        x_width=n,
        y_width=n_outputs,
    )
