"""Arithmetic of rational expressions: rates of change, and terms and factors that make up the whole again."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy

from equifinal.language.expression import Expression, evaluate, names
from equifinal.language.parser import parse_expression
from equifinal.language.rational import change, factors_of, terms_of

RATIONAL = [
    "a",
    "7/3",
    "a*b - c^2/3",
    "(a + b)^3/(a - c)",
    "-(a^2 - b^2)/(2*c)",
    "(b - a)*c",
    "(1 - a)*(b - 2)^3/(a*c - 1)^2",
    "3*a/(2*b + 4*c) - 1/c",
]
AT = {"a": Fraction(3, 7), "b": Fraction(5, 2), "c": Fraction(-11, 3)}


def at(expression: Expression) -> Fraction:
    return Fraction(evaluate(expression, AT, Fraction))


@pytest.mark.parametrize("text", RATIONAL)
def test_rates_of_change_are_those_of_sympy(text: str) -> None:
    rates = {"a": "b*c", "b": "2 - a"}  # c is constant
    found = change(parse_expression(text), {name: parse_expression(rate) for name, rate in rates.items()})
    formula = sympy.sympify(text.replace("^", "**"), rational=True)
    expected = sum(sympy.diff(formula, name) * sympy.sympify(rate) for name, rate in rates.items())
    assert at(found) == Fraction(str(expected.subs({n: sympy.Rational(str(v)) for n, v in AT.items()})))


@pytest.mark.parametrize("text", RATIONAL)
def test_terms_make_up_the_whole(text: str) -> None:
    expression = parse_expression(text)
    terms = terms_of(expression)
    assert sum(c * at(term) for term, c in terms.items()) == at(expression)
    assert all(terms.values())


@pytest.mark.parametrize("text", RATIONAL)
def test_factors_make_up_the_whole(text: str) -> None:
    expression = parse_expression(text)
    content, factors = factors_of(expression)
    product = content
    for factor, exponent in factors.items():
        product *= at(factor) ** exponent
        assert names(factor)
    assert product == at(expression)


def test_a_sign_is_given_to_a_factor_that_may_have_it() -> None:
    content, factors = factors_of(parse_expression("-2*(a - b)*c"))
    assert content == 2
    assert len(factors) == 2
