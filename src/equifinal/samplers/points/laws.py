"""Laws of theta_I given c, by name: the prior, uniform ones, and those of `gaussian_laws` and `polytope`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.problem.prior import Prior, from_theta, to_theta
from equifinal.problem.prior_families import LOGUNIFORM, UNIFORM
from equifinal.samplers.points import names
from equifinal.samplers.points.block_law import BlockLaw, blocks
from equifinal.samplers.points.gaussian_laws import LearnedLaw, LocalLaw
from equifinal.samplers.points.law import Drawn, FreeLaw, Law, Moments, PriorLaw
from equifinal.samplers.points.own_law import own_law
from equifinal.samplers.points.polytope import PolytopeLaw

Array = NDArray[np.float64]
LawChoice = str | Callable[[Fibre], Law]


class UniformLaw(FreeLaw):
    """Uniform between the bounds of theta_I, where these are finite."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        self.lower, self.upper = fibre.bounds[fibre.chart.free].T
        endless = [name for name, prior in zip(fibre.free, self.priors, strict=True) if not _bounded(prior)]
        if endless:
            raise SamplingError(
                f"a uniform law needs finite bounds, which {', '.join(endless)} does not have: use law 'prior'"
            )

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        free = self.lower + (self.upper - self.lower) * uniforms
        return Drawn(free, self.log_density(c, free, moments))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        inside = np.all((free >= self.lower) & (free <= self.upper), axis=2)
        return np.where(inside, -float(np.log(self.upper - self.lower).sum()), -np.inf)


def _bounded(prior: Prior) -> bool:
    return math.isfinite(prior.lower) and math.isfinite(prior.upper)


class IntervalLaw(FreeLaw):
    """Law on the feasible intervals of a fibre of dimension 1, exactly where there are roots inside the bounds.

    Under a flat prior whose sampling coordinate is bounded the law is uniform in that coordinate; else it is the prior
    of theta_I truncated to the intervals.
    """

    def __init__(self, fibre: Fibre):
        super().__init__(fibre)
        if fibre.dimension != 1:
            raise SamplingError(
                f"law 'interval' is for fibres of dimension 1; these have dimension {fibre.dimension}: use law 'prior'"
            )
        with np.errstate(divide="ignore"):
            ends = from_theta(fibre.bounds[fibre.chart.free].T.copy(), self.table)
        self.flat: bool = self.table[0, 0] in (UNIFORM, LOGUNIFORM) and bool(np.isfinite(ends).all())

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        lower, upper, mass = self._pieces(c)
        up_to = np.cumsum(mass, axis=1)  # in order, however many intervals other rows have
        total, before = up_to[:, -1], up_to - mass
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
                u, log_density = x, self.log_prior(free)
            inside = np.any((lower[:, None, :] <= u[..., None]) & (u[..., None] <= upper[:, None, :]), axis=2)
            return np.where(inside, log_density - np.log(np.cumsum(mass, axis=1)[:, -1])[:, None], -np.inf)

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
        return free, self.log_prior(free[..., None])


class NoPoint:
    """The law of theta_I where there is none: every parameter is determined, up to swaps."""

    width = 0

    def __init__(self, fibre: Fibre):
        pass

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        return Drawn(np.empty((*uniforms.shape[:2], 0)), np.zeros(uniforms.shape[:2]))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        return np.zeros(free.shape[:2])


_CLASSES = (IntervalLaw, PolytopeLaw, PriorLaw, UniformLaw, LocalLaw, LearnedLaw)
LAWS: dict[str, Callable[[Fibre], Law]] = dict(zip(names.LAWS, _CLASSES, strict=True))


def make_law(fibre: Fibre, choice: LawChoice) -> Law:
    """A law by name or by its class; ``"auto"`` takes the best that the fibre allows, block by block."""
    if fibre.dimension == 0:
        return NoPoint(fibre)
    if not isinstance(choice, str):
        return own_law(fibre, choice)
    if choice != "auto":
        return LAWS[choice](fibre)
    if fibre.dimension == 1:
        return IntervalLaw(fibre)
    split = sum(1 for block in blocks(fibre) if set(block.parameters) & set(fibre.chart.free.tolist()))
    return BlockLaw(fibre, best_law) if split > 1 else best_law(fibre)


def best_law(fibre: Fibre) -> Law:
    """Choose the best law for a fibre that is one piece."""
    if fibre.dimension == 1:
        return IntervalLaw(fibre)
    if all(prior.family in ("uniform", "loguniform") for prior in fibre.priors.values()):
        try:
            return PolytopeLaw(fibre)
        except SamplingError:
            pass
    return LearnedLaw(fibre)
