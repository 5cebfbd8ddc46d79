"""Commands on a problem before any fit: check it, copy or import one, analyse it."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from equifinal.cli.common import (
    EffortOption,
    ExplainOption,
    JsonOption,
    ProblemArgument,
    console,
    explaining,
    load_problem,
    show_analysis,
)
from equifinal.words.json_output import print_json


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
    explain: ExplainOption = False,
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
    end = time.monotonic() + time_limit
    analysis = analysed(loaded, time_limit=time_limit, effort=effort, seed=seed)
    if quantity:
        advice = advise_on(models, quantity, time_limit=_left(end), effort=effort, seed=seed)
        analysis = replace(analysis, advice=tuple(advice))
    judged: Any = {}
    if states:
        from equifinal.identifiability.trajectories import judge_trajectories

        verdicts = judge_trajectories(models, analysis, time_limit=_left(end), seed=seed)
        judged = {e.name: words for e, words in zip(loaded.experiments, verdicts, strict=True)}
    if as_json:
        from equifinal.words.identifiability import identifiability_json

        print_json(identifiability_json(analysis) | ({"trajectories": judged} if states else {}))
        return
    with explaining(explain):
        show_analysis(loaded.name, analysis)
        if states:
            from equifinal.words.identifiability import trajectories_page

            console().print(trajectories_page(judged))


def _left(end: float) -> float:
    """Seconds, but never none: what takes no time at all is still done."""
    return max(end - time.monotonic(), 0.01)


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
        print_json(problem_facts(loaded, nominal))
    else:
        print(problem_words(loaded, nominal))


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
            print_json(EXAMPLES)
        else:
            width = max(map(len, EXAMPLES))
            print("\n".join(f"{key:<{width}}  {text}" for key, text in EXAMPLES.items()))
            print(
                f"\nRun one:  equifinal fit {next(iter(EXAMPLES))}\nCopy one: equifinal examples {next(iter(EXAMPLES))}"
            )
        return
    written = [str(path) for path in copy_example(name, to)]
    if as_json:
        print_json({"written": written})
    else:
        print("\n".join(f"wrote {path}" for path in written))
