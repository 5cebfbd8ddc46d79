"""Data of many subjects as NONMEM has them: rows are doses and observations in turn, one experiment per subject.

Columns are ``id, time, amt, rate, evid, cmt, dv, mdv, addl, ii`` in small or capital letters; ``dvid`` names the output
where it is there, ``cmt`` where it is not. A dose comes before the observations at the same time that stand below it,
an additional one before all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from equifinal.errors import DataError, did_you_mean
from equifinal.files import quoted
from equifinal.formats.csv import MISSING, Table, read_cell, read_rows
from equifinal.formats.tables import check_keys, inside
from equifinal.language.expression import Expression, Name, Number, initial_name
from equifinal.language.model import Model
from equifinal.problem.changes import Change
from equifinal.problem.doses import Dose

COLUMNS = ("id", "time", "amt", "rate", "evid", "cmt", "dv", "mdv", "dvid", "addl", "ii", "ss")
KEYS = ("file", "format", "columns", "ignore", "increments", "id", "doses", "outputs", "constants")
DOSE_KEYS = ("state", "lag", "fraction", "duration", "rate")
NAME = "nonmem"
OBSERVATION, DOSE, OTHER, RESET, RESET_AND_DOSE = range(5)


class Subject(NamedTuple):
    """What the rows of one subject say."""

    name: str
    constants: dict[str, float]
    doses: list[Dose]
    changes: list[Change]
    table: Table


class Row(NamedTuple):
    """A row with its cells by known column."""

    line: str
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        text = self.cells.get(column, "").strip()
        return "" if text.lower() in MISSING else text

    def number(self, column: str, default: float = 0.0) -> float:
        text = self.text(column)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"{self.line}, column '{column}': {quoted(text)} is not a number") from None
        if not abs(value) < float("inf"):
            raise DataError(f"{self.line}, column '{column}': {quoted(text)} is not a finite number")
        return value

    def whole(self, column: str, default: int) -> int:
        value = self.number(column, default)
        if value != int(value):
            raise DataError(f"{self.line}, column '{column}': {value:g} is not a whole number")
        return int(value)

    @property
    def event(self) -> int:
        """What the row is; without the column, a row with an amount is a dose."""
        return self.whole("evid", DOSE if self.number("amt") else OBSERVATION)


def is_nonmem(table: Mapping[str, Any], folder: Path) -> bool:
    """Whether a [data] table means such a file: it says so, or the file has columns for values and amounts."""
    if "format" in table or not isinstance(table.get("file"), str):
        return "format" in table
    try:
        header, _ = read_rows(folder / table["file"], "")
    except DataError:
        return False
    found = {name.lower() for name in header}
    return {"time", "dv"} <= found and bool(found & {"amt", "evid"})


def subject_of(table: Mapping[str, Any], model: Model, folder: Path) -> Subject:
    """The one subject of an experiment's own file, or that of the ``id`` given."""
    found = subjects(table, model, folder)
    if len(found) > 1:
        raise DataError(f"the file has {len(found)} subjects; say which is meant, such as id = {found[0].name}")
    return found[0]


def subjects(table: Mapping[str, Any], model: Model, folder: Path) -> list[Subject]:
    """Every subject of a file, or that of the ``id`` given.

    Raises
    ------
    DataError
        With file, line and column.
    """
    check_keys(table, KEYS, "it")
    if table.get("format", NAME) != NAME:
        raise DataError(f'format must be "{NAME}", not {table["format"]!r}')
    if not isinstance(table.get("file"), str):
        raise DataError(f"file must be the name of a CSV file, not {table.get('file')!r}")
    reader = _Reader(table, model)
    groups: dict[str, list[Row]] = {}
    last = None
    for row in reader.rows(folder / table["file"]):
        name = row.text("id") or "1"
        if name in groups and name != last:
            raise DataError(f"{row.line}: subject {name} appears again; put the rows of a subject together")
        groups.setdefault(name, []).append(row)
        last = name
    if "id" in table:
        wanted = str(table["id"])
        if wanted not in groups:
            raise DataError(f"{table['file']} has no subject {wanted}{did_you_mean(wanted, groups)}")
        groups = {wanted: groups[wanted]}
    if not groups:
        raise DataError(f"{table['file']} has a header, but no rows")
    return [reader.subject(name, rows) for name, rows in groups.items()]


class _Reader:
    """What a [data] table says of compartments and columns, and rows read by it."""

    def __init__(self, table: Mapping[str, Any], model: Model):
        self.model = model
        self.ignored = _texts(table, "ignore")
        self.constants = _texts(table, "constants")
        for name in self.constants:
            if name not in model.constants:
                raise DataError(
                    f"constants: '{name}' is not a constant of the model{did_you_mean(name, model.constants)}; "
                    "declare it under [constants]"
                )
        self.columns = _mapping(table, "columns", '{ dv = "concentration" }')
        for key in self.columns:
            if key not in (*COLUMNS, *self.constants):
                raise DataError(f"columns: '{key}' is not a column that is read{did_you_mean(key, COLUMNS)}")
        self.outputs = _mapping(table, "outputs", '{ 2 = "concentration" }')
        for key, output in self.outputs.items():
            if output not in model.outputs:
                raise DataError(f"outputs, {key}: '{output}' is not an output{did_you_mean(output, model.outputs)}")
        self.doses: dict[str, dict[str, Any]] = {}
        given = table.get("doses", {})
        if not isinstance(given, dict):
            raise DataError('doses must be a table such as { 1 = "gut" }')
        for key, value in given.items():
            entry = {"state": value} if isinstance(value, str) else value
            with inside(f"doses, {key}"):
                if not isinstance(entry, dict) or "state" not in entry:
                    raise DataError('expected the name of a state, or a table such as { state = "gut", lag = "tlag" }')
                check_keys(entry, DOSE_KEYS, "it")
                if entry["state"] not in model.states:
                    hint = did_you_mean(str(entry["state"]), model.states)
                    raise DataError(f"'{entry['state']}' is not a state{hint}")
            self.doses[key] = entry

    def rows(self, path: Path) -> list[Row]:
        header, rows = read_rows(path, "id,time,amt,evid,cmt,dv")
        lowered = {name.lower(): name for name in header}
        wanted = {key: self.columns.get(key, lowered.get(key, key)) for key in (*COLUMNS, *self.constants)}
        for key in ("time", "dv", *self.constants, *self.columns):
            if wanted[key] not in header:
                raise DataError(
                    f"{path.name} has no column '{wanted[key]}' (its columns: {', '.join(map(quoted, header[:10]))})"
                )
        for name in header:
            if name not in wanted.values() and name not in self.ignored:
                hint = did_you_mean(name, COLUMNS)
                raise DataError(
                    f"{path.name}: column '{name}' is not known{hint}; to skip it, add ignore = [\"{name}\"], or "
                    "name it among the constants"
                )
        present = {key: name for key, name in wanted.items() if name in header}
        return [Row(f"{path.name}, line {n}", {key: cells[name] for key, name in present.items()}) for n, cells in rows]

    def subject(self, name: str, rows: Sequence[Row]) -> Subject:
        doses: list[Dose] = []
        changes: list[Change] = []
        times: list[float] = []
        values: dict[str, list[float | str]] = {}
        constants = {key: rows[0].number(key, float("nan")) for key in self.constants}
        missing = next((key for key, value in constants.items() if value != value), None)
        if missing is not None:
            raise DataError(f"{rows[0].line}: '{missing}' has no value for subject {name}")
        before = 0.0
        for i, row in enumerate(rows):
            if not row.text("time"):
                raise DataError(f"{row.line}: a time is missing")
            time, event = row.number("time"), row.event
            if time < before:
                raise DataError(f"{row.line}: time {time:g} comes after {before:g}; put the rows of a subject in order")
            before = time
            for key, value in constants.items():
                if row.number(key, value) != value:
                    raise DataError(f"{row.line}: '{key}' changes within subject {name}, but is declared a constant")
            if event not in range(5):
                raise DataError(f"{row.line}: evid must be 0, 1, 2, 3 or 4, not {event}")
            if event in (RESET, RESET_AND_DOSE):
                with inside(row.line):
                    _refuse_pending(doses, time)
                fresh = {x: Name(initial_name(x)) for x in self.model.states}
                changes.append(Change(time, set=fresh, first=_comes_first(rows, i)))
            if event in (DOSE, RESET_AND_DOSE):
                with inside(row.line):
                    doses += self.dose(row, _comes_first(rows, i))
            if event == OBSERVATION:
                if row.number("amt"):
                    raise DataError(f"{row.line}: an observation (evid 0) with an amount; a dose has evid 1")
                if row.text("dv") and not row.whole("mdv", 0):
                    times.append(time)
                    for column in values.values():
                        column.append(float("nan"))
                    column = values.setdefault(self.output(row), [float("nan")] * len(times))
                    column[-1] = read_cell(row.text("dv"), f"{row.line}, column 'dv'", "dv")
        return Subject(name, constants, doses, changes, Table(times, values, {}))

    def output(self, row: Row) -> str:
        key = row.text("dvid") or row.text("cmt")
        if self.outputs:
            output = self.outputs.get(_plain(key))
            if output is None:
                known = ", ".join(f"{k} = {v}" for k, v in self.outputs.items())
                raise DataError(f"{row.line}: observation of '{key or 'nothing'}', which is not in outputs ({known})")
            return output
        named = {output.lower(): output for output in self.model.outputs}
        if key.lower() in named:
            return named[key.lower()]
        if len(self.model.outputs) > 1:
            raise DataError(
                f"{row.line}: the model has several outputs; say which is observed where, such as "
                f'outputs = {{ {key or 2} = "{self.model.outputs[0]}" }}'
            )
        return self.model.outputs[0]

    def dose(self, row: Row, first: bool) -> list[Dose]:
        amount, rate = row.number("amt"), row.number("rate")
        if row.number("ss"):
            raise DataError("a dose at steady state (ss) is not read; give the doses before it, with addl and ii")
        if amount <= 0:
            raise DataError(f"a dose needs a positive amt, not {amount:g}")
        entry = dict(self.compartment(row.text("cmt")))
        modelled = {key: entry.pop(key, None) for key in ("rate", "duration")}
        if rate > 0:
            entry["rate"] = rate
        elif rate in (-1, -2):
            key = "rate" if rate == -1 else "duration"
            if modelled[key] is None:
                raise DataError(
                    f"rate = {rate:g} means that the {key} is a parameter; say which, such as "
                    f'doses = {{ 1 = {{ state = "{entry["state"]}", {key} = "D1" }} }}'
                )
            entry[key] = modelled[key]
        elif rate:
            raise DataError(f"rate must be positive, 0 (at once), -1 or -2 (a parameter), not {rate:g}")
        time, more = row.number("time"), row.whole("addl", 0)
        found = [Dose(amount=amount, time=time, first=first, **entry)]
        if more < 0 or (more and not row.number("ii") > 0):
            raise DataError("addl, the number of additional doses, must not be negative, and needs a positive ii")
        if more:
            interval = row.number("ii")
            found.append(Dose(amount=amount, time=time + interval, every=interval, count=more, first=True, **entry))
        return found

    def compartment(self, key: str) -> Mapping[str, Any]:
        """Where a dose goes: as `doses` says, a state by name, or by its place among the equations."""
        states = self.model.states
        if self.doses:
            if not key and len(self.doses) == 1:
                return next(iter(self.doses.values()))
            if _plain(key) in self.doses:
                return self.doses[_plain(key)]
            raise DataError(f"a dose into cmt '{key}', which is not in doses ({', '.join(self.doses)})")
        named = {x.lower(): x for x in states}
        if key.lower() in named:
            return {"state": named[key.lower()]}
        number = _plain(key or "1")
        if not number.isdigit() or not 1 <= int(number) <= len(states):
            raise DataError(
                f"a dose into cmt '{key}'; the states are {', '.join(states)}: say doses = {{ {key} = ... }}"
            )
        return {"state": states[int(number) - 1]}


def _refuse_pending(doses: Sequence[Dose], time: float) -> None:
    """A reset would have to cancel what earlier doses still have to give, which is not read."""
    for dose in doses:
        parts = [*dose.times, dose.lag, *_lasting(dose)]
        numbers = [part.value for part in parts if isinstance(part, Number)]
        if len(numbers) < len(parts) or max(numbers[: len(dose.times)]) + sum(numbers[len(dose.times) :]) >= time:
            raise DataError(
                "a reset (evid 3 or 4) while earlier doses may still have to give something (additional doses, "
                "infusions, lags that are parameters) is not read; begin a new subject (id) at the reset"
            )


def _lasting(dose: Dose) -> list[Expression]:
    """For how long a dose is given; nothing for one that is given at once."""
    match dose.duration, dose.rate, dose.amount:
        case None, None, _:
            return []
        case None, Number(rate), Number(amount) if rate:
            return [Number(amount / rate)]
        case None, _, _:
            return [Name("unknown")]
    assert dose.duration is not None
    return [dose.duration]


def _comes_first(rows: Sequence[Row], at: int) -> bool:
    """Whether a dose comes before the observations at its time: those below it in the file."""
    same = [
        i
        for i, row in enumerate(rows)
        if row.event == OBSERVATION and row.text("dv") and row.number("time") == rows[at].number("time")
    ]
    below, above = [i for i in same if i > at], [i for i in same if i < at]
    if below and above:
        raise DataError(
            f"{rows[at].line}: observations at the time of the dose stand above and below it; give those after it a "
            "slightly later time"
        )
    return bool(below)


def _plain(key: str) -> str:
    """A compartment's number as people write it: 2, where a spreadsheet made it 2.0."""
    return key.removesuffix(".0")


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DataError(f"{key} must be a list of names, not {value!r}")
    return value


def _mapping(table: Mapping[str, Any], key: str, example: str) -> dict[str, str]:
    value = table.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise DataError(f"{key} must be a table such as {example}")
    return value
