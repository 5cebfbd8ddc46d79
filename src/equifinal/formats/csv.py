"""Data files: CSV with a header, a column of times and a column for each output; empty cells are missing."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from equifinal.errors import DataError, did_you_mean
from equifinal.files import read_text

MISSING = ("", "na", "nan", "n/a", "null", "none", ".")


class Table(NamedTuple):
    times: Sequence[float]
    values: Mapping[str, Sequence[float]]


def read_csv(path: Path, columns: Mapping[str, str], *, ignore: Sequence[str] = ()) -> Table:
    """Read the time column and those output columns that are there.

    Parameters
    ----------
    columns
        For ``time`` and each output, the name of its column.
    ignore
        Columns that are known not to be data; any other unknown column is an error, since it may be a misspelt output.
    """
    header, rows = read_rows(path, f"time,{_example(columns)}")
    for name in header:
        if name not in columns.values() and name not in ignore:
            hint = did_you_mean(name, columns.values())
            raise DataError(
                f"{path.name}: column '{name}' is not an output{hint}; to skip it, add ignore = [\"{name}\"]"
            )
    if columns["time"] not in header:
        raise DataError(
            f"{path.name} has no column '{columns['time']}' for the times (its columns: {', '.join(header)})"
        )
    table: dict[str, list[float]] = {key: [] for key, name in columns.items() if name in header}
    for n, cells in rows:
        for key in table:
            table[key].append(_cell(cells[columns[key]], f"{path.name}, line {n}, column '{columns[key]}'", key))
    times = table.pop("time")
    return Table(times, table)


def read_rows(path: Path, example: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The header of a CSV file, and its rows as cells by column with their line numbers; `example` is of a header."""
    lines = [
        (n, line)
        for n, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines:
        raise DataError(f"{path.name} is empty; it needs a header line such as {example}")
    delimiter = max(",;\t", key=lines[0][1].count)
    try:
        rows = [(n, next(csv.reader([line], delimiter=delimiter, strict=True))) for n, line in lines]
    except csv.Error as error:
        raise DataError(f"{path.name} is not valid CSV: {error}") from None
    header = [cell.strip() for cell in rows[0][1]]
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path.name}: column '{name}' appears twice")
    for n, row in rows[1:]:
        if len(row) != len(header):
            raise DataError(f"{path.name}, line {n}: {len(row)} cells, but the header has {len(header)}")
    return header, [(n, dict(zip(header, row, strict=True))) for n, row in rows[1:]]


def _example(columns: Mapping[str, str]) -> str:
    return next((name for key, name in columns.items() if key != "time"), "value")


def _cell(cell: str, where: str, key: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING:
        if key == "time":
            raise DataError(f"{where}: a time is missing")
        return math.nan
    try:
        value = float(text) if "_" not in text else math.inf
    except ValueError:
        hint = "; write decimals with a point" if "," in text else ""
        raise DataError(f"{where}: '{text}' is not a number{hint}") from None
    if not math.isfinite(value):
        raise DataError(f"{where}: '{text}' is not a finite number")
    return value
