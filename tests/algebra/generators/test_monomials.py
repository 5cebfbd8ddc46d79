"""Exponents of monomial invariants: null spaces with simple entries, short vectors of lattices."""

from __future__ import annotations

import random
from fractions import Fraction

import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.algebra.generators.monomials import (
    rational_nullspace,
    short_lattice_basis,
    short_solutions,
    weighted_rows,
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


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-4, 4), min_size=4, max_size=4), min_size=1, max_size=3))
def test_null_spaces_are_those_of_sympy(rows: list[list[int]]) -> None:
    found = rational_nullspace([[v % PRIME for v in row] for row in rows], 4, PRIME)
    matrix = sympy.Matrix(rows)
    assert len(found) == 4 - matrix.rank()
    for vector in found:
        exact = sympy.Matrix([sympy.Rational(v.numerator, v.denominator) for v in vector])
        assert matrix * exact == sympy.zeros(len(rows), 1)


def test_entries_that_are_not_simple_leave_a_vector_out() -> None:
    assert rational_nullspace([[1, 918273645]], 2, PRIME) == []
    assert rational_nullspace([[1, PRIME - 2]], 2, PRIME) == [[Fraction(2), Fraction(1)]]


def test_kernels_are_divided_by_their_point() -> None:
    (row,) = weighted_rows([[[6, 5, 35]]], [[2, 3, 7]], [0, 2], PRIME)
    assert row == [3, 5]
