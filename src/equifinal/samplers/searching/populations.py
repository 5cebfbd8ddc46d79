r"""Two tempered populations: from prior draws to the posterior of the combinations, by way of powers of the likelihood.

Each population follows the laws

    pi_b(x) ~ l(x)^b p(x),   0 = b_0 < b_1 < ... < 1

(Del Moral, Doucet and Jasra 2006, Journal of the Royal Statistical Society B 68), x being coordinates of the
combinations, without noise parameters that are integrated out. The next power is the one at which weights l^(b' - b)
halve the effective size of a population; systematic resampling follows, and sweeps in which every particle moves.

A mixture moves one population that was fitted to the other (`moves`): one that is fitted to the particles it moves
becomes narrower than these from sweep to sweep, and loses the tails. A share of the moves is by differences of the
other population's particles, x' = x + g (x_1 - x_2) (ter Braak 2006, Statistics and Computing 16), which know ridges
and modes that a mixture does not. Sweeps go on until where a particle is no longer tells where it was, in each
coordinate, each principal axis and in the likelihood.

From the posterior they go on to a power of it, prior and likelihood alike, which reaches farther along every ridge: a
part of a proposal that describes that has no thin tails.

The populations know nothing of each other's weights, so that what they agree on is an independent confirmation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.moves import EVERY_LENGTH, LENGTHS, lengths, proposed, shares_by_gain
from equifinal.samplers.proposals.quality import FLATTENED
from equifinal.samplers.protocol import Partly

Array = NDArray[np.float64]

LEAST_NUMBER, NUMBER_EACH = 500, 35  # particles of a population: at least, and for each dimension
ROUNDS = 20  # of prior draws, until a quarter as many as particles have a finite density
LEAST_SWEEPS, MOST_SWEEPS = 3, 60  # at each power
REFIT_EVERY = 10  # sweeps
FORGOTTEN = 0.3  # correlation with where particles were
MOST = 1_500_000  # solves for each experiment
LEAST_ROUNDS, REST_ROUNDS = 3, 6  # at power one,
REST_SWEEPS, LOOK_EVERY = 20, 10  # of so many sweeps, and every how many of these particles are draws
MOST_ONWARD = 200  # sweeps with a frozen mixture
POWERS_SHARE = 0.6  # of the time of both populations, until power one
DIFFERENCES = 0.2  # share of such moves;
SHORTEST, WHOLE = 0.1, 0.1  # the shortest beside the longest, and the share that goes from one particle to another
FARTHEST = 4.0  # mean square, in standard deviations, that a single move counts for
COMPONENTS, WORSE = (1, 2, 4, 8, 16), 0.1  # how many are tried, until the mean log density is so much below the best
GAIN = 1e-4  # of the mean log density: fits are many, and none of them is the last
LEAST_EACH, SMALLEST = 5, 0.003  # particles for each dimension and component, and the share of the smallest


class Settled(NamedTuple):
    """Draws of the posterior from each population (2, n, q), and how often moves of each length should be made.

    ``wide`` describes the posterior to the power `FLATTENED`, prior and likelihood alike.
    """

    draws: Array
    shares: Array
    wide: Mixture


class Populations:
    """Two populations on their way; all particles have a finite density."""

    def __init__(self, counted: CountedTarget, x: Array, log_prior: Array, log_likelihood: Array):
        self.counted, self.rng = counted, counted.rng
        self.x, self.log_prior, self.log_likelihood = x, log_prior, log_likelihood
        self.number = x.shape[1]
        self.power, self.flattened, self.shares = 0.0, 1.0, EVERY_LENGTH
        self._mixtures: list[Mixture] = []
        self._made, self._gained = np.zeros((2, len(LENGTHS)))

    def settle(self, report: Callable[[str], None]) -> Settled | None:
        """Go to power one and stay there for a while; nothing if that takes too many solves."""
        report(f"two populations of {self.number} tempered particles")
        most = self.counted.solves + MOST * len(self.counted.target.posterior.likelihoods)
        first = 0.0  # power
        while self.power < 1:
            if self.counted.solves > most:
                return None
            self._advance()
            forgotten = self._sweep_until_forgotten(MOST_SWEEPS)
            first = first or self.power
            # powers grow by about the same factor each time
            done = POWERS_SHARE * (1.0 if first == 1 else 1 - math.log(self.power) / math.log(first))
            report(Partly(f"populations at power {self.power:.2g} of the likelihood, {forgotten}", done))
        draws = []
        for number in range(REST_ROUNDS):
            done = POWERS_SHARE + (1 - POWERS_SHARE) * number / REST_ROUNDS
            report(Partly("populations at the posterior", done))
            before = self._features()
            for _ in range(REST_SWEEPS // LOOK_EVERY):
                self._sweeps(LOOK_EVERY)
                draws.append(self.x.copy())
            if number + 1 >= LEAST_ROUNDS and _correlation(before, self._features()) < FORGOTTEN:
                break
        shares, at_rest = self.shares, (self.x.copy(), self.log_prior.copy(), self.log_likelihood.copy())
        wide = self._flattened()
        self.flattened, (self.x, self.log_prior, self.log_likelihood) = 1.0, at_rest
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

    def _flattened(self) -> Mixture:
        """Go on from the posterior to a power of it, and describe that: its tails are longer, and as curved."""
        for power in (math.sqrt(FLATTENED), FLATTENED):
            self._resample((power - self.flattened) * (self.log_prior + self.log_likelihood))
            self.flattened, draws = power, []
            for _ in range(REST_SWEEPS // LOOK_EVERY):
                self._sweeps(LOOK_EVERY)
                draws.append(self.x.copy())
        one, other = map(self.counted.coordinates.gathered, np.concatenate(draws, axis=1))
        return described(one, other, self.rng, both=True)

    @classmethod
    def from_prior(cls, counted: CountedTarget) -> Populations:
        """Draws of the prior with a finite density; some of them twice if there are few."""
        posterior, rng = counted.target.posterior, counted.rng
        number = max(LEAST_NUMBER, NUMBER_EACH * len(counted.coordinates.moved))
        wanted, parts = 2 * number, []
        for _ in range(ROUNDS):
            x = counted.coordinates.at(posterior.to_coordinates(posterior.sample_prior(rng, wanted)))
            x = x[np.isfinite(x).all(axis=1)]
            log_prior, log_likelihood = _estimates(counted, x)
            fine = np.isfinite(log_prior) & np.isfinite(log_likelihood)
            parts.append((x[fine], log_prior[fine], log_likelihood[fine]))
            if 4 * sum(len(part[1]) for part in parts) >= wanted:
                break
        x, log_prior, log_likelihood = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(x) < 2:
            raise SamplingError(f"no particles: none of {ROUNDS * wanted} prior draws has a finite posterior density")
        # no particle is in both populations
        rows = np.concatenate([np.resize(half, number) for half in np.array_split(np.arange(len(x)), 2)])
        shaped = (part[rows].reshape(2, number, *part.shape[1:]) for part in (x, log_prior, log_likelihood))
        return cls(counted, *shaped)

    def _advance(self) -> None:
        """Go to the next power of the likelihood, the same for both."""
        later = min(next_power(own, self.power) for own in self.log_likelihood)
        self._resample((later - self.power) * self.log_likelihood)
        self.power = later

    def _resample(self, log_weight: Array) -> None:
        for j, own in enumerate(log_weight):
            kept = systematic(np.exp(own - own.max()), self.number, self.rng.random())
            for part in (self.x, self.log_prior, self.log_likelihood):
                part[j] = part[j, kept]

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
        whitener = _whitener(self.x.reshape(-1, self.x.shape[2]))
        for _ in range(number):
            for j in range(2):
                rho, gain = self._move(j, whitener)
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

    def _move(self, j: int, whitener: Array) -> tuple[Array, Array]:
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
            change = log_prior - self.log_prior[j] + self.power * (log_likelihood - self.log_likelihood[j])
            change *= self.flattened
            change += self._log_density(mixture, x, by_difference) - self._log_density(mixture, there, by_difference)
            acceptance = np.where(np.isnan(change), 0.0, np.exp(np.minimum(0.0, change)))
        taken = rng.random(n) < acceptance
        distance = np.minimum(np.mean(((there - x) @ whitener) ** 2, axis=1), FARTHEST) if q else np.ones(n)
        self.x[j, taken], self.log_prior[j, taken] = there[taken], log_prior[taken]
        self.log_likelihood[j, taken] = log_likelihood[taken]
        return rho, acceptance * np.where(acceptance > 0, distance, 0.0)

    def _log_density(self, mixture: Mixture, x: Array, by_difference: NDArray[np.bool_]) -> Array:
        """log of what a move is reversible for: q_C; for differences, one over the share that x has in it."""
        whole = self.counted.log_density(mixture, x)
        with np.errstate(invalid="ignore"):
            return np.where(by_difference, whole - mixture.log_density(x), whole)


def _estimates(counted: CountedTarget, x: Array) -> tuple[Array, Array]:
    """log p(x) and log l(x), minus infinity where there is none."""
    made = [(part.log_target, part.integrated.log_mean) for part in counted.in_pieces(x)]
    log_target, log_likelihood = (np.concatenate(parts) for parts in zip(*made, strict=True))
    there = np.isfinite(log_target)
    with np.errstate(invalid="ignore"):
        return np.where(there, log_target - log_likelihood, -np.inf), np.where(there, log_likelihood, -np.inf)


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


def described(
    x: Array, others: Array, rng: np.random.Generator, start: Mixture | None = None, both: bool = False
) -> Mixture:
    """The mixture of x (n, q), among those of more and more components, that describes other draws best.

    With ``both`` it is fitted to these as well in the end. Then it is worth while to try whether components are better
    described if each is believed to be about as wide as its share of the volume lets one expect.
    """
    n, q = x.shape
    covariance = np.cov(x.T).reshape(q, q)
    floor = 1e-6 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q)
    factor = 0.7 * np.linalg.cholesky(covariance + floor)
    numbers = [k for k in COMPONENTS if k == 1 or n >= LEAST_EACH * q * k]
    starts = [mixtures.equal(x[_far_apart(x @ _whitener(x), k, rng)], factor) for k in numbers]

    def fit(x: Array, first: Mixture, believed: bool) -> Mixture:
        # a component of few draws must not become thinner than these can tell
        k = len(first.share)
        if believed:
            belief = (q + 2) / n, covariance / k ** (2 / max(q, 1))
            return mixtures.fit(x, np.ones(len(x)), first, floor, max(q / n, SMALLEST), GAIN, belief)
        least = max(LEAST_EACH * q / n, SMALLEST)
        return mixtures.fit(x, np.ones(len(x)), first, floor + 1e-3 / k * covariance, least, GAIN)

    best, highest = (mixtures.equal(x.mean(axis=0)[None], factor), False), -math.inf
    stopped = False
    # a start of several modes comes last: beside it a single component would look as if more of them were no use
    for first in starts if start is None else [*starts, start]:
        if stopped and first is not start:
            continue
        tried = [(fit(x, first, believed), believed) for believed in ((False, True) if both else (False,))]
        scores = [float(made.log_density(others).mean()) for made, _ in tried]
        score = max(scores)
        if score > highest:
            best, highest = tried[scores.index(score)], score
        elif score < highest - WORSE:
            stopped = True
    return fit(np.concatenate([x, others]), *best) if both else best[0]


def _far_apart(z: Array, number: int, rng: np.random.Generator) -> list[int]:
    """Rows of z, each chosen with a probability proportional to its squared distance from those before."""
    chosen = [int(rng.integers(len(z)))]
    nearest = np.full(len(z), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.sum((z - z[chosen[-1]]) ** 2, axis=1))
        total = nearest.sum()
        chosen.append(int(rng.choice(len(z), p=nearest / total if total > 0 else None)))
    return chosen


def _correlation(before: Array, after: Array) -> float:
    """The largest absolute correlation between columns; 0 where there is nothing to vary."""
    one, other = before - before.mean(axis=0), after - after.mean(axis=0)
    sizes = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    return float(np.abs((one * other).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)).max(initial=0.0))


def _whitener(x: Array) -> Array:
    """A matrix that makes x @ it uncorrelated with variance one."""
    q = x.shape[1]
    covariance = np.cov(x.T).reshape(q, q)
    return np.linalg.inv(np.linalg.cholesky(covariance + 1e-9 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q))).T
