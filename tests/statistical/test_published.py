"""Two published problems with real data, sampled by a long random walk.

Each is compared with an independent reference (own likelihood in NumPy, SciPy's solver, importance sampling):
|z| < 5 for every parameter, a false alarm less than once in 100,000 runs of this file. The lynx-hare posterior is
also compared with what Stan's case study reports, to the digits given there.
"""

from __future__ import annotations

from pathlib import Path

import arviz
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import odeint

from equifinal.formats.toml import loads
from equifinal.studies.sample import sample
from tests.support.importance import Reference, reference
from tests.support.published import CHOLERA, LYNX_HARE


def monte_carlo_error(draws: np.ndarray) -> float:
    return draws.std() / np.sqrt(arviz.ess(draws, method="mean"))


def agree(data: arviz.InferenceData, expected: Reference) -> None:
    assert expected.efficiency > 0.05
    for j, name in enumerate(data.posterior.data_vars):
        draws = data.posterior[name].values
        assert arviz.rhat(draws) < 1.02
        assert arviz.ess(draws) > 400
        error = np.hypot(monte_carlo_error(draws), expected.standard_error[j])
        assert abs(draws.mean() - expected.mean[j]) < 5 * error, name
        assert draws.std() == pytest.approx(expected.sd[j], rel=0.15)


@pytest.mark.slow
def test_lynx_and_hare(shared_data: Path) -> None:
    data = sample(loads(LYNX_HARE, folder=shared_data), warmup=40_000, draws=6000, thin=5, seed=1, progress=False)
    table = np.loadtxt(shared_data / "lynx_hare.csv", delimiter=",", skiprows=1)

    def flow(z: np.ndarray, t: float, a: float, b: float, g: float, d: float) -> list[float]:
        return [(a - b * z[1]) * z[0], (d * z[0] - g) * z[1]]

    def log_density(u: np.ndarray) -> float:
        theta = np.exp(u)
        z = odeint(flow, theta[4:6], table[:, 0], args=tuple(theta[:4]), rtol=1e-7, atol=1e-8)
        if not (z > 0).all():
            return -np.inf
        total = stats.norm.logpdf(theta[:4], [1, 0.05, 1, 0.05], [0.5, 0.05, 0.5, 0.05]).sum() + u[:4].sum()
        total += stats.norm.logpdf(u[4:6], np.log(10), 1).sum() + stats.norm.logpdf(u[6:], -1, 1).sum()
        return total + stats.norm.logpdf(np.log(table[:, 1:]), np.log(z), theta[6:]).sum()

    start = np.log([0.55, 0.028, 0.8, 0.024, 33.0, 6.0, 0.25, 0.25])
    agree(data, reference(log_density, start, np.exp, draws=6000, seed=2))
    reported = {"alpha": 0.55, "beta": 0.028, "gamma": 0.80, "delta": 0.024, "s_hare": 0.25, "s_lynx": 0.25}
    for name, value in reported.items():
        draws = data.posterior[name].values
        # half a unit of the last digit given, and our own Monte Carlo error
        assert draws.mean() == pytest.approx(
            value, abs=(0.005 if value > 0.1 else 0.0005) + 4 * monte_carlo_error(draws)
        )


@pytest.mark.slow
def test_cholera_with_increments(shared_data: Path) -> None:
    data = sample(loads(CHOLERA, folder=shared_data), warmup=20_000, draws=6000, thin=20, seed=1, progress=False)
    table = np.loadtxt(shared_data / "cholera_sir.csv", delimiter=",", skiprows=1)
    times = np.concatenate([[0.0], table[:, 0]])

    def flow(z: np.ndarray, t: float, b: float, g: float, x: float, d: float) -> list[float]:
        infection = b * z[3] / (z[3] + 1e6) * z[0]
        return [-infection, infection - g * z[1], g * z[1], x * z[1] - d * z[3]]

    def log_density(u: np.ndarray) -> float:
        theta = np.exp(u)
        z = odeint(flow, [10_000.0, 0.0, 0.0, 10_000.0], times, args=tuple(theta), rtol=1e-8, atol=1e-6)
        new = -np.diff(z[:, 0])
        if not ((new > 0).all() and (z[1:, 3] > 0).all()):
            return -np.inf
        total = stats.halfcauchy.logpdf(theta, scale=[2.5, 1, 25, 1]).sum() + u.sum()
        total += stats.poisson.logpmf(table[:, 1], new).sum()
        return total + stats.norm.logpdf(np.log(table[:, 2]), np.log(z[1:, 3]), 0.15).sum()

    start = posterior_mean_of(data)
    agree(data, reference(log_density, np.log(start), np.exp, draws=4000, seed=2))


def posterior_mean_of(data: arviz.InferenceData) -> np.ndarray:
    """Where the reference starts its own search for the mode; its result does not depend on it."""
    return np.array([float(data.posterior[name].mean()) for name in data.posterior.data_vars])
