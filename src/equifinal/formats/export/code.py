"""Models as program text: formulas in the syntax of a language, and the order in which their parts are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from equifinal.errors import DataError
from equifinal.formats.export.inputs import with_inputs_written
from equifinal.formats.sbml.writing import identifier
from equifinal.language.checks import in_order
from equifinal.language.expression import TIME, Call, Expression, Name, Number, Power, Product, Sum, names
from equifinal.language.functions import CONDITIONS
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Model
from equifinal.problem.data import Experiment
from equifinal.problem.problem import Problem


@dataclass(frozen=True)
class Syntax:
    """How a language writes powers, functions and choices; everything else is the same in all of them.

    Attributes
    ----------
    functions
        The name of each function; those of ``min`` and ``max`` take two arguments.
    power
        Of the texts of base and exponent.
    choice
        Of the texts of a condition and two values.
    reserved
        Words that cannot be names.
    """

    functions: Mapping[str, str]
    power: Callable[[str, str], str]
    choice: Callable[[str, str, str], str]
    reserved: frozenset[str]

    def write(self, expression: Expression, called: Mapping[str, str]) -> str:
        """A formula, with brackets wherever they could matter."""
        match expression:
            case Number(value):
                return _number(value)
            case Name(name):
                return "t" if name == TIME else called[name]
            case Sum(terms):
                return f"({' + '.join(self.write(term, called) for term in terms)})"
            case Product(factors):
                over = [self.write(f, called) for f in factors if not (isinstance(f, Power) and f.exponent < 0)]
                under = [
                    self.write(Power(f.base, -f.exponent), called)
                    for f in factors
                    if isinstance(f, Power) and f.exponent < 0
                ]
                return f"({' * '.join(over) or '1.0'}{''.join(f' / {part}' for part in under)})"
            case Power(base, exponent):
                if exponent < 0:
                    return f"(1.0 / {self.write(Power(base, -exponent), called)})"
                written = self.write(base, called)
                return written if exponent == 1 else self.power(written, str(exponent))
            case Call(function, arguments):
                return self._call(function, arguments, called)

    def _call(self, function: str, arguments: Sequence[Expression], called: Mapping[str, str]) -> str:
        written = [self.write(argument, called) for argument in arguments]
        if function in CONDITIONS:
            sign = "<" if function == "before" else "<="
            return self.choice(f"t {sign} {written[0]}", "1.0", "0.0")
        if function == "above":
            return self.choice(f"{written[0]} > 0.0", "1.0", "0.0")
        if function == "power":
            return self.power(*written)
        if function == "piecewise":
            found = written[-1]
            for at in range(len(written) - 3, -1, -2):
                found = self.choice(f"{written[at + 1]} != 0.0", written[at], found)
            return found
        if function in ("min", "max"):
            found = written[0]
            for other in written[1:]:
                found = f"{self.functions[function]}({found}, {other})"
            return found
        return f"{self.functions[function]}({', '.join(written)})"

    def names(self, words: Iterable[str]) -> dict[str, str]:
        """A name in this language for each name of a model."""
        found: dict[str, str] = {}
        for word in dict.fromkeys(words):
            name = identifier(word).strip("_")  # Stan has no names that begin or end with two of them
            name = name if name[:1].isalpha() else f"name_{name}".rstrip("_")
            if word.endswith("_") and not word.endswith("__"):
                name += "_"
            plain, k = name, 1
            while name in self.reserved or name in found.values():
                k += 1
                name = f"{plain}_{k}" if k > 2 or plain.endswith("_") else f"{plain}_"
            found[word] = name
        return found


def _number(value: Fraction) -> str:
    if value.denominator == 1 and abs(value) < 10**15:
        return f"{value.numerator}.0" if value >= 0 else f"({value.numerator}.0)"
    text = repr(float(value))
    return text if value >= 0 else f"({text})"


def needed(model: Model, roots: Iterable[Expression]) -> list[str]:
    """Definitions that some expressions use, each after those that it uses itself."""
    wanted: set[str] = set()
    stack = list(roots)
    while stack:
        for name in names(stack.pop()):
            if name in model.definitions and name not in wanted:
                wanted.add(name)
                stack.append(model.definitions[name])
    return [name for name in in_order(model.definitions) if name in wanted]


def refuse(problem: Problem, language: str) -> None:
    """Refuse what the programs written here do not do: name it, its experiment, and what can express it.

    Raises
    ------
    DataError
    """
    for experiment in problem.experiments:
        endless = any(np.isinf(entry.times).any() for entry in experiment.observations)
        for what, there in (
            ("a steady state before its start", experiment.model.before is not None),
            ("data at time infinity", endless),
        ):
            if there:
                where = f"experiment '{experiment.name}'" if experiment.name else "the problem"
                raise DataError(f"{where} has {what}, which is not exported to {language}; try `to` petab")


def lowered(experiment: Experiment) -> Experiment:
    """Known inputs as formulas of time, and conditions on time as levels and events."""
    return replace(experiment, model=without_conditions(with_inputs_written(experiment)), inputs={})


def every_name(problem: Problem) -> list[str]:
    """Every name of a problem, in order of first appearance."""
    found = list(problem.parameters)
    for experiment in problem.experiments:
        model = experiment.model
        found += [*model.states, *model.levels, *model.constants, *model.definitions, *model.outputs]
    return list(dict.fromkeys(found))


def times_of(experiment: Experiment) -> list[float]:
    """The times at which outputs are needed, in order."""
    seen = {t for entry in experiment.observations for t in (*entry.times.tolist(), *entry.previous.tolist())}
    return sorted(t for t in seen if not math.isnan(t))
