"""Functions that SBML and PEtab have, in terms of those of the model language."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from equifinal.language.expression import Call, Expression, Number, Power, Product, Sum, evaluate, negative, reciprocal

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def number(value: float | Fraction | int) -> Number:
    """A number as it prints, so that 0.1 is 1/10."""
    return Number(value if isinstance(value, Fraction) else Fraction(repr(value)))


def power(base: Expression, exponent: Expression) -> Expression:
    value = _exact(exponent)
    if value is None:
        return Call("power", (base, exponent))
    if value.denominator != 1 or abs(value) > 1000:
        return Call("power", (base, Number(value)))
    return Power(base, int(value)) if value else ONE


def logarithm(x: Expression, base: Expression | None = None) -> Expression:
    natural = Call("log", (x,))
    return natural if base is None else Product((natural, reciprocal(Call("log", (base,)))))


def less(left: Expression, right: Expression, *, equal: bool = False) -> Expression:
    return Call("le" if equal else "lt", (left, right))


def _half(*terms: Expression) -> Expression:
    return Product((Number(Fraction(1, 2)), Sum(terms)))


def _exp(x: Expression, sign: int = 1) -> Expression:
    return Call("exp", (x if sign > 0 else negative(x),))


def _sinh(x: Expression) -> Expression:
    return _half(_exp(x), negative(_exp(x, -1)))


def _cosh(x: Expression) -> Expression:
    return _half(_exp(x), _exp(x, -1))


def _root_of_square(x: Expression, shift: int) -> Expression:
    return Call("power", (Sum((Power(x, 2), Number(Fraction(shift)))), Number(Fraction(1, 2))))


def _arcsinh(x: Expression) -> Expression:
    return Call("log", (Sum((x, _root_of_square(x, 1))),))


def _arccosh(x: Expression) -> Expression:
    return Call("log", (Sum((x, _root_of_square(x, -1))),))


def _arctanh(x: Expression) -> Expression:
    return _half(Call("log", (Sum((ONE, x)),)), negative(Call("log", (Sum((ONE, negative(x))),))))


def _arcsin(x: Expression) -> Expression:
    beside = Call("power", (Sum((ONE, negative(Power(x, 2)))), Number(Fraction(1, 2))))
    half = Call("arctan", (Product((x, reciprocal(Sum((ONE, beside))))),))  # of the angle: finite at -1 and 1 too
    return Product((Number(Fraction(2)), half))


def _arccos(x: Expression) -> Expression:
    return Sum((number(math.pi / 2), negative(_arcsin(x))))


def _above(x: Expression) -> Expression:
    return Call("above", (x,))


def _floor(x: Expression) -> Expression:
    return Call("floor", (x,))


def truncated(x: Expression) -> Expression:
    """The whole number next to x on the side of zero."""
    down, up = Product((_above(x), _floor(x))), Product((_above(negative(x)), _floor(negative(x))))
    return Sum((down, negative(up)))


def _named(function: str) -> Callable[[Expression], Expression]:
    return lambda x: Call(function, (x,))


def _over(function: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
    return lambda x: reciprocal(function(x))


def _of_reciprocal(function: Callable[[Expression], Expression]) -> Callable[[Expression], Expression]:
    return lambda x: function(reciprocal(x))


_sin, _cos, _tan = _named("sin"), _named("cos"), _named("tan")
# functions of one argument by the names that MathML and PEtab give them
FUNCTIONS_OF_ONE: dict[str, Callable[[Expression], Expression]] = {
    **{name: _named(name) for name in ("exp", "abs", "sin", "cos", "tan", "tanh")},
    **{name: _named(name) for name in ("floor", "factorial", "arctan")},
    "ceiling": lambda x: negative(_floor(negative(x))),
    "sign": lambda x: Sum((_above(x), negative(_above(negative(x))))),
    "arcsin": _arcsin,
    "arccos": _arccos,
    "ln": logarithm,
    "sqrt": lambda x: Call("power", (x, Number(Fraction(1, 2)))),
    "sec": _over(_cos),
    "csc": _over(_sin),
    "cot": _over(_tan),
    "sinh": _sinh,
    "cosh": _cosh,
    "sech": _over(_cosh),
    "csch": _over(_sinh),
    "coth": _over(_named("tanh")),
    "arcsec": _of_reciprocal(_arccos),
    "arccsc": _of_reciprocal(_arcsin),
    "arccot": _of_reciprocal(_named("arctan")),
    "arcsinh": _arcsinh,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "arcsech": _of_reciprocal(_arccosh),
    "arccsch": _of_reciprocal(_arcsinh),
    "arccoth": _of_reciprocal(_arctanh),
}


def _exact(expression: Expression) -> Fraction | None:
    try:
        return Fraction(evaluate(expression, {}, Fraction))
    except (KeyError, TypeError, ArithmeticError, ValueError):
        return None
