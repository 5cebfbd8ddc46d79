"""Formulas as PEtab writes them: conditions are comparisons, which stand in `piecewise`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from equifinal.errors import DataError
from equifinal.formats.petab.formulas import FUNCTIONS
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, substitute, to_text
from equifinal.language.functions import CONDITIONS

ONE, ZERO = Number(Fraction(1)), Number(Fraction(0))
OURS = ("power", "above", *CONDITIONS)


def formula_text(formula: Expression, names: Mapping[str, str]) -> str:
    """A formula with other names.

    Raises
    ------
    DataError
        If it calls a function that PEtab does not have.
    """
    return to_text(_with_comparisons(substitute(formula, {n: Name(new) for n, new in names.items()})), decimals=True)


def _with_comparisons(formula: Expression) -> Expression:
    match formula:
        case Sum(terms):
            return Sum(tuple(map(_with_comparisons, terms)))
        case Product(factors):
            return Product(tuple(map(_with_comparisons, factors)))
        case Power(base, exponent):
            return Power(_with_comparisons(base), exponent)
        case Call("before" | "until" | "above", _):
            return Call("piecewise", (ONE, _condition(formula), ZERO))
        case Call("piecewise", arguments):
            last = len(arguments) - 1
            parts = [_condition(e) if i % 2 and i < last else _with_comparisons(e) for i, e in enumerate(arguments)]
            return Call("piecewise", tuple(parts))
        case Call(function, arguments):
            if function not in FUNCTIONS and function not in OURS:
                raise DataError(f"PEtab has no function '{function}'")
            return Call(function, tuple(map(_with_comparisons, arguments)))
    return formula


def _condition(formula: Expression) -> Name:
    """A comparison; expressions have none, so that its text stands as a name in them."""
    match formula:
        case Call("before" | "until" as function, (border,)):
            return Name(f"time {'<' if function == 'before' else '<='} {_side(border)}")
        case Call("above", (inner,)):
            return Name(f"{_side(inner)} > 0")
    return Name(f"{_side(formula)} != 0")


def _side(formula: Expression) -> str:
    return f"({to_text(_with_comparisons(formula), decimals=True)})"
