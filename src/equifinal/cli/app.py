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

from equifinal.cli import export as cli_export
from equifinal.cli import results as cli_results
from equifinal.cli import studies as cli_studies
from equifinal.cli.common import (
    AtOption,
    AuxOption,
    ChainsOption,
    DrawsOption,
    EffortOption,
    EssOption,
    JsonOption,
    MaxSolvesOption,
    MaxTimeOption,
    ProblemArgument,
    QuietOption,
    SamplerOption,
    SeedOption,
    ThinOption,
    WarmupOption,
    console,
    load_problem,
    with_flags,
)
from equifinal.words.json_output import print_json as _print_json

app = typer.Typer(
    name="equifinal",
    help="Bayesian inference for ODE models whose parameters cannot all be identified.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help names values as FILE or N, the boxed one by their Python types
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
        print(f"{error}; run the same command to resume", file=sys.stderr)
        sys.exit(130)
    except EquifinalError as error:
        print(f"error: {with_flags(str(error))}", file=sys.stderr)
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
            f"This is a bug in equifinal; please report it, with the details in {log.name}",
            file=sys.stderr,
        )
        sys.exit(1)


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"warning: {with_flags(str(message))}", file=sys.stderr)


def _version(value: bool) -> None:
    if value:
        from equifinal import __version__

        print(f"equifinal {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def analyse(
    problem: ProblemArgument,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit in seconds; partial results are reported.")
    ] = 60.0,
    effort: EffortOption = 3.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random points.")] = 0,
    quantity: Annotated[
        str, typer.Option(metavar="NAME", help="Say what would make this quantity identifiable, not everything.")
    ] = "",
    states: Annotated[
        bool,
        typer.Option(
            "--states", help="Also say which states, and which quantities that depend on states, the data determine."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which parameters ideal data could determine.

    The analysis also gives the identifiable combinations of parameters, and says what would help. FILE is a problem
    file, EXAMPLE the name of a bundled example.
    """
    from equifinal.identifiability.quantity_advice import advise_on
    from equifinal.posterior.design import analysed

    loaded = load_problem(problem)
    models = [e.analysed for e in loaded.experiments]
    analysis = analysed(loaded, time_limit=time_limit, effort=effort, seed=seed)
    if quantity:
        advice = advise_on(models, quantity, time_limit=time_limit, effort=effort, seed=seed)
        analysis = replace(analysis, advice=tuple(advice))
    judged: Any = {}
    if states:
        from equifinal.identifiability.trajectories import judge_trajectories

        verdicts = judge_trajectories(models, analysis, time_limit=time_limit, seed=seed)
        judged = {e.name: words for e, words in zip(loaded.experiments, verdicts, strict=True)}
    if as_json:
        from equifinal.words.identifiability import identifiability_json

        _print_json(identifiability_json(analysis) | ({"trajectories": judged} if states else {}))
    else:
        _show_analysis(loaded.name, analysis)
        if states:
            from equifinal.words.identifiability import trajectories_page

            console().print(trajectories_page(judged))


def _show_analysis(name: str, analysis: Any) -> None:
    from equifinal.words.identifiability import identifiability_page

    console().print(identifiability_page(name, analysis))


@app.command()
def fit(
    problem: ProblemArgument,
    sampler: SamplerOption = None,
    draws: DrawsOption = None,
    warmup: WarmupOption = None,
    chains: ChainsOption = None,
    thin: ThinOption = None,
    ess: EssOption = None,
    max_solves: MaxSolvesOption = None,
    max_time: MaxTimeOption = None,
    seed: SeedOption = None,
    aux: AuxOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the results.", show_default="NAME-run")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are in the folder.")] = False,
    processes: Annotated[
        int, typer.Option(metavar="N", help="Number of processes to run chains in.", show_default="threads")
    ] = 0,
    analysis: Annotated[bool, typer.Option(help="Show the identifiability analysis first.")] = True,
    report: Annotated[bool, typer.Option(help="Write report.html beside the results.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all diagnostics.")] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample the posterior, and write results and a report.

    FILE is a problem file, EXAMPLE the name of a bundled example. Run the same command to resume an interrupted fit.
    """
    from equifinal.studies.fit import fit as fit_problem
    from equifinal.words.fit import fit_json, show_fit

    settings: dict[str, Any] = {
        "sampler": sampler,
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "thin": thin,
        "ess": ess,
        "max_solves": max_solves,
        "max_time": max_time,
        "seed": seed,
        "options": None if aux is None else {"aux": aux},
    }
    loaded = load_problem(problem)

    show = not quiet and not as_json
    done = fit_problem(
        loaded,
        settings,
        folder=out,
        overwrite=overwrite,
        processes=processes,
        progress=show,
        announce=(lambda known: _show_analysis(loaded.name, known)) if analysis and not as_json else None,
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
    """Validate a problem and describe it in words.

    FILE is a problem file, EXAMPLE the name of a bundled example.
    """
    from equifinal.posterior.nominal import at_nominal
    from equifinal.samplers.settings import run_settings
    from equifinal.words.problem import problem_facts, problem_words

    loaded = load_problem(problem)
    run_settings(loaded, {})  # a mistake under [sampling] is better found now
    nominal = at_nominal(loaded)
    if as_json:
        _print_json(problem_facts(loaded, nominal))
    else:
        print(problem_words(loaded, nominal))


@app.command("import")
def import_(
    problem: ProblemArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write, .toml or .json.", show_default="standard output")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a problem of any known format as a problem file of equifinal's own.

    FILE is a PEtab problem (YAML), a model in SBML (XML), or a problem file. What is written has the same posterior.
    """
    from equifinal.errors import DataError
    from equifinal.files import replace_file
    from equifinal.formats.json import problem_to_json
    from equifinal.formats.toml_writing import problem_to_toml

    loaded = load_problem(problem)
    if out is not None and out.exists() and not overwrite:
        raise DataError(f"{out} exists already; give another name, or `overwrite=True`")
    as_json = out is not None and out.suffix.lower() == ".json"
    text = problem_to_json(loaded) if as_json else problem_to_toml(loaded)
    if out is None:
        print(text, end="")
    else:
        replace_file(out, lambda path: path.write_text(text, encoding="utf-8"), "the problem")
        print(f"wrote {out}", file=sys.stderr)


@app.command()
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
        _print_json({"parameters": values, "experiments": [table.to_json() for table in tables]})
    elif not out:
        print("\n".join(table.to_csv() for table in tables), end="")


@app.command()
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
        _print_json(result.to_json())
    else:
        console().print(equivalents_page(result))
    if not no_plot:
        from equifinal.plots.equivalents import plot_equivalents

        style.save(plot_equivalents(result), figure)
        print(f"wrote {figure}", file=sys.stderr)


@app.command()
def examples(
    name: Annotated[str | None, typer.Argument(metavar="NAME", hidden=True)] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to copy the example to.")] = Path("."),
    as_json: JsonOption = False,
) -> None:
    """List the bundled examples, or copy one.

    NAME is the example whose files are copied.
    """
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


for command in (
    cli_results.predict,
    cli_results.report,
    cli_results.compare,
    cli_studies.calibrate,
    cli_studies.paper,
    cli_export.export,
):
    app.command()(command)
