"""The posterior density of the combinations, estimated: what importance sampling, populations and chains are about.

Noise parameters that can be integrated out for a trajectory (`noise_integral`) are not among the combinations then: c
is held at a value of theirs, whose prior density is divided out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.coordinates.unfolding import Unfolding, unfolding
from equifinal.samplers.marginal.noise_integral import Integrated, NoiseIntegral
from equifinal.samplers.points.estimator import Estimate, Estimator, EstimatorByC
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals.log_sums import choose
from equifinal.samplers.proposals.mixture import Mixture

Array = NDArray[np.float64]
AnyEstimator = Estimator | EstimatorByC

PIECE = 2_000_000  # points on fibres that are kept in memory together


class Numbers(NamedTuple):
    """Uniforms behind n estimates: points on fibres (n, N, width), those of noise parameters (n, M, k), a root (n,)."""

    points: Array
    noise: Array
    choice: Array


class Estimates(NamedTuple):
    """log of l(c) p_C(c) |dc/dx| at points x, with all that goes with it."""

    log_target: Array
    integrated: Integrated
    chosen: Array  # theta, by weight, with noise parameters as they are held
    found: Estimate
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class Target:
    """How the density is estimated.

    Attributes
    ----------
    coordinates
        What x is: `Unfolding`, noise parameters held, and bent, if so.
    """

    def __init__(
        self,
        posterior: Posterior,
        fibre: Fibre,
        tool: AnyEstimator,
        integral: NoiseIntegral,
        bend: Bend | None = None,
    ):
        self.posterior = posterior
        self.fibre = fibre
        self.tool = tool
        self.integral = integral
        straight = unfolding(fibre).holding(integral.parameters, integral.start)
        self.coordinates: Unfolding = straight if bend is None else straight.bent(bend)

    def numbers(self, rng: np.random.Generator, number: int) -> Numbers:
        """Draw the random numbers of so many estimates."""
        points = self.tool.many_uniforms(rng, number)
        return Numbers(points, self.integral.uniforms(rng, number), rng.random(number))

    def estimate(self, x: Array, numbers: Numbers, moments: Moments) -> Estimates:
        """Estimate the target at x (n, q less what is held)."""
        n = len(x)
        c, log_slope = self.coordinates.backward(x)
        found = self.tool.estimate(c, numbers.points, moments)
        chosen = found.theta[np.arange(n), choose(found.log_weight, numbers.choice)]
        with np.errstate(invalid="ignore"):
            density = found.log_p + log_slope - self.integral.log_prior_at_start
        possible = np.isfinite(density)
        integrated, solves, failures = self._scattered(chosen, numbers.noise, possible)
        log_l = integrated.log_mean
        target = np.where(possible & np.isfinite(log_l), density + log_l, -np.inf)
        return Estimates(target, integrated, chosen, found, solves, failures)

    def _scattered(
        self, theta: Array, uniforms: Array, possible: NDArray[np.bool_]
    ) -> tuple[Integrated, NDArray[np.int64], NDArray[np.int64]]:
        """No solve is spent where nothing is possible."""
        n, number, k = uniforms.shape
        nowhere = np.full((n, len(self.integral.groups), number), -np.inf)
        made = Integrated(np.full((n, number, k), np.nan), nowhere, nowhere.copy())
        solves, failures = np.zeros((2, n), np.int64)
        if possible.any():
            there, solves[possible], failures[possible] = self.integral.integrate(theta[possible], uniforms[possible])
            for whole, part in zip(made, there, strict=True):
                whole[possible] = part
        return made, solves, failures


class CountedTarget:
    """The log of the target at points, each with new points on its fibre; and what that has cost so far."""

    def __init__(self, target: Target, moments: Moments, rng: np.random.Generator):
        self.target: Target = target
        self.moments = moments
        self.rng = rng
        self.solves: int = 0
        self.failures: int = 0

    @property
    def coordinates(self) -> Unfolding:
        return self.target.coordinates

    def bend(self, bend: Bend) -> None:
        """From now on, x is bent in this way."""
        target = self.target
        self.target = Target(target.posterior, target.fibre, target.tool, target.integral, bend)

    def log_target(self, x: Array) -> Array:
        return np.concatenate([made.log_target for made in self.in_pieces(x)])

    def log_prior_and_likelihood(self, x: Array) -> tuple[Array, Array]:
        """log p(x) and log l(x), minus infinity where there is none."""
        made = [(part.log_target, part.integrated.log_mean) for part in self.in_pieces(x)]
        log_target, log_likelihood = (np.concatenate(parts) for parts in zip(*made, strict=True))
        there = np.isfinite(log_target)
        with np.errstate(invalid="ignore"):
            return np.where(there, log_target - log_likelihood, -np.inf), np.where(there, log_likelihood, -np.inf)

    def in_pieces(self, x: Array) -> Iterator[Estimates]:
        """Estimate the target at points, however many."""
        together = max(1, PIECE // self.target.tool.number)
        for i in range(0, max(1, len(x)), together):
            yield self.estimates(x[i : i + together])

    def log_density(self, mixture: Mixture, x: Array) -> Array:
        """Log density of a proposal, for comparison with the target."""
        return self.coordinates.log_density(mixture, x)

    def estimates(self, x: Array) -> Estimates:
        """Estimate the target at points that are not too many at once."""
        repeated = Moments(*(np.repeat(part, len(x), axis=0) for part in self.moments))
        made = self.target.estimate(x, self.target.numbers(self.rng, len(x)), repeated)
        self.solves, self.failures = self.solves + int(made.solves.sum()), self.failures + int(made.failures.sum())
        return made
