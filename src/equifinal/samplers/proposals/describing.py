"""Mixtures that describe draws: as many components as describe other draws of the same law best."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.mixture import Mixture

Array = NDArray[np.float64]

COMPONENTS, WORSE = (1, 2, 4, 8, 16), 0.1  # how many are tried, until the mean log density is so much below the best
GAIN = 1e-4  # of the mean log density: fits are many, and none of them is the last
LEAST_EACH, SMALLEST = 5, 0.003  # particles for each dimension and component, and the share of the smallest


def described(
    x: Array, others: Array, rng: np.random.Generator, start: Mixture | None = None, both: bool = False
) -> Mixture:
    """The mixture of x (n, q), among those of more and more components, that describes other draws best.

    With ``both`` it is fitted to these as well in the end. Then it is worth while to try whether components are better
    described if each is believed to be about as wide as its share of the volume lets one expect.
    """
    n, q = x.shape
    covariance = np.cov(x.T).reshape(q, q)
    floor = 1e-6 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q)
    factor = 0.7 * np.linalg.cholesky(covariance + floor)
    numbers = [k for k in COMPONENTS if k == 1 or n >= LEAST_EACH * q * k]
    starts = [mixtures.equal(x[far_apart(x @ whitener(x), k, rng)], factor) for k in numbers]

    def fit(x: Array, first: Mixture, believed: bool) -> Mixture:
        # a component of few draws must not become thinner than these can tell
        k = len(first.share)
        if believed:
            belief = (q + 2) / n, covariance / k ** (2 / max(q, 1))
            return mixtures.fit(x, np.ones(len(x)), first, floor, max(q / n, SMALLEST), GAIN, belief)
        least = max(LEAST_EACH * q / n, SMALLEST)
        return mixtures.fit(x, np.ones(len(x)), first, floor + 1e-3 / k * covariance, least, GAIN)

    best, highest = (mixtures.equal(x.mean(axis=0)[None], factor), False), -math.inf
    stopped = False
    # a start of several modes comes last: beside it a single component would look as if more of them were no use
    for first in starts if start is None else [*starts, start]:
        if stopped and first is not start:
            continue
        tried = [(fit(x, first, believed), believed) for believed in ((False, True) if both else (False,))]
        scores = [float(made.log_density(others).mean()) for made, _ in tried]
        score = max(scores)
        if score > highest:
            best, highest = tried[scores.index(score)], score
        elif score < highest - WORSE:
            stopped = True
    return fit(np.concatenate([x, others]), *best) if both else best[0]


def far_apart(z: Array, number: int, rng: np.random.Generator) -> list[int]:
    """Rows of z, each chosen with a probability proportional to its squared distance from those before."""
    chosen = [int(rng.integers(len(z)))]
    nearest = np.full(len(z), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.sum((z - z[chosen[-1]]) ** 2, axis=1))
        total = nearest.sum()
        chosen.append(int(rng.choice(len(z), p=nearest / total if total > 0 else None)))
    return chosen


def whitener(x: Array) -> Array:
    """A matrix that makes x @ it uncorrelated with variance one."""
    q = x.shape[1]
    covariance = np.cov(x.T).reshape(q, q)
    return np.linalg.inv(np.linalg.cholesky(covariance + 1e-9 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q))).T
