r"""Roots with the weights that they have in the density of c,

.. math:: p_C(c) = \int \sum_k \frac{p(\theta_I, g_k)}{|\det \partial\xi/\partial\theta_D|} d\theta_I.

Rational charts are computed without refinement (`equifinal.fibre.direct`), which is what makes the integral cheap
beside an ODE solve. The errors are bounded along with the numbers, for arguments that are off by a few units in the
last place, as the general path assumes too. A point is decided here only if the bounds leave no choice: theta_D
certainly outside the support, or certainly inside with theta_D, xi = c and the determinant accurate. All others are
left to the general path. What is decided here is certain, even where the general path, whose own estimate of
uncertainty is rounded, would call it unresolved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre.chart import Chart, Roots, TriangularChart
from equifinal.machine.arrays import uncounted
from equifinal.machine.compiled import compiled
from equifinal.machine.pointers import call_on
from equifinal.problem.prior_families import UNIFORM, log_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ACCURATE = 1e-10  # bound on relative errors of theta_D and of the determinant
# Bound on relative errors of xi. The terms of xi are then below 1e5 |c|, as each is uncertain by half an epsilon at
# least; rounding in these moves theta_D by at most 3e-6 of itself, which is certain by the general path's measure.
MATCHING = 1e-11
# Bounds are multiplied by this before a border is said to be passed. The general path allows for 8 times what rounding
# of the arguments moves, which is at most the bound, and for rounding on the way, at most the bound again.
MARGIN = 16.0
ROOT, NONE, OPEN = 1, 0, -1


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
        log_weight = _log_weights(roots.theta, roots.log_det, roots.found, table)
        return Weighted(
            roots.theta.reshape(n, points, *roots.theta.shape[1:]),
            log_weight.reshape(n, points, log_weight.shape[1]),
            roots.found.reshape(n, points),
            roots.status.reshape(n, points),
        )
    result = Weighted(*_direct(code.addresses["direct"], chart.free, chart.dependent, table, free, c))
    still_open = np.nonzero(result.status == OPEN)
    if len(still_open[0]):
        _fill(result, still_open, chart.roots(free[still_open], c[still_open[0]]), table)
    return result


class Points(NamedTuple):
    """Roots without their weights, as in `Roots`."""

    theta: Array
    found: Integers
    status: Integers


def points(chart: Chart, table: Array, free: Array, c: Array, labels: Array | None = None) -> Points:
    """All roots at theta_I (n, r) over c, by the direct path where there is one; arguments as for `Chart.roots`."""
    if labels is None and isinstance(chart, TriangularChart) and chart.direct is not None:
        c = np.broadcast_to(c, (len(free), c.shape[1])).copy()
        made = weighted(chart, table, np.ascontiguousarray(free[:, None]), c)
        return Points(made.theta[:, 0], made.found[:, 0], made.status[:, 0])
    roots = chart.roots(free, c, labels)
    return Points(roots.theta, roots.found, roots.status)


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
    """Give the points that are decided, and those with status `OPEN`."""
    n, points, r = free.shape
    q, d = c.shape[1], table.shape[0]
    size = 2 * q + 1  # theta_D, xi, determinant; then bounds on their errors
    theta, log_weight = np.empty((n, points, 1, d)), np.empty((n, points, 1))
    found, status = np.zeros((n, points), np.int64), np.zeros((n, points), np.int64)
    bounds, curved = np.empty((d, 2)), np.empty(d, np.int64)
    constant, curves = 0.0, 0
    for k in range(d):
        bounds[k, 0], bounds[k, 1] = table[k, 5], table[k, 6]
        constant -= table[k, 4]
        if int(table[k, 0]) != UNIFORM:
            curved[curves] = k
            curves += 1
    # counting references would cost more than the arithmetic, as would functions; these tuples keep the arrays alive
    given = free_at, dependent, table, free, c, theta, log_weight, found, status
    own = bounds, curved, np.empty(d), np.empty(r), np.empty(q), np.empty(2 * size), np.full(d, np.nan), np.empty(d)
    free_at, dependent, table, free, c, theta, log_weight, found, status = uncounted(given)
    bounds, curved, point, x, value, out, seen, kernels = uncounted(own)
    for i in range(n):
        for j in range(q):
            value[j] = c[i, j]
        for m in range(points):
            within = True
            for k in range(r):
                x[k] = free[i, m, k]
                at = free_at[k]
                point[at] = x[k]
                within &= (bounds[at, 0] < x[k]) & (x[k] < bounds[at, 1])
            verdict = NONE
            det = 1.0
            if within:
                call_on(address, x, value, out)
                det = abs(out[2 * q])
                good = (det > 0.0) & (det < np.inf) & (out[2 * size - 1] <= ACCURATE * det)
                finite, outside = True, False
                for k in range(q):
                    error, at = MARGIN * out[size + k], dependent[k]
                    least, most = out[k] - error, out[k] + error
                    finite &= error < np.inf
                    outside |= (most <= bounds[at, 0]) | (bounds[at, 1] <= least)
                    good &= (bounds[at, 0] < least) & (most < bounds[at, 1])
                    good &= out[size + k] <= ACCURATE * abs(out[k])
                    good &= abs(out[q + k] - value[k]) + out[size + q + k] <= MATCHING * abs(value[k])
                    point[at] = out[k]
                if good:
                    verdict = ROOT
                elif not (finite and outside):
                    verdict = OPEN
            if verdict == ROOT:
                total = constant - math.log(det)
                for j in range(curves):
                    k = curved[j]
                    if point[k] != seen[k]:  # what c alone decides is the same at all points
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
                log_weight[i, m, 0] = -np.inf
                status[i, m] = verdict
    assert len(given) + len(own) > 0  # alive until here
    return given[5], given[6], given[7], given[8]
