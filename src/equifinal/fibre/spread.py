"""Parameter vectors with the same output, spread over a whole fibre and all its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equifinal.fibre.fibre import Fibre

Array = NDArray[np.float64]

TRIES = 4096  # random points of theta_I
WALKERS, STEPS, SHRINKS = 64, 60, 14  # of the walk that is used where few of them meet the fibre


class Equivalent(NamedTuple):
    """Parameter vectors with the same output, one per row, and whether the fibre was seen clearly.

    It is not at special points, at which combinations are dependent or roots meet: there may be more than was found.
    """

    theta: Array
    certain: bool


def equivalents(fibre: Fibre, theta: Array, n: int, rng: np.random.Generator) -> Equivalent:
    """Give `theta` first, then others of its fibre, each as far as possible from those before it.

    Distances are measured in prior probability: between the distribution functions of each parameter.
    """
    c, labels = fibre.xi(theta), fibre.labels(theta) if fibre.combinations.labels else None
    here = fibre.points(theta[:, fibre.chart.free], c, labels)
    away = np.abs(here.theta[0, : here.found[0]] - theta).max(axis=1, initial=0.0)
    certain = fibre.geometry(theta).status[0] == 0 and here.status[0] == 0
    certain = certain and bool((away < 1e-6 * np.abs(theta).max()).any())
    if fibre.dimension == 0:
        cloud = _points(fibre, np.empty((1, 0)), c, labels)
    elif fibre.dimension == 1:
        cloud = _on_curve(fibre, c, labels, n)
    else:
        cloud = _on_surface(fibre, theta, c, labels, n, rng)
    return Equivalent(_spread(fibre, theta, cloud, n), certain)


def _points(fibre: Fibre, free: Array, c: Array, labels: Array | None) -> Array:
    roots = fibre.points(free, c, labels)
    clear = roots.status[:, None] == 0
    return roots.theta[clear & (np.arange(roots.theta.shape[1]) < roots.found[:, None])]


def _probability(fibre: Fibre, theta: Array) -> Array:
    return np.column_stack([p.cdf(theta[:, k]) for k, p in enumerate(fibre.priors.values())])


def _on_curve(fibre: Fibre, c: Array, labels: Array | None, n: int) -> Array:
    """A fine grid of theta_I over its support, even in prior probability."""
    prior = fibre.priors[fibre.free[0]]
    support = fibre.support(c, labels)
    ends = prior.cdf(support.intervals[0, : support.found[0]])
    lengths = ends[:, 1] - ends[:, 0]
    grids = []
    for (low, high), share in zip(ends, lengths / max(lengths.sum(), 1e-300), strict=True):
        size = max(20, int(np.ceil(40 * n * share)))
        # closer to the ends than to each other, where a branch may turn
        inside = 0.5 - 0.5 * np.cos(np.pi * (np.arange(size) + 0.5) / size)
        grids.append(prior.quantile(low + (high - low) * inside))
    free = np.concatenate(grids) if grids else np.empty(0)
    return _points(fibre, free[:, None], c, labels)


def _on_surface(fibre: Fibre, theta: Array, c: Array, labels: Array | None, n: int, rng: np.random.Generator) -> Array:
    """Random theta_I; where few of them meet the fibre, a walk from those that do, one coordinate at a time."""
    priors = [fibre.priors[name] for name in fibre.free]

    def at(shares: Array) -> Array:
        return np.column_stack([p.quantile(shares[:, k]) for k, p in enumerate(priors)])

    cloud = np.vstack([theta, _points(fibre, at(rng.random((TRIES, len(priors)))), c, labels)])
    if len(cloud) >= 20 * n:
        return cloud
    walkers = cloud[rng.integers(len(cloud), size=WALKERS)]
    visited = [cloud]
    for step in range(STEPS * len(priors)):
        k = step % len(priors)
        shares = _probability(fibre, walkers)[:, fibre.chart.free]
        low, high = np.zeros(WALKERS), np.ones(WALKERS)
        waiting = np.ones(WALKERS, bool)
        for _ in range(SHRINKS):
            trial = shares.copy()
            trial[:, k] = low + (high - low) * rng.random(WALKERS)
            roots = fibre.points(at(trial), c, labels)
            arrived = waiting & (roots.found > 0)
            chosen = (rng.random(WALKERS) * roots.found).astype(int)
            walkers[arrived] = roots.theta[arrived, chosen[arrived]]
            waiting &= ~arrived
            # what lies beyond a point off the fibre's shadow is tried no more
            below = trial[:, k] < shares[:, k]
            low, high = np.where(below, trial[:, k], low), np.where(below, high, trial[:, k])
            if not waiting.any():
                break
        visited.append(walkers.copy())
    return np.vstack(visited)


def _spread(fibre: Fibre, theta: Array, cloud: Array, n: int) -> Array:
    """Farthest points first."""
    chosen = [theta[0]]
    where = _probability(fibre, cloud)
    distance = np.linalg.norm(where - _probability(fibre, theta), axis=1)
    while len(chosen) < n and len(cloud) and distance.max() > 1e-9:
        k = int(np.argmax(distance))
        chosen.append(cloud[k])
        distance = np.minimum(distance, np.linalg.norm(where - where[k], axis=1))
    return np.array(chosen)
