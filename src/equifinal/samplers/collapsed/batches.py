"""Iterations of the collapsed sampler: proposals of a batch made in one stroke, then accepted one after the other.

Fresh draws do not depend on where a chain is. Where a plan has only these, a chain is one lane, and a batch some
iterations of it. Steps do depend on it: then a chain has many lanes that take turns, iteration i being that of lane
i mod lanes, and a batch is one turn of all lanes. A chain is then a Markov chain in the product of its lanes.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.machine.compiled import compiled
from equifinal.problem.prior import log_prior, to_theta
from equifinal.samplers.collapsed.plan import Plan
from equifinal.samplers.marginal.target import Numbers, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals.evidence import BINS, counted
from equifinal.samplers.proposals.log_sums import choose
from equifinal.samplers.proposals.moves import FRESH, lengths, proposed
from equifinal.samplers.protocol import Block
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal

Array = NDArray[np.float64]

COUNTS = pseudo_marginal.COUNTS
BATCH, BATCH_POINTS = 128, 200_000  # iterations of a chain whose proposals are made together, and their points
HIGHEST = 512  # weights of each chain that are remembered, for the shape of their tail


class Points(NamedTuple):
    """U of some candidates (chains, candidates, ...): roots on the fibre, noise parameters, and weights of both."""

    theta: Array
    log_weight: Array
    noise: Array
    noise_log_weight: Array
    noise_log_likelihood: Array


class State(NamedTuple):
    """Where each chain is, and what it has added up; the first axis of every array is the chain.

    From ``h`` to ``noise_log_likelihood``, and in ``stood``, the second axis is the lane.
    """

    position: Annotated[Array, "chains d"]
    log_prior: Annotated[Array, "chains"]
    log_likelihood: Annotated[Array, "chains"]
    # coordinates of c, as in `unfolding`, without noise parameters that are integrated out
    h: Annotated[Array, "chains lanes m"]
    log_ratio: Annotated[Array, "chains lanes"]  # log w
    theta: Annotated[Array, "chains lanes roots d"]  # the roots of U
    log_weight: Annotated[Array, "chains lanes roots"]
    noise: Annotated[Array, "chains lanes points held"]  # the noise parameters of U
    noise_log_weight: Annotated[Array, "chains lanes groups points"]
    noise_log_likelihood: Annotated[Array, "chains lanes groups points"]  # at each of them
    key: Annotated[NDArray[np.uint64], "chains"]  # of the random numbers
    fresh: Annotated[Array, f"chains {BINS}"]  # counts of the log weights of fresh draws so far,
    visited: Annotated[Array, f"chains {BINS}"]  # and of those of states, as in `evidence`
    highest: Annotated[Array, f"chains {HIGHEST}"]  # log weights of fresh draws
    stood: Annotated[NDArray[np.int64], "chains lanes 2"]  # iterations at the present state, and at the most


class Drawn(NamedTuple):
    """What a chain shows of itself (chains, iterations, ...)."""

    position: Array
    log_prior: Array
    log_likelihood: Array


def batch_length(plan: Plan) -> int:
    """How many iterations a batch has: a turn of all lanes; of one lane so many that memory does not matter."""
    return plan.lanes if plan.lanes > 1 else max(1, min(BATCH, BATCH_POINTS // plan.number))


class Randoms(NamedTuple):
    """Random numbers of some iterations (chains, iterations, ...)."""

    rho: Array  # lengths of moves
    moves: tuple[Array, ...]  # numbers behind them
    uniforms: Array  # for accepting, for theta, and for groups of noise parameters
    behind: Numbers  # estimates


def randoms(plan: Plan, state: State, target: Target, batch: int, first: int, last: int) -> Randoms:
    """Draw what iterations from first to last of a batch need, for each chain from its key and the batch's number."""
    drawn, behind, length = [], [], batch_length(plan)
    for key in state.key:
        rng = np.random.default_rng([int(key), batch])
        own = plan.mixture.numbers(rng, length)
        rho = lengths(plan.shares, rng.random(length))
        uniforms = rng.random((length, 2 + len(target.integral.groups)))
        behind.append([part[first:last] for part in target.numbers(rng, length)])
        drawn.append([part[first:last] for part in (rho, *own, uniforms)])
    rho, *moves, uniforms = _stacked(drawn)
    return Randoms(rho, tuple(moves), uniforms, Numbers(*_stacked(behind)))


def _stacked(parts: Any) -> list[Array]:
    """A list of arrays for each chain, as one list of arrays."""
    return [np.ascontiguousarray(np.stack(part)) for part in zip(*parts, strict=True)]


class Batch:
    """Candidates of some iterations, in rows (chains times lanes); the first of a row is where that was before."""

    target: Target
    plan: Plan
    lanes: slice
    chains: int
    rows: int
    drawn: Randoms
    h: Array
    log_ratio: Array
    points: Points
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]
    counts: NDArray[np.int64]
    source: NDArray[np.int64]
    acceptance: Array

    def __init__(self, target: Target, plan: Plan, state: State, drawn: Randoms, lanes: slice):
        self.target, self.plan, self.lanes = target, plan, lanes
        self.chains = len(state.key)
        self.length = 1 if plan.lanes > 1 else drawn.rho.shape[1]
        rows = self.rows = drawn.rho.size // self.length

        def in_rows(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(rows, self.length, *values.shape[2:])

        self.drawn = Randoms(
            in_rows(drawn.rho),
            tuple(in_rows(part) for part in drawn.moves),
            in_rows(drawn.uniforms),
            Numbers(*(in_rows(part) for part in drawn.behind)),
        )

        def room(before: Array) -> Array:
            own = before[:, lanes].reshape(rows, 1, *before.shape[2:])
            return np.concatenate([own, np.empty((rows, self.length, *before.shape[2:]), before.dtype)], axis=1)

        self.h, self.log_ratio = room(state.h), room(state.log_ratio)
        self.points = Points(*(room(getattr(state, name)) for name in Points._fields))
        self.solves, self.failures = np.zeros((2, rows, self.length), np.int64)
        self.counts = np.zeros((rows, self.length, len(COUNTS)), np.int64)
        self.source = np.zeros((rows, self.length), np.int64)
        self.acceptance = np.zeros((rows, self.length))
        self._run()

    def _run(self) -> None:
        numbers = tuple(_flat(part) for part in self.drawn.moves)
        if self.plan.lanes > 1:
            h = proposed(self.plan.mixture, self.h[:, 0], self.drawn.rho[:, 0], numbers)
        else:
            h = self.plan.mixture.from_numbers(*numbers)
        self._fill(h)
        _metropolis(self.log_ratio, self.drawn.uniforms, self.source, self.acceptance)

    def _fill(self, h: Array) -> None:
        """Estimate candidates h (rows times length, q)."""
        target = self.target

        def shaped(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(self.rows, self.length, *values.shape[1:])

        moments = Moments(*(np.repeat(part, len(h), axis=0) for part in self.plan.moments))
        made = target.estimate(h, Numbers(*(_flat(part) for part in self.drawn.behind)), moments)
        found = made.found
        self.h[:, 1:] = shaped(h)
        with np.errstate(invalid="ignore"):
            ratio = made.log_target - target.coordinates.log_density(self.plan.mixture, h)
        self.log_ratio[:, 1:] = shaped(np.where(np.isfinite(ratio), ratio, -np.inf))  # no target, or no proposal
        own = Points(found.theta, pseudo_marginal.on_branch(target.fibre, found, made.chosen), *made.integrated)
        for room, part in zip(self.points, own, strict=True):
            room[:, 1:] = shaped(part)
        self.solves, self.failures = shaped(made.solves), shaped(made.failures)
        for column, values in (
            (pseudo_marginal.POINTS_COUNT, np.full(len(h), target.tool.number)),
            (pseudo_marginal.EMPTY, found.empty),
            (pseudo_marginal.ROOTS_COUNT, found.roots),
            (pseudo_marginal.UNRESOLVED, found.unresolved),
            (pseudo_marginal.IMPOSSIBLE, ~np.isfinite(found.log_p)),
            (pseudo_marginal.SAVED, len(target.posterior.likelihoods) - made.solves),
        ):
            self.counts[..., column] = shaped(values)

    def block(self) -> Block:
        """What the iterations gave, theta drawn from the points of each."""
        uniforms = self.drawn.uniforms
        drawn = drawn_from(
            self.target, self.points, self.source, np.ascontiguousarray(uniforms[..., 1]), uniforms[..., 2:]
        )
        accepted = self.source == np.arange(1, self.length + 1)
        parts = (*drawn, self.acceptance, accepted, self.solves, self.failures, self.counts)
        return Block(*(self._by_chain(part) for part in parts))

    def _by_chain(self, values: NDArray[Any]) -> NDArray[Any]:
        """(rows, length, ...) as (chains, iterations, ...)."""
        return values.reshape(self.chains, values.shape[0] * values.shape[1] // self.chains, *values.shape[2:])

    def end(self, state: State, block: Block) -> State:
        """Where all of this leaves the chains."""
        rows, last = np.arange(self.rows), self.source[:, -1]

        def put(before: NDArray[Any], values: NDArray[Any]) -> Any:
            after = before.copy()
            after[:, self.lanes] = values[rows, last].reshape(after[:, self.lanes].shape)
            return after

        fresh = self._by_chain(self.drawn.rho) == FRESH  # only these are draws of the proposal
        drawn = np.where(fresh, self._by_chain(self.log_ratio[:, 1:]), -np.inf)
        level = self.plan.quality.level
        stood = state.stood.copy()
        own = stood[:, self.lanes].reshape(self.rows, 2)
        stood[:, self.lanes] = _stood(own, block.accepted.reshape(self.rows, -1)).reshape(self.chains, -1, 2)
        return state._replace(
            position=block.position[:, -1],
            log_prior=block.log_prior[:, -1],
            log_likelihood=block.log_likelihood[:, -1],
            h=put(state.h, self.h),
            log_ratio=put(state.log_ratio, self.log_ratio),
            **{name: put(getattr(state, name), part) for name, part in self.points._asdict().items()},
            fresh=counted(state.fresh, np.where(fresh, drawn, np.nan), level),
            visited=counted(state.visited, self._by_chain(self.log_ratio[rows[:, None], self.source]), level),
            highest=-np.sort(-np.concatenate([state.highest, drawn], axis=1), axis=1)[:, :HIGHEST],
            stood=stood,
        )


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(values.reshape(values.shape[0] * values.shape[1], *values.shape[2:]))


def drawn_from(target: Target, points: Points, source: NDArray[np.int64], for_root: Array, for_noise: Array) -> Drawn:
    """theta, chosen by uniforms from the points of the candidate at which each iteration ended."""
    rows = np.arange(len(source))[:, None]
    theta = points.theta[rows, source, _chosen(points.log_weight, source, for_root)]
    log_likelihood = np.zeros(source.shape)
    for g, group in enumerate(target.integral.groups):
        weight = np.ascontiguousarray(points.noise_log_weight[:, :, g])
        own = _chosen(weight, source, np.ascontiguousarray(for_noise[..., g]))
        theta[..., target.integral.columns[group]] = points.noise[rows, source, own][..., group]
        log_likelihood += points.noise_log_likelihood[rows, source, g, own]
    fibre, d = target.fibre, theta.shape[2]
    position = fibre.to_coordinates(theta.reshape(-1, d))
    there, log_slope = to_theta(position, fibre.table)
    prior = log_prior(there, fibre.table) + log_slope
    return Drawn(position.reshape(theta.shape), prior.reshape(source.shape), log_likelihood)


def run_batch(target: Target, plan: Plan, state: State, batch: int, first: int, last: int) -> tuple[State, Block]:
    """Make the iterations from first to last of a batch."""
    if not np.array_equal(target.coordinates.replaced, plan.unfolded):
        raise SamplingError("the coordinates of the combinations are others than where the run began: start it again")
    lanes = slice(first, last) if plan.lanes > 1 else slice(0, 1)
    made = Batch(target, plan, state, randoms(plan, state, target, batch, first, last), lanes)
    block = made.block()
    return made.end(state, block), block


@compiled
def _metropolis(log_ratio, uniforms, source, acceptance):
    """Which candidate each iteration ends at, and the probability of its own."""
    rows, length = source.shape
    for i in range(rows):
        now = 0
        for t in range(length):
            change = log_ratio[i, t + 1] - log_ratio[i, now]
            acceptance[i, t] = math.exp(min(0.0, change)) if change > -np.inf else 0.0
            if uniforms[i, t, 0] < acceptance[i, t]:
                now = t + 1
            source[i, t] = now


@compiled
def _stood(stood, accepted):
    """How long each chain is where it is, and how long it was anywhere at the most."""
    chains, length = accepted.shape
    now = stood.copy()
    for i in range(chains):
        for t in range(length):
            now[i, 0] = 1 if accepted[i, t] else now[i, 0] + 1
            now[i, 1] = max(now[i, 0], now[i, 1])
    return now


@compiled
def _chosen(log_weight, source, uniforms):
    """A point of the state for each iteration, by weight."""
    chains, length = source.shape
    chosen = np.empty((chains, length), np.int64)
    for i in range(chains):
        for t in range(length):
            now = source[i, t]
            chosen[i, t] = choose(log_weight[i, now : now + 1], uniforms[i, t : t + 1])[0]
    return chosen
