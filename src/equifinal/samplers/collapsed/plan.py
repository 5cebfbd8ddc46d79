"""A proposal that fits the posterior of the combinations, from prior draws alone.

Modes first, then rounds of importance sampling around them. Where no mixture fits, tempered particles look for modes
that were missed; and where that does not help, walkers spread over the posterior and tell its shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.language.expression import Name
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.marginal.noise_integral import NoiseIntegral, apart, fitted, nothing
from equifinal.samplers.marginal.target import AnyEstimator, CountedTarget, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals import quality
from equifinal.samplers.proposals.log_sums import beside_largest
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.quality import Quality
from equifinal.samplers.searching import walkers
from equifinal.samplers.searching.importance import Importance, laplace
from equifinal.samplers.searching.modes import Modes, find_modes, find_more_modes, news, on_the_way, unfolded
from equifinal.samplers.searching.tempering import NUMBER

Array = NDArray[np.float64]

LITTLE_NOISE, TOO_NOISY = 0.02, 2.0  # variance of log hat p_C: good enough, and not usable
DRAWN = 64  # trajectories at which the integrals over noise parameters are tried


class Plan(NamedTuple):
    """What the preparation found: a proposal, draws to start from, and what it cost."""

    mixture: Mixture
    quality: Quality
    number: int  # of points on a fibre
    unfolded: NDArray[np.bool_]  # which combinations are replaced in x
    held: NDArray[np.bool_]  # which parameters, of the noise, are integrated out: from noise_start, with noise_scale,
    noise_start: Array
    noise_scale: Array
    noise_points: int
    start: Array  # x (n, q less those), with
    weights: Array  # importance weights
    local: NDArray[Any]  # Cholesky factor for local steps; zero if the proposal can do without
    moments: Moments  # one row
    noise: float  # variance of log hat p_C at the highest mode
    modes: int
    solves: int
    failures: int

    def noise_integral(self, posterior: Posterior) -> NoiseIntegral:
        """Give the integral over noise parameters."""
        held = tuple(name for name, there in zip(posterior.parameters, self.held, strict=True) if there)
        return NoiseIntegral(posterior, held, self.noise_start, self.noise_scale, self.noise_points)

    @property
    def refusal(self) -> str:
        """Why this proposal is not good enough; empty if it is."""
        if self.noise > TOO_NOISY:
            return f"the prior density of the combinations cannot be estimated well (log variance {self.noise:.1f})"
        return quality.refusal(self.quality, last=True)


def prepare(
    posterior: Posterior,
    fibre: Fibre,
    tools: Sequence[Callable[[], AnyEstimator]],
    rng: np.random.Generator,
    report: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Find the posterior from prior draws, and a proposal for it.

    Parameters
    ----------
    tools
        Make estimators of p_C with more and more points; the first is taken that is good enough.
    """
    modes = find_modes(posterior, fibre, rng, report)
    counted, noise = _counted(posterior, fibre, tools, modes, rng)
    if counted.target.integral.parameters:
        report(f"{', '.join(counted.target.integral.parameters)}: integrated out along each trajectory")
    search = Importance(counted, unfolded(posterior, counted.coordinates, modes))
    solves, failures = modes.solves, modes.failures
    passes = search.passes(report)
    if not passes and not modes.tempered and noise <= TOO_NOISY:
        report(f"no proposal fits: {NUMBER} tempered particles")
        before, modes = modes, find_more_modes(posterior, fibre, rng, modes)
        solves, failures = solves + modes.solves, failures + modes.failures
        found_more = news(modes, before)
        report(modes.in_words if found_more else "no other mode")
        if found_more:
            solves, failures = solves + counted.solves, failures + counted.failures
            counted, noise = _counted(posterior, fibre, tools, modes, rng)
            search = Importance(counted, unfolded(posterior, counted.coordinates, modes))
            passes = search.passes(report)
    if search.nowhere:
        raise SamplingError(
            "no draw around the modes has a finite posterior density: no parameters have such combinations, or the "
            "solver fails there"
        )
    mixture, found = search.proposals[-1], search.quality
    start, weights = search.weighted()
    q = start.shape[1]
    local: NDArray[Any] = np.zeros((q, q))
    if not passes and noise <= TOO_NOISY and q:
        around = on_the_way(posterior, rng, walkers.NUMBER, modes.log_density[0])
        solves, failures = solves + around.solves, failures + around.failures
        x = counted.coordinates.at(around.position)
        mixture, found, start = walkers.settle(counted, mixture, x, report)
        weights = np.full(len(start), 1 / len(start))
        covariance = np.cov(start.T).reshape(local.shape)
        local = np.linalg.cholesky(covariance + 1e-6 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q))
    integral = counted.target.integral
    return Plan(
        mixture=mixture,
        quality=found,
        number=counted.target.tool.number,
        unfolded=counted.coordinates.replaced,
        held=np.isin(fibre.names, integral.parameters),
        noise_start=integral.start,
        noise_scale=integral.scale,
        noise_points=integral.number,
        start=start,
        weights=weights,
        local=local,
        moments=counted.moments,
        noise=noise,
        modes=len(modes.h),
        solves=solves + counted.solves,
        failures=failures + counted.failures,
    )


def _counted(
    posterior: Posterior,
    fibre: Fibre,
    tools: Sequence[Callable[[], AnyEstimator]],
    modes: Modes,
    rng: np.random.Generator,
) -> tuple[CountedTarget, float]:
    """The target around modes, and the noise of its estimates."""
    moments = _moments_at(modes, fibre)
    tool, noise = _enough_points(modes, tools, fibre, moments, rng)
    plain = CountedTarget(Target(posterior, fibre, tool, nothing(posterior)), moments, rng)
    parameters = apart(posterior, fibre)
    if not parameters or noise > TOO_NOISY:
        return plain, noise
    own = [fibre.combinations.independent.index(Name(name)) for name in parameters]
    width = np.sqrt(np.diag(modes.covariance[0])[own])
    start = modes.position[0][[fibre.names.index(name) for name in parameters]]
    theta = _some_theta(plain, modes)
    found = posterior.outputs(theta)
    integral = fitted(posterior, parameters, start, width, found, theta, LITTLE_NOISE, rng)
    counted = CountedTarget(Target(posterior, fibre, tool, integral), moments, rng)
    counted.solves += plain.solves + int(found.solves.sum())
    counted.failures += plain.failures + int(found.failures.sum())
    return counted, noise


def _some_theta(counted: CountedTarget, modes: Modes) -> Array:
    """The modes, and some draws of the posterior more or less, by one small round of importance sampling."""
    law = laplace(unfolded(counted.target.posterior, counted.coordinates, modes))
    x = law.sample(counted.rng, DRAWN)
    made = counted.estimates(x)
    with np.errstate(invalid="ignore"):
        weights = beside_largest(made.log_target - counted.log_density(law, x))
    theta = counted.target.fibre.to_theta(modes.position)
    if weights.sum() > 0:
        chosen = counted.rng.choice(DRAWN, DRAWN, p=weights / weights.sum())
        theta = np.concatenate([theta, made.chosen[chosen]])
    return theta


def _moments_at(modes: Modes, fibre: Fibre) -> Moments:
    """For laws that are learned: the highest mode, with the prior's spread along the fibre."""
    q = fibre.rank
    spread = np.concatenate([np.ones(q), fibre.spread_in_coordinates])
    covariance = np.diag(spread**2)
    covariance[:q, :q] = modes.covariance[0]
    return Moments(np.concatenate([modes.h[0], modes.position[0]])[None], covariance[None])


def _enough_points(
    modes: Modes,
    tools: Sequence[Callable[[], AnyEstimator]],
    fibre: Fibre,
    moments: Moments,
    rng: np.random.Generator,
    trials: int = 100,
) -> tuple[AnyEstimator, float]:
    """As few points as make log hat p_C nearly free of noise at the highest mode; and its variance."""
    c, _ = combination_coordinates(fibre).backward(modes.h[:1])
    for make in tools:
        tool = make()
        points = tool.many_uniforms(rng, trials)
        repeated = Moments(*(np.repeat(part, trials, axis=0) for part in moments))
        log_p = tool.estimate(np.repeat(c, trials, axis=0), points, repeated).log_p
        usable = log_p[np.isfinite(log_p)]
        noise = float(np.var(usable)) if len(usable) > 0.9 * trials else math.inf
        if noise < LITTLE_NOISE:
            break
    return tool, noise
