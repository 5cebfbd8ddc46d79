r"""The geometric sampler: along fibres by RATTLE, which costs no ODE solve, and across them by Metropolis.

All parameters on a fibre {u : xi(u) = c} have the same likelihood, so the posterior given c is the prior given c: the
density p(u)/J(u) with respect to Hausdorff measure, J = sqrt(det(Dxi Dxi^T)). An iteration of ``kernel="separate"`` is

1. a transition: u' ~ N(u, D^+ Sigma D^+T + s_T^2 Pi_T), with D the Jacobian of h(xi(u)) and Sigma a covariance of h(c)
   learned in warm-up; accepted with pi(u') q(u|u') / (pi(u) q(u'|u)). q is not symmetric, for D moves with u, and as
   the determinant of its covariance is proportional to J(u)^-2, log q(u'|u) contains + log J(u);
2. several moves along the fibre (see `rattle`), each accepted with
   [p(u_M)/J(u_M)] / [p(u)/J(u)] exp(|p|^2/2 - |p_M|^2/2);
3. where combinations leave several roots, a swap of roots (see `root_swap`).

Only the transition needs the likelihood. Each of the three leaves the posterior invariant.

``kernel="composite"`` makes one proposal of a move along the fibre and a transition, in either order with probability
1/2, and accepts it as a whole: the two orders are each other's reverse, and

    along u -> w, across w -> u':  alpha = min(1, pi(u') q(w|u') J(u) N(p') / (pi(u) q(u'|w) J(w) N(p)))
    across u -> w, along w -> u':  alpha = min(1, pi(u') q(u|w) J(w) N(p') / (pi(u) q(w|u) J(u') N(p))).

Chains begin where `search` brought them from prior draws, with Sigma from a Gaussian fitted there. In warm-up only, the
size and number of RATTLE steps, Sigma and its scale are adapted.

Everything is computed in v = u/s, with s the prior's spread, so that coordinates are comparable. h(c) = asinh(c/c_0) is
logarithmic for large |c|; where a combination is the parameter k itself, it is the coordinate u_k.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.samplers import root_swap
from equifinal.samplers.adaptation import FACTOR_EVERY, factorised, update_moments
from equifinal.samplers.geometric import loops, rattle
from equifinal.samplers.geometric.loops import Transition, Weights
from equifinal.samplers.geometric.scaled_fibre import equipment, scaled_fibre
from equifinal.samplers.geometric.settings import WARMUP, Settings
from equifinal.samplers.protocol import (
    Info,
    Init,
    NoPlan,
    RunBlock,
    Start,
    Task,
    concatenated,
    no_findings,
    no_plan,
    no_review,
    steps_in_a_block,
)
from equifinal.samplers.searching.climbing import search
from equifinal.samplers.searching.first_covariance import first_covariance
from equifinal.samplers.searching.starts import starting

__all__ = ["COUNTS", "WARMUP", "Plan", "Settings", "State", "examine", "init", "join", "prepare", "review", "run_block"]

Array = NDArray[np.float64]

COUNTS = (
    *(f"fibre_{status.name.lower()}" for status in rattle.Status),
    *("fibre_accepted", "transition_undefined", "swapped", "unresolved_roots"),
)
WEIGHTS = Weights()
FAILURES = 0.05  # share of moves along the fibre that may fail for the size of their steps


class State(NamedTuple):
    """Where each chain is, and what its warm-up has learned; the first axis of every array is the chain."""

    position: Annotated[Array, "chains d"]
    log_prior: Annotated[Array, "chains"]
    log_likelihood: Annotated[Array, "chains"]
    log_step: Annotated[Array, "chains"]  # size of a RATTLE step
    log_length: Annotated[Array, "chains"]  # of a whole move along the fibre
    factor: Annotated[Array, "chains q q"]  # Cholesky factor of the covariance of h(c)
    log_scale: Annotated[Array, "chains"]  # of transitions
    log_tangent: Annotated[Array, "chains"]  # sd of transitions along the fibre, before log_scale
    mean: Annotated[Array, "chains q"]  # of h(c)
    covariance: Annotated[Array, "chains q q"]


Plan = NoPlan
prepare = no_plan
review = no_review
examine = no_findings
join = concatenated


def _transition(state: State, settings: Settings) -> Transition:
    if settings.transition == "learned":
        return Transition(True, state.factor, state.log_scale, state.log_scale + state.log_tangent)
    sds = (np.full(len(state.factor), math.log(sd)) for sd in (settings.normal_sd, settings.tangent_sd))
    return Transition(False, state.factor, *sds)


def _steps(state: State, settings: Settings) -> tuple[Array, NDArray[np.int64]]:
    """Size and number of RATTLE steps of each chain."""
    eps = np.exp(np.minimum(state.log_step, state.log_length))
    if settings.steps is None:
        return eps, np.clip(np.rint(np.exp(state.log_length) / eps), 1, settings.max_steps).astype(np.int64)
    return eps, np.full(len(eps), settings.steps, np.int64)


def begin(task: Task, positions: Array) -> Start:
    """Put chains at the given positions, with a first guess of the transitions from where they are."""
    posterior, settings, fibre = task.posterior, task.settings, task.own_fibre
    if fibre.dimension == 0:
        how = "transitions and swaps of roots" if fibre.chart.degree > 1 else "transitions"
        warnings.warn(
            f"there is nothing to move along, since every parameter{' up to swaps' if fibre.chart.degree > 1 else ''} "
            f"is a combination of its own: the geometric sampler makes {how} only",
            stacklevel=2,
        )
    found = posterior.evaluate(positions)
    chains, q = len(positions), fibre.rank
    widest = np.diag(scaled_fibre(fibre, settings.scaled).spread)
    size = 0.25 if settings.step_size is None else settings.step_size
    length = size * (4 if settings.steps is None else settings.steps)
    state = State(
        position=np.array(positions),
        log_prior=found.log_prior,
        log_likelihood=found.log_likelihood,
        log_step=np.full(chains, math.log(size)),
        log_length=np.full(chains, math.log(length)),
        factor=np.tile(widest, (chains, 1, 1)),
        log_scale=np.full(chains, math.log(2.38 / math.sqrt(max(q, 1)))),
        log_tangent=np.zeros(chains),
        mean=np.zeros((chains, q)),
        covariance=np.tile(widest**2, (chains, 1, 1)),
    )
    if settings.transition == "paper" or q == 0:
        return Start(state, found.solves, found.failures)
    covariance = first_covariance(posterior, positions, fibre)[:, :q, :q]
    state = state._replace(covariance=covariance, factor=np.stack([factorised(s, widest) for s in covariance]))
    values, sizes = _locate(state, settings, fibre)
    state = state._replace(mean=values, log_tangent=np.where(np.isfinite(sizes), sizes, 0.0))
    return Start(state, found.solves + len(posterior.likelihoods), found.failures)


def _locate(state: State, settings: Settings, fibre: Fibre) -> tuple[Array, Array]:
    chains = len(state.position)
    values, sizes = np.zeros((chains, fibre.rank)), np.zeros(chains)
    loops.locate(*equipment(fibre, settings.scaled, False), _transition(state, settings), state.position, values, sizes)
    return values, sizes


def step(task: Task, state: State, rngs: Sequence[np.random.Generator], iteration: int) -> tuple[State, Info]:
    """Make one iteration of every chain; adapt during warm-up. What is accepted or not is the transition."""
    settings, fibre = task.settings, task.own_fibre
    moves = 0 if fibre.dimension == 0 else 1 if settings.kernel == "composite" else settings.fibre_moves
    moved, info, along = _iterate(task, state, rngs, moves)
    if root_swap.due(fibre, iteration):
        swap = root_swap.swap(fibre, moved.position, moved.log_prior, rngs)
        moved = moved._replace(position=swap.position, log_prior=swap.log_prior)
        info.counts[:, loops.SWAPPED], info.counts[:, loops.UNRESOLVED] = swap.swapped, swap.unresolved
    if iteration < task.warmup:
        if moves:
            moved = _adapt_steps(moved, along, info.counts, settings, iteration)
        if settings.transition == "learned":
            moved = _adapt_transition(moved, info.acceptance, settings, iteration, fibre)
    return moved, info


def _iterate(task: Task, state: State, rngs: Sequence[np.random.Generator], moves: int) -> tuple[State, Info, Array]:
    """Make a transition and moves along the fibre, or both in one; the last result is the acceptance of the moves."""
    posterior, fibre, settings, _, _ = task
    assert fibre is not None
    chains, d = state.position.shape
    composite = settings.kernel == "composite" and moves > 0
    normals, uniforms = np.empty((moves + 1, chains, d)), np.empty((chains, 1 + 2 * moves))
    for i, rng in enumerate(rngs):  # a generator a chain: the draws do not depend on how chains are grouped
        normals[:, i] = rng.standard_normal((moves + 1, d))
        uniforms[i] = rng.random(1 + 2 * moves)
    tools, transition = equipment(fibre, settings.scaled, settings.force), _transition(state, settings)
    eps, steps = _steps(state, settings)
    proposal, log_ratio, along = np.empty_like(state.position), np.empty(chains), np.empty(chains)
    counts = np.zeros((chains, loops.COUNTS), np.int64)
    if composite:
        draws = (normals[0], normals[1], uniforms)
        result = (proposal, log_ratio)
        loops.compose(*tools, transition, WEIGHTS, state.position, *draws, eps, steps, result, along, counts)
    else:
        loops.transit(*tools, transition, WEIGHTS, state.position, normals[0], proposal, log_ratio, counts)
    found = posterior.evaluate(proposal)
    with np.errstate(invalid="ignore"):
        log_ratio += found.log_prior + found.log_likelihood - state.log_prior - state.log_likelihood
    acceptance = np.exp(np.minimum(0.0, np.where(np.isnan(log_ratio), -np.inf, log_ratio)))
    accepted = uniforms[:, 0] < acceptance
    position = np.where(accepted[:, None], proposal, state.position)
    prior = np.where(accepted, found.log_prior, state.log_prior)
    if composite:
        counts[:, loops.ACCEPTED] = accepted
    elif moves:
        loops.sweep(*tools, WEIGHTS, position, prior, eps, steps, normals, uniforms, along, counts)
    moved = state._replace(
        position=position,
        log_prior=prior,
        log_likelihood=np.where(accepted, found.log_likelihood, state.log_likelihood),
    )
    return moved, Info(acceptance, accepted, found.solves, found.failures, counts), along


# --- warm-up ---


def _gain(iteration: int) -> float:
    return 2.0 * (iteration + 1.0) ** -0.6


def _adapt_steps(state: State, along: Array, counts: NDArray[np.int64], settings: Settings, iteration: int) -> State:
    """Steps small enough that Newton's method finds its way there and back; as many as bring the target acceptance."""
    bad = [rattle.Status.NEWTON_FAILED, rattle.Status.NOT_REVERSIBLE, rattle.Status.NOT_FINITE]
    failed = counts[:, bad].sum(axis=1) / np.maximum(1, counts[:, : loops.STATUSES].sum(axis=1))
    log_step, log_length = state.log_step, state.log_length
    if settings.step_size is None:
        log_step = np.clip(log_step + 2 * _gain(iteration) * (FAILURES - failed), -20.0, 3.0)
    if settings.steps is None:
        log_length = log_length + _gain(iteration) * (along - settings.fibre_target)
        log_length = np.clip(log_length, -20.0, log_step + math.log(settings.max_steps))
    elif settings.step_size is None:  # so many steps, of whatever size brings the target acceptance
        log_step = np.minimum(log_step, state.log_step + _gain(iteration) * (along - settings.fibre_target))
        log_length = log_step + math.log(settings.steps)
    return state._replace(log_step=log_step, log_length=log_length)


def _adapt_transition(state: State, acceptance: Array, settings: Settings, iteration: int, fibre: Fibre) -> State:
    """The covariance of h(c) so far, with a scale for the target acceptance, as the random walk does it for u."""
    values, sizes = _locate(state, settings, fibre)
    weight = 4.0 / (iteration + 20.0)  # a mean over the later part; even a first guess a hundred times too wide fades
    mean, covariance = update_moments(state.mean, state.covariance, values, weight)
    log_scale = state.log_scale + _gain(iteration) * (acceptance - settings.transition_target)
    log_tangent = state.log_tangent + np.where(np.isfinite(sizes), weight * (sizes - state.log_tangent), 0.0)
    factor = state.factor
    if iteration >= 100 and iteration % FACTOR_EVERY == 0 and fibre.rank:
        factor = np.stack([factorised(c, old) for c, old in zip(covariance, state.factor, strict=True)])
    return state._replace(mean=mean, covariance=covariance, log_scale=log_scale, log_tangent=log_tangent, factor=factor)


init: Init = starting(search, begin)
run_block: RunBlock = steps_in_a_block(step)
