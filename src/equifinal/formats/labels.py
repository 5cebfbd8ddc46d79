"""Labels and units, from the [parameters] and [labels] tables of a problem file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equifinal.errors import DataError
from equifinal.formats.tables import check_keys, inside, table_of
from equifinal.language.expression import TIME
from equifinal.language.tokens import canonical_name
from equifinal.problem.labels import Label

KEYS = ("label", "unit")


def read_labels(document: Mapping[str, Any], known: set[str]) -> dict[str, Label]:
    """Every label by name; ``time`` is time itself, unless something is named so."""
    found: dict[str, Label] = {}
    for name, table in table_of(document, "parameters").items():
        given = {key: table[key] for key in KEYS if isinstance(table, dict) and key in table}
        if given:
            with inside(f"[parameters] {name}"):
                found[canonical_name(name)] = Label(**given)
    for key, value in table_of(document, "labels").items():
        with inside(f"[labels] {key}"):
            name = TIME if key == "time" and key not in known else canonical_name(key)
            if name in found:
                raise DataError("it is labelled under [parameters] already")
            if isinstance(value, str):
                value = {"label": value}
            if not isinstance(value, dict):
                raise DataError(f'expected text, or a table such as {{ label = "...", unit = "mg/L" }}, not {value!r}')
            check_keys(value, KEYS, "it")
            found[name] = Label(**value)
    return found
