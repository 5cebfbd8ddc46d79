"""Real roots of polynomials inside an interval."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.fibre.polynomial import real_roots


def roots_of(coefficients, lower=-np.inf, upper=np.inf) -> np.ndarray:
    a = np.array(coefficients, float)
    out, work = np.empty(a.size + 2), np.empty((2, a.size + 3))
    count, _ = real_roots(a, np.zeros(a.size), a.size - 1, lower, upper, out, work)
    return out[:count].copy()


@pytest.mark.parametrize("degree", range(1, 8))
def test_real_roots_against_companion_matrix(degree):
    rng = np.random.default_rng(degree)
    for _ in range(300):
        a = rng.normal(size=degree + 1) * 10.0 ** rng.integers(-6, 7)
        every = np.roots(a[::-1])
        expected = np.sort(every[np.abs(every.imag) < 1e-9 * np.abs(every)].real)
        np.testing.assert_allclose(roots_of(a), expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6, 1e15])
def test_known_roots_of_any_scale(scale):
    expected = scale * np.array([-3.0, -1.0, 0.5, 2.0, 7.0])
    a = np.poly(expected)[::-1]
    np.testing.assert_allclose(roots_of(a), expected, rtol=1e-9)
    np.testing.assert_allclose(roots_of(a, -2 * scale, 5 * scale), expected[1:4], rtol=1e-9)


def test_small_root_beside_a_large_one_keeps_its_digits():
    np.testing.assert_allclose(roots_of([1e-8, -1.0, 1.0]), [1.00000001e-8, 0.99999999], rtol=1e-8)


def test_double_roots_are_found():
    np.testing.assert_allclose(roots_of(np.poly([1.0, 1.0, 3.0])[::-1]), [1.0, 3.0], atol=1e-7)
    np.testing.assert_allclose(roots_of([1.0, -2.0, 1.0]), [1.0])


def test_what_is_no_polynomial_has_no_roots():
    assert roots_of([0.0, 0.0, 0.0]).size == 0
    assert roots_of([3.0]).size == 0
    assert roots_of([np.nan, 1.0]).size == 0
    assert roots_of([1.0, np.inf, 1.0, 1.0]).size == 0


def test_vanishing_leading_coefficients():
    np.testing.assert_allclose(roots_of([2.0, -1.0, 0.0, 0.0]), [2.0])
    assert roots_of([1.0, 0.0, 1.0]).size == 0
