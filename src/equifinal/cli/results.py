"""Commands about results that are there already, and on several samplers; registered by `equifinal.cli.app`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from equifinal.cli.common import JsonOption, ProblemArgument
from equifinal.words.json_output import print_json

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that fit wrote, or its results.nc.")]


def results_file(run: Path) -> Path:
    """The results in a folder, or the file itself; an error says what was looked for."""
    from equifinal.errors import DataError
    from equifinal.studies.folder import RESULTS

    path = run / RESULTS if run.is_dir() else run
    if not path.exists():
        raise DataError(f"there are no results at {path}; give a folder that equifinal fit wrote, or its {RESULTS}")
    return path


def predict(
    run: RunArgument,
    times: Annotated[str, typer.Option(help="Times as 1,2,5 or start:stop:step.")] = "",
    until: Annotated[
        float | None, typer.Option(help="An even grid up to this time.", show_default="a quarter beyond the data")
    ] = None,
    states: Annotated[
        str, typer.Option(help="States to predict besides the outputs: names as S,I, or 'all' or 'none'.")
    ] = "all",
    draws: Annotated[int, typer.Option(help="How many draws to solve.")] = 1000,
    prior: Annotated[bool, typer.Option("--prior", help="What the prior alone predicts.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the noise on observations.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A CSV file to write.", show_default="stdout")] = None,
    plot: Annotated[Path | None, typer.Option(help="A figure to write: .png, .svg or .pdf.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Outputs and unobserved states with bands of 50% and 90%, inside and beyond the data, as CSV."""
    from functools import partial

    from equifinal.files import replace_file
    from equifinal.results.store import load, problem_of
    from equifinal.words.predictions import prediction_table
    from equifinal.words.simulations import read_times

    path = results_file(run)
    if plot is not None:
        from equifinal.plots import style

        style.check_path(plot)
    data = load(path)
    names = {"all": None, "none": []}.get(states.strip(), [s.strip() for s in states.split(",") if s.strip()])
    table = prediction_table(
        data, times=read_times(times), until=until, states=names, draws=draws, prior=prior, seed=seed
    )
    if out is not None:
        replace_file(out, partial(Path.write_text, data=table.to_csv(), encoding="utf-8"), "the table")
        print(f"wrote {out}", file=sys.stderr)
    if plot is not None:
        from equifinal.plots.trajectories import draw_predictions

        style.save(draw_predictions(problem_of(data), table.bands, table.checks, table.determined, prior=prior), plot)
        print(f"wrote {plot}", file=sys.stderr)
    if as_json:
        print_json(table.to_json())
    elif out is None:
        print(table.to_csv(), end="")
    if not as_json:
        print("\n".join(table.words()), file=sys.stderr)


def report(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="report.html beside the results")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the page on a run again, from its results file."""
    from equifinal.errors import DataError
    from equifinal.report.page import write_report
    from equifinal.results.store import load
    from equifinal.studies.folder import REPORT

    path = results_file(run)
    target = out or path.with_name(REPORT)
    if target.is_dir():
        raise DataError(f"--out {target} is a folder; give the name of a file, such as {target / REPORT}")
    written = write_report(load(path), target)
    _told(written, as_json)


def compare(
    problem: ProblemArgument,
    samplers: Annotated[str, typer.Option(help="Which, separated by commas.")] = "collapsed,geometric,random-walk",
    draws: Annotated[int | None, typer.Option(help="Draws kept, a chain.", show_default="10000")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warm-up iterations, a chain.", show_default="as needed")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.", show_default="4")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same draws.", show_default="0")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="NAME-compare")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit with several samplers under the same settings, and write one page that sets them side by side."""
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.report.compare_page import write_comparison
    from equifinal.report.fit import with_report
    from equifinal.studies import comparison
    from equifinal.studies.folder import REPORT
    from equifinal.words.comparison import comparison_json, comparison_lines

    asked = comparison.check_samplers(samplers)
    loaded = load(find_problem(problem))
    folder = out or Path(f"{loaded.name}-compare")
    settings: dict[str, Any] = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed}
    show = not quiet and not as_json
    found = comparison.compare(loaded, asked, settings, folder, overwrite=overwrite, progress=show)
    found = replace(found, fits={name: with_report(done, progress=show) for name, done in found.fits.items()})
    page = write_comparison(found, folder / REPORT)
    if as_json:
        print_json(comparison_json(found) | {"report": str(page)})
        return
    print("\n".join(comparison_lines(found)))
    print(f"report: {page}")
    if any(done.interrupted for done in found.fits.values()):
        raise typer.Exit(130)


def _told(written: Path, as_json: bool) -> None:
    if as_json:
        print_json({"report": str(written)})
    else:
        print(f"wrote {written}")
