r"""Laws g_c of the free coordinates theta_I given c, for the estimate of p_C(c).

Any law will do that is positive wherever the prior is and that depends on c alone, never on where the chain is: the
sampler is exact with each of them. How well it mixes depends on how even the weights p / (g_c |det dxi/dtheta_D|) are.

A law of your own is a class made from a `Fibre` with the three members of `Law`; give the class itself as option ``law``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.prior import LOGUNIFORM, UNIFORM, from_theta, log_prior, to_theta
from equifinal.samplers.combination_coordinates import combination_coordinates

Array = NDArray[np.float64]

WIDE = 0.2  # share of the prior in laws that are local: it bounds their weights


class Moments(NamedTuple):
    """Mean and covariance of (h(c), u), learned in warm-up and then frozen; a row for each c."""

    mean: Array  # (n, q + d)
    covariance: Array  # (n, q + d, q + d)


class Drawn(NamedTuple):
    """theta_I (n, N, r) and log g_c of it (n, N); both NaN where there is nothing to draw."""

    free: Array
    log_density: Array


class Law(Protocol):
    """g_c.

    Attributes
    ----------
    width
        How many uniforms a point takes.
    """

    width: int

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        """Points for each row of c (n, q) from uniforms (n, N, width): theta_I is a function of c and its uniforms."""
        ...

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        """log g_c of given theta_I (n, N, r); minus infinity where it is zero."""
        ...


class _FreeLaw:
    """What laws share: the free coordinates' names, priors and table."""

    def __init__(self, fibre: Fibre):
        self.fibre = fibre
        self.width = fibre.dimension
        self.priors = [fibre.priors[name] for name in fibre.free]
        self.table = np.ascontiguousarray(fibre.table[fibre.chart.free])

    def _log_prior(self, free: Array) -> Array:
        rows = np.ascontiguousarray(free).reshape(-1, free.shape[2])
        return log_prior(rows, self.table).reshape(free.shape[:2])


class PriorLaw(_FreeLaw):
    """The prior's marginal of theta_I."""

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        free = np.empty((*uniforms.shape[:2], len(self.priors)))
        for k, prior in enumerate(self.priors):
            free[..., k] = prior.quantile(uniforms[..., k])
        return Drawn(free, self._log_prior(free))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        return self._log_prior(free)


class UniformLaw(_FreeLaw):
    """Uniform between the bounds of theta_I, where these are finite."""

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        self.lower, self.upper = fibre.bounds[fibre.chart.free].T
        endless = [name for name, prior in zip(fibre.free, self.priors, strict=True) if not _bounded(prior)]
        if endless:
            raise SamplingError(
                f"a uniform law needs finite bounds, which {', '.join(endless)} does not have: take law 'prior'"
            )

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        free = self.lower + (self.upper - self.lower) * uniforms
        return Drawn(free, self.log_density(c, free, moments))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        inside = np.all((free >= self.lower) & (free <= self.upper), axis=2)
        return np.where(inside, -float(np.log(self.upper - self.lower).sum()), -np.inf)


def _bounded(prior) -> bool:
    return math.isfinite(prior.lower) and math.isfinite(prior.upper)


class IntervalLaw(_FreeLaw):
    """On the feasible intervals of a fibre of dimension 1, exactly where there are roots inside the bounds.

    Under a flat prior whose sampling coordinate is bounded the law is uniform in that coordinate; else it is the prior
    of theta_I truncated to the intervals.
    """

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        if fibre.dimension != 1:
            raise SamplingError(
                f"law 'interval' is for fibres of dimension 1; these have {fibre.dimension}: take law 'prior'"
            )
        with np.errstate(divide="ignore"):
            ends = from_theta(fibre.bounds[fibre.chart.free].T.copy(), self.table)
        self.flat = self.table[0, 0] in (UNIFORM, LOGUNIFORM) and bool(np.isfinite(ends).all())

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        lower, upper, mass = self._pieces(c)
        total = mass.sum(axis=1)
        before = np.cumsum(mass, axis=1) - mass
        at = uniforms[..., 0] * total[:, None]
        which = np.sum(before[:, None, 1:] <= at[..., None], axis=2)
        last = np.max(np.where(mass > 0, np.arange(mass.shape[1]), 0), axis=1)
        which = np.minimum(which, last[:, None])
        rows = np.arange(len(c))[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip((at - before[rows, which]) / mass[rows, which], 0.0, 1.0)
            low, high = lower[rows, which], upper[rows, which]
            free, log_density = self._within(low, high, share)
            return Drawn(free[..., None], log_density - np.log(total)[:, None])

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        lower, upper, mass = self._pieces(c)
        x = free[..., 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.flat:
                u = from_theta(np.ascontiguousarray(free).reshape(-1, 1), self.table)
                log_density = -to_theta(u, self.table)[1].reshape(x.shape)
                u = u.reshape(x.shape)
            else:
                u, log_density = x, self._log_prior(free)
            inside = np.any((lower[:, None, :] <= u[..., None]) & (u[..., None] <= upper[:, None, :]), axis=2)
            return np.where(inside, log_density - np.log(mass.sum(axis=1))[:, None], -np.inf)

    def _pieces(self, c: Array) -> tuple[Array, Array, Array]:
        """Ends of the intervals, in u if the law is flat in u, and their masses."""
        found = self.fibre.support(c)
        intervals = found.intervals[:, : max(1, int(found.found.max(initial=1)))]
        lower, upper = np.ascontiguousarray(intervals[..., 0]), np.ascontiguousarray(intervals[..., 1])
        with np.errstate(invalid="ignore"):
            if self.flat:
                lower, upper = (from_theta(x.reshape(-1, 1), self.table).reshape(x.shape) for x in (lower, upper))
                mass = upper - lower
            else:
                mass = self.priors[0].mass(lower, upper)
        return lower, upper, np.where(mass > 0, mass, 0.0)

    def _within(self, low: Array, high: Array, share: Array) -> tuple[Array, Array]:
        if self.flat:
            u = low + share * (high - low)
            free, log_slope = to_theta(u.reshape(-1, 1), self.table)
            return free.reshape(u.shape), -log_slope.reshape(u.shape)
        free = self.priors[0].between(low, high, share)
        return free, self._log_prior(free[..., None])


class _GaussianLaw(_FreeLaw):
    """Gaussian in the sampling coordinates of theta_I, with a share of the prior."""

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        self.wide = PriorLaw(fibre)
        self.width = fibre.dimension + 1
        self.coordinates = combination_coordinates(fibre)

    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        """Centre (n, r), and Cholesky factor (n, r, r) of the covariance: functions of c and of what was learned."""
        raise NotImplementedError

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        from scipy.special import ndtri

        centre, factor = self._shape(c, moments)
        normals = ndtri(uniforms[..., 1:])
        u = np.repeat(centre[:, None, :], uniforms.shape[1], axis=1)
        r = u.shape[2]
        for j in range(r):  # entry by entry: the order of sums must not depend on how many c there are
            for k in range(j + 1):
                u[..., j] += factor[:, None, j, k] * normals[..., k]
        narrow = to_theta(u.reshape(-1, r), self.table)[0].reshape(u.shape)
        wide = self.wide.draw(c, uniforms[..., 1:], moments).free
        free = np.where(uniforms[..., :1] < WIDE, wide, narrow)
        return Drawn(free, self._mixture(c, free, centre, factor))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        return self._mixture(c, free, *self._shape(c, moments))

    def _mixture(self, c: Array, free: Array, centre: Array, factor: Array) -> Array:
        n, number, r = free.shape
        with np.errstate(invalid="ignore", divide="ignore"):
            u = from_theta(np.ascontiguousarray(free).reshape(-1, r), self.table)
            log_slope = to_theta(u, self.table)[1].reshape(n, number)
            rest = u.reshape(free.shape) - centre[:, None, :]
            log_narrow = np.full((n, number), math.log(1 - WIDE) - 0.5 * r * math.log(2 * math.pi)) - log_slope
            for j in range(r):  # forward substitution
                for k in range(j):
                    rest[..., j] -= factor[:, None, j, k] * rest[..., k]
                rest[..., j] /= factor[:, None, j, j]
                log_narrow -= 0.5 * rest[..., j] ** 2 + np.log(factor[:, None, j, j])
        log_narrow = np.where(np.isnan(log_narrow), -np.inf, log_narrow)
        return np.logaddexp(log_narrow, math.log(WIDE) + self._log_prior(free))


class LearnedLaw(_GaussianLaw):
    """The regression of u_I on h(c) that warm-up has seen, with the scatter around it."""

    inflation = 1.5

    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        q, at = self.fibre.rank, self.fibre.rank + self.fibre.chart.free
        h = self.coordinates.forward(c)
        covariance = moments.covariance
        spread = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 1e-300))
        scaled = covariance / (spread[:, :, None] * spread[:, None, :])
        inner = scaled[:, :q, :q] + 1e-6 * np.eye(q)
        cross = scaled[:, at][:, :, :q]
        slope = np.linalg.solve(inner, np.swapaxes(cross, 1, 2))  # (n, q, r)
        with np.errstate(invalid="ignore"):
            z = (h - moments.mean[:, :q]) / spread[:, :q]
        z = np.where(np.isfinite(z), np.clip(z, -10.0, 10.0), 0.0)  # no faith in regressions far away
        centre = moments.mean[:, at] + spread[:, at] * np.sum(z[:, :, None] * slope, axis=1)
        left = scaled[:, at][:, :, at] - np.sum(cross[:, :, :, None] * slope[:, None, :, :], axis=2)
        left = 0.5 * (left + np.swapaxes(left, 1, 2))
        return centre, self.inflation * spread[:, at, None] * _factor(left)


class LocalLaw(_GaussianLaw):
    """Around an anchor projected on M_c, with covariance e1 (G + kappa)^-1 + e2.

    The anchor is the mean of u in warm-up; G = D_I^T D_I, with D_I the derivative of h(xi) by u_I, all in units of the
    prior's spread, at the projected anchor.
    """

    e1, e2, kappa = 1.0, 0.25, 1.0
    steps = 20

    def _shape(self, c: Array, moments: Moments) -> tuple[Array, Array]:
        fibre, at = self.fibre, self.fibre.chart.free
        spread = fibre.spread_in_coordinates / 1.349
        u = moments.mean[:, fibre.rank :].copy()
        good = u.copy()
        for _ in range(self.steps):  # Gauss-Newton, the shortest way in units of the spread
            found = fibre.geometry_in_coordinates(u)
            fine = found.status == 0
            good[fine] = u[fine]
            jacobian = found.jacobian[fine] * spread
            gram = np.sum(jacobian[:, :, None, :] * jacobian[:, None, :, :], axis=3)
            missing = c[fine] - found.values[fine]
            size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
            scaled = gram / (size[:, :, None] * size[:, None, :]) + 1e-12 * np.eye(fibre.rank)
            along = np.linalg.solve(scaled, (missing / size)[..., None])[..., 0] / size
            move = np.sum(along[:, :, None] * jacobian, axis=1)
            length = np.sqrt(np.sum(move**2, axis=1, keepdims=True))
            with np.errstate(invalid="ignore"):
                move *= np.minimum(1.0, 2.0 / np.maximum(length, 1e-300))
            u[fine] += np.where(np.isfinite(move), move, 0.0) * spread
        found = fibre.geometry_in_coordinates(good)
        inner = self.coordinates.jacobian(found.values, found.jacobian)[:, :, at] * spread[at]
        with np.errstate(invalid="ignore", over="ignore"):
            metric = np.sum(inner[:, :, :, None] * inner[:, :, None, :], axis=1)
        r = len(at)
        metric = np.where(np.isfinite(metric).all(axis=(1, 2))[:, None, None], metric, np.eye(r))
        covariance = self.e1 * np.linalg.inv(metric + self.kappa * np.eye(r)) + self.e2 * np.eye(r)
        return good[:, at], spread[at][:, None] * np.linalg.cholesky(covariance)


def _factor(covariance: Array) -> Array:
    """Cholesky factors of correlation-like matrices that may be singular."""
    r = covariance.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-4)
    sound = np.sum(vectors[:, :, None, :] * values[:, None, None, :] * vectors[:, None, :, :], axis=3)
    return np.linalg.cholesky(sound + 1e-12 * np.eye(r))


LAWS: dict[str, Callable[[Fibre], Law]] = {
    "interval": IntervalLaw,
    "prior": PriorLaw,
    "uniform": UniformLaw,
    "local": LocalLaw,
    "learned": LearnedLaw,
}
