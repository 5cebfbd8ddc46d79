"""Small dense systems against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.fibre.chart_loops import back_substitute, factorise, inside, transposed_substitute

SINGULAR = [[[0.0]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 3.0]]]


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_factors_solve_both_systems(n: int, seed: int) -> None:
    """With rows of very different size, as combinations in different units have."""
    rng = np.random.default_rng(seed)
    even, size = rng.permutation(rng.normal(size=(n, n)) + 9 * np.eye(n)), 10.0 ** rng.integers(-6, 7, n)
    a, x = even * size[:, None], rng.normal(size=n)
    factors, pivots = a.copy(), np.zeros(n, np.int64)
    assert factorise(factors, pivots) == pytest.approx(np.linalg.slogdet(a)[1], abs=1e-8)
    b = a @ x
    back_substitute(factors, pivots, b)
    np.testing.assert_allclose(b, x, atol=1e-10)
    b = a.T @ (x / size)
    transposed_substitute(factors, pivots, b)
    np.testing.assert_allclose(b * size, x, atol=1e-10)


@pytest.mark.parametrize("a", SINGULAR)
def test_what_cannot_be_factorised_is_told(a: list[list[float]]) -> None:
    assert factorise(np.array(a), np.zeros(len(a), np.int64)) == -np.inf


def test_only_what_was_solved_for_has_to_be_inside() -> None:
    bounds, dependent = np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([1])
    assert inside(np.array([5.0, 0.5]), bounds, dependent)
    assert not inside(np.array([0.5, 1.5]), bounds, dependent)
    assert not inside(np.array([0.5, np.nan]), bounds, dependent)
