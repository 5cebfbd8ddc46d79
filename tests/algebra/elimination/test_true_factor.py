"""Which factor of a resultant is the true one, compared with factoring."""

from __future__ import annotations

import random
from typing import Any

import pytest

from equifinal.algebra.arithmetic.polynomials import ring, value_at
from equifinal.algebra.elimination.true_factor import true_factor
from tests.support.modulo import PRIME, plenty

RING = ring("abcdefgh", PRIME)
POINT = [random.Random(i).randrange(1, PRIME) for i in range(RING.nvars())]


def random_polynomial(rng: random.Random, terms: int) -> Any:
    def exponents() -> tuple[int, ...]:
        return tuple(rng.choice([0, 1, 1, 2]) if rng.random() < 0.3 else 0 for _ in POINT)

    return RING.from_dict({exponents(): rng.randrange(1, PRIME) for _ in range(terms)})


def monic(polynomial: Any) -> Any:
    return polynomial / int(polynomial.coeffs()[0])


@pytest.mark.parametrize("seed", range(30))
def test_the_irreducible_factor_that_vanishes(seed: int) -> None:
    rng = random.Random(seed)
    first = random_polynomial(rng, rng.randint(2, 10))
    vanishing = first - RING.constant(value_at(first, POINT))
    (factor,) = [f for f, _ in vanishing.factor()[1] if value_at(f, POINT) == 0]
    product = factor
    for _ in range(rng.randint(0, 3)):
        product = product * (random_polynomial(rng, rng.randint(1, 4)) + 1)
    assert monic(true_factor(product, POINT, PRIME, plenty())) == monic(factor)


def test_powers_and_factors_that_lack_variables() -> None:
    a, b, *_ = RING.gens()
    factor = a**2 * b + a - value_at(a**2 * b + a, POINT)
    assert monic(true_factor(factor**2 * (b + 1) * a, POINT, PRIME, plenty())) == monic(factor)
    lacking = b**2 - POINT[1] ** 2
    assert monic(true_factor(lacking * (a**2 + b) ** 2, POINT, PRIME, plenty())) == b - POINT[1]
    assert true_factor(RING.constant(0), POINT, PRIME, plenty()).is_zero()
