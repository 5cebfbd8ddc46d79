"""Commands that run many fits: calibration, and the paper's case studies; registered by `equifinal.cli.app`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from equifinal.cli.common import JsonOption, ProblemArgument, console
from equifinal.words.json_output import print_json


def calibrate(
    problem: ProblemArgument,
    replicates: Annotated[int, typer.Option(help="How many data sets to simulate and fit.")] = 200,
    sampler: Annotated[
        str | None,
        typer.Option(help="auto, collapsed, pseudo-marginal, geometric or random-walk", show_default="auto"),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept, a chain.", show_default="1000")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warm-up iterations, a chain.", show_default="as needed")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.", show_default="4")] = None,
    thin: Annotated[int | None, typer.Option(help="Keep one iteration in so many.", show_default="1")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same ranks.", show_default="0")] = None,
    aux: Annotated[int | None, typer.Option(help="Points on each fibre.", show_default="as needed")] = None,
    swap: Annotated[bool, typer.Option("--swap", help="Swaps of roots for the random walk.")] = False,
    ranked: Annotated[int, typer.Option(help="Among how many draws of a fit the truth is ranked.")] = 99,
    workers: Annotated[int, typer.Option(help="Run replicates in so many processes.", show_default="here")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="NAME-calibration")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Is a fit of this model right? Fit simulated data again and again, and test where the truth ranks among the draws.

    A calibration that was killed is gone on with by the same command.
    """
    from equifinal.examples import find_problem
    from equifinal.formats.toml import load
    from equifinal.report import calibration as calibration_files
    from equifinal.words.calibration import calibration_json, calibration_page

    options = {**({} if aux is None else {"aux": aux}), **({"swap": True} if swap else {})}
    loaded = load(find_problem(problem))
    found, written = calibration_files.calibrate_to(
        out or Path(f"{loaded.name}-calibration"),
        loaded,
        replicates=replicates,
        sampler=sampler,
        draws=draws,
        warmup=warmup,
        chains=chains,
        thin=thin,
        seed=seed,
        options=options or None,
        ranked=ranked,
        workers=workers,
        progress=not quiet and not as_json,
    )
    if as_json:
        print_json(calibration_json(found))
    else:
        console().print(calibration_page(found))
    for path in written:
        print(f"wrote {path}", file=sys.stderr)


def paper(
    case: Annotated[str, typer.Argument(metavar="si|hiv", help="A case study.")],
    quick: Annotated[bool, typer.Option("--quick", help="A twentieth of the iterations.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures.", show_default="paper-CASE")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same draws.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The case studies of the paper behind this package: all samplers side by side, against the exact posterior."""
    from equifinal.report.paper.folder import study
    from equifinal.studies.paper.cases import case_study
    from equifinal.studies.progress import show_run

    case_study(case)
    with show_run(not quiet and not as_json) as (report, _):
        done = study(case, out or Path(f"paper-{case}"), quick=quick, seed=seed, report=report)
    if as_json:
        print_json(done.to_json())
    else:
        print(done.to_markdown(), end="")
    for path in done.written:
        print(f"wrote {path}", file=sys.stderr)
