"""PEtab's files: a YAML file that names tables, and tables of tab-separated values; each cell knows where it stands."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from equifinal.errors import DataError, ModelError, did_you_mean
from equifinal.files import quoted, read_text
from equifinal.formats.petab.formulas import parse_formula
from equifinal.language.expression import Expression

MAX_YAML = 1_000_000
MAX_LENGTH = 100_000  # of a problem file, which only names others
MAX_BRACKETS = 1_000  # PyYAML takes time with their square
MAX_TABLE = 200_000_000
MISSING = ("", "nan", "na", "n/a", "null", "none")


def read_yaml(path: Path) -> dict[str, Any]:
    """The problem file, as plain data."""
    try:
        import yaml
    except ImportError:
        raise DataError("PEtab needs the packages pyyaml and python-libsbml: pip install 'equifinal[petab]'") from None
    text = read_text(path, MAX_YAML)
    if len(text) > MAX_LENGTH or text.count("[") + text.count("{") > MAX_BRACKETS:
        raise DataError(
            f"{path.name}: a PEtab problem file only names other files; at most {MAX_LENGTH} characters and "
            f"{MAX_BRACKETS} brackets are read"
        )
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise DataError(f"{path.name}: aliases (*name) are not read; write out what they stand for")
        document = yaml.load(text, _loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise DataError(f"{path.name}{where}: not valid YAML: {getattr(error, 'problem', None) or error}") from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{path.name}: not valid YAML: {error}") from None
    if not isinstance(document, dict):
        raise DataError(f"{path.name}: a PEtab problem file is a table with format_version and the names of files")
    return document


@cache
def _loader() -> Any:
    """Plain data alone, and no key twice in a table, of which the later one would win."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for (key, _), name in zip(node.value, keys, strict=False):
                if keys.count(name) > 1:
                    raise yaml.MarkedYAMLError(problem=f"{quoted(name)} appears twice", problem_mark=key.start_mark)
            return super().construct_mapping(node, deep)

    return Loader


def file_in(folder: Path, name: Any, what: str, problem: str) -> Path:
    """A file that the problem names, which must lie in its folder."""
    if not isinstance(name, str) or not name:
        raise DataError(f"{problem}: {what} must be the name of a file, not {name!r}")
    if "://" in name:
        raise DataError(f"{problem}: {what} '{name}' is an address; only files beside the problem are read")
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        there = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{problem}: {what} {quoted(name)} cannot be the name of a file: {reason}") from None
    if not inside:
        raise DataError(f"{problem}: {what} {quoted(name)} lies outside the problem's folder")
    if not there:
        raise DataError(f"{problem}: {what} {quoted(name)} does not exist")
    return path


@dataclass(frozen=True)
class Row:
    """A row of a table; `place` is for errors."""

    file: str
    line: int
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}, row {self.line}"

    def text(self, column: str) -> str:
        """A cell's text; empty where it is missing."""
        cell = self.cells.get(column, "")
        return "" if cell.lower() in MISSING else cell

    def required(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise DataError(f"{self.place}: '{column}' is missing")
        return text

    def number(self, column: str) -> float:
        return self.as_number(self.required(column), column)

    def finite(self, column: str) -> float:
        return self.finite_number(self.required(column), column)

    def finite_number(self, text: str, column: str) -> float:
        value = self.as_number(text, column)
        if not math.isfinite(value):
            raise DataError(f"{self.place}, column '{column}': {value} is not a finite number")
        return value

    def as_number(self, text: str, column: str) -> float:
        try:
            return float(text if "_" not in text else "?")
        except ValueError:
            raise DataError(f"{self.place}, column '{column}': {quoted(text)} is not a number") from None

    def identifier(self, column: str) -> str:
        """A cell that must not be empty, and must be a name."""
        text = self.required(column)
        if not text.isidentifier():
            raise DataError(
                f"{self.place}, column '{column}': {quoted(text)} is not an identifier; these have letters, digits and "
                "underscores, and do not begin with a digit"
            )
        return text

    def one_of(self, column: str, choices: Sequence[str], default: str = "") -> str:
        text = self.text(column) or default
        if text not in choices:
            hint = did_you_mean(text, choices)
            raise DataError(f"{self.place}, column '{column}': {quoted(text)} is not one of {', '.join(choices)}{hint}")
        return text

    def listed(self, column: str) -> tuple[str, ...]:
        """The parts of a cell between semicolons."""
        text = self.text(column)
        return tuple(part.strip() for part in text.split(";")) if text else ()

    def formula(self, column: str, renamed: Any, text: str | None = None) -> Expression:
        try:
            return parse_formula(self.required(column) if text is None else text, renamed)
        except ModelError as error:
            raise DataError(f"{self.place}, column '{column}': {error.message}") from None
        except RecursionError:
            raise DataError(f"{self.place}, column '{column}': the formula is nested too deeply") from None


def read_tables(paths: Iterable[Path], needed: Sequence[str]) -> list[Row]:
    """The rows of tables that have the same columns, in order."""
    return [row for path in paths for row in _rows(path, needed)]


def _rows(path: Path, needed: Sequence[str]) -> list[Row]:
    text = read_text(path, MAX_TABLE)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    found: list[Row] = []
    header: list[str] = []
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if not header:
                header = cells
                _check_header(header, needed, path.name)
                continue
            if len(cells) > len(header) and any(cells[len(header) :]):
                raise DataError(f"{path.name}, row {reader.line_num}: {len(cells)} cells, but {len(header)} columns")
            found.append(Row(path.name, reader.line_num, dict(zip(header, cells, strict=False))))
    except csv.Error as error:
        raise DataError(f"{path.name}, row {reader.line_num}: not a table of tab-separated values: {error}") from None
    if not header:
        raise DataError(f"{path.name} is empty; it needs the columns {', '.join(needed)}")
    return found


def _check_header(header: list[str], needed: Sequence[str], file: str) -> None:
    for name in header:
        if name and header.count(name) > 1:
            raise DataError(f"{file}: column '{name}' appears twice")
    for name in needed:
        if name not in header:
            raise DataError(
                f"{file} has no column '{name}'{did_you_mean(name, header)} (its columns: {', '.join(header)[:200]})"
            )


def exact(value: float) -> Fraction:
    """A number as it prints."""
    return Fraction(repr(value))
