"""Steinebach's Rosenbrock method Rodas5P: order 5(4), stiffly accurate, L-stable, dense output of order 4.

Eight stages, each a linear system with the same matrix W = I/(gamma h) - J, J the exact Jacobian:

    W k_i = f(t + c_i h, z + sum_j a_ij k_j) + (1/h) sum_j C_ij k_j + h d_i f_t(t, z)

The three last stages step through the embedded solution to the new one, and k_8 is the error estimate.

Sensitivities are part of the vector, so the Jacobian of the whole is block triangular: J for the states, J
once more for each column of S, and below the diagonal the derivative of (df/dx) S + df/dp by x. Each stage
solves for the states, puts their k_i into the lower block, and solves for the columns with the same factors
of W. The result is the exact derivative of the numerical step by the parameters.

References
----------
Steinebach (2023), Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia
Differential Equations package. BIT Numer. Math. 63, 27.
Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.7.
"""

from __future__ import annotations

import math

from equifinal.machine.pointers import call, shift
from equifinal.ode.field import compiled, error_norm, field, spread
from equifinal.ode.layout import CURVATURE, DRIFT, JACOBIAN, N_COLUMNS, N_INPUTS, N_STATES, NNZ_JACOBIAN, PATTERNS
from equifinal.ode.rodas5p import A_AT, C_AT, D_AT, GAMMA, H_AT, NODE_AT

LARGEST_LAST_TERM = 27 / 256  # of theta^3 (1 - theta) on a step


@compiled
def prepare(d, z, p, segment, u, entries, jacobian, drift):
    """What all attempts from (t, z) share: the entries of J and f_t. To be called after `field` at (t, z)."""
    n, m = d[N_STATES], d[N_COLUMNS]
    if m == 0:
        call(d[JACOBIAN], z, p, u, u, u, jacobian)
    else:
        for e in range(d[NNZ_JACOBIAN]):
            jacobian[e] = entries[n + e]
    if d[N_INPUTS] > 0:
        call(d[DRIFT], z, p, u, u, shift(segment, 1 + d[N_INPUTS]), drift)


@compiled
def factorise(d, h, jacobian, w, pivots):
    """LU factors of I/(gamma h) - J with row exchanges, in place; False if singular or not finite.

    Zero entries are passed over, which makes nearly banded systems cheap.
    """
    n, count = d[N_STATES], d[NNZ_JACOBIAN]
    pattern = shift(d, PATTERNS)
    for i in range(n * n):
        w[i] = 0.0
    for e in range(count):
        w[pattern[e] * n + pattern[count + e]] = -jacobian[e]
    for i in range(n):
        w[i * n + i] += 1.0 / (GAMMA * h)
    for c in range(n):
        best, largest = c, abs(w[c * n + c])
        for r in range(c + 1, n):
            if abs(w[r * n + c]) > largest:
                best, largest = r, abs(w[r * n + c])
        if not (largest > 0.0 and math.isfinite(largest)):
            return False
        pivots[c] = float(best)
        top = shift(w, c * n)
        if best != c:
            other = shift(w, best * n)
            for j in range(n):
                top[j], other[j] = other[j], top[j]
        inverse = 1.0 / top[c]
        for r in range(c + 1, n):
            row = shift(w, r * n)
            if row[c] != 0.0:
                factor = row[c] * inverse
                row[c] = factor
                for j in range(c + 1, n):
                    row[j] -= factor * top[j]
        top[c] = inverse  # the diagonal is only ever divided by
    return True


@compiled
def solve(n, m, w, pivots, b):
    """Overwrite b, n rows and m columns, by the solution for all columns."""
    for c in range(n):
        best = int(pivots[c])
        if best != c:
            for j in range(m):
                b[c * m + j], b[best * m + j] = b[best * m + j], b[c * m + j]
    for r in range(n):
        for c in range(r):
            factor = w[r * n + c]
            if factor != 0.0:
                for j in range(m):
                    b[r * m + j] -= factor * b[c * m + j]
    for r in range(n - 1, -1, -1):
        for c in range(r + 1, n):
            factor = w[r * n + c]
            if factor != 0.0:
                for j in range(m):
                    b[r * m + j] -= factor * b[c * m + j]
        for j in range(m):
            b[r * m + j] *= w[r * n + r]


@compiled
def stiff_attempt(
    d,
    t,
    h,
    z,
    p,
    segment,
    f0,
    k,
    z_new,
    u,
    entries,
    jacobian,
    drift,
    w,
    pivots,
    u0,
    direction,
    tableau,
    rtol,
    floors,
):
    """One step of size h from (t, z); returns its error in units of the tolerance.

    ``f0`` holds z'(t), ``u0`` the inputs at t, `prepare` has filled ``jacobian`` and ``drift``; ``k`` takes
    the eight stages.
    """
    n, m, n_inputs = d[N_STATES], d[N_COLUMNS], d[N_INPUTS]
    size = n * (1 + m)
    if not factorise(d, h, jacobian, w, pivots):
        return math.inf
    for stage in range(8):
        r = shift(k, stage * size)
        if stage == 0:
            for i in range(size):
                r[i] = f0[i]
        else:
            for i in range(size):
                z_new[i] = z[i]
            for j in range(stage):
                weight, earlier = tableau[A_AT + 8 * stage + j], shift(k, j * size)
                for i in range(size):
                    z_new[i] += weight * earlier[i]
            field(d, t + tableau[NODE_AT + stage] * h, z_new, p, segment, u, entries, r)
            for j in range(stage):
                weight, earlier = tableau[C_AT + 8 * stage + j] / h, shift(k, j * size)
                for i in range(size):
                    r[i] += weight * earlier[i]
        if n_inputs > 0:
            lag = h * tableau[D_AT + stage]
            for i in range(n):
                r[i] += lag * drift[i]
            for i in range(n_inputs):
                direction[i] = lag * segment[1 + n_inputs + i]
        solve(n, 1, w, pivots, r)
        if m > 0:
            call(d[CURVATURE], z, p, u0, r, direction, entries)
            spread(d, entries, shift(z, n), shift(r, n))
            solve(n, m, w, pivots, shift(r, n))
    last = shift(k, 7 * size)
    for i in range(size):
        z_new[i] += last[i]
    return error_norm(last, z, z_new, n, rtol, floors)


@compiled
def stiff_interpolate(d, theta, z, k, z_new, tableau, out):
    """z at t + theta h, fourth order, from an accepted step."""
    size = d[N_STATES] * (1 + d[N_COLUMNS])
    rest = 1.0 - theta
    for i in range(size):
        out[i] = rest * z[i] + theta * z_new[i]
    for j in range(8):
        weight = tableau[H_AT + j] + theta * (tableau[H_AT + 8 + j] + theta * tableau[H_AT + 16 + j])
        weight *= theta * rest
        stage = shift(k, j * size)
        for i in range(size):
            out[i] += weight * stage[i]


@compiled
def interpolation_doubt(d, z, k, z_new, tableau, out, rtol, floors):
    """How much the interpolant's last term contributes at most, in units of the tolerance.

    The error estimate looks at the end of the step only, where stiff components are damped; inside a long
    step they may be followed much less well.
    """
    n = d[N_STATES]
    size = n * (1 + d[N_COLUMNS])
    for i in range(n):
        out[i] = 0.0
    for j in range(8):
        weight = LARGEST_LAST_TERM * tableau[H_AT + 16 + j]
        stage = shift(k, j * size)
        for i in range(n):
            out[i] += weight * stage[i]
    return error_norm(out, z, z_new, n, rtol, floors)
