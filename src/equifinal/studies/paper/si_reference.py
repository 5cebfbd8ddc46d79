"""The posterior of the SI example without sampling: quadrature over c, exactly along the fibre.

With c = (k, g, m) = (beta/rho, beta N - gamma, rho I0) reports follow the logistic y' = g y - k y^2, y(0) = m. A fibre
is an interval of rho on which the posterior is uniform, for the priors are flat and |det| = 1 in the chart rho. So the
posterior of c has the density l(c) times the length of that interval, and every parameter has its distribution
function along the fibre in closed form.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.studies.paper.marginal import Marginal

Array = NDArray[np.float64]

NAMES = ("beta", "rho", "gamma", "I0")
TRUTH = np.array([2.5e-4, 0.25, 0.6, 40.0])
POPULATION = 1e4
SI_BOUNDS = np.array([[1e-5, 1e-3], [0.01, 1.0], [0.01, 1.0], [1.0, 500.0]])
COMBINATIONS = ("beta/rho", "beta*N - gamma", "rho*I0")


@cache
def si_data() -> tuple[Array, Array]:
    (entry,) = load(example_path("si")).experiments[0].observations
    return np.asarray(entry.times), np.asarray(entry.values)


def si_log_likelihood(c: Array) -> Array:
    """Log likelihood of c = (beta/rho, beta N - gamma, rho I0): y is logistic, y' = c2 y - c1 y^2, y(0) = c3."""
    times, values = si_data()
    k, g, m = (c[:, j, None] for j in range(3))
    growth = np.exp(g * times)
    y = m * growth / (1 + k * m * times * np.where(g == 0, 1.0, np.expm1(g * times) / np.where(g == 0, 1.0, g * times)))
    return -0.5 * np.sum(((y - values) / 5) ** 2, axis=1)


def si_combinations(theta: Array) -> Array:
    beta, rho, gamma, i0 = theta.T
    return np.column_stack([beta / rho, beta * POPULATION - gamma, rho * i0])


def si_interval(c: Array) -> tuple[Array, Array]:
    """Interval of rho in which the fibre over c lies in the box; its points are uniform in rho, as |det| = 1."""
    k, g, m = c.T
    (b0, b1), (r0, r1), (g0, g1), (i0, i1) = SI_BOUNDS
    low = np.max([b0 / k, np.full_like(k, r0), (g0 + g) / (k * POPULATION), m / i1], axis=0)
    high = np.min([b1 / k, np.full_like(k, r1), (g1 + g) / (k * POPULATION), m / i0], axis=0)
    return low, np.maximum(high, low)


@cache
def si_laplace() -> tuple[Array, Array]:
    """Mode of c, and covariance of log c, roughly; c is positive wherever the posterior is not negligible."""
    start = si_combinations(TRUTH[None])[0]
    found = optimize.minimize(lambda z: -si_log_likelihood((start * np.exp(z))[None])[0], np.zeros(3), tol=1e-10)
    mode, step = start * np.exp(found.x), 1e-4
    hessian = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            a, b = np.eye(3)[i] * step, np.eye(3)[j] * step
            points = mode * np.exp([a + b, a - b, b - a, -a - b])
            hessian[i, j] = -np.dot([1, -1, -1, 1], si_log_likelihood(points)) / (4 * step**2)
    return mode, np.asarray(np.linalg.inv(hessian), float)


def si_marginal(name: int, values: Array, points: int = 61) -> Array:
    """The posterior distribution function of a parameter of SI, by quadrature over c, exactly along the fibre."""
    mode, covariance = si_laplace()
    line = np.linspace(-7, 7, points)
    z = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    c = mode * np.exp(z @ np.linalg.cholesky(covariance).T)
    low, high = si_interval(c)
    log_like = si_log_likelihood(c)
    weight = np.exp(log_like - log_like.max()) * (high - low) * c.prod(axis=1)
    used = weight > 1e-12 * weight.max()
    c, low, high, weight = c[used], low[used], high[used], weight[used]
    k, g, m = c.T
    found = []
    for x in values:
        # where along the fibre the parameter passes x; I0 falls with rho, the others rise
        at = [x / k, np.full_like(k, x), (x + g) / (k * POPULATION), m / x][name]
        share = (np.clip(at, low, high) - low) / (high - low)
        found.append(np.average(1 - share if name == 3 else share, weights=weight))
    return np.array(found)


@cache
def si_parameter(name: str, points: int = 400) -> Marginal:
    """A parameter's marginal on a grid from one end of its posterior to the other."""
    column = NAMES.index(name)
    coarse = np.linspace(SI_BOUNDS[column, 0], SI_BOUNDS[column, 1], 60)
    inside = si_marginal(column, coarse, 31)
    low = coarse[max(0, int(np.searchsorted(inside, 1e-9)) - 1)]
    high = coarse[min(len(coarse) - 1, int(np.searchsorted(inside, 1 - 1e-9)) + 1)]
    values = np.linspace(low, high, points)
    probability = si_marginal(column, values, 41)
    return Marginal(values, probability, np.gradient(probability, values))


@cache
def si_combination(name: str, points: int = 241) -> Marginal:
    """A combination's marginal: the others are integrated out at each of its values."""
    first = COMBINATIONS.index(name)
    order = [first, *(k for k in range(3) if k != first)]
    mode, covariance = si_laplace()
    factor = np.linalg.cholesky(covariance[np.ix_(order, order)])
    own, other = np.linspace(-7, 7, points), np.linspace(-7, 7, 61)
    density = np.empty(points)
    grid = np.stack(np.meshgrid(other, other, indexing="ij"), axis=-1).reshape(-1, 2)
    peak = float(si_log_likelihood(mode[None])[0])
    for k, z in enumerate(own):
        c = np.empty((len(grid), 3))
        c[:, order] = mode[order] * np.exp(np.column_stack([np.full(len(grid), z), grid]) @ factor.T)
        low, high = si_interval(c)
        density[k] = np.sum(np.exp(si_log_likelihood(c) - peak) * (high - low) * c.prod(axis=1))
    values = mode[first] * np.exp(own * factor[0, 0])
    density /= values  # of c, not of its logarithm
    probability = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(values))])
    return Marginal(values, probability / probability[-1], density / probability[-1])
