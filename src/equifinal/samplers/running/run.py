"""Chains from start to draws: whatever the sampler, the executor and the interruptions, a seed gives the same draws.

The work is cut into segments. A segment is a pure function of (state, generators, iteration), so that it can run in
this process, in a thread, in a spawned process or on a cluster; so that a checkpoint between two segments holds all
there is to know; and so that an interrupt loses at most the segment under way. How long a segment is, and how chains
are grouped, changes nothing in the draws: every chain has its own generator, spawned from the seed by its index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import EquifinalError, SamplingError
from equifinal.posterior.posterior import Posterior
from equifinal.samplers import registry
from equifinal.samplers.protocol import Kept
from equifinal.samplers.running.beginning import begin, restore
from equifinal.samplers.running.checkpoint import Checkpoint
from equifinal.samplers.running.cluster import as_executor
from equifinal.samplers.running.segment import Chunk, Tally
from equifinal.samplers.running.under_way import Clock, Measure, UnderWay, Update, thetas
from equifinal.samplers.settings import RunSettings

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

ENDS = ("ess", "max_solves", "max_time")  # settings that tell only when a run ends


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
    executor = as_executor(executor)
    store = Checkpoint(Path(checkpoint), _identity(posterior, settings, fibre)) if checkpoint else None
    saved = store.load() if store else None
    clock = Clock(settings.max_time)
    if saved:
        try:
            start = restore(posterior, settings, fibre, saved)
        except (LookupError, ValueError, TypeError, ArithmeticError, EquifinalError):
            assert store is not None
            raise store.damaged from None
    else:
        try:
            start = begin(posterior, settings, fibre, plan, clock.watched(report))
        except TimeoutError as stage:
            ended = f"max_time, {clock.seconds:g} s, ended before the preparation did ({stage})"
            raise SamplingError(f"{ended}: nothing has been drawn; a run needs more time than that") from None
    under_way = UnderWay(start, store, measure, report, clock)
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
        settings=replace(start.settings, thin=work.thin * under_way.every, draws=start.settings.draws or max(1, kept)),
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


def _identity(posterior: Posterior, settings: RunSettings, fibre: Fibre | None) -> str:
    """Describe what a checkpoint must agree with to be resumed: another version may draw differently.

    When a run ends is not a part of it: one that has ended goes on if more is asked for.
    """
    parts = {name: value for name, value in vars(settings).items() if name not in ENDS}
    parts |= {"options": settings.sampler_settings()}
    where = fibre.identity() if fibre else ""
    return f"equifinal {version('equifinal')}; {posterior.problem.fingerprint()}; {parts!r}; {where}"
