from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equifinal.errors import DataError
from equifinal.posterior.posterior import Evaluation, Posterior
from equifinal.samplers.protocol import Task
from equifinal.samplers.random_walk import sampler as random_walk
from tests.support.problems import decay, decay_log_likelihood


def exact_draws(n: int, rng: np.random.Generator) -> tuple[np.ndarray, list]:
    """Draws of the decay posterior from a fine grid, and its marginal distribution functions, by quadrature."""
    posterior = decay()
    k = np.linspace(0.1, 2.0, 1201)
    a = np.linspace(0.8, 3.2, 1001)
    cells = np.stack(np.meshgrid(k, a, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = decay_log_likelihood(cells) + posterior.log_prior(cells)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    chosen = rng.choice(weight.size, size=n, p=weight)
    jitter = (rng.random((n, 2)) - 0.5) * [k[1] - k[0], a[1] - a[0]]
    draws = np.clip(cells[chosen] + jitter, [0.1 + 1e-9, 1e-9], [2.0 - 1e-9, np.inf])
    marginals = []
    for axis, grid in ((1, k), (0, a)):
        cdf = np.cumsum(weight.reshape(k.size, a.size).sum(axis=axis))
        edges = grid + (grid[1] - grid[0]) / 2
        marginals.append(lambda x, edges=edges, cdf=cdf: np.interp(x, edges, cdf))
    return draws, marginals


class WithoutJacobian(Posterior):
    """As if |dtheta/du| had been forgotten."""

    def evaluate(self, u: np.ndarray) -> Evaluation:
        return super().evaluate(u)._replace(log_prior=self.log_prior(self.to_theta(u)))


def run_from_the_exact_law(n: int, steps: int, scale: float, break_it: bool = False) -> list[float]:
    """p-values of Kolmogorov-Smirnov for each parameter after some steps from exact draws."""
    rng = np.random.default_rng(10)
    posterior = WithoutJacobian(decay().problem) if break_it else decay()
    draws, marginals = exact_draws(n, rng)
    settings = random_walk.Settings(covariance=scale)
    state = random_walk.begin(Task(posterior, None, settings), posterior.to_coordinates(draws)).state
    rngs = [np.random.default_rng(child) for child in np.random.SeedSequence(11).spawn(n)]
    for iteration in range(steps):
        state, _ = random_walk.step(Task(posterior, None, settings, 0), state, rngs, iteration)
    theta = posterior.to_theta(state.position)
    return [stats.kstest(theta[:, j], marginal).pvalue for j, marginal in enumerate(marginals)]


def test_the_posterior_is_stationary() -> None:
    # two tests at level 1e-6 each
    assert min(run_from_the_exact_law(20_000, 10, 0.1)) > 1e-6


def test_the_stationarity_test_can_fail() -> None:
    assert min(run_from_the_exact_law(20_000, 10, 0.1, break_it=True)) < 1e-6


def test_nothing_adapts_after_warmup() -> None:
    posterior = decay()
    settings = random_walk.Settings()
    rngs = [np.random.default_rng(i) for i in range(3)]
    start = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 3))
    state = random_walk.begin(Task(posterior, None, settings), start).state
    for iteration in range(300):
        state, _ = random_walk.step(Task(posterior, None, settings, 300), state, rngs, iteration)
    frozen = state
    for iteration in range(300, 400):
        state, _ = random_walk.step(Task(posterior, None, settings, 300), state, rngs, iteration)
    for name in ("factor", "log_scale", "mean", "covariance"):
        np.testing.assert_array_equal(getattr(state, name), getattr(frozen, name))


def test_warmup_reaches_its_target() -> None:
    posterior = decay()
    settings = random_walk.Settings(target=0.3)
    rngs = [np.random.default_rng(i) for i in range(8)]
    start = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 8))
    state = random_walk.begin(Task(posterior, None, settings), start).state
    accepted = []
    for iteration in range(3000):
        state, info = random_walk.step(Task(posterior, None, settings, 2000), state, rngs, iteration)
        if iteration >= 2000:
            accepted.append(info.accepted)
    assert 0.2 < np.mean(accepted) < 0.4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": 2}, "between 0 and 1"),
        ({"swap": "yes"}, "must be true or false, not 'yes'"),
        ({"covariance": [1, 2, 3]}, "3 numbers for 2"),
        ({"covariance": "x"}, "must be a number"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive definite"),
        ({"covariance": [[1, 2, 3]]}, "2 by 2"),
        ({"covariance": -1.0}, "positive definite"),
        ({"covariance": [[1, 0.5], [0.2, 1]]}, "symmetric"),
        ({"covariance": [[1, np.nan], [np.nan, 1]]}, "symmetric"),
    ],
)
def test_bad_options(options: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        random_walk.Settings(**options).factor(2)
