"""Noise and data, from the [noise] and [data] tables of a problem file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.files import quoted
from equifinal.formats.csv import MISSING, Table, read_csv
from equifinal.formats.tables import check_keys, inside, named
from equifinal.language.expression import TIME
from equifinal.language.model import Model
from equifinal.problem.data import Observations, reading
from equifinal.problem.noise import Noise, check_names

DATA_KEYS = ("file", "columns", "ignore", "increments")


class NoiseTable(NamedTuple):
    """A noise family with its arguments as they are written, some of them by the name of a column."""

    family: str
    given: Mapping[str, Any]
    columns: Mapping[str, str]

    def noise(self, table: Table | None, output: str) -> Noise:
        """The noise with the numbers of a table's columns; without a table, with no rows."""
        if table is None:
            rows = {key: [] if isinstance(value, list) else value for key, value in self.given.items()}
            return Noise(self.family, **rows, **dict.fromkeys(self.columns, ()))
        for key, name in self.columns.items():
            if name not in table.numbers:
                hint = did_you_mean(name, table.numbers)
                raise DataError(f"there is no column '{name}', from which the noise of '{output}' takes '{key}'{hint}")
        return Noise(self.family, **self.given, **{key: table.numbers[name] for key, name in self.columns.items()})


def noise_tables(
    table: Mapping[str, Any], model: Model, parameters: Sequence[str], where: str
) -> dict[str, NoiseTable]:
    """The noise of each output; if there are parameters with priors, no other name may be unknown."""
    found: dict[str, NoiseTable] = {}
    names = [TIME, *parameters, *model.parameters, *model.states, *model.definitions, *model.constants, *model.inputs]
    for output, value in table.items():
        with inside(f"{where} {output}"):
            if output not in model.outputs:
                raise DataError(f"'{output}' is not an output{did_you_mean(output, model.outputs)}")
            if not isinstance(value, dict):
                raise DataError(f'expected a table such as {{ family = "normal", sd = 5 }}, not {value!r}')
            family, arguments = named(value, "family", "a noise family")
            columns = {key: _column_name(key, entry) for key, entry in arguments.items() if isinstance(entry, dict)}
            given = {key: argument for key, argument in arguments.items() if key not in columns}
            found[output] = NoiseTable(family, given, columns)
            noise = found[output].noise(None, output)
            if parameters:  # then a name that nothing has is a mistake
                check_names(noise, given, [*names, *(f"{x}(0)" for x in model.states)])
    return found


def _column_name(key: str, table: Mapping[str, Any]) -> str:
    if set(table) != {"column"} or not isinstance(table["column"], str):
        raise DataError(f'{key}: expected {{ column = "..." }}, the name of a column of the data, not {table!r}')
    return table["column"]


def observations_of(
    table: Mapping[str, Any],
    model: Model,
    noises: Mapping[str, NoiseTable],
    folder: Path,
    columns: Table | None = None,
) -> Iterator[Observations]:
    """What was observed, from a file, from lists in the table itself, or from columns that were read already."""
    increments = names_of(table, "increments", model.outputs)
    if columns is None:
        numbers = list(dict.fromkeys(name for noise in noises.values() for name in noise.columns.values()))
        columns = _data_file(table, model, numbers, folder) if "file" in table else _inline(table, model, numbers)
    found = [output for output in model.outputs if output in columns.values]
    if not found:
        where = f"the file '{table['file']}' has" if "file" in table else "there is"
        raise DataError(f"no output has a column: {where} none that is called {' or '.join(model.outputs)}")
    for output in found:
        if output not in noises:
            raise DataError(
                f"output '{output}' has data but no noise; add to [noise]: {output} = {{ family = \"normal\", sd = 1 }}"
            )
        noise = noises[output].noise(columns, output)
        _refuse_impossible(columns, output, noise)
        yield Observations(output, columns.times, columns.values[output], noise, increment=output in increments)


def _refuse_impossible(columns: Table, output: str, noise: Noise) -> None:
    """Name the line of a value that the noise family gives no probability to."""
    word, allows = noise.record.support
    for place, value in zip(columns.places, columns.values[output], strict=False):
        if isinstance(value, float) and isfinite(value) and not allows(np.array([value]))[0]:
            raise DataError(
                f"{place}: output '{output}' has {noise.family} noise, so its data must be {word}; found {value:g}"
            )


def _data_file(table: Mapping[str, Any], model: Model, numbers: list[str], folder: Path) -> Table:
    check_keys(table, DATA_KEYS, "it")
    file = table["file"]
    if not isinstance(file, str):
        raise DataError(f"file must be the name of a CSV file, not {file!r}")
    renamed = table.get("columns", {})
    if not isinstance(renamed, dict) or not all(isinstance(v, str) for v in renamed.values()):
        raise DataError('columns must be a table such as { time = "day", cases = "in_bed" }')
    for key in renamed:
        if key != "time" and key not in model.outputs:
            raise DataError(f"columns: '{key}' is not an output{did_you_mean(key, model.outputs)}")
    names = {name: renamed.get(name, name) for name in ("time", *model.outputs)}
    return read_csv(folder / file, names, numbers=numbers, ignore=names_of(table, "ignore", None))


def _inline(table: Mapping[str, Any], model: Model, numbers: list[str]) -> Table:
    check_keys(table, ("time", "increments", *model.outputs, *numbers), "it", also=("file",))
    if "time" not in table:
        raise DataError('needs file = "...", or time = [...] and a list of values for each output')
    columns = {name: table[name] for name in ("time", *model.outputs, *numbers) if name in table}
    for name, column in columns.items():
        if not isinstance(column, list):
            raise DataError(f"{name} must be a list of numbers, not {column!r}")
    read = {
        name: [_entry(value, f"{name}, entry {i}", name) for i, value in enumerate(column, start=1)]
        for name, column in columns.items()
    }
    values = {output: read[output] for output in model.outputs if output in read}
    return Table(read["time"], values, {name: read[name] for name in numbers if name in read})


def _entry(value: Any, where: str, name: str) -> Any:
    """A number, NaN where it is missing, or a limit as text."""
    if isinstance(value, str) and name != "time":
        if value.strip().lower() in MISSING:
            return float("nan")
        if value.strip()[:1] in ("<", ">"):
            with suppress(ValueError):
                reading(value)
                return value
            raise DataError(f"{where}: {quoted(value)} is not a limit such as '<50'")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{where}: expected a number, not {value!r}")
    return value


def names_of(table: Mapping[str, Any], key: str, allowed: Iterable[str] | None) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DataError(f"{key} must be a list of names, not {value!r}")
    for name in value:
        if allowed is not None and name not in allowed:
            raise DataError(f"{key}: '{name}' is not an output{did_you_mean(name, allowed)}")
    return tuple(value)
