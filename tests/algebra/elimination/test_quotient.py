"""Finitely many points as polynomials in one variable, against the points themselves."""

from __future__ import annotations

import random

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.elimination.quotient import (
    NotFinite,
    distinct_values,
    is_single_valued,
    points_of,
    standard_monomials,
)
from tests.support.modulo import PRIME, plenty, points_at, values_of

rows = st.lists(st.tuples(st.integers(1, 99), st.integers(1, 5)), min_size=1, max_size=6)


@given(rows)
def test_values_are_counted(points: list[tuple[int, int]]) -> None:
    found = points_at(points)
    for coordinate, values in zip(found.coordinates, zip(*points, strict=True), strict=True):
        assert values_of(coordinate, found) == sorted(values)
        assert distinct_values(coordinate, found.modulus) == len(set(values))
        assert is_single_valued(coordinate, found.modulus) == (len(set(values)) == 1)


@given(rows)
def test_a_polynomial_at_all_points(points: list[tuple[int, int]]) -> None:
    found = points_at(points)
    x, y = ring(["x", "y"], PRIME).gens()
    assert values_of(found.value(x**2 * y - 3 * y), found) == sorted((a * a * b - 3 * b) % PRIME for a, b in points)


@given(rows, rows)
def test_two_sets_are_joined(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    found = points_at(one).joined(points_at(other), random.Random(0))
    assert found.count == len(one) + len(other)
    for k, coordinate in enumerate(found.coordinates):
        assert values_of(coordinate, found) == sorted(point[k] for point in [*one, *other])


def test_some_of_the_points() -> None:
    found = points_at([(10, 1), (20, 2), (30, 1)])
    kept = found.restricted(found.modulus.gcd(found.coordinates[1] - 1))
    assert values_of(kept.coordinates[0], kept) == [10, 30]


def test_monomials_under_a_staircase() -> None:
    assert len(standard_monomials([(2, 0), (0, 3)], 2)) == 6
    assert set(standard_monomials([(2, 0), (1, 1), (0, 2)], 2)) == {(0, 0), (1, 0), (0, 1)}
    assert standard_monomials([(0, 0)], 2) == []
    with pytest.raises(NotFinite):
        standard_monomials([(2, 0), (1, 1)], 2)


def test_multiple_zeros_are_counted_once() -> None:
    """x^2 = 0 and y^2 = 4: two points, of which the quotient by the ideal makes four."""
    basis = [{(2, 0): 1}, {(0, 2): 1, (0, 0): PRIME - 4}]
    found = points_of(basis, 2, PRIME, random.Random(0), plenty())
    assert found.count == 2
    assert values_of(found.coordinates[0], found) == [0, 0]
    assert values_of(found.coordinates[1], found) == [2, PRIME - 2]
    assert isinstance(found.modulus, flint.nmod_poly)
