"""From prior draws to a mode of the posterior: screening, then Levenberg-Marquardt.

Many prior draws are looked at, and from the best few of them steps

    (H + lambda diag H) delta = gradient of log L(u) + log p(u),   H = information + curvature of the prior

go uphill in sampling coordinates, with a smaller lambda after a step that helps and a larger one after one that does
not. Flat priors are left out of p (but in logit coordinates), so that climbers stay where they are in directions in
which the likelihood does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.posterior.posterior import Posterior
from equifinal.problem.prior import LOGIT, from_theta, log_prior, to_theta
from equifinal.problem.prior_families import LOGUNIFORM, UNIFORM

Array = NDArray[np.float64]

PRIOR_DRAWS, ROUNDS = 50, 20
PIECE = 64  # prior draws that are solved together: a limit of time is looked at in between
SCREENED, SCREENED_EACH = 200, 40  # prior draws that a search begins with: at least, and for each parameter
CLIMBERS, CLIMBERS_EACH, LAST_CLIMBERS = 5, 2, 3  # of them
LEGS = (30, 60, 120)  # steps
ENOUGH = 1e-3  # of log density: a gain that is no longer worth a step
LONGEST = 3.0  # a step, in units of the prior's spread
DIFFERENCE = 1e-4  # of coordinates, for slopes of the prior


class Start(NamedTuple):
    position: Array
    solves: int
    failures: int


class Climb(NamedTuple):
    """Where climbers ended: positions (n, d), log density (n,), whether there is no way up; and the work it took."""

    position: Array
    log_density: Array
    arrived: NDArray[np.bool_]
    solves: int
    failures: int


def prior_start(posterior: Posterior, rng: np.random.Generator) -> Start:
    """The first of many prior draws with a finite posterior density."""
    found = screen(posterior, rng, PRIOR_DRAWS)
    return Start(found.position[np.flatnonzero(np.isfinite(found.log_density))[0]], found.solves, found.failures)


def search(posterior: Posterior, rng: np.random.Generator) -> Start:
    """The best end of a few climbs from the best of many prior draws, with half of the climbers left after each leg."""
    d = posterior.dimension
    found = screen(posterior, rng, max(SCREENED, SCREENED_EACH * d))
    usable = np.isfinite(found.log_density)
    climbers = min(max(CLIMBERS, CLIMBERS_EACH * d), int(usable.sum()))
    best = np.argsort(-np.where(usable, found.log_density, -np.inf), kind="stable")
    at, solves, failures = found.position[best[:climbers]], found.solves, found.failures
    density, arrived = found.log_density[best[:climbers]], np.zeros(climbers, bool)
    for steps in LEGS:
        if not arrived.all():
            ends = climb(posterior, at[~arrived], steps)
            solves, failures = solves + ends.solves, failures + ends.failures
            at[~arrived], density[~arrived], arrived[~arrived] = ends.position, ends.log_density, ends.arrived
        best = np.argsort(-density, kind="stable")[: max(LAST_CLIMBERS, len(at) // 2)]
        at, density, arrived = at[best], density[best], arrived[best]
    return Start(at[0], solves, failures)


def screen(
    posterior: Posterior, rng: np.random.Generator, number: int, told: Callable[[float], None] = lambda done: None
) -> Climb:
    """Prior draws, at least one of them with a finite density; ``told`` hears which share of them is made."""
    solves = failures = 0
    for _ in range(ROUNDS):
        u = posterior.to_coordinates(posterior.sample_prior(rng, number))
        density = np.empty(number)
        for at in range(0, number, PIECE):
            told(at / number)
            found = posterior.evaluate(u[at : at + PIECE])
            solves, failures = solves + int(found.solves.sum()), failures + int(found.failures.sum())
            with np.errstate(invalid="ignore"):
                density[at : at + PIECE] = found.log_prior + found.log_likelihood
        if np.isfinite(density).any():
            return Climb(u, density, np.zeros(number, bool), solves, failures)
    raise SamplingError(
        f"no starting point: none of {ROUNDS * number} prior draws has a finite posterior density ({failures} solves "
        "failed). Check that the priors allow the data (positive outputs for counts and lognormal noise), that the "
        "units of data and model agree, and try narrower priors; `equifinal simulate` shows what the priors imply"
    )


def climb(posterior: Posterior, u: Array, steps: int, told: Callable[[int], None] = lambda step: None) -> Climb:
    """Levenberg-Marquardt from each row of u by itself; ``told`` hears of every step."""
    lower, upper, spread = _box(posterior)
    u = np.clip(u, lower, upper)
    n = len(u)
    value, gradient, hessian, solves, failures = _local(posterior, u)
    damping = np.full(n, 1e-2)
    idle = np.zeros(n, int)
    for step_number in range(steps):
        told(step_number)
        going = np.flatnonzero(_going(idle, damping, value))
        if not len(going):
            break
        at, slope = u[going], gradient[going]
        stopped = ((at <= lower) & (slope < 0)) | ((at >= upper) & (slope > 0))
        step = _step(hessian[going], np.where(stopped, 0.0, slope), stopped, damping[going], spread)
        trial = np.clip(at + step, lower, upper)
        there = _local(posterior, trial)
        solves, failures = solves + there[3], failures + there[4]
        with np.errstate(invalid="ignore"):
            gain = there[0] - value[going]
        better = gain > 0
        # at the top a step gains or loses next to nothing, as rounding has it
        idle[going] = np.where(gain > ENOUGH, 0, idle[going] + (gain > -ENOUGH))
        damping[going] = np.where(better, damping[going] / 5, damping[going] * 4)
        good = going[better]
        u[good], value[good] = trial[better], there[0][better]
        gradient[good], hessian[good] = there[1][better], there[2][better]
    return Climb(u, value, ~_going(idle, damping, value), solves, failures)


def _going(idle: NDArray[np.int64], damping: Array, value: Array) -> NDArray[np.bool_]:
    return (idle < 3) & (damping < 1e8) & np.isfinite(value)


def laplace(posterior: Posterior, u: Array) -> tuple[Array, int]:
    """Covariances (n, d, d) of Gaussians fitted at positions u, no wider than the prior; and the solves it took."""
    spread = _box(posterior)[2]
    _, _, hessian, solves, _ = _local(posterior, u)
    scaled = hessian * spread[:, None] * spread + np.eye(u.shape[1])
    usable = np.isfinite(scaled).all(axis=(1, 2))
    scaled[~usable] = np.eye(u.shape[1])
    # by eigenvalues, none of which is below one: a general inverse of a matrix as uneven as this need not be positive
    values, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(values, 1.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return inverse * spread[:, None] * spread, solves


def _step(hessian: Array, slope: Array, stopped: NDArray[np.bool_], damping: Array, spread: Array) -> Array:
    d = slope.shape[1]
    scaled = hessian * spread[:, None] * spread
    free = ~stopped
    scaled = scaled * (free[:, :, None] & free[:, None, :])
    size = np.diagonal(scaled, axis1=1, axis2=2)
    floor = 1e-6 * size.max(axis=1, keepdims=True) + 1e-10
    ridge = damping[:, None] * np.maximum(size, floor) + stopped
    matrix = scaled + ridge[:, :, None] * np.eye(d)
    # in units that make the diagonal one, and a little more than that: along a fibre the rest is singular
    unit = np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
    matrix = matrix / (unit[:, :, None] * unit[:, None, :]) + 1e-9 * np.eye(d)
    step = np.linalg.solve(matrix, (slope * spread / unit)[..., None])[..., 0] / unit
    longest = np.abs(step).max(axis=1, keepdims=True)
    return step * np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300)) * spread


def _box(posterior: Posterior) -> tuple[Array, Array, Array]:
    """The support in sampling coordinates, a little inside, and the spread of the prior there."""
    table = posterior.table
    priors = [posterior.problem.priors[name] for name in posterior.parameters]
    marks = np.array([p.quantile([1e-4, 0.25, 0.75, 1 - 1e-4]) for p in priors]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = from_theta(np.ascontiguousarray(table[:, 5:7].T), table)
        inner = from_theta(np.ascontiguousarray(marks), table)
    spread = np.abs(inner[2] - inner[1]) / 1.349
    low, high = np.sort(bounds, axis=0)
    near, far = np.sort(inner[[0, 3]], axis=0)
    # where a coordinate has no end, far out in the prior's tail is far enough
    width = far - near
    lower = np.where(np.isfinite(low), low + 1e-6 * width, near - 2 * width)
    upper = np.where(np.isfinite(high), high - 1e-6 * width, far + 2 * width)
    return lower, upper, np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)


def _local(posterior: Posterior, u: Array) -> tuple[Array, Array, Array, int, int]:
    """log density, its gradient, minus its curvature, solves and failures, in sampling coordinates."""
    table = posterior.table
    theta, _ = to_theta(u, table)
    found = posterior.expand(theta)
    d = u.shape[1]
    gradient, hessian = np.empty_like(u), np.empty((len(u), d, d))
    prior = _log_prior(u, table)
    slopes = np.empty_like(u)
    for k in range(d):
        moved = np.repeat(u, 2, axis=0)
        moved[::2, k] -= DIFFERENCE
        moved[1::2, k] += DIFFERENCE
        around = _log_prior(moved, table)
        moved_theta = to_theta(moved, table)[0][:, k]
        slopes[:, k] = (moved_theta[1::2] - moved_theta[::2]) / (2 * DIFFERENCE)
        with np.errstate(invalid="ignore"):
            first = (around[1::2] - around[::2]) / (2 * DIFFERENCE)
            second = (around[1::2] + around[::2] - 2 * prior) / DIFFERENCE**2
        gradient[:, k] = found.gradient[:, k] * slopes[:, k] + np.where(np.isfinite(first), first, 0.0)
        hessian[:, k, :] = 0.0
        hessian[:, k, k] = np.where(np.isfinite(second), np.maximum(-second, 0.0), 0.0)
    hessian += found.information * slopes[:, :, None] * slopes[:, None, :]
    value = prior + found.log_likelihood
    fine = np.isfinite(gradient).all(axis=1) & np.isfinite(hessian).all(axis=(1, 2))
    value = np.where(fine & ~np.isnan(value), value, -np.inf)
    return value, gradient, hessian, int(found.solves.sum()), int(found.failures.sum())


def _log_prior(u: Array, table: Array) -> Array:
    """log density of u, without that of flat priors in coordinates that end at their bounds.

    It would drive climbers along fibres to a bound. In logit coordinates it keeps them away from there.
    """
    curved = ~np.isin(table[:, 0], (UNIFORM, LOGUNIFORM)) | (table[:, 7] == LOGIT)
    theta, log_slope = to_theta(np.ascontiguousarray(u[:, curved]), np.ascontiguousarray(table[curved]))
    return log_prior(theta, np.ascontiguousarray(table[curved])) + log_slope
