"""Many problems side by side: each a fit in a folder of its own, and what became of it.

A fit is done whole by one process, of this machine or of a cluster. One that fails is noted, and the others go on; one
that was finished is read, so that the same call goes on after a kill. A process of this machine works in the folder
itself, where a checkpoint lets it go on in the midst of a fit; a worker of a cluster, which need not see that folder,
sends home the files of a finished fit.
"""

from __future__ import annotations

import json
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from equifinal.errors import DataError, EquifinalError, InterruptedRunError
from equifinal.files import replace_file
from equifinal.identifiability.freedoms import Freedom
from equifinal.problem.problem import Problem
from equifinal.results import diagnostics
from equifinal.results import store as result
from equifinal.results.efficiency import efficiency
from equifinal.results.store import RESULTS
from equifinal.studies.fit import Fit, fit
from equifinal.studies.folder import CHECKPOINT, REPORT, owned

INDEX = "index.html"
FILES = (REPORT, RESULTS)  # the results last, for they say that all is done

_finishing = threading.Lock()  # threads of a worker must not draw figures at the same time


class Given(NamedTuple):
    """A problem as it was named, and what it is, or why it could not be read."""

    source: str
    problem: Problem | EquifinalError


class Job(NamedTuple):
    """A fit to be done: everything about it but where."""

    given: Given
    settings: Mapping[str, Any]
    analysis: bool
    finish: Callable[[Fit], Fit] | None


@dataclass(frozen=True)
class Outcome:
    """What became of a problem; ``failure`` says why there are no results.

    ``freedoms`` is None where no analysis is stored with the results; ``cpu_seconds`` are of the last process that
    worked on the fit, if it was ``resumed`` by it.
    """

    name: str
    source: str
    failure: str = ""
    sampler: str = ""
    concerns: tuple[diagnostics.Concern, ...] = ()
    ess: float = math.nan
    cpu_seconds: float = math.nan
    resumed: bool = False
    freedoms: tuple[Freedom, ...] | None = None
    report: bool = False
    said: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Whether the draws may be used: good, mixed or bad; or failed."""
        if self.failure:
            return "failed"
        return "bad" if any(concern.serious for concern in self.concerns) else "mixed" if self.concerns else "good"


def folder_names(sources: Sequence[str]) -> dict[str, str]:
    """A folder for each problem: the name of its file, with that of its folder where two files have the same."""
    stems = {source: Path(source).stem for source in sources}
    if len(stems) < len(sources):
        twice = next(source for source in sources if list(sources).count(source) > 1)
        raise DataError(f"{twice} is given twice")
    folded = [stem.casefold() for stem in stems.values()]  # some file systems do not tell A from a
    names = {
        source: stem if folded.count(stem.casefold()) == 1 else f"{Path(source).absolute().parent.name}-{stem}"
        for source, stem in stems.items()
    }
    for source, name in names.items():
        same = [other for other in names if names[other].casefold() == name.casefold()]
        if len(same) > 1:
            raise DataError(f"{' and '.join(same)} would go to the same folder, {name}; rename one of the files")
        if name.casefold() == INDEX or not name.strip("."):
            raise DataError(f"{source}: the folder of its results cannot be called {name}; rename the file")
    return names


def fit_many(
    problems: Sequence[Given],
    settings: Mapping[str, Any],
    folder: Path,
    executor: Executor,
    *,
    there: bool = False,
    overwrite: bool = False,
    analysis: bool = True,
    finish: Callable[[Fit], Fit] | None = None,
    told: Callable[[list[Outcome]], None] = lambda outcomes: None,
) -> list[Outcome]:
    """Fit each problem into a folder of its own inside ``folder``; what is there already is not done again.

    Parameters
    ----------
    executor
        Where fits are done; with ``there`` its processes need not see the folder.
    finish
        Called with each fit, such as to write its report; it must be possible to pickle it.
    told
        Called with all outcomes so far, in the order of the problems, after each.
    """
    names = folder_names([given.source for given in problems])
    found: dict[str, Outcome] = {}

    def so_far() -> list[Outcome]:
        return [found[given.source] for given in problems if given.source in found]

    futures: dict[Future[Any], Given] = {}
    try:
        for given in problems:
            name, job = names[given.source], Job(given, settings, analysis, finish)
            if isinstance(given.problem, EquifinalError):
                found[given.source] = Outcome(name, given.source, failure=str(given.problem))
            elif there and not overwrite and (folder / name / RESULTS).exists():
                found[given.source] = fit_here(job, folder / name, False)
            elif there:
                futures[executor.submit(fit_there, job, folder / name)] = given
            else:
                futures[executor.submit(fit_here, job, folder / name, overwrite)] = given
        told(so_far())
        for future in as_completed(futures):
            given = futures[future]
            target = folder / names[given.source]
            try:
                answer: Any = future.result()
                outcome = _brought_home(answer[0], answer[1], target, overwrite) if there else answer
            except KeyboardInterrupt:
                raise
            except Exception as error:  # the process died, or the scheduler is gone
                outcome = Outcome(target.name, given.source, failure=_in_words(error))
            found[given.source] = outcome
            told(so_far())
    except KeyboardInterrupt:
        raise InterruptedRunError(f"interrupted after {len(found)} of {len(problems)} problems") from None
    finally:
        for future in futures:
            future.cancel()
    return so_far()


def fit_here(job: Job, target: Path, overwrite: bool) -> Outcome:
    """Fit into a folder, or read what a fit of the same problem and settings has left there."""
    return _outcome(job, target, target, overwrite)


def fit_there(job: Job, target: Path) -> tuple[Outcome, dict[str, bytes]]:
    """Fit on a machine that does not see the folder: the outcome, and the files to be put there."""
    with TemporaryDirectory(prefix="equifinal-") as place:
        own = Path(place) / target.name
        outcome = _outcome(job, own, target, False)
        return outcome, {name: (own / name).read_bytes() for name in FILES if (own / name).exists()}


def _outcome(job: Job, folder: Path, known_as: Path, overwrite: bool) -> Outcome:
    outcome = Outcome(folder.name, job.given.source)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        try:
            if overwrite or (folder / CHECKPOINT).exists() or not (folder / RESULTS).exists():
                _fitted(job, folder, known_as, overwrite)
            outcome = _read(job, folder, outcome)
        except Exception as error:
            outcome = replace(outcome, failure=_in_words(error))
    said = (str(warning.message) for warning in warned if issubclass(warning.category, UserWarning))
    return replace(outcome, said=tuple(dict.fromkeys(said)))


def _fitted(job: Job, folder: Path, known_as: Path, overwrite: bool) -> None:
    assert isinstance(job.given.problem, Problem)

    def finish(done: Fit) -> Fit:
        with _finishing:
            return done if job.finish is None else job.finish(done)

    fit(
        job.given.problem,
        job.settings,
        folder=folder,
        known_as=known_as,
        overwrite=overwrite,
        progress=False,
        analysis=job.analysis,
        finish=finish,
        source=job.given.source,
    )


def _read(job: Job, folder: Path, outcome: Outcome) -> Outcome:
    """What the results in a folder say, if they are of this problem and these settings."""
    assert isinstance(job.given.problem, Problem)
    data = result.load(folder / RESULTS)
    try:
        attributes = data.attrs
        asked = {name: value for name, value in job.settings.items() if value is not None}
        same = json.loads(attributes["asked"]) == json.loads(json.dumps(asked, default=str))
        if attributes["fingerprint"] != job.given.problem.fingerprint() or not same:
            raise DataError(
                f"{folder} holds results of another problem, or of other settings; choose another folder (`folder`), "
                "or replace them (`overwrite=True`)"
            )
        rows = diagnostics.summarise(data)
        analysed = result.has_identifiability(data)
        return replace(
            outcome,
            sampler=str(attributes["sampler"]),
            concerns=tuple(diagnostics.concerns(data, rows)),
            ess=float(efficiency(data, rows).ess),
            cpu_seconds=float(attributes.get("cpu_seconds", math.nan)),
            resumed=int(attributes["resumed_at"]) >= 0,
            freedoms=tuple(result.identifiability_of(data).freedoms) if analysed else None,
            report=(folder / REPORT).exists(),
        )
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"cannot read the results in {folder}: {error}") from None
    finally:
        data.close()


def _brought_home(outcome: Outcome, files: Mapping[str, bytes], target: Path, overwrite: bool) -> Outcome:
    """Put the files of a fit where they belong."""
    if outcome.failure:
        return outcome
    with owned(target, overwrite):
        for name in FILES:
            if name in files:
                content = files[name]
                replace_file(target / name, lambda path, c=content: path.write_bytes(c), "the results")  # type: ignore[misc]
            else:
                (target / name).unlink(missing_ok=True)
        (target / CHECKPOINT).unlink(missing_ok=True)
    return outcome


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, EquifinalError) else f"{type(error).__name__}: {error}"
