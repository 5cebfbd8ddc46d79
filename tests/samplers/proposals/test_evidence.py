"""The marginal likelihood from weights of draws of a proposal and of the posterior, known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equifinal.samplers.proposals.evidence import BINS, by_bridge, by_mean, counted

LOG_Z = 3.0
LEVEL = 2.5  # not quite log Z


def counts(log_weights: np.ndarray) -> np.ndarray:
    return counted(np.zeros((len(log_weights), BINS)), log_weights, LEVEL)


def log_weight(x: np.ndarray, scale: float) -> np.ndarray:
    """Of a normal posterior, times Z, beside a normal proposal with another scale."""
    return LOG_Z + stats.norm.logpdf(x) - stats.norm.logpdf(x, scale=scale)


def test_weights_are_counted_once_each() -> None:
    made = counts(np.array([[2.5, 2.51, np.nan, -np.inf], [2.49, 1e6, -1e6, 2.5 + 0.05 * 3]]))
    np.testing.assert_allclose(made[0, BINS // 2 : BINS // 2 + 2], [1.8, 0.2])
    np.testing.assert_allclose(made[1, BINS // 2 - 1 : BINS // 2 + 1], [0.2, 0.8])
    np.testing.assert_allclose([made[0, 0], made[1, 0], made[1, -1], made[1, BINS // 2 + 3]], 1)
    assert made.sum() == pytest.approx(7)


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0])
def test_the_mean(scale: float) -> None:
    x = np.random.default_rng(0).normal(0, scale, (4, 5000))
    found = by_mean(counts(log_weight(x, scale)), LEVEL)
    assert abs(found.log_evidence - LOG_Z) < 5 * found.error + 1e-3


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_the_bridge(scale: float) -> None:
    """With a scale of 0.5 the weights have no variance. Errors are those of 200 repetitions; 5 of them, three times."""
    rng, found, stated = np.random.default_rng(1), [], []
    for _ in range(200):
        draws, states = rng.normal(0, scale, (4, 300)), rng.normal(0, 1, (4, 500))
        made = by_bridge(counts(log_weight(draws, scale)), counts(log_weight(states, scale)), LEVEL, 1)
        found.append(made.log_evidence)
        stated.append(made.error)
    spread = np.std(found, ddof=1)
    assert abs(np.mean(found) - LOG_Z) < 5 * spread / np.sqrt(200) + 2e-3
    assert 0.7 * spread - 1e-3 < np.sqrt(np.mean(np.square(stated))) < 1.4 * spread + 1e-3


def test_one_chain_has_the_error_of_its_lanes() -> None:
    rng = np.random.default_rng(2)
    draws, states = (counts(log_weight(rng.normal(0, s, (1, 2000)), 3.0)) for s in (3.0, 1.0))
    few, many = (by_bridge(draws, states, LEVEL, number).error for number in (10, 1000))
    assert many < few < 1
