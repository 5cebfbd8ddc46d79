"""Rational functions in one way of writing each: their terms, their factors, and how they change with time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint

from equifinal.language.expression import Expression, Name, Number, Power, Product, Sum, evaluate, names

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def number(value: Fraction | int) -> Number:
    return Number(Fraction(value))


def added(terms: Iterable[Expression]) -> Expression:
    """A sum without zeros."""
    kept = [term for term in terms if term != ZERO]
    return ZERO if not kept else kept[0] if len(kept) == 1 else Sum(tuple(kept))


def multiplied(*factors: Expression) -> Expression:
    """A product without ones, and zero if a factor is."""
    if ZERO in factors:
        return ZERO
    kept = [factor for factor in factors if factor != ONE]
    return ONE if not kept else kept[0] if len(kept) == 1 else Product(tuple(kept))


def raised(base: Expression, exponent: int) -> Expression:
    return ONE if exponent == 0 else base if exponent == 1 else Power(base, exponent)


def change(expression: Expression, rates: Mapping[str, Expression]) -> Expression:
    """The derivative with respect to time of a rational expression whose names have these rates of change."""
    match expression:
        case Name(name):
            return rates.get(name, ZERO)
        case Sum(terms):
            return added(change(term, rates) for term in terms)
        case Product(factors):
            return added(
                multiplied(change(factor, rates), *factors[:i], *factors[i + 1 :]) for i, factor in enumerate(factors)
            )
        case Power(base, exponent):
            return multiplied(number(exponent), raised(base, exponent - 1), change(base, rates))
    return ZERO


class _Quotient:
    """A fraction of polynomials in lowest terms, as `evaluate` needs it."""

    __slots__ = ("over", "under")

    def __init__(self, over: Any, under: Any):
        if under == 0:
            raise ZeroDivisionError
        common = over.gcd(under)
        leading = (under / common).leading_coefficient()
        self.over, self.under = over / common / leading, under / common / leading

    def __add__(self, other: _Quotient) -> _Quotient:
        return _Quotient(self.over * other.under + other.over * self.under, self.under * other.under)

    def __mul__(self, other: _Quotient) -> _Quotient:
        return _Quotient(self.over * other.over, self.under * other.under)

    def __truediv__(self, other: _Quotient) -> _Quotient:
        return _Quotient(self.over * other.under, self.under * other.over)

    def __pow__(self, exponent: int) -> _Quotient:
        return _Quotient(self.over**exponent, self.under**exponent)


def _quotients(*expressions: Expression) -> tuple[list[_Quotient], tuple[str, ...]]:
    """As fractions in one ring, and the names that stand for its generators."""
    used = tuple(sorted({name for expression in expressions for name in names(expression)}))
    ring = flint.fmpq_mpoly_ctx.get([f"x{i}" for i in range(len(used))], "degrevlex")

    def constant(value: Fraction) -> _Quotient:
        return _Quotient(ring.constant(flint.fmpq(value.numerator, value.denominator)), one)

    one = ring.constant(1)
    table = {name: _Quotient(gen, one) for name, gen in zip(used, ring.gens(), strict=True)}
    return [evaluate(expression, table, constant) for expression in expressions], used


def _quotient(expression: Expression) -> tuple[_Quotient, tuple[str, ...]]:
    (quotient,), used = _quotients(expression)
    return quotient, used


def _monomial(exponents: Iterable[int], used: tuple[str, ...]) -> Expression:
    return multiplied(*(raised(Name(n), e) for n, e in zip(used, map(int, exponents), strict=True) if e))


def _polynomial(polynomial: Any, used: tuple[str, ...]) -> Expression:
    return added(
        multiplied(number(_fraction(c)), _monomial(exponents, used)) for exponents, c in polynomial.to_dict().items()
    )


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def simplified(expression: Expression) -> Expression:
    """The expression as one fraction in lowest terms; equal functions look the same.

    Raises
    ------
    ZeroDivisionError
        If it divides by zero for all values of its names.
    """
    quotient, used = _quotient(expression)
    under = _polynomial(quotient.under, used)
    over = _polynomial(quotient.over, used)
    return over if under == ONE else ZERO if over == ZERO else multiplied(over, Power(under, -1))


def value_of(expression: Expression) -> Fraction | None:
    """The value of an expression that is the same for all values of its names; None if it is not."""
    found = simplified(expression)
    return found.value if isinstance(found, Number) else None


def terms_of(expression: Expression) -> dict[Expression, Fraction]:
    """The expression as a combination of terms, monomials over a denominator, with rational coefficients."""
    found: dict[Expression, Fraction] = {}
    if isinstance(expression, Sum):
        for part in expression.terms:
            for term, c in terms_of(part).items():
                found[term] = found.get(term, Fraction(0)) + c
        return {term: c for term, c in found.items() if c}
    quotient, used = _quotient(expression)
    under = _polynomial(quotient.under, used)
    for exponents, c in quotient.over.to_dict().items():
        term = _monomial(exponents, used)
        if under != ONE:
            term = simplified(multiplied(term, Power(under, -1)))
            if isinstance(term, Product) and isinstance(term.factors[0], Number):
                c, term = c * flint.fmpq(*term.factors[0].value.as_integer_ratio()), multiplied(*term.factors[1:])
        found[term] = found.get(term, Fraction(0)) + _fraction(c)
    return {term: c for term, c in found.items() if c}


def factors_of(expression: Expression) -> tuple[Fraction, dict[Expression, int]]:
    """A number and irreducible polynomials with their exponents, whose product the expression is.

    The number is positive wherever the sign can be given to a factor.
    """
    quotient, used = _quotient(expression)
    found: dict[Expression, int] = {}
    content = Fraction(1)
    for polynomial, sign in ((quotient.over, 1), (quotient.under, -1)):
        constant, factors = polynomial.factor()
        content *= _fraction(flint.fmpq(constant)) ** sign
        for factor, exponent in factors:
            leading = _fraction(flint.fmpq(factor.leading_coefficient()))
            content *= leading ** (sign * int(exponent)) if len(factor.to_dict()) == 1 else 1
            alone = factor / factor.leading_coefficient() if len(factor.to_dict()) == 1 else factor
            found[_polynomial(alone, used)] = sign * int(exponent)
    odd = [factor for factor, exponent in found.items() if exponent % 2 and not isinstance(factor, Name)]
    if content < 0 and odd:
        exponent = found.pop(odd[0])
        found[simplified(multiplied(number(-1), odd[0]))] = exponent
        content = -content
    return content, found


def numerator(expression: Expression) -> Expression:
    """The numerator of the expression in lowest terms."""
    quotient, used = _quotient(expression)
    return _polynomial(quotient.over, used)


def without_factors(expression: Expression, others: Sequence[Expression]) -> Expression:
    """The polynomial divided by whatever it has in common with the numerators of the others, as often as it does."""
    (polynomial, *given), used = _quotients(expression, *others)
    left = polynomial.over
    for other in (o for o in given if o.over != 0):
        while (common := left.gcd(other.over)).total_degree() > 0:
            left /= common
    return _polynomial(left, used)


def linear_parts(expression: Expression, name: str) -> tuple[Expression, Expression] | None:
    """A and B, free of the name, such that the polynomial is A*name + B; None if its degree in the name is not 1."""
    quotient, used = _quotient(expression)
    if name not in used or quotient.under.total_degree() > 0:
        return None
    at = used.index(name)
    slope = quotient.over.derivative(at)
    if slope == 0 or slope.derivative(at) != 0:
        return None
    rest = quotient.over - slope * quotient.over.context().gens()[at]
    return _polynomial(slope, used), _polynomial(rest, used)
