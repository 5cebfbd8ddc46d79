"""Coordinates of combinations: there and back, slopes, and what they do at the ends of the number line."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from equifinal.fibre import Fibre
from equifinal.problem.prior import IDENTITY, LOG, LOGIT, MIRRORED, Prior
from equifinal.samplers.coordinates.of_combinations import combination_coordinates


@cache
def mixed() -> Fibre:
    """A single in every kind of coordinate, one combination that is positive and one that changes its sign."""
    priors = {
        "a": Prior("normal", mean=-2.0, sd=3.0),
        "b": Prior("gamma", shape=2.0, rate=0.1),
        "c": Prior("normal", mean=0.0, sd=1.0, upper=2.0),
        "d": Prior("uniform", lower=-1.0, upper=3.0),
        "x": Prior("uniform", lower=0.1, upper=10.0, coordinate="log"),
        "y": Prior("lognormal", meanlog=3.0, sdlog=2.0),
        "z": Prior("uniform", lower=1e-3, upper=1.0, coordinate="log"),
    }
    return Fibre(["a", "b", "c", "d", "x*y", "y - 100*z"], priors)


def test_singles_have_the_coordinate_of_their_parameter() -> None:
    fibre, coordinates = mixed(), combination_coordinates(mixed())
    assert [int(fibre.table[k, 7]) for k in range(4)] == [IDENTITY, LOG, MIRRORED, LOGIT]
    assert coordinates.single.tolist() == [0, 1, 2, 3, -1, -1]
    theta = fibre.prior_draws
    h = coordinates.forward(fibre.xi(theta))
    np.testing.assert_array_equal(h[:, :4], fibre.to_coordinates(theta)[:, :4])


def test_there_and_back() -> None:
    fibre, coordinates = mixed(), combination_coordinates(mixed())
    c = fibre.xi(fibre.prior_draws)
    assert (c[:, 5] < 0).any()
    assert (c[:, 5] > 0).any()
    back, _ = coordinates.backward(coordinates.forward(c))
    np.testing.assert_allclose(back / coordinates.softening, c / coordinates.softening, rtol=1e-12, atol=1e-12)


def test_log_slopes_by_differences() -> None:
    fibre, coordinates = mixed(), combination_coordinates(mixed())
    h = coordinates.forward(fibre.xi(fibre.prior_draws[:50]))
    step = 1e-5
    slopes = np.empty_like(h)
    for j in range(h.shape[1]):
        moved = step * (np.arange(h.shape[1]) == j)
        slopes[:, j] = (coordinates.backward(h + moved)[0] - coordinates.backward(h - moved)[0])[:, j] / (2 * step)
    np.testing.assert_allclose(coordinates.backward(h)[1], np.log(np.abs(slopes)).sum(axis=1), atol=1e-7)


def test_jacobian_by_differences() -> None:
    fibre, coordinates = mixed(), combination_coordinates(mixed())
    u = fibre.to_coordinates(fibre.prior_draws[:50])
    found = fibre.geometry_in_coordinates(u)
    jacobian = coordinates.jacobian(found.values, found.jacobian)
    for k in range(u.shape[1]):
        step = 1e-6 * (np.arange(u.shape[1]) == k)
        above, below = (coordinates.forward(fibre.xi(fibre.to_theta(u + s * step))) for s in (1, -1))
        np.testing.assert_allclose(jacobian[:, :, k], (above - below) / 2e-6, rtol=1e-5, atol=1e-6)


def test_comparable_in_size_whatever_the_units() -> None:
    coordinates = combination_coordinates(mixed())
    fibre = mixed()
    h = coordinates.forward(fibre.xi(fibre.prior_draws))
    np.testing.assert_allclose(coordinates.spread, h.std(axis=0))
    one, other = (
        combination_coordinates(
            Fibre(["x*y"], {"x": Prior("lognormal", meanlog=m, sdlog=1), "y": Prior("lognormal", meanlog=0, sdlog=1)})
        )
        for m in (0.0, 20.0)
    )
    np.testing.assert_allclose(one.spread, other.spread, rtol=1e-9)
    np.testing.assert_allclose(other.softening / one.softening, np.exp(20.0), rtol=1e-9)


def test_values_that_are_impossible() -> None:
    """A single outside its coordinate's domain has no coordinate; everything else has."""
    coordinates = combination_coordinates(mixed())
    c = np.zeros((6, 6))
    c[:, 1] = 1.0
    c[0, 1], c[1, 2], c[2, 3], c[3, 3], c[4, 3] = -1.0, 2.5, -1.0, 3.5, np.nan
    c[5, 4:] = np.inf, -np.inf
    h = coordinates.forward(c)
    np.testing.assert_array_equal(np.argwhere(np.isnan(h)), [[0, 1], [1, 2], [2, 3], [3, 3], [4, 3]])
    assert h[5, 4] == np.inf
    assert h[5, 5] == -np.inf


@pytest.mark.parametrize("size", [0.0, 1e-300, 40.0, 700.0, 800.0, 1e5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_extreme_values_never_raise(size: float, sign: float) -> None:
    coordinates = combination_coordinates(mixed())
    c, log_slope = coordinates.backward(np.full((1, 6), sign * size))
    assert not np.isnan(c).any()
    assert not np.isnan(log_slope).any()
    if size <= 700:
        assert np.isfinite(c).all()
        assert np.isfinite(log_slope).all()
    h = np.full((1, 6), sign * size)
    if size == 40.0:  # logit has lost its digits by then
        np.testing.assert_allclose(np.delete(coordinates.forward(c), (2, 3), axis=1), np.delete(h, (2, 3), axis=1))


def test_slopes_stay_finite_where_values_overflow() -> None:
    coordinates = combination_coordinates(Fibre(["x*y"], {n: mixed().priors[n] for n in "xy"}))
    c, log_slope = coordinates.backward(np.array([[800.0], [-800.0]]))
    np.testing.assert_array_equal(c, [[np.inf], [-np.inf]])
    np.testing.assert_allclose(log_slope, np.log(coordinates.softening[[0, 0]] / 2) + 800)


def test_rows_do_not_depend_on_their_company() -> None:
    fibre, coordinates = mixed(), combination_coordinates(mixed())
    c = fibre.xi(fibre.prior_draws[:33])
    h = coordinates.forward(c)
    back, log_slope = coordinates.backward(h)
    for i in range(33):
        np.testing.assert_array_equal(coordinates.forward(c[i : i + 1]), h[i : i + 1])
        alone = coordinates.backward(h[i : i + 1])
        np.testing.assert_array_equal(alone[0], back[i : i + 1])
        np.testing.assert_array_equal(alone[1], log_slope[i : i + 1])


def test_a_combination_that_is_zero_for_many_draws() -> None:
    """Counts of zero among |c| must not make c_0 zero."""
    priors = {"x": Prior("uniform", lower=-1, upper=1), "y": Prior("uniform", lower=-1, upper=1)}
    coordinates = combination_coordinates(Fibre(["x*y"], priors))
    assert (coordinates.softening > 0).all()
    assert coordinates.forward(np.zeros((1, 1)))[0, 0] == 0.0
