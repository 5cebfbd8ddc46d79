"""Intervals of the free coordinate, by hand and against a scan."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.fibre import Fibre
from equifinal.problem.prior import Prior
from tests.support.charts import box


def test_si_support(si):
    """The interval that the four boxes leave, by hand, for many c at once."""
    rng = np.random.default_rng(0)
    theta = np.column_stack([p.quantile(rng.random(500)) for p in si.priors.values()])
    c = si.xi(theta)
    low = np.max([np.full(500, 0.01), 1e-5 / c[:, 1], (c[:, 0] + 0.01) / (1e4 * c[:, 1]), c[:, 2] / 500], axis=0)
    high = np.min([np.full(500, 1.0), 1e-3 / c[:, 1], (c[:, 0] + 1) / (1e4 * c[:, 1]), c[:, 2] / 1], axis=0)
    support = si.support(c)
    assert support.exact.all()
    assert (support.found == 1).all()
    np.testing.assert_allclose(support.intervals[:, 0], np.column_stack([low, high]), rtol=1e-9)


def test_circle_support_with_a_fold_and_cuts():
    fibre = Fibre(["x^2 + y^2"], box(x=(-2, 1), y=(-1, 2)), partition=["y"])
    support = fibre.support(np.array([[0.5], [1.69], [6.0]]))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(support.intervals[0, 0], [-half, half])
    np.testing.assert_allclose(support.intervals[1, 0], [-1.0, 1.3])  # the fold at 1.3, the box at -1
    np.testing.assert_allclose(support.intervals[2, 0], [np.sqrt(2), 2.0])
    assert support.found.tolist() == [1, 1, 1]


def test_support_of_two_intervals():
    fibre = Fibre(["y - x^2"], box(x=(-3, 3), y=(0.5, 2)), partition=["x"])
    support = fibre.support(np.array([[0.0]]))
    assert support.found[0] == 2
    expected = [[-np.sqrt(2), -np.sqrt(0.5)], [np.sqrt(0.5), np.sqrt(2)]]
    np.testing.assert_allclose(support.intervals[0, :2], expected)


def test_support_through_infinity():
    """p*V = c with half-lines: the pole at 0 is an end though no bound is met."""
    fibre = Fibre(["p*V"], {"p": Prior("gamma", shape=2, rate=1), "V": Prior("normal", mean=0, sd=3)}, partition=["V"])
    support = fibre.support(np.array([[1.5], [-2.0]]))
    np.testing.assert_allclose(support.intervals[:, 0], [[0.0, np.inf], [-np.inf, 0.0]])


@pytest.mark.parametrize(
    ("functions", "free"),
    [
        (["a*b + c", "a - c^2"], "b"),
        (["a*b + c", "a - c^2"], "c"),
        (["a^2*b - c", "b*c"], "a"),
        (["a + b + c", "a*b + b*c + c*a"], "a"),
        (["a^3 + b*c", "b - c"], "c"),
    ],
)
def test_support_against_a_scan(functions, free):
    fibre = Fibre(functions, box(a=(-1, 2), b=(-2, 1.5), c=(-1.5, 2)), partition=[free])
    rng = np.random.default_rng(3)
    theta = rng.uniform([-1, -2, -1.5], [2, 1.5, 2], (20, 3))
    c = fibre.xi(theta)
    support = fibre.support(c)
    assert support.exact.all()
    grid = np.linspace(*fibre.bounds[fibre.chart.free[0]], 4003)[1:-1]
    for i in range(20):
        inside = fibre.roots(grid[:, None], c[i]).found > 0
        intervals = support.intervals[i, : support.found[i]]
        claimed = ((grid[:, None] > intervals[:, 0]) & (grid[:, None] < intervals[:, 1])).any(axis=1)
        near = np.abs(grid[:, None] - intervals.ravel()).min(axis=1) < 1e-9
        assert (inside == claimed)[~near].all()
