"""From results to the page: sections are made in `sections`, the look is in ``page.html`` and ``style.css``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from equifinal.files import replace_file
from equifinal.plots import pairs
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import check, posterior_rows, predict
from equifinal.report import sections
from equifinal.report.rendering import Figures, render
from equifinal.results import diagnostics
from equifinal.results.diagnostics import Row
from equifinal.results.meaning import Meaning, interpret

if TYPE_CHECKING:
    from arviz import InferenceData


def write_report(
    data: InferenceData, path: Path, meaning: Meaning | None = None, summary: Mapping[str, Row] | None = None
) -> Path:
    """The report on a run as a file; it is either whole or as it was before."""
    text = report_page(data, meaning, summary)
    return replace_file(path, lambda target: target.write_text(text, encoding="utf-8"), "the report")


def report_page(data: InferenceData, meaning: Meaning | None = None, summary: Mapping[str, Row] | None = None) -> str:
    """The report on a run as one HTML text: the same for the same results.

    Parameters
    ----------
    meaning, summary
        From `interpret` and `summarise`, if they were made already.
    """
    meaning = interpret(data) if meaning is None else meaning
    problem = meaning.problem
    theta = posterior_rows(data, problem)
    shown, checks = predict(problem, theta), check(problem, theta)
    verdicts = determined_trajectories(problem, meaning.fibre, theta, meaning.identifiability)
    rows, figures = diagnostics.summarise(data) if summary is None else summary, Figures()
    concerns = diagnostics.concerns(data, rows)
    return render(
        "page.html",
        name=problem.name,
        short=sections.in_short(data, meaning, rows, concerns, checks, verdicts),
        model=sections.model(problem),
        knowable=sections.knowable(meaning, figures),
        given=sections.given(problem, figures),
        said=sections.said(meaning, figures),
        table=sections.table(meaning, rows),
        fit=sections.fit(problem, shown, checks, figures),
        states=sections.states(problem, shown, verdicts, figures),
        pairs=figures("Pairs of parameters with the fibre", lambda: pairs.plot_pairs(data, meaning=meaning)),
        freedom=bool(meaning.fibre and (meaning.fibre.dimension or meaning.fibre.chart.degree > 1)),
        sampler=sections.sampler(data, rows, concerns, figures),
        again=sections.again(data),
    )
