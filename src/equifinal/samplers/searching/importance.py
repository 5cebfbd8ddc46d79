"""Rounds of importance sampling, from a Student t law at each mode to a mixture that fits.

After each round a mixture of t laws is fitted to all draws so far, each weighted against all proposals so far (Cornuet,
Marin, Mira and Robert 2012, Scandinavian Journal of Statistics 39). A wide component is always added, so that no part
of the posterior is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.marginal.target import CountedTarget
from equifinal.samplers.proposals import mixture as mixtures
from equifinal.samplers.proposals.describing import far_apart
from equifinal.samplers.proposals.log_sums import beside_largest
from equifinal.samplers.proposals.mixture import DF, Mixture
from equifinal.samplers.proposals.quality import FLATTENED, NONE, Quality, defended, flattened_around, judged, refusal
from equifinal.samplers.searching.modes import Modes

Array = NDArray[np.float64]

ROUNDS = (400, 1000, 2500)  # draws; the last judge what the others have found, and then improve it
MORE_ROUNDS = (350, 2500)  # if these do not suffice: the first for a better proposal, the second for one that passes
HIGHEST = 7.0  # weight of a draw beside their mean: a chain would stand there for so long, so another round is worth it
PRIOR_DRAWS, PRIOR_DF = 1000, 5.0  # for the law of the prior;
KERNELS, KERNEL_WIDTH, KERNEL_DF = 16, 0.7, 2.0  # it has so many parts where coordinates are bent
DUST = 1e-5  # of all weight, not looked at when a mixture is fitted


class Importance:
    """All draws so far, weighted against all proposals so far."""

    counted: CountedTarget
    modes: Modes
    rng: np.random.Generator
    prior: Mixture
    floor: Array
    mixture: Mixture
    wide: Mixture
    x: Array
    log_target: Array
    worth_of_prior: float

    def __init__(self, counted: CountedTarget, modes: Modes):
        self.counted, self.modes, self.rng = counted, modes, counted.rng
        self.prior = prior_law(counted)
        self.floor = min(modes.covariance, key=lambda s: np.linalg.slogdet(s)[1])  # of the narrowest mode
        self.mixture = laplace(modes)
        self.wide = flattened_around(self.mixture)
        self.quality: Quality = NONE
        self.proposals: list[Mixture] = []
        self.sizes: list[int] = []
        self.x, self.log_target, self._weighted = np.empty((0, modes.h.shape[1])), np.empty(0), False
        self.worth_of_prior = 0.0  # of one draw of the prior, in draws of the posterior, as far as that is known

    def improve(self, report: Callable[[str], None] = lambda text: None) -> bool:
        """Rounds until a proposal passes; false if none does."""
        for size in (*ROUNDS, *MORE_ROUNDS):
            if self.sizes:
                self.wide = self._flattened()
                self.mixture = self._fitted()
            self._draw(size, defended(self.mixture, self.wide, self.prior))
            if self.nowhere:
                return False
            report(f"proposal {self.quality.in_words}")
            more = len(self.sizes) - len(ROUNDS)
            if more >= 0 and not refusal(self.quality) and (more or self._highest(self.proposals[-1]) < HIGHEST):
                break
        return not refusal(self.quality)

    def proposal(self) -> Mixture:
        """The proposal that all draws tell of, those included that have judged the last one; that, if it is no better.

        It is no better if it is too narrow for some draw that was made in an earlier round.
        """
        if self.nowhere:
            return self.proposals[-1]
        self.wide = self._flattened()
        better = defended(self._fitted(), self.wide, self.prior)
        return better if self._highest(better) < max(HIGHEST, self._highest(self.proposals[-1])) else self.proposals[-1]

    @property
    def nowhere(self) -> bool:
        """Whether no draw has a weight."""
        return not self._weighted

    def _draw(self, size: int, proposal: Mixture) -> None:
        """Draws of a proposal, and how well that fits."""
        x = proposal.sample(self.rng, size)
        log_prior, log_likelihood = self.counted.log_prior_and_likelihood(x)
        log_target = log_prior + log_likelihood
        with np.errstate(invalid="ignore"):
            log_weight = log_target - self.counted.log_density(proposal, x)
        self.quality = judged(log_weight)
        self.worth_of_prior = worth_of_prior(log_weight, log_likelihood)
        self._weighted |= bool(np.isfinite(log_weight).any())
        self.proposals.append(proposal)
        self.sizes.append(size)
        self.x, self.log_target = np.concatenate([self.x, x]), np.concatenate([self.log_target, log_target])

    def _highest(self, proposal: Mixture) -> float:
        """The highest weight that any draw so far has under a proposal, beside their mean, which is the same for all.

        The mean is that of the last draws, under the proposal that they came from.
        """
        with np.errstate(invalid="ignore"):
            log_weight = self.log_target - self.counted.log_density(proposal, self.x)
            own = self.log_target - self.counted.log_density(self.proposals[-1], self.x)
        log_weight, own = (np.where(np.isfinite(part), part, -np.inf) for part in (log_weight, own))
        last = own[-self.sizes[-1] :]
        return float(np.exp(log_weight.max() - np.logaddexp.reduce(last)) * len(last))

    def weighted(self, power: float = 1.0) -> tuple[Array, Array]:
        """Draws with weights that none of them dominates, for a power of the posterior."""
        rounds = zip(self.sizes, self.proposals, strict=True)
        log_q = np.logaddexp.reduce(
            [math.log(n / len(self.x)) + self.counted.log_density(p, self.x) for n, p in rounds]
        )
        with np.errstate(invalid="ignore"):
            weights = beside_largest(power * self.log_target - log_q)  # none without a target or a proposal
        weights = np.minimum(weights, math.sqrt(len(weights)) * weights.mean())
        return self.x, weights / max(weights.sum(), 1e-300)

    def _fitted(self) -> Mixture:
        """The mixture that makes the best proposal: one with which a chain stands still as little as possible.

        How long it stands at a draw is about its weight under the proposal, beside the mean weight.
        """

        def evenness(made: Mixture, rows: NDArray[np.int64], weights: Array) -> float:
            whole = defended(made, self.wide, self.prior)
            log_weight = self.log_target[rows] - self.counted.log_density(whole, self.x[rows])
            return -float(np.logaddexp.reduce(np.log(weights) + log_weight))

        return self._best(1.0, evenness)

    def _flattened(self) -> Mixture:
        """The mixture that describes the posterior to the power `FLATTENED` best."""

        def likeness(made: Mixture, rows: NDArray[np.int64], weights: Array) -> float:
            return float(weights @ made.log_density(self.x[rows]))

        return self._best(FLATTENED, likeness)

    def _best(self, power: float, score: Callable[[Mixture, NDArray[np.int64], Array], float]) -> Mixture:
        """Of mixtures with one to four components, fitted to the draws, the one of the best score.

        Draws are weighted for a power of the posterior, and there is a penalty for the size of a mixture.
        """
        weights = self.weighted(power)[1]
        rows = _without_dust(weights)
        x, weights = self.x[rows], weights[rows] / weights[rows].sum()
        q = x.shape[1]
        effective = 1 / float(weights @ weights)
        centre = weights @ x
        covariance = (x - centre).T @ ((x - centre) * weights[:, None])
        if effective < 5 * q:  # too few to tell a shape from: lean on what was known
            share = effective / (5 * q)
            covariance = share * covariance + (1 - share) * self.floor
        several = len(self.modes.h) > 1  # then the whole is no measure for a part
        floor = 1e-3 * (self.floor if several else covariance) + 1e-6 * np.diag(np.diag(self.floor))
        factor = np.linalg.cholesky(covariance + floor)
        starts = [laplace(self.modes, DF)] if several else []
        for k in (1, 2, 2, 3, 3, 4, 4):
            starts.append(mixtures.equal(x[self.rng.choice(len(x), k, p=weights)], factor))
        best: tuple[float, Mixture] | None = None
        for start in starts:
            made = mixtures.fit(x, weights, start, floor)
            size = len(made.share) * (1 + q + q * (q + 1) / 2)
            own = score(made, rows, weights) - 0.15 * size * math.log(effective) / effective
            if best is None or own > best[0]:
                best = own, made
        assert best is not None
        return best[1]


def laplace(modes: Modes, df: float = 5.0) -> Mixture:
    """A t law at each mode, shared by the modes' Gaussian volumes."""
    factor = np.linalg.cholesky(modes.covariance)
    log_volume = modes.log_density + np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    share = np.maximum(np.exp(log_volume - log_volume.max()), 0.05)
    k = len(share)
    return Mixture(share / share.sum(), modes.h, np.asarray(1.05 * factor, np.float64), np.full(k, df))


def prior_law(counted: CountedTarget) -> Mixture:
    """A t law with the mean and the covariance of prior draws, the farthest of which count as if they were nearer.

    Where coordinates are bent, prior draws are far out on one side and crowded on the other. There it is one law for
    each of a few draws that are far apart, as wide as coordinates are stretched there. Kernels of the width w are
    around what is nearer to the mean than these draws, by a factor of sqrt(1 - w^2), lest the whole be too wide (West
    1993, Journal of the Royal Statistical Society B 55).
    """
    posterior, bend, q = counted.target.posterior, counted.coordinates.bend, len(counted.coordinates.moved)
    x = counted.coordinates.at(posterior.to_coordinates(posterior.sample_prior(counted.rng, PRIOR_DRAWS)))
    h, _ = bend.backward(x[np.isfinite(x).all(axis=1)])
    if q == 0 or len(h) < max(KERNELS, 2 * q):  # hardly any draw has combinations: then as wide as a unit
        return mixtures.single(np.zeros(q), np.eye(q), PRIOR_DF)
    h = np.clip(h, *np.quantile(h, (0.01, 0.99), axis=0))
    mean, covariance = h.mean(axis=0), np.cov(h.T).reshape(q, q)
    covariance += 1e-6 * np.diag(np.diag(covariance)) + 1e-300 * np.eye(q)
    if not bend.side.any():
        return mixtures.single(mean, covariance, PRIOR_DF)
    factor = np.linalg.cholesky(covariance)
    chosen = far_apart(np.linalg.solve(factor, (h - mean).T).T, KERNELS, counted.rng)
    centre = bend.forward(mean + math.sqrt(1 - KERNEL_WIDTH**2) * (h[chosen] - mean))
    stretched = np.exp(-bend.backward(centre)[1])[:, :, None] * factor
    return Mixture(np.full(KERNELS, 1 / KERNELS), centre, KERNEL_WIDTH * stretched, np.full(KERNELS, KERNEL_DF))


def worth_of_prior(log_weight: Array, log_likelihood: Array) -> float:
    r"""How many draws of the posterior one of the prior is worth: (E l)^2 / E l^2 = Z / E[l | data].

    By draws with so much weight for the posterior, whose mean weight is Z.
    """
    fine = np.isfinite(log_weight) & np.isfinite(log_likelihood)
    if not fine.any():
        return 0.0
    whole = np.logaddexp.reduce(log_weight[fine])
    log_mean = np.logaddexp.reduce(log_weight[fine] + log_likelihood[fine]) - whole
    return float(np.exp(min(0.0, whole - math.log(len(log_weight)) - log_mean)))


def _without_dust(weights: Array) -> NDArray[np.int64]:
    """Which draws make up nearly all of the weight: the others only take time."""
    order = np.argsort(-weights)
    return order[: 1 + int(np.searchsorted(np.cumsum(weights[order]), 1 - DUST))]
