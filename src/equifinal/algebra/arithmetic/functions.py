"""Functions of theta: values and gradients modulo a prime, polynomials to expressions and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from equifinal.algebra.arithmetic.residues import residue
from equifinal.algebra.arithmetic.rings import inverses
from equifinal.algebra.arithmetic.schedule import recorded
from equifinal.language.expression import Expression, Name, Number, Power, Product, Sum, walk

Exponents = tuple[int, ...]


def values_and_gradients(
    expressions: Sequence[Expression],
    constants: Mapping[str, Fraction],
    names: Sequence[str],
    points: np.ndarray,
    prime: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays (expressions, batch) and (expressions, batch, names)."""
    program, roots, steps = recorded(expressions, constants)
    values: dict[int, np.ndarray] = {}
    slopes: dict[int, np.ndarray] = {}
    p = prime
    batch, n = points.shape
    for i in steps:
        step = program.steps[i]
        if step.kind == "number":
            values[i] = np.full(batch, residue(step.value, p), dtype=np.int64)
            slopes[i] = np.zeros((batch, n), dtype=np.int64)
        elif step.kind == "name":
            position = list(names).index(step.name)
            values[i] = points[:, position].astype(np.int64)
            slopes[i] = np.zeros((batch, n), dtype=np.int64)
            slopes[i][:, position] = 1
        else:
            a, b, da, db = values[step.left], values[step.right], slopes[step.left], slopes[step.right]
            if step.kind == "add":
                values[i], slopes[i] = (a + b) % p, (da + db) % p
            elif step.kind == "mul":
                values[i], slopes[i] = a * b % p, (a[:, None] * db % p + b[:, None] * da % p) % p
            else:
                inverse = inverses(b, p)
                values[i] = a * inverse % p
                slopes[i] = (da - values[i][:, None] * db % p) % p * inverse[:, None] % p
    if not roots:
        return np.zeros((0, batch), dtype=np.int64), np.zeros((0, batch, n), dtype=np.int64)
    return np.stack([values[i] for i in roots]), np.stack([slopes[i] for i in roots])


def monomial_expression(exponents: Mapping[str, int], coefficient: Fraction = Fraction(1)) -> Expression:
    """A Laurent monomial, positive powers first."""
    positive = [n for n, e in exponents.items() if e > 0]
    negative = [n for n, e in exponents.items() if e < 0]
    factors: list[Expression] = []
    if coefficient != 1 or not positive:
        factors.append(Number(coefficient))
    factors += [Name(n) if exponents[n] == 1 else Power(Name(n), exponents[n]) for n in positive]
    factors += [Power(Name(n), exponents[n]) for n in negative]
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


def polynomial_expression(names: Sequence[str], terms: Mapping[Exponents, Fraction]) -> Expression:
    """A polynomial, terms of high degree and positive sign first."""
    ordered = sorted(terms.items(), key=lambda t: (t[1] < 0, -sum(t[0]), tuple(-e for e in t[0])))
    parts = []
    for exponents, c in ordered:
        named = {n: e for n, e in zip(names, exponents, strict=True) if e}
        parts.append(monomial_expression(named, c) if named else Number(c))
    if not parts:
        return Number(Fraction(0))
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


def sum_expression(first: Mapping[str, int], second: Mapping[str, int], factor: Fraction) -> Expression:
    """first + factor*second for two Laurent monomials, with whole coefficients."""
    scale = Fraction(factor.denominator)
    parts = (monomial_expression(first, scale), monomial_expression(second, factor * scale))
    return Sum(parts)


def quotient_expression(over: Expression, under: Expression) -> Expression:
    if isinstance(under, Number) and under.value == 1:
        return over
    return Product((over, Power(under, -1)))


def complexity(expression: Expression) -> tuple[int, int, int]:
    """How simple an expression is to read: number of terms, sum of exponents, size of numbers."""
    terms = size = digits = 0

    def visit(node: Expression, weight: int) -> None:
        nonlocal terms, size, digits
        match node:
            case Number(value):
                digits += len(str(abs(value.numerator))) + len(str(value.denominator)) - 1 - (abs(value) == 1)
            case Name(_):
                size += weight
            case Sum(parts):
                terms += len(parts) - 1
                for part in parts:
                    visit(part, weight)
            case Product(parts):
                for part in parts:
                    visit(part, weight)
            case Power(base, exponent):
                visit(base, weight * abs(exponent))
                digits += exponent < 0

    visit(expression, 1)
    return terms, size, digits


def degree_bound(expression: Expression) -> int:
    """A bound on the degrees of numerator and denominator."""
    match expression:
        case Name(_):
            return 1
        case Power(base, exponent):
            return degree_bound(base) * abs(exponent)
        case Product(parts):
            return sum(map(degree_bound, parts))
        case Sum(parts):
            divides = any(isinstance(node, Power) and node.exponent < 0 for node in walk(expression))
            return (sum if divides else max)(map(degree_bound, parts))
    return 0
