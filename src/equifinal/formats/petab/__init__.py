"""PEtab, versions 1 and 2: parameter estimation problems as a YAML file, tables and a model in SBML.

The tables are read here rather than with the library ``petab``: every error names file and row, a missing prior of
version 1 is what its specification says, formulas become exact expressions without passing through a computer algebra
system, and nothing slow is imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equifinal.problem.problem import Problem

KIND = "a PEtab problem (YAML)"
ENDINGS = (".yaml", ".yml")


def recognises(path: Path) -> bool:
    """Recognise a file by its ending."""
    return path.suffix.lower() in ENDINGS


def load(path: Path, *, data: bool = True) -> Problem:
    """Read a problem; its tables are always needed."""
    from equifinal.formats.petab.reading import problem_of

    return problem_of(path)
