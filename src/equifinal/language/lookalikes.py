"""Names that might be taken for others.

Once they are typeset, `k1` and `k_1` are both a k with the index 1. What typesets names asks here which of them must
stand as they were written, lest two parameters look like one. And new names must not be those of something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from equifinal.language.model import Model

_ALIKE: ContextVar[frozenset[str]] = ContextVar("alike", default=frozenset())


def looks_like_another(name: str) -> bool:
    """Whether a name has to stand as it was written, here and now."""
    return name in _ALIKE.get()


@contextmanager
def told_apart(names: Iterable[str], typeset: Callable[[str], str]) -> Iterator[None]:
    """For what is typeset inside, names of which several would look the same stand as they were written."""
    names = frozenset(names)
    looks = {name: typeset(name) for name in names}
    count = Counter(looks.values())
    token = _ALIKE.set(frozenset(name for name in names if count[looks[name]] > 1))
    try:
        yield
    finally:
        _ALIKE.reset(token)


def numbered(letter: str, count: int, taken: Iterable[str]) -> list[str]:
    """Names such as c1, c2 and so on, none of which is taken: with as many letters as it takes for that."""
    taken, prefix = set(taken), letter
    while any(f"{prefix}{i}" in taken for i in range(1, count + 1)):
        prefix += letter
    return [f"{prefix}{i}" for i in range(1, count + 1)]


def names_in(models: Iterable[Model]) -> Iterator[str]:
    """All names that stand in models."""
    for model in models:
        for part in (
            model.states,
            model.parameters,
            model.constants,
            model.inputs,
            model.definitions,
            model.quantities,
        ):
            yield from part
