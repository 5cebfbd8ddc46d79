"""All real roots of a polynomial inside an interval, compiled.

Between two neighbouring real roots of its derivative a polynomial is monotone and has one root or none, which
the signs at the ends tell. Going up from the highest derivative, no root with a change of sign can be missed,
whatever the starting point or the clustering of the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equifinal.compiled import compiled

Array = NDArray[np.float64]

_EPS = 2.220446049250313e-16


@compiled
def value(a: Array, n: int, x: float) -> tuple[float, float]:
    """A polynomial of degree n at x, coefficients from power 0 up, and a bound on the rounding error."""
    total, size, power = a[n], abs(a[n]), abs(x)
    for k in range(n - 1, -1, -1):
        total = total * x + a[k]
        size = size * power + abs(a[k])
    return total, 2.0 * n * _EPS * size


@compiled
def _between(a: Array, n: int, left: float, right: float, at_left: float) -> float:
    """The root in (left, right), where the signs at the ends differ: Newton's steps, halving where they stray."""
    x = 0.5 * (left + right)
    for _ in range(200):
        y, slope = a[n], 0.0
        for k in range(n - 1, -1, -1):
            slope = slope * x + y
            y = y * x + a[k]
        if y == 0.0:
            return x
        if (y > 0.0) == (at_left > 0.0):
            left = x
        else:
            right = x
        step = x - y / slope if slope != 0.0 else math.inf
        if not (left < step < right):
            step = 0.5 * (left + right)
        if abs(step - x) <= _EPS * abs(x) or step in (left, right):
            return step
        x = step
    return x


@compiled
def quadratic(a: Array, lower: float, upper: float, out: Array) -> int:
    """Real roots of a[0] + a[1] x + a[2] x^2 in (lower, upper), without cancellation."""
    square, product = a[1] * a[1], 4.0 * a[2] * a[0]
    discriminant = square - product
    if discriminant < 0.0 and discriminant > -8.0 * _EPS * (square + abs(product)):
        discriminant = 0.0  # two roots that meet, to rounding
    if not discriminant >= 0.0:
        return 0
    q = -0.5 * (a[1] + math.copysign(math.sqrt(discriminant), a[1]))
    first, second = q / a[2], (a[0] / q if q != 0.0 else 0.0)
    if first > second:
        first, second = second, first
    count = 0
    if lower < first < upper:
        out[count] = first
        count += 1
    if lower < second < upper and (second != first):
        out[count] = second
        count += 1
    return count


@compiled
def real_roots(a: Array, n: int, lower: float, upper: float, out: Array, work: Array) -> int:
    """Real roots of a[0] + ... + a[n] x^n in (lower, upper), ascending, into `out`; returns how many.

    A root at which the sign does not change counts once. `work` has at least 2 rows and n + 2 columns.
    """
    for k in range(n + 1):
        if not math.isfinite(a[k]):
            return 0
    while n > 0 and a[n] == 0.0:
        n -= 1
    if n == 0:
        return 0
    if n == 1:
        out[0] = -a[0] / a[1]
        return 1 if lower < out[0] < upper else 0
    if n == 2:
        return quadratic(a, lower, upper, out)
    reach = 0.0  # no root is farther from 0
    for k in range(n):
        reach = max(reach, 2.0 * abs(a[k] / a[n]) ** (1.0 / (n - k)))
    left, right = max(lower, -reach), min(upper, reach)
    if not left < right:
        return 0
    derivative, corners = work[0], work[1]
    count = 0
    for degree in range(1, n + 1):
        # the derivative of order n - degree, which has this degree
        for k in range(degree + 1):
            factor = 1.0
            for j in range(n - degree):
                factor *= k + n - degree - j
            derivative[k] = a[k + n - degree] * factor
        corners[0] = left
        for k in range(count):
            corners[k + 1] = out[k]
        corners[count + 1] = right
        found = 0
        before, noise = value(derivative, degree, left)
        touching = False  # whether the last corner was itself a root
        for k in range(count + 1):
            after, noise = value(derivative, degree, corners[k + 1])
            zero = abs(after) <= noise and k < count
            if not touching and not zero and (before > 0.0) != (after > 0.0):
                out[found] = _between(derivative, degree, corners[k], corners[k + 1], before)
                found += 1
            if zero:
                out[found] = corners[k + 1]
                found += 1
            before, touching = after, zero
        count = found
    return count
