r"""Are ranks uniform? An exact test by the empirical distribution function, and the bands that go with it.

N ranks, each uniform on {0, ..., L} if all is well. Let F(j) be the number of ranks of at most j, for j < L. Under
uniformity F(j) has a binomial law with N trials and probability z_j = (j + 1)/(L + 1). Each F(j) has its two-sided
tail probability there,

.. math:: g_j = 2 \min\{P(B_j \le F(j)),\; P(B_j \ge F(j))\},

and the statistic is the least of them. Its own law is known exactly: with the band a_j <= F(j) <= b_j of all values
whose tail probability exceeds g,

.. math:: P(\min_j g_j > g) = P(a_j \le F(j) \le b_j \text{ for all } j),

which a recursion over j gives, for F(j+1) - F(j) given F(j) is binomial with N - F(j) trials. Hence p-values without
simulation and simultaneous bands for plots (Saeilynoja, Buerkner and Vehtari, Statistics and Computing 32, 2022, who
treat the continuous case). Such bands see shifts as well as ranks that are too close to the ends or to the middle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Band(NamedTuple):
    """Counts between which F(j) lies for all j < L at once, with the given probability or a little more."""

    points: Array  # z_j
    lower: Integers
    upper: Integers


def rank_p_value(ranks: Integers, most: int) -> float:
    """p-value of the hypothesis that ranks are uniform on {0, ..., most}."""
    n = len(ranks)
    if n == 0:
        return float("nan")
    counts, z = _cumulative(ranks, most), _points(most)
    below, above = stats.binom.cdf(counts, n, z), stats.binom.sf(counts - 1, n, z)
    least = float(np.min(2 * np.minimum(below, above)))
    if least >= 1:
        return 1.0
    return float(np.clip(1 - _probability(*_edges(n, z, least), n, z), 0.0, 1.0))


def rank_band(n: int, most: int, probability: float = 0.99) -> Band:
    """The narrowest band of its kind that holds all F(j) with at least the given probability."""
    z = _points(most)
    low, high = np.log(1e-12), 0.0  # of log g: wide enough, and too narrow
    for _ in range(40):
        middle = 0.5 * (low + high)
        inside = _probability(*_edges(n, z, float(np.exp(middle))), n, z)
        low, high = (middle, high) if inside >= probability else (low, middle)
    return Band(z, *_edges(n, z, float(np.exp(low))))


def histogram_band(n: int, bins: int, probability: float = 0.99) -> tuple[int, int]:
    """Find the counts between which a single bar of a histogram with equal bins lies."""
    tail = 0.5 * (1 - probability)
    return int(stats.binom.ppf(tail, n, 1 / bins)), int(stats.binom.isf(tail, n, 1 / bins))


def holm(p_values: Array) -> Array:
    """Adjust p-values for the number of tests, whatever their dependence (Holm 1979); NaN is no test."""
    p = np.asarray(p_values, float)
    adjusted = np.full(p.shape, np.nan)
    order = [k for k in np.argsort(p, kind="stable") if not np.isnan(p[k])]
    highest = 0.0
    for done, k in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - done) * p[k]))
        adjusted[k] = highest
    return adjusted


def _points(most: int) -> Array:
    return np.arange(1, most + 1) / (most + 1)


def _cumulative(ranks: Integers, most: int) -> Integers:
    return np.cumsum(np.bincount(np.asarray(ranks, np.int64), minlength=most + 1))[:-1]


def _edges(n: int, z: Array, tail: float) -> tuple[Integers, Integers]:
    """The least and the largest count whose two-sided tail probability exceeds ``tail``."""
    lower = stats.binom.ppf(0.5 * tail, n, z).astype(np.int64)
    lower += 2 * stats.binom.cdf(lower, n, z) <= tail
    upper = stats.binom.isf(0.5 * tail, n, z).astype(np.int64)
    upper += 2 * stats.binom.sf(upper, n, z) > tail
    upper -= 2 * stats.binom.sf(upper - 1, n, z) <= tail
    return lower, upper


def _probability(lower: Integers, upper: Integers, n: int, z: Array) -> float:
    """That all counts lie between their edges."""
    if (lower > upper).any():
        return 0.0
    at, mass, before = np.zeros(1, np.int64), np.ones(1), 0.0
    for a, b, point in zip(lower, upper, z, strict=True):
        to = np.arange(a, b + 1)
        step = stats.binom.pmf(to[None, :] - at[:, None], (n - at)[:, None], (point - before) / (1 - before))
        mass, at, before = mass @ step, to, float(point)
    return float(mass.sum())
