"""What several commands have in common."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from equifinal.problem.problem import Problem

# hidden, so that help does not show Python types; the docstring of each command says what they are
ProblemArgument = Annotated[str, typer.Argument(metavar="FILE|EXAMPLE", hidden=True)]
ProblemsArgument = Annotated[list[str], typer.Argument(metavar="FILE|EXAMPLE...", hidden=True)]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", hidden=True)]
SamplerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="auto, collapsed, pseudo-marginal, geometric or random-walk.", show_default="auto"
    ),
]
DrawsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Draws kept per chain.", show_default="until --ess is reached")
]
EssOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Without --draws, go on to so many effective draws.", show_default="400"),
]
MaxSolvesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Without --draws, end after so many ODE solves.", show_default="5 million for each experiment"
    ),
]
MaxTimeOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="End sampling after this time.", show_default="no limit")
]
WarmupOption = Annotated[
    int | None, typer.Option(metavar="N", help="Warm-up iterations per chain.", show_default="as needed")
]
ChainsOption = Annotated[int | None, typer.Option(metavar="N", help="Number of chains.", show_default="4")]
ThinOption = Annotated[int | None, typer.Option(metavar="N", help="Keep every N-th iteration.", show_default="1")]
AuxOption = Annotated[
    int | None, typer.Option(metavar="N", help="Random points on each fibre.", show_default="as needed")
]
SeedOption = Annotated[
    int | None, typer.Option(metavar="N", help="The same seed gives the same draws.", show_default="0")
]
AtOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Value of a parameter; may be repeated.")
]
EffortOption = Annotated[
    float, typer.Option(metavar="NUMBER", help="Amount of work after which the analysis gives up on a question.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on the dask cluster of this scheduler, or scheduler file.",
        show_default="this machine",
    ),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Explain the technical terms on screen.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]


# arguments of the library whose flags have other names
FLAGS = {"folder": "--out", "record": "--out", "n": "--number"}


def with_flags(message: str) -> str:
    """Show flags where a message of the library names its arguments, as in ```overwrite=True```."""
    return re.sub(r"`(\w+)(=True)?`", lambda m: FLAGS.get(m[1], f"--{m[1].replace('_', '-')}"), message)


def load_problem(file_or_example: str, *, data: bool = True) -> Problem:
    """Load a problem file of any known format, or a bundled example; with ``data=False`` its data may be missing."""
    from equifinal.examples import find_problem
    from equifinal.formats.load import load

    return load(find_problem(file_or_example), data=data)


def executor_of(cluster: str | None, number: int, what: str) -> AbstractContextManager[Executor | None]:
    """The cluster, if there is one; else so many processes of this machine."""
    from equifinal.errors import DataError
    from equifinal.samplers.running.cluster import cluster as cluster_at
    from equifinal.samplers.running.executors import workers

    if cluster is None:
        return workers(number, what)
    if number:
        raise DataError(f"`{what}` are of this machine, so that there is no use of it with `cluster`")
    return cluster_at(cluster)


class _Copied:
    """Standard output that is also remembered."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.text = stream, ""

    def write(self, text: str) -> int:
        self.text += text
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def explaining(wanted: bool) -> Iterator[None]:
    """Explain, at the end, every technical term that was printed on standard output in between."""
    if not wanted:
        yield
        return
    from equifinal.words.terms import explanation

    copied = _Copied(sys.stdout)
    with redirect_stdout(copied):
        yield
    if text := explanation(copied.text):
        print(f"\nTerms\n{text}")


def show_analysis(name: str, analysis: Any) -> None:
    from equifinal.words.identifiability import identifiability_page

    console().print(identifiability_page(name, analysis))


def console() -> Any:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=100)
