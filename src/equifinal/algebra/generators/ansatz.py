r"""Polynomial invariants of low degree: an ansatz with unknown rational coefficients and exact linear
algebra.

:math:`f = \sum_m a_m m(\theta)` is constant along fibres if and only if :math:`\sum_m a_m \nabla m\cdot k =
0` for all kernel vectors at all points: linear equations for the :math:`a_m` with entries modulo a prime,
solved there, and lifted to rationals. Monomials are ordered by simplicity, so that each solution is its
leading monomial expressed in the simplest others. The same works for f/g with a given denominator g, whose
derivative along k is (g df - f dg)/g^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from equifinal.algebra.generators.monomials import rational_nullspace
from equifinal.algebra.generators.null_spaces import KernelField

Exponents = tuple[int, ...]


def monomials_of(variables: Sequence[int], degree: int, n: int) -> list[Exponents]:
    found = []
    for combination in combinations_with_replacement(variables, degree):
        exponents = [0] * n
        for i in combination:
            exponents[i] += 1
        found.append(tuple(exponents))
    return found


def monomials_up_to(variables: Sequence[int], degree: int, n: int) -> list[Exponents]:
    return [m for d in range(1, degree + 1) for m in monomials_of(variables, d, n)]


def gradient_rows(
    monomials: Sequence[Exponents], field: KernelField, under: Mapping[Exponents, int] | None = None
) -> Iterator[list[int]]:
    """Compute, for every kernel vector at every point, the derivatives of all monomials along it.

    With a denominator `under`, those of monomial/under times under^2.
    """
    if under is not None:
        numerators = len(monomials)
        for row, values in _rows_and_values([*monomials, *under], field):
            bottom = sum(c * v for c, v in zip(under.values(), values[numerators:], strict=True))
            slope = sum(c * v for c, v in zip(under.values(), row[numerators:], strict=True))
            top = zip(row[:numerators], values[:numerators], strict=True)
            yield [(derivative * bottom - value * slope) % field.local.prime for derivative, value in top]
        return
    for row, _ in _rows_and_values(monomials, field):
        yield row


def _rows_and_values(monomials: Sequence[Exponents], field: KernelField) -> Iterator[tuple[list[int], list[int]]]:
    p = field.local.prime  # points may have further coordinates, constants, along which nothing moves
    for point, kernel in zip(field.points, field.kernels, strict=True):
        values = []
        logarithmic = []
        inverse = [pow(v, -1, p) for v in point]
        for exponents in monomials:
            value = 1
            for i, e in enumerate(exponents):
                if e:
                    value = value * pow(point[i] if e > 0 else inverse[i], abs(e), p) % p
            values.append(value)
            logarithmic.append(
                [(i, e * inverse[i] % p) for i, e in enumerate(exponents[: len(field.local.names)]) if e]
            )
        for row in kernel:
            derivatives = [v * sum(row[i] * s for i, s in log) % p for v, log in zip(values, logarithmic, strict=True)]
            yield derivatives, values


def invariants(
    monomials: Sequence[Exponents], field: KernelField, under: Mapping[Exponents, int] | None = None
) -> list[dict[Exponents, Fraction]]:
    """A basis of the invariant combinations of the monomials, as far as coefficients are simple rationals.

    With a denominator `under`, of the combinations that are invariant when divided by it.

    The kernel field must hold at least len(monomials)/r + 2 points.
    """
    rows = list(gradient_rows(monomials, field, under))
    if not rows:
        return [{m: Fraction(1)} for m in monomials]
    solutions = rational_nullspace(rows, len(monomials), field.local.prime)
    return [{m: c for m, c in zip(monomials, solution, strict=True) if c} for solution in solutions]
