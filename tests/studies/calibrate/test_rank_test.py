"""The test of uniform ranks against enumeration and against simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from equifinal.studies.calibrate.rank_test import histogram_band, holm, rank_band, rank_p_value


def least_tail(ranks: np.ndarray, most: int) -> float:
    """The statistic by its definition."""
    n, found = len(ranks), []
    for j in range(most):
        count, z = int((ranks <= j).sum()), (j + 1) / (most + 1)
        found.append(2 * min(stats.binom.cdf(count, n, z), stats.binom.sf(count - 1, n, z)))
    return min(1.0, *found)


def test_p_values_are_those_of_enumeration() -> None:
    n, most = 4, 3
    everything = [np.array(ranks) for ranks in itertools.product(range(most + 1), repeat=n)]
    statistics = np.array([least_tail(ranks, most) for ranks in everything])
    for ranks, own in zip(everything[::7], statistics[::7], strict=True):
        expected = np.mean(statistics <= own + 1e-12)
        assert rank_p_value(ranks, most) == pytest.approx(expected, abs=1e-9)


def test_the_band_holds_as_often_as_it_says() -> None:
    """20,000 data sets, five standard errors: a false alarm once in 1.7 million seeds."""
    rng, n, most = np.random.default_rng(1), 60, 19
    band = rank_band(n, most, 0.9)
    counts = np.array([np.bincount(rng.integers(0, most + 1, n), minlength=most + 1) for _ in range(20_000)])
    below = np.cumsum(counts, axis=1)[:, :-1]
    inside = ((band.lower <= below) & (below <= band.upper)).all(axis=1).mean()
    assert 0.9 - 5 * 0.003 / np.sqrt(2) <= inside < 0.95  # counts are discrete: a little more than 0.9


@pytest.mark.parametrize(
    "shape", [(0.6, 0.6), (2.0, 2.0), (1.5, 1.0), (1.0, 1.5)], ids=["narrow", "wide", "low", "high"]
)
def test_departures_are_seen(shape: tuple[float, float]) -> None:
    rng = np.random.default_rng(2)
    assert rank_p_value(np.floor(100 * rng.beta(*shape, 400)).astype(int), 99) < 1e-4


def test_extremes() -> None:
    assert rank_p_value(np.zeros(200, int), 99) < 1e-12
    assert rank_p_value(np.zeros(1, int), 99) == pytest.approx(0.01 * 2, rel=0.6)
    assert np.isnan(rank_p_value(np.zeros(0, int), 99))
    assert rank_p_value(np.arange(100), 99) > 0.99


def test_bars_of_a_histogram() -> None:
    low, high = histogram_band(200, 20)
    assert stats.binom.cdf(high, 200, 0.05) - stats.binom.cdf(low - 1, 200, 0.05) >= 0.99
    assert stats.binom.cdf(high - 1, 200, 0.05) - stats.binom.cdf(low, 200, 0.05) < 0.99


def test_holm() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, np.nan])), [0.03, 0.06, 0.06, np.nan])
    assert (holm(np.array([0.9, 0.8])) == 1.0).all()
