"""Formulas as SBML and PEtab write them, and what the model language makes of them.

An *open* formula is an `Expression` that may call more than the language has: comparisons of anything (``lt``, ``le``,
``eq``, ``ne``), ``and``, ``or``, ``xor``, ``not``, and functions such as ``floor`` and ``arcsin``. When a model is
made, every constant has its value, and a formula is settled: what is a number becomes one, comparisons with time
become conditions of the language, others steps, and whatever is left has no place in it and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from equifinal.errors import ModelError
from equifinal.formats.sbml.functions import ONE, ZERO, power
from equifinal.language.conditions import affine_in_time, both, compared, either, holds, negated
from equifinal.language.expression import (
    TIME,
    Call,
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    evaluate,
    names,
    negative,
    substitute,
    walk,
)
from equifinal.language.functions import CONDITIONS, FUNCTIONS, call_on_arrays
from equifinal.problem.parts import added, multiplied

UNDEFINED = Call("undefined", ())  # what a piecewise function is where no condition holds
COMPARISONS = {"lt": "<", "le": "<="}
LOGIC = ("and", "or", "xor", "not")
ONLY_NUMBERS: dict[str, Callable[..., float]] = {"factorial": lambda x: math.gamma(x + 1)}


# --- settling ---


@dataclass(frozen=True)
class Settling:
    """What is known when a model is made.

    Attributes
    ----------
    numbers
        Constants with their values.
    meanings
        What else a name in a comparison may stand for: closed definitions, and states that grow evenly with time.
    long_ago
        If it is not None, conditions on time are decided: as they were for ever (True), or will be for ever (False).
    steps
        Whether conditions on anything else may be steps, ``above(x)``, as they may in equations.
    """

    numbers: Mapping[str, Fraction] = field(default_factory=dict)
    meanings: Mapping[str, Expression] = field(default_factory=dict)
    long_ago: bool | None = None
    steps: bool = True

    def value(self, expression: Expression) -> Fraction | None:
        """The number that an open formula is; None if it is not one."""
        for name in names(expression):
            if name not in self.numbers:
                return None
        try:
            if not any(isinstance(node, Call) for node in walk(expression)):
                return Fraction(evaluate(expression, self.numbers, Fraction))
            with np.errstate(all="ignore"):  # 1/0 is infinity, of which arctan has a value
                found = float(evaluate(expression, _floats(self.numbers, expression), np.float64, _call))
        except (ArithmeticError, ValueError, TypeError):
            return None
        return Fraction(repr(found)) if math.isfinite(found) else None

    def settle(self, expression: Expression, where: str) -> Expression:
        """The same in the language; a `ModelError` that begins with `where` if that cannot be done."""
        match expression:
            case Sum(terms):
                return Sum(tuple(self.settle(term, where) for term in terms))
            case Product(factors):
                return Product(tuple(self.settle(factor, where) for factor in factors))
            case Power(base, exponent):
                return Power(self.settle(base, where), exponent)
            case Call("piecewise", arguments):
                return self._piecewise(arguments, where)
            case Call(function, arguments) if function in LOGIC or function in ("lt", "le", "eq", "ne"):
                return self._condition(expression, where)
            case Call("undefined"):
                raise ModelError(f"{where}: a piecewise function has no value where none of its conditions holds")
            case Call("power", (base, exponent)):
                return self._power(self.settle(base, where), self.settle(exponent, where))
            case Call(function, arguments):
                settled = tuple(self.settle(argument, where) for argument in arguments)
                if function in FUNCTIONS:
                    return Call(function, settled)
                value = self.value(Call(function, settled))
                if value is None:
                    raise ModelError(f"{where}: '{function}' is not supported, except of numbers", word=function)
                return Number(value)
        return expression

    def _power(self, base: Expression, exponent: Expression) -> Expression:
        """A power whose exponent is a constant is one by a number, which can be rational."""
        value = self.value(exponent) if names(exponent) else None
        if value is not None and value.denominator == 1:
            return power(base, Number(value))
        return power(base, exponent)

    # conditions: 1 where they hold, else 0

    def _condition(self, expression: Expression, where: str) -> Expression:
        match expression:
            case Call("and", parts):
                return self._joined(parts, both, ZERO, ONE, where)
            case Call("or", parts):
                return self._joined(parts, either, ONE, ZERO, where)
            case Call("not", (part,)):
                return _not(self._condition(part, where))
            case Call("xor", parts):
                found: Expression = ZERO
                for part in parts:
                    found = _either_but_not_both(found, self._condition(part, where))
                return found
            case Call("lt" | "le" | "eq" | "ne" as sign, (left, right)):
                return self._comparison(sign, left, right, where)
            case Call("piecewise", arguments):
                *pieces, rest = arguments
                found = self._condition(rest, where)
                for at in range(len(pieces) - 2, -1, -2):
                    holds = self._condition(pieces[at + 1], where)
                    found = _or(_and(holds, self._condition(pieces[at], where)), _and(_not(holds), found))
                return found
        value = self.value(substitute(expression, self.meanings))
        if value is None:
            raise ModelError(f"{where}: a condition on {_listed(expression)} is not supported")
        return ONE if value else ZERO

    def _joined(
        self, parts: Sequence[Expression], join: Any, deciding: Number, neutral: Number, where: str
    ) -> Expression:
        conditions = [self._condition(part, where) for part in parts]
        if deciding in conditions:
            return deciding
        left = [condition for condition in conditions if condition != neutral]
        while len(left) > 1:  # in pairs, lest many become nested deeply
            pairs = zip(left[::2], left[1::2], strict=False)
            left = [*(join(*pair) for pair in pairs), *left[len(left) - len(left) % 2 :]]
        return left[0] if left else neutral

    def _comparison(self, sign: str, left: Expression, right: Expression, where: str) -> Expression:
        left, right = (self._in_time(side, where) for side in (left, right))
        a, b = self.value(left), self.value(right)
        if a is not None and b is not None:
            return ONE if {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[sign] else ZERO
        if left == right:
            return ONE if sign in ("le", "eq") else ZERO
        found = _on_time(left, COMPARISONS[sign], right) if sign in COMPARISONS else None
        if found is not None:
            return found if self.long_ago is None else self._decided(found)
        if sign not in COMPARISONS or not self.steps:
            what = _listed(Sum((left, right)))
            raise ModelError(
                f"{where}: a condition on {what} is not supported; conditions may compare time with numbers, constants "
                "and parameters"
            )
        ahead = Call("above", (Sum((right, negative(left))),))
        return ahead if sign == "lt" else _not(Call("above", (Sum((left, negative(right))),)))

    def _decided(self, condition: Expression) -> Number:
        return ONE if holds(condition, lambda _: bool(self.long_ago)) else ZERO

    def _in_time(self, expression: Expression, where: str) -> Expression:
        if any(name not in self.numbers for name in names(expression)):
            expression = substitute(expression, self.meanings)
        return self.settle(expression, where)

    def _piecewise(self, arguments: Sequence[Expression], where: str) -> Expression:
        *pieces, rest = arguments
        if len(pieces) == 2 and (smaller := _least_or_greatest(pieces[0], pieces[1], rest)):
            try:
                replace(self, steps=False)._condition(pieces[1], where)
            except ModelError:  # not a condition on time, but this one needs none
                return self.settle(smaller, where)
        kept: list[Expression] = []
        for at in range(0, len(pieces), 2):
            condition = self._condition(pieces[at + 1], where)
            if condition == ONE:
                rest = pieces[at]
                break
            if condition != ZERO:
                kept += [self.settle(pieces[at], where), condition]
        rest = self.settle(rest, where)
        while kept and self._same(kept[-2], rest):
            del kept[-2:]
        return Call("piecewise", (*kept, rest)) if kept else rest

    def _same(self, a: Expression, b: Expression) -> bool:
        return a == b or ((value := self.value(a)) is not None and value == self.value(b))


def _on_time(left: Expression, sign: str, right: Expression) -> Expression | None:
    """A comparison as a condition on time with a plain border: ``t - a < 0`` is ``t < a``."""
    parts = affine_in_time(Sum((left, negative(right))))
    if parts is None or abs(parts[0]) != 1:
        return compared(left, sign, right)
    border = added(*_terms(parts[1], -parts[0]))
    return compared(Name(TIME), sign if parts[0] > 0 else {"<": ">", "<=": ">="}[sign], border)


def _terms(expression: Expression, factor: Fraction) -> list[Expression]:
    """The terms of a multiple of an expression."""
    match expression:
        case Sum(terms):
            return [part for term in terms for part in _terms(term, factor)]
        case Product((Number(value), inner)):
            return _terms(inner, factor * value)
        case Number(value):
            return [Number(factor * value)]
    return [multiplied(Number(factor), expression)]


def _least_or_greatest(value: Expression, condition: Expression, otherwise: Expression) -> Expression | None:
    """``piecewise(a, a < b, b)`` is the lesser of a and b, which is continuous whatever they are."""
    match condition:
        case Call("lt" | "le", (left, right)) if (value, otherwise) == (left, right):
            return Call("min", (left, right))
        case Call("lt" | "le", (left, right)) if (value, otherwise) == (right, left):
            return Call("max", (left, right))
    return None


def _not(condition: Expression) -> Expression:
    return ZERO if condition == ONE else ONE if condition == ZERO else negated(condition)


def _and(a: Expression, b: Expression) -> Expression:
    if ZERO in (a, b):
        return ZERO
    return b if a == ONE else a if b == ONE else both(a, b)


def _or(a: Expression, b: Expression) -> Expression:
    return _not(_and(_not(a), _not(b)))


def _either_but_not_both(a: Expression, b: Expression) -> Expression:
    return _or(_and(a, _not(b)), _and(_not(a), b))


def _listed(expression: Expression) -> str:
    found = [f"'{name}'" for name in names(expression) if name != TIME]
    return ", ".join(found[:3]) or "time of this form"


def _floats(numbers: Mapping[str, Fraction], expression: Expression) -> dict[str, np.float64]:
    return {name: np.float64(float(numbers[name])) for name in names(expression)}


def _call(function: str, arguments: Sequence[float]) -> float:
    if function in ONLY_NUMBERS:
        return float(ONLY_NUMBERS[function](*arguments))
    if function in CONDITIONS:
        raise ValueError
    match function, arguments:
        case "lt", (a, b):
            return float(a < b)
        case "le", (a, b):
            return float(a <= b)
        case "eq", (a, b):
            return float(a == b)
        case "ne", (a, b):
            return float(a != b)
        case "and", _:
            return float(all(arguments))
        case "or", _:
            return float(any(arguments))
        case "xor", _:
            return float(sum(map(bool, arguments)) % 2)
        case "not", (a,):
            return float(not a)
    return float(call_on_arrays(function, arguments))
