"""Points of finite systems."""

from __future__ import annotations

import random
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.elimination.quotient import NotFinite, distinct_values
from equifinal.algebra.elimination.solve import System, determined
from tests.support.modulo import PRIME, plenty, values_of


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
    ).solve(random.Random(0), plenty())
    assert found.count == 6
    assert distinct_values(found.coordinates[0], found.modulus) == 3


def test_sum_and_product_give_both_orders():
    found = system("a b", lambda a, b: a + b - 1009, lambda a, b: a * b - 1008 * 7).solve(random.Random(0), plenty())
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
    ).solve(random.Random(0), plenty())
    assert found.count == 1
    assert [int(c[0]) for c in found.coordinates] == [12345, 777777]


def test_coordinates_are_not_zero():
    """x*y = x*c has the solution y = c on the torus, and a line x = 0 off it."""
    found = system("x y", lambda x, y: x * y - x * 98765, lambda x, y: x - y - 1234567).solve(
        random.Random(0), plenty()
    )
    assert found.count == 1


def test_infinitely_many():
    with pytest.raises(NotFinite):
        system("x y", lambda x, y: x * y - 54321).solve(random.Random(0), plenty())


def test_saturation():
    found = system(
        "x y",
        lambda x, y: (x - 99991) * (y - 55555),
        lambda x, y: (x - 99991) * (x - 88888),
        nonzero=[lambda x, y: x - 99991],
    ).solve(random.Random(0), plenty())
    assert found.count == 1


def test_what_is_determined_is_known_before_everything_is():
    x, y, z = ring("xyz", PRIME).gens()
    a, b, c = 918273645, 546372819, 123454321
    found = determined([x - a, x * y - b, y * z * z - c], "xyz", PRIME, plenty())
    assert found == {"x": a, "y": b * pow(a, -1, PRIME) % PRIME}


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_planted_points_are_found(seed: int, count: int):
    """x among random numbers (simple ones would be taken for factors that hold everywhere), y a polynomial in x."""
    rng = random.Random(seed)
    shift, *places = (rng.randrange(PRIME) for _ in range(count + 1))
    found = system("x y", lambda x, y: prod(x - a for a in places), lambda x, y: y - x**2 - shift).solve(
        random.Random(0), plenty()
    )
    assert values_of(found.coordinates[0], found) == sorted(places)
    assert values_of(found.coordinates[1], found) == sorted((a * a + shift) % PRIME for a in places)
