"""Polynomials and their fractions modulo a prime."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from equifinal.algebra.arithmetic.polynomials import (
    Ratio,
    coefficients_in,
    divided_out,
    grouped,
    mapped,
    ring,
    to_ratio,
    used_variables,
    value_at,
    without_monomial_factor,
)
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.language.parser import parse_expression
from tests.support.expressions import NAMES, rational_texts
from tests.support.modulo import PRIME, modulo, plenty

RING = ring(NAMES, PRIME)
A, B, C = RING.gens()
AT = (1234567, 89101112, 131415)


def ratio_of(text: str) -> Ratio:
    return to_ratio(parse_expression(text), dict(zip(NAMES, RING.gens(), strict=True)), {}, RING)


@settings(max_examples=40)
@given(rational_texts)
def test_fractions_have_the_value_of_their_expression_and_no_common_factor(text: str) -> None:
    found = ratio_of(text)
    assert found.over.gcd(found.under).is_constant() or found.over.is_zero()
    expected = modulo(text, dict(zip(NAMES, AT, strict=True)))
    assert value_at(found.over, AT) == expected * value_at(found.under, AT) % PRIME


@settings(max_examples=40)
@given(rational_texts, rational_texts)
def test_differences_of_equal_fractions_vanish(one: str, other: str) -> None:
    left = ratio_of(one) * ratio_of(other) + ratio_of(one)
    right = ratio_of(one) * (ratio_of(other) + ratio_of("1"))
    assert (left - right).over.is_zero()


def test_division_by_zero_is_reported() -> None:
    with pytest.raises(BadPrime):
        ratio_of("a") / ratio_of("b - b")
    with pytest.raises(BadPrime):
        Ratio(A, RING.constant(0))


def test_taking_polynomials_apart_and_putting_them_together() -> None:
    f = 3 * A**2 * B + 5 * B * C + 7 * A * C + 11
    parts = coefficients_in(f, 0)
    assert parts == [5 * B * C + 11, 7 * C, 3 * B]
    assert sum((p * A**k for k, p in enumerate(parts)), RING.constant(0)) == f
    groups = grouped(f, [1, 2])  # by the power of a; inside, powers of b and c
    assert groups == {(2,): {(1, 0): 3}, (0,): {(1, 1): 5, (0, 0): 11}, (1,): {(0, 1): 7}}
    assert used_variables([3 * A**2 * B, C - C]) == {0, 1}


def test_factors_are_divided_out() -> None:
    assert divided_out((A - B) ** 3 * (A + C), A - B) == A + C
    assert divided_out(A + C, A - B) == A + C
    assert divided_out(A, RING.constant(3)) == A
    assert without_monomial_factor(A**2 * B + A * B * C) in (A + C, -(A + C))


def test_substitution() -> None:
    into = ring(["x", "y"], PRIME)
    x, y = into.gens()
    assert mapped(A**2 * B + C, [x + y, y, into.constant(5)], into, plenty()) == (x + y) ** 2 * y + 5
