"""Quantities of interest that call functions, such as log(2)/k, in models that need not call any.

A call whose arguments the data determine is a number that they determine, too, and with some number in its place the
rest is rational. A call of one argument that moves along the fibre moves with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import isfinite

from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN
from equifinal.language.expression import (
    Call,
    Expression,
    Number,
    Power,
    Product,
    Sum,
    children,
    evaluate,
    is_rational,
    names,
    negative,
)
from equifinal.language.functions import call_on_arrays
from equifinal.language.rational import ZERO, simplified

MOVING = {"exp", "log", "sin", "cos", "tan", "tanh", "arctan", "abs", "power"}  # wherever their argument does

Status = Callable[[Expression], tuple[str, int]]


def judged(expression: Expression, status: Status, rng: random.Random) -> tuple[str, int]:
    """Verdict and number of values of any expression, given those of rational ones."""
    expression = _with_known_numbers(expression)
    if is_rational(expression):
        return status(expression)
    words = {call: _of_call(call, status, rng) for call in _outermost(expression)}
    rest, count = status(_with_numbers(expression, words, rng))
    moving = [call for call, word in words.items() if word == NOT]
    if UNKNOWN in words.values():
        return UNKNOWN, 0
    if not moving:
        return (rest, count) if rest == NOT or set(words.values()) == {GLOBALLY} else (LOCALLY, 0)
    alone = rest != NOT and len(moving) == 1 and _depends(expression, words, moving[0], rng)
    return (NOT if alone else UNKNOWN), 0


def _with_known_numbers(expression: Expression) -> Expression:
    """Calls of numbers alone are numbers, where they are defined; log(1) is 0, and not as good as any other."""
    known = {
        call: float(evaluate(call, {}, float, call_on_arrays)) for call in _outermost(expression) if not names(call)
    }
    return _replaced(expression, {call: Number(Fraction(value)) for call, value in known.items() if isfinite(value)})


def _of_call(call: Call, status: Status, rng: random.Random) -> str:
    words = [judged(argument, status, rng)[0] for argument in call.arguments]
    if UNKNOWN in words or (NOT in words and (words.count(NOT) > 1 or call.function not in MOVING)):
        return UNKNOWN
    return next(word for word in (NOT, LOCALLY, GLOBALLY) if word in words)


def _outermost(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        return
    for child in children(expression):
        yield from _outermost(child)


def _with_numbers(expression: Expression, calls: Mapping[Call, str], rng: random.Random) -> Expression:
    table = {call: Number(Fraction(rng.randrange(2, 10**6), rng.randrange(2, 10**6))) for call in calls}
    return _replaced(expression, table)


def _replaced(expression: Expression, table: Mapping[Call, Number]) -> Expression:
    match expression:
        case Call():
            return table.get(expression, expression)
        case Sum(terms):
            return Sum(tuple(_replaced(term, table) for term in terms))
        case Product(factors):
            return Product(tuple(_replaced(factor, table) for factor in factors))
        case Power(base, exponent):
            return Power(_replaced(base, table), exponent)
    return expression


def _depends(expression: Expression, calls: Mapping[Call, str], call: Call, rng: random.Random) -> bool:
    """Whether a call has an influence: it may stand in a term that cancels."""
    others = {c: Number(Fraction(rng.randrange(2, 10**6))) for c in calls}
    changed = others | {call: Number(others[call].value + 1)}
    try:
        return simplified(Sum((_replaced(expression, others), negative(_replaced(expression, changed))))) != ZERO
    except ZeroDivisionError:
        return False
