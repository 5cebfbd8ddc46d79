"""Multivariate polynomials modulo a prime: fractions of them, substitution, grouping of terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint

from equifinal.algebra.arithmetic.budget import Budget, product_steps, refuse_long_power
from equifinal.algebra.arithmetic.residues import BadPrime, residue
from equifinal.language.expression import Expression, evaluate

Polynomial = Any  # flint.nmod_mpoly
Ring = Any  # flint.nmod_mpoly_ctx


def ring(names: Sequence[str], prime: int) -> Ring:
    """Polynomials in `names`; flint sees v0, v1, ... because model names may be in any script."""
    context: Any = flint.nmod_mpoly_ctx  # its stubs have the arguments in another order
    return context.get([f"v{i}" for i in range(len(names))], prime, "degrevlex")


class Ratio:
    """A fraction of polynomials, cancelled, as `evaluate` needs it."""

    __slots__ = ("over", "under")

    def __init__(self, over: Polynomial, under: Polynomial, *, cancelled: bool = False):
        if under.is_zero():
            raise BadPrime
        if not cancelled and not under.is_constant():
            common = over.gcd(under)
            if not common.is_constant():
                over, under = over / common, under / common
        self.over: Polynomial = over
        self.under: Polynomial = under

    def __add__(self, other: Ratio) -> Ratio:
        if self.under == other.under:
            return Ratio(self.over + other.over, self.under)
        return Ratio(self.over * other.under + other.over * self.under, self.under * other.under)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + Ratio(-other.over, other.under, cancelled=True)

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.over * other.over, self.under * other.under)

    def __truediv__(self, other: Ratio) -> Ratio:
        if other.over.is_zero():
            raise BadPrime
        return Ratio(self.over * other.under, self.under * other.over)

    def __pow__(self, exponent: int) -> Ratio:
        refuse_long_power(max(len(self.over), len(self.under)), exponent)
        return Ratio(self.over**exponent, self.under**exponent, cancelled=True)


def to_ratio(
    expression: Expression, values: Mapping[str, Polynomial], constants: Mapping[str, Fraction], into: Ring
) -> Ratio:
    """An expression as a fraction of polynomials; `values` says what each name stands for."""
    one = into.constant(1)
    prime = int(into.modulus())

    def number(value: Fraction) -> Ratio:
        return Ratio(into.constant(residue(value, prime)), one, cancelled=True)

    table = {name: Ratio(polynomial, one, cancelled=True) for name, polynomial in values.items()}
    table |= {name: number(value) for name, value in constants.items()}
    return evaluate(expression, table, number)


def coefficients_in(polynomial: Polynomial, index: int) -> list[Polynomial]:
    """The coefficients of powers 0, 1, 2, ... of one variable."""
    variable, found = polynomial.context().gens()[index], []
    for _ in range(int(polynomial.degrees()[index])):
        polynomial, rest = divmod(polynomial, variable)  # far sooner done than taking terms to pieces here
        found.append(rest)
    return [*found, polynomial]


def grouped(polynomial: Polynomial, kept: Sequence[int]) -> dict[tuple[int, ...], dict[tuple[int, ...], int]]:
    """Terms by their exponents outside `kept`; within a group, exponents of the kept variables."""
    inside = set(kept)
    outside = [i for i in range(polynomial.context().nvars()) if i not in inside]
    groups: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for monomial, coefficient in polynomial.to_dict().items():
        key = tuple(monomial[i] for i in outside)
        groups.setdefault(key, {})[tuple(monomial[i] for i in kept)] = int(coefficient)
    return groups


def divided_out(polynomial: Polynomial, divisor: Polynomial) -> Polynomial:
    """The polynomial without any power of the divisor."""
    if divisor.is_constant() or polynomial.is_zero():
        return polynomial
    while True:
        quotient, remainder = divmod(polynomial, divisor)
        if not remainder.is_zero():
            return polynomial
        polynomial = quotient


def without_monomial_factor(polynomial: Polynomial) -> Polynomial:
    """Divide a polynomial by the largest monomial that divides every term."""
    content = polynomial.term_content()
    return polynomial if content.is_constant() else polynomial / content


def value_at(polynomial: Polynomial, point: Sequence[int]) -> int:
    return int(polynomial(*point))


def used_variables(polynomials: Iterable[Polynomial]) -> set[int]:
    return {i for polynomial in polynomials for i, degree in enumerate(polynomial.degrees()) if degree > 0}


def mapped(polynomial: Polynomial, images: Sequence[Polynomial], into: Ring, budget: Budget) -> Polynomial:
    """The polynomial with every variable replaced by its image, a polynomial of another ring."""
    powers: list[list[Any]] = [[into.constant(1)] for _ in images]

    def power(i: int, exponent: int) -> Any:
        row = powers[i]
        while len(row) <= exponent:
            budget.spend(product_steps(row[-1], images[i]))
            row.append(row[-1] * images[i])
        return row[exponent]

    total = into.constant(0)
    for monomial, coefficient in polynomial.to_dict().items():
        budget.spend(8 + len(total) / 20)
        term = into.constant(int(coefficient))
        for i, exponent in enumerate(monomial):
            if exponent:
                budget.spend(product_steps(term, power(i, exponent)))
                term = term * power(i, exponent)
        total = total + term
    return total
