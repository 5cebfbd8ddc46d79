"""Draws to ArviZ `InferenceData` and to netCDF, and back; and `sample`, the way from a problem to a result.

Groups: ``posterior`` (parameters and quantities of interest), ``sample_stats``, ``log_likelihood`` (a variable an
output, pointwise), ``observed_data``, ``constant_data`` (the whole problem, as JSON). Everything needed to doubt or
repeat the run stands in the attributes.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.diagnostics import import_arviz
from equifinal.errors import DataError, InterruptedRunError, did_you_mean
from equifinal.io.files import replace_file
from equifinal.io.problem_json import problem_from_json, problem_to_json
from equifinal.posterior import Posterior
from equifinal.problem import Problem
from equifinal.progress import show_progress, show_stage, show_stages
from equifinal.samplers.run import Chunk, Draws, RunSettings, Update, run

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.fibre import Fibre
    from equifinal.identifiability import Identifiability

VERSIONS = ("equifinal", "numpy", "scipy", "numba", "arviz")
POINTWISE_BATCH = 20_000
PROBLEM, IDENTIFIABILITY = "problem", "identifiability"  # in constant_data


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
            from equifinal.problem_fibre import fibre_of, sampling_fibre

            if settings.sampler in ("auto", "collapsed"):
                fibre, note = sampling_fibre(problem)
                notes += [note] if note else []
            else:
                fibre = fibre_of(problem)
    if settings.sampler == "auto":
        from equifinal.samplers import auto

        assert fibre is not None
        with show_stages(progress is True) as report:
            settings, plan, reason = auto.choose(posterior, settings, fibre, report)
            report(reason)
        notes.append(reason)
    elif settings.sampler == "collapsed":
        from equifinal.samplers import collapsed

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


def to_inference_data(posterior: Posterior, draws: Draws) -> InferenceData:
    """The draws with their quantities of interest, pointwise log likelihood and observed data."""
    arviz = import_arviz()
    chains, kept, d = draws.theta.shape
    if kept == 0:
        raise InterruptedRunError("stopped during warm-up, before anything was drawn")
    flat = draws.theta.reshape(-1, d)
    parameters = {name: draws.theta[:, :, j] for j, name in enumerate(draws.parameters)}
    quantities = {k: v.reshape(chains, kept) for k, v in posterior.quantities(flat).items()}
    pointwise = {k: v.reshape(chains, kept, -1) for k, v in _pointwise(posterior, flat).items()}
    observed, dims, coords = _observed(posterior.problem)
    chunk = draws.chunk
    density = posterior.log_prior(flat).reshape(chains, kept) + chunk.log_likelihood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about few draws: our own advice says more
        return arviz.from_dict(
            posterior=parameters | quantities,
            sample_stats={
                "lp": density,
                "log_like": chunk.log_likelihood,
                "acceptance_rate": chunk.acceptance,
            },
            log_likelihood=pointwise,
            observed_data=observed,
            constant_data={PROBLEM: np.array(problem_to_json(posterior.problem))},
            dims=dims,
            coords=coords,
            attrs=_attributes(posterior, draws)
            | {"likelihood_gap": _gap(chunk.log_likelihood, pointwise), "misfit": _misfit(posterior, flat, chunk)},
        )


def _gap(carried: np.ndarray, pointwise: Mapping[str, np.ndarray]) -> float:
    """By how much the log likelihood that a sampler carried along differs from that of its draws, at the most.

    Along fibres it is carried without being asked again: were it not constant there, this would show it.
    """
    total = sum(values.sum(axis=2) for values in pointwise.values())
    with np.errstate(invalid="ignore"):
        gap = np.abs(total - carried)
    return float(np.max(gap, initial=0.0, where=np.isfinite(gap)))


def _misfit(posterior: Posterior, theta: np.ndarray, chunk: Chunk) -> float:
    """By how many standard deviations the best draw misses the data, as a root mean square: 1 is to be expected."""
    best = int(np.argmax(chunk.log_likelihood))
    perfect = sum(arm.log_likelihood_bound(theta[best : best + 1])[0] for arm in posterior.arms)
    size = sum(experiment.size for experiment in posterior.problem.experiments)
    missing = float(perfect - chunk.log_likelihood.flat[best])
    return float(np.sqrt(2 * missing / size)) if np.isfinite(missing) and missing > 0 else 0.0


def _label(problem: Problem, experiment: str, output: str) -> str:
    # a slash would be a folder in netCDF
    return output if len(problem.experiments) == 1 else f"{output} [{experiment.replace('/', ' per ')}]"


def _pointwise(posterior: Posterior, theta: np.ndarray) -> dict[str, np.ndarray]:
    # a rejected proposal repeats the draw before it: each is solved once
    fresh = np.ones(theta.shape[0], bool)
    fresh[1:] = (theta[1:] != theta[:-1]).any(axis=1)
    distinct, source = theta[fresh], np.cumsum(fresh) - 1
    parts = [posterior.pointwise(distinct[i : i + POINTWISE_BATCH]) for i in range(0, len(distinct), POINTWISE_BATCH)]
    return {_label(posterior.problem, *key): np.concatenate([part[key] for part in parts])[source] for key in parts[0]}


def _observed(problem: Problem) -> tuple[dict[str, np.ndarray], dict[str, list[str]], dict[str, np.ndarray]]:
    values, dims, coords = {}, {}, {}
    for experiment in problem.experiments:
        for entry in experiment.observations:
            label = _label(problem, experiment.name, entry.output)
            values[label] = entry.values
            dims[label] = [f"{label} time"]
            coords[f"{label} time"] = entry.times
    return values, dims, coords


def _attributes(posterior: Posterior, draws: Draws) -> dict[str, Any]:
    settings = draws.settings
    return {
        "sampler": settings.sampler,
        "seed": int(settings.seed),
        "settings": json.dumps(
            {
                "chains": settings.chains,
                "warmup": settings.warmup,
                "draws": settings.draws,
                "thin": settings.thin,
                "options": dict(settings.options),
                "solver": vars(posterior.problem.solver),
            },
            default=str,
        ),
        "problem": posterior.problem.name,
        "fingerprint": posterior.problem.fingerprint(),
        "parameters": json.dumps(draws.parameters),
        "quantities": json.dumps(list(posterior.problem.quantities)),
        "solves": int(draws.tally.solves.sum()),
        "warmup_solves": int(draws.tally.warmup_solves.sum()),
        "failed_solves": int(draws.tally.failures.sum()),
        "acceptance": [float(a) for a in draws.acceptance],
        "counts": json.dumps(draws.counts),
        "findings": json.dumps(dict(draws.findings)),
        "compile_seconds": float(posterior.compile_seconds),
        "warmup_seconds": float(draws.warmup_seconds),
        "sampling_seconds": float(draws.sampling_seconds),
        "interrupted": int(draws.interrupted),
        "resumed_at": -1 if draws.resumed_at is None else draws.resumed_at,
        "versions": json.dumps({name: version(name) for name in VERSIONS}),
    }


def save(data: InferenceData, path: str | Path) -> Path:
    """Write netCDF in one stroke: the file is either whole or as it was before."""
    path = Path(path)
    size = sum(dataset.nbytes for dataset in data.values())
    folder = next(p for p in path.absolute().parents if p.exists())
    if shutil.disk_usage(folder).free < 1.2 * size + 1e5:  # HDF5 does not survive a full disk
        raise DataError(f"cannot write the results {path}: they need {size / 1e6:.1f} MB, and the disk is nearly full")
    return replace_file(path, lambda target: data.to_netcdf(str(target), engine="h5netcdf"), "the results")


def load(path: str | Path) -> InferenceData:
    """Read results back."""
    arviz = import_arviz()
    try:
        return arviz.from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"cannot read results from {path}: {error}") from None


def problem_of(data: InferenceData) -> Problem:
    """The problem that results are of.

    Raises
    ------
    DataError
        If the results do not contain it, as those of other programs do not.
    """
    stored = getattr(data, "constant_data", None)
    if stored is None or PROBLEM not in stored:
        raise DataError("these results do not contain their problem; make them with this version of equifinal fit")
    return problem_from_json(str(stored[PROBLEM].item()))


def store_identifiability(data: InferenceData, found: Identifiability) -> None:
    """Keep the analysis with the results, so that it need not be made again."""
    data.constant_data[IDENTIFIABILITY] = np.array(json.dumps(found.to_json()))


def identifiability_of(data: InferenceData, *, time_limit: float = 20.0) -> Identifiability:
    """The analysis stored with the results, else one made now."""
    from equifinal.identifiability import Identifiability, analyse

    stored = getattr(data, "constant_data", None)
    if stored is not None and IDENTIFIABILITY in stored:
        return Identifiability.from_json(json.loads(str(stored[IDENTIFIABILITY].item())))
    return analyse([e.model for e in problem_of(data).experiments], time_limit=time_limit)
