r"""The collapsed sampler: nearly independent draws of the combinations c, with theta drawn afresh along each fibre.

The posterior of h(c) is l(c) p_C(c) |dc/dh|, of low dimension and identifiable, and `estimator` gives p_C nearly
without noise. So a law q can be fitted to it:

1. modes, from prior draws by screening and Levenberg-Marquardt (`modes`), if need be from `tempered` particles too;
2. a Student t law at each; rounds of importance sampling, after each of which a mixture of t laws is fitted to all
   draws so far; a wide component is added, and q is frozen (`proposal`).

Then every chain is an independence Metropolis sampler. Its proposals c' ~ q with new points U' are accepted with

    min(1, w'/w),    w = l(c) hat p_C(c; U) |dc/dh| / q(h),

and theta is chosen from U at every iteration. Noise parameters that the model does not have are no part of c: they are
integrated out for each trajectory, without any solve, and drawn afresh as well (`noise_integral`); U has their points
too, and l(c) is an estimate. This is the pseudo-marginal sampler with another proposal, so it is exact for any q and
any number of points. As proposals do not depend on where the chain is, they are made and solved in large batches.
They are also draws of an importance sampler, so that the mean of w is the marginal likelihood Z.

Before sampling, q has to pass a gate: the Pareto shape k-hat of the weights below 0.5 and an acceptance above 0.65. If
it does not even with what `walkers` have found, but is still accepted now and then, every fourth iteration is a
Metropolis step of a local walk in h with new points: a chain that stands where w is large gets away from there. If q is
worse than that, `prepare` says so, and another sampler is the better choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.samplers.collapsed import plan as proposal
from equifinal.samplers.collapsed.batches import COUNTS, State, batch_length, drawn_from, run_batch
from equifinal.samplers.collapsed.plan import Plan
from equifinal.samplers.collapsed.settings import POINTS, WARMUP, Settings
from equifinal.samplers.marginal.target import AnyEstimator, Estimates, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.protocol import Block, Kept, Start, Task, concatenated
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal

__all__ = ["COUNTS", "WARMUP", "Plan", "Settings", "State", "examine", "init", "join", "prepare", "run_block"]

Array = NDArray[np.float64]


join = concatenated


def prepare(task: Task, seed: int, report: Callable[[str], None] = lambda text: None) -> Plan:
    """Find the posterior from prior draws, and a proposal for it."""
    fibre, settings = task.own_fibre, task.settings
    numbers = POINTS if settings.aux is None else (settings.aux,)
    tools = [partial(_tool, fibre, settings, number) for number in numbers]
    return proposal.prepare(task.posterior, fibre, tools, np.random.default_rng([seed, 7]), report)


def _tool(fibre: Fibre, settings: Settings, number: int) -> AnyEstimator:
    return pseudo_marginal.estimator(fibre, replace(settings, aux=int(number)))


def target_of(task: Task, plan: Plan) -> Target:
    """Make the density that chains sample."""
    fibre = task.own_fibre
    tool = _tool(fibre, task.settings, plan.number)
    return Target(task.posterior, fibre, tool, plan.noise_integral(task.posterior))


def init(task: Task, plan: Plan, rngs: Sequence[np.random.Generator]) -> Start:
    """Start chains at draws of the importance sampler."""
    target = target_of(task, plan)
    fibre, chains = task.own_fibre, len(rngs)
    keys = np.array([rng.integers(2**63) for rng in rngs], np.uint64)
    starts = [_start(target, plan, rng) for rng in rngs]
    roots = [pseudo_marginal.on_branch(fibre, s.found, s.chosen)[0] for _, s, _ in starts]
    state = State(
        position=np.empty((chains, len(fibre.names))),
        log_prior=np.empty(chains),
        log_likelihood=np.empty(chains),
        h=np.concatenate([at for at, _, _ in starts]),
        log_ratio=np.array([s.log_target[0] for _, s, _ in starts]),
        theta=np.stack([s.found.theta[0] for _, s, _ in starts]),
        log_weight=np.stack(roots),
        noise=np.stack([s.integrated.values[0] for _, s, _ in starts]),
        noise_log_weight=np.stack([s.integrated.log_weight[0] for _, s, _ in starts]),
        noise_log_likelihood=np.stack([s.integrated.log_likelihood[0] for _, s, _ in starts]),
        key=keys,
        proposals=np.zeros(chains),
        log_sum=np.full(chains, -np.inf),
        log_squares=np.full(chains, -np.inf),
        stood=np.zeros((chains, 2), np.int64),
    )
    middle = np.full((chains, 1, len(target.integral.groups)), 0.5)
    here = drawn_from(target, state.points(), np.zeros((chains, 1), np.int64), middle[..., 0], middle)
    state = state._replace(
        position=here.position[:, 0], log_prior=here.log_prior[:, 0], log_likelihood=here.log_likelihood[:, 0]
    )
    solves, failures = np.array([cost for _, _, cost in starts]).T
    return Start(state, solves, failures)


def _start(target: Target, plan: Plan, rng: np.random.Generator) -> tuple[Array, Estimates, tuple[int, int]]:
    """Find a draw with a finite density; and tell the solves and failures of all that were tried."""
    solves = failures = 0
    for _ in range(100):
        x = plan.start[rng.choice(len(plan.start), p=plan.weights)][None]
        made = target.estimate(x, target.numbers(rng, 1), plan.moments)
        solves, failures = solves + int(made.solves.sum()), failures + int(made.failures.sum())
        if np.isfinite(made.log_target[0]):
            log_ratio = made.log_target - target.coordinates.log_density(plan.mixture, x)
            return x, made._replace(log_target=log_ratio), (solves, failures)
    raise SamplingError("no start: hardly any draw around the modes has a finite posterior density")


def run_block(
    task: Task, plan: Plan, state: State, rngs: Sequence[np.random.Generator], iteration: int, count: int
) -> tuple[State, Block]:
    """Make iterations. Their random numbers come in batches, each from its own number and the chain's key."""
    target, length, blocks = target_of(task, plan), batch_length(plan), []
    while count:
        first = iteration % length
        here = min(count, length - first)
        state, block = run_batch(target, plan, state, iteration // length, first, first + here)
        blocks.append(block)
        iteration, count = iteration + here, count - here
    return state, Block(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))


# --- afterwards ---


def examine(task: Task, plan: Plan, state: State, draws: Kept) -> dict[str, float]:
    """Give the marginal likelihood with its standard error, and how noisy the estimates were."""
    number = state.proposals.sum()
    log_mean = float(np.logaddexp.reduce(state.log_sum)) - math.log(number)
    log_mean_square = float(np.logaddexp.reduce(state.log_squares)) - math.log(number)
    relative = math.sqrt(max(0.0, math.expm1(log_mean_square - 2 * log_mean)) / number)
    tool = _tool(task.own_fibre, task.settings, plan.number)
    repeated = Moments(*(np.repeat(part, len(draws.theta), axis=0) for part in plan.moments))
    noise = pseudo_marginal.noise_of_estimates(task.own_fibre, tool, repeated, draws)
    return noise | {
        "log_evidence": log_mean,
        "log_evidence_error": relative,
        "k_hat": plan.quality.k_hat,
        "longest_stay": float(state.stood[:, 1].max()),
    }
