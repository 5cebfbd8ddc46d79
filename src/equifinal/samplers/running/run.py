"""Chains from start to draws: whatever the sampler, the executor and the interruptions, a seed gives the same draws.

The work is cut into segments. A segment is a pure function of (state, generators, iteration), so that it can run in
this process, in a thread, in a spawned process or on a cluster; so that a checkpoint between two segments holds all
there is to know; and so that an interrupt loses at most the segment under way. How long a segment is, and how chains
are grouped, changes nothing in the draws: every chain has its own generator, spawned from the seed by its index.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, EquifinalError, SamplingError
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.running.checkpoint import Checkpoint, Saved
from equifinal.samplers.running.parcel import Parcel
from equifinal.samplers.running.segment import Chunk, Segment, Tally, advance
from equifinal.samplers.running.settings import RunSettings, sampler_module
from equifinal.samplers.searching.climbing import prior_start, search

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

SEGMENT_SECONDS = 0.2  # long enough to hide the cost of handing work over, short enough for a lively progress bar
CHECKPOINT_SECONDS = 5.0


@dataclass(frozen=True, eq=False)
class Draws:
    """A finished or interrupted run."""

    settings: RunSettings
    parameters: tuple[str, ...]
    theta: Array  # (chains, draws, parameters)
    chunk: Chunk
    tally: Tally
    warmup_seconds: float
    sampling_seconds: float
    interrupted: bool = False
    resumed_at: int | None = None
    findings: Mapping[str, float] = field(default_factory=dict)  # what else the sampler has to say about the run

    @property
    def acceptance(self) -> Array:
        """Share of accepted proposals of each chain after warm-up."""
        return self.tally.accepted / np.maximum(1, self.tally.sampled)

    @property
    def counts(self) -> dict[str, int]:
        """What the sampler counted after warm-up, over all chains."""
        names = sampler_module(self.settings.sampler).COUNTS
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
        The fibre of the model, for samplers that move along it or swap its roots.
    executor
        Anything with ``submit`` that returns futures: threads, processes, a dask client. Left out, all chains advance
        together here, and their ODE solves share the machine's cores as threads.
    progress
        Called after every segment.
    checkpoint
        A file to save the run's state in from time to time. If it holds a run of this same posterior and these same
        settings, that run is taken up where it stopped; its draws end the same as if it had never stopped.
    plan
        What the sampler's ``prepare`` has found, if it has been asked already.
    report
        Called with what the preparation is doing.
    """
    if fibre is not None and not np.array_equal(fibre.table, posterior.table):
        raise SamplingError("the fibre was made for other parameters, or for other priors, than the posterior has")
    store = Checkpoint(Path(checkpoint), _identity(posterior, settings, fibre)) if checkpoint else None
    saved = store.load() if store else None
    start = _restore(settings, saved) if saved else _begin(posterior, settings, fibre, plan, report)
    under_way = _Run(posterior, settings, fibre, store, start)
    interrupted = False
    try:
        under_way.finish(executor, progress)
    except KeyboardInterrupt:
        interrupted = True
    under_way.save()  # also at the end: what follows may fail
    end = under_way.now
    chunk = Chunk.join(end.chunks, axis=1)
    chains, kept, d = chunk.position.shape
    theta = posterior.to_theta(chunk.position.reshape(-1, d)).reshape(chains, kept, d)
    examine = getattr(sampler_module(settings.sampler), "examine", None)
    findings = examine(end.state, theta, chunk, settings.sampler_settings(), fibre) if examine and kept else {}
    return Draws(
        settings=settings,
        parameters=posterior.parameters,
        theta=theta,
        chunk=chunk,
        tally=end.tally,
        warmup_seconds=end.warmup_seconds,
        sampling_seconds=end.sampling_seconds,
        interrupted=interrupted,
        resumed_at=saved.numbers["iteration"] if saved else None,
        findings=findings,
    )


def _identity(posterior: Posterior, settings: RunSettings, fibre: Fibre | None) -> str:
    """What a checkpoint must agree with to be taken up: another version may draw differently."""
    parts = vars(settings) | {"options": settings.sampler_settings()}
    where = fibre.identity() if fibre else ""
    return f"equifinal {version('equifinal')}; {posterior.problem.fingerprint()}; {parts!r}; {where}"


class Snapshot(NamedTuple):
    """Everything about a run between two segments."""

    iteration: int
    state: Any
    rngs: list[np.random.Generator]
    tally: Tally
    chunks: tuple[Chunk, ...]
    warmup_seconds: float = 0.0
    sampling_seconds: float = 0.0


def _begin(
    posterior: Posterior, settings: RunSettings, fibre: Fibre | None, plan: Any, report: Callable[[str], None]
) -> Snapshot:
    began = time.perf_counter() - (plan.seconds if plan else 0.0)
    rngs = spawn_generators(settings.seed, settings.chains)
    sampler, options = sampler_module(settings.sampler), settings.sampler_settings()
    if hasattr(sampler, "prepare"):  # once for all chains; the first of them is charged with it
        if plan is None:
            plan = sampler.prepare(posterior, options, fibre, settings.seed, report)
            if plan.refusal:
                warnings.warn(
                    f"{plan.refusal}: chains may stand still for long; sampler 'auto' chooses another one", stacklevel=2
                )
        first = np.arange(settings.chains) == 0
        state = sampler.init(posterior, plan, options, fibre, rngs)
        solves, failures = plan.solves * first, plan.failures * first
    else:
        find = search if sampler.SEARCHES else prior_start
        starts = [find(posterior, rng) for rng in rngs]
        state = sampler.init(posterior, np.stack([start.position for start in starts]), options, fibre)
        solves, failures = np.array([[start.solves, start.failures] for start in starts]).T
    nothing = advance(posterior, settings, state, rngs, 0, 0, Parcel(fibre))
    tally = nothing.tally._replace(solves=solves, failures=failures, warmup_solves=solves)
    # finding the posterior is a part of the warm-up
    return Snapshot(0, state, rngs, tally, (nothing.chunk,), warmup_seconds=time.perf_counter() - began)


def _restore(settings: RunSettings, saved: Saved) -> Snapshot:
    state = sampler_module(settings.sampler).State(**saved.group("state"))
    tally, chunk = Tally(**saved.group("tally")), Chunk(**saved.group("chunk"))
    return Snapshot(state=state, rngs=saved.generators(), tally=tally, chunks=(chunk,), **saved.numbers)


class _Run:
    """The mutable middle of `run`. ``now`` is replaced in one assignment, so an interrupt never finds it half new."""

    def __init__(
        self,
        posterior: Posterior,
        settings: RunSettings,
        fibre: Fibre | None,
        store: Checkpoint | None,
        start: Snapshot,
    ):
        self.posterior, self.settings, self.store = posterior, settings, store
        self.parcel = Parcel(fibre)
        self.now = start
        self.unsaved = False

    def save(self) -> None:
        if self.store is None:
            return
        now = self.now
        self.now = now = now._replace(chunks=(Chunk.join(now.chunks, axis=1),))
        try:
            self._save(self.store, now)
        except DataError as error:  # a full disk is no reason to lose what was drawn
            if not self.unsaved:
                warnings.warn(f"{error}; the run goes on, but could not be taken up again", stacklevel=2)
            self.unsaved = True

    @staticmethod
    def _save(store: Checkpoint, now: Snapshot) -> None:
        store.save(
            groups={"state": now.state._asdict(), "tally": now.tally._asdict(), "chunk": now.chunks[0]._asdict()},
            rngs=now.rngs,
            numbers={name: getattr(now, name) for name in ("iteration", "warmup_seconds", "sampling_seconds")},
        )

    def finish(self, executor: Executor | None, progress: Callable[[Update], None] | None) -> None:
        pace = 10  # iterations a segment, adjusted to the clock
        saved_at, save_cost = time.perf_counter(), 0.0
        warmup, iterations = self.settings.warmup, self.settings.iterations
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
            segment = advance(self.posterior, self.settings, now.state, now.rngs, now.iteration, count, self.parcel)
        else:
            segment = self._advance_apart(count, executor)
        elapsed = time.perf_counter() - began
        warming = now.iteration < self.settings.warmup
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
        """Each chain its own task."""
        now = self.now
        tasks = []
        try:
            for i, rng in enumerate(now.rngs):
                own = type(now.state)(*(part[i : i + 1] for part in now.state))
                work = (self.posterior, self.settings, own, [rng], now.iteration, count, self.parcel)
                tasks.append(executor.submit(advance, *work))
            parts = [task.result() for task in tasks]
        except (KeyboardInterrupt, EquifinalError):
            raise
        except Exception as error:
            for task in tasks:
                task.cancel()
            self.save()
            raise SamplingError(f"a worker failed: {type(error).__name__}: {error}") from error
        states = [p.state for p in parts]
        if hasattr(now.state, "alike"):
            states = now.state.alike(states)
        state = type(now.state)(*(np.concatenate(pieces) for pieces in zip(*states, strict=True)))
        tally = Tally(*(np.concatenate(pieces) for pieces in zip(*(p.tally for p in parts), strict=True)))
        return Segment(state, [p.rngs[0] for p in parts], Chunk.join([p.chunk for p in parts], axis=0), tally)

    def _update(self) -> Update:
        now = self.now
        sampled = int(now.tally.sampled.sum())
        share = float(now.tally.accepted.sum()) / sampled if sampled else float("nan")
        return Update(now.iteration, self.settings, share, int(now.tally.solves.sum()), int(now.tally.failures.sum()))
