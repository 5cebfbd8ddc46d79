"""Lattices: each point uniform, all together more even than independent ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equifinal.samplers.points.lattice import lattice, shifted


@pytest.mark.parametrize("number", [1, 2, 7, 12, 128, 1000])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_every_coordinate_is_a_permutation_of_equal_steps(number: int, width: int) -> None:
    points = lattice(number, width)
    assert points.shape == (number, width)
    steps = np.arange(number) / number
    for column in points.T:
        np.testing.assert_allclose(np.sort(column), steps, atol=1e-15)
    assert (points[0] == 0).all()


@pytest.mark.parametrize("number", [2, 7, 12, 128, 1000])
def test_coordinates_differ_and_points_are_a_group(number: int) -> None:
    points = lattice(number, 3)
    steps = np.rint(points * number).astype(int)
    np.testing.assert_array_equal(steps, np.outer(np.arange(number), steps[1 % number]) % number)
    if number > 12:  # divisors leave few generators
        assert len({tuple(column) for column in steps.T}) == 3


def test_a_lattice_is_made_once_and_cannot_be_changed() -> None:
    assert lattice(64, 2) is lattice(64, 2)
    with pytest.raises(ValueError, match="read-only"):
        lattice(64, 2)[0, 0] = 1.0


@pytest.mark.parametrize("number", [1, 2, 5, 8])
def test_under_a_uniform_shift_every_point_is_uniform(number: int) -> None:
    """Shifts on an even grid that is as fine as the lattice or finer: every point must visit every cell as often."""
    cells = 4 * number
    grid = (np.arange(cells) + 0.5) / cells
    points = lattice(number, 2)
    for j in range(2):
        shift = np.zeros((cells, 1, 2))
        shift[:, 0, j] = grid
        moved = shifted(points, shift)[..., j]
        np.testing.assert_allclose(np.sort(moved, axis=0), np.tile(grid[:, None], (1, number)), atol=1e-12)


def test_shifts_do_nothing_to_the_differences_between_points() -> None:
    points, shift = lattice(50, 3), np.random.default_rng(0).random(3)
    moved = shifted(points, shift)
    apart = (moved - moved[0]) - (points - points[0])
    np.testing.assert_allclose(apart, np.rint(apart), atol=1e-12)


def test_points_stay_inside_the_open_cube() -> None:
    points = lattice(8, 2)
    for shift in (0.0, 1.0, 2.0**-60, -(2.0**-60), 1 - 2.0**-53, 0.125, np.nextafter(0.125, 0), np.nextafter(0.125, 1)):
        moved = shifted(points, np.full(2, shift))
        assert ((moved > 0) & (moved < 1)).all()


def test_one_point_and_no_coordinate() -> None:
    assert shifted(lattice(1, 0), np.empty(0)).shape == (1, 0)
    assert shifted(lattice(16, 0), np.empty((5, 1, 0))).shape == (5, 16, 0)
    assert shifted(lattice(1, 2), np.array([0.3, 0.6])) == pytest.approx(np.array([[0.3, 0.6]]))


@pytest.mark.parametrize(("number", "width", "gain"), [(64, 1, 40.0), (128, 2, 15.0), (128, 4, 2.5), (1009, 3, 15.0)])
def test_means_are_more_precise_than_over_independent_points(number: int, width: int, gain: float) -> None:
    rng = np.random.default_rng(1)

    def smooth(x: np.ndarray) -> np.ndarray:
        return np.prod(1 + 0.5 * np.cos(2 * math.pi * x) + x * (1 - x) - 1 / 6, axis=-1)

    even = shifted(lattice(number, width), rng.random((400, 1, width)))
    independent = rng.random((400, number, width))
    errors = [np.sqrt(np.mean((smooth(points).mean(axis=1) - 1.0) ** 2)) for points in (even, independent)]
    assert errors[1] > gain * errors[0]


def test_the_least_distance_between_points() -> None:
    """A bad generating vector puts all points on few lines."""
    points = lattice(101, 2)[1:]
    apart = np.minimum(points, 1 - points)
    assert np.sqrt((apart**2).sum(axis=1)).min() > 0.5 / math.sqrt(101)
