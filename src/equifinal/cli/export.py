"""The command that writes problems and results for other tools."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equifinal.cli.common import load_problem

if TYPE_CHECKING:
    from equifinal.problem.problem import Problem

TARGETS = ("petab", "sbml", "stan", "pymc", "latex")
ENDINGS = {"sbml": ".xml", "stan": ".stan", "pymc": ".py", "latex": ".tex"}


def export(
    run: Annotated[str, typer.Argument(metavar="RUN|FILE|EXAMPLE", hidden=True)],
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help="petab, sbml, stan, pymc or latex.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File, or folder for PEtab.", show_default="after the problem")
    ] = None,
    reduced: Annotated[
        bool,
        typer.Option("--reduced", help="Write the model in its identifiable combinations, with fewer parameters."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write a problem for another tool.

    RUN is the folder of a fit or its results file, whose most probable draw becomes the nominal values; FILE is a
    problem file, EXAMPLE the name of a bundled example.
    """
    from equifinal.errors import DataError, did_you_mean
    from equifinal.files import replace_file
    from equifinal.studies.exporting import exported

    if to not in TARGETS:
        raise DataError(f"--to {to}: unknown tool{did_you_mean(to, TARGETS)} (known: {', '.join(TARGETS)})")
    problem, values, data = _problem_and_values(run)
    files = exported(problem, values, to, reduced=reduced, data=data)
    folder = to == "petab"
    target = out or Path(f"{problem.name}-petab" if folder else f"{problem.name}{ENDINGS[to]}")
    paths = {name: target / name if folder else target for name in files}
    for path in paths.values():
        if path.exists() and not overwrite:
            raise DataError(f"{path} exists already; give another name, or `overwrite=True`")
    for name, path in paths.items():
        replace_file(path, partial(_write, text=files[name]), "the export")
        print(f"wrote {path}", file=sys.stderr)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _problem_and_values(run: str) -> tuple[Problem, dict[str, float], object]:
    """The problem, a value for every parameter, and the results if there are any."""
    path = Path(run)
    if path.is_dir() or path.suffix == ".nc":
        from equifinal.cli.results import results_file
        from equifinal.results.store import load, problem_of
        from equifinal.studies.exporting import most_probable

        data = load(results_file(path))
        problem = problem_of(data)
        return problem, most_probable(data, problem), data
    problem = load_problem(run)
    medians = {name: float(prior.quantile(0.5)) for name, prior in problem.priors.items()}
    values = {**medians, **problem.nominal}
    return problem, {name: values[name] for name in problem.parameters if name in values}, None
