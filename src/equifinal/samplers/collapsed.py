r"""The collapsed sampler: nearly independent draws of the combinations c, with theta drawn afresh along each fibre.

The posterior of h(c) is l(c) p_C(c) |dc/dh|, of low dimension and identifiable, and `estimator` gives p_C nearly
without noise. So a law q can be fitted to it:

1. modes, from prior draws by screening and Levenberg-Marquardt (`modes`), if need be from `tempered` particles too;
2. a Student t law at each; rounds of importance sampling, after each of which a mixture of t laws is fitted to all
   draws so far; a wide component is added, and q is frozen (`proposal`).

Then every chain is an independence Metropolis sampler. Its proposals c' ~ q with new points U' are accepted with

    min(1, w'/w),    w = l(c) hat p_C(c; U) |dc/dh| / q(h),

and theta is chosen from U at every iteration. This is the pseudo-marginal sampler with another proposal, so it is
exact for any q and any number of points. As proposals do not depend on where the chain is, they are made and solved
in large batches. They are also draws of an importance sampler, so that the mean of w is the marginal likelihood Z.

Before sampling, q has to pass a gate: the Pareto shape k-hat of the weights below 0.5 and an acceptance above 0.3. If
it does not, `prepare` says so, and another sampler is the better choice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.compiled import compiled
from equifinal.errors import DataError, SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.prior import log_prior, to_theta
from equifinal.samplers import proposal, pseudo_marginal
from equifinal.samplers.estimator import choose
from equifinal.samplers.law import Moments
from equifinal.samplers.mixture import Mixture
from equifinal.samplers.proposal import Plan, Target, Tool, evaluate

Array = NDArray[np.float64]

COUNTS = pseudo_marginal.COUNTS
WARMUP = 64  # iterations: chains begin where importance sampling has been already
BATCH, BATCH_POINTS = 128, 200_000  # iterations of a chain whose proposals are made together, and their points
POINTS = (16, 32, 64, 128, 256, 512, 1024)  # numbers of points on a fibre that are tried


@dataclass(frozen=True)
class Settings(pseudo_marginal.Settings):
    """Options of the collapsed sampler: those of `pseudo_marginal.Settings` on points.

    Attributes
    ----------
    aux
        Points on a fibre for each proposal; left out, as few as make hat p_C nearly free of noise.
    """

    sampler: ClassVar[str] = "collapsed"
    aux: Any = None

    def __post_init__(self) -> None:
        if self.aux is not None:
            super().__post_init__()
        else:
            replace(self, aux=POINTS[0])
        if self.partition == "by c":
            raise DataError("the collapsed sampler has one partition for all c: take 'volume', 'qr' or names")


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
    k_hat: Array  # of the proposal's weights

    @property
    def moments(self) -> Moments:
        return Moments(self.mean, self.covariance)


def prepare(
    posterior: Posterior,
    settings: Settings,
    fibre: Fibre,
    seed: int,
    report: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Find the posterior from prior draws, and a proposal for it."""
    numbers = POINTS if settings.aux is None else (settings.aux,)
    tools = [partial(_tool, fibre, settings, number) for number in numbers]
    began = time.perf_counter()
    plan = proposal.prepare(posterior, fibre, tools, np.random.default_rng([seed, 7]), report)
    return plan._replace(seconds=time.perf_counter() - began)


def _tool(fibre: Fibre, settings: Settings, number: int) -> Tool:
    return pseudo_marginal.estimator(fibre, replace(settings, aux=int(number)))


def init(
    posterior: Posterior, plan: Plan, settings: Settings, fibre: Fibre, rngs: Sequence[np.random.Generator]
) -> State:
    """Chains at draws of the importance sampler."""
    tool = _tool(fibre, settings, plan.number)
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
        k_hat=np.full(chains, plan.k_hat),
    )
    at = fibre.to_coordinates(theta[np.arange(chains), choose(state.log_weight, np.full(chains, 0.5))])
    there, log_slope = to_theta(at, fibre.table)
    return state._replace(position=at, log_prior=log_prior(there, fibre.table) + log_slope)


def _start(posterior: Posterior, plan: Plan, fibre: Fibre, tool: Tool, rng: np.random.Generator) -> Target:
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
    length = _batch_length(state)
    while count:
        first = iteration % length
        here = min(count, length - first)
        state, block = _within_batch(posterior, state, settings, iteration // length, first, first + here, fibre)
        blocks.append(block)
        iteration, count = iteration + here, count - here
    return state, Block(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))


def _batch_length(state: State) -> int:
    """Shorter where there are so many points on each fibre that memory matters."""
    return max(1, min(BATCH, BATCH_POINTS // int(state.number[0])))


def _within_batch(
    posterior: Posterior, state: State, settings: Settings, batch: int, first: int, last: int, fibre: Fibre
) -> tuple[State, Block]:
    chains, length, whole = len(state.key), last - first, _batch_length(state)
    tool = _tool(fibre, settings, state.number[0])
    h, points, uniforms = [], [], []
    for i in range(chains):
        rng = np.random.default_rng([int(state.key[i]), batch])
        mixture = Mixture(state.share[i], state.centre[i], state.factor[i], state.df[i])
        numbers = mixture.numbers(rng, whole)
        h.append(mixture.from_numbers(*(part[first:last] for part in numbers)))
        uniforms.append(rng.random((whole, 3))[first:last])
        points.append(tool.many_uniforms(rng, whole)[first:last])
    drawn, decisions = np.concatenate(h), np.stack(uniforms)
    moments = Moments(*(np.repeat(part, length, axis=0) for part in state.moments))
    made = evaluate(posterior, fibre, tool, drawn, np.concatenate(points), decisions[..., 1].reshape(-1), moments)
    log_q = np.concatenate(
        [
            Mixture(*parts).log_density(x)
            for *parts, x in zip(state.share, state.centre, state.factor, state.df, h, strict=True)
        ]
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
    return state._replace(
        position=block.position[:, -1],
        log_prior=block.log_prior[:, -1],
        log_likelihood=likelihood[:, -1],
        log_ratio=np.where(moved, log_ratio[one, end], state.log_ratio),
        theta=np.where(moved[:, None, None], theta[one, end], state.theta),
        log_weight=np.where(moved[:, None], log_weight[one, end], state.log_weight),
        proposals=state.proposals + length,
        log_sum=_added(state.log_sum, log_ratio),
        log_squares=_added(state.log_squares, 2 * log_ratio),
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
def _added(log_sum, log_terms):
    """log of sums to which terms are added one by one, so that it does not matter how many come in one stroke."""
    chains, length = log_terms.shape
    total = log_sum.copy()
    for i in range(chains):
        for t in range(length):
            larger, smaller = max(total[i], log_terms[i, t]), min(total[i], log_terms[i, t])
            total[i] = larger + math.log1p(math.exp(smaller - larger)) if larger > -np.inf else -np.inf
    return total


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
    return noise | {"log_evidence": log_mean, "log_evidence_error": relative, "k_hat": float(state.k_hat[0])}
