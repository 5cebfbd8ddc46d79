"""When a proposal is said to miss tails."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.samplers.proposals.quality import misses_tails


@pytest.mark.parametrize(
    ("shape", "highest", "number", "misses"),
    [
        (0.3, 11.0, 1_000, False),
        (0.3, 13.0, 1_000, True),
        (0.8, 7.0, 1_000, False),
        (0.8, 9.0, 1_000, True),
        (0.3, 13.0, 1_000_000, False),  # a thousandth of a percent of the posterior
        (0.3, 61.0, 1_000_000, True),
    ],
)
def test_weights_that_are_too_high(shape: float, highest: float, number: int, misses: bool) -> None:
    assert misses_tails(shape, highest, number) == misses
    assert misses_tails(shape, 2 * highest, number, times=2.0) == misses


def test_heavy_tails_where_populations_have_not_been() -> None:
    """Half of what is too high where they have; tails that are not heavy are judged alike."""
    for highest in (3.9, 4.1):
        assert misses_tails(0.8, highest, 1_000, settled=False) == misses_tails(0.8, 2 * highest, 1_000)
        assert misses_tails(0.3, 3 * highest, 1_000, settled=False) == misses_tails(0.3, 3 * highest, 1_000)


def test_what_lies_beyond_the_highest_weight() -> None:
    """Weights with a Pareto tail, w = u^-k: what is expected above the largest of n is 1/(1 - k) of it, by 1/n.

    So it is about as much as the largest has itself. The median over 2,000 samples, so that those that have seen the
    tail by chance do not matter, within a factor of 2.
    """
    n, rng = 1000, np.random.default_rng(0)
    for k in (0.3, 0.5, 0.8):
        largest = (rng.random((2000, n)) ** -k).max(axis=1)
        beyond = largest ** (1 - 1 / k) / (1 - k)  # E[w; w > m]
        assert 0.5 < np.median(beyond / (largest / n)) * (1 - k) < 2
