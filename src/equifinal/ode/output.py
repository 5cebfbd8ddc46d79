"""The two ends of a solve: initial values, and what is written at each requested time."""

from __future__ import annotations

import math

from equifinal.machine.pointers import call, shift
from equifinal.ode.field import all_finite, compiled, inputs_at
from equifinal.ode.layout import (
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


@compiled
def set_start(d, p, u, entries, z):
    """Initial values, and their derivatives by the parameters when sensitivities are asked for."""
    n, m = d[N_STATES], d[N_COLUMNS]
    if m == 0:
        call(d[START], u, p, u, u, u, z)
        return
    call(d[START_TANGENT], u, p, u, u, u, entries)
    for i in range(n):
        z[i] = entries[i]
    for i in range(n, n * (1 + m)):
        z[i] = 0.0
    pattern = shift(d, PATTERNS + 2 * (d[NNZ_JACOBIAN] + d[NNZ_FORCING] + d[NNZ_OUTPUT_X] + d[NNZ_OUTPUT_P]))
    count = d[NNZ_START]
    for e in range(count):
        z[n + pattern[e] * m + pattern[count + e]] = entries[n + e]


@compiled
def blank(values, count):
    for i in range(count):
        values[i] = math.nan


@compiled
def emit(d, t, z, p, segment, u, entries, states, outputs, sensitivities, state_sensitivities):
    """Write states, outputs and sensitivities at one time; False, and all NaN, if any is not finite."""
    n, n_outputs, width = d[N_STATES], d[N_OUTPUTS], d[N_SENSITIVITIES]
    inputs_at(d, t, segment, u)
    write_row(d, z, p, u, entries, states, outputs, sensitivities, state_sensitivities)
    if (
        all_finite(states, n)
        and all_finite(outputs, n_outputs)
        and all_finite(sensitivities, n_outputs * width)
        and all_finite(state_sensitivities, n * width)
    ):
        return True
    blank(states, n)
    blank(outputs, n_outputs)
    blank(sensitivities, n_outputs * width)
    blank(state_sensitivities, n * width)
    return False


@compiled
def write_row(d, z, p, u, entries, states, outputs, sensitivities, state_sensitivities):
    n, m, n_outputs, width = d[N_STATES], d[N_COLUMNS], d[N_OUTPUTS], d[N_SENSITIVITIES]
    for i in range(n):
        states[i] = z[i]
    if width == 0:
        call(d[OUTPUTS], z, p, u, u, u, outputs)
        return
    call(d[OUTPUT_TANGENT], z, p, u, u, u, entries)
    for i in range(n_outputs):
        outputs[i] = entries[i]
    by_x, by_p = d[NNZ_OUTPUT_X], d[NNZ_OUTPUT_P]
    pattern = shift(d, PATTERNS + 2 * (d[NNZ_JACOBIAN] + d[NNZ_FORCING]))
    parameter = shift(pattern, 2 * (by_x + by_p + d[NNZ_START]))
    for i in range(n_outputs * width):
        sensitivities[i] = 0.0
    for e in range(by_x):
        value = entries[n_outputs + e]
        row, source = pattern[e] * width, n + pattern[by_x + e] * m
        for j in range(m):
            sensitivities[row + parameter[j]] += value * z[source + j]
    pattern = shift(pattern, 2 * by_x)
    for e in range(by_p):
        sensitivities[pattern[e] * width + pattern[by_p + e]] += entries[n_outputs + by_x + e]
    for i in range(n * width):
        state_sensitivities[i] = 0.0
    for i in range(n):
        for j in range(m):
            state_sensitivities[i * width + parameter[j]] = z[n + i * m + j]
