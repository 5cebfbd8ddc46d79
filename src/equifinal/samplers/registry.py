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
    """A sampler: in a word what it does, how it wants its fibre, and itself or the folder of its modules.

    A folder has a module ``sampler`` and a module ``settings``, which is quickly imported and all that it takes to
    check what a user asks for.
    """

    help: str
    fibre: FibreUse
    home: str | Sampler

    @property
    def sampler(self) -> Sampler:
        """The sampler itself."""
        return import_module(f"{self.home}.sampler") if isinstance(self.home, str) else self.home

    @property
    def settings(self) -> Sampler:
        """Something that has its ``Settings`` and ``WARMUP``."""
        return import_module(f"{self.home}.settings") if isinstance(self.home, str) else self.home


_HERE = "equifinal.samplers"
_ENTRIES = {
    "collapsed": Entry("nearly independent draws of the combinations", FibreUse.COARSEST, f"{_HERE}.collapsed"),
    "pseudo-marginal": Entry("a Metropolis walk on the combinations", FibreUse.EXACT, f"{_HERE}.pseudo_marginal"),
    "geometric": Entry("RATTLE moves along the fibre", FibreUse.EXACT, f"{_HERE}.geometric"),
    "random-walk": Entry("adaptive Metropolis, the baseline", FibreUse.EXACT, f"{_HERE}.random_walk"),
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
    return entry(name).sampler


def require_known(name: object) -> None:
    """Raise `DataError` with a suggestion unless there is such a sampler."""
    if name not in names():
        hint = did_you_mean(str(name), names())
        raise DataError(f"unknown sampler '{name}'{hint} (known: {', '.join(names())})")
