r"""Polynomial invariants of low degree: an ansatz with unknown rational coefficients and exact linear
algebra.

:math:`f = \sum_m a_m m(\theta)` is constant along fibres if and only if :math:`\sum_m a_m \nabla m\cdot k =
0` for all kernel vectors at all points: linear equations for the :math:`a_m` with entries modulo a prime,
solved there, and lifted to rationals. Monomials are ordered by simplicity, so that each solution is its
leading monomial expressed in the simplest others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from equifinal.algebra.kernels import KernelField
from equifinal.algebra.monomials import rational_nullspace

Exponents = tuple[int, ...]


def monomials_up_to(variables: Sequence[int], degree: int, n: int) -> list[Exponents]:
    found = []
    for d in range(1, degree + 1):
        for combination in combinations_with_replacement(variables, d):
            exponents = [0] * n
            for i in combination:
                exponents[i] += 1
            found.append(tuple(exponents))
    return found


def gradient_rows(monomials: Sequence[Exponents], field: KernelField) -> Iterator[list[int]]:
    """For every kernel vector at every point the derivatives of all monomials along it."""
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
            yield [v * sum(row[i] * s for i, s in log) % p for v, log in zip(values, logarithmic, strict=True)]


def invariants(monomials: Sequence[Exponents], field: KernelField) -> list[dict[Exponents, Fraction]]:
    """A basis of the invariant combinations of the monomials, as far as coefficients are simple rationals.

    The kernel field must hold at least len(monomials)/r + 2 points.
    """
    rows = list(gradient_rows(monomials, field))
    if not rows:
        return [{m: Fraction(1)} for m in monomials]
    solutions = rational_nullspace(rows, len(monomials), field.local.prime)
    return [{m: c for m, c in zip(monomials, solution, strict=True) if c} for solution in solutions]
