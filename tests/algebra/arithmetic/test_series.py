"""Power series modulo a prime against series known in closed form."""

from __future__ import annotations

import random
from fractions import Fraction
from math import factorial

import numpy as np
import pytest

from equifinal.algebra.arithmetic.residues import BadPrime, random_prime, rational, residue
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.language.model import Model
from tests.support.modulo import PRIME, plenty


def series(model: Model, point: dict[str, int], order: int) -> OutputSeries:
    array = np.array([[point[n] for n in model.parameters]], dtype=np.int64).reshape(1, len(point))
    run = OutputSeries(model, model.parameters, array, {}, PRIME)
    run.extend(order, plenty())
    return run


def test_exponential_and_its_derivatives():
    run = series(Model.parse("x' = k*x", ["x"]), {"k": 3, "x_0": 5}, 12)
    values = run.output_coefficients()[0, :, 0]
    slopes = run.output_jacobian()[0]
    for n in range(12):
        assert values[n] == residue(Fraction(5 * 3**n, factorial(n)), PRIME)
        by_k = Fraction(5 * n * 3 ** max(n - 1, 0), factorial(n))
        assert slopes[n, 0] == residue(by_k, PRIME)
        assert slopes[n, 1] == residue(Fraction(3**n, factorial(n)), PRIME)


def test_quotients():
    """x' = 1/x has x = sqrt(x0^2 + 2t); squares of the series must be linear."""
    run = series(Model.parse("x' = 1/x\ny = x^2", ["y"]), {"x_0": 7}, 10)
    assert run.output_coefficients()[0, :, 0].tolist() == [49, 2] + [0] * 8


def test_growing_keeps_what_is_known():
    model = Model.parse("x' = a*x*(1 - x/K) + u/(1 + x)\ny = x/(a + x)", ["y"], inputs=["u"])
    rng = random.Random(4)
    signals = {"u": np.array([rng.randrange(PRIME) for _ in range(40)])}
    points = np.array([[rng.randrange(1, PRIME) for _ in model.parameters] for _ in range(3)])
    at_once = OutputSeries(model, model.parameters, points, signals, PRIME)
    at_once.extend(33, plenty())
    step_by_step = OutputSeries(model, model.parameters, points, signals, PRIME)
    for order in (3, 9, 20, 33):
        step_by_step.extend(order, plenty())
    assert np.array_equal(at_once.output_jacobian(), step_by_step.output_jacobian())


def test_singular_start_is_reported():
    with pytest.raises(BadPrime):
        series(Model.parse("x' = 1/x\nx(0) = 0", ["x"]), {}, 3)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(7), Fraction(-10000), Fraction(22, 7), Fraction(-1, 999)])
def test_rational_reconstruction(value):
    for seed in range(5):
        prime = random_prime(random.Random(seed))
        assert rational(residue(value, prime), prime) == value
