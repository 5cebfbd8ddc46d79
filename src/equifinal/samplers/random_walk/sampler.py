r"""Random-walk Metropolis in sampling coordinates: the baseline.

From u propose u' = u + s L z with z standard normal, and accept with probability

    alpha = min(1, pi(u') / pi(u)).

L L^T is a fixed covariance, or it is learned during warm-up only: the covariance of the chain so far (Haario, Saksman
and Tamminen 2001) with the scale s moved towards a target acceptance by Robbins-Monro steps (Andrieu and Thoms 2008).
Nothing is adapted after warm-up, so that the draws that are kept come from one Markov kernel that leaves the posterior
invariant.

Where the identifiable combinations leave several roots, a walk sits on one of them for long. Given the fibre, each step
is followed by a swap of roots (see `root_swap`), which costs no ODE solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers import root_swap
from equifinal.samplers.adaptation import FACTOR_EVERY, factorised, propose, update_moments
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
from equifinal.samplers.random_walk.settings import WARMUP, Settings
from equifinal.samplers.searching.climbing import prior_start
from equifinal.samplers.searching.starts import starting

__all__ = ["COUNTS", "WARMUP", "Plan", "Settings", "State", "examine", "init", "join", "prepare", "review", "run_block"]

Array = NDArray[np.float64]

COUNTS = ("swapped", "unresolved_roots")


class State(NamedTuple):
    """Where each chain is, and what its warm-up has learned; the first axis of every array is the chain."""

    position: Annotated[Array, "chains d"]
    log_prior: Annotated[Array, "chains"]
    log_likelihood: Annotated[Array, "chains"]
    factor: Annotated[Array, "chains d d"]  # proposals are log_scale and this Cholesky factor applied to normals
    log_scale: Annotated[Array, "chains"]
    mean: Annotated[Array, "chains d"]
    covariance: Annotated[Array, "chains d d"]


Plan = NoPlan
prepare = no_plan
review = no_review
examine = no_findings
join = concatenated


def begin(task: Task, positions: Array) -> Start:
    """Put chains at the given positions, with a first guess of the proposal from the prior."""
    posterior = task.posterior
    found = posterior.evaluate(positions)
    chains, d = positions.shape
    fixed = task.settings.factor(d)
    spread = np.std(posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 1000)), axis=0)
    spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    factor = np.diag(spread) if fixed is None else fixed
    state = State(
        position=np.array(positions),
        log_prior=found.log_prior,
        log_likelihood=found.log_likelihood,
        factor=np.tile(factor, (chains, 1, 1)),
        log_scale=np.full(chains, np.log(2.38 / np.sqrt(d)) if fixed is None else 0.0),
        mean=np.array(positions),
        covariance=np.tile(np.diag(spread**2), (chains, 1, 1)),
    )
    return Start(state, found.solves, found.failures)


def step(task: Task, state: State, rngs: Sequence[np.random.Generator], iteration: int) -> tuple[State, Info]:
    """Make one Metropolis step of every chain, and a swap of roots; adapt during warm-up."""
    posterior, fibre, settings, warmup, _ = task
    d = state.position.shape[1]
    normals = np.empty_like(state.position)
    uniforms = np.empty(len(rngs))
    for i, rng in enumerate(rngs):  # a generator a chain: the draws do not depend on how chains are grouped
        normals[i] = rng.standard_normal(d)
        uniforms[i] = rng.random()
    proposal = propose(state.position, state.factor, state.log_scale, normals)
    found = posterior.evaluate(proposal)
    with np.errstate(invalid="ignore"):
        log_ratio = found.log_prior + found.log_likelihood - state.log_prior - state.log_likelihood
        acceptance = np.exp(np.minimum(0.0, np.where(np.isnan(log_ratio), -np.inf, log_ratio)))
    accepted = uniforms < acceptance
    moved = state._replace(
        position=np.where(accepted[:, None], proposal, state.position),
        log_prior=np.where(accepted, found.log_prior, state.log_prior),
        log_likelihood=np.where(accepted, found.log_likelihood, state.log_likelihood),
    )
    counts = np.zeros((len(rngs), len(COUNTS)), np.int64)
    if fibre is not None and root_swap.due(fibre, iteration):
        swap = root_swap.swap(fibre, moved.position, moved.log_prior, rngs)
        moved = moved._replace(position=swap.position, log_prior=swap.log_prior)
        counts[:, 0], counts[:, 1] = swap.swapped, swap.unresolved
    if iteration < warmup and settings.covariance is None:
        moved = _adapt(moved, acceptance, settings, iteration)
    return moved, Info(acceptance, accepted, found.solves, found.failures, counts)


def _adapt(state: State, acceptance: Array, settings: Settings, iteration: int) -> State:
    # the weight of the newest point falls slowly, so that the way from the start is forgotten
    weight = (iteration + 2.0) ** -0.7
    log_scale = state.log_scale + (iteration + 1.0) ** -0.6 * (acceptance - settings.target) * 2.0
    mean, covariance = update_moments(state.mean, state.covariance, state.position, weight)
    factor = state.factor
    if iteration >= 100 and iteration % FACTOR_EVERY == 0:
        factor = np.stack([factorised(c, old) for c, old in zip(covariance, state.factor, strict=True)])
        # keep the size of the proposals continuous when their shape first comes from the chain
        if iteration == 100:
            old = np.log(np.diagonal(state.factor, axis1=1, axis2=2)).mean(axis=1)
            log_scale = log_scale + old - np.log(np.diagonal(factor, axis1=1, axis2=2)).mean(axis=1)
    return state._replace(log_scale=log_scale, mean=mean, covariance=covariance, factor=factor)


init: Init = starting(prior_start, begin)  # from prior draws, as a baseline does
run_block: RunBlock = steps_in_a_block(step)
