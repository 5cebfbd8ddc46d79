"""Walkers: an ensemble that spreads over a posterior whose shape importance sampling does not find.

Importance sampling sees what its proposal reaches, and a mixture fitted to its draws reaches little more; long curved
tails are found slowly or not at all. Walkers do not depend on the proposal. They start all around, farther out than
draws of the posterior, as tails are left sooner than they are found. They move by `differential_evolution`, and every
fourth step by an independence Metropolis jump with the newest mixture; both leave the posterior as it is. After each
round a mixture is fitted to where they have been, with as many components as describe one half of the walkers best
when fitted to the other half, and judged by the weights of new draws.

The mixture of a round in which the volume that walkers fill still changes may be too narrow, and its weights would not
show it. So rounds go on until that is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.quality import Quality, defended, judged, refusal
from equifinal.samplers.searching.differential_evolution import trials

Array = NDArray[np.float64]

NUMBER = 256
STEPS, FIRST, EVERY = 80, 20, 8  # steps of a round; those that are not looked at, and of the others every which is
JUMP_EVERY = 4
LEAST_ROUNDS, MOST_ROUNDS, LAST_ROUNDS = 4, 6, 3  # to the last so many, mixtures are fitted
SAME_VOLUME = 0.5  # change of its logarithm from round to round
JUDGED = 2000  # draws
COMPONENTS = (2, 4, 8, 16)
WORSE = 0.1  # mean log density: so much below the best, more components are not tried


class Settled(NamedTuple):
    """A proposal, how good it is, and where walkers have been (n, q)."""

    proposal: Mixture
    quality: Quality
    been: Array


def settle(
    counted: CountedTarget, mixture: Mixture, x: Array, report: Callable[[str], None] = lambda text: None
) -> Settled:
    """Improve a mixture that does not fit, from points x (n, q) all around; give the best mixture found."""
    walkers = _Walkers(counted, x)
    best: Settled | None = None
    rounds: list[Array] = []
    volume = math.inf
    for number in range(1, MOST_ROUNDS + 1):
        rounds.append(walkers.walk(mixture))
        been = np.concatenate(rounds[-LAST_ROUNDS:])
        mixture = defended(_fitted(been, counted.rng))
        now = Settled(mixture, _judged(counted, mixture), been.reshape(-1, been.shape[2]))
        report(f"{NUMBER} walkers: proposal {now.quality.in_words}")
        before, volume = volume, _log_volume(rounds[-1])
        spreading = abs(volume - before) > SAME_VOLUME
        if spreading or best is None or now.quality.better_than(best.quality):
            best = now  # what was found before the volume was right cannot be
        if number >= LEAST_ROUNDS and not spreading and not refusal(best.quality, settled=True):
            break
    assert best is not None
    return best


class _Walkers:
    def __init__(self, counted: CountedTarget, x: Array):
        self.counted, self.rng = counted, counted.rng
        fine = x[np.isfinite(x).all(axis=1)]
        self.x = fine[self.rng.choice(len(fine), NUMBER, replace=len(fine) < NUMBER)]
        self.log_target = counted.log_target(self.x)  # minus infinity here and there: then every step is taken
        self.log_share = np.zeros(NUMBER)

    def walk(self, mixture: Mixture) -> Array:
        """A round, with labels by this mixture; where they have been (times, walkers, q)."""
        self.x = self.counted.coordinates.relabelled(mixture, self.x, self.rng.random(NUMBER))
        self.log_share = self._share(mixture, self.x)
        been = []
        for step in range(STEPS):
            if step % JUMP_EVERY == 0:
                there = mixture.sample(self.rng, NUMBER)
                gain = mixture.log_density(self.x) - mixture.log_density(there)
                self._move(mixture, np.arange(NUMBER), there, gain)
            else:
                for mine, there in trials(self.x, self.rng):
                    self._move(mixture, mine, there, np.zeros(len(mine)))
            if step >= FIRST and step % EVERY == 0:
                been.append(self.x.copy())
        return np.stack(been)

    def _share(self, mixture: Mixture, x: Array) -> Array:
        """log of the share that x has in q_C."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(mixture.log_density(x) - self.counted.log_density(mixture, x), nan=-np.inf)

    def _move(self, mixture: Mixture, mine: NDArray[np.int64], there: Array, gain: Array) -> None:
        log_target, log_share = self.counted.log_target(there), self._share(mixture, there)
        with np.errstate(invalid="ignore"):
            change = gain + log_target + log_share - self.log_target[mine] - self.log_share[mine]
            taken = np.log(self.rng.random(len(mine))) < change
        taken &= np.isfinite(log_target) & np.isfinite(log_share)
        moved = mine[taken]
        self.x[moved], self.log_target[moved], self.log_share[moved] = there[taken], log_target[taken], log_share[taken]


def _log_volume(x: Array) -> float:
    """Half the log determinant of the covariance."""
    flat = x.reshape(-1, x.shape[2])
    return 0.5 * float(np.linalg.slogdet(np.atleast_2d(np.cov(flat.T)))[1]) if x.shape[2] else 0.0


def _judged(counted: CountedTarget, mixture: Mixture) -> Quality:
    x = mixture.sample(counted.rng, JUDGED)
    return judged(counted.log_target(x) - counted.log_density(mixture, x))


def _fitted(been: Array, rng: np.random.Generator) -> Mixture:
    """Fit mixtures with more and more components to one half of the walkers, then the best of these to all."""
    q = been.shape[2]
    whole, one, other = (part.reshape(-1, q) for part in (been, been[:, ::2], been[:, 1::2]))
    covariance = np.cov(whole.T).reshape(q, q)
    floor = 1e-6 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q)
    factor = 0.7 * np.linalg.cholesky(covariance + floor)
    best, highest = mixtures.equal(whole[:1], factor), -math.inf
    for k in COMPONENTS:
        made = mixtures.fit(one, np.ones(len(one)), mixtures.equal(one[rng.choice(len(one), k)], factor), floor)
        score = float(made.log_density(other).mean())
        if score > highest:
            best, highest = made, score
        elif score < highest - WORSE:
            break
    return mixtures.fit(whole, np.ones(len(whole)), best, floor)
