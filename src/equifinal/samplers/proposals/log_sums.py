"""Terms that are known by their logarithms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled


def beside_largest(log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Terms in units of the largest of them; nothing where there is none, as minus infinity less itself."""
    there = np.isfinite(log_terms)
    largest = np.max(log_terms, initial=-np.inf, where=there)
    return np.exp(np.where(there, log_terms, -np.inf) - (largest if there.any() else 0.0))


@compiled
def log_sums(log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """log of the sum of each row's terms; minus infinity where there are none.

    In a loop, because what NumPy computes for a row may depend on how many rows there are.
    """
    n, m = log_terms.shape
    found = np.empty(n)
    for i in range(n):
        largest = -np.inf
        for j in range(m):
            largest = max(largest, log_terms[i, j])
        total = 0.0
        if largest > -np.inf:
            for j in range(m):
                total += math.exp(log_terms[i, j] - largest)
        found[i] = largest + math.log(total) if total > 0.0 else -np.inf
    return found


@compiled
def choose(log_weight: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """One index a row, with probability proportional to its weight; 0 where there is none."""
    n, m = log_weight.shape
    chosen = np.zeros(n, np.int64)
    for i in range(n):
        largest = -np.inf
        for j in range(m):
            largest = max(largest, log_weight[i, j])
        if not math.isfinite(largest):
            continue
        total = 0.0
        for j in range(m):
            total += math.exp(log_weight[i, j] - largest)
        left = uniforms[i] * total
        for j in range(m):
            part = math.exp(log_weight[i, j] - largest)
            if part > 0.0:
                chosen[i] = j
                left -= part
                if left < 0.0:
                    break
    return chosen
