"""A case study from nothing to a folder of tables and figures: what ``equifinal paper`` does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from equifinal.errors import DataError
from equifinal.files import replace_file
from equifinal.plots import style
from equifinal.report.paper import figures, tables
from equifinal.studies.paper.cases import CaseStudy, case_study
from equifinal.studies.paper.runs import SETTINGS, MethodRun, compare, rows

FORMATS = (".svg", ".png")


class Study(NamedTuple):
    case: CaseStudy
    runs: list[MethodRun]
    tables: list[dict[str, dict[str, float]]]
    written: list[Path]

    def to_markdown(self) -> str:
        return tables.to_markdown(self.case, self.runs, self.tables)

    def to_json(self) -> dict[str, Any]:
        return tables.to_document(self.case, self.runs, self.tables) | {"written": [str(p) for p in self.written]}


def study(
    name: str, folder: Path, *, quick: bool = False, seed: int = 1, report: Callable[[str], None] = lambda text: None
) -> Study:
    """Run all samplers on a case study, and write tables (Markdown, CSV, JSON) and figures (SVG, PNG) to the folder."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, but `folder` must name a folder")
    case = case_study(name)
    runs = compare(case, quick=quick, seed=seed, report=report)
    report(f"the exact posterior, by {case.reference}")
    marginals = {quantity: case.marginal(quantity, quick) for quantity in case.quantities}
    made = [rows(case, run, marginals) for run in runs]
    report("tables and figures")
    texts = {
        "table.md": tables.to_markdown(case, runs, made),
        "table.csv": tables.to_csv(runs, made),
        "table.json": tables.to_json(case, runs, made),
    }
    written = [replace_file(folder / file, partial(_write, text), "the table") for file, text in texts.items()]
    for setting in SETTINGS:
        chosen = [run for run in runs if run.setting == setting]
        drawn = {
            "traces": figures.plot_traces(case, chosen, marginals),
            "projections": figures.plot_projections(case, chosen),
            "autocorrelations": figures.plot_autocorrelations(case, chosen),
            "densities": figures.plot_densities(case, chosen, marginals),
        }
        for what, figure in drawn.items():
            for ending in FORMATS:
                path = folder / f"{setting}-{what}{ending}"
                style.save(figure, path)
                written.append(path)
    return Study(case, runs, made, written)


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
