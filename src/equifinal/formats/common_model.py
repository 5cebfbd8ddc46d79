"""Several experiments as one model and what is different in each.

Definitions and initial values that differ between experiments become constants, which an experiment sets to numbers or
expressions. A file that has one model and several conditions is written from this.
"""

from __future__ import annotations

from fractions import Fraction

from equifinal.errors import DataError
from equifinal.language.expression import Expression, Name, Number, calls
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Model
from equifinal.problem.problem import Problem

ONE = Number(Fraction(1))


class CommonModel:
    """What the experiments of a problem have in common.

    Attributes
    ----------
    starts
        For states whose initial values differ, the constants that they become.
    constants
        By name, each with a value that stands in the file; experiments may have others.
    definitions
        Those that all experiments have in common.
    """

    constants: dict[str, Expression]
    definitions: dict[str, Expression]

    def __init__(self, problem: Problem):
        self.models: list[Model] = [experiment.model for experiment in problem.experiments]
        first = self.models[0]
        for model in self.models[1:]:
            if model.states != first.states or model.equations != first.equations or model.inputs != first.inputs:
                raise DataError("its experiments have different equations")
        self.starts: dict[str, str] = self._starts()
        self.constants, self.definitions = self._sorted()

    @property
    def taken(self) -> set[str]:
        """Every name of its models."""
        return {n for m in self.models for n in (*m.definitions, *m.constants, *m.levels, *m.parameters, *m.states)}

    def _starts(self) -> dict[str, str]:
        taken = self.taken
        found: dict[str, str] = {}
        for x in self.models[0].states:
            if len({came_from(model, x) for model in self.models}) > 1:
                name = f"{x}_start"
                while name in taken:
                    name += "_"
                found[x] = name
        return found

    def initial(self, x: str) -> Expression:
        """The initial value of a state in the common model."""
        return Name(self.starts[x]) if x in self.starts else came_from(self.models[0], x)

    def values(self, model: Model) -> dict[str, Expression]:
        """Everything by name that an experiment might set."""
        found: dict[str, Expression] = {name: Number(value) for name, value in model.constants.items()}
        found |= {**model.definitions, **model.levels}
        return found | {name: came_from(model, x) for x, name in self.starts.items()}

    def own(self, model: Model) -> dict[str, Expression]:
        """Constants that have another value in an experiment."""
        return {n: v for n, v in self.values(model).items() if n in self.constants and self.constants[n] != v}

    def held(self, model: Model) -> dict[str, Expression]:
        """Constants that had another value while an experiment was at rest before its start."""
        now = self.values(model)
        other = {n: v for n, v in _held(model).items() if n in self.constants and n in now and now[n] != v}
        return {n: v for n, v in other.items() if n not in self.starts.values()}

    def held_values(self, model: Model) -> dict[str, Expression]:
        """Everything that was constant while an experiment was at rest before its start."""
        return _held(model)

    def held_inputs(self, model: Model) -> dict[str, Expression]:
        """The inputs while an experiment was at rest before its start."""
        held = _values(model.before) if model.before is not None else {}
        return {n: held[n] for n in model.inputs if n in held}

    def _sorted(self) -> tuple[dict[str, Expression], dict[str, Expression]]:
        given: dict[str, list[Expression]] = {}
        for model in self.models:
            for name, value in (*self.values(model).items(), *_held(model).items()):
                given.setdefault(name, []).append(value)
        levels = {name for model in self.models for name in model.levels}
        outputs = {name for model in self.models for name in model.outputs}
        constants: dict[str, Expression] = {}
        definitions: dict[str, Expression] = {}
        for name, values in given.items():
            plain = name not in outputs and all(isinstance(value, Number) for value in values)
            if plain or name in levels or name in self.starts.values() or len(set(values)) > 1:
                constants[name] = next((value for value in values if isinstance(value, Number)), ONE)
            else:
                definitions[name] = values[0]
        return constants, definitions


def _held(model: Model) -> dict[str, Expression]:
    """Constants and constant definitions as they were before a model started, if it started from rest."""
    if model.before is None:
        return {}
    timed = {n for n, e in model.definitions.items() if any(call.function in CONDITIONS for call in calls(e))}
    others = timed | {*model.outputs, *model.inputs}
    return {n: e for n, e in _values(model.before).items() if n not in others}


def _values(model: Model) -> dict[str, Expression]:
    return {**{name: Number(value) for name, value in model.constants.items()}, **model.definitions}


def came_from(model: Model, x: str) -> Expression:
    """The initial value of a state, or where it came to rest from."""
    return (model.before or model).initial[x]
