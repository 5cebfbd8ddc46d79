"""Commands that use results or compare samplers; `equifinal.cli.app` registers them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from equifinal.cli.common import (
    ChainsOption,
    ClusterOption,
    ExplainOption,
    JsonOption,
    ProblemArgument,
    QuietOption,
    RunArgument,
    SeedOption,
    WarmupOption,
    executor_of,
    explaining,
    load_problem,
    with_flags,
)
from equifinal.words.json_output import print_json


def results_file(run: Path) -> Path:
    """Find the results in a folder; a file is taken as it is."""
    from equifinal.errors import DataError
    from equifinal.studies.folder import RESULTS

    path = run / RESULTS if run.is_dir() else run
    if not path.exists():
        raise DataError(f"there are no results at {path}; give the folder of a fit, or its file {RESULTS}")
    return path


def predict(
    run: RunArgument,
    times: Annotated[
        str, typer.Option(metavar="TIMES", help="Times, as 1,2,5 or start:stop:step, in place of an even grid.")
    ] = "",
    until: Annotated[
        float | None,
        typer.Option(metavar="TIME", help="Last time of the grid.", show_default="a quarter beyond the data"),
    ] = None,
    states: Annotated[
        str,
        typer.Option(metavar="NAMES", help="States to predict besides the outputs, such as S,I, or 'all' or 'none'."),
    ] = "all",
    draws: Annotated[int, typer.Option(metavar="N", help="Number of draws to simulate.")] = 1000,
    prior: Annotated[bool, typer.Option("--prior", help="Predict from the prior alone.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the noise on observations.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV file to write.", show_default="standard output")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Figure to write: .png, .svg or .pdf.", show_default="none")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict outputs and unobserved states, as CSV.

    Bands hold 50% and 90%, within and beyond the data. RUN is the folder of a fit, or its results file.
    """
    from functools import partial

    from equifinal.cli.arguments import read_names, read_times
    from equifinal.files import replace_file
    from equifinal.results.store import load, problem_of
    from equifinal.words.predictions import predict as predicted

    path = results_file(run)
    if plot is not None:
        from equifinal.plots import style

        style.check_path(plot)
    data = load(path)
    names = {"all": None, "none": []}.get(states.strip(), read_names(states))
    table = predicted(data, times=read_times(times), until=until, states=names, draws=draws, prior=prior, seed=seed)
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
        print(with_flags("\n".join(table.words())), file=sys.stderr)


def report(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file to write.", show_default="report.html beside the results"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report on a fit again.

    RUN is the folder of the fit, or its results file.
    """
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
    samplers: Annotated[
        str, typer.Option(metavar="NAMES", help="Samplers to compare, separated by commas.")
    ] = "collapsed,geometric,random-walk",
    draws: Annotated[int | None, typer.Option(metavar="N", help="Draws kept per chain.", show_default="10000")] = None,
    warmup: WarmupOption = None,
    chains: ChainsOption = None,
    seed: SeedOption = None,
    cluster: ClusterOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the results.", show_default="NAME-compare")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are in the folder.")] = False,
    explain: ExplainOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit with several samplers and compare them.

    The settings are the same for all, and one report sets them side by side. FILE is a problem file, EXAMPLE the name
    of a bundled example.
    """
    from equifinal.cli.arguments import read_names
    from equifinal.report.compare_page import write_comparison
    from equifinal.report.fit import with_report
    from equifinal.studies.comparison import compare as compare_samplers
    from equifinal.studies.comparison import require_several
    from equifinal.studies.folder import REPORT
    from equifinal.words.comparison import comparison_json, comparison_lines

    asked = read_names(samplers)
    require_several(asked)  # a mistake is better found before anything is read
    loaded = load_problem(problem)
    folder = out or Path(f"{loaded.name}-compare")
    settings: dict[str, Any] = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed}
    show = not quiet and not as_json
    with executor_of(cluster, 0, "processes") as executor:
        comparison = compare_samplers(
            loaded, asked, settings, folder, overwrite=overwrite, executor=executor, progress=show
        )
    fits = {name: with_report(done, progress=show) for name, done in comparison.fits.items()}
    comparison = replace(comparison, fits=fits)
    page = write_comparison(comparison, folder / REPORT)
    if as_json:
        print_json(comparison_json(comparison) | {"report": str(page)})
        return
    with explaining(explain):
        print("\n".join(comparison_lines(comparison)))
        print(f"report: {page}")
    if any(done.interrupted for done in fits.values()):
        raise typer.Exit(130)


def _told(written: Path, as_json: bool) -> None:
    if as_json:
        print_json({"report": str(written)})
    else:
        print(f"wrote {written}")
