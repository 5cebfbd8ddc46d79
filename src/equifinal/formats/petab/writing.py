"""A problem as PEtab, version 2: a YAML file, tables, and the model in SBML.

What is different in an experiment stands in its conditions, what happens at known times in its periods. What PEtab
cannot express is refused by name: counts, censored data, increments, known inputs, priors that it does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from equifinal.errors import DataError
from equifinal.formats.common_model import CommonModel
from equifinal.formats.petab.naming import identifiers, renamed_model
from equifinal.formats.sbml.writing import model_to_sbml
from equifinal.language.expression import (
    Call,
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    calls,
    evaluate,
    names,
    substitute,
    to_text,
)
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Model
from equifinal.problem.data import Experiment
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

Rows = list[dict[str, Any]]
ZERO = Number(Fraction(0))
LOG10, LOG2 = (Call("log", (Number(Fraction(base)),)) for base in (10, 2))
# families of noise: distribution in PEtab, and what the argument is multiplied by
NOISE: dict[str, tuple[str, Expression | None]] = {
    "normal": ("normal", None),
    "lognormal": ("log-normal", None),
    "log10-normal": ("log-normal", LOG10),
    "log2-normal": ("log-normal", LOG2),
    "laplace": ("laplace", None),
    "log-laplace": ("log-laplace", None),
    "log10-laplace": ("log-laplace", LOG10),
}
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
        self.names = identifiers(problem)
        self.problem, self.nominal = problem, nominal
        self.common = CommonModel(problem)
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
        if first.inputs:
            raise DataError("the model has known inputs, which PEtab cannot express")
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
        if any(call.function in CONDITIONS for call in calls(formula)):
            raise DataError("a condition on time outside the equations, which PEtab cannot express here")
        return to_text(substitute(formula, {n: Name(new) for n, new in self.names.items()}), decimals=True)

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
    def _formulas(self) -> dict[str, Expression]:
        """Outputs that only observations use, which need not stand in the model."""
        definitions = self.common.definitions
        used = {n for e in (*definitions.values(), *self.common.models[0].equations.values()) for n in names(e)}
        outputs = {y for model in self.common.models for y in model.outputs}
        return {
            y: definitions[y]
            for y in outputs
            if y in definitions and y not in used and not any(c.function in CONDITIONS for c in calls(definitions[y]))
        }

    def _observable_id(self, output: str) -> str:
        return self.names[output] if output in self._formulas else f"observable_{self.names[output]}"

    def _observables(self) -> Rows:
        entries: dict[str, list[Any]] = {}
        for experiment in self.problem.experiments:
            for entry in experiment.observations:
                if entry.values.size:
                    entries.setdefault(entry.output, []).append(entry)
        rows: Rows = []
        self.by_row: set[str] = set()
        for output, found in entries.items():
            families = {entry.noise.family for entry in found}
            family = families.pop()
            if families or family not in NOISE:
                raise DataError(f"'{output}' has {family} noise, which PEtab cannot express")
            if any(entry.increment or entry.censored.any() for entry in found):
                raise DataError(f"'{output}' has increments or censored data, which PEtab cannot express")
            distribution, unit = NOISE[family]
            scales = {_scale(entry.noise.arguments, output) for entry in found}
            placeholder = ""
            if len(scales) == 1 and None not in scales:
                scale = next(iter(scales))
            else:
                self.by_row.add(output)
                placeholder = f"noiseParameter1_{self.names[output]}"
                scale = Name(placeholder)
            assert scale is not None
            scale = substitute(scale, {output: self.common.definitions.get(output, Name(output))})
            scale = scale if unit is None else Product((scale, unit))
            formula = self._formulas.get(output, Name(output))
            rows.append(
                {
                    "observableId": self._observable_id(output),
                    "observableFormula": self._text(formula),
                    "noiseFormula": self._text(scale),
                    "noiseDistribution": distribution,
                    "noisePlaceholders": placeholder,
                }
            )
        return rows

    # --- experiments ---

    def _experiment(self, experiment: Experiment, i: int) -> None:
        model, common = experiment.model, self.common
        name = f"experiment_{i}"
        start = _time(model.start_time, model)
        own = common.own(model)
        if model.before is not None:
            self._period(name, "-inf", {**own, **common.held(model)}, model)
            self._period(name, _number(start), {n: own.get(n, common.constants[n]) for n in common.held(model)}, model)
        else:
            self._period(name, _number(start), own, model)
        observed = {float(t) for entry in experiment.observations for t in entry.times}
        for time, sets in _jumps(model, start, observed):
            self._period(name, _number(time), sets, model)
        for entry in experiment.observations:
            scale = _scale(entry.noise.arguments, entry.output)
            for k, (time, value) in enumerate(zip(entry.times, entry.values, strict=True)):
                row = {
                    "observableId": self._observable_id(entry.output),
                    "experimentId": name,
                    "time": _number(time),
                    "measurement": _number(value),
                    "noiseParameters": "",
                }
                if entry.output in self.by_row:
                    row["noiseParameters"] = self._noise_parameter(entry, scale, k)
                self.measurements.append(row)

    def _noise_parameter(self, entry: Any, scale: Expression | None, k: int) -> str:
        if scale is None:
            return _number(next(v[k] for v in entry.noise.arguments.values() if isinstance(v, tuple)))
        if not isinstance(scale, (Name, Number)):
            raise DataError(f"'{entry.output}' has noise that differs between experiments, which PEtab cannot express")
        return self._text(scale)

    def _period(self, experiment: str, time: str, sets: Mapping[str, Expression], model: Model) -> None:
        condition = f"condition_{len({row['conditionId'] for row in self.conditions}) + 1}" if sets else ""
        numbers: dict[str, Expression] = {n: Number(v) for n, v in model.constants.items()}
        for name, value in sets.items():
            # constants that are set here, too, have the values from before
            closed = substitute(
                value, {n: v for n, v in numbers.items() if n not in self.common.constants or n in sets}
            )
            row = {
                "conditionId": condition,
                "targetId": self.names[name],
                "targetValue": self._text(closed),
                "target": name,
            }
            self.conditions.append(row)
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


def _scale(arguments: Mapping[str, Any], output: str) -> Expression | None:
    """The scale of the noise as a formula; None if it is known by row."""
    given = {key: _as_expression(value) for key, value in arguments.items()}
    if any(value is None for value in given.values()):
        return None
    relative = given.pop("relative", None)
    (scale,) = given.values() if given else (None,)
    if relative is None:
        return scale
    share = Product((relative, Name(output)))
    if scale is None:
        return Call("abs", (share,))
    return Call("power", (Sum((Power(scale, 2), Power(share, 2))), Number(Fraction(1, 2))))


def _as_expression(value: Any) -> Expression | None:
    if isinstance(value, tuple):
        return None
    if isinstance(value, str):
        return Name(value)
    return Number(Fraction(repr(value))) if isinstance(value, float) else value


def _prior(name: str, prior: Prior) -> tuple[str, tuple[float, ...]]:
    if prior.family not in PRIORS:
        raise DataError(f"the prior of '{name}' is {prior.family}, which PEtab does not have")
    return PRIORS[prior.family](prior.arguments, prior.lower, prior.upper)


def _time(time: Expression, model: Model) -> float:
    try:
        return float(evaluate(time, model.constants, Fraction))
    except (KeyError, TypeError):
        raise DataError(
            f"something happens at a time that is not a number ({to_text(time)}): PEtab cannot express it"
        ) from None


def _jumps(model: Model, start: float, observed: set[float]) -> list[tuple[float, dict[str, Expression]]]:
    """What is set when, once for each time; what comes after an observation must not meet one."""
    found: dict[float, dict[str, Expression]] = {}
    for event in model.jumps:
        time = max(_time(event.time, model), start)
        if not event.first and time in observed:
            raise DataError(
                f"something happens at time {time:g}, after an observation at that time: PEtab cannot express it"
            )
        earlier = found.setdefault(time, {})
        # a later event sees what an earlier one at the same time has done
        earlier |= {name: substitute(value, earlier) for name, value in event.sets.items()}
    if start in found:
        raise DataError("something happens when the model starts, which PEtab cannot express")
    return sorted(found.items(), key=lambda item: item[0])


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
