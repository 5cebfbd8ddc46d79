"""Draws as the groups that ArviZ knows.

``posterior`` (parameters and quantities of interest), ``posterior_predictive`` (new observations, from some of the
draws), ``log_likelihood`` (pointwise, one variable per output, in single precision, of some draws if there are many),
``log_prior`` (one variable per parameter), ``prior`` and ``prior_predictive`` (from 1,000 draws of the prior),
``sample_stats``, ``observed_data``, ``constant_data`` (the whole problem, as JSON). Everything needed to doubt or
repeat the run stands in the attributes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import InterruptedRunError, SolverError
from equifinal.formats.json import problem_to_json
from equifinal.posterior.posterior import Posterior
from equifinal.prediction.predict import new_observations, prior_rows
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import from_groups, name_draws
from equifinal.samplers.running.run import Draws
from equifinal.samplers.running.segment import Chunk

if TYPE_CHECKING:
    from arviz import InferenceData

VERSIONS = ("equifinal", "numpy", "scipy", "numba", "arviz")
MOST_POINTWISE = 20_000_000  # log likelihoods of single observations that are kept: of fewer draws where there are many
MOST_DRAWS, MOST_SOLVED = 50_000, 200_000_000  # of draws, and numbers in the trajectories that are made anew for them,
LEAST_SOLVED = 4000  # but so many draws are always solved again
POINTWISE_BATCH = 2_000_000  # of them made at a time
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
    pointwise = _pointwise(posterior, draws.theta)
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
        "log_likelihood": pointwise.values,
        "log_prior": {
            name: posterior.problem.priors[name].log_density(values.reshape(-1)).reshape(chains, kept)
            for name, values in parameters.items()
        },
        "observed_data": observed,
        "constant_data": {PROBLEM: np.array(problem_to_json(posterior.problem)), **_censored(posterior.problem)},
    }
    if predictive:
        groups |= _predictive(posterior, draws)
    gap = _gap(chunk.log_likelihood[:, pointwise.draws], pointwise.totals)
    data = from_groups(
        groups,
        dims=dims | {f"{label} censored": own for label, own in dims.items()},
        coords=coords,
        attrs=_attributes(posterior, draws) | {"likelihood_gap": gap, "misfit": _misfit(posterior, flat, chunk)},
    )
    if pointwise.values:
        name_draws(data, "log_likelihood", pointwise.draws)
    return data


def _predictive(posterior: Posterior, draws: Draws) -> dict[str, dict[str, np.ndarray]]:
    """New observations from evenly taken draws of every chain, and draws of the prior with theirs.

    A draw that cannot be solved is left out, of the prior, or stands for nothing, of the posterior: those were solved.
    """
    problem, (chains, kept, d) = posterior.problem, draws.theta.shape
    most = max(chains, min(PREDICTED, MOST_CELLS // max(1, sum(e.size for e in problem.experiments))))
    at = evenly(kept, most // chains)
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


def _gap(carried: np.ndarray, found: np.ndarray) -> float:
    """Find the largest difference between the log likelihood that a sampler carried along and that of its draws.

    Along fibres it is carried without being asked again: were it not constant there, this would show it.
    """
    with np.errstate(invalid="ignore"):
        gap = np.abs(found - carried)
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


class _Pointwise(NamedTuple):
    """Log likelihoods of single observations by label (chains, draws, observations), and their sums."""

    values: dict[str, NDArray[np.float32]]
    totals: NDArray[np.float64]
    draws: NDArray[np.int64]  # which of each chain these are of


def _pointwise(posterior: Posterior, theta: np.ndarray) -> _Pointwise:
    """Of all draws, or of as many as can be kept, evenly taken."""
    chains, kept, d = theta.shape
    size = max(1, sum(experiment.size for experiment in posterior.problem.experiments))
    solved = max(1, sum(likelihood.numbers for likelihood in posterior.likelihoods))
    most = min(MOST_POINTWISE // size, MOST_DRAWS, max(LEAST_SOLVED, MOST_SOLVED // solved))
    at = evenly(kept, most // chains)
    rows = theta[:, at].reshape(-1, d)
    # a rejected proposal repeats the draw before it: each is solved once
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    source = np.cumsum(fresh) - 1
    step = max(1, POINTWISE_BATCH // size)
    totals, parts = [], []
    for distinct in np.split(rows[fresh], range(step, int(fresh.sum()), step)):
        found = posterior.pointwise(distinct)
        totals.append(sum((values.sum(axis=1) for values in found.values()), np.zeros(len(distinct))))
        parts.append({key: values.astype(np.float32) for key, values in found.items() if values.shape[1]})
    values = {}
    for key in list(parts[0]):
        whole = np.concatenate([part.pop(key) for part in parts])
        whole = whole if fresh.all() else whole[source]
        values[_label(posterior.problem, *key)] = whole.reshape(chains, at.size, -1)
    return _Pointwise(values, np.concatenate(totals)[source].reshape(chains, at.size), at)


def evenly(of: int, most: int) -> NDArray[np.int64]:
    """At most so many of the first whole numbers, but one at the least."""
    return np.unique(np.linspace(0, of - 1, min(of, max(1, most))).round().astype(np.int64))


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
        "iterations": int(draws.tally.sampled.sum()),
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
