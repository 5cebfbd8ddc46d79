r"""Simulation-based calibration: is a whole fit right, from prior to draws?

Draw theta from the prior, data from the model at theta, and a posterior sample from these data. Then theta is itself
one draw from that posterior, so that the rank of any function of theta (and of the data) among L independent posterior
draws is uniform on {0, ..., L}; whatever is wrong with likelihood, prior, fibre or sampler shows in the ranks of some
function (Talts, Betancourt, Simpson, Vehtari and Gelman 2018; Modrak et al. 2023, for the log likelihood among them).

Ranked are every parameter, every quantity of interest, every identifiable combination and the log likelihood.
Chains are correlated: from each run as many draws are taken, evenly spaced, as the truth is ranked among; a run
with fewer effective draws than that is made again, longer.

A replicate is a pure function of the problem, the settings and its number: the same ranks come out in any process, in
any order, and after any interruption.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, as_completed
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, EquifinalError, InterruptedRunError, SamplingError
from equifinal.language.expression import to_text
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.prediction.fresh_data import from_prior, without_values
from equifinal.problem.problem import Problem
from equifinal.randomness import seed_of
from equifinal.results.arviz_lines import ess
from equifinal.results.arviz_lines import rhat as rank_rhat
from equifinal.samplers import registry
from equifinal.samplers.protocol import FibreUse
from equifinal.samplers.running.cluster import as_executor
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.samplers.settings import RunSettings, run_settings
from equifinal.studies.calibrate.findings import LOG_LIKELIHOOD, Calibration
from equifinal.studies.calibrate.log import ReplicateLog
from equifinal.studies.progress import show_compiling, show_count, show_stage
from equifinal.studies.sample import sample

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

DRAWS, RANKED = 1000, 99
LONGEST = 8  # times the draws asked for, where these are too few
MARGIN = 1.2
MOST_REPLICATES = 100_000


class Shared(NamedTuple):
    """Everything that replicates share; the posterior is one without values of data."""

    posterior: Posterior
    settings: RunSettings
    fibre: Fibre
    ranked: int


def calibrate(
    problem: Problem | Study,
    *,
    replicates: int = 200,
    sampler: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    rng: Any = None,
    options: Mapping[str, Any] | None = None,
    ranked: int = RANKED,
    fibre: Fibre | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    record: str | Path | None = None,
) -> Calibration:
    """Simulation-based calibration of a problem's model, priors, noise and times; its data are replaced.

    Parameters
    ----------
    replicates
        How many data sets are simulated and fitted.
    sampler, chains, warmup, draws, thin, seed, options
        Of each fit, see `RunSettings`; 1000 draws per chain unless given. The seed determines everything.
    rng
        In place of ``seed``: a `numpy.random.Generator`, or anything that `numpy.random.default_rng` makes one of.
    ranked
        L: among how many draws of a fit the truth is ranked.
    fibre
        The fibre of the models; left out, it is found by analysis, once.
    executor
        Any `concurrent.futures.Executor` (or dask client) to run replicates in; the ranks do not depend on it.
    progress
        Whether to show progress on stderr.
    record
        A file to which each replicate is written as it ends; with what is in it already a calibration goes on.

    Examples
    --------
    >>> import equifinal
    >>> found = equifinal.calibrate(equifinal.load("si"), replicates=20)  # doctest: +SKIP
    """
    _require_whole("replicates", replicates, 1, MOST_REPLICATES)
    _require_whole("ranked", ranked, 9, 10_000)
    replicates, ranked = int(replicates), int(ranked)
    study = Study.of(problem)
    problem = study.problem
    _require_times(problem)
    asked = {"sampler": sampler, "chains": chains, "warmup": warmup, "draws": draws, "thin": thin}
    asked["seed"] = seed_of(seed, rng)
    usual = {} if draws is not None or "draws" in problem.sampling else {"draws": DRAWS}
    settings = run_settings(problem, asked | usual | {"options": options})
    assert settings.draws is not None
    if settings.chains * settings.draws < ranked:
        raise DataError(
            f"{settings.chains} chains of {settings.draws} draws are fewer than the {ranked} among which the "
            "true value is ranked; use more draws"
        )
    study = Study(without_values(study.problem), analysis=study.known_analysis, fibre=fibre)
    with show_compiling(progress):
        posterior = study.posterior
    with show_stage("analysing identifiability", progress):
        exact = registry.entry(settings.sampler).fibre is FibreUse.EXACT and settings.sampler_settings().needs_fibre
        own, note = study.checked_fibre if exact else study.coarsest_fibre
    task = Shared(posterior, settings, own, ranked)
    executor = as_executor(executor)
    log = None if record is None else ReplicateLog(Path(record), _identity(task))
    found = {n: entry for n, entry in (log.found if log else {}).items() if n < replicates}
    missing = [number for number in range(replicates) if number not in found]
    with show_count("replicate", replicates, progress) as tell:
        tell(len(found))
        try:
            for entry in _made(task, missing, executor):
                found[entry["number"]] = entry
                if log:
                    log.append(entry)
                tell(len(found))
        except KeyboardInterrupt:
            if log is None:
                raise
            raise InterruptedRunError(f"interrupted after {len(found)} of {replicates} replicates") from None
    return _collect(task, [found[number] for number in sorted(found)], note)


def _made(task: Shared, numbers: list[int], executor: Executor | None) -> Iterator[dict[str, Any]]:
    if executor is None:
        yield from (replicate(SentOnce(task), number) for number in numbers)
        return
    sent = SentOnce(task)
    futures = [executor.submit(replicate, sent, number) for number in numbers]
    try:
        ours = all(isinstance(future, Future) for future in futures)  # those of others are taken in order
        for future in as_completed(futures) if ours else futures:
            yield future.result()
    except (KeyboardInterrupt, EquifinalError, GeneratorExit):
        raise
    except Exception as error:
        raise SamplingError(f"a worker failed: {type(error).__name__}: {error}") from error
    finally:
        for future in futures:
            future.cancel()


def replicate(sent: SentOnce[Shared], number: int) -> dict[str, Any]:
    """One data set, its fit and the ranks of its truth; if that fails, why."""
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry = _replicate(sent.content, number)
    except (EquifinalError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
        entry = {"failure": f"{type(error).__name__}: {error}"}
    return {"number": number, **entry, "seconds": round(time.perf_counter() - began, 3)}


def _replicate(task: Shared, number: int) -> dict[str, Any]:
    of_data, of_run, of_ties = np.random.SeedSequence(task.settings.seed, spawn_key=(number,)).spawn(3)
    made = from_prior(task.posterior, np.random.default_rng(of_data))
    settings = replace(task.settings, seed=int(of_run.generate_state(1, np.uint32)[0]))
    truth = ranked_values(task, made.theta[None])
    truth[LOG_LIKELIHOOD] = Posterior(made.problem).log_likelihood(made.theta[None]).values
    for attempt in range(2):
        data = sample(
            made.problem,
            **{key: value for key, value in vars(settings).items() if value is not None},
            fibre=task.fibre if settings.sampler_settings().needs_fibre else None,
            progress=False,
            predictive=False,
        )
        theta = np.stack([data.posterior[name].values for name in task.posterior.parameters], axis=-1)
        values = ranked_values(task, theta.reshape(-1, theta.shape[-1]))
        values[LOG_LIKELIHOOD] = data.sample_stats["log_like"].values.ravel()
        least, rhat = _quality(values, theta.shape[:2])
        if attempt or least >= task.ranked:
            break
        longer = LONGEST if not least > 0 else min(LONGEST, math.ceil(MARGIN * task.ranked / least))
        settings = replace(settings, thin=settings.thin * longer)
    kept = np.floor((np.arange(task.ranked) + 0.5) * theta.shape[0] * theta.shape[1] / task.ranked).astype(int)
    rng = np.random.default_rng(of_ties)
    return {
        "ranks": {name: _rank(float(truth[name][0]), values[name][kept], rng) for name in values},
        "sampler": data.attrs["sampler"],
        "least_ess": round(least, 1),
        "rhat": round(rhat, 4),
        "thin": settings.thin,
        "solves": int(data.attrs["solves"]),
        "passed_over": made.passed_over,
    }


def ranked_values(task: Shared, theta: Array) -> dict[str, Array]:
    """Everything that is ranked but the log likelihood, at rows of parameters; a combination by its formula."""
    posterior, fibre = task.posterior, task.fibre
    found: dict[str, Array] = {name: theta[:, j] for j, name in enumerate(posterior.parameters)}
    found |= {name: values for name, values in posterior.quantities(theta).items() if name not in found}
    functions = [to_text(f) for f in (*fibre.combinations.independent, *fibre.combinations.labels)]
    with np.errstate(all="ignore"):
        columns = fibre.combinations.all_values(np.ascontiguousarray(theta)).T
    found |= {text: column for text, column in zip(functions, columns, strict=True) if text not in found}
    return found


def _kinds(task: Shared, names: tuple[str, ...]) -> tuple[str, ...]:
    kinds = dict.fromkeys(task.posterior.problem.quantities, "quantity") | {LOG_LIKELIHOOD: LOG_LIKELIHOOD}
    kinds |= dict.fromkeys(task.posterior.parameters, "parameter")
    return tuple(kinds.get(name, "combination") for name in names)


def _rank(truth: float, draws: Array, rng: np.random.Generator) -> int:
    """How many draws are below; equal ones are put in order by chance; -1 if there is no order."""
    if math.isnan(truth) or np.isnan(draws).any():
        return -1
    return int((draws < truth).sum() + rng.integers(int((draws == truth).sum()) + 1))


def _quality(values: Mapping[str, Array], shape: tuple[int, ...]) -> tuple[float, float]:
    """The least effective sample size of all that is ranked, and the largest R-hat."""
    least, rhat = math.inf, 1.0
    for column in values.values():
        draws = column.reshape(shape)
        if not np.isfinite(draws).all():
            continue
        if shape[1] < 4:
            least = 0.0
        if np.ptp(draws) == 0 or shape[1] < 4:  # a constant, unless everything stands still
            continue
        least = min(least, ess(draws, "bulk"))
        if shape[0] > 1:
            rhat = max(rhat, rank_rhat(draws))
    return (least if math.isfinite(least) else 0.0), rhat


def _identity(task: Shared) -> dict[str, Any]:
    """What a record must agree with to be gone on with; the number of replicates may grow."""
    settings = vars(task.settings) | {"options": repr(task.settings.sampler_settings())}
    return {
        "version": version("equifinal"),
        "problem": task.posterior.problem.fingerprint(),
        **settings,
        "ranked": task.ranked,
        "fibre": task.fibre.identity(),
    }


def _collect(task: Shared, entries: list[dict[str, Any]], note: str) -> Calibration:
    ended = [entry for entry in entries if "failure" not in entry]
    names = (*ranked_values(task, task.posterior.sample_prior(np.random.default_rng(0), 1)), LOG_LIKELIHOOD)
    ranks = np.array([[entry["ranks"][name] for name in names] for entry in ended], np.int64)
    return Calibration(
        problem=task.posterior.problem.name,
        sampler=task.settings.sampler,
        names=names,
        kinds=_kinds(task, names),
        ranks=ranks.reshape(len(ended), len(names)),
        most=task.ranked,
        seed=task.settings.seed,
        failures=tuple((entry["number"], entry["failure"]) for entry in entries if "failure" in entry),
        entries=ended,
        note=note,
    )


def _require_whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise DataError(f"'{name}' must be a whole number from {least} to {most:,}, not {value!r}")


def _require_times(problem: Problem) -> None:
    try:
        problem.require_complete()
    except DataError as error:
        text = str(error).replace("before a fit", "before a calibration")
        hint = (
            "\n(the values of the data are replaced by simulated ones, but their times are needed)"
            if "data" in text
            else ""
        )
        raise DataError(text + hint) from None
