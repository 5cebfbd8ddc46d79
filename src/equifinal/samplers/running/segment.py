"""Some iterations of some chains: a pure function of state, generators and iteration, wherever it runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers import registry
from equifinal.samplers.protocol import Task
from equifinal.samplers.running.sent_once import SentOnce

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Work(NamedTuple):
    """Everything about a run that does not change after its start."""

    sampler: str
    task: Task
    plan: Any
    thin: int


class Chunk(NamedTuple):
    """What some iterations of some chains gave. First axis the chain, second the draw."""

    position: Annotated[Array, "chains draws d"]
    log_prior: Annotated[Array, "chains draws"]
    log_likelihood: Annotated[Array, "chains draws"]
    acceptance: Annotated[Array, "chains draws"]

    @staticmethod
    def join(chunks: Sequence[Chunk], axis: int) -> Chunk:
        """Put chunks together: along axis 0 those of other chains, along axis 1 those that come later."""
        return Chunk(*(np.concatenate(parts, axis=axis) for parts in zip(*chunks, strict=True)))


class Tally(NamedTuple):
    """What was counted, one number for each chain.

    ODE solves and failures, those of the start included; accepted and all iterations after warm-up; solves before its
    end; and what else the sampler counts after it, a column for each name.
    """

    solves: Annotated[Integers, "chains"]
    failures: Annotated[Integers, "chains"]
    accepted: Annotated[Integers, "chains"]
    sampled: Annotated[Integers, "chains"]
    warmup_solves: Annotated[Integers, "chains"]
    counts: Annotated[Integers, "chains counts"]

    def plus(self, other: Tally) -> Tally:
        """Add what later iterations counted."""
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Segment(NamedTuple):
    """Where chains are after some iterations, and what these gave."""

    state: Any
    rngs: list[np.random.Generator]
    chunk: Chunk
    tally: Tally


def nothing_yet(work: Work, solves: Integers, failures: Integers) -> tuple[Chunk, Tally]:
    """Give the draws and the tally of chains that have only been started, at this cost."""
    chains, d = len(solves), work.task.posterior.dimension
    none = np.zeros((chains, 0))
    zeros = np.zeros(chains, np.int64)
    counts = np.zeros((chains, len(registry.sampler(work.sampler).COUNTS)), np.int64)
    return Chunk(np.zeros((chains, 0, d)), none, none, none), Tally(solves, failures, zeros, zeros, solves, counts)


def advance(
    sent: SentOnce[Work], state: Any, rngs: Sequence[np.random.Generator], iteration: int, count: int
) -> Segment:
    """Run ``count`` (at least one) iterations from ``iteration`` on for all chains of ``state``."""
    work = sent.content
    own = [copy.deepcopy(rng) for rng in rngs]  # an interrupted segment must leave no trace
    state, block = registry.sampler(work.sampler).run_block(work.task, work.plan, state, own, iteration, count)
    after = np.arange(iteration, iteration + count) - work.task.warmup
    sampled, kept = after >= 0, (after >= 0) & ((after + 1) % work.thin == 0)
    tally = Tally(
        solves=block.solves.sum(axis=1),
        failures=block.failures.sum(axis=1),
        accepted=block.accepted[:, sampled].sum(axis=1),
        sampled=np.full(len(own), int(sampled.sum())),
        warmup_solves=block.solves[:, ~sampled].sum(axis=1),
        counts=block.counts[:, sampled].sum(axis=1),
    )
    chunk = Chunk(*(getattr(block, name)[:, kept] for name in Chunk._fields))
    return Segment(state, own, chunk, tally)
