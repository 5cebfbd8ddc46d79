r"""Random points of the unit cube, each of them uniform: independent, or together more even than that.

A rank-1 lattice {i z/N mod 1} moved by one random shift modulo 1 has N points, each of them exactly uniform, that
fill the cube evenly: means of smooth functions over them are far more precise than over independent points. The
generating vector z is built component by component, each minimising the mean square error for functions with square-
integrable mixed derivatives,

    e^2(z) = -1 + (1/N) sum_i prod_j (1 + 2 pi^2 B_2({i z_j/N})),   B_2(x) = x^2 - x + 1/6

(Sloan and Reztsov 2002, Mathematics of Computation 71). A new shift for every estimate keeps a sampler exact; always
the same points would not.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CANDIDATES = 1024  # components tried, at the most


@cache
def lattice(number: int, width: int) -> Array:
    """N points of a rank-1 lattice, (number, width)."""
    steps = np.arange(number)
    coprime = np.array([z for z in range(1, number + 1) if math.gcd(z, number) == 1])
    coprime = coprime[: (len(coprime) + 1) // 2]  # z and N - z are mirror images
    if len(coprime) > CANDIDATES:
        coprime = coprime[np.linspace(0, len(coprime) - 1, CANDIDATES).astype(int)]
    points, product = np.zeros((number, width)), np.ones(number)
    for j in range(width):
        errors = [float(product @ _kernel(steps * z % number / number)) for z in (coprime if j else coprime[:1])]
        best = coprime[int(np.argmin(errors))]
        points[:, j] = steps * best % number / number
        product = product * _kernel(points[:, j])
    points.flags.writeable = False
    return points


def _kernel(x: Array) -> Array:
    return 1.0 + 2.0 * math.pi**2 * (x * x - x + 1.0 / 6.0)


def shifted(points: Array, shift: Array) -> Array:
    """The points moved by a shift modulo 1, inside the open cube, for an end of it may be at infinity."""
    moved = points + shift
    moved -= np.floor(moved)
    return np.clip(moved, 2.0**-54, 1.0 - 2.0**-53)
