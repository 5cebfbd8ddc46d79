"""Conditions on time as expressions that are 1 where they hold and 0 elsewhere.

``t < a`` is ``before(a)`` and ``t <= a`` is ``until(a)``; ``t >= a`` is ``1 - before(a)``; *and* is a product,
*not c* is ``1 - c``. The border a is an expression in parameters and constants. A condition on states is not
read: where it changes is not known before the model is solved.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod

from equifinal.language.expression import TIME, Call, Expression, Name, Number, Power, Product, Sum, names, negative

ONE = Number(Fraction(1))


def negated(condition: Expression) -> Expression:
    match condition:
        case Sum((Number(value), Product((Number(sign), inner)))) if value == 1 and sign == -1:
            return inner
    return Sum((ONE, negative(condition)))


def both(first: Expression, second: Expression) -> Expression:
    return Product((first, second))


def either(first: Expression, second: Expression) -> Expression:
    return negated(both(negated(first), negated(second)))


def holds(condition: Expression, decided: Callable[[Call], bool]) -> bool:
    """Whether a condition holds, given which of its parts do; their borders are not looked at."""
    return bool(_truth(condition, decided))


def _truth(condition: Expression, decided: Callable[[Call], bool]) -> Fraction:
    match condition:
        case Sum(terms):
            return sum((_truth(term, decided) for term in terms), Fraction(0))
        case Product(factors):
            return prod((_truth(factor, decided) for factor in factors), start=Fraction(1))
        case Call():
            return Fraction(decided(condition))
        case Number(value):
            return value
    raise TypeError(f"'{condition}' is not a condition")


def compared(left: Expression, sign: str, right: Expression) -> Expression | None:
    """The condition ``left sign right``; None if it is not one on time, with a number as factor of t."""
    if TIME not in names(left) and TIME in names(right):
        left, right = right, left
        sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
    parts = affine_in_time(Sum((left, negative(right))))
    if parts is None or parts[0] == 0:
        return None
    slope, _ = parts
    direct = left == Name(TIME) and TIME not in names(right)
    border = right if direct else Product((Number(-1 / slope), parts[1]))
    if slope < 0:
        sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
    holds = Call("before" if sign in ("<", ">=") else "until", (border,))
    return holds if sign in ("<", "<=") else negated(holds)


def affine_in_time(expression: Expression) -> tuple[Fraction, Expression] | None:
    """Split into slope*t + rest, the slope being a number; None where that cannot be done."""
    if TIME not in names(expression):
        return Fraction(0), expression
    match expression:
        case Name():
            return Fraction(1), Number(Fraction(0))
        case Sum(terms):
            split = [affine_in_time(term) for term in terms]
            if any(part is None for part in split):
                return None
            known = [part for part in split if part is not None]
            return sum((slope for slope, _ in known), Fraction(0)), Sum(tuple(rest for _, rest in known))
        case Product(factors):
            factor = _factor([f for f in factors if TIME not in names(f)])
            timed = [f for f in factors if TIME in names(f)]
            inner = affine_in_time(timed[0]) if len(timed) == 1 else None
            if factor is None or inner is None:
                return None
            return factor * inner[0], Product((Number(factor), inner[1]))
    return None


def _factor(factors: list[Expression]) -> Fraction | None:
    """The product of factors that are numbers; None if one is not."""
    product = Fraction(1)
    for factor in factors:
        match factor:
            case Number(value):
                product *= value
            case Power(Number(value), exponent) if value:
                product *= value**exponent
            case _:
                return None
    return product
