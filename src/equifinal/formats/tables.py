"""Tables of a problem file: checks of their keys, and errors that say which table they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from equifinal.errors import DataError, EquifinalError, ModelError, did_you_mean


def table_of(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table under a key; empty if there is none."""
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise DataError(f"[{key}] must be a table, not {value!r}")
    return value


def entries_of(document: Mapping[str, Any], key: str, title: str) -> list[Mapping[str, Any]]:
    """The tables of a list of tables, such as those under ``[[dose]]``."""
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{key} must be written as [[{title}]], with double brackets, once for each")
    return value


def check_keys(table: Mapping[str, Any], known: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            hint = did_you_mean(key, [*known, *also]) or f" (known: {', '.join(known)})"
            raise DataError(f"{where} has an unknown key '{key}'{hint}")


def named(table: Mapping[str, Any], key: str, what: str) -> tuple[str, dict[str, Any]]:
    """The name under a key of a table, and what else is in it."""
    name = table.get(key)
    if not isinstance(name, str):
        wrong = next((other for other in table if did_you_mean(other, [key])), "")
        hint = f" ('{wrong}' is not known; did you mean '{key}'?)" if wrong and wrong != key else ""
        raise DataError(f'needs {key} = "...", the name of {what}{hint}')
    return name, {other: value for other, value in table.items() if other != key}


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Prefix errors with the table they came from."""
    try:
        yield
    except ModelError as error:  # lines are those of the equations, where this is not
        raise DataError(f"{where}: {error.message if error.line is None else error}") from None
    except EquifinalError as error:
        raise DataError(f"{where}: {error}") from None
