"""Commands that solve a model at given parameters: simulations, and other parameters with the same output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from equifinal.cli.common import AtOption, EffortOption, JsonOption, ProblemArgument, console, load_problem
from equifinal.words.json_output import print_json


def simulate(
    problem: ProblemArgument,
    at: AtOption = None,
    times: Annotated[
        str,
        typer.Option(metavar="TIMES", help="Times, as 1,2,5 or start:stop:step.", show_default="those of the data"),
    ] = "",
    noise: Annotated[
        bool, typer.Option("--noise", help="Draw noisy observations (increments where declared).")
    ] = False,
    states: Annotated[bool, typer.Option("--states", help="Include the states.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the noise.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV file to write.", show_default="standard output")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve the model at given parameters, as CSV.

    FILE is a problem file, EXAMPLE the name of a bundled example. Parameters left out are at their nominal value, or
    else their prior's median.
    """
    from equifinal.cli.arguments import read_times, read_values
    from equifinal.words import simulations as simulation_table

    loaded = load_problem(problem, data=not times)  # with times given, the data need not be there yet
    values, assumed = read_values(loaded, at or [])
    if assumed:
        origin = "nominal value" if loaded.nominal else "prior's median"
        print(f"at their {origin}: " + ", ".join(f"{k} = {v:.6g}" for k, v in assumed.items()), file=sys.stderr)
    tables = simulation_table.tables(loaded, values, read_times(times), noise, states, seed)
    if out:
        for path in simulation_table.write(tables, out):
            print(f"wrote {path}", file=sys.stderr)
    if as_json:
        print_json({"parameters": values, "experiments": [table.to_json() for table in tables]})
    elif not out:
        print("\n".join(table.to_csv() for table in tables), end="")


def equivalents(
    problem: ProblemArgument,
    at: AtOption = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", help="Number of parameter vectors, the given one included.")
    ] = 6,
    combination: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPRESSION",
            help="An identifiable combination, in place of the analysis; may be repeated.",
            show_default="by analysis",
        ),
    ] = None,
    times: Annotated[
        str,
        typer.Option(metavar="TIMES", help="Times, as 1,2,5 or start:stop:step.", show_default="the span of the data"),
    ] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random points.")] = 0,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit for the analysis, in seconds.")
    ] = 60.0,
    effort: EffortOption = 3.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Figure to write: .png, .svg or .pdf.", show_default="NAME-equivalents.png"),
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Write no figure.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find other parameters with the same output.

    Simulations show that the outputs agree. FILE is a problem file, EXAMPLE the name of a bundled example. Parameters
    left out are at their prior's median.
    """
    from equifinal.cli.arguments import read_times, read_values
    from equifinal.errors import DataError
    from equifinal.fibre.of_problem import require_priors
    from equifinal.plots import style
    from equifinal.prediction import equivalents as same_output
    from equifinal.words.equivalents import equivalents_page

    if no_plot and plot:
        raise DataError("--plot and --no-plot contradict each other")
    asked = read_times(times)
    try:
        loaded = load_problem(problem)
    except DataError:
        if asked is None:
            raise
        loaded = load_problem(problem, data=False)  # with times given, the data need not be there yet
    figure = plot or Path(f"{loaded.name}-equivalents.png")
    if not no_plot:
        style.check_path(figure)
    require_priors(loaded)
    values, assumed = read_values(loaded, at or [])
    result = same_output.equivalents(
        loaded,
        values,
        number,
        combinations=combination or (),
        times=asked,
        seed=seed,
        time_limit=time_limit,
        effort=effort,
    )
    if assumed:
        origin = "nominal value" if loaded.nominal else "prior's median"
        print(f"at their {origin}: " + ", ".join(f"{k} = {v:.6g}" for k, v in assumed.items()), file=sys.stderr)
    if as_json:
        print_json(result.to_json())
    else:
        console().print(equivalents_page(result))
    if not no_plot:
        from equifinal.plots.equivalents import plot_equivalents

        style.save(plot_equivalents(result), figure)
        print(f"wrote {figure}", file=sys.stderr)
