"""Exponents of monomial invariants: null spaces with simple entries, short vectors of lattices."""

from __future__ import annotations

import random
from fractions import Fraction

from equifinal.algebra.generators.monomials import (
    short_lattice_basis,
    short_solutions,
)
from tests.support.modulo import PRIME


def test_lattice_is_saturated_and_short():
    vectors = [[Fraction(2), Fraction(4), Fraction(0)], [Fraction(1, 3), Fraction(0), Fraction(1)]]
    basis = short_lattice_basis(vectors)
    assert len(basis) == 2
    assert [1, 2, 0] in basis


def test_short_solutions():
    rng = random.Random(3)
    true = [1, 0, -2, 0, 3, 0, 0, 1]
    rows = []
    for _ in range(3):
        row = [rng.randrange(PRIME) for _ in true]
        row[0] = -sum(a * b for a, b in zip(row[1:], true[1:], strict=True)) % PRIME
        rows.append(row)
    found = short_solutions(rows, len(true), PRIME)
    assert true in found or [-v for v in true] in found
