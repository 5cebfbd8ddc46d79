r"""Monomial invariants of the fibre: one integer-lattice computation.

:math:`\prod \theta_i^{e_i}` is constant along the fibre if and only if :math:`\sum_i e_i k_i/\theta_i = 0`
for every kernel vector k at every point. The rational solutions e of that linear system, over enough random
points, form a lattice; LLL finds short vectors of it. (What is left invariant are the scalings: the
orthogonal lattice.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import flint

from equifinal.algebra.arithmetic.residues import rational


def rational_nullspace(rows: Sequence[Sequence[int]], columns: int, prime: int) -> list[list[Fraction]]:
    """Vectors with simple rational entries that the rows annihilate modulo the prime; others are left out."""
    if columns == 0:
        return []
    matrix = flint.nmod_mat(len(rows), columns, [int(v) for row in rows for v in row], prime)
    reduced, rank = matrix.rref()
    pivots, column = [], 0
    for i in range(rank):
        while int(reduced[i, column]) == 0:
            column += 1
        pivots.append(column)
        column += 1
    found = []
    for free in (j for j in range(columns) if j not in set(pivots)):
        vector = [Fraction(0)] * columns
        vector[free] = Fraction(1)
        for i, pivot in enumerate(pivots):
            value = rational(-int(reduced[i, free]) % prime, prime)
            if value is None:
                break
            vector[pivot] = value
        else:
            found.append(vector)
    return found


def short_lattice_basis(vectors: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """A reduced basis of all integer vectors in the rational span."""
    if not vectors:
        return []
    n = len(vectors[0])
    integral = []
    for vector in vectors:
        scale = lcm(*(v.denominator for v in vector))
        integral.append([int(v * scale) for v in vector])
    # integer points of the span: the kernel lattice of the kernel lattice
    orthogonal = _integer_kernel(integral, n)
    saturated = _integer_kernel(orthogonal, n) if orthogonal else [[int(i == j) for j in range(n)] for i in range(n)]
    reduced = flint.fmpz_mat(saturated).lll()
    rows = [[int(reduced[i, j]) for j in range(n)] for i in range(reduced.nrows())]
    return sorted((_positive(row) for row in rows if any(row)), key=lambda r: (sum(map(abs, r)), r))


def short_solutions(rows: Sequence[Sequence[int]], columns: int, prime: int, largest: int = 40) -> list[list[int]]:
    """Short integer vectors that the rows annihilate modulo the prime, from a reduced lattice basis."""
    matrix = flint.nmod_mat(len(rows), columns, [int(v) for row in rows for v in row], prime)
    reduced, rank = matrix.rref()
    pivots, column = [], 0
    for i in range(rank):
        while int(reduced[i, column]) == 0:
            column += 1
        pivots.append(column)
        column += 1
    basis = []
    for pivot in pivots:
        basis.append([prime * (j == pivot) for j in range(columns)])
    for free in (j for j in range(columns) if j not in set(pivots)):
        vector = [int(j == free) for j in range(columns)]
        for i, pivot in enumerate(pivots):
            vector[pivot] = -int(reduced[i, free]) % prime
        basis.append(vector)
    lattice = flint.fmpz_mat(basis).lll()
    found = [[int(lattice[i, j]) for j in range(columns)] for i in range(lattice.nrows())]
    return sorted((v for v in found if any(v) and max(map(abs, v)) <= largest), key=lambda v: sum(map(abs, v)))


def _integer_kernel(rows: Sequence[Sequence[int]], n: int) -> list[list[int]]:
    """A basis of the integer vectors orthogonal to the rows: a saturated lattice, from the Hermite form."""
    if not rows:
        return [[int(i == j) for j in range(n)] for i in range(n)]
    m = len(rows)
    # rows of [A^T | 1] in Hermite form: those with zero left part span the kernel
    extended = flint.fmpz_mat([[*(rows[k][i] for k in range(m)), *(int(i == j) for j in range(n))] for i in range(n)])
    form = extended.hnf()
    return [[int(form[i, m + j]) for j in range(n)] for i in range(n) if all(int(form[i, k]) == 0 for k in range(m))]


def _positive(row: list[int]) -> list[int]:
    common = gcd(*row) or 1
    row = [v // common for v in row]
    return row if sum(row) > 0 or (sum(row) == 0 and next(v for v in row if v) > 0) else [-v for v in row]


def weighted_rows(
    kernels: Sequence[Sequence[Sequence[int]]],
    points: Sequence[Sequence[int]],
    columns: Sequence[int],
    prime: int,
) -> list[list[int]]:
    """k_i/theta_i for the chosen coordinates, all kernel vectors at all points."""
    rows = []
    for kernel, point in zip(kernels, points, strict=True):
        inverse = [pow(int(point[i]), -1, prime) for i in columns]
        rows += [[int(row[i]) * inv % prime for i, inv in zip(columns, inverse, strict=True)] for row in kernel]
    return rows
