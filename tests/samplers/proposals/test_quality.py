"""When a proposal is said to miss tails."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.samplers.proposals.quality import misses_tails


@pytest.mark.parametrize(
    ("shape", "largest", "misses"),
    [
        (0.69, 1.0, False),
        (0.8, 1e-4, False),
        (0.8, 2e-4, True),
        (0.95, 1e-5, False),
        (0.95, 1e-4, True),
        (1.0, 1e-9, True),
    ],
)
def test_what_lies_beyond_the_largest_weight(shape: float, largest: float, misses: bool) -> None:
    assert misses_tails(shape, largest) == misses


def test_the_mean_beyond_the_largest_weight() -> None:
    """Weights with a Pareto tail, w = u^-k: what is expected above the largest of n is k/(1 - k) of it, by 1/n.

    The median over 2,000 samples, so that those that have seen the tail by chance do not matter, within a factor of 2.
    """
    k, n, rng = 0.8, 1000, np.random.default_rng(0)
    largest = (rng.random((2000, n)) ** -k).max(axis=1)
    # E[w; w > m] = m^(1 - 1/k) / (1 - k), and of it the excess over what n draws have seen, m/n
    beyond = largest ** (1 - 1 / k) / (1 - k)
    ratio = np.median(beyond / (largest / n)) / (1 / (1 - k))
    assert 0.5 < ratio < 2
