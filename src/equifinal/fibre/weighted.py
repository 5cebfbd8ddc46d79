r"""Roots with the weights that they have in the density of c,

.. math:: p_C(c) = \int \sum_k \frac{p(\theta_I, g_k)}{|\det \partial\xi/\partial\theta_D|} d\theta_I.

Rational charts are computed without refinement (`equifinal.fibre.direct`), which is what makes the integral cheap
beside an ODE solve. The errors are bounded along with the numbers, for arguments that are off by a few units in the
last place, as the general path assumes too. A point is decided here only if the bounds leave no choice: theta_D
certainly outside the support, or certainly inside with theta_D, xi = c and the determinant accurate. All others are
left to the general path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.compiled import compiled
from equifinal.fibre.chart import Chart, Roots, TriangularChart
from equifinal.machine.arrays import uncounted
from equifinal.machine.pointers import call_on
from equifinal.prior import UNIFORM, log_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ACCURATE = 1e-10  # bound on relative errors of theta_D and of the determinant
# Bound on relative errors of xi. The terms of xi are then below 1e5 |c|, as each is uncertain by half an epsilon at
# least; rounding in these moves theta_D by at most 3e-6 of itself, which the general path calls certain.
MATCHING = 1e-11
# Bounds are multiplied by this before a border is said to be passed. The general path allows for 8 times what rounding
# of the arguments moves, which is at most the bound, and for rounding on the way, at most the bound again.
MARGIN = 16.0
_OPEN = -1


class Weighted(NamedTuple):
    """Roots at N points of theta_I for each of n values of c, ``theta`` (n, N, most, d).

    ``log_weight`` (n, N, most) is log p(theta) - log |det dxi/dtheta_D|; the first ``found`` (n, N) entries are roots,
    and after these theta is NaN and the log weight minus infinity. ``status`` (n, N) is a `RootStatus`.
    """

    theta: Array
    log_weight: Array
    found: Integers
    status: Integers


def weighted(chart: Chart, table: Array, free: Array, c: Array) -> Weighted:
    """`table` is that of the priors; theta_I (n, N, r) and c (n, q) are contiguous."""
    code = chart.direct if isinstance(chart, TriangularChart) else None
    n, points, r = free.shape
    if code is None:
        roots = chart.roots(free.reshape(n * points, r), np.repeat(c, points, axis=0))
        found = roots.theta, _log_weights(roots.theta, roots.log_det, roots.found, table), roots.found, roots.status
        return Weighted(*(a.reshape(n, points, *a.shape[1:]) for a in found))
    result = Weighted(*_direct(code.addresses["direct"], chart.free, chart.dependent, table, free, c))
    still_open = np.nonzero(result.status == _OPEN)
    if len(still_open[0]):
        _fill(result, still_open, chart.roots(free[still_open], c[still_open[0]]), table)
    return result


def _fill(result: Weighted, at: tuple[Integers, ...], roots: Roots, table: Array) -> None:
    result.theta[at] = roots.theta
    result.log_weight[at] = _log_weights(roots.theta, roots.log_det, roots.found, table)
    result.found[at] = roots.found
    result.status[at] = roots.status


@compiled
def _log_weights(theta, log_det, found, table):
    n, most, d = theta.shape
    result = np.full((n, most), -np.inf)
    for i in range(n):
        for k in range(found[i]):
            total = -log_det[i, k]
            for j in range(d):
                kernel = int(table[j, 0])
                total += log_kernel(kernel, table[j, 1], table[j, 2], table[j, 3], theta[i, k, j]) - table[j, 4]
            result[i, k] = total
    return result


@compiled
def _direct(address, free_at, dependent, table, free, c):
    n, points, r = free.shape
    q, d = c.shape[1], table.shape[0]
    size = 2 * q + 1
    theta, log_weight = np.empty((n, points, 1, d)), np.empty((n, points, 1))
    found, status = np.zeros((n, points), np.int64), np.zeros((n, points), np.int64)
    bounds, curved, constant = np.empty((d, 2)), np.empty(d, np.int64), 0.0
    shaped = 0
    for k in range(d):
        bounds[k, 0], bounds[k, 1] = table[k, 5], table[k, 6]
        constant -= table[k, 4]
        if int(table[k, 0]) != UNIFORM:
            curved[shaped] = k
            shaped += 1
    # counting references would cost more than the arithmetic; these tuples keep the arrays alive
    given = free_at, dependent, table, free, c, theta, log_weight, found, status
    own = bounds, curved[:shaped], np.empty(d), np.empty(r), np.empty(q), np.empty(2 * size)
    memory = np.full(d, np.nan), np.empty(d)
    free_at, dependent, table, free, c, theta, log_weight, found, status = uncounted(given)
    bounds, curved, point, x, value, out = uncounted(own)
    seen, kernels = uncounted(memory)
    for i in range(n):
        for j in range(q):
            value[j] = c[i, j]
        for m in range(points):
            log_weight[i, m, 0] = -np.inf
            within = True
            for k in range(r):
                x[k] = free[i, m, k]
                at = free_at[k]
                point[at] = x[k]
                within = within and bounds[at, 0] < x[k] < bounds[at, 1]
            verdict = 0
            if within:
                call_on(address, x, value, out)
                verdict = _judged(out, value, bounds, dependent)
            if verdict == 1:
                for k in range(q):
                    point[dependent[k]] = out[k]
                total = constant - math.log(abs(out[2 * q]))
                for k in curved:
                    # coordinates that c alone decides are the same at all points
                    if point[k] != seen[k]:
                        seen[k] = point[k]
                        kernels[k] = log_kernel(int(table[k, 0]), table[k, 1], table[k, 2], table[k, 3], point[k])
                    total += kernels[k]
                for k in range(d):
                    theta[i, m, 0, k] = point[k]
                log_weight[i, m, 0] = total
                found[i, m] = 1
            else:
                for k in range(d):
                    theta[i, m, 0, k] = np.nan
                status[i, m] = verdict
    assert len(given) + len(own) + len(memory) > 0  # alive until here
    return given[5], given[6], given[7], given[8]


@compiled
def _judged(out, c, bounds, dependent):
    """1: a root in the support; 0: none; -1: not for this path to say."""
    q = c.shape[0]
    size = 2 * q + 1
    outside, unclear = False, False
    for k in range(q):
        value, error = out[k], MARGIN * out[size + k]
        if not error < np.inf:
            return _OPEN
        lower, upper = bounds[dependent[k], 0], bounds[dependent[k], 1]
        if not (lower < value - error and value + error < upper):
            unclear = True
            outside = outside or value + error <= lower or upper <= value - error
        elif not out[size + k] <= ACCURATE * abs(value):
            unclear = True
    if outside:
        return 0
    for j in range(q):
        unclear = unclear or not abs(out[q + j] - c[j]) + out[size + q + j] <= MATCHING * abs(c[j])
    if unclear or not out[2 * size - 1] <= ACCURATE * abs(out[2 * q]) or not 0.0 < abs(out[2 * q]) < np.inf:
        return _OPEN
    return 1
