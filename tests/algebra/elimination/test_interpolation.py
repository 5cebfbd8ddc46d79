"""Relations from coefficients that are evaluated, never written out."""

from __future__ import annotations

import random

import pytest

from equifinal.algebra.arithmetic.polynomials import value_at
from equifinal.algebra.elimination.fibre_points import Experiment
from equifinal.algebra.elimination.interpolation import Coefficients, has_one_relation
from equifinal.language.model import Model
from tests.support.modulo import local_of, plenty

TWO = Model.parse("x' = -(k + e)*x + m*z\nz' = k*x - m*z\ny = x\nx(0) = 1\nz(0) = 0", ["y"])


def experiment(model: Model) -> Experiment:
    return Experiment(model, local_of(model), 0, list(model.parameters), {}, random.Random(1))


@pytest.mark.parametrize("samples", [40, 120])
def test_relations_hold_where_the_sum_and_a_product_are_the_same(samples: int) -> None:
    """y'' + (k + e + m) y' + e m y = 0 says no more than that."""
    work = experiment(TWO)
    prime = work.local.prime
    relations = work.interpolate(samples, plenty())
    k, e, m = (work.local.point[name] for name in "kem")
    other = {"k": k + e + m - 2 * e - m * pow(2, -1, prime), "e": 2 * e, "m": m * pow(2, -1, prime)}
    for point, expected in ((work.local.point, True), (other, True), (other | {"k": k}, False)):
        at = [point[name] % prime for name in work.free]
        assert all(value_at(r, at) == 0 for r in relations) is expected


def test_eliminations_at_points_are_those_of_the_whole() -> None:
    work = experiment(TWO)
    prime = work.local.prime
    coefficients = Coefficients(TWO, work.free, {}, work.local, random.Random(2))
    points = [{"k": 2, "e": 3, "m": 5}, {"k": 7, "e": 11, "m": 13}]
    for point, found in zip(points, coefficients.at(points, plenty()), strict=True):
        (equation,) = found.equations
        of = {
            order: int(c)
            for monomial, c in equation.to_dict().items()
            for (signal, order), position in found.jets.items()
            if signal == "y" and monomial[position]
        }
        assert of[1] == (point["k"] + point["e"] + point["m"]) * of[2] % prime
        assert of[0] == point["e"] * point["m"] * of[2] % prime


def test_equations_of_which_monomials_depend_on_each_other_are_told() -> None:
    """Started at its fixed point x = 1, a logistic population stays there: x' = 0 and x = x^2 as well."""
    for start, expected in (("x(0) = c", True), ("x(0) = 1", False)):
        work = experiment(Model.parse(f"x' = r*x*(1 - x)\ny = x\n{start}", ["y"]))
        found = work.eliminate(plenty())
        signals = work.signals_to(20, plenty())
        assert has_one_relation(found, found.equations[0], signals, plenty()) is expected
