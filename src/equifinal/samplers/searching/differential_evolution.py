"""Moves by differences of other points (ter Braak 2006, Statistics and Computing 16).

Of two random halves, one moves by

    x' = x + g (x_1 - x_2),   x_1, x_2 of the other half,

so that each half leaves its law as it is, given the other. Differences know ridges, and where there are several modes
many of them are as short as one mode is wide; a covariance knows neither. Most steps g are spread from a tenth of
2.38/sqrt(2 q) to all of it, which suits curved ridges; one of ten is 1, from mode to mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHORTEST, JUMPS = 0.1, 0.1  # the shortest step beside the longest, and the share of steps from mode to mode


def trials(x: Array, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], Array]]:
    """Which rows of x are to move, and where to: one half, and when that has moved the other."""
    n, q = x.shape
    first, second = np.array_split(rng.permutation(n), 2)
    for mine, others in ((first, second), (second, first)):
        if len(others):
            pairs = x[rng.choice(others, (2, len(mine)))]
            lengths = 2.38 / math.sqrt(2 * max(q, 1)) * SHORTEST ** rng.random(len(mine))
            lengths[rng.random(len(mine)) < JUMPS] = 1.0
            yield mine, x[mine] + lengths[:, None] * (pairs[0] - pairs[1])
