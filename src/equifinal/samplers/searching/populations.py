r"""Two tempered populations: from prior draws to the posterior of the combinations, by way of powers of the likelihood.

Each population follows the laws

    pi_b(x) ~ l(x)^b p(x),   0 < b_1 < b_2 < ... < 1

(Del Moral, Doucet and Jasra 2006, Journal of the Royal Statistical Society B 68), x being coordinates of the
combinations, without noise parameters that are integrated out. Particles are chosen from very many draws of the prior,
at the first power at which the draws are worth that many particles: sweeps, in which every particle moves, would cost
far more there, and find less. The next power is the one at which weights l^(b' - b) halve the effective size of a
population; systematic resampling follows, and sweeps. Before these, coordinates are bent so that particles look more
normal (`bending`): all that moves them is made of normal laws.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals.describing import described, whitener
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.moves import EVERY_LENGTH, LENGTHS, lengths, proposed, shares_by_gain
from equifinal.samplers.proposals.quality import FAR_TOO_LOW, FLATTENED, MISSED_MASS
from equifinal.samplers.protocol import Partly
from equifinal.samplers.searching.prior_draws import LEAST, Draws, effective, for_populations

Array = NDArray[np.float64]

LEAST_NUMBER, NUMBER_EACH = 500, 35  # particles of a population: at least, and for each dimension
LEAST_SWEEPS, MOST_SWEEPS = 3, 60  # at each power
REFIT_EVERY = 10  # sweeps
FORGOTTEN = 0.3  # correlation with where particles were
MOST = 1_500_000  # solves for each experiment
LEAST_ROUNDS, REST_ROUNDS = 3, 6  # at power one,
REST_SWEEPS, LOOK_EVERY = 20, 10  # of so many sweeps, and every how many of these particles are draws
MOST_ONWARD = 200  # sweeps with a frozen mixture
PRIOR_SHARE, POWERS_SHARE = 0.1, 0.6  # of the time of all that populations do: draws of the prior; until power one
MOST_MISSED = 1000.0  # ratios pi / q above this count as this, where a mixture misses something
DUST = 1e-4  # draws of the prior with less than so much of the mean likelihood are not looked at there
DIFFERENCES = 0.2  # share of such moves;
SHORTEST, WHOLE = 0.1, 0.1  # the shortest beside the longest, and the share that goes from one particle to another
FARTHEST = 4.0  # mean square, in standard deviations, that a single move counts for


class Missing(NamedTuple):
    """A mixture that misses something of the posterior, and about what log Z is."""

    mixture: Mixture
    level: float


class Particles(NamedTuple):
    """Points x of a population (n, q), with log p and log l."""

    x: Array
    log_prior: Array
    log_likelihood: Array


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
    pool
        Draws of the prior, some for each population.
    at_rest
        Where each population was when its particles were draws of the posterior.
    """

    counted: CountedTarget
    rng: np.random.Generator
    number: int
    pool: Sequence[Draws]
    at_rest: list[list[Particles]]
    x: Array
    log_prior: Array
    log_likelihood: Array
    power: float
    flattened: float
    shares: Array

    def __init__(self, counted: CountedTarget, pool: Sequence[Draws], number: int):
        self.counted, self.rng, self.number = counted, counted.rng, number
        self.pool, self.at_rest = pool, [[] for _ in pool]
        self.flattened, self.shares = 1.0, EVERY_LENGTH
        self._missing: Missing | None = None
        self._mixtures: list[Mixture] = []
        self._made, self._gained = np.zeros((2, len(LENGTHS)))
        self.power = min(next_power(own.log_likelihood, 0.0, min(number, len(own.x) / 2)) for own in pool)
        self._choose([Particles(*own[:3]) for own in pool], [self.power * own.log_likelihood for own in pool])

    def settle(self, report: Callable[[str], None]) -> Settled | None:
        """Go to power one and stay there for a while; nothing if that takes too many solves."""
        most = self.counted.solves + MOST * len(self.counted.target.posterior.likelihoods)
        first = self.power
        while True:
            if self.counted.solves > most:
                return None
            self._straighten()
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
                draws.append(self.x.copy())
                for own, now in zip(self.at_rest, self._particles(), strict=True):
                    own.append(now)
            if number + 1 >= LEAST_ROUNDS and _correlation(before, self._features()) < FORGOTTEN:
                break
        shares = self.shares
        with self._away():
            wide = self._flattened()
        return Settled(np.concatenate(draws, axis=1), shares, wide)

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
            seen = [self._seen(j, level) for j in range(2)]
            log_missed = [self._log_missed(own.x, own.log_prior + own.log_likelihood) for own, _ in seen]
            weights = np.concatenate([own for _, own in seen])
            too_low = weights[np.concatenate(log_missed) > math.log(FAR_TOO_LOW)].sum() / weights.sum()
            if too_low < MISSED_MASS:
                return None
            report(f"this is far too low for {too_low:.2%} of the posterior: populations explore where")
            with np.errstate(divide="ignore"):
                log_weights = [np.log(own) + missed for (_, own), missed in zip(seen, log_missed, strict=True)]
            self._choose([own for own, _ in seen], log_weights)
            return self._described_here()

    def _seen(self, j: int, level: float) -> tuple[Particles, Array]:
        """All that population j has seen of the posterior, and weights.

        Draws of the prior, N of them, and particles at rest, M of them, are draws of a mixture of prior and posterior,
        in which l / Z / (N + M l / Z) is the weight for the posterior (Veach and Guibas 1995, the balance heuristic).
        """
        pool, rest, looks = self.pool[j], self.at_rest[j], len(self.at_rest[j])
        some = pool.log_likelihood > level + math.log(DUST)
        both = [Particles(*(part[some] for part in pool[:3])), *rest]
        whole = Particles(*(np.concatenate(parts) for parts in zip(*both, strict=True)))
        with np.errstate(over="ignore"):
            weights = 1 / (pool.made * np.exp(level - whole.log_likelihood) + self.number)
        weights[int(some.sum()) :] /= looks  # each particle is there so many times
        return whole, weights

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
            self._choose(self._particles(), (power - self.flattened) * (self.log_prior + self.log_likelihood))
            self.flattened = power
            if power > FLATTENED:
                for _ in range(REST_SWEEPS // LOOK_EVERY):
                    self._sweeps(LOOK_EVERY)
        return self._described_here()

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
        report(f"two populations of {number} tempered particles")

        def told(made: int) -> None:
            report(Partly(f"chosen from prior draws, {made} so far", PRIOR_SHARE * made / (made + LEAST)))

        pool = for_populations(counted, told, number // 2)
        if len(pool.x) < 2:
            raise SamplingError(f"no particles: of {pool.made} prior draws, hardly any has a finite posterior density")
        return cls(counted, pool.halves(), number)

    def _particles(self) -> list[Particles]:
        return [Particles(*(part[j].copy() for part in (self.x, self.log_prior, self.log_likelihood))) for j in (0, 1)]

    def _choose(self, particles: Sequence[Particles], log_weights: Sequence[Array] | Array) -> None:
        """Take particles of each population by log weights."""
        taken = []
        for own, log_weight in zip(particles, log_weights, strict=True):
            rows = systematic(np.exp(log_weight - log_weight.max()), self.number, self.rng.random())
            taken.append(Particles(*(part[rows] for part in own)))
        self._place(taken)

    def _place(self, particles: Sequence[Particles]) -> None:
        self.x, self.log_prior, self.log_likelihood = (np.stack(both) for both in zip(*particles, strict=True))

    def _advance(self) -> None:
        """Go to the next power of the likelihood, the same for both."""
        later = min(next_power(own, self.power) for own in self.log_likelihood)
        self._choose(self._particles(), (later - self.power) * self.log_likelihood)
        self.power = later

    def _straighten(self) -> None:
        """Bend coordinates so that particles look more normal, and give all that is known in these coordinates."""
        old = self.counted.coordinates
        new = old.straightened(self.x.reshape(-1, self.x.shape[2]))
        self.counted.bend(new.bend)

        def again(known: Draws | Particles) -> Any:
            x = new.bend.forward(old.bend.backward(known.x)[0])
            change = new.bend.backward(x)[1].sum(axis=1) - old.bend.backward(known.x)[1].sum(axis=1)
            return known._replace(x=x, log_prior=known.log_prior + change)

        self.pool = [again(own) for own in self.pool]
        self._place([again(own) for own in self._particles()])

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
        log_prior, log_likelihood = self.counted.log_prior_and_likelihood(there)
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


def next_power(log_likelihood: Array, power: float, wanted: float | None = None) -> float:
    """The power at which the effective sample size is as wanted, or half the number, or 1."""

    wanted = len(log_likelihood) / 2 if wanted is None else wanted
    if effective((1.0 - power) * log_likelihood) >= wanted:
        return 1.0
    low, high = power, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if effective((middle - power) * log_likelihood) >= wanted else (low, middle)
    return high


def systematic(weights: Array, number: int, uniform: float) -> NDArray[np.int64]:
    """Which to keep: one at every 1/number of the cumulative weights, from uniform/number on."""
    ends = np.cumsum(weights)
    rows = np.searchsorted(ends / ends[-1], (np.arange(number) + uniform) / number, side="right")
    return np.minimum(rows, len(weights) - 1)  # the last place may be rounded up to one


def _correlation(before: Array, after: Array) -> float:
    """The largest absolute correlation between columns; 0 where there is nothing to vary."""
    one, other = before - before.mean(axis=0), after - after.mean(axis=0)
    sizes = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    return float(np.abs((one * other).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)).max(initial=0.0))
