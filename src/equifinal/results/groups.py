"""Draws as the groups that ArviZ knows.

``posterior`` (parameters and quantities of interest), ``posterior_predictive`` (new observations, from some of the
draws), ``log_likelihood`` (pointwise, one variable per output), ``log_prior`` (one variable per parameter), ``prior``
and ``prior_predictive`` (from 1,000 draws of the prior), ``sample_stats``, ``observed_data``, ``constant_data`` (the
whole problem, as JSON). Everything needed to doubt or repeat the run stands in the attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import InterruptedRunError, SolverError
from equifinal.formats.json import problem_to_json
from equifinal.posterior.posterior import Posterior
from equifinal.prediction.predict import new_observations, prior_rows
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import from_groups
from equifinal.samplers.running.run import Draws
from equifinal.samplers.running.segment import Chunk

if TYPE_CHECKING:
    from arviz import InferenceData

VERSIONS = ("equifinal", "numpy", "scipy", "numba", "arviz")
POINTWISE_BATCH = 20_000
PREDICTED, MOST_CELLS = 1000, 2_000_000  # draws of new observations, fewer where there are many observations
PROBLEM = "problem"  # in constant_data


def to_inference_data(posterior: Posterior, draws: Draws, *, predictive: bool = True) -> InferenceData:
    """The draws with their quantities of interest, pointwise log likelihood, observed data, and predictions of them."""
    chains, kept, d = draws.theta.shape
    if kept == 0:
        raise InterruptedRunError("stopped during warm-up, before anything was drawn")
    flat = draws.theta.reshape(-1, d)
    parameters = {name: draws.theta[:, :, j] for j, name in enumerate(draws.parameters)}
    quantities = {k: v.reshape(chains, kept) for k, v in posterior.quantities(flat).items()}
    found = {label: values for label, values in _pointwise(posterior, flat).items() if values.shape[1]}
    pointwise = {label: values.reshape(chains, kept, -1) for label, values in found.items()}
    observed, dims, coords = _observed(posterior.problem)
    chunk = draws.chunk
    density = posterior.log_prior(flat).reshape(chains, kept) + chunk.log_likelihood
    groups: dict[str, dict[str, Any]] = {
        "posterior": parameters | quantities,
        "sample_stats": {
            "lp": density,
            "log_like": chunk.log_likelihood,
            "acceptance_rate": chunk.acceptance,
        },
        "log_likelihood": pointwise,
        "log_prior": {
            name: posterior.problem.priors[name].log_density(values.reshape(-1)).reshape(chains, kept)
            for name, values in parameters.items()
        },
        "observed_data": observed,
        "constant_data": {PROBLEM: np.array(problem_to_json(posterior.problem)), **_censored(posterior.problem)},
    }
    if predictive:
        groups |= _predictive(posterior, draws)
    return from_groups(
        groups,
        dims=dims | {f"{label} censored": own for label, own in dims.items()},
        coords=coords,
        attrs=_attributes(posterior, draws)
        | {"likelihood_gap": _gap(chunk.log_likelihood, pointwise), "misfit": _misfit(posterior, flat, chunk)},
    )


def _predictive(posterior: Posterior, draws: Draws) -> dict[str, dict[str, np.ndarray]]:
    """New observations from evenly taken draws of every chain, and draws of the prior with theirs.

    A draw that cannot be solved is left out, of the prior, or stands for nothing, of the posterior: those were solved.
    """
    problem, (chains, kept, d) = posterior.problem, draws.theta.shape
    most = max(chains, min(PREDICTED, MOST_CELLS // max(1, sum(e.size for e in problem.experiments))))
    at = np.unique(np.linspace(0, kept - 1, min(kept, max(1, most // chains))).round().astype(int))
    groups: dict[str, dict[str, np.ndarray]] = {}
    with suppress(SolverError):
        made, solved = _observed_anew(problem, draws.theta[:, at].reshape(-1, d))
        if solved.all():
            groups["posterior_predictive"] = {k: v.reshape(chains, at.size, -1) for k, v in made.items()}
    theta = prior_rows(problem, most)
    with suppress(SolverError):  # where no prior draw can be solved there is nothing to show
        made, solved = _observed_anew(problem, theta)
        if solved.any():
            theta = theta[solved]
            named = {name: theta[None, :, j] for j, name in enumerate(problem.parameters)}
            named |= {name: values[None] for name, values in posterior.quantities(theta).items()}
            groups |= {"prior": named, "prior_predictive": {k: v[solved][None] for k, v in made.items()}}
    return groups


def _observed_anew(problem: Problem, theta: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """New observations by label, a row for each draw, and which draws could be solved in all experiments."""
    made, solved = {}, np.ones(len(theta), bool)
    for found in new_observations(problem, theta):
        rows = np.full((len(theta), found.made.shape[1]), np.nan)
        rows[found.solved] = found.made
        made[_label(problem, found.experiment, found.entry.output)] = rows
        solved &= found.solved & np.isfinite(rows).all(axis=1)
    return made, solved


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
            if not entry.values.size:
                continue
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
