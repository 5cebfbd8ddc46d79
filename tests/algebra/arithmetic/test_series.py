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
from tests.support.random_models import random_model
from tests.support.solution_count import PRIME as PRIME_OF_THE_ORACLE
from tests.support.solution_count import output_series


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


@pytest.mark.parametrize("seed", range(40))
def test_random_models_against_series_of_another_kind(seed):
    """The oracle finds one coefficient after the other when it is asked for it, in exact integers."""
    model, rng = random_model(seed), random.Random(seed)
    points = [{n: rng.randrange(1, PRIME_OF_THE_ORACLE) for n in model.parameters} for _ in range(2)]
    array = np.array([list(p.values()) for p in points], dtype=np.int64).reshape(2, len(model.parameters))
    run = OutputSeries(model, model.parameters, array, {}, PRIME_OF_THE_ORACLE)
    try:
        run.extend(20, plenty())
    except BadPrime:
        with pytest.raises(ValueError, match="not invertible"):
            [y[0] for y in output_series(model, points[0], int, lambda v: pow(v, -1, PRIME_OF_THE_ORACLE))]
        return
    for j, point in enumerate(points):
        expected = output_series(model, point, int, lambda v: pow(v, -1, PRIME_OF_THE_ORACLE))
        for k, y in enumerate(expected):
            assert run.output_coefficients()[k, :, j].tolist() == [y[n] % PRIME_OF_THE_ORACLE for n in range(20)]
