"""The vector field that is integrated: states, and sensitivities with them when asked for.

With sensitivities the integrated vector is z = (x, S), S = dx/dp with a row for each state, and

    x' = f(x, p, u(t)),        S' = (df/dx) S + df/dp.

df/dx and df/dp are sparse: the model's function stores their entries, the layout says where they belong.

``segment`` describes the inputs on the current stretch of time: its start, then values and slopes of each
input.
"""

from __future__ import annotations

import math

from numba import njit

from equifinal.machine.pointers import call, shift
from equifinal.ode.layout import N_COLUMNS, N_INPUTS, N_STATES, NNZ_FORCING, NNZ_JACOBIAN, PATTERNS, RHS, TANGENT

compiled = njit(error_model="numpy")  # division by zero gives inf or nan, as in C


@compiled
def inputs_at(d, t, segment, u):
    n = d[N_INPUTS]
    for i in range(n):
        u[i] = segment[1 + i] + segment[1 + n + i] * (t - segment[0])


@compiled
def spread(d, entries, s, out):
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
def field(d, t, z, p, segment, u, entries, out):
    """z' into ``out``; leaves the inputs in ``u`` and, with sensitivities, f, df/dx, df/dp in ``entries``."""
    inputs_at(d, t, segment, u)
    n, m = d[N_STATES], d[N_COLUMNS]
    if m == 0:
        call(d[RHS], z, p, u, u, u, out)
        return
    call(d[TANGENT], z, p, u, u, u, entries)
    for i in range(n):
        out[i] = entries[i]
    for i in range(n, n * (1 + m)):
        out[i] = 0.0
    spread(d, shift(entries, n), shift(z, n), shift(out, n))


@compiled
def all_finite(x, n):
    total = 0.0
    for i in range(n):
        total += x[i] * 0.0  # nan for nan and for infinity
    return total == 0.0


@compiled
def error_norm(error, x, x_new, n, rtol, floors):
    """Root mean square of the error in units of the tolerance; infinite if anything is not finite."""
    total = 0.0
    for i in range(n):
        ratio = error[i] / (floors[i] + rtol * max(abs(x[i]), abs(x_new[i])))
        total += ratio * ratio
    norm = math.sqrt(total / n)
    return norm if math.isfinite(norm) and all_finite(x_new, n) else math.inf
