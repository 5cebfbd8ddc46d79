r"""The collapsed sampler: nearly independent draws of the combinations c, with theta drawn afresh along each fibre.

The posterior of h(c) is l(c) p_C(c) |dc/dh|, of low dimension and identifiable, and `estimator` gives p_C nearly
without noise. So a law q can be fitted to it, a mixture of t laws: from modes by importance sampling, or from tempered
populations (`plan`). Then q is frozen.

Fresh draws c' ~ q with new points U' are accepted with

    min(1, w'/w),    w = l(c) hat p_C(c; U) |dc/dh| / q(h),

and theta is chosen from U at every iteration. Noise parameters that the model does not have are no part of c: they are
integrated out for each trajectory, without any solve, and drawn afresh as well (`noise_integral`); U has their points
too, and l(c) is an estimate. This is the pseudo-marginal sampler with another proposal, so it is exact for any q and
any number of points. As fresh draws do not depend on where the chain is, they are made and solved in large batches.
They are also draws of an importance sampler, so that the mean of w is the marginal likelihood Z.

Where fresh draws alone would be refused too often, other moves are steps of several lengths that leave q invariant
(`proposals.mixture`) and are accepted by the same ratio. They do depend on where the chain is, so that each chain has
many lanes, which make their moves in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError, SamplingError
from equifinal.samplers.collapsed import plan as proposal
from equifinal.samplers.collapsed.batches import COUNTS, HIGHEST, Points, State, batch_length, drawn_from, run_batch
from equifinal.samplers.collapsed.plan import Plan, lanes_beside
from equifinal.samplers.collapsed.settings import WARMUP, Settings
from equifinal.samplers.collapsed.tools import Tools
from equifinal.samplers.marginal.target import Estimates, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals import evidence
from equifinal.samplers.proposals.pareto import k_hat_of_largest
from equifinal.samplers.proposals.quality import longest_stay, misses_tails
from equifinal.samplers.protocol import Block, Kept, Start, Task, concatenated
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal
from equifinal.samplers.pseudo_marginal.settings import MOST_POINTS
from equifinal.samplers.searching.populations import systematic

__all__ = ["COUNTS", "WARMUP", "Plan", "Settings", "State", "examine", "init", "join", "prepare", "review", "run_block"]

Array = NDArray[np.float64]


LEAST_REVIEWED = 1000  # draws of the proposal: from fewer, nothing can be said of its tails

join = concatenated


def prepare(task: Task, seed: int, report: Callable[[str], None] = lambda text: None) -> Plan:
    """Find the posterior from prior draws, and a proposal for it."""
    rng = np.random.default_rng([seed, 7])
    return proposal.prepare(task.posterior, task.own_fibre, _tools(task), rng, report, task.thin)


def _tools(task: Task) -> Tools:
    return Tools(task.own_fibre, task.settings)


def target_of(task: Task, plan: Plan) -> Target:
    """Make the density that chains sample."""
    tools = _tools(task)
    fits = 0 <= plan.way < len(tools.ways) and 0 < plan.number <= MOST_POINTS
    if fits and plan.lanes > 0 and plan.held.sum() == len(plan.noise_start):
        tool = tools.make(plan.number, plan.way)
        target = Target(task.posterior, task.own_fibre, tool, plan.noise_integral(task.posterior), plan.bend)
        if plan.mixture.dimension == len(plan.bend.side) == len(target.coordinates.moved):
            return target
    raise SamplingError(
        "the plan does not fit the model: the checkpoint of this run is damaged; remove it to begin anew"
    )


def init(task: Task, plan: Plan, rngs: Sequence[np.random.Generator]) -> Start:
    """Start lanes at draws that the preparation made; where there are two populations, chains from each in turn."""
    target = target_of(task, plan)
    fibre, chains, lanes = task.own_fibre, len(rngs), plan.lanes
    keys = np.array([rng.integers(2**63) for rng in rngs], np.uint64)
    rows = _rows_to_start_from(plan, rngs)
    starts = [_starts(target, plan, i % len(plan.start), rows[i], rng) for i, rng in enumerate(rngs)]

    def stacked(parts: Sequence[Array]) -> Array:
        return np.stack(parts).reshape(chains, lanes, *parts[0].shape[1:])

    made = [start.made for start in starts]
    state = State(
        position=np.empty((chains, len(fibre.names))),
        log_prior=np.empty(chains),
        log_likelihood=np.empty(chains),
        h=stacked([start.x for start in starts]),
        log_ratio=stacked([start.log_ratio for start in starts]),
        theta=stacked([part.found.theta for part in made]),
        log_weight=stacked([pseudo_marginal.on_branch(fibre, part.found, part.chosen) for part in made]),
        noise=stacked([part.integrated.values for part in made]),
        noise_log_weight=stacked([part.integrated.log_weight for part in made]),
        noise_log_likelihood=stacked([part.integrated.log_likelihood for part in made]),
        key=keys,
        fresh=np.zeros((chains, evidence.BINS)),
        visited=np.zeros((chains, evidence.BINS)),
        highest=np.full((chains, HIGHEST), -np.inf),
        stood=np.zeros((chains, lanes, 2), np.int64),
    )
    middle = np.full((chains, 1, len(target.integral.groups)), 0.5)
    points = Points(*(getattr(state, name)[:, :1] for name in Points._fields))
    here = drawn_from(target, points, np.zeros((chains, 1), np.int64), np.full((chains, 1), 0.5), middle)
    state = state._replace(
        position=here.position[:, 0], log_prior=here.log_prior[:, 0], log_likelihood=here.log_likelihood[:, 0]
    )
    solves, failures = np.array([start.cost for start in starts]).T
    return Start(state, solves, failures)


class _Lanes(NamedTuple):
    """Where the lanes of a chain begin, and the solves and failures of all that was tried."""

    x: Array
    log_ratio: Array
    made: Estimates
    cost: tuple[int, int]


def _rows_to_start_from(plan: Plan, rngs: Sequence[np.random.Generator]) -> list[NDArray[np.int64]]:
    """Which draws of their population lanes of each chain start at: no two at the same, as long as there are enough."""
    populations, rows = len(plan.start), []
    for first, rng in zip(range(min(populations, len(rngs))), rngs, strict=False):
        chains = len(rngs[first::populations])
        taken = systematic(plan.weights[first], chains * plan.lanes, rng.random())
        rows.append(rng.permutation(taken).reshape(chains, plan.lanes))
    return [rows[i % populations][i // populations] for i in range(len(rngs))]


def _starts(target: Target, plan: Plan, population: int, rows: NDArray[np.int64], rng: np.random.Generator) -> _Lanes:
    """Find draws with a finite density for all lanes of a chain: at these rows, or others where it is not."""
    solves = failures = 0
    found: _Lanes | None = None
    for _ in range(100):
        again = np.arange(plan.lanes) if found is None else np.flatnonzero(~np.isfinite(found.log_ratio))
        if found is not None:
            rows = rng.choice(plan.start.shape[1], len(again), p=plan.weights[population])
        x = plan.start[population, rows]
        moments = Moments(*(np.repeat(part, len(x), axis=0) for part in plan.moments))
        made = target.estimate(x, target.numbers(rng, len(x)), moments)
        solves, failures = solves + int(made.solves.sum()), failures + int(made.failures.sum())
        with np.errstate(invalid="ignore"):
            log_ratio = made.log_target - target.coordinates.log_density(plan.mixture, x)
        there = _Lanes(x, log_ratio, made, (solves, failures))
        found = there if found is None else _replaced(found, again, there)
        if np.isfinite(found.log_ratio).all():
            return found
    raise SamplingError("no start: hardly any draw around the modes has a finite posterior density")


def _replaced(whole: Any, rows: NDArray[np.int64], part: Any) -> Any:
    """A tuple of arrays, and of such tuples, with some rows from another; what is no array is the other's."""
    if isinstance(whole, np.ndarray):
        whole = whole.copy()
        whole[rows] = part
        return whole
    if hasattr(whole, "_fields"):
        return type(whole)(*(_replaced(one, rows, other) for one, other in zip(whole, part, strict=True)))
    return part


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


def review(task: Task, plan: Plan, state: State, seed: int, report: Callable[[str], None]) -> Plan | None:
    """Judge the proposal by all its draws so far, which show tails that it misses and the first few did not.

    A tail of weights matters if what lies beyond the largest is a noticeable part of the posterior. A chain that stands
    still for long tells the same: it has found a place where the proposal hardly ever goes. The remedy is steps of all
    lengths, if populations have found the proposal, else populations.
    """
    number = round(state.fresh.sum())
    if plan.lanes > 1 or plan.final or plan.refusal or number < LEAST_REVIEWED:
        return None
    shape, stay = k_hat_of_largest(state.highest.ravel(), number), int(state.stood[..., 1].max())
    most, settled = _highest(plan, state), bool(plan.steps.any())
    if misses_tails(shape, most, number, settled=settled):
        report(f"the proposal misses a tail: one of {number:,} draws of it has {most:.0f} times the mean weight")
    elif stay > longest_stay(number // len(state.key), plan.quality.acceptance):
        report(f"the proposal misses a place: a chain stood still there for {stay} iterations")
    else:
        return None
    if settled:
        return plan._replace(shares=plan.steps, lanes=lanes_beside(task.thin), solves=0, failures=0)
    rng = np.random.default_rng([seed, 8])
    try:
        better = proposal.prepare_again(task.posterior, task.own_fibre, _tools(task), rng, report, task.thin)
    except (SamplingError, IdentifiabilityError, np.linalg.LinAlgError) as error:
        report(f"nothing better was found: {error}")
        return plan._replace(final=True, solves=0, failures=0)
    if better.refusal:
        report(f"nothing better was found: {better.refusal}")
        return plan._replace(final=True, solves=better.solves, failures=better.failures)
    return better


def _highest(plan: Plan, state: State) -> float:
    """The highest weight that a draw of the proposal had, beside their mean."""
    return math.exp(state.highest.max() - evidence.by_mean(state.fresh, plan.quality.level).log_evidence)


# --- afterwards ---


def examine(task: Task, plan: Plan, state: State, draws: Kept) -> dict[str, float]:
    """Give the marginal likelihood with its standard error, k-hat of all fresh draws, and how noisy estimates were."""
    number = round(state.fresh.sum())
    tool = _tools(task).make(plan.number, plan.way)
    repeated = Moments(*(np.repeat(part, len(draws.theta), axis=0) for part in plan.moments))
    noise = pseudo_marginal.noise_of_estimates(task.own_fibre, tool, repeated, draws)
    found = noise | {"lanes": float(plan.lanes), "longest_stay": float(state.stood[..., 1].max())}
    if not np.isfinite(state.highest).any():  # few moves were fresh draws, and none of them had a weight
        return found
    level = plan.quality.level
    if plan.lanes == 1:
        log_z, error = evidence.by_mean(state.fresh, level)
    else:
        log_z, error = evidence.by_bridge(state.fresh, state.visited, level, plan.lanes)
    shape = k_hat_of_largest(state.highest.ravel(), number)
    found |= {"log_evidence": log_z, "log_evidence_error": error, "k_hat": shape}
    return found | {"highest_weight": _highest(plan, state), "fresh_draws": float(number)}
