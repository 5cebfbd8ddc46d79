"""Samplers by name. Each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from equifinal.errors import DataError, did_you_mean
from equifinal.samplers.protocol import FibreUse, Sampler

AUTO = "auto"


@dataclass(frozen=True)
class Entry:
    """A sampler: in a word what it does, how it wants its fibre, and itself or the module that it is."""

    help: str
    fibre: FibreUse
    home: str | Sampler


_ENTRIES = {
    "collapsed": Entry(
        "nearly independent draws of the combinations", FibreUse.COARSEST, "equifinal.samplers.collapsed.sampler"
    ),
    "pseudo-marginal": Entry(
        "a Metropolis walk on the combinations", FibreUse.EXACT, "equifinal.samplers.pseudo_marginal.sampler"
    ),
    "geometric": Entry("RATTLE moves along the fibre", FibreUse.EXACT, "equifinal.samplers.geometric.sampler"),
    "random-walk": Entry("adaptive Metropolis, the baseline", FibreUse.EXACT, "equifinal.samplers.random_walk.sampler"),
}


def register(name: str, sampler: Sampler, *, help: str, fibre: FibreUse = FibreUse.EXACT) -> None:
    """Add a sampler, to be used by its name everywhere. In worker processes it has to be registered as well."""
    if name in names():
        raise DataError(f"there is a sampler '{name}' already")
    _ENTRIES[name] = Entry(help, fibre, sampler)


def names() -> tuple[str, ...]:
    """Return everything that may be asked for: ``auto``, and the samplers it chooses from and others."""
    return (AUTO, *_ENTRIES)


def entries() -> Iterator[tuple[str, Entry]]:
    """Go through the samplers themselves, without ``auto``."""
    yield from _ENTRIES.items()


def entry(name: str) -> Entry:
    """Look a name up; ``auto`` tries the collapsed sampler first, and has its options."""
    require_known(name)
    return _ENTRIES["collapsed" if name == AUTO else name]


def sampler(name: str) -> Sampler:
    """Import a sampler."""
    home = entry(name).home
    return import_module(home) if isinstance(home, str) else home


def require_known(name: object) -> None:
    """Raise `DataError` with a suggestion unless there is such a sampler."""
    if name not in names():
        hint = did_you_mean(str(name), names())
        raise DataError(f"unknown sampler '{name}'{hint} (known: {', '.join(names())})")
