"""Which candidates give the same output."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.algebra.elimination.conjugates import Field, Undefined, agreeing, evaluate_at
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from tests.support.modulo import PRIME, modulo, plenty, points_at, values_of

# a and -a, and k and m exchanged, are not told apart; another sum of k and m is
MODEL = Model.parse("x' = -k*x\nz' = -m*z\nx(0) = 1\nz(0) = 1\ny = a^2*(x + z)", ["y"])
TRUTH = {"k": 3, "m": 5, "a": 7}


def output(model: Model, point: dict[str, int], orders: int) -> np.ndarray:
    array = np.array([[point[name] for name in model.parameters]], dtype=np.int64)
    run = OutputSeries(model, model.parameters, array, {}, PRIME, tangents=False)
    run.extend(orders, plenty())
    return run.output_coefficients()[:, :, 0]


def kept(candidates: list[dict[str, int]]) -> list[list[int]]:
    names = list(MODEL.parameters)
    points = points_at([[c[n] % PRIME for n in names] for c in candidates])
    found = agreeing(points, names, {}, MODEL, {}, output(MODEL, TRUTH, 8), plenty(), enough=0)
    return [values_of(c, found) for c in found.coordinates]


def test_those_stay_whose_output_is_the_same() -> None:
    others = [TRUTH | {"a": -7}, TRUTH | {"k": 5, "m": 3}, TRUTH | {"k": 4, "m": 4}, TRUTH | {"a": 8}]
    expected = {"k": [3, 3, 5], "m": [3, 5, 5], "a": [7, 7, PRIME - 7]}
    assert kept([TRUTH, *others]) == [expected[name] for name in MODEL.parameters]


def test_if_none_agrees_the_prime_was_unlucky() -> None:
    with pytest.raises(BadPrime):
        kept([TRUTH | {"a": 8}, TRUTH | {"m": 6}])


def test_candidates_at_which_the_model_is_undefined_fall_out() -> None:
    model = Model.parse("x' = -k*x\nx(0) = 1/b\ny = b*x", ["y"])
    names = list(model.parameters)
    rows = [{"k": 3, "b": b} for b in (2, 0, 9)]
    points = points_at([[row[n] for n in names] for row in rows])
    found = agreeing(points, names, {}, model, {}, output(model, {"k": 3, "b": 2}, 6), plenty(), enough=0)
    assert values_of(found.coordinates[names.index("b")], found) == [2, 9]


def test_functions_at_all_points_at_once() -> None:
    points = points_at([(2, 3), (5, 7), (11, 13)])
    values = dict(zip("ab", points.coordinates, strict=True))
    field = Field(PRIME, points.modulus)
    expression = parse_expression("(a - 2*b)/(a + b)^2")
    (found,) = evaluate_at([expression], {}, values, field)
    expected = [modulo(expression, {"a": a, "b": b}) for a, b in ((2, 3), (5, 7), (11, 13))]
    assert values_of(found, points) == sorted(expected)
    with pytest.raises(Undefined) as undefined:
        evaluate_at([parse_expression("1/(a - 5)")], {}, values, field)
    assert undefined.value.divisor.degree() == 1  # at one of the three
