r"""Two tempered populations: from prior draws to the posterior of the combinations, by way of powers of the likelihood.

Each population follows the laws

    pi_b(x) ~ l(x)^b p(x),   0 = b_0 < b_1 < ... < 1

(Del Moral, Doucet and Jasra 2006, Journal of the Royal Statistical Society B 68), x being coordinates of the
combinations, without noise parameters that are integrated out. They are chosen from very many draws of the prior, at
the first power at which these are worth as many particles: sweeps, in which every particle moves, would cost far more
there, and find less. The next power is the one at which weights l^(b' - b) halve the effective size of a population;
systematic resampling follows, and sweeps.

A mixture moves one population that was fitted to the other (`moves`): one that is fitted to the particles it moves
becomes narrower than these from sweep to sweep, and loses the tails. A share of the moves is by differences of the
other population's particles, x' = x + g (x_1 - x_2) (ter Braak 2006, Statistics and Computing 16), which know ridges
and modes that a mixture does not. Sweeps go on until where a particle is no longer tells where it was, in each
coordinate, each principal axis and in the likelihood.

From the posterior they go on to a power of it, prior and likelihood alike, which reaches farther along every ridge: a
part of a proposal that describes that has no thin tails. And they go to where a proposal q is too low, to the law
pi min(pi / q, c). That law is what the variance of weights is made of: where q has next to nothing, a few particles in
a thousand and draws of the prior become a large part of a population, explore the place, and tell its shape.

The populations know nothing of each other's weights, so that what they agree on is an independent confirmation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals.describing import described, whitener
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.moves import EVERY_LENGTH, LENGTHS, lengths, proposed, shares_by_gain
from equifinal.samplers.proposals.quality import FLATTENED
from equifinal.samplers.protocol import Partly

Array = NDArray[np.float64]

LEAST_NUMBER, NUMBER_EACH = 500, 35  # particles of a population: at least, and for each dimension
PRIOR_DRAWS, PRIOR_PIECE = 30_000, 10_000  # that particles are chosen from, made in pieces,
PRIOR_SHARE = 0.1  # of the time of all that populations do;
MOST_PRIOR_DRAWS, PRIOR_WORTH, ALONE = 400_000, 4000, 0.002  # more, until worth so much, if each is worth so much
LEAST_SWEEPS, MOST_SWEEPS = 3, 60  # at each power
REFIT_EVERY = 10  # sweeps
FORGOTTEN = 0.3  # correlation with where particles were
MOST = 1_500_000  # solves for each experiment
LEAST_ROUNDS, REST_ROUNDS = 3, 6  # at power one,
REST_SWEEPS, LOOK_EVERY = 20, 10  # of so many sweeps, and every how many of these particles are draws
MOST_ONWARD = 200  # sweeps with a frozen mixture
POWERS_SHARE = 0.6  # until power one
FAR_TOO_LOW, MISSED_MASS = 30.0, 5e-4  # of the posterior, for which a mixture may be so many times too low;
MOST_MISSED = 1000.0  # times that count, where it is
DIFFERENCES = 0.2  # share of such moves;
SHORTEST, WHOLE = 0.1, 0.1  # the shortest beside the longest, and the share that goes from one particle to another
FARTHEST = 4.0  # mean square, in standard deviations, that a single move counts for


class Missing(NamedTuple):
    """A mixture that misses something of the posterior, and about what log Z is."""

    mixture: Mixture
    level: float


class Particles(NamedTuple):
    """Points x of two populations (2, n, q), log p and log l (2, n), and weights (2, n)."""

    x: Array
    log_prior: Array
    log_likelihood: Array
    weights: Array


class Settled(NamedTuple):
    """Draws of the posterior from each population (2, n, q), and how often moves of each length should be made.

    ``wide`` describes the posterior to the power `FLATTENED`, prior and likelihood alike.
    """

    draws: Array
    shares: Array
    wide: Mixture


class Populations:
    """Two populations on their way; all particles have a finite density.

    Attributes
    ----------
    seen
        What was learned of the posterior: draws of the prior, weighted, and then particles at rest.
    """

    def __init__(self, counted: CountedTarget, pool: Particles, number: int):
        self.counted, self.rng, self.number = counted, counted.rng, number
        self.flattened, self.shares = 1.0, EVERY_LENGTH
        self.seen = [pool]
        self._missing: Missing | None = None
        self._mixtures: list[Mixture] = []
        self._made, self._gained = np.zeros((2, len(LENGTHS)))
        wanted = min(number, pool.x.shape[1] / 2)
        self.power = min(next_power(own, 0.0, wanted) for own in pool.log_likelihood)
        self._choose(pool, self.power * pool.log_likelihood)

    def settle(self, report: Callable[[str], None]) -> Settled | None:
        """Go to power one and stay there for a while; nothing if that takes too many solves."""
        report(f"two populations of {self.number} tempered particles")
        most = self.counted.solves + MOST * len(self.counted.target.posterior.likelihoods)
        first = self.power
        while True:
            if self.counted.solves > most:
                return None
            forgotten = self._sweep_until_forgotten(MOST_SWEEPS)
            # powers grow by about the same factor each time
            rest = 0.0 if first == 1 else math.log(self.power) / math.log(first)
            done = POWERS_SHARE - (POWERS_SHARE - PRIOR_SHARE) * rest
            report(Partly(f"populations at power {self.power:.2g} of the likelihood, {forgotten}", done))
            if self.power == 1:
                break
            self._advance()
        draws = []
        for number in range(REST_ROUNDS):
            done = POWERS_SHARE + (1 - POWERS_SHARE) * number / REST_ROUNDS
            report(Partly("populations at the posterior", done))
            before = self._features()
            for _ in range(REST_SWEEPS // LOOK_EVERY):
                self._sweeps(LOOK_EVERY)
                draws.append(self._particles())
            if number + 1 >= LEAST_ROUNDS and _correlation(before, self._features()) < FORGOTTEN:
                break
        self.seen += draws
        shares = self.shares
        with self._away():
            wide = self._flattened()
        return Settled(np.concatenate([part.x for part in draws], axis=1), shares, wide)

    def go_on(self, mixture: Mixture, report: Callable[[str], None]) -> Array:
        """Draws (2, n, q), last ones last, of going on with a frozen mixture until particles forget where they were.

        That is how chains will move, so that none of them begins with what the way from the prior has left.
        """
        self._take([mixture, mixture])
        before, draws, sweeps, correlation = self._features(), [self.x.copy()], 0, 1.0
        while sweeps < MOST_ONWARD and correlation > FORGOTTEN:
            self._sweeps(LOOK_EVERY, refit=False)
            draws.append(self.x.copy())
            sweeps, correlation = sweeps + LOOK_EVERY, _correlation(before, self._features())
        report(f"populations gone on with it, {sweeps} sweeps, correlation {correlation:.2f}")
        return np.concatenate(draws, axis=1)

    def missed_by(self, mixture: Mixture, level: float, report: Callable[[str], None]) -> Mixture | None:
        """Describe where a mixture is too low: the law pi min(pi / q, `MOST_MISSED`), log Z being about ``level``.

        That law is where populations go from all that was seen of the posterior so far. Nothing, if next to nothing of
        that is where the mixture is far too low.
        """
        with self._away():
            self._missing = Missing(mixture, level)
            whole, log_missed = self._beside_missing()
            too_low = whole.weights[log_missed > math.log(FAR_TOO_LOW)].sum() / whole.weights.sum()
            if too_low < MISSED_MASS:
                return None
            report(f"a proposal that is far too low for {too_low:.2%} of the posterior")
            with np.errstate(divide="ignore"):
                self._choose(whole, np.log(whole.weights) + log_missed)
            return self._described_here()

    def _beside_missing(self) -> tuple[Particles, Array]:
        """All that was seen of the posterior, and how much too low there is what misses something."""
        whole = Particles(*(np.concatenate(parts, axis=1) for parts in zip(*self.seen, strict=True)))
        both = zip(whole.x, whole.log_prior + whole.log_likelihood, strict=True)
        return whole, np.stack([self._log_missed(*one) for one in both])

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Go somewhere else, and come back to where populations are and how they move."""
        names = ("x", "log_prior", "log_likelihood", "shares", "_made", "_gained")
        before = {name: getattr(self, name).copy() for name in names}
        try:
            yield
        finally:
            vars(self).update(before)
            self.flattened, self._missing = 1.0, None

    def _flattened(self) -> Mixture:
        """Go on from the posterior to a power of it, and describe that: its tails are longer, and as curved."""
        for power in (math.sqrt(FLATTENED), FLATTENED):
            self._resample((power - self.flattened) * (self.log_prior + self.log_likelihood))
            self.flattened = power
            made = self._described_here()
        return made

    def _described_here(self) -> Mixture:
        """A mixture of where particles are in some sweeps to come."""
        draws = []
        for _ in range(REST_SWEEPS // LOOK_EVERY):
            self._sweeps(LOOK_EVERY)
            draws.append(self.x.copy())
        one, other = map(self.counted.coordinates.gathered, np.concatenate(draws, axis=1))
        return described(one, other, self.rng, both=True)

    @classmethod
    def from_prior(cls, counted: CountedTarget, report: Callable[[str], None] = lambda text: None) -> Populations:
        """Choose particles from many draws of the prior, none of them for both populations."""
        number = max(LEAST_NUMBER, NUMBER_EACH * len(counted.coordinates.moved))
        parts: list[tuple[Array, Array, Array]] = []
        while not _enough(parts):
            made = len(parts) * PRIOR_PIECE
            report(Partly(f"{made} prior draws", PRIOR_SHARE * min(1.0, made / PRIOR_DRAWS)))
            parts.append(prior_draws(counted, PRIOR_PIECE))
        x, log_prior, log_likelihood = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(x) < 2:
            raise SamplingError(f"no particles: none of {PRIOR_DRAWS} prior draws has a finite posterior density")
        rows = np.arange(len(x) // 2 * 2).reshape(-1, 2).T
        weights = np.stack([posterior_weights(log_likelihood[half]) for half in rows])
        return cls(counted, Particles(x[rows], log_prior[rows], log_likelihood[rows], weights), number)

    def _particles(self) -> Particles:
        """Where particles are; all of them at all looks are worth one independent draw each, or a little more."""
        weights = np.full((2, self.number), 1 / LEAST_ROUNDS)
        return Particles(self.x.copy(), self.log_prior.copy(), self.log_likelihood.copy(), weights)

    def _choose(self, particles: Particles, log_weight: Array) -> None:
        """Take particles by log weights (2, n)."""
        rows = []
        for own in log_weight:
            rows.append(systematic(np.exp(own - own.max()), self.number, self.rng.random()))
        both = np.arange(2)[:, None], np.stack(rows)
        self.x, self.log_prior, self.log_likelihood = (part[both] for part in particles[:3])

    def _advance(self) -> None:
        """Go to the next power of the likelihood, the same for both."""
        later = min(next_power(own, self.power) for own in self.log_likelihood)
        self._resample((later - self.power) * self.log_likelihood)
        self.power = later

    def _resample(self, log_weight: Array) -> None:
        self._choose(self._particles(), log_weight)

    def _sweep_until_forgotten(self, most: int) -> str:
        before, sweeps, correlation = self._features(), 0, 1.0
        while sweeps < LEAST_SWEEPS or (sweeps < most and correlation > FORGOTTEN):
            self._sweeps(1, refit=sweeps % REFIT_EVERY == 0)
            sweeps += 1
            correlation = _correlation(before, self._features())
        return f"{sweeps} sweeps, correlation {correlation:.2f}"

    def _features(self) -> Array:
        """What particles should forget: coordinates, those along principal axes, and the likelihood."""
        x = self.x.reshape(-1, self.x.shape[2])
        scaled = x / (np.std(x, axis=0) + 1e-300)
        axes = np.linalg.eigh(np.cov(scaled.T).reshape(x.shape[1], -1))[1]
        return np.column_stack([x, scaled @ axes, self.log_likelihood.ravel()])

    def _sweeps(self, number: int, refit: bool = True) -> None:
        """Move every particle so many times, and learn which lengths are worth it."""
        if refit:
            self._refit()
        made, gained = np.zeros((2, len(LENGTHS)))
        white = whitener(self.x.reshape(-1, self.x.shape[2]))
        for _ in range(number):
            for j in range(2):
                rho, gain = self._move(j, white)
                at = np.searchsorted(-LENGTHS, -rho)
                used = rho > 0
                np.add.at(made, at[used], 1)
                np.add.at(gained, at[used], gain[used])
        self._made, self._gained = 0.8 * self._made + made, 0.8 * self._gained + gained
        self.shares = shares_by_gain(self._gained / np.maximum(self._made, 1))

    def _refit(self) -> None:
        """Mixtures, each to the population that it does not move."""
        x = [self.counted.coordinates.gathered(own) for own in self.x]
        self._take([described(x[1 - j], x[j], self.rng) for j in range(2)])

    def _take(self, made: list[Mixture]) -> None:
        """Mixtures to move with; of the images of a particle, one is chosen as these would have it."""
        self._mixtures = made
        coordinates, uniforms = self.counted.coordinates, self.rng.random((2, self.number))
        for j, mixture in enumerate(self._mixtures):
            before = coordinates.backward(self.x[j])[1]
            self.x[j] = coordinates.relabelled(mixture, self.x[j], uniforms[j])
            self.log_prior[j] += coordinates.backward(self.x[j])[1] - before

    def _move(self, j: int, white: Array) -> tuple[Array, Array]:
        """Move population j; the lengths of its moves, 0 for differences, and the squared distance each is good for."""
        x, other, mixture, rng = self.x[j], self.x[1 - j], self._mixtures[j], self.rng
        n, q = x.shape
        by_difference = rng.random(n) < DIFFERENCES
        rho = np.where(by_difference, 0.0, lengths(self.shares, rng.random(n)))
        there = proposed(mixture, x, rho, mixture.numbers(rng, n))
        step = 2.38 / math.sqrt(2 * max(q, 1)) * SHORTEST ** rng.random(n)
        step[rng.random(n) < WHOLE] = 1.0
        pairs = other[rng.integers(len(other), size=(2, n))]
        there = np.where(by_difference[:, None], x + step[:, None] * (pairs[0] - pairs[1]), there)
        log_prior, log_likelihood = _estimates(self.counted, there)
        with np.errstate(invalid="ignore"):
            change = self._log_goal(there, log_prior, log_likelihood)
            change -= self._log_goal(x, self.log_prior[j], self.log_likelihood[j])
            change += self._log_density(mixture, x, by_difference) - self._log_density(mixture, there, by_difference)
            acceptance = np.where(np.isnan(change), 0.0, np.exp(np.minimum(0.0, change)))
        taken = rng.random(n) < acceptance
        distance = np.minimum(np.mean(((there - x) @ white) ** 2, axis=1), FARTHEST) if q else np.ones(n)
        self.x[j, taken], self.log_prior[j, taken] = there[taken], log_prior[taken]
        self.log_likelihood[j, taken] = log_likelihood[taken]
        return rho, acceptance * np.where(acceptance > 0, distance, 0.0)

    def _log_goal(self, x: Array, log_prior: Array, log_likelihood: Array) -> Array:
        """log of the density that particles follow now."""
        goal = self.flattened * (log_prior + self.power * log_likelihood)
        return goal if self._missing is None else goal + self._log_missed(x, log_prior + log_likelihood)

    def _log_missed(self, x: Array, log_target: Array) -> Array:
        """log of pi / q, q being what misses something, but no more than `MOST_MISSED`."""
        assert self._missing is not None
        mixture, level = self._missing
        return np.minimum(log_target - self.counted.log_density(mixture, x) - level, math.log(MOST_MISSED))

    def _log_density(self, mixture: Mixture, x: Array, by_difference: NDArray[np.bool_]) -> Array:
        """log of what a move is reversible for: q_C; for differences, one over the share that x has in it."""
        whole = self.counted.log_density(mixture, x)
        with np.errstate(invalid="ignore"):
            return np.where(by_difference, whole - mixture.log_density(x), whole)


def prior_draws(counted: CountedTarget, number: int) -> tuple[Array, Array, Array]:
    """x of those of so many draws of the prior that have a finite density, with log p(x) and log l(x)."""
    posterior = counted.target.posterior
    x = counted.coordinates.at(posterior.to_coordinates(posterior.sample_prior(counted.rng, number)))
    x = x[np.isfinite(x).all(axis=1)]
    log_prior, log_likelihood = _estimates(counted, x)
    fine = np.isfinite(log_prior) & np.isfinite(log_likelihood)
    return x[fine], log_prior[fine], log_likelihood[fine]


def _estimates(counted: CountedTarget, x: Array) -> tuple[Array, Array]:
    """log p(x) and log l(x), minus infinity where there is none."""
    made = [(part.log_target, part.integrated.log_mean) for part in counted.in_pieces(x)]
    log_target, log_likelihood = (np.concatenate(parts) for parts in zip(*made, strict=True))
    there = np.isfinite(log_target)
    with np.errstate(invalid="ignore"):
        return np.where(there, log_target - log_likelihood, -np.inf), np.where(there, log_likelihood, -np.inf)


def _enough(parts: list[tuple[Array, Array, Array]]) -> bool:
    """Whether there are enough draws of the prior: more are worth while where it is not far from the posterior."""
    made = len(parts) * PRIOR_PIECE
    if made < PRIOR_DRAWS:
        return False
    worth = float(posterior_weights(np.concatenate([part[2] for part in parts])).sum())
    return made >= MOST_PRIOR_DRAWS or not ALONE * made < worth < PRIOR_WORTH


def posterior_weights(log_likelihood: Array) -> Array:
    """Weights of draws of the prior, of which all together are as many independent draws as they are worth."""
    weights = np.exp(log_likelihood - log_likelihood.max(initial=-np.inf))
    return np.asarray(weights * weights.sum() / (weights @ weights)) if len(weights) else weights


def next_power(log_likelihood: Array, power: float, wanted: float | None = None) -> float:
    """The power at which the effective sample size is as wanted, or half the number, or 1."""

    def effective(later: float) -> float:
        log_weight = (later - power) * log_likelihood
        weights = np.exp(log_weight - log_weight.max())
        return float(weights.sum() ** 2 / (weights @ weights))

    wanted = len(log_likelihood) / 2 if wanted is None else wanted
    if effective(1.0) >= wanted:
        return 1.0
    low, high = power, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) >= wanted else (low, middle)
    return high


def systematic(weights: Array, number: int, uniform: float) -> NDArray[np.int64]:
    """Which to keep: one at every 1/number of the cumulative weights, from uniform/number on."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends / ends[-1], (np.arange(number) + uniform) / number, side="right")


def _correlation(before: Array, after: Array) -> float:
    """The largest absolute correlation between columns; 0 where there is nothing to vary."""
    one, other = before - before.mean(axis=0), after - after.mean(axis=0)
    sizes = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    return float(np.abs((one * other).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)).max(initial=0.0))
