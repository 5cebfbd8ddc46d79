"""Where a run begins: a plan that is made once, a state of each chain, and the first of the snapshots that follow.

Every chain has its own generator, spawned from the seed by its index. A run that was saved begins where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.posterior.posterior import Posterior
from equifinal.samplers import choice, registry
from equifinal.samplers.protocol import Task
from equifinal.samplers.running.checkpoint import Saved
from equifinal.samplers.running.segment import Chunk, Tally, Work, nothing_yet
from equifinal.samplers.settings import RunSettings

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Integers = NDArray[np.int64]


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


def begin(
    posterior: Posterior, settings: RunSettings, fibre: Fibre | None, plan: Any, report: Callable[[str], None]
) -> Beginning:
    """Prepare a plan, if there is none, and start chains."""
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
    snapshot = first(work, spawn_generators(settings.seed, settings.chains), nothing, nothing)
    # finding the posterior is a part of the warm-up
    return Beginning(settings, notes, work, snapshot._replace(warmup_seconds=time.perf_counter() - began))


def first(work: Work, rngs: list[np.random.Generator], solves: Integers, failures: Integers) -> Snapshot:
    """Where a run begins, after so many solves in vain."""
    start = registry.sampler(work.sampler).init(work.task, work.plan, rngs)
    first = np.arange(len(rngs)) == 0  # the plan is for all chains; the first is charged with it
    solves = solves + start.solves + work.plan.solves * first
    chunk, tally = nothing_yet(work, solves, failures + start.failures + work.plan.failures * first)
    return Snapshot(0, start.state, rngs, tally, (chunk,))


def restore(posterior: Posterior, settings: RunSettings, fibre: Fibre | None, saved: Saved) -> Beginning:
    """Where a saved run stopped; a ValueError, KeyError or TypeError if what was saved is not of such a run."""
    numbers = dict(saved.numbers)
    name, notes, thin = numbers.pop("sampler"), tuple(map(str, numbers.pop("notes"))), numbers.pop("thin")
    if not all(type(number) is int and number >= 0 for number in (thin, numbers["iteration"], numbers["looked"])):
        raise ValueError("numbers")
    settings = choice.settled(settings, name)
    sampler = registry.sampler(name)
    sizes = {"chains": settings.chains, "d": posterior.dimension, "counts": len(sampler.COUNTS)}
    if fibre is not None:
        sizes |= {"q": fibre.rank, "q+d": fibre.rank + posterior.dimension}
    plan = saved.tuple_of(sampler.Plan, "plan", sizes)
    snapshot = Snapshot(
        state=saved.tuple_of(sampler.State, "state", sizes | {"lanes": plan.lanes}),
        rngs=saved.generators(settings.chains),
        tally=saved.tuple_of(Tally, "tally", sizes),
        chunks=(saved.tuple_of(Chunk, "chunk", sizes),),
        **numbers,
    )
    kept = max(0, snapshot.iteration - settings.warmup) // thin
    if snapshot.chunks[0].position.shape[1] != kept or snapshot.looked > snapshot.iteration:
        raise ValueError("iteration")
    return Beginning(settings, notes, _work(posterior, settings, fibre, plan)._replace(thin=thin), snapshot)


def spawn_generators(seed: int, chains: int) -> list[np.random.Generator]:
    """Make a generator for each chain, by its index."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]
