"""Several problems in one command: fits side by side, and one page on all of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from equifinal.cli.common import executor_of, load_problem, with_flags
from equifinal.words.json_output import print_json

if TYPE_CHECKING:
    from equifinal.studies.many import Given, Outcome

FAILED = 2


def fit_side_by_side(
    sources: Sequence[str],
    settings: Mapping[str, Any],
    folder: Path,
    *,
    processes: int | None,
    cluster: str | None,
    overwrite: bool,
    analysis: bool,
    report: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Fit each problem, say a line of each as it ends, and end with status 2 if one of them failed."""
    from equifinal.errors import DataError
    from equifinal.ode.threads import processors
    from equifinal.report.fit import with_report
    from equifinal.report.index_page import write_index
    from equifinal.samplers.settings import RunSettings
    from equifinal.studies.many import fit_many, folder_names
    from equifinal.studies.progress import show_count
    from equifinal.words.many import outcome_json, outcome_line

    folder_names(sources)  # a mistake is better found before anything is read
    RunSettings(**{name: value for name, value in settings.items() if value is not None})
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, but `folder` must name a folder")
    if processes == 0 and cluster is None:
        raise DataError("several problems need at least one process (`processes`)")
    number = 0 if cluster else min(len(sources), processors() if processes is None else processes)
    shown: set[str] = set()

    with (
        executor_of(cluster, number or (processes or 0), "processes") as executor,
        show_count("problem", len(sources), progress) as count,
    ):
        assert executor is not None

        def told(outcomes: list[Outcome]) -> None:
            write_index(outcomes, len(sources), folder)
            for outcome in outcomes:
                if outcome.name not in shown and not as_json:
                    shown.add(outcome.name)
                    for text in outcome.said:
                        print(f"warning: {outcome.name}: {with_flags(text)}", file=sys.stderr)
                    print(with_flags(outcome_line(outcome)), flush=True)
            count(len(outcomes))

        outcomes = fit_many(
            [_given(source) for source in sources],
            settings,
            folder,
            executor,
            there=cluster is not None,
            overwrite=overwrite,
            analysis=analysis,
            finish=partial(with_report, progress=False) if report else None,
            told=told,
        )
    page = write_index(outcomes, len(sources), folder)
    if as_json:
        print_json({"problems": {o.name: outcome_json(o) for o in outcomes}, "index": str(page)})
    else:
        print(f"index: {page}")
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(FAILED)


def _given(source: str) -> Given:
    from equifinal.errors import EquifinalError
    from equifinal.studies.many import Given

    try:
        return Given(source, load_problem(source))
    except EquifinalError as error:
        return Given(source, error)
