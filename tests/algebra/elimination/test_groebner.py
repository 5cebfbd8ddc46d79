"""Groebner bases, points of finite systems, lattices, resultants."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from equifinal.algebra.arithmetic.deadline import Deadline, OutOfTime
from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.arithmetic.resultants import resultant
from equifinal.algebra.elimination.groebner import groebner
from equifinal.algebra.elimination.quotient import NotFinite, distinct_values
from equifinal.algebra.elimination.solve import System
from equifinal.algebra.generators.monomials import short_lattice_basis, short_solutions

PRIME = 2147483629


def system(names: str, *equations, nonzero=()) -> System:
    context = ring(names.split(), PRIME)
    gens = context.gens()
    return System(names.split(), [e(*gens) for e in equations], [e(*gens) for e in nonzero], PRIME)


def test_elementary_symmetric_functions():
    """Three numbers are given by their sum, sum of products and product in six orders."""
    found = system(
        "x y z",
        lambda x, y, z: x + y + z - 918273645,
        lambda x, y, z: x * y + y * z + z * x - 546372819,
        lambda x, y, z: x * y * z - 123454321,
    ).solve(random.Random(0), Deadline(30))
    assert found.count == 6
    assert distinct_values(found.coordinates[0], found.modulus) == 3


def test_sum_and_product_give_both_orders():
    found = system("a b", lambda a, b: a + b - 1009, lambda a, b: a * b - 1008 * 7).solve(
        random.Random(0), Deadline(60)
    )
    assert found.count == 2
    a, b = found.coordinates
    assert (a + b) % found.modulus == 1009
    assert distinct_values(a, found.modulus) == 2


def test_multiple_zeros_count_once():
    found = system(
        "x y",
        lambda x, y: (x - 12345) ** 2,
        lambda x, y: (x - 12345) * (y - 777777),
        lambda x, y: (y - 777777) ** 3,
    ).solve(random.Random(0), Deadline(30))
    assert found.count == 1
    assert [int(c[0]) for c in found.coordinates] == [12345, 777777]


def test_coordinates_are_not_zero():
    """x*y = x*c has the solution y = c on the torus, and a line x = 0 off it."""
    found = system("x y", lambda x, y: x * y - x * 98765, lambda x, y: x - y - 1234567).solve(
        random.Random(0), Deadline(60)
    )
    assert found.count == 1


def test_infinitely_many():
    with pytest.raises(NotFinite):
        system("x y", lambda x, y: x * y - 54321).solve(random.Random(0), Deadline(30))


def test_saturation():
    found = system(
        "x y",
        lambda x, y: (x - 99991) * (y - 55555),
        lambda x, y: (x - 99991) * (x - 88888),
        nonzero=[lambda x, y: x - 99991],
    ).solve(random.Random(0), Deadline(30))
    assert found.count == 1


def test_deadline():
    """Eight random quadratic equations in eight unknowns have 256 zeros: not in a fiftieth of a second."""
    rng = random.Random(1)
    monomials = [m for d in (0, 1, 2) for m in combinations_with_replacement(range(8), d)]
    generators = [{tuple(m.count(i) for i in range(8)): rng.randrange(1, PRIME) for m in monomials} for _ in range(8)]
    with pytest.raises(OutOfTime):
        groebner(generators, PRIME, Deadline(0.02))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (2, 3), (3, 3), (4, 2)])
def test_resultant_vanishes_exactly_at_common_roots(m, n):
    context = ring(["x", "a", "b"], PRIME)
    x, a, b = context.gens()
    f, g = x - a, x - b
    for k in range(1, m):
        f = f * (x - a - 17 * k)
    for k in range(1, n):
        g = g * (x - b - 1009 * k)
    found = resultant(f, g, 0, 10_000, Deadline(30))
    assert found.degrees()[0] == 0
    for i in range(m):
        for j in range(n):
            assert int(found(0, 5 - 17 * i, 5 - 1009 * j)) == 0
    assert int(found(0, 5, 6)) != 0


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
