"""A proposal that fits the posterior of the combinations, from prior draws alone: modes, then importance sampling.

Rounds of importance sampling begin with a Student t law at each mode. After each round a mixture of t laws is fitted
to all draws so far, each weighted against all proposals so far (Cornuet, Marin, Mira and Robert 2012, Scandinavian
Journal of Statistics 39). A wide component is always added, so that no part of the posterior is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.samplers import mixture as mixtures
from equifinal.samplers.combination_coordinates import combination_coordinates
from equifinal.samplers.estimator import Estimate, Estimator, EstimatorByC, choose
from equifinal.samplers.law import Moments
from equifinal.samplers.mixture import Mixture
from equifinal.samplers.modes import Modes, find_modes, find_more_modes, news
from equifinal.samplers.pareto import k_hat
from equifinal.samplers.tempered import NUMBER

Array = NDArray[np.float64]
Tool = Estimator | EstimatorByC

LITTLE_NOISE, TOO_NOISY = 0.02, 2.0  # variance of log hat p_C: good enough, and not usable
ROUNDS = (500, 1300, 1000)  # draws of importance sampling; the last judge what the others have found
MORE_ROUNDS = (2500, 4000, 6000)  # if these do not suffice
DUST = 1e-5  # of all weight, not looked at when a mixture is fitted
DF, INFLATION = 8.0, 1.05  # degrees of freedom, and scale, of fitted components
WIDE_SHARE, WIDE_SCALE, WIDE_DF = 0.1, 1.5, 4.0  # of the defensive component
K_LIMIT, ACCEPTANCE_LIMIT, SEVERAL_LIMIT = 0.5, 0.3, 0.1  # the last where there are several modes
HIGH_ACCEPTANCE, HIGH_K_LIMIT = 0.6, 0.7
PIECE = 2_000_000  # points on fibres that are kept in memory together


class Plan(NamedTuple):
    """What the preparation found: a proposal, draws to start from, and what it cost."""

    mixture: Mixture
    number: int
    start: Array  # h (n, q), with
    weights: Array  # importance weights
    moments: Moments  # one row
    k_hat: float
    acceptance: float
    noise: float  # variance of log hat p_C at the highest mode
    modes: int
    solves: int
    failures: int
    seconds: float = 0.0

    @property
    def refusal(self) -> str:
        """Why this proposal is not good enough; empty if it is."""
        return refusal(self.k_hat, self.acceptance, self.noise, self.modes)


def refusal(shape: float, acceptance: float, noise: float, modes: int) -> str:
    """Why a proposal is not good enough; empty if it is."""
    if noise > TOO_NOISY:
        return f"the prior density of the combinations cannot be estimated well (log variance {noise:.1f})"
    # Metropolis can live with heavier tails than importance sampling, if it is seldom in them
    if shape >= (K_LIMIT if acceptance < HIGH_ACCEPTANCE else HIGH_K_LIMIT):
        return f"no proposal was found that fits the posterior's tails (k-hat {shape:.2f})"
    # between modes that lie apart nothing else gets across
    if acceptance < (ACCEPTANCE_LIMIT if modes == 1 else SEVERAL_LIMIT):
        return f"no proposal was found that fits the posterior (acceptance {acceptance:.0%})"
    return ""


class Target(NamedTuple):
    """log of l(c) hat p_C(c) |dc/dh| at points h, with all that goes with it."""

    log_target: Array
    log_likelihood: Array
    chosen: Array  # theta, by weight
    found: Estimate
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


def evaluate(
    posterior: Posterior, fibre: Fibre, tool: Tool, h: Array, points: Array, uniforms: Array, moments: Moments
) -> Target:
    """At h (n, q), with points (n, N, width) and uniforms (n,) that choose a root."""
    c, log_slope = combination_coordinates(fibre).backward(h)
    found = tool.estimate(c, points, moments)
    chosen = found.theta[np.arange(len(h)), choose(found.log_weight, uniforms)]
    with np.errstate(invalid="ignore"):
        density = found.log_p + log_slope
    possible = np.isfinite(density)
    likelihood, solves, failures = np.full(len(h), -np.inf), np.zeros(len(h), int), np.zeros(len(h), int)
    if possible.any():
        likelihood[possible], solves[possible], failures[possible] = posterior.log_likelihood(chosen[possible])
    target = np.where(possible & np.isfinite(likelihood), density + likelihood, -np.inf)
    return Target(target, likelihood, chosen, found, solves, failures)


def prepare(
    posterior: Posterior,
    fibre: Fibre,
    tools: Sequence[Callable[[], Tool]],
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
    search = _Importance(posterior, fibre, tools, modes, rng, modes.solves, modes.failures)
    if not search.passes(report) and not modes.tempered and search.noise <= TOO_NOISY:
        report(f"no proposal fits: {NUMBER} tempered particles")
        more = find_more_modes(posterior, fibre, rng, modes)
        found_more = news(more, modes)
        report(more.in_words if found_more else "no other mode")
        search.solves, search.failures = search.solves + more.solves, search.failures + more.failures
        if found_more:
            search = _Importance(posterior, fibre, tools, more, rng, search.solves, search.failures)
            search.passes(report)
    return search.plan()


def _moments_at(modes: Modes, fibre: Fibre) -> Moments:
    """For laws that are learned: the highest mode, with the prior's spread along the fibre."""
    q = fibre.rank
    spread = np.concatenate([np.ones(q), fibre.spread_in_coordinates])
    covariance = np.diag(spread**2)
    covariance[:q, :q] = modes.covariance[0]
    return Moments(np.concatenate([modes.h[0], modes.position[0]])[None], covariance[None])


def _enough_points(
    modes: Modes,
    tools: Sequence[Callable[[], Tool]],
    fibre: Fibre,
    moments: Moments,
    rng: np.random.Generator,
    trials: int = 100,
) -> tuple[Tool, float]:
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


def _laplace(modes: Modes) -> Mixture:
    """A t law at each mode, shared by the modes' Gaussian volumes."""
    factor = np.linalg.cholesky(modes.covariance)
    log_volume = modes.log_density + np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    share = np.maximum(np.exp(log_volume - log_volume.max()), 0.05)
    k = len(share)
    return Mixture(share / share.sum(), modes.h, 1.1 * factor, np.full(k, 5.0))


def _defended(mixture: Mixture) -> Mixture:
    """With a wide component, so that no part of the posterior is out of reach."""
    centre = mixture.share @ mixture.centre
    apart = mixture.centre - centre
    within = np.einsum("k,kij,klj->il", mixture.share, mixture.factor, mixture.factor)
    covariance = within + (apart * mixture.share[:, None]).T @ apart
    return mixture.joined(mixtures.single(centre, WIDE_SCALE**2 * covariance, WIDE_DF), WIDE_SHARE)


def _without_dust(x: Array, weights: Array) -> tuple[Array, Array]:
    """The draws that make up nearly all of the weight: the others only take time."""
    order = np.argsort(-weights)
    kept = order[: 1 + int(np.searchsorted(np.cumsum(weights[order]), 1 - DUST))]
    return x[kept], weights[kept] / weights[kept].sum()


class _Importance:
    """Rounds of importance sampling: all draws so far, weighted against all proposals so far."""

    def __init__(
        self,
        posterior: Posterior,
        fibre: Fibre,
        tools: Sequence[Callable[[], Tool]],
        modes: Modes,
        rng: np.random.Generator,
        solves: int,
        failures: int,
    ):
        self.posterior, self.fibre, self.modes, self.rng = posterior, fibre, modes, rng
        self.moments = _moments_at(modes, fibre)
        self.floor = min(modes.covariance, key=lambda s: np.linalg.slogdet(s)[1])  # of the narrowest mode
        self.tool, self.noise = _enough_points(modes, tools, fibre, self.moments, rng)
        self.mixture, self.fit = _laplace(modes), (math.inf, 0.0)
        self.proposals: list[Mixture] = []
        self.sizes: list[int] = []
        self.x, self.log_target = np.empty((0, fibre.rank)), np.empty(0)
        self.solves, self.failures = solves, failures

    def passes(self, report: Callable[[str], None]) -> bool:
        """Rounds until the proposal passes; false if it never does, or if there is nothing around the modes."""
        for size in (*ROUNDS, *MORE_ROUNDS):
            self.draw(size)
            if not np.isfinite(self.log_target).any():
                return False
            self.fit = self.judge()
            report(f"proposal k-hat {self.fit[0]:.2f}, acceptance {self.fit[1]:.0%}")
            if len(self.sizes) >= len(ROUNDS) and not refusal(*self.fit, self.noise, len(self.modes.h)):
                return True
            self.mixture = self._fitted()
        return False

    def plan(self) -> Plan:
        if not np.isfinite(self.log_target).any():
            raise SamplingError(
                "no draw around the modes has a finite posterior density: no parameters have such combinations, or the "
                "solver fails there"
            )
        x, weights = self.weighted()
        return Plan(
            mixture=self.proposals[-1],  # which `fit` is about
            number=self.tool.number,
            start=x,
            weights=weights,
            moments=self.moments,
            k_hat=self.fit[0],
            acceptance=self.fit[1],
            noise=self.noise,
            modes=len(self.modes.h),
            solves=self.solves,
            failures=self.failures,
        )

    def draw(self, size: int) -> None:
        """A round with the newest mixture."""
        proposal = _defended(self.mixture)
        x = proposal.sample(self.rng, size)
        self.proposals.append(proposal)
        self.sizes.append(size)
        together = max(1, PIECE // self.tool.number)
        for i in range(0, size, together):
            self._evaluate(x[i : i + together])

    def _evaluate(self, x: Array) -> None:
        points, choices = self.tool.many_uniforms(self.rng, len(x)), self.rng.random(len(x))
        repeated = Moments(*(np.repeat(part, len(x), axis=0) for part in self.moments))
        made = evaluate(self.posterior, self.fibre, self.tool, x, points, choices, repeated)
        self.x, self.log_target = np.concatenate([self.x, x]), np.concatenate([self.log_target, made.log_target])
        self.solves, self.failures = self.solves + int(made.solves.sum()), self.failures + int(made.failures.sum())

    def weighted(self) -> tuple[Array, Array]:
        """Draws with weights that none of them dominates."""
        log_q = np.logaddexp.reduce(
            [math.log(n / len(self.x)) + p.log_density(self.x) for n, p in zip(self.sizes, self.proposals, strict=True)]
        )
        log_weight = self.log_target - log_q
        weights = np.exp(log_weight - log_weight.max())
        weights = np.minimum(weights, math.sqrt(len(weights)) * weights.mean())
        return self.x, weights / weights.sum()

    def judge(self) -> tuple[float, float]:
        """k-hat of the last round's weights, and the acceptance of an independence sampler with its proposal."""
        newest = slice(len(self.x) - self.sizes[-1], None)
        log_weight = self.log_target[newest] - self.proposals[-1].log_density(self.x[newest])
        weights = np.sort(np.exp(log_weight - log_weight.max()))
        n = len(weights)
        # E min(1, w'/w) with w' from the proposal and w from the posterior: sums of min(w_i, w_j) over all pairs
        smaller = float(np.sum(weights * (2 * (n - np.arange(n)) - 1)))
        return k_hat(log_weight), smaller / (n * float(weights.sum()))

    def _fitted(self) -> Mixture:
        """The mixture of one to four components that describes the draws best, with a penalty for its size."""
        x, weights = _without_dust(*self.weighted())
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
        starts = [_laplace(self.modes)._replace(df=np.full(len(self.modes.h), DF))] if several else []
        for k in (1, 2, 2, 3, 3, 4, 4):
            at = self.rng.choice(len(x), k, p=weights)
            starts.append(Mixture(np.full(k, 1 / k), x[at], np.repeat(factor[None], k, axis=0), np.full(k, DF)))
        best: tuple[float, Mixture] | None = None
        for start in starts:
            made = mixtures.fit(x, weights, start, floor)
            size = len(made.share) * (1 + q + q * (q + 1) / 2)
            score = float(weights @ made.log_density(x)) - 0.15 * size * math.log(effective) / effective
            if best is None or score > best[0]:
                best = score, made
        assert best is not None
        return best[1]._replace(factor=INFLATION * best[1].factor)
