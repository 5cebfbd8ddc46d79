r"""Functions that are independent of each other, in which all others are rational.

``exp``, powers and ``tanh`` are products of *powers*, the exponentials of vectors

    w = \prod_i b_i^{c_i m_i},   c_i rational numbers, b_i irreducible polynomials or e, m_i monomials,

sines and cosines are rational in the tangents of half the angle, logarithms are sums of those of irreducible
factors. Powers whose vectors are combinations of others with whole coefficients are products of these. What is left is
independent (Ax, Ann. of Math. 93, 1971), so that nothing is lost when it is taken to be free.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import flint

from equifinal.language.expression import Expression

Key = tuple[Expression | None, Expression]  # base, None being e, and monomial
Vector = dict[Key, Fraction]


class Refine(Exception):
    """An atom must be split: its vector divided by a whole number, so that another one is a multiple of it."""

    def __init__(self, vector: Vector, divisor: int):
        super().__init__()
        self.vector = vector
        self.divisor = divisor


def hashable(vector: Vector) -> frozenset[tuple[Key, Fraction]]:
    return frozenset(vector.items())


def divided(vector: Vector, divisor: int) -> Vector:
    return {key: c / divisor for key, c in vector.items()}


def in_whole_numbers(vector: Vector, basis: Sequence[Vector]) -> list[int] | None:
    """Coefficients of the vector in an independent basis; None if it is independent of the basis.

    Raises
    ------
    Refine
        If they are not whole: some vector of the basis must be divided first.
    """
    keys = list(dict.fromkeys([key for v in (*basis, vector) for key in v]))
    columns = [*basis, vector]
    entries = [flint.fmpq(*v.get(key, Fraction(0)).as_integer_ratio()) for key in keys for v in columns]
    reduced, rank = flint.fmpq_mat(len(keys), len(columns), entries).rref()
    if rank > len(basis):
        return None
    found = [Fraction(int(reduced[i, len(basis)].p), int(reduced[i, len(basis)].q)) for i in range(len(basis))]
    for v, c in zip(basis, found, strict=True):
        if c.denominator != 1:
            raise Refine(v, c.denominator)
    return [int(c) for c in found]
