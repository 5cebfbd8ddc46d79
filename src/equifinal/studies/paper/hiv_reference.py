"""The posterior of the HIV example by importance sampling that shares nothing with the samplers.

Own right-hand side, classical Runge-Kutta with fixed steps, priors and the law of (lambda, N) given their product by
hand: with uniform priors lambda given m = lambda*N is loguniform between max(1, m/5000) and min(100, m/100), and the
prior density of m is proportional to the logarithm of that interval's ratio.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.studies.paper.marginal import Marginal

Array = np.ndarray

NAMES = ("beta", "rho", "delta", "c", "lambda", "N")
TRUTH = np.log([2.4e-5, 0.01, 0.5, 3.0, 1e4])  # beta, rho, delta, c, lambda*N
BOUNDS = np.array([[1e-6, 1e-3], [1e-3, 0.1], [0.01, 2.0], [1.0, 10.0]])
STEPS_A_DAY = 100


@cache
def observed() -> tuple[Array, Array]:
    (entry,) = load(example_path("hiv")).experiments[0].observations
    return np.asarray(entry.times), np.asarray(entry.values)


def virus(theta: Array, steps_a_day: int = STEPS_A_DAY) -> Array:
    """V at days 1..30 for rows (beta, rho, delta, c, lambda, N)."""
    beta, rho, delta, c, supply, burst = theta.T

    def slope(t: Array, i: Array, v: Array) -> tuple[Array, Array, Array]:
        infection = beta * t * v
        return supply - rho * t - infection, infection - delta * i, burst * delta * i - c * v

    state: tuple[Array, ...] = (supply / rho, np.zeros_like(beta), np.full_like(beta, 50.0))
    h = 1.0 / steps_a_day
    rows = []
    for step in range(1, 30 * steps_a_day + 1):
        k1 = slope(*state)
        k2 = slope(*(x + 0.5 * h * k for x, k in zip(state, k1, strict=True)))
        k3 = slope(*(x + 0.5 * h * k for x, k in zip(state, k2, strict=True)))
        k4 = slope(*(x + h * k for x, k in zip(state, k3, strict=True)))
        state = tuple(
            x + h / 6 * (a + 2 * b + 2 * c_ + d) for x, a, b, c_, d in zip(state, k1, k2, k3, k4, strict=True)
        )
        if step % steps_a_day == 0:
            rows.append(state[2])
    return np.stack(rows, axis=1)


def interval(m: Array) -> tuple[Array, Array]:
    """Interval of lambda, given m = lambda*N."""
    return np.maximum(1.0, m / 5000.0), np.minimum(100.0, m / 100.0)


def log_density(z: Array) -> Array:
    """Log density of z = log(beta, rho, delta, c, m), up to a constant."""
    x = np.exp(z)
    low, high = interval(x[:, 4])
    inside = ((BOUNDS[:, 0] < x[:, :4]) & (x[:, :4] < BOUNDS[:, 1])).all(axis=1) & (low < high)
    theta = np.column_stack([x[:, :4], x[:, 4] / 1000.0, np.full(len(x), 1000.0)])
    residual = (virus(theta) - observed()[1]) / 50.0
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = np.log(np.log(high / low)) + z.sum(axis=1)
    return np.where(inside, -0.5 * (residual**2).sum(axis=1) + prior, -np.inf)


class Weighted(NamedTuple):
    theta: Array
    weight: Array

    def distribution(self, column: int, values: Array) -> tuple[Array, Array]:
        """P(theta_j <= value), and its standard error."""
        below = self.theta[:, column, None] <= values
        share = self.weight @ below
        return share, np.sqrt((self.weight**2) @ (below - share) ** 2)


@cache
def draws(number: int = 20_000, seed: int = 0) -> Weighted:
    z = TRUTH.copy()
    step = 1e-4 * np.eye(5)
    for _ in range(8):  # Gauss-Newton
        x = np.exp(np.vstack([z, z + step, z - step]))
        found = virus(np.column_stack([x[:, :4], x[:, 4] / 1000.0, np.full(len(x), 1000.0)])) / 50.0
        slope = ((found[1:6] - found[6:]) / 2e-4).T
        covariance = np.linalg.inv(slope.T @ slope)
        z = z + covariance @ slope.T @ (observed()[1] / 50.0 - found[0])
    rng = np.random.default_rng(seed)
    proposal = stats.multivariate_t(z, 1.2 * covariance, df=6, seed=rng)
    drawn = proposal.rvs(number)
    log_weight = log_density(drawn) - proposal.logpdf(drawn)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    if not 1 / (weight**2).sum() > 0.4 * number:
        raise AssertionError("the proposal of the HIV reference does not fit")
    x = np.exp(drawn)
    low, high = interval(x[:, 4])
    supply = low * (high / low) ** rng.random(number)
    return Weighted(np.column_stack([x[:, :4], supply, x[:, 4] / supply]), weight)


def combination(name: str, theta: Array) -> Array:
    """lambda*N, or lambda*N/c."""
    product = theta[:, 4] * theta[:, 5]
    return {"lambda*N": product, "lambda*N/c": product / theta[:, 3]}[name]


def marginal(name: str, number: int) -> Marginal:
    """Marginal of a parameter or combination: its distribution by weights, its density by a kernel or along fibres."""
    found = draws(number)
    values = found.theta[:, NAMES.index(name)] if name in NAMES else combination(name, found.theta)
    order = np.argsort(values)
    ordered, weight = values[order], found.weight[order]
    probability = np.cumsum(weight) - 0.5 * weight
    grid = np.quantile(ordered, np.linspace(0, 1, 400))
    at = np.interp(grid, ordered, probability)
    below = ordered[:, None] <= grid[None, ::20]
    error = np.sqrt((weight**2) @ (below - at[::20]) ** 2).max()
    if name in ("lambda", "N"):
        grid = np.geomspace(ordered[0], ordered[-1], 400)
        density = _along_fibres(name, grid, found)
        at = np.interp(grid, ordered, probability)
    else:
        kernel = stats.gaussian_kde(values, weights=found.weight)
        kernel.set_bandwidth(1.4 * kernel.scotts_factor())
        density = kernel(grid)
    return Marginal(grid, np.maximum.accumulate(at), density, float(error))


def _along_fibres(name: str, grid: Array, found: Weighted) -> Array:
    """lambda given m = lambda*N is loguniform on an interval, and so is N: the mean of these densities."""
    low, high = interval(found.theta[:, 4] * found.theta[:, 5])
    if name == "N":
        m = found.theta[:, 4] * found.theta[:, 5]
        low, high = m / high, m / low
    share = found.weight / np.log(high / low)
    return np.array([share[(low < x) & (x < high)].sum() / x for x in grid])
