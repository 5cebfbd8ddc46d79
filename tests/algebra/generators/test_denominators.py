"""Short factors of denominators."""

from __future__ import annotations

from equifinal.algebra.generators.denominators import denominators
from equifinal.language.parser import parse_expression

NAMES = ["a", "b", "c"]


def found(*texts: str, allowed: str = "abc") -> list[dict[tuple[int, ...], int]]:
    return denominators([parse_expression(text) for text in texts], NAMES, set(allowed))


def test_irreducible_factors_and_products_of_two() -> None:
    factors = found("c/(a^2 - b^2)", "1 + a/b")
    # irreducible up to sign: b, a - b, a + b; then products of two
    assert {frozenset(map(abs, f.values())) for f in factors[:3]} == {frozenset({1})}
    assert factors[0] == {(0, 1, 0): 1}
    assert {frozenset(f) for f in factors[1:3]} == {frozenset({(1, 0, 0), (0, 1, 0)})}
    assert len(factors) == 6
    assert all(sum(m) == 2 for f in factors[3:] for m in f)


def test_coefficients_are_whole() -> None:
    (factor,) = found("1/(0.5*a + 1.5*b)")
    assert factor in ({(1, 0, 0): 1, (0, 1, 0): 3}, {(1, 0, 0): -1, (0, 1, 0): -3})


def test_what_is_not_allowed_or_has_no_denominator_is_left_out() -> None:
    assert found("a*b + c") == []
    assert found("1/(a + c)", allowed="ab") == []
