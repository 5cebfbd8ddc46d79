"""Bent coordinates: what they are, their slopes, and which bend draws ask for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equifinal.samplers.coordinates.bending import Bend, straightening

BOTH = Bend(np.array([1.0, -1.0, 0.0]), np.array([0.5, -0.3, 0.0]))


def test_far_below_the_turn_a_bend_is_straight_and_far_above_it_natural() -> None:
    bend = Bend(np.ones(1), np.array([1.5]))
    low, high = np.array([[-40.0], [-10.0]]), np.array([[6.0], [9.0]])
    np.testing.assert_allclose(bend.forward(low), low - 1.5, atol=1e-3)
    np.testing.assert_allclose(bend.forward(high), np.exp(high - 1.5), rtol=1e-9)
    mirrored = Bend(-np.ones(1), np.array([1.5]))
    np.testing.assert_array_equal(mirrored.forward(-high), -bend.forward(high))


def test_there_and_back() -> None:
    h = np.random.default_rng(1).normal(0, 20, (2000, 3)).clip(-200, 200)
    there, log_slope = BOTH.backward(BOTH.forward(h))
    np.testing.assert_allclose(there, h, rtol=1e-9, atol=1e-9)
    assert np.isfinite(log_slope).all()
    assert (log_slope[:, 2] == 0).all()


def test_slopes_are_those_of_differences() -> None:
    y = np.random.default_rng(2).normal(0, 4, (500, 3))
    step = 1e-6
    by_difference = (BOTH.backward(y + step)[0] - BOTH.backward(y - step)[0]) / (2 * step)
    np.testing.assert_allclose(BOTH.backward(y)[1], np.log(by_difference), atol=1e-6)


def test_nothing_overflows() -> None:
    """As far as a rate is a number of the machine, it comes back; farther away, values stay finite."""
    far = np.array([[-1e6, -690.0, 0.0], [-600.0, 600.0, 0.0], [690.0, 1e6, 0.0]])
    with np.errstate(all="raise"):
        y = BOTH.forward(far)
        there, log_slope = BOTH.backward(y)
    assert np.isfinite(y).all()
    assert np.isfinite(log_slope).all()
    np.testing.assert_allclose(there, far, rtol=1e-9)


def everything(m: int) -> np.ndarray:
    return np.ones(m, bool)


def test_normal_draws_stay_straight() -> None:
    rng = np.random.default_rng(3)
    for m in (1, 4, 12):
        h = rng.normal(size=(1000, m)) @ rng.normal(size=(m, m))
        assert not straightening(h, everything(m)).side.any()


def test_what_does_not_vary_stays_straight() -> None:
    """Beside a coordinate that is bent."""
    h = np.log(np.random.default_rng(4).normal(3, 1, (1000, 2)).clip(1e-3))
    h[:, 1] = 0.7
    assert straightening(h, everything(2)).side.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sums_of_rates_are_straight_in_the_rates(sign: float) -> None:
    """Two rates whose sum is known well: an elbow in their logarithms, nearly a line in what is found."""
    rng = np.random.default_rng(4)
    share = rng.uniform(0.02, 0.98, 2000)
    total = rng.normal(3, 0.02, 2000)
    h = sign * np.log(np.column_stack([share * total, (1 - share) * total]))
    bend = straightening(h, everything(2))
    assert bend.side.tolist() == [sign, sign]
    y = bend.forward(h)
    assert abs(np.corrcoef(h.T)[0, 1]) < 0.8
    assert np.corrcoef(y.T)[0, 1] < -0.97


def test_a_skewed_coordinate_becomes_normal() -> None:
    """The logarithm of a normal variable far from 0: the law that natural coordinates straighten."""
    rng = np.random.default_rng(5)
    h = np.column_stack([np.log(rng.normal(4, 1, 4000).clip(0.05)), rng.normal(size=4000)])
    bend = straightening(h, everything(2))
    assert bend.side.tolist() == [1, 0]
    y = bend.forward(h)[:, 0]
    assert stats.skew(h[:, 0]) < -1
    assert abs(stats.skew(y)) < 0.3


def test_some_stay_as_they_are() -> None:
    rng = np.random.default_rng(6)
    h = np.log(rng.normal(4, 1, (4000, 2)).clip(0.05))
    assert straightening(h, np.array([True, False])).side.tolist() == [1, 0]
    assert not straightening(h, np.array([False, False])).side.any()
    assert not straightening(h[:4], everything(2)).side.any()  # too few to tell
    assert straightening(np.empty((10, 0)), everything(0)).side.shape == (0,)


def test_coordinates_that_do_not_vary_or_vary_a_lot() -> None:
    """Particles may all be at one place, or as far from each other as numbers go."""
    rng = np.random.default_rng(7)
    h = np.column_stack([np.ones(500), 1e5 * rng.normal(size=500), rng.normal(size=500)])
    bend = straightening(h, everything(3))
    assert np.isfinite(bend.forward(h)).all()
