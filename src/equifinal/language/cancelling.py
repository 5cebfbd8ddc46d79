"""Common factors of numerator and denominator, cancelled: ``a*x^2/x`` has a value where x is zero."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from equifinal.language.expression import Expression, Name, Number, Power, Product, Sum, evaluate, names


class _Fraction:
    """A fraction of polynomials with rational coefficients, as `evaluate` needs it."""

    def __init__(self, over: Any, under: Any):
        common = over.gcd(under)
        self.over, self.under = over / common, under / common

    def __add__(self, other: _Fraction) -> _Fraction:
        return _Fraction(self.over * other.under + other.over * self.under, self.under * other.under)

    def __mul__(self, other: _Fraction) -> _Fraction:
        return _Fraction(self.over * other.over, self.under * other.under)

    def __truediv__(self, other: _Fraction) -> _Fraction:
        if other.over == 0:
            raise ZeroDivisionError
        return _Fraction(self.over * other.under, self.under * other.over)

    def __pow__(self, exponent: int) -> _Fraction:
        return _Fraction(self.over**exponent, self.under**exponent)


def cancelled(expression: Expression) -> Expression:
    """The expression as one fraction without common factors; as it was, if it divides by zero everywhere."""
    import flint

    used = names(expression)
    ring = flint.fmpq_mpoly_ctx.get(list(used), "degrevlex")

    def polynomial(value: Fraction) -> Any:
        return ring.constant(flint.fmpq(value.numerator, value.denominator))

    one = polynomial(Fraction(1))
    table = {name: _Fraction(gen, one) for name, gen in zip(used, ring.gens(), strict=True)}
    try:
        ratio = evaluate(expression, table, lambda value: _Fraction(polynomial(value), one))
    except ZeroDivisionError:
        return expression
    over, under = _expression(ratio.over, used), _expression(ratio.under, used)
    return over if under == Number(Fraction(1)) else Product((over, Power(under, -1)))


def _expression(polynomial: Any, used: tuple[str, ...]) -> Expression:
    terms: list[Expression] = []
    for exponents, c in polynomial.to_dict().items():
        powers = [Name(n) if e == 1 else Power(Name(n), e) for n, e in zip(used, map(int, exponents), strict=True) if e]
        number = Number(Fraction(int(c.p), int(c.q)))
        factors = powers if powers and number.value == 1 else [number, *powers]
        terms.append(factors[0] if len(factors) == 1 else Product(tuple(factors)))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms)) if terms else Number(Fraction(0))
