"""The command that samples a posterior."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equifinal.cli.common import (
    AuxOption,
    ChainsOption,
    ClusterOption,
    DrawsOption,
    EssOption,
    ExplainOption,
    JsonOption,
    MaxSolvesOption,
    MaxTimeOption,
    ProblemsArgument,
    QuietOption,
    SamplerOption,
    SeedOption,
    ThinOption,
    WarmupOption,
    console,
    executor_of,
    explaining,
    load_problem,
    show_analysis,
)
from equifinal.words.json_output import print_json

if TYPE_CHECKING:
    from equifinal.identifiability.verdicts import Identifiability
    from equifinal.results.conformity import Discord


def fit(
    problems: ProblemsArgument,
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
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the results.", show_default="NAME-run, or fits")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are in the folder.")] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of processes to run chains in, or several problems.",
            show_default="threads; of several problems, one for each core",
        ),
    ] = None,
    cluster: ClusterOption = None,
    analysis: Annotated[bool, typer.Option(help="Show the identifiability analysis first.")] = True,
    report: Annotated[bool, typer.Option(help="Write report.html beside the results.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all diagnostics.")] = False,
    explain: ExplainOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample the posterior, and write results and a report.

    FILE is a problem file, EXAMPLE the name of a bundled example. Several of them are fitted side by side, each into a
    folder of its own, with one page on all of them. Run the same command to resume an interrupted fit.
    """
    from rich.text import Text

    from equifinal.studies.fit import fit as fit_problem
    from equifinal.words.conformity import discord_sentence
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
    show = not quiet and not as_json
    if len(problems) > 1:
        from equifinal.cli.many import fit_side_by_side

        fit_side_by_side(
            problems,
            settings,
            out or Path("fits"),
            processes=processes,
            cluster=cluster,
            overwrite=overwrite,
            analysis=analysis or report,
            report=report,
            progress=show,
            as_json=as_json,
        )
        return
    (problem,) = problems
    loaded = load_problem(problem)
    finish = None
    if report:
        from equifinal.report.fit import with_report

        finish = partial(with_report, progress=show)

    def announce(known: Identifiability | None, before: list[Discord]) -> None:
        if known is not None and analysis:
            show_analysis(loaded.name, known)
        for discord in before:
            console().print("[yellow]![/]", Text(discord_sentence(discord)), highlight=False)

    with explaining(explain and not as_json), executor_of(cluster, processes or 0, "processes") as executor:
        done = fit_problem(
            loaded,
            settings,
            folder=out,
            overwrite=overwrite,
            executor=executor,
            progress=show,
            announce=None if as_json else announce,
            analysis=analysis or report,
            finish=finish,
            source=problem,
        )
        if not as_json:
            show_fit(done, verbose)
    if as_json:
        print_json(fit_json(done))
    if done.interrupted:
        raise typer.Exit(130)
