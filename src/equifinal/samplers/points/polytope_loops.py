"""The loops of `polytope`, where their mathematics is told: polytopes as lists of simplices, and points in them.

A simplex is (r + 1, r), a row for each vertex.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]

MOST_DIMENSIONS = 3
MOST_PIECES = 3  # of a simplex cut in two: the largest binomial(r, b)
ROUNDING = 8 * np.finfo(float).eps
SLIVER = 1e-14  # share of the volume below which a simplex is rounding error


class Cuts(NamedTuple):
    """All polytopes of a fibre: lower <= w_I <= upper and lower <= B w_I + A_D^-1 b(c) <= upper."""

    levels: Array  # how b follows from c; see `AffineForm`
    inverse: Array  # A_D^-1
    slopes: Array  # B
    free: Array  # bounds of w_I, (r, 2)
    dependent: Array  # bounds of w_D, (q, 2)
    logarithmic: NDArray[np.bool_]  # whether w_I are logarithms


class Workspace(NamedTuple):
    """Arrays to work in."""

    offset: Array  # of w_D
    low: Array  # the box around the polytope
    high: Array
    slack: Array
    order: NDArray[np.int64]
    point: Array
    vertices: Array


@compiled
def room_for(cuts: Cuts) -> Workspace:
    q, r = cuts.slopes.shape
    order = np.zeros(r + 1, np.int64)
    return Workspace(np.zeros(q), np.zeros(r), np.zeros(r), np.zeros(r + 1), order, np.zeros(r), np.zeros((r + 1, r)))


@compiled
def set_offset(cuts: Cuts, c: Array, offset: Array) -> bool:
    """A_D^-1 b(c); false where no theta has this c."""
    offset[:] = 0.0
    for j in range(c.shape[0]):
        b = (c[j] - cuts.levels[j, 0]) / cuts.levels[j, 1]
        power = cuts.levels[j, 2]
        if cuts.levels[j, 3] != 0.0:
            b = math.log(b) / power if b > 0.0 else np.nan
        elif power != 1.0:
            b = b ** (1.0 / power)
        if not math.isfinite(b):
            return False
        for k in range(offset.shape[0]):
            offset[k] += cuts.inverse[k, j] * b
    return True


@compiled
def set_box(cuts: Cuts, offset: Array, low: Array, high: Array) -> bool:
    """Bounds of w_I, narrowed by what each bound of w_D implies; false if they leave nothing, or are infinite.

    Whether they are finite does not depend on c: a bound is found from others that are finite, whatever their values.
    """
    q, r = cuts.slopes.shape
    for i in range(r):
        low[i], high[i] = cuts.free[i]
    for k in range(q):
        fixed = True
        for i in range(r):
            fixed &= cuts.slopes[k, i] == 0.0
        if fixed and not cuts.dependent[k, 0] <= offset[k] <= cuts.dependent[k, 1]:
            return False
    for _ in range(2 * r):  # enough to find all bounds that can be found
        changed = False
        for k in range(q):
            for i in range(r):
                slope = cuts.slopes[k, i]
                if slope == 0.0:
                    continue
                least = most = offset[k]
                for m in range(r):
                    other = cuts.slopes[k, m]
                    if m != i and other != 0.0:
                        least += other * (low[m] if other > 0.0 else high[m])
                        most += other * (high[m] if other > 0.0 else low[m])
                first, last = (cuts.dependent[k, 0] - most) / slope, (cuts.dependent[k, 1] - least) / slope
                if slope < 0.0:
                    first, last = last, first
                if first > low[i]:
                    low[i], changed = first, True
                if last < high[i]:
                    high[i], changed = last, True
        if not changed:
            break
    proper = True
    for i in range(r):
        proper &= low[i] < high[i] and math.isfinite(low[i]) and math.isfinite(high[i])
    return proper


@compiled
def signed_volume(simplex: Array) -> float:
    r = simplex.shape[1]
    if r == 1:
        return simplex[1, 0] - simplex[0, 0]
    a0, a1 = simplex[1, 0] - simplex[0, 0], simplex[1, 1] - simplex[0, 1]
    b0, b1 = simplex[2, 0] - simplex[0, 0], simplex[2, 1] - simplex[0, 1]
    if r == 2:
        return (a0 * b1 - a1 * b0) / 2.0
    a2, b2 = simplex[1, 2] - simplex[0, 2], simplex[2, 2] - simplex[0, 2]
    c0, c1, c2 = simplex[3, 0] - simplex[0, 0], simplex[3, 1] - simplex[0, 1], simplex[3, 2] - simplex[0, 2]
    return (c0 * (a1 * b2 - a2 * b1) + c1 * (a2 * b0 - a0 * b2) + c2 * (a0 * b1 - a1 * b0)) / 6.0


@compiled
def split_box(low: Array, high: Array, simplices: Array, order: NDArray[np.int64]) -> int:
    """The box as r! simplices: paths from corner to corner along its edges, one for each order of the axes."""
    r = low.shape[0]
    count = 0
    for code in range(r**r):  # all words of r letters, of which the permutations count
        used, rest = 0, code
        for step in range(r):
            order[step] = rest % r
            used |= 1 << order[step]
            rest //= r
        if used != (1 << r) - 1:
            continue
        simplices[count, 0] = low
        for step in range(r):
            simplices[count, step + 1] = simplices[count, step]
            simplices[count, step + 1, order[step]] = high[order[step]]
        count += 1
    return count


@compiled
def set_vertex(simplex: Array, slack: Array, inside: int, outside: int, target: Array) -> None:
    """Where the edge between two vertices is cut."""
    height = max(slack[inside], 0.0)
    share = height / (height - slack[outside])
    for k in range(target.shape[0]):
        target[k] = simplex[inside, k] + share * (simplex[outside, k] - simplex[inside, k])


@compiled
def clip(
    simplices: Array, count: int, slope: Array, offset: float, tolerance: float, target: Array, space: Workspace
) -> int:
    """What remains of simplices where slope . w + offset >= 0, in `target`; returns how many there are."""
    r = slope.shape[0]
    slack, order = space.slack, space.order
    found = 0
    for k in range(count):
        simplex = simplices[k]
        inside = outside = 0
        for v in range(r + 1):
            slack[v] = offset
            for m in range(r):
                slack[v] += slope[m] * simplex[v, m]
            if slack[v] >= -tolerance:
                order[inside] = v
                inside += 1
            else:
                outside += 1
                order[r + 1 - outside] = v
        if outside == 0:
            target[found] = simplex
            found += 1
        if inside == 0 or outside == 0:
            continue
        for path in range(1 << r):  # its bits say which of both indices grows at each step
            grown = 0
            for step in range(r):
                grown += (path >> step) & 1
            if grown != outside:
                continue
            i = j = 0
            flat = False
            target[found, 0] = simplex[order[0]]
            for step in range(r):
                if (path >> step) & 1:
                    flat |= slack[order[i]] <= 0.0  # cut where the edge begins: two vertices are the same
                    j += 1
                else:
                    i += 1
                if j == 0:
                    target[found, step + 1] = simplex[order[i]]
                else:
                    set_vertex(simplex, slack, order[i], order[r + 1 - j], target[found, step + 1])
            if not flat and signed_volume(target[found]) != 0.0:
                found += 1
    return found


@compiled
def add_up(simplices: Array, count: int, total: Array) -> int:
    """Sums of volumes, without slivers; returns how many simplices are left."""
    volume = 0.0
    for k in range(count):
        total[k] = abs(signed_volume(simplices[k]))
        volume += total[k]
    kept = 0
    for k in range(count):
        if total[k] > SLIVER * volume:
            simplices[kept] = simplices[k]
            total[kept] = total[k] + (total[kept - 1] if kept else 0.0)
            kept += 1
    return kept


@compiled
def polytope(
    cuts: Cuts, c: Array, simplices: Array, spare: Array, total: Array, space: Workspace
) -> tuple[Array, Array, Array, int]:
    """The fibre over c as simplices, how many there are, and sums of their volumes; the arrays grow as needed."""
    q, r = cuts.slopes.shape
    if not set_offset(cuts, c, space.offset) or not set_box(cuts, space.offset, space.low, space.high):
        return simplices, spare, total, 0
    count = split_box(space.low, space.high, simplices, space.order)
    for k in range(q):
        slope = cuts.slopes[k]
        least = most = space.offset[k]
        size = abs(space.offset[k])
        for m in range(r):
            ends = (slope[m] * space.low[m], slope[m] * space.high[m])
            least += min(ends)
            most += max(ends)
            size += max(abs(ends[0]), abs(ends[1]))
        for side in range(2):
            sign, bound = 1.0 - 2.0 * side, cuts.dependent[k, side]
            if not math.isfinite(bound):
                continue
            tolerance = ROUNDING * (size + abs(bound))
            if (least - bound if side == 0 else bound - most) >= -tolerance:
                continue  # no corner of the box is cut off
            if spare.shape[0] <= MOST_PIECES * count:  # there is one more in the making
                spare = np.empty((2 * MOST_PIECES * count + 1, r + 1, r))
            count = clip(simplices, count, sign * slope, sign * (space.offset[k] - bound), tolerance, spare, space)
            simplices, spare = spare, simplices
    if total.shape[0] < count:
        total = np.empty(2 * count)
    return simplices, spare, total, add_up(simplices, count, total)


@compiled
def lists_for(cuts: Cuts) -> tuple[Array, Array, Array]:
    """Workspace for a few simplices, and for sums of their volumes."""
    r = cuts.slopes.shape[1]
    return np.empty((32, r + 1, r)), np.empty((32, r + 1, r)), np.empty(32)


@compiled
def volumes(cuts: Cuts, c: Array) -> Array:
    space = room_for(cuts)
    simplices, spare, total = lists_for(cuts)
    found = np.zeros(c.shape[0])
    for n in range(c.shape[0]):
        simplices, spare, total, count = polytope(cuts, c[n], simplices, spare, total, space)
        found[n] = total[count - 1] if count else 0.0
    return found


@compiled
def sizes(cuts: Cuts, c: Array) -> NDArray[np.int64]:
    """How many simplices each polytope is made of."""
    space = room_for(cuts)
    simplices, spare, total = lists_for(cuts)
    found = np.zeros(c.shape[0], np.int64)
    for n in range(c.shape[0]):
        simplices, spare, total, found[n] = polytope(cuts, c[n], simplices, spare, total, space)
    return found


@compiled
def which(total: Array, count: int, aim: float) -> int:
    """The first simplex at which the sum of volumes exceeds `aim`."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        if total[middle] > aim:
            last = middle
        else:
            first = middle + 1
    return first


@compiled
def draw(cuts: Cuts, c: Array, uniforms: Array) -> tuple[Array, Array]:
    n, points, r = uniforms.shape
    free, log_density = np.full((n, points, r), np.nan), np.full((n, points), np.nan)
    space = room_for(cuts)
    simplices, spare, total = lists_for(cuts)
    w = space.point
    for i in range(n):
        simplices, spare, total, count = polytope(cuts, c[i], simplices, spare, total, space)
        if count == 0:
            continue
        volume = total[count - 1]
        flat = -math.log(volume)
        for p in range(points):
            aim = uniforms[i, p, 0] * volume
            k = which(total, count, aim)
            below = total[k - 1] if k else 0.0
            share = min(max((aim - below) / (total[k] - below), 0.0), 1.0)  # what is left of the first uniform
            w[:] = simplices[k, r]
            for step in range(r - 1, -1, -1):
                v = share if step == 0 else uniforms[i, p, step]
                if r - step == 2:
                    v = math.sqrt(v)
                elif r - step == 3:
                    v = v ** (1.0 / 3.0)
                for m in range(r):
                    w[m] = (1.0 - v) * simplices[k, step, m] + v * w[m]
            log_density[i, p] = flat
            for m in range(r):
                if cuts.logarithmic[m]:
                    free[i, p, m] = math.exp(w[m])
                    log_density[i, p] -= w[m]
                else:
                    free[i, p, m] = w[m]
    return free, log_density


@compiled
def set_coordinates(cuts: Cuts, free: Array, w: Array) -> float:
    """w_I of theta_I, and the log of |dw_I/dtheta_I|."""
    slope = 0.0
    for m in range(w.shape[0]):
        w[m] = free[m]
        if cuts.logarithmic[m]:
            w[m] = math.log(free[m]) if free[m] > 0.0 else np.nan
            slope -= w[m]
    return slope


@compiled
def is_inside(cuts: Cuts, offset: Array, w: Array) -> bool:
    """Decide whether w is inside the polytope, up to rounding."""
    q, r = cuts.slopes.shape
    for m in range(r):
        lower, upper = cuts.free[m]
        tolerance = ROUNDING * abs(w[m])
        if not lower - tolerance <= w[m] <= upper + tolerance:
            return False
    for k in range(q):
        x = offset[k]
        size = abs(x)
        for m in range(r):
            x += cuts.slopes[k, m] * w[m]
            size += abs(cuts.slopes[k, m] * w[m])
        if not cuts.dependent[k, 0] - ROUNDING * size <= x <= cuts.dependent[k, 1] + ROUNDING * size:
            return False
    return True


@compiled
def log_densities(cuts: Cuts, c: Array, free: Array) -> Array:
    n, points, _ = free.shape
    found = np.full((n, points), -np.inf)
    space = room_for(cuts)
    simplices, spare, total = lists_for(cuts)
    for i in range(n):
        simplices, spare, total, count = polytope(cuts, c[i], simplices, spare, total, space)
        if count == 0:
            continue
        flat = -math.log(total[count - 1])
        for p in range(points):
            slope = set_coordinates(cuts, free[i, p], space.point)
            if is_inside(cuts, space.offset, space.point):
                found[i, p] = flat + slope
    return found


@compiled
def set_shares(simplex: Array, w: Array, vertices: Array, shares: Array) -> float:
    """Barycentric coordinates of w; returns the least of them times the volume.

    Of several simplices that w is in, up to rounding, the one with the largest return value holds it safely.
    """
    r = w.shape[0]
    whole = signed_volume(simplex)
    least = np.inf
    for v in range(r + 1):
        vertices[:] = simplex
        vertices[v] = w
        shares[v] = signed_volume(vertices) / whole
        least = min(least, shares[v])
    return least * abs(whole)


@compiled
def inverse(cuts: Cuts, c: Array, free: Array) -> Array:
    n, points, r = free.shape
    uniforms = np.full((n, points, r), np.nan)
    space = room_for(cuts)
    simplices, spare, total = lists_for(cuts)
    w, shares = space.point, space.slack
    for i in range(n):
        simplices, spare, total, count = polytope(cuts, c[i], simplices, spare, total, space)
        for p in range(points):
            set_coordinates(cuts, free[i, p], w)
            if count == 0 or not is_inside(cuts, space.offset, w):
                continue
            best, k = -np.inf, 0
            for candidate in range(count):
                least = set_shares(simplices[candidate], w, space.vertices, shares)
                if least > best:
                    best, k = least, candidate
            set_shares(simplices[k], w, space.vertices, shares)
            rest = 0.0
            for step in range(r, -1, -1):
                before, rest = rest, rest + max(shares[step], 0.0)
                if step < r:
                    uniforms[i, p, step] = (before / rest) ** (r - step) if rest > 0.0 else 0.0
            below = total[k - 1] if k else 0.0
            uniforms[i, p, 0] = (below + (total[k] - below) * uniforms[i, p, 0]) / total[count - 1]
    return uniforms
