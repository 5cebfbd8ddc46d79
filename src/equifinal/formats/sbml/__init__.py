"""SBML, Level 2 and 3: a model alone, to be analysed and simulated; a fit needs data, which PEtab adds.

Every species that changes is observed, as concentration or amount, whichever its name stands for in the file. Constant
parameters of the model and of its reactions are unknown, with their values as nominal ones, unless they decide which
of several formulas holds: then they are the numbers that they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equifinal.problem.problem import Problem

KIND = "a model in SBML (XML)"
ENDINGS = (".xml", ".sbml")


def recognises(path: Path) -> bool:
    """Recognise a file by its ending."""
    return path.suffix.lower() in ENDINGS


def load(path: Path, *, data: bool = True) -> Problem:
    """Read a model as a problem without data."""
    from equifinal.formats.sbml.alone import problem_of

    return problem_of(path)
