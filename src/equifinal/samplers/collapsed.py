r"""The collapsed sampler: nearly independent draws of the combinations c, with theta drawn afresh along each fibre.

The posterior of h(c) is l(c) p_C(c) |dc/dh|, of low dimension and identifiable, and `estimator` gives p_C nearly without
noise. So a law q can be fitted to it:

1. modes, from prior draws by screening and Levenberg-Marquardt (`modes`);
2. a Student t law at each; rounds of importance sampling, after each of which a mixture of t laws is fitted to all draws
   so far (`mixture`), weighted against all proposals so far; a wide component is added, and q is frozen.

Then every chain is an independence Metropolis sampler. Its proposals c' ~ q with new points U' are accepted with

    min(1, w'/w),    w = l(c) hat p_C(c; U) |dc/dh| / q(h),

and theta is chosen from U at every iteration. This is the pseudo-marginal sampler with another proposal, so it is exact
for any q and any number of points. As proposals do not depend on where the chain is, they are made and solved in large
batches. They are also draws of an importance sampler, so that the mean of w is the marginal likelihood Z.

Before sampling, q has to pass a gate: the Pareto shape k-hat of the weights below 0.5 and an acceptance above 0.3. If it
does not, `prepare` says so, and another sampler is the better choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.compiled import compiled
from equifinal.errors import DataError, SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.prior import log_prior, to_theta
from equifinal.samplers import mixture as mixtures
from equifinal.samplers import pseudo_marginal
from equifinal.samplers.combination_coordinates import combination_coordinates
from equifinal.samplers.estimator import Estimate, choose
from equifinal.samplers.law import Moments
from equifinal.samplers.mixture import Mixture
from equifinal.samplers.modes import Modes, find_modes
from equifinal.samplers.pareto import k_hat

Array = NDArray[np.float64]

COUNTS = pseudo_marginal.COUNTS
BATCH = 128  # iterations of a chain whose proposals are made together
POINTS = (16, 32, 64, 128, 256, 512, 1024)  # numbers of points on a fibre that are tried
LITTLE_NOISE, TOO_NOISY = 0.02, 2.0  # variance of log hat p_C: good enough, and not usable
ROUNDS = (400, 800, 1600)  # draws of importance sampling
MORE_ROUNDS = (2500, 4000, 6000)  # if these do not suffice
COMPONENTS = 4
DF, INFLATION = 8.0, 1.05  # degrees of freedom, and scale, of fitted components
WIDE_SHARE, WIDE_SCALE, WIDE_DF = 0.05, 2.0, 4.0  # of the defensive component
K_LIMIT, ACCEPTANCE_LIMIT = 0.5, 0.3


@dataclass(frozen=True)
class Settings(pseudo_marginal.Settings):
    """Options of the collapsed sampler: those of `pseudo_marginal.Settings` on points.

    Attributes
    ----------
    aux
        Points on a fibre for each proposal; left out, as few as make hat p_C nearly free of noise.
    """

    aux: Any = None

    def __post_init__(self) -> None:
        if self.aux is not None:
            super().__post_init__()
        else:
            replace(self, aux=POINTS[0])


class State(NamedTuple):
    """Where each chain is, and the frozen proposal; the first axis of every array is the chain."""

    position: Array
    log_prior: Array
    log_likelihood: Array
    log_ratio: Array  # log w
    theta: Array  # the roots of U
    log_weight: Array  # of the roots
    key: NDArray[np.uint64]  # of the random numbers
    number: NDArray[np.int64]  # of points
    share: Array  # the mixture q
    centre: Array
    factor: Array
    df: Array
    mean: Array  # moments of (h, u), for laws that are learned
    covariance: Array
    proposals: Array  # how many so far, the log of the sum of their weights, and of the squares
    log_sum: Array
    log_squares: Array

    @property
    def moments(self) -> Moments:
        return Moments(self.mean, self.covariance)


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

    @property
    def refusal(self) -> str:
        """Why this proposal is not good enough; empty if it is."""
        if self.noise > TOO_NOISY:
            return f"the prior density of the combinations cannot be estimated well (log variance {self.noise:.1f})"
        if self.k_hat >= K_LIMIT:
            return f"no proposal was found that fits the posterior's tails (k-hat {self.k_hat:.2f})"
        if self.acceptance < ACCEPTANCE_LIMIT:
            return f"no proposal was found that fits the posterior (acceptance {self.acceptance:.0%})"
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
    posterior: Posterior, fibre: Fibre, tool: Any, h: Array, points: Array, uniforms: Array, moments: Moments
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


# --- preparation ---


def prepare(
    posterior: Posterior,
    settings: Settings,
    fibre: Fibre,
    seed: int,
    report: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Find the posterior from prior draws, and a proposal for it."""
    rng = np.random.default_rng([seed, 7])
    modes = find_modes(posterior, fibre, rng, report)
    moments = _moments_at(modes, fibre)
    number, noise = _enough_points(modes, settings, fibre, moments, rng)
    search = _Importance(posterior, fibre, replace(settings, aux=number), moments, modes, rng)
    mixture = _laplace(modes)
    for size in (*ROUNDS, *MORE_ROUNDS):
        mixture = search.improve(mixture, size)
        fit = search.judge()
        report(f"proposal k-hat {fit[0]:.2f}, acceptance {fit[1]:.0%}")
        if len(search.sizes) >= len(ROUNDS) and fit[0] < K_LIMIT and fit[1] >= ACCEPTANCE_LIMIT:
            break
    x, weights = search.weighted()
    return Plan(
        mixture=_defended(mixture),
        number=number,
        start=x,
        weights=weights,
        moments=search.moments,
        k_hat=fit[0],
        acceptance=fit[1],
        noise=noise,
        modes=len(modes.h),
        solves=modes.solves + search.solves,
        failures=modes.failures + search.failures,
    )


def _moments_at(modes: Modes, fibre: Fibre) -> Moments:
    """A first guess for laws that are learned: the highest mode, with the prior's spread along the fibre."""
    q = fibre.rank
    spread = np.concatenate([np.ones(q), fibre.spread_in_coordinates])
    covariance = np.diag(spread**2)
    covariance[:q, :q] = modes.covariance[0]
    return Moments(np.concatenate([modes.h[0], modes.position[0]])[None], covariance[None])


def _enough_points(
    modes: Modes, settings: Settings, fibre: Fibre, moments: Moments, rng: np.random.Generator, trials: int = 100
) -> tuple[int, float]:
    """As few points as make log hat p_C nearly free of noise at the highest mode; and its variance."""
    c, _ = combination_coordinates(fibre).backward(modes.h[:1])
    noise = math.inf
    for number in POINTS if settings.aux is None else (settings.aux,):
        tool = pseudo_marginal.estimator(fibre, replace(settings, aux=number))
        points = np.stack([tool.uniforms(rng) for _ in range(trials)])
        repeated = Moments(*(np.repeat(part, trials, axis=0) for part in moments))
        log_p = tool.estimate(np.repeat(c, trials, axis=0), points, repeated).log_p
        usable = log_p[np.isfinite(log_p)]
        noise = float(np.var(usable)) if len(usable) > 0.9 * trials else math.inf
        if noise < LITTLE_NOISE:
            break
    return number, noise


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


class _Importance:
    """Rounds of importance sampling: all draws so far, weighted against all proposals so far."""

    def __init__(
        self,
        posterior: Posterior,
        fibre: Fibre,
        settings: Settings,
        moments: Moments,
        modes: Modes,
        rng: np.random.Generator,
    ):
        self.posterior, self.fibre, self.rng = posterior, fibre, rng
        self.tool = pseudo_marginal.estimator(fibre, settings)
        self.moments, self.floor = moments, modes.covariance[0]
        self.proposals: list[Mixture] = []
        self.sizes: list[int] = []
        self.x, self.log_target = np.empty((0, fibre.rank)), np.empty(0)
        self.solves = self.failures = 0

    def improve(self, mixture: Mixture, size: int) -> Mixture:
        """A round with this proposal, and a better one."""
        proposal = _defended(mixture)
        x = proposal.sample(self.rng, size)
        points = np.stack([self.tool.uniforms(self.rng) for _ in range(size)])
        repeated = Moments(*(np.repeat(part, size, axis=0) for part in self.moments))
        made = evaluate(self.posterior, self.fibre, self.tool, x, points, self.rng.random(size), repeated)
        self.proposals.append(proposal)
        self.sizes.append(size)
        self.x, self.log_target = np.concatenate([self.x, x]), np.concatenate([self.log_target, made.log_target])
        self.solves, self.failures = self.solves + int(made.solves.sum()), self.failures + int(made.failures.sum())
        if not np.isfinite(self.log_target).any():
            raise SamplingError(
                "no draw around the modes has a finite posterior density: the solver fails there, or the combinations "
                "leave the prior's support; try the geometric sampler"
            )
        return self._fitted()

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
        x, weights = self.weighted()
        q = x.shape[1]
        effective = 1 / float(weights @ weights)
        centre = weights @ x
        covariance = (x - centre).T @ ((x - centre) * weights[:, None])
        if effective < 5 * q:  # too few to tell a shape from: lean on what was known
            share = effective / (5 * q)
            covariance = share * covariance + (1 - share) * self.floor
        floor = 1e-3 * covariance + 1e-6 * np.diag(np.diag(self.floor))
        factor = np.linalg.cholesky(covariance + floor)
        best: tuple[float, Mixture] | None = None
        for k in range(1, COMPONENTS + 1):
            for _ in range(1 if k == 1 else 2):
                at = self.rng.choice(len(x), k, p=weights)
                start = Mixture(np.full(k, 1 / k), x[at], np.repeat(factor[None], k, axis=0), np.full(k, DF))
                made = mixtures.fit(x, weights, start, floor)
                size = len(made.share) * (1 + q + q * (q + 1) / 2)
                score = float(weights @ made.log_density(x)) - 0.15 * size * math.log(effective) / effective
                if best is None or score > best[0]:
                    best = score, made
        assert best is not None
        return best[1]._replace(factor=INFLATION * best[1].factor)


# --- chains ---


def init(
    posterior: Posterior, plan: Plan, settings: Settings, fibre: Fibre, rngs: Sequence[np.random.Generator]
) -> State:
    """Chains at draws of the importance sampler."""
    tool = pseudo_marginal.estimator(fibre, replace(settings, aux=plan.number))
    chains, d = len(rngs), len(fibre.names)
    moments = Moments(*(np.repeat(part, chains, axis=0) for part in plan.moments))
    parts = {name: np.repeat(value[None], chains, axis=0) for name, value in plan.mixture._asdict().items()}
    keys = np.array([rng.integers(2**63) for rng in rngs], np.uint64)
    starts = [_start(posterior, plan, fibre, tool, rng) for rng in rngs]
    theta = np.stack([s.found.theta[0] for s in starts])
    state = State(
        position=np.empty((chains, d)),
        log_prior=np.empty(chains),
        log_likelihood=np.array([s.log_likelihood[0] for s in starts]),
        log_ratio=np.array([s.log_target[0] for s in starts]),
        theta=theta,
        log_weight=np.stack([pseudo_marginal.on_branch(fibre, s.found, s.chosen)[0] for s in starts]),
        key=keys,
        number=np.full(chains, plan.number),
        **parts,
        mean=moments.mean,
        covariance=moments.covariance,
        proposals=np.zeros(chains),
        log_sum=np.full(chains, -np.inf),
        log_squares=np.full(chains, -np.inf),
    )
    at = fibre.to_coordinates(theta[np.arange(chains), choose(state.log_weight, np.full(chains, 0.5))])
    there, log_slope = to_theta(at, fibre.table)
    return state._replace(position=at, log_prior=log_prior(there, fibre.table) + log_slope)


def _start(posterior: Posterior, plan: Plan, fibre: Fibre, tool: Any, rng: np.random.Generator) -> Target:
    for _ in range(100):
        h = plan.start[rng.choice(len(plan.start), p=plan.weights)][None]
        found = evaluate(posterior, fibre, tool, h, tool.uniforms(rng)[None], rng.random(1), plan.moments)
        if np.isfinite(found.log_target[0]):
            return found._replace(log_target=found.log_target - plan.mixture.log_density(h))
    raise SamplingError("no start: hardly any draw around the modes has a finite posterior density")


class Block(NamedTuple):
    """Iterations of all chains: (chains, iterations, ...)."""

    position: Array
    log_prior: Array
    log_likelihood: Array
    acceptance: Array
    accepted: NDArray[np.bool_]
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]
    counts: NDArray[np.int64]


def run_block(
    posterior: Posterior, state: State, settings: Settings, iteration: int, count: int, fibre: Fibre
) -> tuple[State, Block]:
    """Iterations from ``iteration`` on. Their random numbers come in batches, each from its own number and the key."""
    blocks = []
    while count:
        first = iteration % BATCH
        here = min(count, BATCH - first)
        state, block = _within_batch(posterior, state, settings, iteration // BATCH, first, first + here, fibre)
        blocks.append(block)
        iteration, count = iteration + here, count - here
    return state, Block(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))


def _within_batch(
    posterior: Posterior, state: State, settings: Settings, batch: int, first: int, last: int, fibre: Fibre
) -> tuple[State, Block]:
    chains, length = len(state.key), last - first
    tool = pseudo_marginal.estimator(fibre, replace(settings, aux=int(state.number[0])))
    h, points, uniforms = [], [], []
    for i in range(chains):
        rng = np.random.default_rng([int(state.key[i]), batch])
        mixture = Mixture(state.share[i], state.centre[i], state.factor[i], state.df[i])
        numbers = mixture.numbers(rng, BATCH)
        h.append(mixture.from_numbers(*(part[first:last] for part in numbers)))
        uniforms.append(rng.random((BATCH, 3))[first:last])
        points.append(tool.many_uniforms(rng, BATCH)[first:last])
    drawn, decisions = np.concatenate(h), np.stack(uniforms)
    moments = Moments(*(np.repeat(part, length, axis=0) for part in state.moments))
    made = evaluate(posterior, fibre, tool, drawn, np.concatenate(points), decisions[..., 1].reshape(-1), moments)
    log_q = np.concatenate(
        [Mixture(*parts).log_density(x) for *parts, x in zip(state.share, state.centre, state.factor, state.df, h)]
    )
    log_ratio = (made.log_target - log_q).reshape(chains, length)
    source, acceptance = _metropolis(state.log_ratio, log_ratio, np.ascontiguousarray(decisions[..., 0]))
    log_weight = pseudo_marginal.on_branch(fibre, made.found, made.chosen).reshape(chains, length, -1)
    chosen = _reconstruct(state.log_weight, log_weight, source, np.ascontiguousarray(decisions[..., 2]))
    theta = made.found.theta.reshape(chains, length, *made.found.theta.shape[1:])
    rows = np.arange(chains)[:, None]
    kept = source >= 0
    drawn_theta = np.where(kept[..., None], theta[rows, source, chosen], state.theta[rows, chosen])
    d = drawn_theta.shape[2]
    position = fibre.to_coordinates(drawn_theta.reshape(-1, d))
    there, log_slope = to_theta(position, fibre.table)
    prior = log_prior(there, fibre.table) + log_slope
    likelihood = np.where(
        kept, made.log_likelihood.reshape(chains, length)[rows, source], state.log_likelihood[:, None]
    )
    counts = np.zeros((chains, length, len(COUNTS)), np.int64)
    found = made.found
    for column, values in (
        (pseudo_marginal.POINTS_COUNT, np.full(len(drawn), tool.number)),
        (pseudo_marginal.EMPTY, found.empty),
        (pseudo_marginal.ROOTS_COUNT, found.roots),
        (pseudo_marginal.UNRESOLVED, found.unresolved),
        (pseudo_marginal.IMPOSSIBLE, ~np.isfinite(found.log_p)),
        (pseudo_marginal.SAVED, len(posterior.arms) - made.solves),
    ):
        counts[..., column] = values.reshape(chains, length)
    block = Block(
        position.reshape(chains, length, d),
        prior.reshape(chains, length),
        likelihood,
        acceptance,
        kept & (source == np.arange(length)),
        made.solves.reshape(chains, length),
        made.failures.reshape(chains, length),
        counts,
    )
    end = source[:, -1]
    moved = end >= 0
    one = np.arange(chains)
    with np.errstate(divide="ignore"):
        log_sum = np.logaddexp(state.log_sum, np.logaddexp.reduce(log_ratio, axis=1))
        log_squares = np.logaddexp(state.log_squares, np.logaddexp.reduce(2 * log_ratio, axis=1))
    return state._replace(
        position=block.position[:, -1],
        log_prior=block.log_prior[:, -1],
        log_likelihood=likelihood[:, -1],
        log_ratio=np.where(moved, log_ratio[one, end], state.log_ratio),
        theta=np.where(moved[:, None, None], theta[one, end], state.theta),
        log_weight=np.where(moved[:, None], log_weight[one, end], state.log_weight),
        proposals=state.proposals + length,
        log_sum=log_sum,
        log_squares=log_squares,
    ), block


@compiled
def _metropolis(current, log_ratio, uniforms):
    """Which proposal each iteration ends at (-1: where the chain was before), and the probability of its own."""
    chains, length = log_ratio.shape
    source, acceptance = np.empty((chains, length), np.int64), np.empty((chains, length))
    for i in range(chains):
        now, at = current[i], -1
        for t in range(length):
            change = log_ratio[i, t] - now
            acceptance[i, t] = math.exp(min(0.0, change)) if change > -np.inf else 0.0
            if uniforms[i, t] < acceptance[i, t]:
                now, at = log_ratio[i, t], t
            source[i, t] = at
    return source, acceptance


@compiled
def _reconstruct(before, log_weight, source, uniforms):
    """A root of the state's points for each iteration, by weight."""
    chains, length = source.shape
    chosen = np.empty((chains, length), np.int64)
    for i in range(chains):
        for t in range(length):
            row = before[i : i + 1] if source[i, t] < 0 else log_weight[i, source[i, t] : source[i, t] + 1]
            chosen[i, t] = choose(row, uniforms[i, t : t + 1])[0]
    return chosen


# --- afterwards ---


def examine(state: State, theta: Array, chunk: Any, settings: Settings, fibre: Fibre) -> dict[str, float]:
    """The marginal likelihood with its standard error, and what `pseudo_marginal.examine` says of the estimates."""
    number = state.proposals.sum()
    log_mean = float(np.logaddexp.reduce(state.log_sum)) - math.log(number)
    log_mean_square = float(np.logaddexp.reduce(state.log_squares)) - math.log(number)
    relative = math.sqrt(max(0.0, math.expm1(log_mean_square - 2 * log_mean)) / number)
    fixed = replace(settings, aux=int(state.number[0]))
    noise = pseudo_marginal.examine(state, theta, chunk, fixed, fibre)
    return noise | {"log_evidence": log_mean, "log_evidence_error": relative}
