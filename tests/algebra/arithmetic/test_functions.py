"""Functions of theta modulo a prime against SymPy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equifinal.algebra.arithmetic.functions import (
    complexity,
    degree_bound,
    monomial_expression,
    polynomial_expression,
    quotient_expression,
    sum_expression,
    values_and_gradients,
)
from equifinal.algebra.arithmetic.residues import residue
from equifinal.language.expression import to_text
from equifinal.language.parser import parse_expression
from tests.support.expressions import NAMES, as_sympy, rational_texts
from tests.support.modulo import PRIME, modulo

POINTS = np.array([[2, 3, 5], [7, 11, 13]], dtype=np.int64)


@settings(max_examples=40)
@given(rational_texts)
def test_values_and_gradients(text: str) -> None:
    expression = as_sympy(text)
    values, gradients = values_and_gradients([parse_expression(text)], {}, NAMES, POINTS, PRIME)
    for k, point in enumerate(POINTS.tolist()):
        at = dict(zip(sympy.symbols(NAMES), point, strict=True))

        def exactly(e: sympy.Expr, at: dict = at) -> int:
            value = sympy.Rational(e.subs(at))
            return residue(Fraction(int(value.p), int(value.q)), PRIME)

        assert values[0, k] == exactly(expression)
        assert gradients[0, k].tolist() == [exactly(expression.diff(name)) for name in NAMES]


def test_no_functions_have_no_values() -> None:
    values, gradients = values_and_gradients([], {}, NAMES, POINTS, PRIME)
    assert (values.shape, gradients.shape) == ((0, 2), (0, 2, 3))


coefficients = st.fractions(-9, 9, max_denominator=5).filter(bool)
exponents = st.tuples(*[st.integers(0, 3)] * 3)


@settings(max_examples=40)
@given(st.dictionaries(exponents, coefficients, max_size=5))
def test_polynomials_become_expressions(terms: dict[tuple[int, ...], Fraction]) -> None:
    found = as_sympy(to_text(polynomial_expression(NAMES, terms)))
    symbols = sympy.symbols(NAMES)
    expected = sum(
        sympy.Rational(c.numerator, c.denominator) * sympy.prod(s**e for s, e in zip(symbols, m, strict=True))
        for m, c in terms.items()
    )
    assert sympy.expand(found - expected) == 0


def test_monomials_sums_and_quotients_read_as_people_write_them() -> None:
    assert to_text(monomial_expression({"a": 1, "b": -2})) == "a/b^2"
    assert to_text(monomial_expression({"b": -1})) == "1/b"
    assert to_text(sum_expression({"a": 1}, {"b": 1}, Fraction(-1, 3))) == "3*a - b"
    one = parse_expression("1")
    assert to_text(quotient_expression(parse_expression("a + b"), one)) == "a + b"
    assert to_text(quotient_expression(parse_expression("a"), parse_expression("b + c"))) == "a/(b + c)"


@pytest.mark.parametrize(
    ("simpler", "longer"),
    [("a", "a*b"), ("a*b", "a + b"), ("a/b", "a^2/b"), ("a + b", "a + 2*b"), ("a*b", "a/b"), ("a + b", "a + b + c")],
)
def test_what_is_simpler_to_read(simpler: str, longer: str) -> None:
    assert complexity(parse_expression(simpler)) < complexity(parse_expression(longer))


@settings(max_examples=40)
@given(rational_texts)
def test_degrees_are_bounded(text: str) -> None:
    over, under = sympy.fraction(sympy.cancel(as_sympy(text)))
    assume(over != 0)
    degrees = [sympy.Poly(part, *sympy.symbols(NAMES)).total_degree() for part in (over, under)]
    assert max(degrees) <= degree_bound(parse_expression(text))


def test_constants_are_put_in() -> None:
    values, _ = values_and_gradients([parse_expression("N*a")], {"N": Fraction(1, 3)}, NAMES, POINTS, PRIME)
    assert values[0].tolist() == [modulo("a/3", {"a": a}) for a in (2, 7)]
