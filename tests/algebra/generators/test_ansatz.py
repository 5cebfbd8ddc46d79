"""Polynomial invariants by linear algebra, for fibres that are known."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest

from equifinal.algebra.generators.ansatz import invariants, monomials_of, monomials_up_to
from equifinal.algebra.generators.null_spaces import KernelField
from equifinal.language.model import Model
from tests.support.modulo import local_of, plenty


def kernels(text: str, outputs: list[str], points: int = 30) -> KernelField:
    model = Model.parse(text, outputs)
    field = KernelField([model], local_of(model), random.Random(1))
    field.at_least(points, plenty())
    return field


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_all_monomials_of_a_degree(degree: int) -> None:
    found = monomials_of([0, 2, 3], degree, 5)
    assert len(set(found)) == len(found) == comb(degree + 2, 2)
    assert all(sum(m) == degree and m[1] == m[4] == 0 for m in found)
    assert len(monomials_up_to([0, 2, 3], degree, 5)) == comb(degree + 3, 3) - 1


def test_a_sum_is_found() -> None:
    """x' = -(a + b)*x: of degree one, a + b and x_0."""
    field = kernels("x' = -(a + b)*x", ["x"])
    a, b, x = (tuple(int(name == n) for n in field.names) for name in ("a", "b", "x_0"))
    found = invariants(monomials_up_to(range(3), 1, 3), field)
    assert {a: Fraction(1), b: Fraction(1)} in found
    assert {x: Fraction(1)} in found
    assert len(found) == 2


def test_rational_coefficients_are_found() -> None:
    """With a + 2*b/3 in the rate, in any multiple."""
    field = kernels("x' = -(a + 2*b/3)*x\nx(0) = 1", ["x"])
    (found,) = invariants(monomials_up_to(range(2), 1, 2), field)
    a, b = (tuple(int(name == n) for n in field.names) for name in "ab")
    assert found[b] / found[a] == Fraction(2, 3)


def test_quotients_with_a_given_denominator_are_found() -> None:
    """x' = -x*a/(a + b): a over a + b is known, and so is b; neither a nor b is."""
    field = kernels("x' = -x*a/(a + b)\nx(0) = 1", ["x"])
    a, b = (tuple(int(name == n) for n in field.names) for name in "ab")
    assert invariants([a, b], field) == []
    assert len(invariants([a, b], field, {a: 1, b: 1})) == 2


def test_without_a_kernel_everything_is_invariant() -> None:
    field = kernels("x' = -k*x", ["x"])
    monomials = monomials_up_to(range(2), 2, 2)
    assert invariants(monomials, field) == [{m: Fraction(1)} for m in monomials]
