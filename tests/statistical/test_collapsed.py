"""Exactness of the collapsed sampler.

Stationarity as for the pseudo-marginal sampler, whose kernel it shares, with proposals in batches; SI and HIV end to
end, three seeds each; and the marginal likelihood against exact values.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from equifinal.examples import example_path
from equifinal.io.toml import load
from equifinal.paper.si_reference import si_data, si_interval, si_laplace, si_log_likelihood
from equifinal.result import sample
from equifinal.samplers import collapsed, collapsed_block, mixture
from equifinal.samplers.collapsed import State
from equifinal.samplers.pseudo_marginal import on_branch
from equifinal.samplers.unfolding import Unfolding, unfolding
from tests.problems import si
from tests.statistical.agreement import agree_with_importance_sampling, agree_with_quadrature
from tests.statistical.exact import case
from tests.statistical.starts import moments_of, stationary

LEVEL = 1e-8


def p_values(
    name: str, monkeypatch: pytest.MonkeyPatch, n: int = 10_000, steps: int = 8, local: bool = False, **options
) -> list[float]:
    """Of Kolmogorov-Smirnov tests for each parameter and combination, after some steps from exact draws."""
    monkeypatch.setattr(collapsed_block, "BATCH", 5)  # two batches, the second in part
    monkeypatch.setattr(collapsed_block, "LOCAL_EVERY", 2)
    found = case(name)
    known, fibre, rng = found.posterior, found.posterior.fibre, np.random.default_rng(1)
    start, independent = found.draw(rng, n), found.draw(rng, 3 * n)
    settings = collapsed.Settings(**options)
    tool = collapsed._tool(fibre, settings, settings.aux)
    moments = moments_of(fibre, independent[:5000], n)
    whole_of = unfolding(fibre)
    x = whole_of.coordinates.forward(whole_of.finer.xi(independent[:5000]))
    covariance = np.atleast_2d(np.cov(x.T))
    # off the mark on purpose: the sampler must be exact with any proposal
    proposal = mixture.single(x.mean(axis=0) + 0.3 * np.sqrt(np.diag(covariance)), 1.3 * covariance, 5.0)
    x = whole_of.coordinates.forward(whole_of.finer.xi(start))
    x = whole_of.relabelled(proposal, x, rng.random(n))
    whole = stationary(tool, start, moments, rng)
    likelihood = known.log_density(start)
    state = State(
        position=known.to_coordinates(start),
        log_prior=known.evaluate(known.to_coordinates(start)).log_prior,
        log_likelihood=likelihood,
        h=x,
        log_ratio=likelihood + whole.log_p + whole_of.backward(x)[1] - whole_of.log_density(proposal, x),
        theta=whole.theta,
        log_weight=on_branch(fibre, whole, start),
        key=rng.integers(2**63, size=n).astype(np.uint64),
        number=np.full(n, tool.number),
        **{part: np.repeat(value[None], n, axis=0) for part, value in proposal._asdict().items()},
        unfolded=np.repeat(whole_of.replaced[None], n, axis=0),
        local=np.repeat(np.linalg.cholesky(covariance)[None] * local, n, axis=0),
        mean=moments.mean,
        covariance=moments.covariance,
        proposals=np.zeros(n),
        log_sum=np.full(n, -np.inf),
        log_squares=np.full(n, -np.inf),
        k_hat=np.zeros(n),
    )
    state, block = collapsed.run_block(known, state, settings, 0, steps, fibre)
    assert 0.05 < block.accepted.mean() < 0.98
    theta = known.to_theta(state.position)
    np.testing.assert_allclose(state.log_likelihood, known.log_density(theta), atol=1e-5)
    columns = zip((*theta.T, *fibre.xi(theta).T), (*independent.T, *fibre.xi(independent).T), strict=True)
    return [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in columns]


@pytest.mark.parametrize("points", ["iid", "lattice"])
@pytest.mark.parametrize("name", ["product", "circle", "sum and product", "labelled", "product of three", "si"])
def test_the_sampler_is_exact(name: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, aux=2, points=points)) > LEVEL


@pytest.mark.parametrize("name", ["circle", "sum and product", "product of three"])
def test_local_steps_are_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, aux=2, local=True)) > LEVEL


def test_images_must_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal's density without that of its images makes the sampler wrong, and that is seen."""
    monkeypatch.setattr(Unfolding, "log_density", lambda self, mixture, x: mixture.log_density(x))
    assert min(p_values("sum and product", monkeypatch, n=4000, aux=2)) < LEVEL


def test_si_agrees_with_quadrature() -> None:
    """5.5 standard errors, 3 x 36 comparisons: a false alarm once in 240,000 seeds."""
    for seed in (1, 2, 3):
        agree_with_quadrature(sample(si().problem, sampler="collapsed", seed=seed, progress=False))


def test_hiv_agrees_with_importance_sampling() -> None:
    """The same, 3 x 54 comparisons."""
    for seed in (1, 2, 3):
        agree_with_importance_sampling(
            sample(load(example_path("hiv")), sampler="collapsed", seed=seed, progress=False)
        )


def test_the_marginal_likelihood_of_si() -> None:
    """Against quadrature over c; the fibre's part is exact: a constant density on an interval of rho."""
    mode, covariance = si_laplace()
    line = np.linspace(-8, 8, 81)
    z = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    factor = np.linalg.cholesky(covariance)
    c = mode * np.exp(z @ factor.T)
    low, high = si_interval(c)
    widths = np.prod([1e-3 - 1e-5, 0.99, 0.99, 499.0])  # of the priors
    constant = -0.5 * len(si_data()[0]) * np.log(2 * np.pi * 25)
    density = np.exp(si_log_likelihood(c) + constant) * (high - low) / widths * c.prod(axis=1)
    exact = np.log(density.sum() * (line[1] - line[0]) ** 3 * np.abs(np.diag(factor)).prod())
    data = sample(si().problem, sampler="collapsed", seed=1, progress=False)
    found = json.loads(data.attrs["findings"])
    assert found["log_evidence_error"] < 0.01
    assert abs(found["log_evidence"] - exact) < 5 * found["log_evidence_error"]
