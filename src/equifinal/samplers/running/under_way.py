"""A run under way: segment after segment, from look to look, until there are enough draws.

A look decides whether to go on, to keep fewer of the draws, or to begin again with a better plan. How long segments
are, and when checkpoints are written, is decided by the clock, and changes nothing in the draws.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, EquifinalError, SamplingError
from equifinal.posterior.posterior import Posterior
from equifinal.samplers import registry
from equifinal.samplers.proposals.quality import is_noticed
from equifinal.samplers.running.beginning import Beginning, Snapshot
from equifinal.samplers.running.beginning import first as first_snapshot
from equifinal.samplers.running.checkpoint import Checkpoint
from equifinal.samplers.running.segment import Chunk, Segment, Tally, Work, advance
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.samplers.settings import RunSettings

Array = NDArray[np.float64]

FIRST_LOOK = 10_000  # iterations of each chain after which a run is first looked at;
MORE = 1 / 4  # then after so many of those so far
LANES_SOLVES = 1 / 3  # of those of the preparation: before lanes have made so many, they are not looked at
MOST_KEPT = 20_000  # of each chain, where a run goes on until it has enough: then every second of them is dropped
RHAT_LIMIT = 1.01
DROPPED = 1 / 4  # of the draws of lanes, their first: starts that have a common ancestor are alike
WANTED_EACH_LANE = 3  # effective draws, unless more are asked for: with two of each, results are still called sound
MOST_SOLVES = 5_000_000  # for each experiment, unless a run is told how many it may make
SHOWN_FOR_WANTED = 5  # draws for each effective one that is wanted, at the most
SAVED = ("iteration", "looked", "warmup_seconds", "sampling_seconds")  # of a snapshot, in a checkpoint
SEGMENT_SECONDS = 0.2  # long enough to hide the cost of handing work over, short enough for a lively progress bar
CHECKPOINT_SECONDS = 5.0


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


class Clock:
    """The user's limit of time, from the beginning of a run on."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds
        self.end: float | None = None if seconds is None else time.perf_counter() + seconds

    def watched(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """A preparation tells now and then what it does: then it can be told in turn that its time is over."""

        def told(text: str) -> None:
            if self.over:
                raise TimeoutError(text)
            report(text)

        return told

    @property
    def over(self) -> bool:
        return self.end is not None and time.perf_counter() > self.end


def thetas(posterior: Posterior, chunk: Chunk) -> Array:
    """The parameters of draws (chains, draws, d)."""
    d = chunk.position.shape[2]
    return posterior.to_theta(chunk.position.reshape(-1, d)).reshape(chunk.position.shape)


def lane_by_lane(chunk: Chunk, work: Work, dropped: int = 0) -> Chunk:
    """Draws of one lane after those of another, so that neighbours are as much alike as successive iterations are."""
    kept = chunk.position.shape[1]
    iterations = work.task.warmup + work.thin * np.arange(1, kept + 1) - 1
    order = dropped + np.argsort(iterations[dropped:] % work.plan.lanes, kind="stable")
    return Chunk(*(part[:, order] for part in chunk))


class UnderWay:
    """A run between its beginning and its end.

    ``at`` is replaced in one assignment, so that an interrupt never finds it half new.
    """

    def __init__(
        self,
        start: Beginning,
        store: Checkpoint | None,
        measure: Measure | None,
        report: Callable[[str], None],
        clock: Clock,
    ):
        self.at: tuple[Beginning, Snapshot] = (start, start.first)
        self.store = store
        self.measure = measure
        self.report = report
        self.clock = clock
        self.unsaved: bool = False
        self.mixing: Mixing | None = None
        self.ending: str = ""  # why a run that was to go on until it has enough has ended
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
        """The draws so far, one lane after the other; not all of them, as `_dropped` and `every` say."""
        whole = lane_by_lane(Chunk.join(self.now.chunks, axis=1), self.start.work, self._dropped)
        return Chunk(*(part[:, :: self.every] for part in whole))

    @property
    def _kept(self) -> int:
        """Draws of each chain so far."""
        return sum(chunk.position.shape[1] for chunk in self.now.chunks)

    @property
    def _dropped(self) -> int:
        """How many of the first draws of a chain are not shown, where a run goes on until it has enough.

        Lanes start at particles, which resampling has multiplied on the way from the prior. Where a lane gives a few
        effective draws only, what it has in common with others would be a noticeable part of them.
        """
        free = self.start.work.plan.lanes > 1 and self.start.settings.draws is None
        return int(DROPPED * self._kept) if free else 0

    @property
    def every(self) -> int:
        """Of how many draws one is shown, where a run goes on until it has enough.

        Draws of one lane tell nothing of places that it did not find. So there are not many more of them than there
        are lanes, lest errors look smaller than starts of so many lanes allow.
        """
        start, lanes = self.start, self.start.work.plan.lanes
        if lanes == 1 or start.settings.draws is not None:
            return 1
        kept = start.settings.chains * (self._kept - self._dropped)
        return max(1, math.ceil(kept / (SHOWN_FOR_WANTED * self._wanted())))

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

    @property
    def _most_solves(self) -> int:
        """How many solves are allowed: each experiment takes its own."""
        given = self.start.settings.max_solves
        return MOST_SOLVES * len(self.start.work.task.posterior.likelihoods) if given is None else given

    def _goal(self) -> int:
        """The iteration at which the run is looked at next, or ends."""
        settings, end, plan = self.start.settings, self._end(), self.start.work.plan
        first = FIRST_LOOK * settings.thin
        if plan.lanes > 1:
            each = settings.chains * len(self.start.work.task.posterior.likelihoods)  # solves in an iteration
            left = max(0, self._most_solves - plan.solves) // each
            first = max(first, min(int(LANES_SOLVES * plan.solves / each), left))
        goal = settings.warmup + first
        while goal < self.now.iteration or goal == self.now.looked:
            goal += int(MORE * (goal - settings.warmup))
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
        first = first_snapshot(work, copy.deepcopy(now.rngs), now.tally.solves, now.tally.failures)
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
        doubted = self._stood_too_long() or start.work.plan.wants_more(now.state)
        if self.mixing.ess >= self._wanted() and self.mixing.rhat <= RHAT_LIMIT and not doubted:
            return True
        solves = int(now.tally.solves.sum())
        if solves + MORE * (solves - int(now.tally.warmup_solves.sum())) > self._most_solves:
            self.ending = f"max_solves, {self._most_solves}, would be spent before the next look{self._so_far()}"
            return True
        whole = Chunk.join(now.chunks, axis=1)
        most = max(MOST_KEPT, SHOWN_FOR_WANTED * self._wanted() / settings.chains)
        while (1 + MORE) * whole.position.shape[1] > most:
            start = start._replace(work=start.work._replace(thin=2 * start.work.thin))
            whole = Chunk(*(part[:, 1::2] for part in whole))
        self.at = start, now._replace(chunks=(whole,), looked=now.iteration)
        return False

    def _stood_too_long(self) -> bool:
        """Whether one stay of a lane is a noticeable part of a run: then a longer one is worth more."""
        work, shown = self.start.work, self.start.settings.chains * (self._kept - self._dropped)
        if work.plan.lanes == 1:
            return False
        return is_noticed(self._longest_stay, shown * work.thin, shown / self.every)

    @property
    def _longest_stay(self) -> float:
        return float(self.now.state.stood[..., 1].max())

    def _wanted(self) -> int:
        """How many effective draws there should be: more than lanes that never leave their starts seem to give."""
        settings, lanes = self.start.settings, self.start.work.plan.lanes
        return settings.ess if lanes == 1 else max(settings.ess, WANTED_EACH_LANE * settings.chains * lanes)

    def _so_far(self) -> str:
        if self.mixing is None:
            return ""
        if self.mixing.ess >= self._wanted() and self._stood_too_long():
            return f": one lane stood still for {int(self._longest_stay)} iterations, too large a part of the run"
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
        except Exception as error:
            for task in tasks:
                task.cancel()
            self.save()
            if isinstance(error, EquifinalError):  # a scheduler that is gone, for one
                raise
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
