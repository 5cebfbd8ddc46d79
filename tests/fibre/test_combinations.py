"""Values, Jacobians and volumes of combinations, against differences and NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.fibre import Fibre
from equifinal.fibre.combinations import LEAST_SINE, Combinations, PointStatus, log_volume
from equifinal.language.parser import parsed_combination
from equifinal.problem.prior import Prior
from tests.support.charts import SI_TRUTH


def test_geometry_in_coordinates_against_differences(si):
    rng = np.random.default_rng(5)
    u = rng.normal(size=(6, 4))
    found = si.geometry_in_coordinates(u)
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-6
        slope = (si.xi(si.to_theta(u + step)) - si.xi(si.to_theta(u - step))) / 2e-6
        np.testing.assert_allclose(found.jacobian[:, :, k], slope, rtol=1e-5, atol=1e-9)
    gram = found.jacobian @ np.swapaxes(found.jacobian, 1, 2)
    np.testing.assert_allclose(found.log_volume, 0.5 * np.linalg.slogdet(gram)[1], rtol=1e-9)


def test_mirrored_coordinates_have_negative_slopes():
    fibre = Fibre(["a*b"], {"a": Prior("normal", mean=0, sd=1, upper=2), "b": Prior("uniform", lower=1, upper=3)})
    u = np.array([[0.3, -0.2]])
    slope = (fibre.xi(fibre.to_theta(u + [[1e-6, 0]])) - fibre.xi(fibre.to_theta(u - [[1e-6, 0]]))) / 2e-6
    np.testing.assert_allclose(fibre.geometry_in_coordinates(u).jacobian[:, :, 0], slope, rtol=1e-6)


def test_projections(si):
    rng = np.random.default_rng(6)
    u, v = rng.normal(size=(2, 7, 4))
    parts = si.project(u, v)
    jacobian = si.geometry_in_coordinates(u).jacobian
    rows = jacobian / np.linalg.norm(jacobian, axis=2, keepdims=True)
    np.testing.assert_allclose(np.einsum("nqd,nd->nq", rows, parts.tangent), 0.0, atol=1e-10)
    np.testing.assert_allclose(parts.tangent + parts.normal, v)
    np.testing.assert_allclose(np.einsum("nd,nd->n", parts.tangent, parts.normal), 0.0, atol=1e-10)


def test_rank_deficient_points_have_a_status():
    fibre = Fibre(["x^2 + y^2", "x/z"], {n: Prior("normal", mean=0, sd=1) for n in "xyz"})
    points = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
    found = fibre.geometry(points)
    assert found.status.tolist() == [PointStatus.RANK_DEFICIENT, PointStatus.NOT_FINITE, PointStatus.OK]
    assert found.log_volume[0] == -np.inf
    assert np.isnan(found.log_volume[1])
    assert np.isnan(fibre.project(points, points).tangent[:2]).all()


def test_ratios_of_volume_on_a_fibre_do_not_depend_on_how_it_is_written():
    priors = {n: Prior("lognormal", meanlog=0, sdlog=1) for n in "abc"}
    one, other = Fibre(["a*b", "b/c"], priors), Fibre(["(a*b)^3 + a*b", "a*c + b/c"], priors)
    same = one.equivalents([1.2, 0.7, 2.0], 5)
    first, second = one.geometry(same).log_volume, other.geometry(same).log_volume
    np.testing.assert_allclose(first - first[0], second - second[0], rtol=1e-9, atol=1e-9)


def test_rank_does_not_depend_on_units():
    priors = {"b": Prior("normal", mean=1e-9, sd=1e-10), "N": Prior("normal", mean=1e6, sd=1e4)}
    fibre = Fibre(["b*N", "b*(N - 100000)"], priors)
    theta = np.array([[1.1e-9, 1.01e6]])
    assert fibre.geometry(theta).status[0] == PointStatus.OK
    assert fibre.geometry_in_coordinates(fibre.to_coordinates(theta)).status[0] == PointStatus.OK


@settings(max_examples=50)
@given(st.integers(1, 3), st.integers(0, 10**6))
def test_volumes_are_those_of_numpy(q: int, seed: int) -> None:
    """Rows of any size: squares of the largest overflow."""
    rng = np.random.default_rng(seed)
    a, scale = rng.normal(size=(q, 4)), rng.uniform(-200, 200, q)
    found = log_volume(a * 10.0 ** scale[:, None], np.empty((q, 4)), LEAST_SINE)
    assert found == pytest.approx(0.5 * np.linalg.slogdet(a @ a.T)[1] + scale.sum() * np.log(10), abs=1e-7)


def test_log_determinants_are_those_of_numpy() -> None:
    combinations = Combinations(
        ("a", "b", "c", "k"), [parsed_combination(text) for text in ("a*b + k", "b/c", "a - c*k^2")]
    )
    theta = np.random.default_rng(0).uniform(0.1, 3, (50, 4))
    columns = np.array(list(itertools.combinations(range(4), 3)))
    found = combinations.log_determinants(theta, columns)
    a, b, c, k = theta.T
    none = np.zeros(50)
    rows = [(b, a, none, none + 1), (none, 1 / c, -b / c**2, none), (none + 1, none, -(k**2), -2 * c * k)]
    jacobian = np.moveaxis(np.array(rows), 2, 0)
    exact = np.stack([np.linalg.slogdet(jacobian[:, :, chosen])[1] for chosen in columns], axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)
    assert np.isnan(combinations.log_determinants(np.full((1, 4), np.nan), columns)).all()
    singular = Combinations(("a", "b"), [parsed_combination(text) for text in ("a - b", "2*a - 2*b")])
    assert singular.log_determinants(np.ones((1, 2)), np.array([[0, 1]]))[0, 0] == -np.inf


def test_dependent_rows_have_no_volume() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0 + 1e-13]])
    assert log_volume(a, np.empty((2, 3)), LEAST_SINE) == -np.inf
    assert np.isnan(log_volume(np.array([[1.0, np.inf, 0.0]]), np.empty((1, 3)), LEAST_SINE))


def test_complex_points(si):
    """At real points as elsewhere, and differentiable: xi(theta + i h) is xi + i h Dxi up to h^2."""
    theta, step = SI_TRUTH[None], 1e-30
    plain = si.geometry(theta)
    values, jacobian = si.combinations.complex_system(theta.astype(complex))
    np.testing.assert_allclose(values, plain.values, rtol=1e-14)
    np.testing.assert_allclose(jacobian, plain.jacobian, rtol=1e-14)
    for k in range(4):
        moved = si.combinations.complex_system(theta + 1j * step * (np.arange(4) == k))[0]
        np.testing.assert_allclose(moved.imag / step, plain.jacobian[:, :, k], rtol=1e-12)
