"""Identifiable, locally identifiable, or neither: by the kernel and by the points of a fibre."""

from __future__ import annotations

import pytest

from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.generators.membership import alternatives, gradients, is_invariant, is_member, values_at_points
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from tests.support.modulo import slice_of

# k and m may be exchanged; a and b are seen as a product
MODEL = Model.parse("x' = -k*x\nz' = -m*z\nx(0) = 1\nz(0) = 1\ny = a*b*(x + z)", ["y"])


@pytest.mark.parametrize(
    ("text", "invariant", "member"),
    [
        ("a*b", True, True),
        ("k + m", True, True),
        ("k*m/(a*b)", True, True),
        ("k", True, False),
        ("k - m", True, False),
        ("(k - m)^2", True, True),
        ("a", False, False),
        ("a + b", False, False),
    ],
)
def test_membership(text: str, invariant: bool, member: bool) -> None:
    fibre, function = slice_of(MODEL), parse_expression(text)
    assert is_invariant(function, fibre.local) is invariant
    assert is_member(function, fibre) is member
    if invariant:
        assert alternatives(function, fibre) == (1 if member else 2)


def test_gradients_at_the_point() -> None:
    local = slice_of(MODEL).local
    (row,) = gradients([parse_expression("a*b")], local)
    expected = {"a": local.point["b"], "b": local.point["a"]}
    assert row.tolist() == [expected.get(name, 0) for name in local.names]


def test_a_function_that_is_undefined_on_the_fibre() -> None:
    fibre = slice_of(MODEL)
    function = parse_expression("1/(k + m - k - m)")
    with pytest.raises(BadPrime):
        values_at_points(function, fibre.points, fibre.free, fibre.fixed)
    assert not is_member(function, fibre)
