"""The posterior density of the combinations, estimated: what importance sampling, walkers and chains are about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.samplers.estimator import Estimate, Estimator, EstimatorByC, choose
from equifinal.samplers.law import Moments
from equifinal.samplers.mixture import Mixture
from equifinal.samplers.unfolding import unfolding

Array = NDArray[np.float64]
Tool = Estimator | EstimatorByC

PIECE = 2_000_000  # points on fibres that are kept in memory together


class Target(NamedTuple):
    """log of l(c) hat p_C(c) |dc/dx| at points x, with all that goes with it."""

    log_target: Array
    log_likelihood: Array
    chosen: Array  # theta, by weight
    found: Estimate
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


def evaluate(
    posterior: Posterior, fibre: Fibre, tool: Tool, x: Array, points: Array, uniforms: Array, moments: Moments
) -> Target:
    """At x (n, q), which `unfolding` makes c of, with points (n, N, width) and uniforms (n,) that choose a root."""
    c, log_slope = unfolding(fibre).backward(x)
    found = tool.estimate(c, points, moments)
    chosen = found.theta[np.arange(len(x)), choose(found.log_weight, uniforms)]
    with np.errstate(invalid="ignore"):
        density = found.log_p + log_slope
    possible = np.isfinite(density)
    likelihood, solves, failures = np.full(len(x), -np.inf), np.zeros(len(x), int), np.zeros(len(x), int)
    if possible.any():
        likelihood[possible], solves[possible], failures[possible] = posterior.log_likelihood(chosen[possible])
    target = np.where(possible & np.isfinite(likelihood), density + likelihood, -np.inf)
    return Target(target, likelihood, chosen, found, solves, failures)


class Explored:
    """The log of the target at points, each with new points on its fibre; and what that has cost so far."""

    def __init__(self, posterior: Posterior, fibre: Fibre, tool: Tool, moments: Moments, rng: np.random.Generator):
        self.posterior, self.fibre, self.tool, self.moments, self.rng = posterior, fibre, tool, moments, rng
        self.solves = self.failures = 0

    def log_target(self, x: Array) -> Array:
        together = max(1, PIECE // self.tool.number)
        return np.concatenate([self._piece(x[i : i + together]) for i in range(0, len(x), together)])

    def log_density(self, mixture: Mixture, x: Array) -> Array:
        """Of a proposal, with which the target is to be compared."""
        return unfolding(self.fibre).log_density(mixture, x)

    def _piece(self, x: Array) -> Array:
        points, choices = self.tool.many_uniforms(self.rng, len(x)), self.rng.random(len(x))
        repeated = Moments(*(np.repeat(part, len(x), axis=0) for part in self.moments))
        made = evaluate(self.posterior, self.fibre, self.tool, x, points, choices, repeated)
        self.solves, self.failures = self.solves + int(made.solves.sum()), self.failures + int(made.failures.sum())
        return made.log_target
