"""What several commands have in common."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

ProblemArgument = Annotated[str, typer.Argument(metavar="FILE|EXAMPLE", help="A problem file, or a bundled example.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output, and nothing else, on stdout.")]


def console() -> Any:
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=100)
