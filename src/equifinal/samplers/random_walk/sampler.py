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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError
from equifinal.machine.compiled import compiled
from equifinal.posterior.posterior import Posterior
from equifinal.samplers import root_swap

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

COUNTS = ("swapped", "unresolved_roots")
SEARCHES = False  # it starts from prior draws, as a baseline does
WARMUP = 5000


@dataclass(frozen=True)
class Settings:
    """Options of the random walk.

    Attributes
    ----------
    covariance
        A fixed proposal covariance in sampling coordinates: one variance for all, one a parameter, or a matrix. Left
        out, it is learned in warm-up.
    target
        The acceptance that warm-up aims at.
    swap
        Whether to analyse the model for root swaps; a fibre that is given is used in any case.
    """

    covariance: Any = None
    target: float = 0.27
    swap: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.swap, bool):
            raise DataError(f"random-walk option 'swap' must be true or false, not {self.swap!r}")
        if not isinstance(self.target, (int, float)) or not 0 < self.target < 1:
            raise DataError(f"random-walk option 'target' must lie between 0 and 1, not {self.target!r}")
        if isinstance(self.covariance, np.ndarray):  # plain lists print in full
            object.__setattr__(self, "covariance", self.covariance.tolist())

    @property
    def needs_fibre(self) -> bool:
        return self.swap

    def factor(self, dimension: int) -> Array | None:
        """The Cholesky factor of the fixed covariance, or ``None``."""
        if self.covariance is None:
            return None
        try:
            given = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            raise DataError("random-walk option 'covariance' must be a number, a list of numbers or a matrix") from None
        if given.ndim < 2:
            if given.size not in (1, dimension):
                raise DataError(f"random-walk option 'covariance' has {given.size} numbers for {dimension} parameters")
            given = np.diag(np.broadcast_to(given, dimension))
        if given.shape != (dimension, dimension):
            raise DataError(f"random-walk option 'covariance' must be {dimension} by {dimension}, not {given.shape}")
        if not np.isfinite(given).all() or not np.array_equal(given, given.T):
            raise DataError("random-walk option 'covariance' must be finite and symmetric")
        try:
            return np.linalg.cholesky(given)
        except np.linalg.LinAlgError:
            raise DataError("random-walk option 'covariance' must be positive definite") from None


class State(NamedTuple):
    """Where each chain is, and what its warm-up has learned; the first axis of every array is the chain."""

    position: Array
    log_prior: Array
    log_likelihood: Array
    factor: Array  # proposals are log_scale and this Cholesky factor applied to normals
    log_scale: Array
    mean: Array
    covariance: Array


class Info(NamedTuple):
    """What happened in one step, a number a chain."""

    accepted: NDArray[np.bool_]
    acceptance: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]
    counts: NDArray[np.int64]  # a column for each of `COUNTS`


def init(posterior: Posterior, positions: Array, settings: Settings, fibre: Fibre | None = None) -> State:
    """Chains at the given positions, with a first guess of the proposal from the prior."""
    found = posterior.evaluate(positions)
    chains, d = positions.shape
    fixed = settings.factor(d)
    spread = np.std(posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 1000)), axis=0)
    spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    factor = np.diag(spread) if fixed is None else fixed
    return State(
        position=np.array(positions),
        log_prior=found.log_prior,
        log_likelihood=found.log_likelihood,
        factor=np.tile(factor, (chains, 1, 1)),
        log_scale=np.full(chains, np.log(2.38 / np.sqrt(d)) if fixed is None else 0.0),
        mean=np.array(positions),
        covariance=np.tile(np.diag(spread**2), (chains, 1, 1)),
    )


def step(
    posterior: Posterior,
    state: State,
    rngs: Sequence[np.random.Generator],
    settings: Settings,
    iteration: int,
    warmup: int,
    fibre: Fibre | None = None,
) -> tuple[State, Info]:
    """One Metropolis step of every chain, and a swap of roots; adapts while ``iteration < warmup``."""
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
    return moved, Info(accepted, acceptance, found.solves, found.failures, counts)


FACTOR_EVERY = 25  # iterations between two Cholesky factorisations


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


def factorised(covariance: Array, fallback: Array) -> Array:
    d = covariance.shape[0]
    if d == 0:
        return fallback
    try:
        return np.linalg.cholesky(covariance + (1e-10 * np.trace(covariance) / d + 1e-14) * np.eye(d))
    except np.linalg.LinAlgError:
        return fallback


# Explicit loops, because the order of sums in array products may depend on how many chains there are.


@compiled
def propose(position: Array, factor: Array, log_scale: Array, normals: Array) -> Array:
    proposal = position.copy()
    for i in range(position.shape[0]):
        scale = np.exp(log_scale[i])
        for j in range(position.shape[1]):
            total = 0.0
            for k in range(j + 1):
                total += factor[i, j, k] * normals[i, k]
            proposal[i, j] += scale * total
    return proposal


@compiled
def update_moments(mean: Array, covariance: Array, position: Array, weight: float) -> tuple[Array, Array]:
    new_mean, new_covariance = mean.copy(), covariance.copy()
    d = mean.shape[1]
    for i in range(mean.shape[0]):
        for j in range(d):
            new_mean[i, j] += weight * (position[i, j] - mean[i, j])
        for j in range(d):
            for k in range(d):
                product = (position[i, j] - mean[i, j]) * (position[i, k] - mean[i, k])
                new_covariance[i, j, k] += weight * (product - covariance[i, j, k])
    return new_mean, new_covariance
