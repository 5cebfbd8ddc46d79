"""Chains from start to draws: whatever the sampler, the executor and the interruptions, a seed gives the same draws.

The work is cut into segments. A segment is a pure function of (state, generators, iteration), so that it can run in
this process, in a thread, in a spawned process or on a cluster; so that a checkpoint between two segments holds all
there is to know; and so that an interrupt loses at most the segment under way. How long a segment is, and how chains
are grouped, changes nothing in the draws: every chain has its own generator, spawned from the seed by its index.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
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
Integers = NDArray[np.int64]

FIRST_LOOK = 10_000  # iterations of each chain after which a run is first looked at; then after half as many more
MOST_KEPT = 20_000  # of each chain, where a run goes on until it has enough: then every second of them is dropped
RHAT_LIMIT = 1.01
EACH_LANE = 2  # effective draws, at least
ENDS = ("ess", "max_solves", "max_time")  # settings that tell only when a run ends
SAVED = ("iteration", "looked", "warmup_seconds", "sampling_seconds")  # of a snapshot, in a checkpoint
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


class Mixing(NamedTuple):
    """The least number of effective draws of any quantity, in bulk or tails, and the largest R-hat."""

    ess: float
    rhat: float


Measure = Callable[[Array], Mixing]


@dataclass(frozen=True)
class Update:
    """What a progress display is told after each segment.

    ``goal`` is the iteration at which the run is looked at next, or ends, and ``end`` that at which it will end as far
    as one can tell; ``mixing`` is what the last look has shown, ``effective`` how many effective draws of those
    ``wanted`` there should be by now.
    """

    iteration: int
    goal: int
    settings: RunSettings
    acceptance: float
    solves: int
    failures: int
    mixing: Mixing | None
    end: int
    effective: float | None
    wanted: int


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
    measure: Measure | None = None,
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
    measure
        Tells how well draws theta (chains, draws, parameters) mix, which decides when to stop where ``settings`` do not
        say how many draws there should be.
    """
    if settings.draws is None and measure is None:
        raise SamplingError("a run needs a number of draws, or a measure that tells when there are enough")
    if fibre is not None and not np.array_equal(fibre.table, posterior.table):
        raise SamplingError("the fibre was made for other parameters, or for other priors, than the posterior has")
    if fibre is None and (settings.sampler == registry.AUTO or settings.sampler_settings().needs_fibre):
        raise SamplingError(f"sampler '{settings.sampler}' needs to know the fibres of the model: give it a Fibre")
    store = Checkpoint(Path(checkpoint), _identity(posterior, settings, fibre)) if checkpoint else None
    saved = store.load() if store else None
    clock = _Clock(settings.max_time)
    if saved:
        start = _restore(posterior, settings, fibre, saved)
    else:
        try:
            start = _begin(posterior, settings, fibre, plan, clock.watched(report))
        except TimeoutError:
            ended = f"max_time, {clock.seconds:g} s, ended before the preparation did: nothing has been drawn"
            raise SamplingError(ended) from None
    under_way = _Run(start, store, measure, report, clock)
    interrupted = False
    try:
        under_way.finish(executor, progress)
    except KeyboardInterrupt:
        interrupted = True
    under_way.save()  # also at the end: what follows may fail
    start, end = under_way.start, under_way.now
    work, chunk = start.work, under_way.chunk()
    kept = chunk.position.shape[1]
    theta = thetas(posterior, chunk)
    draws = Kept(theta, chunk.log_likelihood)
    return Draws(
        settings=replace(start.settings, thin=work.thin, draws=start.settings.draws or max(1, kept)),
        parameters=posterior.parameters,
        theta=theta,
        chunk=chunk,
        tally=end.tally,
        warmup_seconds=end.warmup_seconds,
        sampling_seconds=end.sampling_seconds,
        interrupted=interrupted,
        resumed_at=saved.numbers["iteration"] if saved else None,
        notes=(*start.notes, *([under_way.ending] if under_way.ending and not interrupted else [])),
        findings=registry.sampler(work.sampler).examine(work.task, work.plan, end.state, draws) if kept else {},
    )


def thetas(posterior: Posterior, chunk: Chunk) -> Array:
    """The parameters of draws (chains, draws, d)."""
    d = chunk.position.shape[2]
    return posterior.to_theta(chunk.position.reshape(-1, d)).reshape(chunk.position.shape)


def lane_by_lane(chunk: Chunk, work: Work) -> Chunk:
    """Draws of one lane after those of another, so that neighbours are as much alike as successive iterations are."""
    kept = chunk.position.shape[1]
    iterations = work.task.warmup + work.thin * np.arange(1, kept + 1) - 1
    order = np.argsort(iterations % work.plan.lanes, kind="stable")
    return Chunk(*(part[:, order] for part in chunk))


def _identity(posterior: Posterior, settings: RunSettings, fibre: Fibre | None) -> str:
    """Describe what a checkpoint must agree with to be resumed: another version may draw differently.

    When a run ends is not a part of it: one that has ended goes on if more is asked for.
    """
    parts = {name: value for name, value in vars(settings).items() if name not in ENDS}
    parts |= {"options": settings.sampler_settings()}
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
    looked: int = 0  # the iteration at which it was last decided to go on


class Beginning(NamedTuple):
    """What does not: the settings with the sampler that was chosen, notes on it, and the work; and where it starts."""

    settings: RunSettings
    notes: tuple[str, ...]
    work: Work
    first: Snapshot


def _work(posterior: Posterior, settings: RunSettings, fibre: Fibre | None, plan: Any) -> Work:
    task = Task(posterior, fibre, settings.sampler_settings(), settings.warmup, settings.thin)
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
    nothing = np.zeros(settings.chains, np.int64)
    snapshot = _first(work, spawn_generators(settings.seed, settings.chains), nothing, nothing)
    # finding the posterior is a part of the warm-up
    return Beginning(settings, notes, work, snapshot._replace(warmup_seconds=time.perf_counter() - began))


def _first(work: Work, rngs: list[np.random.Generator], solves: Integers, failures: Integers) -> Snapshot:
    """Where a run begins, after so many solves in vain."""
    start = registry.sampler(work.sampler).init(work.task, work.plan, rngs)
    first = np.arange(len(rngs)) == 0  # the plan is for all chains; the first is charged with it
    solves = solves + start.solves + work.plan.solves * first
    chunk, tally = nothing_yet(work, solves, failures + start.failures + work.plan.failures * first)
    return Snapshot(0, start.state, rngs, tally, (chunk,))


def _restore(posterior: Posterior, settings: RunSettings, fibre: Fibre | None, saved: Saved) -> Beginning:
    numbers = dict(saved.numbers)
    name, notes, thin = numbers.pop("sampler"), tuple(numbers.pop("notes")), numbers.pop("thin")
    settings = choice.settled(settings, name)
    sampler = registry.sampler(name)
    snapshot = Snapshot(
        state=saved.tuple_of(sampler.State, "state"),
        rngs=saved.generators(),
        tally=saved.tuple_of(Tally, "tally"),
        chunks=(saved.tuple_of(Chunk, "chunk"),),
        **numbers,
    )
    work = _work(posterior, settings, fibre, saved.tuple_of(sampler.Plan, "plan"))
    return Beginning(settings, notes, work._replace(thin=thin), snapshot)


class _Run:
    """The mutable middle of `run`. ``at`` is replaced in one assignment, so an interrupt never finds it half new."""

    def __init__(
        self,
        start: Beginning,
        store: Checkpoint | None,
        measure: Measure | None,
        report: Callable[[str], None],
        clock: _Clock,
    ):
        self.at, self.store = (start, start.first), store
        self.measure, self.report, self.clock = measure, report, clock
        self.unsaved = False
        self.mixing: Mixing | None = None
        self.ending = ""  # why a run that was to go on until it has enough has ended
        self._sent = SentOnce(start.work)

    @property
    def start(self) -> Beginning:
        return self.at[0]

    @property
    def now(self) -> Snapshot:
        return self.at[1]

    @now.setter
    def now(self, now: Snapshot) -> None:
        self.at = self.start, now

    @property
    def sent(self) -> SentOnce[Work]:
        """The work, as it is sent to executors."""
        if self._sent.content is not self.start.work:
            self._sent = SentOnce(self.start.work)
        return self._sent

    def chunk(self) -> Chunk:
        """The draws so far, one lane after the other."""
        return lane_by_lane(Chunk.join(self.now.chunks, axis=1), self.start.work)

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
                numbers={name: getattr(now, name) for name in SAVED}
                | {"sampler": start.work.sampler, "notes": start.notes, "thin": start.work.thin},
            )
        except DataError as error:  # a full disk is no reason to lose what was drawn
            if not self.unsaved:
                warnings.warn(f"{error}; the run goes on, but could not be resumed", stacklevel=2)
            self.unsaved = True

    def finish(self, executor: Executor | None, progress: Callable[[Update], None] | None) -> None:
        """Go on from look to look, until there are as many draws as were asked for, or enough."""
        while True:
            self._advance_to(self._goal(), executor, progress)
            if self.now.iteration < self._goal():
                self.ending = f"max_time, {self.start.settings.max_time:g} s, is spent{self._so_far()}"
                return
            if self._replanned():
                continue
            if self.now.iteration == self._end() or (self._end() is None and self._has_enough()):
                return
            self.now = self.now._replace(looked=self.now.iteration)

    def _end(self) -> int | None:
        """The last iteration, where the number of draws is given."""
        settings = self.start.settings
        return None if settings.draws is None else settings.warmup + settings.draws * settings.thin

    def _goal(self) -> int:
        """The iteration at which the run is looked at next, or ends."""
        settings, end = self.start.settings, self._end()
        goal = settings.warmup + FIRST_LOOK * settings.thin
        while goal < self.now.iteration or goal == self.now.looked:
            goal += (goal - settings.warmup) // 2
        return goal if end is None else min(goal, end)

    def _advance_to(self, goal: int, executor: Executor | None, progress: Callable[[Update], None] | None) -> None:
        """The clock decides how long segments are, which changes nothing in the draws."""
        pace = 10  # iterations per segment
        saved_at, save_cost = time.perf_counter(), 0.0
        warmup = self.start.settings.warmup
        least = warmup + self.start.work.thin  # a draw
        while self.now.iteration < goal and not (self.clock.over and self.now.iteration >= least):
            # a segment never straddles the end of warm-up, so that the two phases are timed apart
            phase_end = warmup if self.now.iteration < warmup else goal
            count = min(pace, phase_end - self.now.iteration)
            elapsed = self._advance(count, executor)
            pace = int(np.clip(count * SEGMENT_SECONDS / max(elapsed, 1e-6), max(1, count // 2), 2 * count + 1))
            if progress:
                progress(self._update(goal))
            if self.store and time.perf_counter() - saved_at > max(CHECKPOINT_SECONDS, 20 * save_cost):
                began = time.perf_counter()
                self.save()
                saved_at = time.perf_counter()
                save_cost = saved_at - began

    def _replanned(self) -> bool:
        """Begin again with a better plan, if the sampler has one."""
        start, now, began = self.start, self.now, time.perf_counter()
        sampler = registry.sampler(start.work.sampler)
        try:
            told = self.clock.watched(self.report)
            plan = sampler.review(start.work.task, start.work.plan, now.state, start.settings.seed, told)
        except TimeoutError:  # then what there is has to do
            return False
        if plan is None:
            return False
        work = start.work._replace(plan=plan, thin=start.settings.thin)
        note = f"{start.work.sampler}: begun again, with {getattr(plan, 'in_words', 'a better plan')}"
        self.report(note)
        first = _first(work, copy.deepcopy(now.rngs), now.tally.solves, now.tally.failures)
        spent = now.warmup_seconds + now.sampling_seconds + time.perf_counter() - began
        self.at, self.mixing = (
            (start._replace(work=work, notes=(*start.notes, note)), first._replace(warmup_seconds=spent)),
            None,
        )
        return True

    def _has_enough(self) -> bool:
        """Look at a run without a fixed number of draws; where it goes on, keep fewer of them."""
        start, now = self.at
        settings = start.settings
        assert self.measure is not None
        self.mixing = self.measure(thetas(self.start.work.task.posterior, self.chunk()))
        if self.mixing.ess >= self._wanted() and self.mixing.rhat <= RHAT_LIMIT:
            return True
        solves = int(now.tally.solves.sum())
        if solves + (solves - int(now.tally.warmup_solves.sum())) // 2 > settings.max_solves:
            self.ending = f"max_solves, {settings.max_solves}, would be spent before the next look{self._so_far()}"
            return True
        whole = Chunk.join(now.chunks, axis=1)
        if 1.5 * whole.position.shape[1] > MOST_KEPT:
            start = start._replace(work=start.work._replace(thin=2 * start.work.thin))
            whole = Chunk(*(part[:, 1::2] for part in whole))
        self.at = start, now._replace(chunks=(whole,), looked=now.iteration)
        return False

    def _wanted(self) -> int:
        """How many effective draws there should be: more than lanes that never leave their starts seem to give."""
        settings, lanes = self.start.settings, self.start.work.plan.lanes
        return settings.ess if lanes == 1 else max(settings.ess, EACH_LANE * settings.chains * lanes)

    def _so_far(self) -> str:
        if self.mixing is None:
            return ""
        return f": {self.mixing.ess:.0f} effective draws of the {self._wanted()} wanted"

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
            looked=now.looked,
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

    def _update(self, goal: int) -> Update:
        now = self.now
        sampled = int(now.tally.sampled.sum())
        share = float(now.tally.accepted.sum()) / sampled if sampled else float("nan")
        solves, failures = int(now.tally.solves.sum()), int(now.tally.failures.sum())
        end, effective = goal, None
        settings, looked = self.start.settings, now.looked - self.start.settings.warmup
        if self.mixing is not None and looked > 0 and self.mixing.ess > 0:
            effective = self.mixing.ess * (now.iteration - settings.warmup) / looked
            end = max(goal, settings.warmup + int(min(looked * self._wanted() / self.mixing.ess, 1e15)))
        mixing, wanted = self.mixing, self._wanted()
        return Update(now.iteration, goal, settings, share, solves, failures, mixing, end, effective, wanted)


class _Clock:
    """The user's limit of time, from the beginning of a run on."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds
        self.end = None if seconds is None else time.perf_counter() + seconds

    def watched(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """A preparation tells now and then what it does: then it can be told in turn that its time is over."""

        def told(text: str) -> None:
            if self.over:
                raise TimeoutError
            report(text)

        return told

    @property
    def over(self) -> bool:
        return self.end is not None and time.perf_counter() > self.end
