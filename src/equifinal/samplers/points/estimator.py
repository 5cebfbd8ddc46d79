r"""The prior density of the combinations, p_C(c), estimated without bias; and theta given c from the same points.

With theta = (theta_I, theta_D) and theta_D = g_k(theta_I, c), k = 1..K,

    p_C(c) = integral over theta_I of sum_k p(theta_I, g_k) / |det dxi/dtheta_D|.

Draw N points theta_I from a law g_c, find all their roots, and weigh each root:

    w = p(theta) / (N g_c(theta_I) |det dxi/dtheta_D|),     hat p_C(c) = sum of all w.

The mean of hat p_C is p_C, whatever N, and also where the points depend on each other, if each has the law g_c. A root
chosen with probability proportional to its weight stands for theta given c.

Instead of all roots of a point, one of them may be drawn and given the weight K w (``roots="one"``).

Several charts. With probability a_D a point is drawn in the chart D, whose determinant may vanish where another one's
does not; all roots found, in whatever chart, get the weight

    w = p(theta) / (N sum_D a_D g_D(theta_I) |det_D|),

the balance heuristic: the denominator is the density of roots on the fibre, under dH/J, from all charts together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.machine.compiled import compiled
from equifinal.samplers.points.lattice import lattice, shifted
from equifinal.samplers.points.law import Drawn, Law, Moments
from equifinal.samplers.points.laws import LawChoice, make_law

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Estimate(NamedTuple):
    """hat p_C for n values of c, and the roots it consists of.

    ``theta`` is (n, N most, d) and ``log_weight`` (n, N most), minus infinity where there is no root; their sum is
    ``log_p``. ``empty`` counts points without any weight, ``roots`` all roots, ``unresolved`` points of which some root
    is uncertain.
    """

    log_p: Array
    theta: Array
    log_weight: Array
    empty: Integers
    roots: Integers
    unresolved: Integers


class Estimator:
    """Estimates of p_C for batches of c.

    Parameters
    ----------
    number
        N, points for each c.
    points
        ``"lattice"``, randomly shifted, or ``"iid"``.
    law
        Of theta_I given c: a name of `LAWS`, ``"auto"``, or a class such as those.
    roots
        ``"sum"`` over the roots of a point, or ``"one"`` of them.
    charts
        Sets of free coordinates by name, to mix; left out, the fibre's own chart.
    """

    def __init__(
        self,
        fibre: Fibre,
        number: int,
        *,
        points: str = "lattice",
        law: LawChoice = "auto",
        roots: str = "sum",
        charts: Sequence[Sequence[str]] = (),
    ):
        self.fibre = fibre
        self.number = number
        self.one_root: bool = roots == "one"
        self.charts: list[Fibre] = [fibre.with_partition(tuple(free)) for free in charts] or [fibre]
        if self.one_root and len(self.charts) > 1:
            raise SamplingError("several charts need the sum over the roots of each point, not one root")
        self.laws: list[Law] = [make_law(chart, law) for chart in self.charts]
        self.choices: int = int(self.one_root or len(self.charts) > 1)  # a uniform for the root, or for the chart
        self.width: int = max(law.width for law in self.laws) + self.choices
        self.base: Array | None = lattice(number, self.width) if points == "lattice" else None

    def uniforms(self, rng: np.random.Generator) -> Array:
        """(N, width), each row uniform."""
        if self.base is None:
            return np.maximum(rng.random((self.number, self.width)), 2.0**-54)
        return shifted(self.base, rng.random(self.width))

    def many_uniforms(self, rng: np.random.Generator, number: int) -> Array:
        """(number, N, width), for as many estimates."""
        if self.base is None:
            return np.maximum(rng.random((number, self.number, self.width)), 2.0**-54)
        return shifted(self.base, rng.random((number, 1, self.width)))

    def estimate(self, c: Array, uniforms: Array, moments: Moments) -> Estimate:
        """Estimate from c (n, q) and uniforms (n, N, width)."""
        return self._estimate(c, uniforms, moments, None)

    def around(self, theta: Array, uniforms: Array, moments: Moments) -> Estimate:
        """The same over c = xi(theta), with theta (n, d) among the roots of the first point.

        For independent points, this is their law given that theta was chosen from them.
        """
        found = self._estimate(self.fibre.xi(theta), uniforms, moments, theta)
        lost = np.flatnonzero(~np.isfinite(found.log_p))  # its roots are uncertain: then theta alone
        if len(lost):
            at, law = self.charts[0].chart.free, self.laws[0]
            here = theta[lost]
            density = law.log_density(self.fibre.xi(here), here[:, None, at], _rows(moments, lost))[:, 0]
            weight = self.fibre.log_prior(here) - self._log_det(here, self.charts[0])[:, 0] - density
            # an infinite weight (theta on an end of the law, or on a fold) would hold a chain forever
            weight = np.where(np.isfinite(weight), weight, self.fibre.log_prior(here))
            found.theta[lost, 0] = here
            found.log_p[lost] = found.log_weight[lost, 0] = weight - math.log(self.number)
        return found

    def _estimate(self, c: Array, uniforms: Array, moments: Moments, through: Array | None) -> Estimate:
        one_chart = len(self.charts) == 1
        drawn = (self._simple if one_chart else self._mixed)(c, uniforms, moments, through)
        theta, log_density, log_intensity, unresolved = drawn
        n, number, most, d = theta.shape
        log_p, log_weight, empty, roots = _gathered(log_density, log_intensity, math.log(self.number))
        theta = theta.reshape(n, number * most, d)
        return Estimate(log_p, theta, log_weight, empty, roots, np.sum(unresolved, axis=1))

    def _draw(self, k: int, c: Array, uniforms: Array, moments: Moments, through: Array | None) -> Drawn:
        law, at = self.laws[k], self.charts[k].chart.free
        free, log_density = law.draw(c, uniforms[..., self.choices : self.choices + law.width], moments)
        if through is not None:
            own = through[:, None, at]
            free[:, :1], log_density[:, :1] = own, law.log_density(c, own, moments)
        return Drawn(free, log_density)

    def _simple(self, c: Array, uniforms: Array, moments: Moments, through: Array | None) -> tuple[Array, ...]:
        """Roots, log p - log |det| of each, log g_c, and which points are uncertain."""
        drawn = self._draw(0, c, uniforms, moments, through)
        found = self.charts[0].weighted(drawn.free, c)
        log_weight = found.log_weight
        if self.one_root:
            chosen = np.minimum((uniforms[..., 0] * found.found).astype(int), np.maximum(found.found - 1, 0))
            if through is not None:
                with np.errstate(invalid="ignore", divide="ignore"):
                    apart = np.max(np.abs(found.theta[:, 0] / through[:, None, :] - 1), axis=2)
                chosen[:, 0] = np.argmin(np.where(np.isnan(apart), np.inf, apart), axis=1)
            with np.errstate(divide="ignore"):
                times = np.log(found.found)[..., None]
            here = np.arange(log_weight.shape[2]) == chosen[..., None]
            log_weight = np.where(here, log_weight + times, -np.inf)
        return found.theta, log_weight, drawn.log_density[..., None], found.status != 0

    def _mixed(self, c: Array, uniforms: Array, moments: Moments, through: Array | None) -> tuple[Array, ...]:
        """Roots, log p of each, log of their density on the fibre, and which points are uncertain."""
        n, number, charts = *uniforms.shape[:2], len(self.charts)
        which = np.minimum((uniforms[..., 0] * charts).astype(int), charts - 1)
        if through is not None:  # from which chart theta came
            each = self._log_intensities(c, through[:, None], moments)[..., 0]
            shares = np.exp(each - each.max(axis=0))
            which[:, 0] = np.sum(np.cumsum(shares, axis=0)[:-1] < uniforms[:, 0, 0] * shares.sum(axis=0), axis=0)
        parts = [
            chart.weighted(self._draw(k, c, uniforms, moments, through).free, c) for k, chart in enumerate(self.charts)
        ]
        most = max(part.theta.shape[2] for part in parts)
        theta = np.full((n, number, most, len(self.fibre.names)), np.nan)
        log_prior, unresolved = np.full((n, number, most), -np.inf), np.zeros((n, number), bool)
        for k, part in enumerate(parts):
            own, width = which == k, part.theta.shape[2]
            theta[own, :width] = part.theta[own]
            unresolved |= own & (part.status != 0)
        there = np.isfinite(theta[..., 0])
        log_prior[there] = self.fibre.log_prior(theta[there])
        each = self._log_intensities(c, theta.reshape(n, number * most, -1), moments)
        with np.errstate(invalid="ignore"):
            log_intensity = np.logaddexp.reduce(each, axis=0).reshape(n, number, most) - math.log(charts)
        return theta, log_prior, log_intensity, unresolved

    def _log_intensities(self, c: Array, theta: Array, moments: Moments) -> Array:
        """log g_D |det_D| of points (n, m, d), for each chart D first."""
        n, m, d = theta.shape
        log_det = self._log_det(theta.reshape(n * m, d), *self.charts)
        found = [
            law.log_density(c, theta[..., chart.chart.free], moments) + log_det[:, k].reshape(n, m)
            for k, (chart, law) in enumerate(zip(self.charts, self.laws, strict=True))
        ]
        return np.array(found)

    def _log_det(self, theta: Array, *charts: Fibre) -> Array:
        """log |det dxi/dtheta_D| of points (n, d) for each chart D; NaN where theta is."""
        columns = np.array([chart.chart.dependent for chart in charts], np.int64).reshape(len(charts), self.fibre.rank)
        return self.fibre.combinations.log_determinants(np.ascontiguousarray(theta), columns)


class EstimatorByC:
    """Estimates, for each c, in the chart that is best there: a function of c alone."""

    def __init__(self, fibre: Fibre, number: int, **options: Any):
        self.fibre = fibre
        self._options = options
        self.number = number
        self._made = {fibre.free: Estimator(fibre, number, **options)}
        own = self._made[fibre.free]
        self.width: int = own.width
        self.base: Array | None = own.base
        self.uniforms: Callable[[np.random.Generator], Array] = own.uniforms
        self.many_uniforms: Callable[[np.random.Generator, int], Array] = own.many_uniforms

    def estimate(self, c: Array, uniforms: Array, moments: Moments) -> Estimate:
        return self._collect(c, lambda part, i: part.estimate(c[i], uniforms[i], _rows(moments, i)))

    def around(self, theta: Array, uniforms: Array, moments: Moments) -> Estimate:
        c = self.fibre.xi(theta)
        return self._collect(c, lambda part, i: part.around(theta[i], uniforms[i], _rows(moments, i)))

    def _collect(self, c: Array, estimate: Callable[[Estimator, slice], Estimate]) -> Estimate:
        parts = [estimate(self._part(row), slice(i, i + 1)) for i, row in enumerate(c)]
        most = max(part.log_weight.shape[1] for part in parts)
        return Estimate(*(np.concatenate([padded(p, most) for p in pieces]) for pieces in zip(*parts, strict=True)))

    def _part(self, c: Array) -> Estimator:
        free = self.fibre.partition_at(c) if np.isfinite(c).all() else self.fibre.free
        if free not in self._made:
            self._made[free] = Estimator(self.fibre.with_partition(free), self.number, **self._options)
        return self._made[free]


def padded(piece: Array, most: int) -> Array:
    """Pad to so many roots; those added have no weight."""
    if piece.ndim == 1 or piece.shape[1] == most:
        return piece
    filled = np.full((len(piece), most, *piece.shape[2:]), -np.inf if piece.ndim == 2 else np.nan)
    filled[:, : piece.shape[1]] = piece
    return filled


def log_variance(log_p: Array) -> Array:
    """The variance of log hat p_C in each row of repeated estimates, by way of that of hat p_C, which may be zero."""
    largest = log_p.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        p = np.exp(log_p - largest)
    found = np.log1p(p.var(axis=1) / p.mean(axis=1) ** 2)
    return np.where(np.isfinite(largest[:, 0]), found, np.inf)


def _rows(moments: Moments, at: slice | Integers) -> Moments:
    return Moments(moments.mean[at], moments.covariance[at])


@compiled
def _gathered(log_density, log_intensity, log_number):
    """log hat p, log weights, points without weight and roots, from numerators and denominators (n, N, most or 1)."""
    n, number, most = log_density.shape
    log_weight = np.empty((n, number * most))
    log_p, empty, roots = np.empty(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
    shared = log_intensity.shape[2] == 1
    for i in range(n):
        largest = -np.inf
        for j in range(number):
            found = 0
            for k in range(most):
                value = log_density[i, j, k] - log_intensity[i, j, 0 if shared else k] - log_number
                if not value < np.inf:  # NaN where nothing was drawn
                    value = -np.inf
                if value > -np.inf:
                    found += 1
                log_weight[i, j * most + k] = value
                largest = max(largest, value)
            roots[i] += found
            empty[i] += found == 0
        total = 0.0
        if largest > -np.inf:
            for j in range(number * most):
                total += math.exp(log_weight[i, j] - largest)
        log_p[i] = largest + math.log(total) if total > 0.0 else -np.inf
    return log_p, log_weight, empty, roots
