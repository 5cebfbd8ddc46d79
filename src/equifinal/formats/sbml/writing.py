"""A model as SBML, Level 3 Version 1: states as parameters with rate rules, definitions as assignment rules.

Parameters need no compartment, so that nothing has to be invented. Events at one time keep their order by priorities.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from equifinal.errors import DataError, ModelError
from equifinal.formats.sbml.reading import libsbml_module
from equifinal.language.expression import TIME, Call, Expression, Name, Number, Power, Product, Sum
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Event, Model

_FUNCTIONS = {
    "exp": "AST_FUNCTION_EXP",
    "log": "AST_FUNCTION_LN",
    "sin": "AST_FUNCTION_SIN",
    "cos": "AST_FUNCTION_COS",
    "tan": "AST_FUNCTION_TAN",
    "tanh": "AST_FUNCTION_TANH",
    "abs": "AST_FUNCTION_ABS",
    "arctan": "AST_FUNCTION_ARCTAN",
    "floor": "AST_FUNCTION_FLOOR",
    "power": "AST_POWER",
}
LARGE = 2**31 - 1


def model_to_sbml(model: Model, values: Mapping[str, float], *, name: str = "model") -> str:
    """The model, with values for its parameters.

    Raises
    ------
    DataError
        If it has what SBML cannot express: known inputs, an onset other than zero, a steady state before the start.
    """
    for has, what in (
        (model.inputs, "known inputs"),
        (model.onset not in (None, Number(Fraction(0))), "an onset"),
        (model.before is not None, "a steady state before it starts"),
    ):
        if has:
            raise DataError(f"the model has {what}, which SBML cannot express; try `to` petab")
    return _Writer(model, values, name).text()


class _Writer:
    def __init__(self, model: Model, values: Mapping[str, float], name: str):
        self.sbml = libsbml_module()
        self.model, self.values = model, values
        names = (*model.parameters, *model.constants, *model.levels, *model.states, *model.definitions)
        self.called = identifiers_of(names)
        self.document = self.sbml.SBMLDocument(3, 1)
        self.made = self.document.createModel()
        self.made.setId(identifier(name))

    def text(self) -> str:
        model = self.model
        for name in model.parameters:
            self._parameter(name, self.values.get(name), constant=True)
        for name, value in model.constants.items():
            self._parameter(name, float(value), constant=True)
        for name in (*model.levels, *model.states, *model.definitions):
            self._parameter(name, None, constant=False)
        for name, start in {**model.levels, **model.initial}.items():
            assignment = self.made.createInitialAssignment()
            assignment.setSymbol(self.called[name])
            assignment.setMath(self.tree(start))
        for name, formula in model.definitions.items():
            rule = self.made.createAssignmentRule()
            rule.setVariable(self.called[name])
            rule.setMath(self.tree(formula))
        for name, formula in model.equations.items():
            rate = self.made.createRateRule()
            rate.setVariable(self.called[name])
            rate.setMath(self.tree(formula))
        for i, event in enumerate(model.events):
            self._event(event, i)
        return str(self.sbml.writeSBMLToString(self.document))

    def _parameter(self, name: str, value: float | None, *, constant: bool) -> None:
        parameter = self.made.createParameter()
        parameter.setId(self.called[name])
        if self.called[name] != name:
            parameter.setName(name)
        parameter.setConstant(constant)
        if value is not None:
            parameter.setValue(value)

    def _event(self, event: Event, i: int) -> None:
        made = self.made.createEvent()
        made.setId(f"event_{i + 1}")
        made.setUseValuesFromTriggerTime(False)
        trigger = made.createTrigger()
        trigger.setInitialValue(False)
        trigger.setPersistent(True)
        after = "AST_RELATIONAL_GEQ" if event.first else "AST_RELATIONAL_GT"
        trigger.setMath(self._node(after, self._time(), self.tree(event.time)))
        priority = made.createPriority()
        priority.setMath(self.tree(Number(Fraction(len(self.model.events) - i))))
        for name, value in event.sets.items():
            assignment = made.createEventAssignment()
            assignment.setVariable(self.called[name])
            assignment.setMath(self.tree(value))

    # --- formulas ---

    def _node(self, kind: str, *children: Any) -> Any:
        node = self.sbml.ASTNode(getattr(self.sbml, kind))
        for child in children:
            node.addChild(child)
        return node

    def _time(self) -> Any:
        node = self._node("AST_NAME_TIME")
        node.setName("time")
        return node

    def tree(self, expression: Expression) -> Any:
        match expression:
            case Number(value):
                return self._number(value)
            case Name(name):
                if name == TIME:
                    return self._time()
                if name.endswith("(0)"):
                    return self.tree(self.model.initial[name[:-3]])
                node = self._node("AST_NAME")
                node.setName(self.called[name])
                return node
            case Sum(terms):
                return self._node("AST_PLUS", *map(self.tree, terms))
            case Product(factors):
                over = [f for f in factors if not (isinstance(f, Power) and f.exponent < 0)]
                under = [Power(f.base, -f.exponent) for f in factors if isinstance(f, Power) and f.exponent < 0]
                found = self._product(over)
                return self._node("AST_DIVIDE", found, self._product(under)) if under else found
            case Power(base, exponent):
                if exponent < 0:
                    return self._node("AST_DIVIDE", self._number(Fraction(1)), self.tree(Power(base, -exponent)))
                if exponent == 1:
                    return self.tree(base)
                return self._node("AST_POWER", self.tree(base), self._number(Fraction(exponent)))
            case Call(function, arguments):
                return self._call(function, arguments)

    def _product(self, factors: list[Any]) -> Any:
        if not factors:
            return self._number(Fraction(1))
        return self.tree(factors[0]) if len(factors) == 1 else self._node("AST_TIMES", *map(self.tree, factors))

    def _number(self, value: Fraction) -> Any:
        node = self.sbml.ASTNode()
        if value.denominator == 1 and abs(value.numerator) < LARGE:
            node.setValue(int(value))
        elif Fraction(repr(float(value))) != value and max(abs(value.numerator), value.denominator) < LARGE:
            node.setValue(int(value.numerator), int(value.denominator))
        else:
            node.setValue(float(value))
        return node

    def _call(self, function: str, arguments: tuple[Expression, ...]) -> Any:
        if function in CONDITIONS:
            one, zero = self._number(Fraction(1)), self._number(Fraction(0))
            return self._node("AST_FUNCTION_PIECEWISE", one, self._condition(Call(function, arguments)), zero)
        if function == "above":
            one, zero = self._number(Fraction(1)), self._number(Fraction(0))
            ahead = self._node("AST_RELATIONAL_GT", self.tree(arguments[0]), self._number(Fraction(0)))
            return self._node("AST_FUNCTION_PIECEWISE", one, ahead, zero)
        if function == "piecewise":
            parts = [
                self._condition(e) if i % 2 and i < len(arguments) - 1 else self.tree(e)
                for i, e in enumerate(arguments)
            ]
            return self._node("AST_FUNCTION_PIECEWISE", *parts)
        if function in ("min", "max"):
            first, *others = arguments
            if not others:
                return self.tree(first)
            other = others[0] if len(others) == 1 else Call(function, tuple(others))
            sign = "AST_RELATIONAL_LEQ" if function == "min" else "AST_RELATIONAL_GEQ"
            condition = self._node(sign, self.tree(first), self.tree(other))
            return self._node("AST_FUNCTION_PIECEWISE", self.tree(first), condition, self.tree(other))
        if function not in _FUNCTIONS:
            raise ModelError(f"'{function}' cannot be written as SBML")
        return self._node(_FUNCTIONS[function], *map(self.tree, arguments))

    def _condition(self, expression: Expression) -> Any:
        match expression:
            case Call("before" | "until" as function, (border,)):
                sign = "AST_RELATIONAL_LT" if function == "before" else "AST_RELATIONAL_LEQ"
                return self._node(sign, self._time(), self.tree(border))
            case Product(parts):
                return self._node("AST_LOGICAL_AND", *map(self._condition, parts))
            case Sum((Number(value), Product((Number(sign), *inner)))) if value == 1 and sign == -1:
                whole = inner[0] if len(inner) == 1 else Product(tuple(inner))
                return self._node("AST_LOGICAL_NOT", self._condition(whole))
        return self._node("AST_RELATIONAL_NEQ", self.tree(expression), self._number(Fraction(0)))


def identifiers_of(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """An identifier for each name: letters without accents, Greek ones by their names; none is reserved in any case."""
    found: dict[str, str] = {}
    given = dict.fromkeys(names)
    for name in given:
        plain = identifier("".join(map(_ascii, name)))
        while plain in found.values() or (plain != name and plain in given) or plain.lower() in reserved:
            plain += "_"
        found[name] = plain
    return found


def _ascii(char: str) -> str:
    if char.isascii():
        return char
    title = unicodedata.name(char, "").split()
    return title[-1].lower() if "LETTER" in title else "_"


def identifier(text: str) -> str:
    """A text as an identifier: letters, digits and underscores."""
    cleaned = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in text)
    return cleaned if cleaned[:1].isalpha() or cleaned[:1] == "_" else f"_{cleaned}"
