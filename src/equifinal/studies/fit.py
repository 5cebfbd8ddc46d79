"""A fit from a problem to a folder of results: what ``equifinal fit`` does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from equifinal.errors import DataError, EquifinalError, IdentifiabilityError
from equifinal.posterior.design import undecided
from equifinal.posterior.study import Study
from equifinal.prediction.predict import check, posterior_rows
from equifinal.problem.problem import Problem
from equifinal.results import diagnostics
from equifinal.results import store as result
from equifinal.results.conformity import Discord, discords, foreseen
from equifinal.samplers.settings import run_settings
from equifinal.showing import Shown
from equifinal.studies.ahead import compile_ahead
from equifinal.studies.folder import CHECKPOINT, REPORT, RESULTS, claim_folder, owned, to_be_continued
from equifinal.studies.progress import show_compiling
from equifinal.studies.sample import sample

if TYPE_CHECKING:
    from arviz import InferenceData

    from equifinal.identifiability.verdicts import Identifiability
    from equifinal.results.meaning import Meaning


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Shown):
    """A finished (or interrupted) fit and where its results are.

    ``meaning`` is None where no analysis was wanted, ``report`` where none was written. ``concerns``
    are about the draws, ``discords`` about how data, model and priors conform.
    """

    data: InferenceData
    summary: Mapping[str, diagnostics.Row]
    concerns: list[diagnostics.Concern]
    path: Path
    meaning: Meaning | None = None
    report: Path | None = None
    discords: tuple[Discord, ...] = ()

    def __repr__(self) -> str:
        return f"<Fit of {self.data.attrs['problem']} by {self.data.attrs['sampler']} in {self.path.parent}>"

    @property
    def interrupted(self) -> bool:
        return bool(self.data.attrs["interrupted"])

    def to_json(self) -> dict[str, Any]:
        attributes = self.data.attrs
        settings = json.loads(attributes["settings"])
        return {
            "sampler": attributes["sampler"],
            "chains": int(self.data.posterior.sizes["chain"]),
            "draws": int(self.data.posterior.sizes["draw"]),
            "warmup": settings["warmup"],
            "thin": settings["thin"],
            "seed": int(attributes["seed"]),
            "solves": int(attributes["solves"]),
            "failed_solves": int(attributes["failed_solves"]),
            "compile_seconds": float(attributes["compile_seconds"]),
            "warmup_seconds": float(attributes["warmup_seconds"]),
            "sampling_seconds": float(attributes["sampling_seconds"]),
            "acceptance": diagnostics.acceptance(self.data),
            "counts": json.loads(attributes["counts"]),
            "findings": json.loads(attributes["findings"]),
            "notes": json.loads(attributes["notes"]),
            "summary": {name: dict(row) for name, row in self.summary.items()},
            "results": str(self.path),
            "report": None if self.report is None else str(self.report),
            "interrupted": self.interrupted,
            "concerns": [asdict(concern) for concern in self.concerns],
            "discords": [asdict(discord) for discord in self.discords],
        }


def fit(
    problem: Problem | Study,
    settings: Mapping[str, Any],
    *,
    folder: Path | None = None,
    known_as: Path | None = None,
    overwrite: bool = False,
    executor: Executor | None = None,
    progress: bool = True,
    announce: Callable[[Identifiability | None, list[Discord]], None] | None = None,
    analysis: bool = True,
    finish: Callable[[Fit], Fit] | None = None,
    source: str = "",
) -> Fit:
    """Sample and save to a folder; take up again a run of the same problem and settings that was killed in it.

    ``announce`` is called, when nothing more stands in the way of a start, with what can be known and what does not
    conform between data and priors. ``source`` is the problem as the user named it, for commands to run next.
    Chains run in ``executor``, if there is one. ``known_as`` is where the folder will be in the end.
    Without a folder, the first of NAME-run, NAME-run-2, ... that is free. Without ``analysis``, the results do not say
    what they mean. ``finish``, such as the writing of a report, is part of the fit: one that was killed there is
    resumed too.
    """
    began = time.process_time()
    study = Study.of(problem)
    problem = study.problem
    problem.require_complete()
    run_settings(problem, settings)  # before a folder is made
    target = claim_folder(problem.name) if folder is None else folder
    with owned(target, overwrite), to_be_continued(target):
        study = _analysed(study) if analysis else study
        with show_compiling(progress):
            compile_ahead()
        before = foreseen(problem)
        if announce is not None:
            announce(study.analysis if analysis else None, before)
        data = sample(
            study,
            **{key: value for key, value in settings.items() if value is not None},
            executor=executor,
            progress=progress,
            checkpoint=target / CHECKPOINT,
        )
        data.attrs |= {"source": source, "folder": str(known_as or target)} if source else {}
        data.attrs |= {"cpu_seconds": time.process_time() - began} if executor is None else {}  # else of many processes
        path = _saved(data, target)
        (target / REPORT).unlink(missing_ok=True)  # of results that are no more
        result.require_whole(path)  # the checkpoint goes only when the results are surely there
        done = _interpreted(data, path, study if analysis else None, before)
        if finish is not None:
            done = finish(done)
        if not data.attrs["interrupted"]:
            (target / CHECKPOINT).unlink(missing_ok=True)
    return done


def _saved(data: InferenceData, folder: Path) -> Path:
    try:
        return result.save(data, folder / RESULTS)
    except DataError as error:
        if not (folder / CHECKPOINT).exists():
            raise
        raise DataError(
            f"{error}; the draws are kept in {folder / CHECKPOINT}: free some space, and run the same again"
        ) from None


def _interpreted(data: InferenceData, path: Path, study: Study | None, before: list[Discord]) -> Fit:
    """The fit with what its results mean, if the study can tell."""
    summary = diagnostics.summarise(data)
    meaning: Meaning | None = None
    found = tuple(before)
    if study is not None:
        from equifinal.results.meaning import interpret

        try:
            meaning = interpret(data, study=study)
            found += tuple(discords(meaning, check(study.problem, posterior_rows(data, study.problem))))
        except EquifinalError as error:  # the results are safe
            warn(f"the results could not be interpreted: {error}", stacklevel=3)
    return Fit(data, summary, diagnostics.concerns(data, summary), path, meaning, discords=found)


def _analysed(study: Study) -> Study:
    """The study with what can be known; with a warning where that failed, which is no reason not to fit."""
    try:
        _ = study.analysis
    except IdentifiabilityError as error:
        warn(f"the identifiability analysis failed: {error}", stacklevel=2)
        return Study(study.problem, analysis=undecided(study.problem, error))
    return study
