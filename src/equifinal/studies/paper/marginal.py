"""A marginal of a reference posterior: its distribution function and density on a grid, and how well it is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Marginal(NamedTuple):
    """Values in order, P(X <= value), the density, and the largest standard error of the probabilities."""

    values: Array
    probability: Array
    density: Array
    error: float = 0.0

    def cdf(self, x: Array) -> Array:
        return np.interp(x, self.values, self.probability, left=0.0, right=1.0)

    def quantile(self, p: Array) -> Array:
        return np.interp(p, self.probability, self.values)

    @property
    def mean(self) -> float:
        """Compute the mean by parts: the upper end less the integral of the distribution function."""
        return float(self.values[-1] - np.trapezoid(self.probability, self.values))

    def distance(self, draws: Array) -> float:
        """The largest difference of distribution functions, at 199 quantiles of the reference."""
        levels = self.quantile(np.arange(1, 200) / 200)
        below = np.searchsorted(np.sort(draws, axis=None), levels, side="right") / draws.size
        return float(np.max(np.abs(below - self.cdf(levels))))
