"""Comparisons of finished runs with exact marginals: nine quantiles a parameter, 5.5 standard errors each."""

from __future__ import annotations

import arviz
import numpy as np

from equifinal.studies.paper import hiv_reference
from equifinal.studies.paper.si_reference import si_combinations, si_marginal

SHARES = np.arange(1, 10) / 10


def agree_with_quadrature(data: arviz.InferenceData) -> None:
    """A run of the SI example."""
    for j, name in enumerate(("beta", "rho", "gamma", "I0")):
        draws = data.posterior[name].values
        levels = np.quantile(draws, SHARES)
        _agree(name, draws, levels, si_marginal(j, levels), np.zeros(len(levels)))
    theta = np.stack([data.posterior[n].values.ravel() for n in ("beta", "rho", "gamma", "I0")], axis=1)
    shape = data.posterior["beta"].values.shape
    for column in si_combinations(theta).T:
        assert float(arviz.rhat(column.reshape(shape))) < 1.01


def agree_with_importance_sampling(data: arviz.InferenceData) -> None:
    """A run of the HIV example."""
    reference = hiv_reference.draws()
    for j, name in enumerate(hiv_reference.NAMES):
        draws = data.posterior[name].values
        levels = np.quantile(draws, SHARES)
        _agree(name, draws, levels, *reference.distribution(j, levels))


def _agree(name: str, draws: np.ndarray, levels: np.ndarray, exact: np.ndarray, exact_error: np.ndarray) -> None:
    assert float(arviz.rhat(draws)) < 1.01, name
    for level, share, its_error in zip(levels, exact, exact_error, strict=True):
        below = (draws <= level).astype(float)
        error = np.hypot(below.std() / np.sqrt(float(arviz.ess(below, method="mean"))), its_error)
        assert abs(below.mean() - share) < 5.5 * error, (name, level)
