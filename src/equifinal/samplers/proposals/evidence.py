r"""The marginal likelihood from weights w = pi/q, of draws of q and of states of a chain whose law is pi/Z.

Where q fits, the mean weight of its draws is a good estimate of Z. Where it does not, a few high weights make up that
mean. The bridge (Meng and Wong 1996, Statistica Sinica 6)

    Z = mean_q(w / (w/Z + 1)) / mean_pi(1 / (w/Z + 1))

has terms with bounds, and asks only that draws of both have weights in common. Weights are remembered as counts of
their logarithms, on a grid: a run has millions of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]

BINS, WIDTH = 800, 0.05  # around a level; what lies beyond counts as if it were at the end
ROUNDS = 1000


class Evidence(NamedTuple):
    """log Z and its standard error."""

    log_evidence: float
    error: float


@compiled
def counted(counts: Array, log_weights: Array, level: float) -> Array:
    """Add log weights (chains, n) to counts (chains, bins): none for NaN, and the lowest for minus infinity.

    One that lies between two of them counts for both, so that the mean logarithm is right.
    """
    added = counts.copy()
    for i in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            if math.isnan(log_weights[i, j]):
                continue
            place = min(max((log_weights[i, j] - level) / WIDTH + BINS / 2, 0.0), BINS - 1.0)
            lower = min(int(place), BINS - 2)
            added[i, lower] += lower + 1 - place
            added[i, lower + 1] += place - lower
    return added


def by_mean(fresh: Array, level: float) -> Evidence:
    """From draws of q alone, counts (chains, bins)."""
    weight, count = _weights(), fresh.sum(axis=0)
    number = count.sum()
    mean, square = count @ weight / number, count @ weight**2 / number
    return Evidence(level + math.log(mean), math.sqrt(max(0.0, square / mean**2 - 1) / number))


def by_bridge(fresh: Array, states: Array, level: float, independent: int) -> Evidence:
    """From draws of q, which are independent, and from states, counts (chains, bins).

    What states contribute to the error is told by how chains differ; of one chain, by so many independent ones.
    """
    weight, draws, visits = _weights(), fresh.sum(axis=0), states.sum(axis=0)
    z = float(draws @ weight / draws.sum())
    for _ in range(ROUNDS):
        before, below = z, 1 / (weight / z + 1)
        z = float((draws @ (weight * below)) / draws.sum() / ((visits @ below) / visits.sum()))
        if abs(z / before - 1) < 1e-10:
            break
    one, other = weight * below, below
    variance = _relative_variance(draws, one) / draws.sum()
    means = states @ other / states.sum(axis=1)
    if len(means) > 1:
        variance += means.var(ddof=1) / len(means) / means.mean() ** 2
    else:
        variance += _relative_variance(visits, other) / independent
    return Evidence(level + math.log(z), math.sqrt(variance))


def _weights() -> Array:
    return np.exp(WIDTH * (np.arange(BINS) - BINS / 2))


def _relative_variance(counts: Array, values: Array) -> float:
    mean, square = (float(counts @ values**power) / counts.sum() for power in (1, 2))
    return max(0.0, square / mean**2 - 1)
