"""Chains from start to draws: whatever the sampler, the executor and the interruptions, a seed gives the same draws.

The work is cut into segments. A segment is a pure function of (state, generators, iteration), so that it can run in
this process, in a thread, in a spawned process or on a cluster; so that a checkpoint between two segments holds all
there is to know; and so that an interrupt loses at most the segment under way. How long a segment is, and how chains
are grouped, changes nothing in the draws: every chain has its own generator, spawned from the seed by its index.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, EquifinalError, SamplingError
from equifinal.posterior.posterior import Posterior
from equifinal.samplers import choice, registry
from equifinal.samplers.protocol import Kept, Task
from equifinal.samplers.running.checkpoint import Checkpoint, Saved
from equifinal.samplers.running.segment import Chunk, Segment, Tally, Work, advance, nothing_yet
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.samplers.settings import RunSettings

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

SEGMENT_SECONDS = 0.2  # long enough to hide the cost of handing work over, short enough for a lively progress bar
CHECKPOINT_SECONDS = 5.0


@dataclass(frozen=True, eq=False)
class Draws:
    """A finished or interrupted run; ``settings`` name the sampler that was chosen, ``notes`` tell why."""

    settings: RunSettings
    parameters: tuple[str, ...]
    theta: Array  # (chains, draws, parameters)
    chunk: Chunk
    tally: Tally
    warmup_seconds: float
    sampling_seconds: float
    interrupted: bool = False
    resumed_at: int | None = None
    notes: tuple[str, ...] = ()
    findings: Mapping[str, float] = field(default_factory=dict)  # what else the sampler has to say about the run

    @property
    def acceptance(self) -> Array:
        """Share of accepted proposals of each chain after warm-up."""
        return self.tally.accepted / np.maximum(1, self.tally.sampled)

    @property
    def counts(self) -> dict[str, int]:
        """What the sampler counted after warm-up, over all chains."""
        names = registry.sampler(self.settings.sampler).COUNTS
        return {name: int(number) for name, number in zip(names, self.tally.counts.sum(axis=0), strict=True)}


@dataclass(frozen=True)
class Update:
    """What a progress display is told after each segment."""

    iteration: int
    settings: RunSettings
    acceptance: float
    solves: int
    failures: int


def spawn_generators(seed: int, chains: int) -> list[np.random.Generator]:
    """Make a generator for each chain, by its index."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]


def run(
    posterior: Posterior,
    settings: RunSettings,
    *,
    fibre: Fibre | None = None,
    executor: Executor | None = None,
    progress: Callable[[Update], None] | None = None,
    checkpoint: str | Path | None = None,
    plan: Any = None,
    report: Callable[[str], None] = lambda text: None,
) -> Draws:
    """Run chains to their end, or until interrupted.

    Parameters
    ----------
    fibre
        The fibre of the model, for samplers that use it.
    executor
        Anything with ``submit`` that returns futures: threads, processes, a dask client. Left out, all chains advance
        together here, and their ODE solves share the machine's cores as threads.
    progress
        Called after every segment.
    checkpoint
        A file to save the run's state in from time to time. If it holds a run of this same posterior and these same
        settings, that run is resumed where it stopped; its draws end the same as if it had never stopped.
    plan
        The result of the sampler's ``prepare``, if that has been called already.
    report
        Called with what the preparation is doing.
    """
    if fibre is not None and not np.array_equal(fibre.table, posterior.table):
        raise SamplingError("the fibre was made for other parameters, or for other priors, than the posterior has")
    if fibre is None and (settings.sampler == registry.AUTO or settings.sampler_settings().needs_fibre):
        raise SamplingError(f"sampler '{settings.sampler}' needs to know the fibres of the model: give it a Fibre")
    store = Checkpoint(Path(checkpoint), _identity(posterior, settings, fibre)) if checkpoint else None
    saved = store.load() if store else None
    start = _restore(posterior, settings, fibre, saved) if saved else _begin(posterior, settings, fibre, plan, report)
    under_way = _Run(start, store)
    interrupted = False
    try:
        under_way.finish(executor, progress)
    except KeyboardInterrupt:
        interrupted = True
    under_way.save()  # also at the end: what follows may fail
    end, work = under_way.now, start.work
    chunk = lane_by_lane(Chunk.join(end.chunks, axis=1), work)
    chains, kept, d = chunk.position.shape
    theta = posterior.to_theta(chunk.position.reshape(-1, d)).reshape(chains, kept, d)
    draws = Kept(theta, chunk.log_likelihood)
    return Draws(
        settings=start.settings,
        parameters=posterior.parameters,
        theta=theta,
        chunk=chunk,
        tally=end.tally,
        warmup_seconds=end.warmup_seconds,
        sampling_seconds=end.sampling_seconds,
        interrupted=interrupted,
        resumed_at=saved.numbers["iteration"] if saved else None,
        notes=start.notes,
        findings=registry.sampler(work.sampler).examine(work.task, work.plan, end.state, draws) if kept else {},
    )


def lane_by_lane(chunk: Chunk, work: Work) -> Chunk:
    """Draws of one lane after those of another, so that neighbours are as much alike as successive iterations are."""
    kept = chunk.position.shape[1]
    iterations = work.task.warmup + work.thin * np.arange(1, kept + 1) - 1
    order = np.argsort(iterations % work.plan.lanes, kind="stable")
    return Chunk(*(part[:, order] for part in chunk))


def _identity(posterior: Posterior, settings: RunSettings, fibre: Fibre | None) -> str:
    """Describe what a checkpoint must agree with to be resumed: another version may draw differently."""
    parts = vars(settings) | {"options": settings.sampler_settings()}
    where = fibre.identity() if fibre else ""
    return f"equifinal {version('equifinal')}; {posterior.problem.fingerprint()}; {parts!r}; {where}"


class Snapshot(NamedTuple):
    """What changes from one segment to the next."""

    iteration: int
    state: Any
    rngs: list[np.random.Generator]
    tally: Tally
    chunks: tuple[Chunk, ...]
    warmup_seconds: float = 0.0
    sampling_seconds: float = 0.0


class Beginning(NamedTuple):
    """What does not: the settings with the sampler that was chosen, notes on it, and the work; and where it starts."""

    settings: RunSettings
    notes: tuple[str, ...]
    work: Work
    first: Snapshot


def _work(posterior: Posterior, settings: RunSettings, fibre: Fibre | None, plan: Any) -> Work:
    task = Task(posterior, fibre, settings.sampler_settings(), settings.warmup)
    return Work(settings.sampler, task, plan, settings.thin)


def _begin(
    posterior: Posterior, settings: RunSettings, fibre: Fibre | None, plan: Any, report: Callable[[str], None]
) -> Beginning:
    began = time.perf_counter()
    notes: tuple[str, ...] = ()
    if settings.sampler == registry.AUTO:
        chosen = choice.choose(posterior, settings, fibre, report)
        report(chosen.reason)
        settings, plan, notes = chosen.settings, chosen.plan, (chosen.reason,)
    sampler = registry.sampler(settings.sampler)
    if plan is None:
        plan = sampler.prepare(_work(posterior, settings, fibre, None).task, settings.seed, report)
        if plan.refusal:
            notes = (f"{settings.sampler}, as asked for, although {plan.refusal}",)
    work = _work(posterior, settings, fibre, plan)
    rngs = spawn_generators(settings.seed, settings.chains)
    start = sampler.init(work.task, plan, rngs)
    first = np.arange(settings.chains) == 0  # the plan is for all chains; the first is charged with it
    chunk, tally = nothing_yet(work, start.solves + plan.solves * first, start.failures + plan.failures * first)
    # finding the posterior is a part of the warm-up
    snapshot = Snapshot(0, start.state, rngs, tally, (chunk,), warmup_seconds=time.perf_counter() - began)
    return Beginning(settings, notes, work, snapshot)


def _restore(posterior: Posterior, settings: RunSettings, fibre: Fibre | None, saved: Saved) -> Beginning:
    numbers = dict(saved.numbers)
    name, notes = numbers.pop("sampler"), tuple(numbers.pop("notes"))
    settings = choice.settled(settings, name)
    sampler = registry.sampler(name)
    snapshot = Snapshot(
        state=saved.tuple_of(sampler.State, "state"),
        rngs=saved.generators(),
        tally=saved.tuple_of(Tally, "tally"),
        chunks=(saved.tuple_of(Chunk, "chunk"),),
        **numbers,
    )
    return Beginning(settings, notes, _work(posterior, settings, fibre, saved.tuple_of(sampler.Plan, "plan")), snapshot)


class _Run:
    """The mutable middle of `run`. ``now`` is replaced in one assignment, so an interrupt never finds it half new."""

    def __init__(self, start: Beginning, store: Checkpoint | None):
        self.start, self.store, self.now = start, store, start.first
        self.sent = SentOnce(start.work)
        self.unsaved = False

    def save(self) -> None:
        """Write a checkpoint, if there is a file for it."""
        if self.store is None:
            return
        now, start = self.now, self.start
        self.now = now = now._replace(chunks=(Chunk.join(now.chunks, axis=1),))
        try:
            self.store.save(
                tuples={"plan": start.work.plan, "state": now.state, "tally": now.tally, "chunk": now.chunks[0]},
                rngs=now.rngs,
                numbers={name: getattr(now, name) for name in ("iteration", "warmup_seconds", "sampling_seconds")}
                | {"sampler": start.work.sampler, "notes": start.notes},
            )
        except DataError as error:  # a full disk is no reason to lose what was drawn
            if not self.unsaved:
                warnings.warn(f"{error}; the run goes on, but could not be resumed", stacklevel=2)
            self.unsaved = True

    def finish(self, executor: Executor | None, progress: Callable[[Update], None] | None) -> None:
        """Go on to the last iteration. The clock decides how long segments are, which changes nothing in the draws."""
        pace = 10  # iterations per segment
        saved_at, save_cost = time.perf_counter(), 0.0
        warmup, iterations = self.start.settings.warmup, self.start.settings.iterations
        while self.now.iteration < iterations:
            # a segment never straddles the end of warm-up, so that the two phases are timed apart
            phase_end = warmup if self.now.iteration < warmup else iterations
            count = min(pace, phase_end - self.now.iteration)
            elapsed = self._advance(count, executor)
            pace = int(np.clip(count * SEGMENT_SECONDS / max(elapsed, 1e-6), max(1, count // 2), 2 * count + 1))
            if progress:
                progress(self._update())
            if self.store and time.perf_counter() - saved_at > max(CHECKPOINT_SECONDS, 20 * save_cost):
                began = time.perf_counter()
                self.save()
                saved_at = time.perf_counter()
                save_cost = saved_at - began

    def _advance(self, count: int, executor: Executor | None) -> float:
        now = self.now
        began = time.perf_counter()
        if executor is None:
            segment = advance(self.sent, now.state, now.rngs, now.iteration, count)
        else:
            segment = self._advance_apart(count, executor)
        elapsed = time.perf_counter() - began
        warming = now.iteration < self.start.settings.warmup
        self.now = Snapshot(
            iteration=now.iteration + count,
            state=segment.state,
            rngs=segment.rngs,
            tally=now.tally.plus(segment.tally),
            chunks=(*now.chunks, segment.chunk),
            warmup_seconds=now.warmup_seconds + elapsed * warming,
            sampling_seconds=now.sampling_seconds + elapsed * (not warming),
        )
        return elapsed

    def _advance_apart(self, count: int, executor: Executor) -> Segment:
        """Make each chain its own task."""
        now = self.now
        tasks = []
        try:
            for i, rng in enumerate(now.rngs):
                own = type(now.state)(*(part[i : i + 1] for part in now.state))
                tasks.append(executor.submit(advance, self.sent, own, [rng], now.iteration, count))
            parts: Sequence[Segment] = [task.result() for task in tasks]
        except (KeyboardInterrupt, EquifinalError):
            raise
        except Exception as error:
            for task in tasks:
                task.cancel()
            self.save()
            raise SamplingError(f"a worker failed: {type(error).__name__}: {error}") from error
        state = registry.sampler(self.start.work.sampler).join([p.state for p in parts])
        tally = Tally(*(np.concatenate(pieces) for pieces in zip(*(p.tally for p in parts), strict=True)))
        return Segment(state, [p.rngs[0] for p in parts], Chunk.join([p.chunk for p in parts], axis=0), tally)

    def _update(self) -> Update:
        now = self.now
        sampled = int(now.tally.sampled.sum())
        share = float(now.tally.accepted.sum()) / sampled if sampled else float("nan")
        solves, failures = int(now.tally.solves.sum()), int(now.tally.failures.sum())
        return Update(now.iteration, self.start.settings, share, solves, failures)
