"""Iterations of the collapsed sampler: proposals of a batch made in one stroke, then accepted one after the other."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import SamplingError
from equifinal.machine.compiled import compiled
from equifinal.problem.prior import log_prior, to_theta
from equifinal.samplers.collapsed.plan import Plan
from equifinal.samplers.marginal.target import Numbers, Target
from equifinal.samplers.points.estimator import choose
from equifinal.samplers.points.law import Moments
from equifinal.samplers.protocol import Block
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal

Array = NDArray[np.float64]

COUNTS = pseudo_marginal.COUNTS
BATCH, BATCH_POINTS = 128, 200_000  # iterations of a chain whose proposals are made together, and their points
LOCAL_EVERY = 4  # iterations, where there are local steps
SHORTEST = 0.1  # local step beside the longest


class Points(NamedTuple):
    """U of some candidates (chains, candidates, ...): roots on the fibre, noise parameters, and weights of both."""

    theta: Array
    log_weight: Array
    noise: Array
    noise_log_weight: Array
    noise_log_likelihood: Array


class State(NamedTuple):
    """Where each chain is, and what it has added up; the first axis of every array is the chain."""

    position: Array
    log_prior: Array
    log_likelihood: Array
    h: Array  # coordinates of c, as in `unfolding`, without noise parameters that are integrated out
    log_ratio: Array  # log w
    theta: Array  # the roots of U
    log_weight: Array  # of the roots
    noise: Array  # the noise parameters of U
    noise_log_weight: Array
    noise_log_likelihood: Array  # at each of them
    key: NDArray[np.uint64]  # of the random numbers
    proposals: Array  # how many so far, the log of the sum of their weights, and of the squares
    log_sum: Array
    log_squares: Array
    stood: NDArray[np.int64]  # iterations at the present state, and at the most

    def points(self) -> Points:
        """Those of one candidate: where the chain is."""
        return Points(*(getattr(self, name)[:, None] for name in Points._fields))


class Drawn(NamedTuple):
    """What a chain shows of itself (chains, iterations, ...)."""

    position: Array
    log_prior: Array
    log_likelihood: Array


def batch_length(plan: Plan) -> int:
    """How many iterations a batch has: fewer where there are so many points on each fibre that memory matters."""
    return max(1, min(BATCH, BATCH_POINTS // plan.number))


class Randoms(NamedTuple):
    """Random numbers of some iterations (chains, iterations, ...)."""

    h: Array  # proposals
    normals: Array  # for local steps
    uniforms: Array  # for accepting, for theta, for the length of a local step, and for groups of noise parameters
    behind: Numbers  # estimates


def randoms(plan: Plan, state: State, target: Target, batch: int, first: int, last: int) -> Randoms:
    """Draw what iterations from first to last of a batch need, for each chain from its key and the batch's number."""
    drawn, behind, length = [], [], batch_length(plan)
    for key in state.key:
        rng = np.random.default_rng([int(key), batch])
        own = plan.mixture.numbers(rng, length)
        uniforms = rng.random((length, 3 + len(target.integral.groups)))
        behind.append([part[first:last] for part in target.numbers(rng, length)])
        h = plan.mixture.from_numbers(*(part[first:last] for part in own))
        drawn.append((h, own[2][first:last], uniforms[first:last]))
    h, normals, uniforms = _stacked(drawn)
    return Randoms(h, normals, uniforms, Numbers(*_stacked(behind)))


def _stacked(parts: Any) -> list[Array]:
    """A list of arrays for each chain, as one list of arrays."""
    return [np.ascontiguousarray(np.stack(part)) for part in zip(*parts, strict=True)]


class Batch:
    """Candidates of some iterations of all chains; the first is where the chain was before."""

    def __init__(self, target: Target, plan: Plan, state: State, drawn: Randoms):
        self.target, self.plan, self.drawn = target, plan, drawn
        chains, length = drawn.uniforms.shape[:2]
        self.chains, self.length, self.rows = chains, length, np.arange(chains)

        def room(first: Array) -> Array:
            return np.concatenate([first[:, None], np.empty((chains, length, *first.shape[1:]), first.dtype)], axis=1)

        self.h, self.log_ratio = room(state.h), room(state.log_ratio)
        self.points = Points(*(room(getattr(state, name)) for name in Points._fields))
        self.solves, self.failures = np.zeros((2, chains, length), np.int64)
        self.counts = np.zeros((chains, length, len(COUNTS)), np.int64)
        self.source = np.zeros((chains, length), np.int64)
        self.acceptance = np.zeros((chains, length))

    def run(self, first: int) -> NDArray[np.bool_]:
        """All of its iterations, of which the first has this number in its batch; which of them were jumps."""
        local = (np.arange(first, first + self.length) % LOCAL_EVERY == LOCAL_EVERY - 1) & self.plan.local.any()
        jumps = np.flatnonzero(~local)
        if len(jumps):
            self._fill(jumps, self.drawn.h[:, jumps])
        at = np.zeros(self.chains, np.int64)
        begin = 0
        for t in (*np.flatnonzero(local), self.length):
            _metropolis(self.log_ratio, self.drawn.uniforms, begin, t, at, self.source, self.acceptance)
            if t < self.length:
                self._step(t, at)
            begin = t + 1
        return ~local

    def _fill(self, at: NDArray[np.int64], h: Array) -> None:
        """Candidates h (chains, n, q) of iterations."""
        n, target = len(at), self.target

        def flat(values: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(values.reshape(self.chains * n, *values.shape[2:]))

        def shaped(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(self.chains, n, *values.shape[1:])

        moments = Moments(*(np.repeat(part, self.chains * n, axis=0) for part in self.plan.moments))
        made = target.estimate(flat(h), Numbers(*(flat(part[:, at]) for part in self.drawn.behind)), moments)
        log_q = shaped(target.coordinates.log_density(self.plan.mixture, flat(h)))
        found = made.found
        self.h[:, at + 1] = h
        with np.errstate(invalid="ignore"):
            ratio = shaped(made.log_target) - log_q
        self.log_ratio[:, at + 1] = np.where(np.isfinite(ratio), ratio, -np.inf)  # no target, or no proposal
        own = Points(found.theta, pseudo_marginal.on_branch(target.fibre, found, made.chosen), *made.integrated)
        for room, part in zip(self.points, own, strict=True):
            room[:, at + 1] = shaped(part)
        self.solves[:, at], self.failures[:, at] = shaped(made.solves), shaped(made.failures)
        for column, values in (
            (pseudo_marginal.POINTS_COUNT, np.full(self.chains * n, target.tool.number)),
            (pseudo_marginal.EMPTY, found.empty),
            (pseudo_marginal.ROOTS_COUNT, found.roots),
            (pseudo_marginal.UNRESOLVED, found.unresolved),
            (pseudo_marginal.IMPOSSIBLE, ~np.isfinite(found.log_p)),
            (pseudo_marginal.SAVED, len(target.posterior.likelihoods) - made.solves),
        ):
            self.counts[:, at, column] = shaped(values)

    def _step(self, t: int, at: NDArray[np.int64]) -> None:
        """A local step of iteration t from candidates ``at``, which are changed; accepted by t(x) = w q(x)."""
        here = self.h[self.rows, at]
        uniforms = self.drawn.uniforms[:, t]
        lengths = 2.38 / math.sqrt(max(1, here.shape[1])) * SHORTEST ** uniforms[:, 2]
        moves = np.sum(self.plan.local * self.drawn.normals[:, t, None, :], axis=2)
        there = here + lengths[:, None] * moves
        self._fill(np.array([t]), there[:, None])
        log_q = [self.plan.mixture.log_density(x) for x in (here, there)]
        with np.errstate(invalid="ignore"):
            change = self.log_ratio[:, t + 1] + log_q[1] - self.log_ratio[self.rows, at] - log_q[0]
            self.acceptance[:, t] = np.exp(np.minimum(0.0, np.where(np.isnan(change), -np.inf, change)))
        at[:] = np.where(uniforms[:, 0] < self.acceptance[:, t], t + 1, at)
        self.source[:, t] = at

    def block(self) -> Block:
        """What the iterations gave, theta drawn from the points of each."""
        uniforms = self.drawn.uniforms
        return Block(
            *drawn_from(
                self.target, self.points, self.source, np.ascontiguousarray(uniforms[..., 1]), uniforms[..., 3:]
            ),
            self.acceptance,
            self.source == np.arange(1, self.length + 1),
            self.solves,
            self.failures,
            self.counts,
        )


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
    made = Batch(target, plan, state, randoms(plan, state, target, batch, first, last))
    jumps = made.run(first)
    block = made.block()
    rows, end = made.rows, made.source[:, -1]
    log_ratio = np.ascontiguousarray(made.log_ratio[:, 1:][:, jumps])  # only these are draws of the proposal
    return state._replace(
        position=block.position[:, -1],
        log_prior=block.log_prior[:, -1],
        log_likelihood=block.log_likelihood[:, -1],
        h=made.h[rows, end],
        log_ratio=made.log_ratio[rows, end],
        **{name: part[rows, end] for name, part in made.points._asdict().items()},
        proposals=state.proposals + log_ratio.shape[1],
        log_sum=_added(state.log_sum, log_ratio),
        log_squares=_added(state.log_squares, 2 * log_ratio),
        stood=_stood(state.stood, block.accepted),
    ), block


@compiled
def _metropolis(log_ratio, uniforms, begin, end, at, source, acceptance):
    """Iterations from begin to end: which candidate each ends at, and the probability of its own. Changes ``at``."""
    for i in range(len(at)):
        now = at[i]
        for t in range(begin, end):
            change = log_ratio[i, t + 1] - log_ratio[i, now]
            acceptance[i, t] = math.exp(min(0.0, change)) if change > -np.inf else 0.0
            if uniforms[i, t, 0] < acceptance[i, t]:
                now = t + 1
            source[i, t] = now
        at[i] = now


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
