"""The vector field that is integrated: states, and sensitivities with them when asked for.

With sensitivities the integrated vector is z = (x, S), S = dx/dp with a row for each state, and

    x' = f(x, p, u(t)),        S' = (df/dx) S + df/dp.

df/dx and df/dp are sparse: the model's function stores their entries, the layout says where they belong.

``segment`` describes the inputs on the current stretch of time: its start, then values and slopes of each
input.
"""

from __future__ import annotations

import math

from equifinal.machine.pointers import DoublePointer, IntegerPointer, always_inline, call, never_inline, shift
from equifinal.ode.stepping.layout import (
    N_COLUMNS,
    N_INPUTS,
    N_OWN,
    N_STATES,
    NNZ_FORCING,
    NNZ_JACOBIAN,
    NNZ_OUTPUT_P,
    NNZ_OUTPUT_X,
    NNZ_START,
    PATTERNS,
    RHS,
    TANGENT,
)
from equifinal.ode.stepping.structs import Lane, Work, compiled


@compiled
def column_parameters(d: IntegerPointer) -> IntegerPointer:
    """The parameter of each column of the sensitivities."""
    patterns = d[NNZ_JACOBIAN] + d[NNZ_FORCING] + d[NNZ_OUTPUT_X] + d[NNZ_OUTPUT_P] + d[NNZ_START]
    return shift(d, PATTERNS + 2 * patterns)


@compiled
def inputs_at(d: IntegerPointer, t: float, segment: DoublePointer, u: DoublePointer) -> None:
    n = d[N_INPUTS]
    for i in range(n):
        u[i] = segment[1 + i] + segment[1 + n + i] * (t - segment[0])


@compiled
def spread(d: IntegerPointer, entries: DoublePointer, s: DoublePointer, out: DoublePointer) -> None:
    """out += J s + F, with the entries of J and then F given one after another."""
    m = d[N_COLUMNS]
    jacobian, forcing = d[NNZ_JACOBIAN], d[NNZ_FORCING]
    pattern = shift(d, PATTERNS)
    for e in range(jacobian):
        value = entries[e]
        target = shift(out, pattern[e] * m)
        source = shift(s, pattern[jacobian + e] * m)
        for j in range(m):
            target[j] += value * source[j]
    pattern = shift(pattern, 2 * jacobian)
    for e in range(forcing):
        out[pattern[e] * m + pattern[forcing + e]] += entries[jacobian + e]


@compiled
def field(lane: Lane, work: Work, t: float, segment: DoublePointer, z: DoublePointer, out: DoublePointer) -> None:
    """z' into ``out``; leaves the inputs in ``u`` and, with sensitivities, f, df/dx, df/dp in ``entries``."""
    always_inline()
    d = lane.system
    inputs_at(d, t, segment, work.u)
    if d[N_COLUMNS] == 0:
        call(d[RHS], z, lane.p, work.u, work.u, work.u, out)
    else:
        tangent_field(d, z, lane.p, work.u, work.entries, out)


@compiled
def tangent_field(
    d: IntegerPointer, z: DoublePointer, p: DoublePointer, u: DoublePointer, entries: DoublePointer, out: DoublePointer
) -> None:
    never_inline()
    n = d[N_STATES]
    call(d[TANGENT], z, p, u, u, u, entries)
    for i in range(n):
        out[i] = entries[i]
    for i in range(n, n * (1 + d[N_COLUMNS])):
        out[i] = 0.0
    spread(d, shift(entries, n), shift(z, n), shift(out, n))


@compiled
def all_finite(x: DoublePointer, n: int) -> bool:
    total = 0.0
    for i in range(n):
        total += x[i] * 0.0  # nan for nan and for infinity
    return total == 0.0


@compiled
def squared_error(lane: Lane, work: Work, error: DoublePointer, controlled: int) -> float:
    """Mean square of the error in units of the tolerance; infinite if anything is not finite.

    Where sensitivities are controlled too, theirs if it is larger.
    """
    always_inline()
    n = lane.system[N_STATES]
    largest, begin, end, count = 0.0, 0, n, lane.system[N_OWN]  # levels have no errors
    while begin < controlled:
        total = 0.0
        for i in range(begin, end):
            ratio = error[i] / (work.floors[i] + lane.rtol * max(abs(work.z[i]), abs(work.z_new[i])))
            total += ratio * ratio
        largest = max(largest, total / count) if total == total else math.inf
        begin, end, count = end, controlled, controlled - n
    return largest if math.isfinite(largest) and all_finite(work.z_new, controlled) else math.inf
