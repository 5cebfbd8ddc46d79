"""Exact draws of (theta, U) for samplers that keep points U: theta from the posterior, U given that theta is in it."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from equifinal.fibre import Fibre
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.marginal.noise_integral import WIDER, Integrated, NoiseIntegral
from equifinal.samplers.points import laws
from equifinal.samplers.points.block_law import BlockLaw
from equifinal.samplers.points.estimator import Estimator
from equifinal.samplers.points.gaussian_laws import WIDE, GaussianLaw
from equifinal.samplers.points.lattice import shifted
from equifinal.samplers.points.law import Moments, PriorLaw
from equifinal.samplers.points.polytope import PolytopeLaw


def moments_of(fibre: Fibre, theta: np.ndarray, n: int) -> Moments:
    """What a warm-up would have learned, from other draws, for n chains."""
    h = combination_coordinates(fibre).forward(fibre.xi(theta))
    both = np.concatenate([h, fibre.to_coordinates(theta)], axis=1)
    return Moments(np.tile(both.mean(axis=0), (n, 1)), np.tile(np.cov(both.T), (n, 1, 1)))


def law_uniforms(law, c, free, moments, rng) -> np.ndarray:
    """Uniforms (n, width) from which the law would draw theta_I (n, r)."""
    n = len(free)
    if isinstance(law, laws.NoPoint):
        return np.empty((n, 0))
    if isinstance(law, laws.UniformLaw):
        return (free - law.lower) / (law.upper - law.lower)
    if isinstance(law, laws.IntervalLaw):
        lower, upper, mass = law._pieces(c)
        x = laws.from_theta(free, law.table) if law.flat else free
        share = np.clip((x - lower) / (upper - lower), 0, 1)
        if not law.flat:
            inside = np.clip(x, lower, upper)
            with np.errstate(invalid="ignore", divide="ignore"):
                share = law.priors[0].mass(lower, inside) / mass
        return (np.nansum(np.where(mass > 0, share * mass, 0), axis=1) / mass.sum(axis=1))[:, None]
    if isinstance(law, PolytopeLaw):
        return law.inverse(c, free[:, None])[:, 0]
    if isinstance(law, BlockLaw):
        found = []
        for combinations, at, columns, part in law.parts:
            own = Moments(moments.mean[:, columns], moments.covariance[:, columns[:, None], columns])
            found.append(law_uniforms(part, c[:, combinations], np.ascontiguousarray(free[:, at]), own, rng))
        return np.concatenate(found, axis=1)
    quantiles = np.column_stack([prior.cdf(free[:, k]) for k, prior in enumerate(law.priors)])
    if isinstance(law, PriorLaw):
        return quantiles
    assert isinstance(law, GaussianLaw)
    centre, factor = law._shape(c, moments)
    rest = laws.from_theta(np.ascontiguousarray(free), law.table) - centre
    normal = special.ndtr(np.linalg.solve(factor, rest[..., None])[..., 0])
    log_wide = np.log(WIDE) + law.log_prior(free[:, None])[:, 0]
    wide = np.log(rng.random(n)) < log_wide - law.log_density(c, free[:, None], moments)[:, 0]
    first = rng.random(n) * np.where(wide, WIDE, 1 - WIDE) + np.where(wide, 0.0, WIDE)
    return np.column_stack([first, np.where(wide[:, None], quantiles, normal)])


def integrated(integral: NoiseIntegral, theta, rng) -> Integrated:
    """Noise parameters that have their law given that those of theta (n, d) were chosen from them."""
    n, k = len(theta), len(integral.parameters)
    own = np.empty((n, k))
    if k:
        u = laws.from_theta(np.ascontiguousarray(theta[:, integral.columns]), integral._table)
        centre, factor = integral.law(integral.posterior.outputs(theta), theta)
        apart = (u - integral.start) / integral.scale - centre
        own = stats.t(4).cdf(np.einsum("nba,nb->na", factor, apart) / WIDER)
    chosen = rng.integers(integral.number, size=(n, len(integral.groups)))[:, integral._group_of]
    points = np.stack([shifted(integral.base, shift) for shift in own - integral.base[chosen, np.arange(k)]])
    found, _, _ = integral.integrate(theta, points)
    there = found.values[np.arange(n)[:, None], chosen, np.arange(k)]
    np.testing.assert_allclose(there, theta[:, integral.columns], rtol=1e-6)
    return found


def stationary(tool: Estimator, theta, moments, rng):
    """An estimate over c = xi(theta) from points that have their law given that theta was chosen from them."""
    n = len(theta)
    if tool.base is None:
        uniforms = rng.random((n, tool.number, tool.width))
        return tool.around(theta, uniforms, moments)
    c = tool.fibre.xi(theta)
    charts = len(tool.charts)
    which = np.zeros(n, int)
    if charts > 1:
        each = tool._log_intensities(c, theta[:, None], moments)[..., 0]
        shares = np.exp(each - each.max(axis=0)) / np.exp(each - each.max(axis=0)).sum(axis=0)
        which = np.sum(np.cumsum(shares, axis=0)[:-1] < rng.random(n), axis=0)
    own = rng.random((n, tool.width))
    for k in range(charts):
        at = which == k
        part = Moments(moments.mean[at], moments.covariance[at])
        free = theta[at][:, tool.charts[k].chart.free]
        found = law_uniforms(tool.laws[k], c[at], free, part, rng)
        own[np.ix_(at, range(tool.choices, tool.choices + found.shape[1]))] = found
    if charts > 1:
        own[:, 0] = (which + rng.random(n)) / charts
    if tool.one_root:
        roots = tool.charts[0].weighted(theta[:, None, tool.charts[0].chart.free], c)
        apart = np.abs(roots.theta[:, 0] / theta[:, None] - 1).max(axis=2)
        own[:, 0] = (np.nanargmin(apart, axis=1) + rng.random(n)) / roots.found[:, 0]
    chosen = rng.integers(tool.number, size=n)
    points = np.stack([shifted(tool.base, shift) for shift in own - tool.base[chosen]])
    return tool.estimate(c, points, moments)
