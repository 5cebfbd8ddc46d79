"""The command line. It parses arguments and prints; heavy imports live inside the commands, so that help is instant.

Exit codes: 0 fine, 2 the user's error, 1 ours, 130 interrupted. With ``--json`` standard output is one JSON document.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from equifinal.cli import results as cli_results
from equifinal.cli import studies as cli_studies
from equifinal.cli.common import JsonOption, ProblemArgument, console
from equifinal.words.json_output import print_json as _print_json

app = typer.Typer(
    name="equifinal",
    help="Bayesian inference for ODE models whose parameters cannot all be identified.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; no traceback reaches the user."""
    from equifinal.errors import EquifinalError, InterruptedRunError

    for name in ("stdout", "stderr"):  # closed by whoever started us
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without Greek letters is no reason to stop
            stream.reconfigure(errors="replace")
    try:
        app()
    except InterruptedRunError as error:
        print(f"{error}; the same command goes on from there", file=sys.stderr)
        sys.exit(130)
    except EquifinalError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"error: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("EQUIFINAL_DEBUG"):
            raise
        with tempfile.NamedTemporaryFile("w", prefix="equifinal-", suffix=".log", delete=False) as log:
            traceback.print_exc(file=log)
        print(
            f"internal error: {type(error).__name__}: {error}\n"
            f"This is a fault in equifinal; please report it with the details in {log.name}",
            file=sys.stderr,
        )
        sys.exit(1)


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _version(value: bool) -> None:
    if value:
        from equifinal import __version__

        print(f"equifinal {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def analyse(
    problem: ProblemArgument,
    time_limit: Annotated[float, typer.Option(help="Seconds to think; then what was found so far.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the random points.")] = 0,
    quantity: Annotated[str, typer.Option(help="Advise on this quantity rather than on everything.")] = "",
    as_json: JsonOption = False,
) -> None:
    """What ideal data could determine: every parameter, the identifiable combinations, and what would help."""
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.identifiability.analysis import analyse as analyse_models
    from equifinal.identifiability.quantity_advice import advise_on

    loaded = load(find_problem(problem))
    models = [e.model for e in loaded.experiments]
    found = analyse_models(models, time_limit=time_limit, seed=seed)
    if quantity:
        advice = advise_on(models, quantity, time_limit=time_limit, seed=seed)
        found = replace(found, advice=tuple(advice))
    if as_json:
        from equifinal.words.identifiability import identifiability_json

        _print_json(identifiability_json(found))
    else:
        _show_analysis(loaded.name, found)


def _show_analysis(name: str, found: Any) -> None:
    from equifinal.words.identifiability import identifiability_page

    console().print(identifiability_page(name, found))


@app.command()
def fit(
    problem: ProblemArgument,
    sampler: Annotated[
        str | None,
        typer.Option(help="auto, collapsed, pseudo-marginal, geometric or random-walk", show_default="auto"),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept, a chain.", show_default="10000")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warm-up iterations, a chain.", show_default="as needed")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.", show_default="4")] = None,
    thin: Annotated[int | None, typer.Option(help="Keep one iteration in so many.", show_default="1")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same draws.", show_default="0")] = None,
    aux: Annotated[int | None, typer.Option(help="Points on each fibre.", show_default="as needed")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="NAME-run")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    processes: Annotated[int, typer.Option(help="Run chains in so many processes.", show_default="threads")] = 0,
    analysis: Annotated[bool, typer.Option(help="Show first what can be known.")] = True,
    report: Annotated[bool, typer.Option(help="Write a page on the results, report.html.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also all diagnostics.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Sample the posterior of a problem. A run that was killed is taken up again by the same command."""
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.studies.fit import fit as fit_problem
    from equifinal.words.fit import fit_json, show_fit

    settings: dict[str, Any] = {
        "sampler": sampler,
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "thin": thin,
        "seed": seed,
        "options": None if aux is None else {"aux": aux},
    }
    loaded = load(find_problem(problem))

    show = not quiet and not as_json
    done = fit_problem(
        loaded,
        settings,
        folder=out,
        overwrite=overwrite,
        processes=processes,
        progress=show,
        announce=(lambda found: _show_analysis(loaded.name, found)) if analysis and not as_json else None,
        analysis=analysis or report,
    )
    if report:
        from equifinal.report.fit import with_report

        done = with_report(done, progress=show)
    if as_json:
        _print_json(fit_json(done))
    else:
        show_fit(done, verbose)
    if done.interrupted:
        raise typer.Exit(130)


@app.command()
def check(problem: ProblemArgument, as_json: JsonOption = False) -> None:
    """Read and validate a problem, and show it back in words."""
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.studies.sample import run_settings
    from equifinal.words.problem import problem_facts, problem_words

    loaded = load(find_problem(problem))
    run_settings(loaded, {})  # a mistake under [sampling] is better found now
    if as_json:
        _print_json(problem_facts(loaded))
    else:
        print(problem_words(loaded))


@app.command()
def simulate(
    problem: ProblemArgument,
    at: Annotated[list[str] | None, typer.Option(help="A parameter's value, as name=value; may be repeated.")] = None,
    times: Annotated[
        str, typer.Option(help="Times as 1,2,5 or start:stop:step.", show_default="those of the data")
    ] = "",
    noise: Annotated[bool, typer.Option("--noise", help="Draw observations (increments where declared).")] = False,
    states: Annotated[bool, typer.Option("--states", help="Also the states.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A CSV file to write.", show_default="stdout")] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve the model at given parameters (those left out: their prior's median) and print the outputs as CSV."""
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.words import simulations as simulation_table

    loaded = load(find_problem(problem), data=not times)  # with times given, the data need not be there yet
    values, assumed = simulation_table.read_values(loaded, at or [])
    if assumed:
        print("at the prior's median: " + ", ".join(f"{k} = {v:.6g}" for k, v in assumed.items()), file=sys.stderr)
    tables = simulation_table.tables(loaded, values, times, noise, states, seed)
    if out:
        for path in simulation_table.write(tables, out):
            print(f"wrote {path}", file=sys.stderr)
    if as_json:
        _print_json({"parameters": values, "experiments": [table.to_json() for table in tables]})
    elif not out:
        print("\n".join(table.to_csv() for table in tables), end="")


@app.command()
def equivalents(
    problem: ProblemArgument,
    at: Annotated[list[str] | None, typer.Option(help="A parameter's value, as name=value; may be repeated.")] = None,
    number: Annotated[int, typer.Option("--number", "-n", help="How many parameter vectors.")] = 6,
    combination: Annotated[
        list[str] | None,
        typer.Option(help="An identifiable combination known by hand; may be repeated.", show_default="by analysis"),
    ] = None,
    times: Annotated[
        str, typer.Option(help="Times as 1,2,5 or start:stop:step.", show_default="the span of the data")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of the random points.")] = 0,
    time_limit: Annotated[float, typer.Option(help="Seconds for the analysis.")] = 60.0,
    plot: Annotated[
        Path | None, typer.Option(help="The figure: .png, .svg or .pdf.", show_default="NAME-equivalents.png")
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="No figure.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Other parameters with the same output as those given (left out: prior's median), and the proof by simulation."""
    from equifinal.errors import DataError
    from equifinal.examples import find_problem
    from equifinal.fibre.of_problem import require_priors
    from equifinal.formats.toml import load
    from equifinal.plots import style
    from equifinal.prediction import equivalents as same_output
    from equifinal.words import simulations as simulation_table
    from equifinal.words.equivalents import equivalents_page

    if no_plot and plot:
        raise DataError("--plot and --no-plot contradict each other")
    path = find_problem(problem)
    asked = simulation_table.read_times(times)
    try:
        loaded = load(path)
    except DataError:
        if asked is None:
            raise
        loaded = load(path, data=False)  # with times given, the data need not be there yet
    figure = plot or Path(f"{loaded.name}-equivalents.png")
    if not no_plot:
        style.check_path(figure)
    require_priors(loaded)
    values, assumed = simulation_table.read_values(loaded, at or [])
    found = same_output.equivalents(
        loaded,
        values,
        number,
        combinations=combination or (),
        times=asked,
        seed=seed,
        time_limit=time_limit,
    )
    if assumed:
        print("at the prior's median: " + ", ".join(f"{k} = {v:.6g}" for k, v in assumed.items()), file=sys.stderr)
    if as_json:
        _print_json(found.to_json())
    else:
        console().print(equivalents_page(found))
    if not no_plot:
        from equifinal.plots.equivalents import plot_equivalents

        style.save(plot_equivalents(found), figure)
        print(f"wrote {figure}", file=sys.stderr)


@app.command()
def examples(
    name: Annotated[str | None, typer.Argument(help="An example to copy out.")] = None,
    to: Annotated[Path, typer.Option(help="The folder to copy it to.")] = Path("."),
    as_json: JsonOption = False,
) -> None:
    """List the bundled examples, or copy one out."""
    from equifinal.examples import EXAMPLES, copy_example

    if name is None:
        if as_json:
            _print_json(EXAMPLES)
        else:
            width = max(map(len, EXAMPLES))
            print("\n".join(f"{key:<{width}}  {text}" for key, text in EXAMPLES.items()))
            print(
                f"\nRun one:  equifinal fit {next(iter(EXAMPLES))}\nCopy one: equifinal examples {next(iter(EXAMPLES))}"
            )
        return
    written = [str(path) for path in copy_example(name, to)]
    if as_json:
        _print_json({"written": written})
    else:
        print("\n".join(f"wrote {path}" for path in written))


for command in (cli_results.predict, cli_results.report, cli_results.compare, cli_studies.calibrate, cli_studies.paper):
    app.command()(command)
