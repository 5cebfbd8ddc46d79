r"""Tempered particles: from prior draws to the posterior by way of powers of the likelihood.

Particles follow the laws

    pi_b(u) ~ L(u)^b p(u),   0 = b_0 < b_1 < ... < 1

in sampling coordinates (Del Moral, Doucet and Jasra 2006, Journal of the Royal Statistical Society B 68). Each power is
the one at which weights L^(b' - b) halve the effective sample size. Systematic resampling follows, and moves of
`differential_evolution`.

Each mode keeps its share of pi_b on the way, so particles may find what climbers from the best prior draws miss: unless
that share is at some power below that of a few particles. They cost 20 to 100 solves each; before that becomes more
than `MOST` for each experiment they stop at a lower power, which is good enough for starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.posterior.posterior import Evaluation, Posterior
from equifinal.samplers.searching.differential_evolution import trials

Array = NDArray[np.float64]

NUMBER = 500
MOVES = 4  # of each particle at each power
MOST = 50_000  # solves for each experiment
ROUNDS = 20  # of prior draws, until a quarter as many as particles have a finite density


class Particles(NamedTuple):
    """Positions u (n, d) of equal weight, their log posterior density in u, and the power of the likelihood reached."""

    position: Array
    log_density: Array
    power: float
    solves: int
    failures: int


def temper(posterior: Posterior, rng: np.random.Generator, number: int = NUMBER) -> Particles:
    """Particles of the posterior, from prior draws."""
    cloud = _Cloud(posterior, rng, number)
    most = MOST * len(posterior.likelihoods)
    while cloud.power < 1 and cloud.solves + MOVES * number * len(posterior.likelihoods) <= most:
        cloud.advance(number)
        for _ in range(MOVES):
            cloud.move()
    density = cloud.log_prior + cloud.log_likelihood
    return Particles(cloud.u, density, cloud.power, cloud.solves, cloud.failures)


def next_power(log_likelihood: Array, power: float) -> float:
    """The power at which the effective sample size is half the number, or 1."""

    def effective(later: float) -> float:
        log_weight = (later - power) * log_likelihood
        weights = np.exp(log_weight - log_weight.max())
        return float(weights.sum() ** 2 / (weights @ weights))

    half = len(log_likelihood) / 2
    if effective(1.0) >= half:
        return 1.0
    low, high = power, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) >= half else (low, middle)
    return high


def systematic(weights: Array, number: int, uniform: float) -> NDArray[np.int64]:
    """Which to keep: one at every 1/number of the cumulative weights, from uniform/number on."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends / ends[-1], (np.arange(number) + uniform) / number, side="right")


class _Cloud:
    """Particles on their way; all of them have a finite density."""

    def __init__(self, posterior: Posterior, rng: np.random.Generator, number: int):
        self.posterior, self.rng = posterior, rng
        self.power, self.solves, self.failures = 0.0, 0, 0
        self.u = np.empty((0, posterior.dimension))
        self.log_prior = self.log_likelihood = np.empty(0)
        for _ in range(ROUNDS):
            u = posterior.to_coordinates(posterior.sample_prior(rng, number))
            found = self._evaluate(u)
            fine = np.isfinite(found.log_prior) & np.isfinite(found.log_likelihood)
            self.u = np.concatenate([self.u, u[fine]])
            self.log_prior = np.concatenate([self.log_prior, found.log_prior[fine]])
            self.log_likelihood = np.concatenate([self.log_likelihood, found.log_likelihood[fine]])
            if 4 * len(self.u) >= number:
                return
        if not len(self.u):
            raise SamplingError(f"no particles: none of {ROUNDS * number} prior draws has a finite posterior density")

    def advance(self, number: int) -> None:
        """Move the particles to the next power of the likelihood."""
        later = next_power(self.log_likelihood, self.power)
        log_weight = (later - self.power) * self.log_likelihood
        kept = systematic(np.exp(log_weight - log_weight.max()), number, self.rng.random())
        self._keep(kept)
        self.power = later

    def move(self) -> None:
        """Every particle once."""
        for mine, trial in trials(self.u, self.rng):
            found = self._evaluate(trial)
            uniforms = self.rng.random(len(mine))
            with np.errstate(divide="ignore"):
                gain = found.log_prior - self.log_prior[mine]
                gain += self.power * (found.log_likelihood - self.log_likelihood[mine])
                taken = np.log(uniforms) < gain
            moved = mine[taken]
            self.u[moved], self.log_prior[moved] = trial[taken], found.log_prior[taken]
            self.log_likelihood[moved] = found.log_likelihood[taken]

    def _keep(self, rows: NDArray[np.int64]) -> None:
        self.u, self.log_prior = self.u[rows], self.log_prior[rows]
        self.log_likelihood = self.log_likelihood[rows]

    def _evaluate(self, u: Array) -> Evaluation:
        found = self.posterior.evaluate(u)
        self.solves, self.failures = self.solves + int(found.solves.sum()), self.failures + int(found.failures.sum())
        return found
