"""Expressions as nested lists, for files: what is written is read back node for node.

    2*x + exp(-k)    ->    ["+", ["*", "2", "x"], ["exp", ["*", "-1", "k"]]]

Text would do for people, but a sum has more than one writing. Numbers and names are strings, a number beginning with a
digit or a sign; powers are ``["^", base, exponent]`` with a whole number as exponent.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from equifinal.errors import ModelError
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum
from equifinal.language.functions import FUNCTIONS

MAX_DIGITS = 1000
MAX_DEPTH = 400
_NUMBER = re.compile(r"-?[0-9]+(/[0-9]+)?", flags=re.ASCII)
_WHOLE = re.compile(r"-?[0-9]{1,9}", flags=re.ASCII)

Tree = str | list[Any]


def to_tree(expression: Expression) -> Tree:
    match expression:
        case Number(value):
            return str(value)
        case Name(name):
            return name
        case Sum(parts):
            return ["+", *map(to_tree, parts)]
        case Product(parts):
            return ["*", *map(to_tree, parts)]
        case Power(base, exponent):
            return ["^", to_tree(base), str(exponent)]
        case Call(function, arguments):
            return [function, *map(to_tree, arguments)]


def from_tree(tree: Any, depth: int = 0) -> Expression:
    """Read back what `to_tree` gave.

    Raises
    ------
    ModelError
        If it is something else.
    """
    if depth > MAX_DEPTH:
        raise ModelError("an expression is nested too deeply")
    if isinstance(tree, str) and tree:
        return number_from_text(tree) if tree[0] in "-0123456789" else Name(tree)
    if not isinstance(tree, list) or len(tree) < 2 or not isinstance(tree[0], str):
        raise ModelError(f"this is not an expression: {repr(tree)[:40]}")
    head, *rest = tree
    if head == "^" and len(rest) == 2 and isinstance(rest[1], str) and _WHOLE.fullmatch(rest[1]):
        return Power(from_tree(rest[0], depth + 1), int(rest[1]))
    parts = tuple(from_tree(part, depth + 1) for part in rest)
    if head == "+":
        return Sum(parts)
    if head == "*":
        return Product(parts)
    if head in FUNCTIONS:
        least, most, _ = FUNCTIONS[head]
        if len(parts) >= least and (most is None or len(parts) <= most):
            return Call(head, parts)
    raise ModelError(f"this is not an expression: {repr(tree)[:40]}")


def number_from_text(text: str) -> Number:
    """An exact number such as -3/4."""
    if len(text) > MAX_DIGITS or not _NUMBER.fullmatch(text):
        raise ModelError(f"this is not an exact number: {text[:40]!r}")
    numerator, _, denominator = text.partition("/")
    if denominator and int(denominator) == 0:
        raise ModelError(f"this is not an exact number: {text[:40]!r}")
    return Number(Fraction(int(numerator), int(denominator or 1)))
