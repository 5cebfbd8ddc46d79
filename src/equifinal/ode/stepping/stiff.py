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

from equifinal.machine.pointers import DoublePointer, IntegerPointer, call, shift
from equifinal.ode.stepping.field import field, spread, squared_error
from equifinal.ode.stepping.layout import (
    CURVATURE,
    DRIFT,
    JACOBIAN,
    N_COLUMNS,
    N_INPUTS,
    N_STATES,
    NNZ_JACOBIAN,
    PATTERNS,
)
from equifinal.ode.stepping.rodas5p import A_AT, C_AT, D_AT, GAMMA, H_AT, NODE_AT
from equifinal.ode.stepping.structs import Lane, Work, compiled, inlined

DIAGONAL = 1e4  # how much larger another pivot, in units of its row, must be to be preferred to the diagonal
LARGEST_LAST_TERM = 27 / 256  # of theta^3 (1 - theta) on a step


@inlined
def prepare(lane: Lane, work: Work, segment: DoublePointer) -> None:
    """What all attempts from (t, z) share: u, the entries of J, and f_t. To be called after `field` at (t, z)."""
    d, u = lane.system, work.u
    for i in range(d[N_INPUTS]):
        work.u0[i] = u[i]
    if d[N_COLUMNS] == 0:
        call(d[JACOBIAN], work.z, lane.p, u, u, u, work.jacobian)
    else:
        for e in range(d[NNZ_JACOBIAN]):
            work.jacobian[e] = work.entries[d[N_STATES] + e]
    if d[N_INPUTS] > 0:
        call(d[DRIFT], work.z, lane.p, u, u, shift(segment, 1 + d[N_INPUTS]), work.drift)


@inlined
def factorise(
    d: IntegerPointer, h: float, jacobian: DoublePointer, w: DoublePointer, pivots: DoublePointer, rows: DoublePointer
) -> bool:
    """LU factors of I/(gamma h) - J with row exchanges, in place; False if singular or not finite.

    Zero entries are passed over, which makes nearly banded systems cheap. The diagonal is preferred as pivot, for then
    zeros stay zeros, and a state's rounding errors are those of its own slope. Rows are compared in units of their
    largest entries, which ``rows`` takes, as states may have any units. After the n pivots come two numbers for each
    row: the first and the last column with anything in it.
    """
    n, count = d[N_STATES], d[NNZ_JACOBIAN]
    pattern = shift(d, PATTERNS)
    for i in range(n * n):
        w[i] = 0.0
    for e in range(count):
        w[pattern[e] * n + pattern[count + e]] = -jacobian[e]
    for i in range(n):
        w[i * n + i] += 1.0 / (GAMMA * h)
        rows[i] = abs(w[i * n + i])
    for e in range(count):
        rows[pattern[e]] = max(rows[pattern[e]], abs(jacobian[e]))
    for c in range(n):
        best, largest = c, DIAGONAL * abs(w[c * n + c])
        for r in range(c + 1, n):
            if w[r * n + c] != 0.0 and abs(w[r * n + c]) * rows[c] > largest * rows[r]:
                best, largest = r, abs(w[r * n + c]) * rows[c] / rows[r]
        if not (largest > 0.0 and math.isfinite(largest)):
            return False
        pivots[c] = float(best)
        top = shift(w, c * n)
        if best != c:
            other = shift(w, best * n)
            for j in range(n):
                top[j], other[j] = other[j], top[j]
            rows[best] = rows[c]
        inverse = 1.0 / top[c]
        for r in range(c + 1, n):
            row = shift(w, r * n)
            if row[c] != 0.0:
                factor = row[c] * inverse
                row[c] = factor
                for j in range(c + 1, n):
                    row[j] -= factor * top[j]
        top[c] = inverse  # the diagonal is only ever divided by
    for r in range(n):
        first, last, row = 0, n - 1, shift(w, r * n)
        while first < r and row[first] == 0.0:
            first += 1
        while last > r and row[last] == 0.0:
            last -= 1
        pivots[n + 2 * r], pivots[n + 2 * r + 1] = float(first), float(last)
    return True


@compiled
def solve(n: int, m: int, w: DoublePointer, pivots: DoublePointer, b: DoublePointer) -> None:
    """Overwrite b, n rows and m columns, by the solution for all columns."""
    for c in range(n):
        best = int(pivots[c])
        if best != c:
            for j in range(m):
                b[c * m + j], b[best * m + j] = b[best * m + j], b[c * m + j]
    for r in range(n):
        for c in range(int(pivots[n + 2 * r]), r):
            factor = w[r * n + c]
            if factor != 0.0:
                for j in range(m):
                    b[r * m + j] -= factor * b[c * m + j]
    for r in range(n - 1, -1, -1):
        for c in range(r + 1, int(pivots[n + 2 * r + 1]) + 1):
            factor = w[r * n + c]
            if factor != 0.0:
                for j in range(m):
                    b[r * m + j] -= factor * b[c * m + j]
        for j in range(m):
            b[r * m + j] *= w[r * n + r]


@compiled
def stiff_attempt(lane: Lane, work: Work, segment: DoublePointer, t: float, h: float, controlled: int) -> float:
    """One step of size h from (t, z); returns the square of its error in units of the tolerance.

    ``f0`` holds z'(t), `prepare` has filled ``u0``, ``jacobian`` and ``drift``; ``k`` takes the eight stages.
    """
    d, tableau, z, z_new, w, pivots = lane.system, lane.tableau, work.z, work.z_new, work.w, work.pivots
    n, m, n_inputs = d[N_STATES], d[N_COLUMNS], d[N_INPUTS]
    size = n * (1 + m)
    if not factorise(d, h, work.jacobian, w, pivots, work.spare):
        return math.inf
    for stage in range(8):
        r = shift(work.k, stage * size)
        if stage == 0:
            for i in range(size):
                r[i] = work.f0[i]
        else:
            for i in range(size):
                z_new[i] = z[i]
            for j in range(stage):
                weight, earlier = tableau[A_AT + 8 * stage + j], shift(work.k, j * size)
                for i in range(size):
                    z_new[i] += weight * earlier[i]
            field(lane, work, t + tableau[NODE_AT + stage] * h, segment, z_new, r)
            for j in range(stage):
                weight, earlier = tableau[C_AT + 8 * stage + j] / h, shift(work.k, j * size)
                for i in range(size):
                    r[i] += weight * earlier[i]
        if n_inputs > 0:
            lag = h * tableau[D_AT + stage]
            for i in range(n):
                r[i] += lag * work.drift[i]
            for i in range(n_inputs):
                work.direction[i] = lag * segment[1 + n_inputs + i]
        solve(n, 1, w, pivots, r)
        if m > 0:
            call(d[CURVATURE], z, lane.p, work.u0, r, work.direction, work.entries)
            spread(d, work.entries, shift(z, n), shift(r, n))
            solve(n, m, w, pivots, shift(r, n))
    last = shift(work.k, 7 * size)
    for i in range(size):
        z_new[i] += last[i]
    return squared_error(lane, work, last, controlled)


@inlined
def stiff_interpolate(lane: Lane, work: Work, theta: float) -> None:
    """z at t + theta h into ``middle``, fourth order, from an accepted step."""
    size = lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])
    tableau, middle, rest = shift(lane.tableau, H_AT), work.middle, 1.0 - theta
    for i in range(size):
        middle[i] = rest * work.z[i] + theta * work.z_new[i]
    for j in range(8):
        weight = theta * rest * (tableau[j] + theta * (tableau[8 + j] + theta * tableau[16 + j]))
        stage = shift(work.k, j * size)
        for i in range(size):
            middle[i] += weight * stage[i]


@compiled
def interpolation_doubt(lane: Lane, work: Work, controlled: int) -> float:
    """How much the interpolant's last term contributes at most: the square, in units of the tolerance.

    The error estimate looks at the end of the step only, where stiff components are damped; inside a long
    step they may be followed much less well.
    """
    size = lane.system[N_STATES] * (1 + lane.system[N_COLUMNS])
    for i in range(controlled):
        work.middle[i] = 0.0
    for j in range(8):
        weight = LARGEST_LAST_TERM * lane.tableau[H_AT + 16 + j]
        stage = shift(work.k, j * size)
        for i in range(controlled):
            work.middle[i] += weight * stage[i]
    return squared_error(lane, work, work.middle, controlled)
