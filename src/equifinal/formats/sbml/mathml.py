"""MathML, as libsbml's syntax tree has it, to open formulas: a walk over the tree, with function definitions put in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

from equifinal.errors import ModelError
from equifinal.formats.sbml.functions import FUNCTIONS_OF_ONE, ONE, ZERO, less, logarithm, number, power, truncated
from equifinal.formats.sbml.settling import UNDEFINED
from equifinal.language.expression import (
    TIME,
    Call,
    Expression,
    Name,
    Number,
    Product,
    Sum,
    negative,
    reciprocal,
    substitute,
    walk,
)

MAX_NODES = 200_000  # of one formula, once function definitions are put in
RATE = "rate of "  # prefix of the name that stands for the derivative of something
_CONSTANTS = {"AST_CONSTANT_E": math.e, "AST_CONSTANT_PI": math.pi}
_COMPARISONS: dict[str, Callable[[Expression, Expression], Expression]] = {
    "AST_RELATIONAL_LT": less,
    "AST_RELATIONAL_LEQ": lambda a, b: less(a, b, equal=True),
    "AST_RELATIONAL_GT": lambda a, b: less(b, a),
    "AST_RELATIONAL_GEQ": lambda a, b: less(b, a, equal=True),
    "AST_RELATIONAL_EQ": lambda a, b: Call("eq", (a, b)),
    "AST_RELATIONAL_NEQ": lambda a, b: Call("ne", (a, b)),
}


@cache
def _kinds() -> Mapping[int, str]:
    """The name of each kind of node by its number."""
    import libsbml

    return {value: name for name, value in vars(libsbml).items() if name.startswith("AST_") and isinstance(value, int)}


@dataclass(frozen=True)
class FunctionDefinition:
    arguments: tuple[str, ...]
    body: Expression


@dataclass
class MathReader:
    """Reads formulas of one model.

    Attributes
    ----------
    renamed
        The name here of each identifier there.
    functions
        Function definitions read so far.
    """

    renamed: Mapping[str, str]
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)

    def define(self, identifier: str, tree: Any) -> None:
        """Read a function definition."""
        count = tree.getNumChildren()
        arguments = tuple(tree.getChild(i).getName() for i in range(count - 1))
        own = {name: f"argument {name}" for name in arguments}  # no identifier has a blank
        body = self.read(tree.getChild(count - 1), f"function '{identifier}'", own)
        self.functions[identifier] = FunctionDefinition(arguments, body)

    def read(self, tree: Any, where: str, local: Mapping[str, str] | None = None) -> Expression:
        """A formula; `local` are names that hold in it alone."""
        if tree is None:
            raise ModelError(f"{where} has no formula")
        return self._read(tree, where, {**self.renamed, **(local or {})})

    def _read(self, tree: Any, where: str, renamed: Mapping[str, str]) -> Expression:
        kind = _kinds().get(tree.getType(), "unknown")
        if kind == "AST_FUNCTION_PIECEWISE":
            return self._piecewise([self._read(child, where, renamed) for child in _children(tree)])
        if kind == "AST_FUNCTION_RATE_OF":
            return Name(RATE + self._name(tree.getChild(0), where, renamed))
        parts = [self._read(child, where, renamed) for child in _children(tree)]
        match kind:
            case "AST_INTEGER":
                return Number(Fraction(tree.getInteger()))
            case "AST_RATIONAL":
                if not tree.getDenominator():
                    raise ModelError(f"{where}: a number is divided by zero")
                return Number(Fraction(tree.getNumerator(), tree.getDenominator()))
            case "AST_REAL":
                return _real(tree.getReal(), where)
            case "AST_REAL_E":
                if abs(tree.getExponent()) > 300:
                    raise ModelError(f"{where}: a number is too large or too small")
                _real(tree.getReal(), where)
                return Number(Fraction(repr(tree.getMantissa())) * Fraction(10) ** tree.getExponent())
            case "AST_NAME":
                return Name(self._name(tree, where, renamed))
            case "AST_NAME_TIME":
                return Name(TIME)
            case "AST_NAME_AVOGADRO":
                return _real(tree.getReal(), where)
            case "AST_CONSTANT_E" | "AST_CONSTANT_PI":
                return number(_CONSTANTS[kind])
            case "AST_CONSTANT_TRUE" | "AST_CONSTANT_FALSE":
                return ONE if kind.endswith("TRUE") else ZERO
            case "AST_PLUS":
                return Sum(tuple(parts)) if len(parts) > 1 else parts[0] if parts else ZERO
            case "AST_MINUS":
                return negative(parts[0]) if len(parts) == 1 else Sum((parts[0], negative(parts[1])))
            case "AST_TIMES":
                return Product(tuple(parts)) if len(parts) > 1 else parts[0] if parts else ONE
            case "AST_DIVIDE":
                return Product((parts[0], reciprocal(parts[1])))
            case "AST_POWER" | "AST_FUNCTION_POWER":
                return power(parts[0], parts[1])
            case "AST_FUNCTION_ROOT":
                return power(parts[-1], reciprocal(parts[0]) if len(parts) == 2 else Number(Fraction(1, 2)))
            case "AST_FUNCTION_LOG":
                return logarithm(parts[-1], parts[0] if len(parts) == 2 else Number(Fraction(10)))
            case "AST_FUNCTION_MIN" | "AST_FUNCTION_MAX":
                return Call(kind[-3:].lower(), tuple(parts)) if len(parts) > 1 else parts[0]
            case "AST_FUNCTION_QUOTIENT":
                return truncated(Product((parts[0], reciprocal(parts[1]))))
            case "AST_FUNCTION_REM":
                whole = truncated(Product((parts[0], reciprocal(parts[1]))))
                return Sum((parts[0], negative(Product((parts[1], whole)))))
            case "AST_LOGICAL_AND" | "AST_LOGICAL_OR" | "AST_LOGICAL_XOR" | "AST_LOGICAL_NOT":
                return Call(kind.removeprefix("AST_LOGICAL_").lower(), tuple(parts))
            case "AST_LOGICAL_IMPLIES":
                return Call("or", (Call("not", (parts[0],)), parts[1]))
            case "AST_FUNCTION":
                return self._called(tree.getName(), parts, where)
        if kind in _COMPARISONS:
            pairs = [_COMPARISONS[kind](a, b) for a, b in pairwise(parts)]
            return pairs[0] if len(pairs) == 1 else Call("and", tuple(pairs))
        function = kind.removeprefix("AST_FUNCTION_").lower()
        if function in FUNCTIONS_OF_ONE and len(parts) == 1:
            return FUNCTIONS_OF_ONE[function](parts[0])
        shown = function if kind.startswith("AST_FUNCTION_") else tree.getName() or kind.removeprefix("AST_").lower()
        raise ModelError(f"{where}: '{shown}' is not supported", word=shown)

    def _name(self, tree: Any, where: str, renamed: Mapping[str, str]) -> str:
        identifier = tree.getName()
        if identifier not in renamed:
            raise ModelError(f"{where}: there is no '{identifier}' in the model", word=str(identifier))
        return renamed[identifier]

    def _called(self, function: str, arguments: list[Expression], where: str) -> Expression:
        definition = self.functions.get(function)
        if definition is None:
            raise ModelError(f"{where}: there is no function '{function}' before this", word=function)
        if len(arguments) != len(definition.arguments):
            raise ModelError(
                f"{where}: function '{function}' takes {len(definition.arguments)} arguments, not {len(arguments)}"
            )
        names = [f"argument {name}" for name in definition.arguments]
        size = sum(1 for _ in walk(definition.body)) * (1 + max((_size(a) for a in arguments), default=0))
        if size > MAX_NODES:
            raise ModelError(f"{where}: with function '{function}' put in, the formula has more than {MAX_NODES} terms")
        return substitute(definition.body, dict(zip(names, arguments, strict=True)))

    def _piecewise(self, parts: list[Expression]) -> Expression:
        if len(parts) == 1:
            return parts[0]
        return Call("piecewise", (*parts, UNDEFINED) if len(parts) % 2 == 0 else tuple(parts))


def _children(tree: Any) -> list[Any]:
    return [tree.getChild(i) for i in range(tree.getNumChildren())]


def _real(value: float, where: str) -> Number:
    if not math.isfinite(value):
        raise ModelError(f"{where}: a number is not finite")
    return number(value)


def _size(expression: Expression) -> int:
    return sum(1 for _ in walk(expression))
