"""A problem as PEtab, version 2: a YAML file, tables, and the model in SBML.

What is different in an experiment stands in its conditions, what happens at known times in its periods. What PEtab
cannot express is refused by name: counts, censored data, increments, priors that it does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from equifinal.errors import DataError
from equifinal.formats.common_model import CommonModel
from equifinal.formats.export.inputs import with_inputs_written
from equifinal.formats.petab.formula_writing import formula_text
from equifinal.formats.petab.naming import identifiers, renamed_model
from equifinal.formats.petab.observing import observables_of, shape_of
from equifinal.formats.petab.periods import periods_of
from equifinal.formats.sbml.writing import model_to_sbml
from equifinal.language.expression import Expression, Name, Number, names
from equifinal.language.model import Model
from equifinal.problem.data import Experiment
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

Rows = list[dict[str, Any]]
PRIORS: dict[str, Callable[[Mapping[str, float], float, float], tuple[str, tuple[float, ...]]]] = {
    "uniform": lambda a, low, high: ("uniform", (low, high)),
    "loguniform": lambda a, low, high: ("log-uniform", (low, high)),
    "normal": lambda a, low, high: ("normal", (a["mean"], a["sd"])),
    "halfnormal": lambda a, low, high: ("normal", (0.0, a["sd"])),
    "lognormal": lambda a, low, high: ("log-normal", (a["meanlog"], a["sdlog"])),
    "laplace": lambda a, low, high: ("laplace", (a["location"], a["scale"])),
    "loglaplace": lambda a, low, high: ("log-laplace", (a["location"], a["scale"])),
    "cauchy": lambda a, low, high: ("cauchy", (a["location"], a["scale"])),
    "halfcauchy": lambda a, low, high: ("cauchy", (0.0, a["scale"])),
    "gamma": lambda a, low, high: ("gamma", (a["shape"], 1 / a["rate"])),
    "exponential": lambda a, low, high: ("exponential", (1 / a["rate"],)),
    "chi-squared": lambda a, low, high: ("chisquare", (a["df"],)),
    "rayleigh": lambda a, low, high: ("rayleigh", (a["scale"],)),
}


def problem_to_petab(problem: Problem, nominal: Mapping[str, float]) -> dict[str, str]:
    """The files of the problem by name; ``problem.yaml`` names the others.

    Parameters
    ----------
    nominal
        A value for every parameter.

    Raises
    ------
    DataError
        If PEtab cannot express something.
    """
    return _Writer(problem, nominal).files()


class _Writer:
    def __init__(self, problem: Problem, nominal: Mapping[str, float]):
        for experiment in problem.experiments:
            if experiment.inputs and experiment.model.before is not None:
                where = f"experiment '{experiment.name}'" if experiment.name else "the problem"
                raise DataError(
                    f"{where} has known inputs and a steady state before its start, not both of which PEtab has"
                )
        plain = (replace(e, model=with_inputs_written(e), inputs={}) for e in problem.experiments)
        self.problem = problem = replace(problem, experiments=tuple(plain))
        self.names, self.nominal = identifiers(problem), nominal
        self.common = CommonModel(problem)
        seen = [entry for e in problem.experiments for entry in e.observations if entry.values.size]
        formulas = self._formulas
        wanted = {y: self.names[y] if y in formulas else f"observable_{self.names[y]}" for y in self.outputs}
        taken = {identifier for name, identifier in self.names.items() if name not in formulas}
        self.observables = observables_of(seen, wanted, taken)
        self.conditions: Rows = []
        self.experiments: Rows = []
        self.measurements: Rows = []

    def files(self) -> dict[str, str]:
        observables = self._observables()
        for i, experiment in enumerate(self.problem.experiments, start=1):
            self._experiment(experiment, i)
        return {
            "problem.yaml": _YAML,
            "model.xml": self._model(),
            "parameters.tsv": _table(self._parameters()),
            "observables.tsv": _table(observables),
            "conditions.tsv": _table(self.conditions, ("conditionId", "targetId", "targetValue")),
            "experiments.tsv": _table(self.experiments, ("experimentId", "time", "conditionId")),
            "measurements.tsv": _table(self.measurements),
        }

    # --- the model ---

    def _model(self) -> str:
        common, first = self.common, self.common.models[0]
        kept = {n: e for n, e in common.definitions.items() if n not in self._formulas}
        constants = {n: v.value for n, v in common.constants.items() if isinstance(v, Number)}
        whole = Model(
            states=first.states,
            parameters=tuple(p for p in self.problem.parameters),
            constants=constants,
            inputs=(),
            equations=first.equations,
            initial={x: common.initial(x) for x in first.states},
            definitions=kept,
            outputs=first.outputs,
        )
        used = {n for e in (*whole.equations.values(), *whole.initial.values(), *kept.values()) for n in names(e)}
        used |= {n for row in self.conditions for n in (row["target"],)}
        whole = replace(whole, parameters=tuple(p for p in whole.parameters if p in used))
        return model_to_sbml(renamed_model(whole, self.names), self._values, name=self.problem.name)

    @property
    def _values(self) -> dict[str, float]:
        return {self.names[name]: value for name, value in self.nominal.items()}

    def _text(self, formula: Expression) -> str:
        return formula_text(formula, self.names)

    # --- tables ---

    def _parameters(self) -> Rows:
        rows = []
        for name, prior in self.problem.priors.items():
            family, arguments = _prior(name, prior)
            rows.append(
                {
                    "parameterId": self.names[name],
                    "lowerBound": _number(prior.lower),
                    "upperBound": _number(prior.upper),
                    "nominalValue": _number(self.nominal[name]),
                    "estimate": "true",
                    "priorDistribution": family,
                    "priorParameters": ";".join(map(_number, arguments)),
                }
            )
        return rows

    @property
    def outputs(self) -> list[str]:
        return list(dict.fromkeys(y for model in self.common.models for y in model.outputs))

    @cached_property
    def _formulas(self) -> dict[str, Expression]:
        """Outputs that only their own observations use, which need not stand in the model."""
        definitions = self.common.definitions
        used = {n for e in (*definitions.values(), *self.common.models[0].equations.values()) for n in names(e)}
        for experiment in self.problem.experiments:
            for entry in experiment.observations:
                used |= {n for e in entry.noise.expressions for n in names(e) if n != entry.output}
            used |= {n for event in experiment.model.events for e in event.sets.values() for n in names(e)}
        return {y: definitions[y] for y in self.outputs if y in definitions and y not in used}

    def _observables(self) -> Rows:
        definitions = self.common.definitions
        rows = []
        for (output, *_), observable in self.observables.items():
            formula = self._formulas.get(output, Name(output))
            rows.append(observable.row(formula, definitions.get(output, Name(output)), self._text))
        return rows

    # --- experiments ---

    def _experiment(self, experiment: Experiment, i: int) -> None:
        name = f"experiment_{i}"
        try:
            for time, sets in periods_of(experiment, self.common):
                self._period(name, _number(time), sets)
        except DataError as error:
            where = f"experiment '{experiment.name}': " if experiment.name else ""
            raise DataError(f"{where}{error}") from None
        for entry in experiment.observations:
            for k, (time, value) in enumerate(zip(entry.times, entry.values, strict=True)):
                observable = self.observables[shape_of(entry)]
                self.measurements.append(
                    {
                        "observableId": observable.identifier,
                        "experimentId": name,
                        "time": _number(time),
                        "measurement": _number(value),
                        "noiseParameters": observable.overrides(entry, k, self._text),
                    }
                )

    def _period(self, experiment: str, time: str, sets: Mapping[str, Expression]) -> None:
        condition = f"condition_{len({row['conditionId'] for row in self.conditions}) + 1}" if sets else ""
        for name, value in sets.items():
            row = {"conditionId": condition, "targetId": self.names[name], "targetValue": self._text(value)}
            self.conditions.append({**row, "target": name})
        self.experiments.append({"experimentId": experiment, "time": time, "conditionId": condition})


_YAML = """format_version: 2.0.0
parameter_files: [parameters.tsv]
model_files:
  model: {location: model.xml, language: sbml}
observable_files: [observables.tsv]
condition_files: [conditions.tsv]
experiment_files: [experiments.tsv]
measurement_files: [measurements.tsv]
"""


def _prior(name: str, prior: Prior) -> tuple[str, tuple[float, ...]]:
    if prior.family not in PRIORS:
        raise DataError(f"the prior of '{name}' is {prior.family}, which PEtab does not have")
    return PRIORS[prior.family](prior.arguments, prior.lower, prior.upper)


def _number(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str] = ()) -> str:
    header = list(columns) or list(dict.fromkeys(key for row in rows for key in row if key != "target"))
    if not columns:  # a column that is empty everywhere says nothing
        header = [column for column in header if any(str(row.get(column, "")) for row in rows)]
    lines = ["\t".join(header)] + ["\t".join(str(row.get(column, "")) for column in header) for row in rows]
    return "\n".join(lines) + "\n"
