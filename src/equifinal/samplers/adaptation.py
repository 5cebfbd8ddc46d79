"""What warm-ups have in common: moments of a chain so far, factors of its covariance, and Gaussian proposals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]

FACTOR_EVERY = 25  # iterations between two Cholesky factorisations


def factorised(covariance: Array, fallback: Array) -> Array:
    d = covariance.shape[0]
    if d == 0:
        return fallback
    try:
        return np.linalg.cholesky(covariance + (1e-10 * np.trace(covariance) / d + 1e-14) * np.eye(d))
    except np.linalg.LinAlgError:
        return fallback


# Explicit loops, because the order of sums in array products may depend on how many chains there are.


@compiled
def propose(position: Array, factor: Array, log_scale: Array, normals: Array) -> Array:
    proposal = position.copy()
    for i in range(position.shape[0]):
        scale = np.exp(log_scale[i])
        for j in range(position.shape[1]):
            total = 0.0
            for k in range(j + 1):
                total += factor[i, j, k] * normals[i, k]
            proposal[i, j] += scale * total
    return proposal


@compiled
def update_moments(mean: Array, covariance: Array, position: Array, weight: float) -> tuple[Array, Array]:
    new_mean, new_covariance = mean.copy(), covariance.copy()
    d = mean.shape[1]
    for i in range(mean.shape[0]):
        for j in range(d):
            new_mean[i, j] += weight * (position[i, j] - mean[i, j])
        for j in range(d):
            for k in range(d):
                product = (position[i, j] - mean[i, j]) * (position[i, k] - mean[i, k])
                new_covariance[i, j, k] += weight * (product - covariance[i, j, k])
    return new_mean, new_covariance
