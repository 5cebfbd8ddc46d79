"""The two ends of a solve: initial values, and what is written at each requested time."""

from __future__ import annotations

import math

from equifinal.machine.pointers import DoublePointer, call, doubles_at, never_inline, shift
from equifinal.ode.stepping.explicit import explicit_interpolate
from equifinal.ode.stepping.field import all_finite, column_parameters, inputs_at
from equifinal.ode.stepping.layout import (
    N_COLUMNS,
    N_OUTPUTS,
    N_SENSITIVITIES,
    N_STATES,
    NNZ_FORCING,
    NNZ_JACOBIAN,
    NNZ_OUTPUT_P,
    NNZ_OUTPUT_X,
    NNZ_START,
    OUTPUT_TANGENT,
    OUTPUTS,
    PATTERNS,
    START,
    START_TANGENT,
)
from equifinal.ode.stepping.stiff import stiff_interpolate
from equifinal.ode.stepping.structs import Index, Lane, Rows, Work, compiled, inlined


@inlined
def set_start(lane: Lane, work: Work) -> None:
    """Initial values, and their derivatives by the parameters when sensitivities are asked for."""
    d, u, z, entries = lane.system, work.u, work.z, work.entries
    n, m = d[N_STATES], d[N_COLUMNS]
    if lane.starts != 0:
        given, parameter = doubles_at(lane.starts), column_parameters(d)
        for i in range(n):
            z[i] = given[i]
            for j in range(m):
                z[n + i * m + j] = given[n + i * d[N_SENSITIVITIES] + parameter[j]]
        return
    if m == 0:
        call(d[START], u, lane.p, u, u, u, z)
        return
    call(d[START_TANGENT], u, lane.p, u, u, u, entries)
    for i in range(n):
        z[i] = entries[i]
    for i in range(n, n * (1 + m)):
        z[i] = 0.0
    pattern = shift(d, PATTERNS + 2 * (d[NNZ_JACOBIAN] + d[NNZ_FORCING] + d[NNZ_OUTPUT_X] + d[NNZ_OUTPUT_P]))
    count = d[NNZ_START]
    for e in range(count):
        z[n + pattern[e] * m + pattern[count + e]] = entries[n + e]


@compiled
def blank(values: DoublePointer, count: int) -> None:
    for i in range(count):
        values[i] = math.nan


@compiled
def blank_rows(lane: Lane, rows: Rows, row: Index) -> None:
    """Make all rows from ``row`` on NaN."""
    never_inline()
    d, count = lane.system, lane.n_times - row
    n, n_outputs, width = d[N_STATES], d[N_OUTPUTS], d[N_SENSITIVITIES]
    blank(shift(rows.states, row * rows.x_width), count * rows.x_width)
    blank(shift(rows.outputs, row * rows.y_width), count * rows.y_width)
    blank(shift(rows.sensitivities, row * n_outputs * width), count * n_outputs * width)
    blank(shift(rows.state_sensitivities, row * n * width), count * n * width)


@compiled
def write_rows(
    lane: Lane,
    work: Work,
    rows: Rows,
    segment: DoublePointer,
    row: Index,
    t: float,
    step: float,
    until: float,
    stiff: bool,
) -> Index:
    """Write what is wanted at t, if the step is 0, or else in the step before ``until``.

    Returns the first row that is later, or -1 if something is not finite.
    """
    never_inline()
    z = work.z if step == 0.0 else work.middle
    while row < lane.n_times and (lane.times[row] < until or (step == 0.0 and lane.times[row] == until)):
        if step != 0.0:
            theta = (lane.times[row] - t) / step
            if stiff:
                stiff_interpolate(lane, work, theta)
            else:
                explicit_interpolate(lane, work, theta, step)
        inputs_at(lane.system, lane.times[row] if lane.times[row] < math.inf else t, segment, work.u)
        if not write_row(lane, work, rows, row, z):
            blank_rows(lane, rows, row)
            return -1
        row += 1
    return row


@inlined
def write_row(lane: Lane, work: Work, rows: Rows, row: Index, z: DoublePointer) -> bool:
    """Write states, outputs and sensitivities; says whether all are finite that must be."""
    d, u, entries = lane.system, work.u, work.entries
    n, m, n_outputs, width = d[N_STATES], d[N_COLUMNS], d[N_OUTPUTS], d[N_SENSITIVITIES]
    states, outputs = shift(rows.states, row * rows.x_width), shift(rows.outputs, row * rows.y_width)
    for i in range(n):
        states[i] = z[i]
    if width == 0:
        call(d[OUTPUTS], z, lane.p, u, u, u, outputs)
        return all_finite(states, n) and (lane.undefined != 0 or all_finite(outputs, n_outputs))
    sensitivities = shift(rows.sensitivities, row * n_outputs * width)
    state_sensitivities = shift(rows.state_sensitivities, row * n * width)
    call(d[OUTPUT_TANGENT], z, lane.p, u, u, u, entries)
    for i in range(n_outputs):
        outputs[i] = entries[i]
    by_x, by_p = d[NNZ_OUTPUT_X], d[NNZ_OUTPUT_P]
    pattern = shift(d, PATTERNS + 2 * (d[NNZ_JACOBIAN] + d[NNZ_FORCING]))
    parameter = column_parameters(d)
    for i in range(n_outputs * width):
        sensitivities[i] = 0.0
    for e in range(by_x):
        value = entries[n_outputs + e]
        target, source = pattern[e] * width, n + pattern[by_x + e] * m
        for j in range(m):
            sensitivities[target + parameter[j]] += value * z[source + j]
    pattern = shift(pattern, 2 * by_x)
    for e in range(by_p):
        sensitivities[pattern[e] * width + pattern[by_p + e]] += entries[n_outputs + by_x + e]
    for i in range(n * width):
        state_sensitivities[i] = 0.0
    for i in range(n):
        for j in range(m):
            state_sensitivities[i * width + parameter[j]] = z[n + i * m + j]
    if not (all_finite(states, n) and all_finite(state_sensitivities, n * width)):
        return False
    return lane.undefined != 0 or (all_finite(outputs, n_outputs) and all_finite(sensitivities, n_outputs * width))
