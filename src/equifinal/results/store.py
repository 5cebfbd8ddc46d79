"""Draws to ArviZ `InferenceData` and to netCDF, and back.

Groups: ``posterior`` (parameters and quantities of interest), ``sample_stats``, ``log_likelihood`` (pointwise, one
variable per output), ``observed_data``, ``constant_data`` (the whole problem, as JSON). Everything needed to doubt or
repeat the run stands in the attributes.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, IdentifiabilityError, InterruptedRunError
from equifinal.files import replace_file, require_regular
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem
from equifinal.results.diagnostics import import_arviz
from equifinal.samplers.running.run import Draws
from equifinal.samplers.running.segment import Chunk

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.identifiability.verdicts import Identifiability

VERSIONS = ("equifinal", "numpy", "scipy", "numba", "arviz")
POINTWISE_BATCH = 20_000
PROBLEM, IDENTIFIABILITY = "problem", "identifiability"  # in constant_data


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
            constant_data={PROBLEM: np.array(problem_to_json(posterior.problem)), **_censored(posterior.problem)},
            dims=dims | {f"{label} censored": own for label, own in dims.items()},
            coords=coords,
            attrs=_attributes(posterior, draws)
            | {"likelihood_gap": _gap(chunk.log_likelihood, pointwise), "misfit": _misfit(posterior, flat, chunk)},
        )


def _gap(carried: np.ndarray, pointwise: Mapping[str, np.ndarray]) -> float:
    """Find the largest difference between the log likelihood that a sampler carried along and that of its draws.

    Along fibres it is carried without being asked again: were it not constant there, this would show it.
    """
    total = sum(values.sum(axis=2) for values in pointwise.values())
    with np.errstate(invalid="ignore"):
        gap = np.abs(total - carried)
    return float(np.max(gap, initial=0.0, where=np.isfinite(gap)))


def _misfit(posterior: Posterior, theta: np.ndarray, chunk: Chunk) -> float:
    """Measure by how many standard deviations the best draw misses the data, as a root mean square; 1 is usual."""
    best = int(np.argmax(chunk.log_likelihood))
    row = theta[best : best + 1]
    found = posterior.outputs(row).values
    pairs = zip(posterior.likelihoods, found, strict=True)
    perfect = sum(part.log_likelihood_bound(row, outputs)[0] for part, outputs in pairs)
    size = sum(experiment.size for experiment in posterior.problem.experiments)
    missing = float(perfect - chunk.log_likelihood.flat[best])
    return float(np.sqrt(2 * missing / size)) if np.isfinite(missing) and missing > 0 else 0.0


def _label(problem: Problem, experiment: str, output: str) -> str:
    if len(problem.experiments) == 1:
        return output
    # a slash would be a folder in netCDF; written so that no two names become one
    return f"{output} [{experiment.replace('%', '%25').replace('/', '%2F')}]"


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
            values[label] = entry.values  # limits where these are censored
            dims[label] = [f"{label} time"]
            coords[f"{label} time"] = entry.times
    return values, dims, coords


def _censored(problem: Problem) -> dict[str, np.ndarray]:
    """Which of the data are limits, below (-1) or above (1) which they lie; of outputs that have any."""
    return {
        f"{_label(problem, experiment.name, entry.output)} censored": entry.censored
        for experiment in problem.experiments
        for entry in experiment.observations
        if entry.censored.any()
    }


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
        raise DataError(f"cannot write the results {path}: they need {size / 1e6:.1f} MB, but the disk is nearly full")
    return replace_file(path, lambda target: data.to_netcdf(str(target), engine="h5netcdf"), "the results")


def load(path: str | Path) -> InferenceData:
    """Read results back."""
    require_regular(Path(path))
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
        raise DataError("these results do not contain their problem; run equifinal fit again with this version")
    return problem_from_json(str(stored[PROBLEM].item()))


def store_identifiability(data: InferenceData, analysis: Identifiability) -> None:
    """Keep the analysis with the results, so that it need not be made again."""
    data.constant_data[IDENTIFIABILITY] = np.array(json.dumps(analysis.to_json()))


def identifiability_of(data: InferenceData) -> Identifiability:
    """The analysis stored with the results, else one made now."""
    from equifinal.identifiability.verdicts import Identifiability
    from equifinal.posterior.design import analysed

    stored = getattr(data, "constant_data", None)
    if stored is not None and IDENTIFIABILITY in stored:
        with suppress(IdentifiabilityError):  # of another version of this package
            return Identifiability.from_json(json.loads(str(stored[IDENTIFIABILITY].item())))
    return analysed(problem_of(data), time_limit=inf, effort=1.0)
