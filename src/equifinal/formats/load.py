"""The one `load`: a problem from a file of any known format.

A format is a module of this room that fits `Format` and stands in `FORMATS`; nothing else has to know of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from equifinal.errors import DataError
from equifinal.examples import find_problem
from equifinal.formats import json, petab, sbml, toml
from equifinal.problem.problem import Problem


class Format(Protocol):
    """What a module does for a format. What it needs beyond this package it imports when it loads.

    Attributes
    ----------
    KIND
        What such a file is, in words: "a problem file (TOML)".
    """

    KIND: str

    def recognises(self, path: Path) -> bool:
        """Whether a file is of this format, from its name or a look inside; no error, whatever is there or is not."""

    def load(self, path: Path, *, data: bool = True) -> Problem:
        """The problem; with ``data=False``, data that are kept in other files need not be there.

        Raises
        ------
        DataError, ModelError
            Saying where, what, and what would be right.
        """


FORMATS: tuple[Format, ...] = (toml, json, petab, sbml)


def load(path: str | Path, *, data: bool = True) -> Problem:
    """Read a problem from a file of any known format, or a bundled example by its name.

    Parameters
    ----------
    path
        A problem file (TOML, JSON, PEtab, SBML), or the name of an example such as ``"si"``.
    data
        With False, its data need not be there yet.

    Examples
    --------
    >>> import equifinal
    >>> equifinal.load("si")
    <Problem si: 4 parameters, 10 observations>

    Raises
    ------
    DataError, ModelError
        Saying where, what, and what would be right.
    """
    path = find_problem(path) if isinstance(path, str) else Path(path)
    for known in FORMATS:
        if known.recognises(path):
            return known.load(path, data=data)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the problem file inside it")
    if not path.exists():
        raise DataError(f"cannot read {path}: there is no such file")
    kinds = ", or ".join(known.KIND for known in FORMATS)
    raise DataError(f"{path} is not a problem of a known kind; what can be read is {kinds}")
