"""Commands that run many fits: calibration and the case studies of the paper; `equifinal.cli.app` registers them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from equifinal.cli.common import (
    AuxOption,
    ChainsOption,
    ClusterOption,
    ExplainOption,
    JsonOption,
    ProblemArgument,
    QuietOption,
    SamplerOption,
    ThinOption,
    WarmupOption,
    console,
    executor_of,
    explaining,
    load_problem,
)
from equifinal.words.json_output import print_json


def calibrate(
    problem: ProblemArgument,
    replicates: Annotated[int, typer.Option(metavar="N", help="Number of data sets to simulate and fit.")] = 200,
    sampler: SamplerOption = None,
    draws: Annotated[int | None, typer.Option(metavar="N", help="Draws kept per chain.", show_default="1000")] = None,
    warmup: WarmupOption = None,
    chains: ChainsOption = None,
    thin: ThinOption = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same seed gives the same ranks.", show_default="0")
    ] = None,
    aux: AuxOption = None,
    swap: Annotated[bool, typer.Option("--swap", help="Let the random walk swap equivalent parameters.")] = False,
    ranked: Annotated[
        int, typer.Option(metavar="N", help="Number of draws per fit among which the true value is ranked.")
    ] = 99,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Number of processes to run replicates in.", show_default="this one")
    ] = 0,
    cluster: ClusterOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the results.", show_default="NAME-calibration")
    ] = None,
    explain: ExplainOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Test whether fits of a model are right.

    Simulated data are fitted again and again, and each true value is ranked among the draws: if everything is right,
    all ranks are equally likely. FILE is a problem file, EXAMPLE the name of a bundled example. Run the same command to
    resume an interrupted calibration.
    """
    from equifinal.report import calibration as calibration_files
    from equifinal.words.calibration import calibration_json, calibration_page

    options = {**({} if aux is None else {"aux": aux}), **({"swap": True} if swap else {})}
    loaded = load_problem(problem)
    with executor_of(cluster, workers, "workers") as executor:
        calibration, written = calibration_files.calibrate_to(
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
            executor=executor,
            progress=not quiet and not as_json,
        )
    if as_json:
        print_json(calibration_json(calibration))
    else:
        with explaining(explain):
            console().print(calibration_page(calibration))
    for path in written:
        print(f"wrote {path}", file=sys.stderr)


def paper(
    case: Annotated[str, typer.Argument(metavar="si|hiv", hidden=True)],
    quick: Annotated[bool, typer.Option("--quick", help="Run a twentieth of the iterations.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for tables and figures.", show_default="paper-CASE")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same draws.")] = 1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a case study of the underlying paper.

    All samplers are run and compared with the exact posterior.
    """
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
