"""The samplers side by side on a case study, under the same conditions, in two settings.

*Literal*: one chain, begun at one and the same draw from the prior, with the tuning that the paper states; the first
iterations are thrown away. *Tuned*: four chains with our own defaults, which learn their proposals in warm-up, and as
many iterations after it in all. Data, priors, seed and ODE solver are the same everywhere.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.results.arviz_lines import rhat
from equifinal.results.diagnostics import summary_row
from equifinal.samplers import registry
from equifinal.samplers.protocol import Task
from equifinal.samplers.running.beginning import spawn_generators
from equifinal.samplers.running.run import run
from equifinal.samplers.running.segment import Chunk, Tally, Work, advance
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.samplers.searching.climbing import prior_start
from equifinal.samplers.settings import RunSettings
from equifinal.studies.paper.cases import BURN_IN, ITERATIONS, METHODS, CaseStudy
from equifinal.studies.paper.marginal import Marginal

Array = NDArray[np.float64]

SETTINGS = ("literal", "tuned")
TUNED_CHAINS = 4
BLOCK = 1000
COLUMNS = ("ess", "ess_per_second", "iact", "mcse_over_sd", "rhat", "ess_per_solve", "error")


@dataclass(frozen=True, eq=False)
class MethodRun:
    """What one method made of a case study in one setting; counts and seconds are those after warm-up."""

    method: str
    setting: str
    theta: Array  # (chains, draws, parameters)
    accepted: int
    iterations: int
    solves: int
    warmup_solves: int
    seconds: float

    @property
    def acceptance(self) -> float:
        return self.accepted / max(1, self.iterations)


def compare(
    case: CaseStudy, *, quick: bool = False, seed: int = 1, report: Callable[[str], None] = lambda text: None
) -> list[MethodRun]:
    """Every method in both settings."""
    report("compiling, and analysing identifiability")
    problem = load(example_path(case.name))
    study = Study(problem)
    posterior, fibre = study.posterior, study.fibre
    start = prior_start(posterior, spawn_generators(seed, 1)[0]).position
    share = 20 if quick else 1
    found = []
    for setting in SETTINGS:
        for method, sampler in METHODS.items():
            report(f"{setting}: {method}")
            if setting == "literal":
                settings = RunSettings(
                    sampler=sampler,
                    chains=1,
                    warmup=BURN_IN // (4 if quick else 1),
                    draws=(ITERATIONS - BURN_IN) // share,
                    seed=seed,
                    options=dict(case.literal[method]),
                )
            else:
                settings = RunSettings(
                    sampler=sampler,
                    chains=TUNED_CHAINS,
                    warmup=None if not quick or sampler == "collapsed" else 1000,  # type: ignore[arg-type]
                    draws=ITERATIONS // TUNED_CHAINS // share,
                    seed=seed,
                )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(_run(posterior, fibre, settings, method, setting, start))
    return found


def _run(
    posterior: Posterior, fibre: Fibre, settings: RunSettings, method: str, setting: str, start: Array
) -> MethodRun:
    own = fibre if settings.sampler_settings().needs_fibre else None
    short = replace(settings, warmup=20, draws=20)
    if setting == "tuned" or settings.sampler == "collapsed":
        run(posterior, short, fibre=own)  # compiled before the clock starts
        made = run(posterior, settings, fibre=own)
        theta, tally, seconds = made.theta, made.tally, made.sampling_seconds
    else:
        run_from(posterior, short, own, start)
        theta, tally, seconds = run_from(posterior, settings, own, start)
    return MethodRun(
        method=method,
        setting=setting,
        theta=theta,
        accepted=int(tally.accepted.sum()),
        iterations=int(tally.sampled.sum()),
        solves=int((tally.solves - tally.warmup_solves).sum()),
        warmup_solves=int(tally.warmup_solves.sum()),
        seconds=seconds,
    )


def run_from(
    posterior: Posterior, settings: RunSettings, fibre: Fibre | None, start: Array
) -> tuple[Array, Tally, float]:
    """Give the draws of chains that all begin at one position, what they counted, and the seconds after warm-up."""
    sampler: Any = registry.sampler(settings.sampler)
    task = Task(posterior, fibre, settings.sampler_settings(), settings.warmup)
    sent = SentOnce(Work(settings.sampler, task, sampler.Plan(), settings.thin))
    state = sampler.begin(task, np.tile(start, (settings.chains, 1))).state
    first = advance(sent, state, spawn_generators(settings.seed, settings.chains), 0, settings.warmup)
    state, rngs, tally, chunks = first.state, first.rngs, first.tally, [first.chunk]
    began = time.perf_counter()
    assert settings.draws is not None
    last = settings.warmup + settings.draws * settings.thin
    for iteration in range(settings.warmup, last, BLOCK):
        part = advance(sent, state, rngs, iteration, min(BLOCK, last - iteration))
        state, rngs, tally = part.state, part.rngs, tally.plus(part.tally)
        chunks.append(part.chunk)
    seconds = time.perf_counter() - began
    position = Chunk.join(chunks, axis=1).position
    theta = posterior.to_theta(position.reshape(-1, position.shape[2])).reshape(position.shape)
    return theta, tally, seconds


def rows(case: CaseStudy, made: MethodRun, marginals: Mapping[str, Marginal]) -> dict[str, dict[str, float]]:
    """The paper's table for one method, a row for each quantity, with its cost and its error.

    ESS is that of the mean, so that ESS times IACT is the number of draws, as in the paper.
    """
    found = {}
    for name in case.quantities:
        draws = case.column(name, made.theta)
        whole = summary_row(draws, made.seconds)
        ess = draws.size / whole["iact"]
        found[name] = {
            "ess": ess,
            "ess_per_second": ess / made.seconds,
            "iact": whole["iact"],
            "mcse_over_sd": 100 * whole["mcse_over_sd"],
            "rhat": _split_rhat(draws),
            "ess_per_solve": ess / max(1, made.solves),
            "error": marginals[name].distance(draws),
        }
    return found


def _split_rhat(draws: Array) -> float:
    """Split R-hat of one chain or of several, each cut in two."""
    half = draws.shape[1] // 2
    if half < 4 or np.ptp(draws) == 0:
        return float("nan")
    halves = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    with np.errstate(all="ignore"):
        return rhat(halves, "identity")
