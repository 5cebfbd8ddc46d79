"""Rounds of importance sampling: what they tell of the prior."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.samplers.searching import importance


def test_what_a_draw_of_the_prior_is_worth_agrees_with_draws_of_the_prior() -> None:
    """A normal prior and a normal likelihood of a tenth of its width; errors are about a hundredth of the number."""
    rng = np.random.default_rng(5)
    x = 0.6 + 0.15 * rng.standard_normal(20_000)
    log_likelihood = -0.5 * ((x - 0.7) / 0.1) ** 2
    log_weight = log_likelihood - 0.5 * x**2 + 0.5 * ((x - 0.6) / 0.15) ** 2 + np.log(0.15)
    likelihood = np.exp(-0.5 * ((rng.standard_normal(1_000_000) - 0.7) / 0.1) ** 2)
    expected = likelihood.mean() ** 2 / (likelihood**2).mean()
    assert importance.worth_of_prior(log_weight, log_likelihood) == pytest.approx(expected, rel=0.05)
    assert importance.worth_of_prior(np.full(3, -np.inf), np.full(3, np.nan)) == 0.0
