"""Equivalent parameters, spread over a fibre."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.problem.prior import Prior
from tests.support.charts import SI_TRUTH, box


def test_special_points_are_said_to_be_special():
    fibre = Fibre(["x + y", "x*y"], box(x=(0, 2), y=(0, 2)))
    with pytest.warns(UserWarning, match="special point"):
        fibre.equivalents([1.0, 1.0])


@pytest.mark.parametrize(
    ("theta", "n", "message"),
    [
        ([0.5], 3, "2 numbers .a, b. per row"),
        ([0.5, 2.0], 3, "outside its prior"),
        ([0.5, np.nan], 3, "outside its prior"),
        ([0.5, 0.5], 0, "positive whole number"),
    ],
)
def test_equivalents_refuses(theta, n, message):
    with pytest.raises(IdentifiabilityError, match=message):
        Fibre(["a*b"], box(a=(0, 1), b=(0, 1))).equivalents(theta, n)


def test_equivalents_on_surfaces_spread_far():
    fibre = Fibre(["a*b*c*d"], {n: Prior("lognormal", meanlog=0, sdlog=1) for n in "abcd"})
    same = fibre.equivalents([1, 1, 1, 1], 12)
    np.testing.assert_allclose(np.prod(same, axis=1), 1.0, rtol=1e-9)
    assert (same.max(axis=0) / same.min(axis=0) > 20).all()


def test_equivalents_where_random_points_rarely_hit():
    """Eight parameters with a fixed sum near the largest: a random choice of seven of them hardly ever fits."""
    names = "abcdefgh"
    fibre = Fibre(["+".join(names)], box(**dict.fromkeys(names, (0, 1))))
    same = fibre.equivalents([0.95] * 8, 10)
    assert len(same) == 10
    np.testing.assert_allclose(same.sum(axis=1), 7.6, rtol=1e-9)
    assert same.min() < 0.8


def test_the_point_comes_first_and_all_are_on_its_fibre(si):
    same = si.search(SI_TRUTH, 6)
    assert same.certain
    assert len(same.theta) == 6
    np.testing.assert_array_equal(same.theta[0], SI_TRUTH)
    np.testing.assert_allclose(si.xi(same.theta), np.tile(si.xi(SI_TRUTH), (6, 1)), rtol=1e-9)
    assert len(np.unique(same.theta[:, 1])) == 6
    ends = si.support(si.xi(SI_TRUTH)).intervals[0, 0]
    assert same.theta[1:, 1].min() - ends[0] < 0.05 * (ends[1] - ends[0])  # nearly to both ends
    assert ends[1] - same.theta[1:, 1].max() < 0.05 * (ends[1] - ends[0])


def test_a_finite_fibre_is_given_whole():
    fibre = Fibre(["x + y", "x*y"], box(x=(0, 3), y=(0, 3)))
    np.testing.assert_allclose(fibre.equivalents([1.0, 2.0], 5), [[1, 2], [2, 1]], rtol=1e-9)
