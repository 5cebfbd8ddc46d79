"""`sample`: from a problem to draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equifinal.posterior.study import Study
from equifinal.problem.problem import Problem
from equifinal.randomness import seed_of
from equifinal.results.diagnostics import mixing
from equifinal.results.groups import to_inference_data
from equifinal.results.store import store_identifiability
from equifinal.samplers import registry
from equifinal.samplers.protocol import FibreUse
from equifinal.samplers.running.run import run
from equifinal.samplers.running.under_way import Mixing, Update
from equifinal.samplers.settings import run_settings
from equifinal.studies.ahead import compile_ahead
from equifinal.studies.progress import show_compiling, show_run, show_stage

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.fibre import Fibre
    from equifinal.identifiability.verdicts import Identifiability


def sample(
    problem: Problem | Study,
    *,
    sampler: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    ess: int | None = None,
    max_solves: int | None = None,
    max_time: float | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    analysis: Identifiability | None = None,
    fibre: Fibre | None = None,
    executor: Executor | None = None,
    progress: bool | Callable[[Update], None] = True,
    checkpoint: str | Path | None = None,
    predictive: bool = True,
    rng: Any = None,
) -> InferenceData:
    """Sample the posterior of a problem, or of a study of one.

    Arguments left out are taken from the problem's ``[sampling]`` table, else from the defaults of `RunSettings`.

    Parameters
    ----------
    sampler, chains, warmup, draws, thin, ess, max_solves, max_time, seed, options
        See `RunSettings`. Without ``draws``, chains go on until every parameter and every identifiable combination has
        ``ess`` effective draws (400), in its bulk and in its tails.
    analysis
        What `analyse` has found of the models, if that has been called already.
    fibre
        The fibre of the models, with the problem's priors, for samplers that use it; left out, it is found by analysis.
    executor
        Any `concurrent.futures.Executor` (or dask client) to run chains in; the draws do not depend on it.
    progress
        Show progress on stderr, or a function to be called with an `Update`.
    checkpoint
        A file from which the same call resumes a run that was killed.
    predictive
        Also draw from the prior, and new observations from prior and posterior, as groups of their own.
    rng
        In place of ``seed``: a `numpy.random.Generator`, or anything that `numpy.random.default_rng` makes one of.

    Returns
    -------
    arviz.InferenceData (of ArviZ 1.x: xarray.DataTree)
        Groups `posterior`, `posterior_predictive`, `prior`, `prior_predictive`, `log_likelihood`, `log_prior`,
        `observed_data`, `sample_stats` and `constant_data`. If interrupted by Ctrl-C, with what was drawn so far and
        the attribute ``interrupted = 1``.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, seed=1, progress=False)
    >>> data.posterior["gamma"].shape
    (4, 100)
    """
    asked = {
        "sampler": sampler,
        "chains": chains,
        "warmup": warmup,
        "draws": draws,
        "thin": thin,
        "ess": ess,
        "max_solves": max_solves,
        "max_time": max_time,
        "seed": seed_of(seed, rng),
        "options": options,
    }
    study = Study.of(problem, analysis=analysis, fibre=fibre)
    settings = run_settings(study.problem, asked)
    visible = progress is True
    with show_compiling(visible):
        compile_ahead()
        posterior = study.posterior
    own, notes = None, []
    if settings.sampler == registry.AUTO or settings.sampler_settings().needs_fibre:
        with show_stage("analysing identifiability", visible):
            coarsest = registry.entry(settings.sampler).fibre is FibreUse.COARSEST
            own, note = study.coarsest_fibre if coarsest else study.checked_fibre
            notes += [note] if note else []
    with show_run(visible) as (report, display):
        made = run(
            posterior,
            settings,
            fibre=own,
            executor=executor,
            progress=progress if callable(progress) else display,
            checkpoint=checkpoint,
            report=report,
            measure=partial(_mixing, own),
        )
    with show_stage("collecting results", visible):
        data = to_inference_data(posterior, made, predictive=predictive)
    data.attrs["notes"] = json.dumps([*notes, *made.notes])
    data.attrs["asked"] = json.dumps({name: value for name, value in asked.items() if value is not None}, default=str)
    if study.known_analysis is not None:
        store_identifiability(data, study.known_analysis)
    return data


def _mixing(fibre: Fibre | None, theta: NDArray[np.float64]) -> Mixing:
    """How well parameters and combinations mix, the worst of them."""
    columns = theta
    if fibre is not None and fibre.dimension:
        xi = fibre.xi(theta.reshape(-1, theta.shape[2])).reshape(*theta.shape[:2], -1)
        columns = np.concatenate([theta, xi], axis=2)
    found = [mixing(column) for column in np.moveaxis(columns, 2, 0)]
    return Mixing(*(float(f(values)) for f, values in zip((np.min, np.max), zip(*found, strict=True), strict=True)))
