"""Some iterations of some chains: a pure function of state, generators and iteration, wherever it runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.posterior.posterior import Posterior
from equifinal.samplers.running.parcel import Parcel
from equifinal.samplers.running.settings import RunSettings, sampler_module

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]


class Chunk(NamedTuple):
    """What some iterations of some chains gave. First axis the chain, second the draw."""

    position: Array
    log_prior: Array
    log_likelihood: Array
    acceptance: Array

    @staticmethod
    def join(chunks: Sequence[Chunk], axis: int) -> Chunk:
        return Chunk(*(np.concatenate(parts, axis=axis) for parts in zip(*chunks, strict=True)))


class Tally(NamedTuple):
    """A number a chain: ODE solves and failures, the search for a start included; accepted and all iterations after
    warm-up; solves before its end; and what else the sampler counts after it, a column a name."""

    solves: NDArray[np.int64]
    failures: NDArray[np.int64]
    accepted: NDArray[np.int64]
    sampled: NDArray[np.int64]
    warmup_solves: NDArray[np.int64]
    counts: NDArray[np.int64]

    def plus(self, other: Tally) -> Tally:
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Segment(NamedTuple):
    state: Any
    rngs: list[np.random.Generator]
    chunk: Chunk
    tally: Tally


def advance(
    posterior: Posterior,
    settings: RunSettings,
    state: Any,
    rngs: list[np.random.Generator],
    iteration: int,
    count: int,
    parcel: Parcel[Fibre | None],
) -> Segment:
    """Run ``count`` iterations from ``iteration`` on for all chains of ``state``."""
    sampler, options, fibre = sampler_module(settings.sampler), settings.sampler_settings(), parcel.content
    if hasattr(sampler, "run_block"):
        return _advance_block(posterior, settings, state, rngs, iteration, count, fibre)
    rngs = [copy.deepcopy(rng) for rng in rngs]  # an interrupted segment must leave no trace
    chains = len(rngs)
    kept: list[tuple[Any, Array]] = []
    solves, failures, accepted, sampled, warm = (np.zeros(chains, np.int64) for _ in range(5))
    counts = np.zeros((chains, len(sampler.COUNTS)), np.int64)
    for now in range(iteration, iteration + count):
        state, info = sampler.step(posterior, state, rngs, options, now, settings.warmup, fibre)
        solves += info.solves
        failures += info.failures
        if now < settings.warmup:
            warm += info.solves
            continue
        accepted += info.accepted
        counts += info.counts
        sampled += 1
        if (now - settings.warmup + 1) % settings.thin == 0:
            kept.append((state, info.acceptance))
    d = posterior.dimension
    chunk = Chunk(
        position=np.stack([s.position for s, _ in kept], axis=1) if kept else np.empty((chains, 0, d)),
        log_prior=np.stack([s.log_prior for s, _ in kept], axis=1) if kept else np.empty((chains, 0)),
        log_likelihood=np.stack([s.log_likelihood for s, _ in kept], axis=1) if kept else np.empty((chains, 0)),
        acceptance=np.stack([a for _, a in kept], axis=1) if kept else np.empty((chains, 0)),
    )
    return Segment(state, rngs, chunk, Tally(solves, failures, accepted, sampled, warm, counts))


def _advance_block(
    posterior: Posterior,
    settings: RunSettings,
    state: Any,
    rngs: list[np.random.Generator],
    iteration: int,
    count: int,
    fibre: Fibre | None,
) -> Segment:
    """The same for samplers that make many iterations in one stroke."""
    sampler, chains, d = sampler_module(settings.sampler), len(rngs), posterior.dimension
    nothing = np.zeros((chains, 0))
    chunk = Chunk(np.empty((chains, 0, d)), nothing, nothing, nothing)
    zeros = np.zeros(chains, np.int64)
    if count == 0:
        counts = np.zeros((chains, len(sampler.COUNTS)), np.int64)
        return Segment(state, rngs, chunk, Tally(zeros, zeros, zeros, zeros, zeros, counts))
    state, block = sampler.run_block(posterior, state, settings.sampler_settings(), iteration, count, fibre)
    now = np.arange(iteration, iteration + count)
    after = now >= settings.warmup
    kept = after & ((now - settings.warmup + 1) % settings.thin == 0)
    tally = Tally(
        solves=block.solves.sum(axis=1),
        failures=block.failures.sum(axis=1),
        accepted=block.accepted[:, after].sum(axis=1),
        sampled=np.full(chains, int(after.sum())),
        warmup_solves=block.solves[:, ~after].sum(axis=1),
        counts=block.counts[:, after].sum(axis=1),
    )
    chunk = Chunk(
        *(part[:, kept] for part in (block.position, block.log_prior, block.log_likelihood, block.acceptance))
    )
    return Segment(state, rngs, chunk, tally)
