"""All real roots of a polynomial inside an interval, compiled.

Between two neighbouring real roots of its derivative a polynomial is monotone and has one root or none, which
the signs at the ends tell. Going up from the highest derivative, no root with a change of sign can be missed,
whatever the starting point or the clustering of the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled

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
def quadratic(a: Array, noise: Array, lower: float, upper: float, out: Array) -> tuple[int, bool]:
    """Real roots of a[0] + a[1] x + a[2] x^2 in (lower, upper), without cancellation; see `real_roots`."""
    scale = 1.0 / max(abs(a[0]), abs(a[1]), abs(a[2]))
    a0, a1, a2 = a[0] * scale, a[1] * scale, a[2] * scale
    n0, n1, n2 = noise[0] * scale, noise[1] * scale, noise[2] * scale
    square, product = a1 * a1, 4.0 * a2 * a0
    discriminant = square - product
    unsure = 2.0 * abs(a1) * n1 + 4.0 * (abs(a2) * n0 + abs(a0) * n2) + 8.0 * _EPS * (square + abs(product))
    if discriminant < -unsure:
        return 0, False
    doubtful = discriminant <= unsure  # whether they are two, one or none is lost in rounding
    q = -0.5 * (a1 + math.copysign(math.sqrt(abs(discriminant)), a1))
    first, second = q / a2, (a0 / q if q != 0.0 else 0.0)
    if first > second:
        first, second = second, first
    count = 0
    if lower < first < upper:
        out[count] = first
        count += 1
    if lower < second < upper and second != first:
        out[count] = second
        count += 1
    return count, doubtful


@compiled
def real_roots(a: Array, noise: Array, n: int, lower: float, upper: float, out: Array, work: Array) -> tuple[int, bool]:
    """Real roots of a[0] + ... + a[n] x^n in (lower, upper), ascending, into `out`.

    `noise` says how far each coefficient may be off. `work` has at least 2 rows and n + 2 columns.

    Returns
    -------
    How many, and whether that is in doubt because roots may meet or not, within the noise.
    """
    for k in range(n + 1):
        if not math.isfinite(a[k]):
            return 0, True
    while n > 0 and a[n] == 0.0:
        n -= 1
    if n == 0:
        return 0, a[0] == 0.0
    if n == 1:
        out[0] = -a[0] / a[1]
        return (1 if lower < out[0] < upper else 0), False
    if n == 2:
        return quadratic(a, noise, lower, upper, out)
    reach = 0.0  # no root is farther from 0
    for k in range(n):
        reach = max(reach, 2.0 * abs(a[k] / a[n]) ** (1.0 / (n - k)))
    left, right = max(lower, -reach), min(upper, reach)
    if not left < right:
        return 0, False
    derivative, corners = work[0], work[1]
    count = 0
    doubtful = False
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
        before, _ = value(derivative, degree, left)
        touching = False  # whether the last corner was itself a root
        for k in range(count + 1):
            after, rounding = value(derivative, degree, corners[k + 1])
            if degree == n:
                power = 1.0
                for j in range(n + 1):
                    rounding += noise[j] * power
                    power *= abs(corners[k + 1])
            zero = abs(after) <= rounding and k < count
            if not touching and not zero and (before > 0.0) != (after > 0.0):
                out[found] = _between(derivative, degree, corners[k], corners[k + 1], before)
                found += 1
            if zero:
                out[found] = corners[k + 1]
                found += 1
                doubtful = doubtful or degree == n
            before, touching = after, zero
        count = found
    return count, doubtful
