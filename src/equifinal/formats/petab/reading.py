"""PEtab problems of both versions: which files there are, and what becomes of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equifinal.errors import DataError, did_you_mean
from equifinal.formats.petab.assembling import Assembled, Part, assembled
from equifinal.formats.petab.courses import (
    Course,
    course_1,
    course_2,
    read_conditions_1,
    read_conditions_2,
    read_experiments,
)
from equifinal.formats.petab.observables import Measurement, Observable, read_measurements, read_observables
from equifinal.formats.petab.parameters import Parameter, read_parameters
from equifinal.formats.petab.tables import Row, file_in, read_tables, read_yaml
from equifinal.formats.sbml.alone import UNITS, labels_of
from equifinal.formats.sbml.importing import read_network
from equifinal.language.expression import names
from equifinal.problem.data import Experiment, unknowns
from equifinal.problem.labels import Label, known_names
from equifinal.problem.problem import Problem

PARAMETERS = ("parameterId", "estimate")
MEASUREMENTS = ("observableId", "measurement", "time")
OBSERVABLES = ("observableId", "observableFormula", "noiseFormula")


def problem_of(path: Path) -> Problem:
    """The problem that a PEtab file describes."""
    try:
        read = Read(path)
    except RecursionError:
        raise DataError(f"{path.name}: formulas are nested too deeply") from None
    experiments = tuple(found.experiment for found in read.assembled)
    if not experiments:
        raise DataError(f"{path.name}: there are no measurements")
    used = set(unknowns(experiments))
    estimated = {read.named[name]: p for name, p in read.parameters.items() if p.prior is not None}
    unused = [name for name in estimated if name not in used]
    notes = [UNITS, *(f"parameter '{name}' has no effect on the data" for name in unused)]
    first = experiments[0].model  # where they do no harm, and have their prior as posterior
    varied = replace(experiments[0], model=replace(first, parameters=(*first.parameters, *unused)))
    return Problem(
        _with_own_names((varied if unused else experiments[0], *experiments[1:])),
        {name: p.prior for name, p in estimated.items() if p.prior is not None},
        name=path.stem,
        labels=read.labels(),
        nominal={name: p.nominal for name, p in estimated.items() if p.nominal is not None},
        notes=tuple(notes),
    )


def _with_own_names(experiments: tuple[Experiment, ...]) -> tuple[Experiment, ...]:
    """Experiments of different models may have the same name."""
    given = [experiment.name for experiment in experiments]
    return tuple(
        replace(experiment, name=f"{experiment.name} ({given[:i].count(experiment.name) + 1})")
        if experiment.name and given.count(experiment.name) > 1
        else experiment
        for i, experiment in enumerate(experiments)
    )


class Read:
    """What a problem file and its tables say."""

    def __init__(self, path: Path):
        self.path = path
        self.folder: Path = path.parent
        self.document: dict[str, Any] = read_yaml(path)
        self.version: int = self._version()
        self.parameters: Mapping[str, Parameter] = {}
        self.assembled: list[Assembled] = []
        self.parts: list[tuple[Part, Assembled]] = []
        self.named: dict[str, str] = {}  # parameters by identifier
        if self.version == 1:
            self._read_1()
        else:
            self._read_2()

    def labels(self) -> dict[str, Label]:
        """What the files call states, outputs, and parameters whose names are others here."""
        found: dict[str, Label] = {}
        for part, one in self.parts:
            found |= labels_of(part.network, one.experiment.model)
            for seen in one.seen:
                title = seen.observable.row.text("observableName") or seen.observable.identifier
                if title != seen.output:
                    found[seen.output] = Label(title[:80])
        found |= {name: Label(identifier) for identifier, name in self.named.items() if name != identifier}
        known = known_names(one.experiment for one in self.assembled)
        known |= {self.named[identifier] for identifier, p in self.parameters.items() if p.prior is not None}
        return {name: label for name, label in found.items() if name in known and label.label.isprintable()}

    def _version(self) -> int:
        text = str(self.document.get("format_version", ""))
        major = text.partition(".")[0]
        if major not in ("1", "2"):
            raise DataError(f"{self.path.name}: format_version must be 1 or 2, not '{text}'")
        return 1 if "problems" in self.document else int(major)  # a draft of version 2 had the tables of version 1

    # --- files ---

    def _tables(self, names: Any, what: str, needed: Sequence[str]) -> list[Row]:
        listed = [names] if isinstance(names, str) else names or []
        if not isinstance(listed, list):
            raise DataError(f"{self.path.name}: {what} must be a list of files, not {names!r}")
        return read_tables([file_in(self.folder, name, what, self.path.name) for name in listed], needed)

    def _required(self, table: Mapping[str, Any], key: str) -> Any:
        if not table.get(key):
            what = "is empty" if key in table else f"is missing{did_you_mean(key, table)}"
            raise DataError(f"{self.path.name}: '{key}' {what}")
        return table[key]

    # --- version 1 ---

    def _read_1(self) -> None:
        files = self._required(self.document, "parameter_file")
        rows = self._tables(files, "parameter_file", (*PARAMETERS, "parameterScale"))
        self.parameters = read_parameters(rows, version=1)
        problems = self._required(self.document, "problems")
        if not isinstance(problems, list) or not all(isinstance(problem, dict) for problem in problems):
            raise DataError(f"{self.path.name}: 'problems' must be a list of tables")
        for problem in problems:
            self._part_1(problem)

    def _part_1(self, problem: Mapping[str, Any]) -> None:
        part = self._part(self._model_1(problem), "sbml_files", {})
        observed = self._tables(self._required(problem, "observable_files"), "observable_files", OBSERVABLES)
        observables = read_observables(observed, part.renamed, part.taken, version=1)
        conditions = read_conditions_1(
            self._tables(self._required(problem, "condition_files"), "condition_files", ("conditionId",)),
            part.network,
            part.renamed,
            lambda name: part.known(name) or any(name in _names_in(o) for o in observables.values()),
            part.value,
        )
        measured = self._tables(
            self._required(problem, "measurement_files"), "measurement_files", (*MEASUREMENTS, "simulationConditionId")
        )
        measurements = read_measurements(measured, observables, _key_1, part.value)
        self._assemble(part, measurements, lambda key, row: course_1(key, conditions, row))

    def _model_1(self, problem: Mapping[str, Any]) -> Any:
        """The name of the one SBML file of a problem."""
        listed = problem.get("model_files")
        tables = listed.values() if isinstance(listed, dict) else []
        if tables and all(isinstance(m, dict) and m.get("language") == "sbml" for m in tables):
            models = [model.get("location") for model in tables]
        else:
            models = self._required(problem, "sbml_files")
            models = models if isinstance(models, list) else [models]
        if len(models) != 1:
            raise DataError(f"{self.path.name}: a problem of version 1 needs exactly one SBML file, not {len(models)}")
        return models[0]

    def _part(self, model: Any, what: str, aliases: Mapping[str, str]) -> Part:
        part = Part(read_network(file_in(self.folder, model, what, self.path.name)), self.parameters, aliases)
        for identifier in self.parameters:
            name = part.renamed(identifier)
            if name in part.network.rates or name in part.network.definitions:
                raise DataError(f"{self.path.name}: '{identifier}' is in the parameter table, but changes with time")
            if self.named.setdefault(identifier, name) != name:
                raise DataError(f"{self.path.name}: '{identifier}' means different things in different models")
        return part

    def _assemble(
        self, part: Part, measurements: Sequence[Measurement], course: Callable[[tuple[str, ...], Row], Course]
    ) -> None:
        groups: dict[tuple[str, ...], list[Measurement]] = {}
        for measured in measurements:
            groups.setdefault(measured.key, []).append(measured)
        for key, rows in groups.items():
            own = course(key, rows[0].row)
            self.assembled.append(assembled(part, own, rows, version=self.version))
            self.parts.append((part, self.assembled[-1]))

    # --- version 2 ---

    def _read_2(self) -> None:
        extensions = self.document.get("extensions") or {}
        if not isinstance(extensions, dict):
            raise DataError(f"{self.path.name}: 'extensions' must be a table of extensions by their names")
        for name, extension in extensions.items():
            if not isinstance(extension, dict) or extension.get("required", True):
                raise DataError(f"{self.path.name}: the PEtab extension '{name}' is not supported")
        rows = self._tables(self._required(self.document, "parameter_files"), "parameter_files", PARAMETERS)
        self.parameters = read_parameters(rows, version=2)
        models = self._required(self.document, "model_files")
        if not isinstance(models, dict) or not all(isinstance(model, dict) for model in models.values()):
            raise DataError(f"{self.path.name}: 'model_files' must be a table of models by their identifiers")
        measured = self._tables(self._required(self.document, "measurement_files"), "measurement_files", MEASUREMENTS)
        for row in measured:
            model = row.text("modelId")
            if (model or len(models) > 1) and model not in models:
                raise DataError(f"{row.place}: unknown model '{model}'{did_you_mean(model, models)}")
        for identifier, model in models.items():
            language = model.get("language")
            if language != "sbml":
                raise DataError(f"{self.path.name}: model '{identifier}' is written in {language}; only SBML is read")
            own = [row for row in measured if row.text("modelId") in ("", identifier)]
            if own:
                self._part_2(model, own)

    def _part_2(self, model: Mapping[str, Any], measured: Sequence[Row]) -> None:
        document = self.document
        mapping = self._tables(document.get("mapping_files"), "mapping_files", ("petabEntityId", "modelEntityId"))
        aliases: dict[str, str] = {}
        for row in mapping:
            identifier = row.identifier("petabEntityId")
            if identifier in aliases:
                raise DataError(f"{row.place}: '{identifier}' appears twice")
            aliases[identifier] = row.text("modelEntityId") or identifier
        part = self._part(model.get("location"), "location", aliases)
        for row in mapping:
            identifier, entity = row.text("petabEntityId"), row.text("modelEntityId")
            own = part.network.names
            if entity and entity != identifier and identifier in own:
                raise DataError(f"{row.place}: '{identifier}' is in the model already, so that it cannot be '{entity}'")
            if entity and entity not in own and len(document["model_files"]) == 1:
                raise DataError(f"{row.place}: '{entity}' is not in the model{did_you_mean(entity, own)}")
        wanted = {row.text("observableId") for row in measured}
        observed = self._tables(self._required(document, "observable_files"), "observable_files", OBSERVABLES)
        observables = read_observables(
            [row for row in observed if row.text("observableId") in wanted], part.renamed, part.taken, version=2
        )
        columns = ("conditionId", "targetId", "targetValue")
        conditions = read_conditions_2(
            self._tables(document.get("condition_files"), "condition_files", columns), part.renamed
        )
        experiments = read_experiments(
            self._tables(document.get("experiment_files"), "experiment_files", ("experimentId", "time", "conditionId"))
        )
        measurements = read_measurements(measured, observables, lambda row: (row.text("experimentId"),), part.value)
        self._assemble(
            part,
            measurements,
            lambda key, row: course_2(key[0], experiments, conditions, part.network, part.known, part.names, row),
        )


def _key_1(row: Row) -> tuple[str, ...]:
    return row.text("preequilibrationConditionId"), row.required("simulationConditionId")


def _names_in(observable: Observable) -> set[str]:
    return {*names(observable.formula), *names(observable.noise)}
