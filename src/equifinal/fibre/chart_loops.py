"""The loops of `chart`, where their mathematics is told: steps, refinement, judgement, point after point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre.polynomial import real_roots
from equifinal.machine.arrays import uncounted
from equifinal.machine.compiled import compiled
from equifinal.machine.pointers import call_on

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

RATIONAL, POLYNOMIAL = 0, 1
ACCURACY = 1e-9  # of xi = c, relative, that every root must reach
REFINED = 1e-14  # mismatch of a root that Newton's method need not improve
CERTAIN = 1e-4  # relative uncertainty of a root, from rounding in c, beyond which the status says so
_EPS = 2.220446049250313e-16


@compiled
def factorise(a: Array, pivots: Integers) -> float:
    """LU with row scaling and pivoting, in place; returns log |det|, minus infinity if singular."""
    n = a.shape[0]
    total = 0.0
    for i in range(n):
        largest, row = 0.0, i
        for j in range(i, n):
            size = 0.0
            for k in range(i, n):
                size = max(size, abs(a[j, k]))
            share = abs(a[j, i]) / size if size > 0.0 else 0.0
            if share > largest:
                largest, row = share, j
        if not largest > 0.0:
            return -np.inf
        pivots[i] = row
        if row != i:
            for k in range(n):
                a[i, k], a[row, k] = a[row, k], a[i, k]
        total += math.log(abs(a[i, i]))
        for j in range(i + 1, n):
            if a[j, i] != 0.0:
                a[j, i] /= a[i, i]
                for k in range(i + 1, n):
                    a[j, k] -= a[j, i] * a[i, k]
    return total


@compiled
def back_substitute(a: Array, pivots: Integers, b: Array) -> None:
    n = a.shape[0]
    for i in range(n):
        row = pivots[i]
        if row != i:
            b[i], b[row] = b[row], b[i]
    for i in range(n):
        for j in range(i):
            b[i] -= a[i, j] * b[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]


@compiled
def transposed_substitute(a: Array, pivots: Integers, b: Array) -> None:
    """Solve A^T x = b, given the factors of A."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            b[i] -= a[j, i] * b[j]
        b[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[j, i] * b[j]
    for i in range(n - 1, -1, -1):
        row = pivots[i]
        if row != i:
            b[i], b[row] = b[row], b[i]


@compiled
def mismatch(out: Array, c: Array, q: int, labels: int, theta: Array, scale: Array) -> float:
    """The largest |xi - c|, each relative to the terms that xi consists of, which are left in `scale`."""
    d = theta.shape[0]
    worst = 0.0
    for j in range(q):
        scale[j] = abs(c[j])
        for k in range(d):
            scale[j] += abs(out[q + labels + j * d + k] * theta[k])
        error = abs(out[j] - c[j])
        if not math.isfinite(error):
            return np.inf
        if error > 0.0:
            worst = max(worst, error / scale[j])
    return worst


@compiled
def refine(
    theta: Array,
    trial: Array,
    c: Array,
    address: int,
    q: int,
    labels: int,
    dependent: Integers,
    out: Array,
    matrix: Array,
    pivots: Integers,
    delta: Array,
    scale: Array,
) -> tuple[float, float, float]:
    """Newton's method on xi = c in theta_D, in place.

    Returns the mismatch, log |det dxi/dtheta_D|, and by how much rounding in c may move theta_D, relatively. What is
    left in `matrix` and `pivots` are the factors at the end, in `scale` the terms of xi.
    """
    call_on(address, theta, theta, out)
    error = mismatch(out, c, q, labels, theta, scale)
    log_det = _factorise_at(out, matrix, pivots, q, labels, dependent, theta.shape[0])
    for _ in range(20):
        if log_det == -np.inf or not error > REFINED:
            break
        for j in range(q):
            delta[j] = c[j] - out[j]
        back_substitute(matrix, pivots, delta)
        trial[:] = theta
        for k in range(q):
            trial[dependent[k]] += delta[k]
        call_on(address, trial, trial, out)
        better = mismatch(out, c, q, labels, trial, scale)
        if not better < 0.5 * error:
            call_on(address, theta, theta, out)
            mismatch(out, c, q, labels, theta, scale)
            break
        theta[:] = trial
        error = better
        log_det = _factorise_at(out, matrix, pivots, q, labels, dependent, theta.shape[0])
    unsure = 0.0
    if log_det > -np.inf:
        for sign in (1.0, -1.0):  # two patterns of rounding errors
            for j in range(q):
                delta[j] = _EPS * scale[j] * (sign if j % 2 else 1.0)
            back_substitute(matrix, pivots, delta)
            for k in range(q):
                size = abs(theta[dependent[k]])
                if size > 0.0:
                    unsure = max(unsure, abs(delta[k]) / size)
    return error, log_det, unsure


@compiled
def _factorise_at(out, matrix, pivots, q, labels, dependent, d):
    for j in range(q):
        for k in range(q):
            matrix[j, k] = out[q + labels + j * d + dependent[k]]
    return factorise(matrix, pivots)


@compiled
def matches(
    out: Array,
    wanted: Array,
    q: int,
    labels: int,
    theta: Array,
    dependent: Integers,
    error: float,
    matrix: Array,
    pivots: Integers,
    delta: Array,
    scale: Array,
) -> bool:
    """Whether the labels have the values wanted, as closely as rounding in c allows to say.

    A label's value is uncertain by |g D^-1| times the uncertainty of c, with g its gradient in theta_D, besides the
    rounding in its own terms.
    """
    if wanted.shape[0] == 0:
        return True
    d = theta.shape[0]
    for i in range(labels):
        first = q + labels + (q + i) * d
        own = abs(out[q + i]) + abs(wanted[i])
        for k in range(d):
            own += abs(out[first + k] * theta[k])
        for k in range(q):
            delta[k] = out[first + dependent[k]]
        transposed_substitute(matrix, pivots, delta)
        for j in range(q):
            own += abs(delta[j]) * scale[j]
        if not abs(out[q + i] - wanted[i]) <= (4.0 * error + 64.0 * _EPS) * own:
            return False
    return True


@compiled
def inside(theta: Array, bounds: Array, dependent: Integers) -> bool:
    for k in dependent:  # noqa: SIM110 (compiled)
        if not bounds[k, 0] < theta[k] < bounds[k, 1]:
            return False
    return True


@compiled
def _is_new(theta, found, point, dependent):
    """Whether no root found before is the same to rounding."""
    for i in range(found):
        same = True
        for k in dependent:
            same = same and abs(theta[i, k] - point[k]) <= 1e-9 * (abs(theta[i, k]) + abs(point[k]))
        if same:
            return False
    return True


@compiled
def _nudged_call(address, point, shift, c, out, nudged, nudged_c):
    """A step's function at arguments moved by what they may be off: how far that moves it is its uncertainty."""
    for k in range(point.shape[0]):
        size = max(shift[k], 4.0 * _EPS * abs(point[k]))
        nudged[k] = point[k] + (size if k % 3 else -size)
    for j in range(c.shape[0]):
        nudged_c[j] = c[j] * (1.0 + (4.0 * _EPS if j % 2 else -4.0 * _EPS))
    call_on(address, nudged, nudged_c, out)


@compiled
def solve_points(
    blocks: Integers,
    targets: Integers,
    free_at: Integers,
    dependent: Integers,
    bounds: Array,
    address: int,
    size: int,
    q: int,
    labels: int,
    free: Array,
    c: Array,
    wanted: Array,
    most: int,
    exact: bool,
) -> tuple[Array, Array, Integers, Integers]:
    """Depth first through the steps; what rounding leaves undecided is tried, refined, and judged at the end."""
    n, r = free.shape
    d = bounds.shape[0]
    levels = blocks.shape[0]
    widest = 1
    for b in range(levels):
        widest = max(widest, blocks[b, 2])
    theta = np.full((n, most, d), np.nan)
    log_det = np.full((n, most), np.nan)
    count, status = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # counting references would cost more than the arithmetic; these tuples keep the arrays alive
    given = blocks, targets, free_at, dependent, bounds, free, c, wanted, theta, log_det, count, status
    vectors = np.zeros(d), np.empty(d), np.empty(d), np.zeros(d), np.empty(d)
    terms = np.empty(widest + 1), np.empty(widest + 1), np.zeros(widest + 1), np.empty(size), np.empty(q)
    roots = np.empty((levels, widest + 2)), np.empty((levels, widest + 2)), np.empty((2, widest + 3))
    places = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    system = np.empty((q, q)), np.empty(q, np.int64), np.empty(q), np.empty(q)
    blocks, targets, free_at, dependent, bounds, free, c, wanted, theta, log_det, count, status = uncounted(given)
    point, start, trial, shift, nudged = uncounted(vectors)
    coefficients, others, noise, out, nudged_c = uncounted(terms)
    found, slopes, work = uncounted(roots)
    numbers, position = uncounted(places)
    matrix, pivots, delta, scale = uncounted(system)
    for i in range(n):
        own = c[min(i, c.shape[0] - 1)]
        labelled = wanted[min(i, wanted.shape[0] - 1)]
        for k in range(r):
            point[free_at[k]] = free[i, k]
        if not inside(point, bounds, free_at):
            continue
        level, entering = 0, True
        while level >= 0:
            if level == levels:
                start[:] = point
                error, log, unsure = refine(
                    point, trial, own, address, q, labels, dependent, out, matrix, pivots, delta, scale
                )
                if error <= ACCURACY and log > -np.inf:
                    fits = inside(point, bounds, dependent) and matches(
                        out, labelled, q, labels, point, dependent, error, matrix, pivots, delta, scale
                    )
                    if fits and _is_new(theta[i], count[i], point, dependent):
                        theta[i, count[i]] = point
                        log_det[i, count[i]] = log
                        count[i] += 1
                        if unsure > CERTAIN:
                            status[i] = 1
                    elif fits and exact:
                        status[i] = 1  # two became one: another may have been lost
                elif exact and _near(start, shift, bounds, dependent):
                    status[i] = 1
                point[:] = start
                level, entering = level - 1, False
                continue
            kind, number, first = blocks[level, 1], blocks[level, 2], blocks[level, 3]
            if kind == RATIONAL:
                if entering:
                    call_on(blocks[level, 0], point, own, coefficients)
                    within = True
                    for k in range(number):
                        at = targets[first + k]
                        within = within and bounds[at, 0] < coefficients[k] < bounds[at, 1]
                        shift[at] = 0.0  # not that of the point before
                    if not within or level + 1 < levels:  # else refining says more
                        _nudged_call(blocks[level, 0], point, shift, own, others, nudged, nudged_c)
                        within = True
                        for k in range(number):
                            at = targets[first + k]
                            shift[at] = 8.0 * abs(others[k] - coefficients[k])
                            if not math.isfinite(coefficients[k]):
                                status[i] = 1
                            within = within and (
                                bounds[at, 0] - shift[at] < coefficients[k] < bounds[at, 1] + shift[at]
                            )
                    for k in range(number):
                        point[targets[first + k]] = coefficients[k]
                    level, entering = (level + 1, True) if within else (level - 1, False)
                else:
                    level -= 1
                continue
            at = targets[first]
            if entering:
                call_on(blocks[level, 0], point, own, coefficients)
                _nudged_call(blocks[level, 0], point, shift, own, others, nudged, nudged_c)
                for k in range(number):
                    noise[k] = 8.0 * abs(others[k] - coefficients[k]) if math.isfinite(others[k]) else np.inf
                # roots a little outside the bounds may be inside once refined
                numbers[level], doubtful = real_roots(
                    coefficients, noise, number - 1, -np.inf, np.inf, found[level], work
                )
                if doubtful and exact:
                    status[i] = 1
                for k in range(numbers[level]):
                    slopes[level, k] = _root_shift(coefficients, noise, number - 1, found[level, k])
                position[level] = 0
            if position[level] < numbers[level]:
                point[at] = found[level, position[level]]
                shift[at] = slopes[level, position[level]]
                position[level] += 1
                if bounds[at, 0] - shift[at] < point[at] < bounds[at, 1] + shift[at]:
                    level, entering = level + 1, True
                else:
                    entering = False
            else:
                level, entering = level - 1, False
    assert len(vectors) + len(terms) + len(roots) + len(places) + len(system) > 0  # alive until here
    return given[8], given[9], given[10], given[11]


@compiled
def _root_shift(a, noise, n, x):
    """How far a root may be off when its polynomial's coefficients are."""
    total, slope, curvature, power = 0.0, 0.0, 0.0, 1.0
    for k in range(n + 1):
        total += (noise[k] + 4.0 * _EPS * abs(a[k])) * abs(power)
        if k + 1 <= n:
            slope += (k + 1) * a[k + 1] * power
        if k + 2 <= n:
            curvature += (k + 2) * (k + 1) * a[k + 2] * power
        power *= x
    first = total / abs(slope) if slope != 0.0 else np.inf
    second = math.sqrt(2.0 * total / abs(curvature)) if curvature != 0.0 else np.inf
    return min(first, second)  # near a double root the second order decides


@compiled
def _near(point, shift, bounds, dependent):
    """Whether a point may be inside, for all that is known of it."""
    for k in dependent:  # noqa: SIM110 (compiled)
        if not bounds[k, 0] - shift[k] < point[k] < bounds[k, 1] + shift[k]:
            return False
    return True
