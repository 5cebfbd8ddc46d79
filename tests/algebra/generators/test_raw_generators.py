"""Coefficients and Lie derivatives as expressions: exact, and members of the field."""

from __future__ import annotations

import random

import sympy

from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.generators.membership import is_member
from equifinal.algebra.generators.raw_generators import coefficient_ratios, lie_derivatives, ratio_expression
from equifinal.language.expression import to_text
from equifinal.language.model import Model
from tests.support.expressions import as_sympy
from tests.support.modulo import PRIME, local_of, plenty, slice_of

SI = Model.parse("I' = b*(N - I)*I - g*I\ny = r*I", ["y"], constants={"N": 100})


def test_quotients_become_exact_expressions() -> None:
    a, b = ring("ab", PRIME).gens()
    assert to_text(ratio_expression(2 * a * b, 4 * b * b, "ab", PRIME)) == "a/b"  # up to a constant factor
    assert to_text(ratio_expression(a - 3 * b, a.context().constant(7), "ab", PRIME)) == "a - 3*b"
    assert ratio_expression(a + 918273645, b, "ab", PRIME) is None  # no number that a person wrote


def test_coefficients_of_the_equation_of_si() -> None:
    """y' = (b N - g) y - (b/r) y^2."""
    found = coefficient_ratios(SI, 0, local_of(SI), random.Random(0), plenty())
    fibre = slice_of(SI)
    assert found
    assert all(is_member(f, fibre) for f in found)
    assert {"b/r", "r/b"} & {to_text(f) for f in found}


def test_derivatives_at_time_zero() -> None:
    model = Model.parse("x' = -k*x\ny = s*x\nx(0) = a", ["y"])
    found = [as_sympy(to_text(f)) for f in lie_derivatives(model, local_of(model), plenty())]
    k, s, a = sympy.symbols("k s a")
    assert found == [s * a, k * s * a]  # up to constant factors


def test_models_with_inputs_have_none() -> None:
    model = Model.parse("x' = -k*x + u", ["x"], inputs=["u"])
    assert lie_derivatives(model, local_of(model), plenty()) == []
