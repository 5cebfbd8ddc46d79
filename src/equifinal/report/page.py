"""From results to the page: sections come from the modules beside it, the look from ``page.html`` and ``style.css``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equifinal.files import replace_file
from equifinal.language.lookalikes import names_in, told_apart
from equifinal.plots import pairs
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import check, posterior_rows, predict
from equifinal.report import findings, given, running, trajectories
from equifinal.report.mathml import name_mathml
from equifinal.report.rendering import Figures, render
from equifinal.results import diagnostics
from equifinal.results.conformity import discords
from equifinal.results.diagnostics import Row
from equifinal.results.meaning import Meaning, interpret
from equifinal.words.conformity import discord_sentences

if TYPE_CHECKING:
    from arviz import InferenceData


def write_report(
    data: InferenceData,
    path: str | Path,
    meaning: Meaning | None = None,
    summary: Mapping[str, Row] | None = None,
    concerns: Sequence[diagnostics.Concern] | None = None,
) -> Path:
    """The report on a run as a file; it is either whole or as it was before.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> equifinal.write_report(data, "report.html")  # doctest: +SKIP
    """
    text = report_page(data, meaning, summary, concerns)
    return replace_file(Path(path), lambda target: target.write_text(text, encoding="utf-8"), "the report")


def report_page(
    data: InferenceData,
    meaning: Meaning | None = None,
    summary: Mapping[str, Row] | None = None,
    concerns: Sequence[diagnostics.Concern] | None = None,
) -> str:
    """The report on a run as one HTML text: the same for the same results.

    Parameters
    ----------
    meaning, summary, concerns
        From `interpret`, `summarise` and the diagnostics, if they were made already.
    """
    meaning = interpret(data) if meaning is None else meaning
    problem = meaning.problem
    theta = posterior_rows(data, problem)
    shown, checks = predict(problem, theta), check(problem, theta)
    verdicts = determined_trajectories(problem, meaning.fibre, theta, meaning.identifiability)
    rows, figures = diagnostics.summarise(data) if summary is None else summary, Figures()
    concerns = list(diagnostics.concerns(data, rows) if concerns is None else concerns)
    conform = discord_sentences(discords(meaning, checks))
    unusable = any(concern.serious for concern in concerns)
    state = {"discords": conform, "fit_state": "mixed" if conform else "bad" if unusable else "good"}
    names = [*names_in(experiment.model for experiment in problem.experiments), *problem.parameters]
    with told_apart(names, name_mathml):
        return render(
            "page.html",
            name=problem.name,
            short=findings.in_short(data, meaning, rows, concerns, checks, verdicts) | state,
            model=given.model(problem),
            knowable=given.knowable(meaning, figures),
            given=given.given(problem, figures),
            said=findings.said(meaning, figures),
            table=findings.table(meaning, rows),
            fit=trajectories.fit(problem, shown, checks, figures),
            states=trajectories.states(problem, shown, verdicts, figures),
            pairs=figures("Pairs of parameters with the fibre", lambda: pairs.plot_pairs(data, meaning=meaning)),
            freedom=bool(meaning.fibre and (meaning.fibre.dimension or meaning.fibre.chart.degree > 1)),
            sampler=running.sampler(data, rows, concerns, figures),
            again=running.again(data),
        )
