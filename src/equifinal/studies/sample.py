"""`sample`: from a problem to draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equifinal.errors import DataError, did_you_mean
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem
from equifinal.results.store import to_inference_data
from equifinal.samplers.running.run import RunSettings, Update, run
from equifinal.studies.progress import show_progress, show_stage, show_stages

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.fibre import Fibre


def sample(
    problem: Problem,
    *,
    sampler: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    fibre: Fibre | None = None,
    executor: Executor | None = None,
    progress: bool | Callable[[Update], None] = True,
    checkpoint: str | Path | None = None,
) -> InferenceData:
    """Sample the posterior of a problem.

    Arguments left out are taken from the problem's ``[sampling]`` table, else from the defaults of `RunSettings`.

    Parameters
    ----------
    sampler, chains, warmup, draws, thin, seed, options
        See `RunSettings`.
    fibre
        The fibre of the models, with the problem's priors, for samplers that use it; left out, it is found by analysis.
    executor
        Any `concurrent.futures.Executor` (or dask client) to run chains in; the draws do not depend on it.
    progress
        Show progress on stderr, or a function to be called with an `Update`.
    checkpoint
        A file that lets a killed run be taken up again.

    Returns
    -------
    arviz.InferenceData
        If interrupted by Ctrl-C, with what was drawn so far and the attribute ``interrupted = 1``.
    """
    asked = {
        "sampler": sampler,
        "chains": chains,
        "warmup": warmup,
        "draws": draws,
        "thin": thin,
        "seed": seed,
        "options": options,
    }
    settings = run_settings(problem, asked)
    with show_stage("compiling (a machine's first run takes some ten seconds)", progress is True):
        posterior = Posterior(problem)
    plan, notes = None, []
    if fibre is None and settings.sampler_settings().needs_fibre:
        with show_stage("finding what the data cannot tell apart", progress is True):
            from equifinal.fibre.of_problem import fibre_of, sampling_fibre

            if settings.sampler in ("auto", "collapsed"):
                fibre, note = sampling_fibre(problem)
                notes += [note] if note else []
            else:
                fibre = fibre_of(problem)
    if settings.sampler == "auto":
        from equifinal.samplers import choice as auto

        assert fibre is not None
        with show_stages(progress is True) as report:
            settings, plan, reason = auto.choose(posterior, settings, fibre, report)
            report(reason)
        notes.append(reason)
    elif settings.sampler == "collapsed":
        from equifinal.samplers.collapsed import sampler as collapsed

        assert fibre is not None
        with show_stages(progress is True) as report:
            plan = collapsed.prepare(posterior, settings.sampler_settings(), fibre, settings.seed, report)
        notes += [f"collapsed, as asked for, although {plan.refusal}"] if plan.refusal else []
    everything: dict[str, Any] = {"fibre": fibre, "executor": executor, "checkpoint": checkpoint, "plan": plan}
    if callable(progress):
        made = run(posterior, settings, progress=progress, **everything)
    else:
        with show_progress(settings, progress) as display:
            made = run(posterior, settings, progress=display, **everything)
    with show_stage("collecting results", progress is True):
        data = to_inference_data(posterior, made)
    data.attrs["notes"] = json.dumps(notes)
    return data


def run_settings(problem: Problem, asked: Mapping[str, Any]) -> RunSettings:
    """Settings asked for, else the problem's own, else the defaults; options one by one."""
    own: dict[str, Any] = dict(problem.sampling)
    given = {key: value for key, value in asked.items() if value is not None}
    usual = own.get("sampler", "auto")
    if given.get("sampler", usual) != usual:
        own.pop("options", None)  # they are for another sampler
    chosen: dict[str, Any] = {"sampler": "auto"} | own | given
    for key in chosen:
        if key not in RunSettings.__dataclass_fields__:
            hint = did_you_mean(key, RunSettings.__dataclass_fields__)
            raise DataError(f"there is no sampling setting '{key}'{hint}")
    if not isinstance(chosen.get("options", {}), Mapping):
        raise DataError(f"sampling options must be a table, not {chosen['options']!r}")
    if isinstance(own.get("options"), Mapping) and "options" in given:
        chosen["options"] = {**own["options"], **given["options"]}
    return RunSettings(**chosen)
