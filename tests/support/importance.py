"""A reference that shares nothing with the package: importance sampling around the mode, with SciPy's solver.

Self-normalised importance sampling from a multivariate t with 6 degrees of freedom, centred on the mode and shaped by
the Hessian there. It gives means and their standard errors; `efficiency` says how far it is to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats


class Reference(NamedTuple):
    mean: np.ndarray
    sd: np.ndarray
    standard_error: np.ndarray
    efficiency: float


def reference(
    log_density: Callable[[np.ndarray], float],
    start: np.ndarray,
    to_theta: Callable[[np.ndarray], np.ndarray],
    draws: int,
    seed: int,
) -> Reference:
    """Posterior means of theta = to_theta(u) for an unnormalised log density of u."""

    def loss(u: np.ndarray) -> float:
        value = log_density(u)
        return -value if np.isfinite(value) else 1e10

    found = optimize.minimize(loss, start, method="Nelder-Mead", options={"maxfev": 6000, "xatol": 1e-6, "fatol": 1e-8})
    mode, d = found.x, start.size
    step = 2e-3
    hessian = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            a, b = np.eye(d)[i] * step, np.eye(d)[j] * step
            value = loss(mode + a + b) - loss(mode + a - b) - loss(mode - a + b) + loss(mode - a - b)
            hessian[i, j] = hessian[j, i] = value / (4 * step**2)
    proposal = stats.multivariate_t(mode, 1.3 * np.linalg.inv(hessian), df=6, seed=np.random.default_rng(seed))
    u = proposal.rvs(draws)
    log_weight = np.array([log_density(row) for row in u]) - proposal.logpdf(u)
    weight = np.exp(log_weight - np.nanmax(log_weight))
    weight = np.where(np.isfinite(weight), weight, 0.0)
    weight /= weight.sum()
    theta = np.array([to_theta(row) for row in u])
    mean = weight @ theta
    deviation = theta - mean
    return Reference(
        mean,
        np.sqrt(weight @ deviation**2),
        np.sqrt((weight**2) @ deviation**2),
        float(1 / (weight**2).sum() / draws),
    )
