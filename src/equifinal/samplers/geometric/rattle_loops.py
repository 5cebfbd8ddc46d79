"""The loops of `rattle`, where their mathematics is told: compiled once for all constraints.

Chains share nothing but room to work in, so that a chain's move does not depend on the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.arrays import call, uncounted
from equifinal.machine.compiled import compiled

if TYPE_CHECKING:
    from equifinal.samplers.geometric.rattle import Move, Projection

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

OK, NEWTON_FAILED, NOT_REVERSIBLE, RANK_DEFICIENT, NOT_FINITE = range(5)
LEAST_SINE = 1e-10  # of the angle between a row of Dxi and the span of those before it


class Rules(NamedTuple):
    """What holds for all chains."""

    f: int
    g: int
    data: Integers
    tolerance: float
    iterations: int
    reversibility: float


class Place(NamedTuple):
    """What is known about the point where a chain is, and room to work in."""

    xi: Array
    jacobian: Array
    normal: Array  # the basis N: q orthonormal rows that span the normal space
    force: Array
    level: Array  # c
    matrix: Array
    correction: Array
    before: Array  # the point that the last step left
    p: Array  # the momentum at the start of the move, tangential
    back_u: Array
    back_p: Array


@compiled
def all_finite(x: Array) -> bool:
    finite = True
    for k in range(x.size):
        finite &= math.isfinite(x[k])
    return finite


@compiled
def largest(x: Array) -> float:
    size = 0.0
    for k in range(x.size):
        size = max(size, abs(x[k]))
    return size


@compiled
def dot(x: Array, y: Array) -> float:
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@compiled
def copy(x: Array, sign: float, target: Array) -> None:
    for k in range(x.size):
        target[k] = sign * x[k]


@compiled
def make_tangential(normal: Array, rows: int, p: Array) -> None:
    """p - N^T N p, for the first ``rows`` of N."""
    for i in range(rows):
        along = 0.0
        for k in range(p.size):
            along += normal[i, k] * p[k]
        for k in range(p.size):
            p[k] -= along * normal[i, k]


@compiled
def orthonormalise(jacobian: Array, normal: Array) -> tuple[int, float]:
    """N and log J from Dxi = L N with L lower triangular: Gram-Schmidt, twice, which is enough.

    Each row is first divided by its largest entry, and L_ii, what is left of row i beyond the span of the rows before
    it, is judged against the whole row: no scale of xi matters.
    """
    log_j = 0.0
    for i in range(jacobian.shape[0]):
        given, row = jacobian[i], normal[i]
        scale = largest(given)
        if not all_finite(given):
            return NOT_FINITE, np.nan
        if scale == 0.0:
            return RANK_DEFICIENT, -np.inf
        for k in range(row.size):
            row[k] = given[k] / scale
        whole = math.sqrt(dot(row, row))
        make_tangential(normal, i, row)
        make_tangential(normal, i, row)
        left = math.sqrt(dot(row, row))
        if left <= LEAST_SINE * whole:
            return RANK_DEFICIENT, -np.inf
        for k in range(row.size):
            row[k] /= left
        log_j += math.log(scale) + math.log(left)
    return OK, log_j


@compiled
def survey(rules: Rules, place: Place, u: Array) -> tuple[int, float]:
    """Fill in xi, Dxi, N and the force at u; a status and log J."""
    status, log_j = OK, 0.0
    if place.xi.size > 0:
        if call(rules.f, (u, rules.data, place.xi, place.jacobian)) != 0 or not all_finite(place.xi):
            return NOT_FINITE, np.nan
        status, log_j = orthonormalise(place.jacobian, place.normal)
    if rules.g != 0 and (call(rules.g, (u, rules.data, place.force)) != 0 or not all_finite(place.force)):
        return NOT_FINITE, np.nan
    return status, log_j


@compiled
def solve(a: Array, b: Array) -> bool:
    """b <- a^-1 b by elimination with row exchanges, a destroyed; False if singular.

    Rows are divided by their largest entries first, or the exchanges would depend on their scales.
    """
    n = b.size
    for i in range(n):
        scale = largest(a[i])
        if not scale > 0.0:
            return False
        for k in range(n):
            a[i, k] /= scale
        b[i] /= scale
    for i in range(n):
        pivot = i
        for j in range(i + 1, n):
            if abs(a[j, i]) > abs(a[pivot, i]):
                pivot = j
        if not abs(a[pivot, i]) > 0.0:
            return False
        if pivot != i:
            for k in range(i, n):
                a[i, k], a[pivot, k] = a[pivot, k], a[i, k]
            b[i], b[pivot] = b[pivot], b[i]
        for j in range(i + 1, n):
            factor = a[j, i] / a[i, i]
            for k in range(i + 1, n):
                a[j, k] -= factor * a[i, k]
            b[j] -= factor * b[i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= a[i, k] * b[k]
        b[i] /= a[i, i]
    return True


@compiled
def return_to_level(rules: Rules, place: Place, u: Array) -> tuple[bool, int]:
    """Newton's method for u - N^T mu on the level set, N as it is; whether it converged, and how many iterations.

    Each is (Dxi(u) N^T) mu = xi(u) - c, followed by u <- u - N^T mu.
    """
    q, d = place.normal.shape
    if q == 0:
        return True, 0
    for iteration in range(1, rules.iterations + 1):
        if call(rules.f, (u, rules.data, place.xi, place.jacobian)) != 0:
            return False, iteration
        for i in range(q):
            place.correction[i] = place.xi[i] - place.level[i]
            for j in range(q):
                place.matrix[i, j] = 0.0
                for k in range(d):
                    place.matrix[i, j] += place.jacobian[i, k] * place.normal[j, k]
        if not solve(place.matrix, place.correction) or not all_finite(place.correction):
            return False, iteration
        size = 0.0
        for k in range(d):
            change = 0.0
            for i in range(q):
                change += place.correction[i] * place.normal[i, k]
            u[k] -= change
            size = max(size, abs(change))
        if size <= rules.tolerance * (1.0 + largest(u)):
            return True, iteration
    return False, rules.iterations


@compiled
def kick(rules: Rules, place: Place, time: float, p: Array) -> None:
    """Let the force act for a time, within the tangent space."""
    if rules.g != 0:
        for k in range(p.size):
            p[k] += time * place.force[k]
    make_tangential(place.normal, place.xi.size, p)


@compiled
def travel(
    rules: Rules, place: Place, log_j: float, u: Array, p: Array, eps: float, steps: int
) -> tuple[int, float, int]:
    """Take the steps, in place, from a point that was surveyed; a status, log J at the end, Newton iterations."""
    spent = 0
    for _ in range(steps):
        kick(rules, place, eps / 2, p)
        for k in range(u.size):
            place.before[k] = u[k]
            u[k] += eps * p[k]
        converged, count = return_to_level(rules, place, u)
        spent += count
        if not converged:
            return NEWTON_FAILED, log_j, spent
        status, log_j = survey(rules, place, u)
        if status != OK:
            return status, log_j, spent
        for k in range(u.size):
            p[k] = (u[k] - place.before[k]) / eps
        kick(rules, place, eps / 2, p)
        if not all_finite(u) or not all_finite(p):
            return NOT_FINITE, log_j, spent
    return OK, log_j, spent


@compiled
def same(x: Array, y: Array, sign: float, tolerance: float) -> bool:
    """Whether x and ``sign`` y agree."""
    allowed = tolerance * (1.0 + largest(y))
    agree = True
    for k in range(x.size):
        agree &= abs(x[k] - sign * y[k]) <= allowed
    return agree


@compiled
def forth_and_back(
    rules: Rules, place: Place, u: Array, eps: float, steps: int, end_u: Array, end_p: Array
) -> tuple[int, float, float, int]:
    """One move from u with the momentum in ``place``; a status, log J at both ends, Newton iterations."""
    p, back_u, back_p = place.p, place.back_u, place.back_p
    status, start = survey(rules, place, u)
    if status != OK:
        return status, start, start, 0
    if not (all_finite(u) and all_finite(p) and math.isfinite(eps) and eps != 0.0):
        return NOT_FINITE, start, start, 0
    make_tangential(place.normal, place.xi.size, p)
    copy(place.xi, 1.0, place.level)
    copy(u, 1.0, end_u)
    copy(p, 1.0, end_p)
    status, end, spent = travel(rules, place, start, end_u, end_p, eps, steps)
    if status != OK or rules.reversibility == np.inf:
        return status, start, end, spent
    copy(end_u, 1.0, back_u)
    copy(end_p, -1.0, back_p)
    status, _, more = travel(rules, place, end, back_u, back_p, eps, steps)
    returned = same(back_u, u, 1.0, rules.reversibility) and same(back_p, p, -1.0, rules.reversibility)
    return OK if status == OK and returned else NOT_REVERSIBLE, start, end, spent + more


@compiled
def move_chains(
    rules: Rules, place: Place, start_u: Array, start_p: Array, eps: Array, steps: Integers, moved: Move
) -> None:
    """Fill in ``moved``, a `Move`."""
    rules, place = uncounted(rules), uncounted(place)
    for i in range(len(start_u)):
        u, p, end_u, end_p = uncounted((start_u[i], start_p[i], moved.u[i], moved.p[i]))
        copy(p, 1.0, place.p)
        moved.status[i], moved.log_j_start[i], moved.log_j_end[i], moved.newton_iterations[i] = forth_and_back(
            rules, place, u, eps[i], steps[i], end_u, end_p
        )
        moved.kinetic_drop[i] = (dot(place.p, place.p) - dot(end_p, end_p)) / 2
        if moved.status[i] != OK:
            copy(u, 1.0, end_u)
            copy(p, 1.0, end_p)
            moved.log_j_end[i], moved.kinetic_drop[i] = moved.log_j_start[i], 0.0


@compiled
def project_chains(rules: Rules, place: Place, u: Array, projected: Projection) -> None:
    """Make the momenta of ``projected``, a `Projection`, tangential in place."""
    rules, place = uncounted(rules), uncounted(place)
    for i in range(len(u)):
        here, p = uncounted((u[i], projected.p[i]))
        projected.status[i], projected.log_j[i] = survey(rules, place, here)
        if projected.status[i] == OK:
            make_tangential(place.normal, place.xi.size, p)
            if not all_finite(p):
                projected.status[i] = NOT_FINITE
        if projected.status[i] != OK:
            copy(p, np.nan, p)
