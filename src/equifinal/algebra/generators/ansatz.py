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

import numpy as np

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
    p, moving, numerators = field.local.prime, len(field.local.names), len(monomials)
    exponents = np.array([*monomials, *(under or {})], dtype=np.int64)
    coefficients = np.array([c % p for c in (under or {}).values()], dtype=np.int64)
    # points may have further coordinates, constants, along which nothing moves
    for point, kernel in zip(field.points, field.kernels, strict=True):
        inverse = [pow(v, -1, p) for v in point]
        values = _monomial_values(exponents, point, inverse, p)
        logarithmic = exponents[:, :moving] * np.array(inverse[:moving], dtype=np.int64) % p
        for row in kernel:
            along = (logarithmic * np.array(row, dtype=np.int64) % p).sum(axis=1) % p
            slopes = values * along % p
            if under is not None:
                bottom, slope = ((coefficients * part[numerators:] % p).sum() % p for part in (values, slopes))
                slopes = (slopes[:numerators] * bottom - values[:numerators] * slope % p) % p
            yield slopes.tolist()


def _monomial_values(exponents: np.ndarray, point: Sequence[int], inverse: Sequence[int], prime: int) -> np.ndarray:
    """Values of Laurent monomials, residues of 31 bits each."""
    values = np.ones(len(exponents), dtype=np.int64)
    for i, column in enumerate(exponents.T):
        different, which = np.unique(column, return_inverse=True)
        powers = [pow(point[i] if e > 0 else inverse[i], abs(e), prime) for e in different.tolist()]
        values = values * np.array(powers, dtype=np.int64)[which] % prime
    return values


def invariants(
    monomials: Sequence[Exponents], field: KernelField, under: Mapping[Exponents, int] | None = None
) -> list[dict[Exponents, Fraction]]:
    """A basis of the invariant combinations of the monomials, as far as coefficients are simple rationals.

    With a denominator `under`, of the combinations that are invariant when divided by it.

    The kernel field must hold at least len(monomials)/r + 2 points.
    """
    rows = list(gradient_rows(monomials, field, under)) if monomials else []
    if not rows:
        return [{m: Fraction(1)} for m in monomials]
    solutions = rational_nullspace(rows, len(monomials), field.local.prime)
    return [{m: c for m, c in zip(monomials, solution, strict=True) if c} for solution in solutions]
