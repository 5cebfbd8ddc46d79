"""Roots by continuation against those of polynomials."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.fibre.homotopy import GeneralChart
from tests.support.charts import box


def general(functions: list[str], free: list[str], degree: int, **bounds: tuple[float, float]) -> GeneralChart:
    fibre = Fibre(functions, box(**bounds))
    return GeneralChart(fibre.combinations, free, degree, fibre.bounds, fibre.prior_draws)


def test_all_complex_roots_of_a_quintic() -> None:
    """x + y^5 - y = c with x given."""
    chart = general(["x + y^5 - y"], ["x"], 5, x=(-2, 2), y=(-2, 2))
    rng = np.random.default_rng(0)
    x, c = rng.uniform(-1, 1, (2, 20))
    found = chart.complex_roots(x[:, None], c[:, None])
    for row, a, b in zip(found, x, c, strict=True):
        distances = np.abs(row[:, None, 1] - np.roots([1, 0, 0, 0, -1, a - b]))
        assert distances.min(axis=0).max() < 1e-8
        assert (row[:, 0] == a).all()
    real = chart.roots(x[:, None], c[:, None])
    everything = [np.roots([1, 0, 0, 0, -1, a - b]) for a, b in zip(x, c, strict=True)]
    counts = [int(((np.abs(r.imag) < 1e-9) & (np.abs(r.real) < 2)).sum()) for r in everything]
    assert real.found.tolist() == counts
    assert (real.status == 0).all()


def test_two_equations_in_two_unknowns() -> None:
    """x^2 + y^2 and x*y have four roots: (x, y), (y, x) and their opposites."""
    chart = general(["x^2 + y^2", "x*y"], [], 4, x=(-3, 3), y=(-3, 3))
    found = chart.roots(np.empty((1, 0)), np.array([[5.0, 2.0]]))
    assert sorted(np.round(found.theta[0, : found.found[0]], 9).tolist()) == [[-2, -1], [-1, -2], [1, 2], [2, 1]]


def test_a_wrong_number_of_roots_is_refused() -> None:
    with pytest.raises(IdentifiabilityError, match="too large a computation"):
        general(["x + y^3"], ["x"], 0, x=(-1, 1), y=(-1, 1))
