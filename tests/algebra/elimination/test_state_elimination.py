"""Which factor of a resultant is the true one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from equifinal.algebra.arithmetic.polynomials import coefficients_in, ring, value_at
from equifinal.algebra.elimination.state_elimination import Eliminator, GenericPoint
from equifinal.language.model import Model
from tests.support.modulo import PRIME, plenty

MODEL = Model.parse("x' = -a*x + b*z\nz' = c*x*z\ny = x", ["y"])


def eliminator() -> Eliminator:
    rng = random.Random(0)
    numbers = [rng.randrange(PRIME) for _ in range(12)]
    names = ["x", "z", *MODEL.parameters]
    values = {name: rng.randrange(1, PRIME) for name in names}
    states = {x: values[x] for x in MODEL.states}
    generic = GenericPoint(states, values, {"y": numbers}, PRIME)
    return Eliminator(MODEL, list(MODEL.parameters), {}, PRIME, generic, plenty())


def random_polynomial(rng: random.Random, context: Any, terms: int) -> Any:
    def exponents() -> tuple[int, ...]:
        return tuple(rng.choice([0, 1, 1, 2]) if rng.random() < 0.3 else 0 for _ in range(context.nvars()))

    return context.from_dict({exponents(): rng.randrange(1, PRIME) for _ in range(terms)})


@pytest.mark.parametrize("seed", range(30))
def test_the_true_factor_is_the_irreducible_one_that_vanishes(seed: int) -> None:
    rng, work = random.Random(seed), eliminator()
    first = random_polynomial(rng, work.context, rng.randint(2, 10))
    true = first - work.context.constant(value_at(first, work.point))
    (factor,) = [f for f, _ in true.factor()[1] if value_at(f, work.point) == 0]
    product = factor
    for _ in range(rng.randint(0, 3)):
        product = product * (random_polynomial(rng, work.context, rng.randint(1, 4)) + 1)
    found = work._true_factor(product)
    assert found / int(found.coeffs()[0]) == factor / int(factor.coeffs()[0])


def test_a_power_of_the_true_factor() -> None:
    work = eliminator()
    x, z, *_ = work.context.gens()
    factor = x**2 * z + x - value_at(x**2 * z + x, work.point)
    found = work._true_factor(factor**2 * (z + 1))
    assert found / int(found.coeffs()[0]) == factor / int(factor.coeffs()[0])


def test_coefficients_of_powers() -> None:
    context = ring("abc", PRIME)
    a, b, c = context.gens()
    polynomial = (3 * b + c) * a**3 + 5 * b * a + c**2
    assert coefficients_in(polynomial, 0) == [c**2, 5 * b, context.constant(0), 3 * b + c]
    assert coefficients_in(polynomial, 1) == [c * a**3 + c**2, 3 * a**3 + 5 * a]
    assert coefficients_in(context.constant(0), 1) == [context.constant(0)]
