"""Problem files: one TOML file with the model, and for a fit also priors, noise and data.

Unknown keys are errors, with suggestions; every message says in which file and table it happened, and errors in the
equations give the line and column of the file itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equifinal.errors import DataError, ModelError
from equifinal.files import quoted, read_text
from equifinal.formats.data import NoiseTable, names_of, noise_tables, observations_of
from equifinal.formats.happening import START_KEYS, happened
from equifinal.formats.labels import KEYS as LABEL_KEYS
from equifinal.formats.labels import read_labels
from equifinal.formats.nonmem import Subject, is_nonmem, subject_of, subjects
from equifinal.formats.tables import check_keys, inside, named, table_of
from equifinal.language.checks import free_names
from equifinal.language.model import Model
from equifinal.language.tokens import canonical_name
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.parts import taken_names
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings

TABLES = (
    "model",
    "constants",
    "quantities",
    "parameters",
    "noise",
    "data",
    "inputs",
    "dose",
    "change",
    "experiment",
    "labels",
    "solver",
    "sampling",
)
EXPERIMENT_KEYS = ("name", "constants", *START_KEYS, "inputs", "dose", "change", "noise", "data")
SAMPLING_KEYS = ("sampler", "chains", "draws", "warmup", "thin", "ess", "max_solves", "max_time", "seed", "options")
KIND = "a problem file (TOML, with a [model] table)"
MODEL_TABLE = re.compile(r"^[ \t]*\[[ \t]*model[ \t]*\]", flags=re.MULTILINE)
MAX_BYTES = 20_000_000  # large data belong in a CSV file


def recognises(path: Path) -> bool:
    """Recognise a file by its ending, or else by its [model] table."""
    if path.suffix.lower() == ".toml":
        return True
    try:
        return MODEL_TABLE.search(read_text(path, MAX_BYTES)) is not None
    except DataError:
        return False


def load(path: Path, *, data: bool = True) -> Problem:
    """Read a problem file; with ``data=False`` without its data, which need not be there yet."""
    text = read_text(path, MAX_BYTES, advice="; put large data in a CSV file")
    return loads(text, folder=path.parent, file=path.name, name=path.stem, data=data)


def loads(
    text: str, *, folder: str | Path = ".", file: str = "problem", name: str = "problem", data: bool = True
) -> Problem:
    """Read a problem from TOML text; data files are looked for in ``folder``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "" if text.isascii() else '; in TOML, a key with other than plain letters stands in quotes: "μ" = ...'
        raise DataError(_repeated_key(text, str(error), file) or f"{file}: not valid TOML: {error}{hint}") from None
    except RecursionError:
        raise DataError(f"{file}: not valid TOML: nested too deeply") from None
    try:
        return _problem(document if data else _without_data(document, Path(folder)), Path(folder), name)
    except ModelError as error:
        offset = _equations_offset(text) if error.line is not None else 0
        if offset is None:
            raise error.moved(file=f"{file}, equations") from None
        raise error.moved(file=file, lines=offset) from None
    except DataError as error:
        raise DataError(f"{file}: {error}") from None


def _repeated_key(text: str, message: str, file: str) -> str:
    """Name a key that stands twice in a table, which the parser's message does not; empty if that is not the error."""
    place = re.search(r"overwrite a value \(at line (\d+)", message)
    lines = text.splitlines()
    if place is None or not 0 < int(place[1]) <= len(lines):
        return ""
    key = re.match(r"\s*([^=\s][^=]*?)\s*=", lines[int(place[1]) - 1])
    return "" if key is None else f"{file}, line {place[1]}: {quoted(key[1])} is given twice in this table"


def _equations_offset(text: str) -> int | None:
    """How many lines of the file stand before the first line of the equations."""
    opening = re.search(r"^[ \t]*equations[ \t]*=[ \t]*(\"\"\"|''')(\r?\n)?", text, flags=re.MULTILINE)
    return None if opening is None else text[: opening.end()].count("\n")


def _without_data(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The document with what it says of its data, but not the data themselves; a file that has the doses is kept."""

    def stripped(table: Any) -> Any:
        if not isinstance(table, dict) or not isinstance(table.get("data"), dict):
            return table
        if is_nonmem(table["data"], folder):
            return table
        kept = {key: value for key, value in table["data"].items() if key == "increments"}
        return table | {"data": kept}

    entries = document.get("experiment")
    bare = stripped(dict(document))
    return bare | {"experiment": [stripped(entry) for entry in entries]} if isinstance(entries, list) else bare


# --- tables ---


def _problem(document: Mapping[str, Any], folder: Path, name: str) -> Problem:
    check_keys(document, TABLES, "the file")
    if "model" not in document:
        raise DataError("there is no [model] table")
    priors = {canonical_name(key): _prior(key, value) for key, value in table_of(document, "parameters").items()}
    model = _model(document, priors)
    shared_noise = noise_tables(table_of(document, "noise"), model, list(priors), "[noise]")
    experiments = tuple(_experiments(document, model, shared_noise, folder, list(priors)))
    with inside("[solver]"):
        table = table_of(document, "solver")
        check_keys(table, SolverSettings.__dataclass_fields__, "[solver]")
        solver = SolverSettings(**table)
    sampling = table_of(document, "sampling")
    check_keys(sampling, SAMPLING_KEYS, "[sampling]")
    labels = read_labels(document, taken_names(model))
    given = table_of(document, "parameters").items()
    nominal = {canonical_name(key): value["nominal"] for key, value in given if "nominal" in value}
    return Problem(experiments, priors, solver, sampling, name, labels, nominal)


def _model(document: Mapping[str, Any], priors: Mapping[str, Prior]) -> Model:
    table = table_of(document, "model")
    check_keys(table, ("equations", "outputs", "inputs", *START_KEYS), "[model]")
    equations, outputs, inputs = table.get("equations"), table.get("outputs"), table.get("inputs", [])
    if not isinstance(equations, str):
        raise DataError('[model] needs equations = """ ... """, a block of text')
    if outputs is None:
        raise DataError('[model] needs outputs = ["..."], the names of what is observed')
    for key, value in (("outputs", outputs), ("inputs", inputs)):
        if not isinstance(value, list):
            raise DataError(f'[model] {key} must be a list of names, such as ["cases"], not {value!r}')
    model = Model.parse(
        equations,
        outputs,
        inputs=inputs,
        constants=table_of(document, "constants"),
        quantities=table_of(document, "quantities"),
        parameters=list(priors) or None,
    )
    return replace(model, parameters=free_names(model))  # what else has a prior belongs to the noise, or is a mistake


def _prior(name: str, value: Any) -> Prior:
    with inside(f"[parameters] {name}"):
        if not isinstance(value, dict):
            raise DataError(f'expected a table such as {{ prior = "uniform", lower = 0, upper = 1 }}, not {value!r}')
        table = {key: entry for key, entry in value.items() if key not in (*LABEL_KEYS, "nominal")}
        family, arguments = named(table, "prior", "a distribution")
        return Prior(family, **arguments)


def _experiments(
    document: Mapping[str, Any],
    model: Model,
    shared: Mapping[str, NoiseTable],
    folder: Path,
    parameters: Sequence[str],
) -> Iterator[Experiment]:
    entries = document.get("experiment", [])
    if not entries:
        parts = {key: table_of(document, key) for key in ("data", "inputs")}
        if not is_nonmem(parts["data"], folder):
            yield _experiment(parts, document, {}, model, shared, folder, parameters)
            return
        with inside("[data]"):
            found = subjects(parts["data"], model, folder)
        for each in found:
            with inside(f"[data] subject {each.name}"):
                experiment = _experiment(parts, document, {}, model, shared, folder, parameters, each)
            yield experiment
        return
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError("experiments are written as [[experiment]], with double brackets")
    if "data" in document:
        raise DataError("with [[experiment]] tables, each has its own data: write [experiment.data] below it")
    names = [entry.get("name", f"experiment {i}") for i, entry in enumerate(entries, start=1)]
    for i, (name, entry) in enumerate(zip(names, entries, strict=True), start=1):
        where = f"[[experiment]] number {i}"
        if not isinstance(name, str) or names.count(name) > 1:
            raise DataError(f"{where}: every experiment needs a name of its own, given as text, not {name!r}")
        check_keys(entry, EXPERIMENT_KEYS, f"{where}: the table")
        with inside(where):
            varied = model
            initial = entry.get("initial", {})
            if "constants" in entry or isinstance(initial, dict):
                changed = initial if isinstance(initial, dict) else {}
                varied = model.vary(constants=table_of(entry, "constants"), initial=changed)
            noises = dict(shared) | noise_tables(table_of(entry, "noise"), model, parameters, "[noise]")
            inputs = dict(table_of(document, "inputs")) | dict(table_of(entry, "inputs"))
            parts = {"data": table_of(entry, "data"), "inputs": inputs}
            subject: Subject | None = None
            if is_nonmem(parts["data"], folder):
                with inside("[data]"):
                    subject = subject_of(parts["data"], varied, folder)
            experiment = _experiment(parts, document, entry, varied, noises, folder, parameters, subject)
        yield replace(experiment, name=name)


def _experiment(
    parts: Mapping[str, Any],
    document: Mapping[str, Any],
    entry: Mapping[str, Any],
    model: Model,
    noises: Mapping[str, NoiseTable],
    folder: Path,
    parameters: Sequence[str],
    subject: Subject | None = None,
) -> Experiment:
    inputs = {key: _input(key, value) for key, value in parts["inputs"].items()}
    if subject is not None:
        varied = model.vary(constants=subject.constants) if subject.constants else model
        happens = happened(varied, document, entry, inputs, parameters, doses=subject.doses, changes=subject.changes)
    else:
        happens = happened(model, document, entry, inputs, parameters)
    with inside("[data]"):
        increments = names_of(parts["data"], "increments", model.outputs)
        absent = not parts["data"] or set(parts["data"]) == {"increments"}
        columns = None if subject is None else subject.table
        found = () if absent else tuple(observations_of(parts["data"], model, noises, folder, columns))
    # noise without data is kept: it lets data be simulated
    seen = {entry.output for entry in found}
    silent = tuple(
        Observations(y, [], [], table.noise(None, y), increment=y in increments)
        for y, table in noises.items()
        if y not in seen
    )
    return Experiment(happens, found + silent, inputs, subject.name if subject else "")


def _input(name: str, value: Any) -> InputSeries:
    with inside(f"[inputs] {name}"):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return InputSeries([0.0], [value])  # type: ignore[arg-type]
        if not isinstance(value, dict):
            raise DataError("expected a number or a table { time = [...], value = [...] }")
        check_keys(value, ("time", "value", "interpolation"), "it")
        if "time" not in value or "value" not in value:
            raise DataError("needs both time = [...] and value = [...]")
        return InputSeries(value["time"], value["value"], value.get("interpolation", "linear"))
