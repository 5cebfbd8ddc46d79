"""Data files: CSV with a header, a column of times and a column for each output.

Empty cells are missing; ``<50`` and ``>1000`` are values of which no more is known than that.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from warnings import warn

from equifinal.errors import DataError, did_you_mean
from equifinal.files import quoted, read_text
from equifinal.problem.data import reading

MISSING = ("", "na", "nan", "n/a", "null", "none", ".")


class Table(NamedTuple):
    """Times, values of each output (limits as text), and further columns of numbers by their names."""

    times: Sequence[float]
    values: Mapping[str, Sequence[float | str]]
    numbers: Mapping[str, Sequence[float]]
    places: Sequence[str] = ()  # file and line of each row, where there is a file


def read_csv(
    path: Path, columns: Mapping[str, str], *, numbers: Sequence[str] = (), ignore: Sequence[str] = ()
) -> Table:
    """Read the time column, and those columns of outputs and numbers that are there.

    Parameters
    ----------
    columns
        For ``time`` and each output, the name of its column.
    numbers
        Further columns, of numbers.
    ignore
        Columns that are known not to be data; any other unknown column is an error, since it may be a misspelt output.
    """
    header, rows = read_rows(path, f"time,{_example(columns)}")
    shown = ", ".join(map(quoted, header[:10]))
    for key, name in columns.items():
        if name not in header and (key == "time" or name != key):  # an output without a column was not observed
            what = "the times" if key == "time" else key
            hint = did_you_mean(name, header)
            raise DataError(f"{path.name} has no column '{name}' for {what}{hint} (its columns: {shown})")
    for name in header:
        if name not in columns.values() and name not in ignore and name not in numbers:
            free = [key for key, own in columns.items() if own not in header]
            hint = did_you_mean(name, free)
            raise DataError(
                f"{path.name}: column {quoted(name)} is not an output{hint}; to skip it, add it to ignore = [...]"
            )
    table: dict[str, list[float | str]] = {key: [] for key, name in columns.items() if name in header}
    further: dict[str, list[float]] = {name: [] for name in numbers if name in header}
    for n, cells in rows:
        for key, name in columns.items():
            if key in table:
                table[key].append(read_cell(cells[name], f"{path.name}, line {n}, column '{name}'", key))
        for name, column in further.items():
            column.append(_number(cells[name], f"{path.name}, line {n}, column '{name}'"))
    times = [float(t) for t in table.pop("time")]
    if any(later < earlier for earlier, later in pairwise(times)):
        warn(f"{path.name}: the times are not in order; rows are taken in the order of their times", stacklevel=2)
    return Table(times, table, further, [f"{path.name}, line {n}" for n, _ in rows])


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
            raise DataError(f"{path.name}: column {quoted(name)} appears twice")
    for n, row in rows[1:]:
        if len(row) != len(header):
            raise DataError(f"{path.name}, line {n}: {len(row)} cells, but the header has {len(header)}")
    return header, [(n, dict(zip(header, row, strict=True))) for n, row in rows[1:]]


def _example(columns: Mapping[str, str]) -> str:
    return next((name for key, name in columns.items() if key != "time"), "value")


def read_cell(cell: str, where: str, key: str) -> float | str:
    """A number, or a limit as text."""
    if key != "time" and cell.strip()[:1] in ("<", ">"):
        try:
            reading(cell)
        except ValueError:
            raise DataError(f"{where}: {quoted(cell.strip())} is not a limit such as <50") from None
        return cell
    value = _number(cell, where)
    if key == "time" and math.isnan(value):
        raise DataError(f"{where}: a time is missing")
    return value


def _number(cell: str, where: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        value = float(text) if "_" not in text else math.inf
    except ValueError:
        hint = "; write decimals with a point" if "," in text else ""
        raise DataError(f"{where}: {quoted(text)} is not a number{hint}") from None
    if not math.isfinite(value):
        raise DataError(f"{where}: {quoted(text)} is not a finite number")
    return value
