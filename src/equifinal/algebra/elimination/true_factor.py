"""The factor of a resultant that vanishes at a generic solution; the others are extraneous.

Factoring is a costly step of an elimination, and most often there is nothing to find. So factors that lack one variable
are divided out first, as a greatest common divisor, and an image in that variable alone may then show that what is left
is irreducible.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import flint

from equifinal.algebra.arithmetic.budget import Budget, divisor_steps, factor_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, coefficients_in, value_at, without_monomial_factor

TRIES = 3  # images for each degree, before a polynomial is factored after all


def true_factor(polynomial: Polynomial, point: Sequence[int], prime: int, budget: Budget) -> Polynomial:
    """The irreducible factor that vanishes at the point; the polynomial itself if none does."""
    if polynomial.is_zero():
        return polynomial
    primitive = without_monomial_factor(polynomial)
    x = _least_degree(primitive)
    if x is not None:
        parts = coefficients_in(primitive, x)
        budget.spend(sum(divisor_steps(part, parts[-1]) for part in parts))
        content = _common_divisor(parts)
        if not content.is_constant():
            if value_at(content, point) == 0:
                return true_factor(content, point, prime, budget)
            primitive = primitive / content
        if _is_irreducible(primitive, x, prime):
            return primitive
    budget.spend(factor_steps(primitive))
    for factor, _ in primitive.factor()[1]:
        if value_at(factor, point) == 0:
            return factor
    return polynomial


def _least_degree(polynomial: Polynomial) -> int | None:
    """The variable in which a polynomial has the least degree of all that it contains."""
    degrees = [(int(degree), i) for i, degree in enumerate(polynomial.degrees()) if degree]
    return min(degrees)[1] if degrees else None


def _common_divisor(polynomials: Sequence[Polynomial]) -> Polynomial:
    first, *rest = sorted((p for p in polynomials if not p.is_zero()), key=len)
    for other in rest:
        if first.is_constant():
            break
        first = first.gcd(other)
    return first


def _is_irreducible(primitive: Polynomial, x: int, prime: int) -> bool:
    """Whether a polynomial without factors free of x is shown to be irreducible: by one of its images in x alone.

    An irreducible polynomial of degree d has an irreducible image about once in d times; so False means little.
    """
    parts, rng = coefficients_in(primitive, x), random.Random(len(primitive))
    if len(parts) == 2:
        return True
    for _ in range(TRIES * len(parts)):
        point = [rng.randrange(prime) for _ in range(primitive.context().nvars())]
        image = flint.nmod_poly([value_at(part, point) for part in parts], prime)
        factors = image.factor()[1] if image.degree() == len(parts) - 1 else []
        if len(factors) == 1 and factors[0][1] == 1:
            return True
    return False
