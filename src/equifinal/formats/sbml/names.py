"""Identifiers of a file as names of the model language."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from equifinal.language.functions import FUNCTIONS
from equifinal.language.parser import KNOWN_FUNCTIONS

# what means something else in the language (m: in noise), or in results
RESERVED = {
    "t",
    "m",
    "and",
    "or",
    "not",
    "chain",
    "draw",
    "lp",
    "log_like",
    "acceptance_rate",
    *FUNCTIONS,
    *KNOWN_FUNCTIONS,
}


def renamed(identifiers: Iterable[str]) -> dict[str, str]:
    """A name for each identifier: itself, or where that is taken or means something else, with ``_`` at its end."""
    given = dict.fromkeys(identifiers)
    found: dict[str, str] = {}
    for identifier in given:
        name = identifier
        if name in RESERVED:
            name = fresh(name + "_", {*given, *found.values()})
        found[identifier] = name
    return found


def fresh(name: str, taken: Collection[str]) -> str:
    """The name itself or, where it is taken, with as many ``_`` at its end as it needs."""
    while name in taken or name in RESERVED:
        name += "_"
    return name
