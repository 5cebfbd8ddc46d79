"""How heavy the tail of importance weights is: the shape k-hat of a generalised Pareto law fitted to the largest.

Below 0.5 the weights have a finite variance and importance sampling is reliable; above 0.7 it is not (Vehtari,
Simpson, Gelman, Yao and Gabry 2024, Journal of Machine Learning Research 25). The fit is that of Zhang and Stephens
(2009, Technometrics 51), with the weak prior of the former paper that draws k-hat of few weights towards 0.5.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def k_hat(log_weights: Array) -> float:
    """Fit k-hat to the largest min(n/5, 3 sqrt(n)) weights: inf if nearly all are zero, -inf if all are one."""
    return k_hat_of_largest(log_weights, len(log_weights))


def k_hat_of_largest(log_weights: Array, number: int) -> float:
    """The same of so many weights, of which at least the largest are given."""
    usable = np.sort(log_weights[np.isfinite(log_weights)])
    count = min(number // 5, math.ceil(3 * math.sqrt(number)), max(0, len(usable) - 1))
    if count < 5 or (count < number // 5 and count == len(usable) - 1 and len(log_weights) == number):
        return math.inf
    cut = usable[-count - 1]
    excess = np.exp(usable[-count:] - usable[-1]) - np.exp(cut - usable[-1])
    if not excess[-1] > 0:
        return -math.inf
    return _shape(excess[excess > 0])


def _shape(x: Array) -> float:
    """Fit the shape of a generalised Pareto law to ascending exceedances."""
    n = len(x)
    if n < 5:
        return -math.inf
    grid = 30 + int(math.sqrt(n))
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_likelihood = n * (np.log(-b / k) - k - 1)
    log_likelihood = np.where(np.isnan(log_likelihood), -np.inf, log_likelihood)
    weights = np.exp(log_likelihood - log_likelihood.max())
    mean = float(weights @ b / weights.sum())
    shape = float(np.log1p(-mean * x).mean())
    return (n * shape + 10 * 0.5) / (n + 10)
