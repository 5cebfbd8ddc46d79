"""Exactness of the geometric sampler and of root swaps.

Stationarity: n independent chains start from exact draws and make some steps; then every parameter and every
combination must have the law it started with, by Kolmogorov-Smirnov against independent exact draws, at level 1e-8 a
test. The same with one term of the sampler left out must fail at 1e-6.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from equifinal.samplers import root_swap
from equifinal.samplers.geometric import rattle
from equifinal.samplers.geometric import sampler as geometric
from equifinal.samplers.geometric import scaled_fibre as scaled_fibre
from equifinal.samplers.geometric.loops import Weights
from equifinal.samplers.protocol import Task
from equifinal.samplers.random_walk import sampler as random_walk
from equifinal.studies.sample import sample
from tests.support.agreement import agree_with_quadrature
from tests.support.exact import Case, Known, case
from tests.support.marks import slow_but
from tests.support.problems import si

LEVEL, RARE = 1e-6, 1e-8  # what a planted error must fall below, and what an exact sampler must stay above
CONTINUA = ("product", "circle", "labelled", "wiggle", "cubic", "si")
ROOTS = ("circle", "sum and product", "squares", "cubic")
SWAPPING = ("sum and product", "squares")
REPLICATES = {"product": 100_000, "si": 100_000}


def prepared(known: Known, start: np.ndarray, settings: geometric.Settings) -> geometric.State:
    """Chains with the transitions that a warm-up would have found."""
    fibre = known.fibre
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = geometric.begin(Task(known, fibre, settings), known.to_coordinates(start)).state
    if settings.transition == "paper":
        return state
    values, _ = geometric._locate(state, settings, fibre)
    factor = np.linalg.cholesky(np.cov(values.T).reshape(fibre.rank, fibre.rank))
    state = state._replace(
        factor=np.tile(factor, (len(start), 1, 1)),
        log_scale=np.full(len(start), np.log(1.5 / np.sqrt(fibre.rank))),
    )
    _, sizes = geometric._locate(state, settings, fibre)
    return state._replace(log_tangent=np.full(len(start), sizes.mean()))


def p_values(name: str, sampler: str, n: int = 40_000, steps: int = 8, **options) -> list[float]:
    """Of Kolmogorov-Smirnov tests for each parameter and combination, after some steps from exact draws."""
    found: Case = case(name)
    known, rng = found.posterior, np.random.default_rng(1)
    start, independent = found.draw(rng, n), found.draw(rng, 3 * n)
    rngs = [np.random.default_rng(2)] * n  # chains take their numbers from one stream, in turn
    if sampler == "random walk":
        module, settings = random_walk, random_walk.Settings(covariance=found.covariance)
        state = random_walk.begin(Task(known, None, settings), known.to_coordinates(start)).state
    else:
        module = geometric
        chosen = {"fibre_moves": 1, "step_size": found.step_size, "steps": 3} | options
        settings = geometric.Settings(kernel=sampler, **chosen)
        state = prepared(known, start, settings)
    before, spent = known.evaluations, 0
    accepted = 0.0
    for iteration in range(steps):
        state, info = module.step(Task(known, known.fibre, settings, 0), state, rngs, iteration)
        spent += int(info.solves.sum())
        accepted += info.accepted.mean() / steps
    assert 0.05 < accepted < 0.98
    assert known.evaluations - before == spent <= n * steps  # nothing but transitions costs a solve
    again = known.evaluate(state.position)  # what was carried along is what it should be
    np.testing.assert_allclose(state.log_prior, again.log_prior, atol=1e-8)
    np.testing.assert_allclose(state.log_likelihood, again.log_likelihood, atol=1e-5)
    theta = known.to_theta(state.position)
    columns = zip((*theta.T, *known.fibre.xi(theta).T), (*independent.T, *known.fibre.xi(independent).T), strict=True)
    return [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in columns]


@pytest.mark.parametrize("name", slow_but("circle", "squares", of=ROOTS))
def test_the_random_walk_with_swaps_is_exact(name: str) -> None:
    assert min(p_values(name, "random walk", n=REPLICATES.get(name, 40_000))) > RARE


@pytest.mark.parametrize("name", slow_but("cubic", of=[*CONTINUA, *SWAPPING]))
def test_separate_kernels_are_exact(name: str) -> None:
    assert min(p_values(name, "separate", n=REPLICATES.get(name, 40_000))) > RARE


@pytest.mark.parametrize("name", slow_but("circle", of=CONTINUA))
def test_the_composite_kernel_is_exact(name: str) -> None:
    assert min(p_values(name, "composite", n=REPLICATES.get(name, 40_000))) > RARE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "circle"])
@pytest.mark.parametrize("kernel", ["separate", "composite"])
def test_fixed_transitions_are_exact(name: str, kernel: str) -> None:
    assert min(p_values(name, kernel, transition="paper", normal_sd=0.5, tangent_sd=0.3)) > RARE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "si"])
def test_the_force_keeps_it_exact(name: str) -> None:
    assert min(p_values(name, "separate", force=True)) > RARE


@pytest.mark.parametrize(
    ("name", "kernel", "n", "weights"),
    [
        ("product", "separate", 20_000, Weights(fibre_volume=0.0)),
        pytest.param("si", "separate", 20_000, Weights(fibre_volume=0.0), marks=pytest.mark.slow),
        ("product", "separate", 20_000, Weights(transition_volume=0.0)),
        ("wiggle", "composite", 25_000, Weights(first_share=1.0)),
        pytest.param("wiggle", "composite", 25_000, Weights(first_share=0.0), marks=pytest.mark.slow),
        pytest.param("product", "composite", 60_000, Weights(first_volume=0.0), marks=pytest.mark.slow),
        pytest.param("product", "composite", 60_000, Weights(second_volume=0.0), marks=pytest.mark.slow),
        ("product", "composite", 20_000, Weights(first_volume=0.0, second_volume=0.0)),
        pytest.param("product", "composite", 20_000, Weights(transition_volume=0.0), marks=pytest.mark.slow),
    ],
)
def test_each_term_is_needed(name: str, kernel: str, n: int, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometric, "WEIGHTS", weights)
    assert min(p_values(name, kernel, n=n)) < LEVEL


@pytest.mark.parametrize("kernel", slow_but("separate", of=["separate", "composite"]))
def test_the_check_of_reversibility_is_needed(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled_fibre, "RATTLE", rattle.Settings(reversibility=np.inf))
    short = {"transition": "paper", "normal_sd": 0.05, "tangent_sd": 0.05}  # seldom rejected
    assert min(p_values("wiggle", kernel, **short)) < LEVEL


def without_determinants(fibre, theta, log_det):
    n, most, d = theta.shape
    prior = fibre.log_prior(theta.reshape(-1, d)).reshape(n, most)
    return np.where(np.isnan(log_det), -np.inf, prior)


def without_priors(fibre, theta, log_det):
    return np.where(np.isnan(log_det), -np.inf, -log_det)


@pytest.mark.parametrize("weights", [without_determinants, without_priors])
@pytest.mark.parametrize("sampler", slow_but("random walk", of=["random walk", "separate"]))
def test_swaps_need_determinants_and_priors(sampler: str, weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_swap, "log_weights", weights)
    assert min(p_values("cubic", sampler)) < LEVEL


def test_labels_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On branches with other labels the likelihood is another one."""
    fibre = case("labelled").posterior.fibre
    blind = fibre.with_partition(fibre.free)
    monkeypatch.setattr(blind.combinations, "labels", ())
    monkeypatch.setattr(fibre, "combinations", blind.combinations)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        p_values("labelled", "separate", n=20_000)


@pytest.mark.slow
def test_si_from_dispersed_starts_agrees_with_quadrature() -> None:
    """5.5 standard errors, 36 comparisons: a false alarm once in 700,000 seeds."""
    agree_with_quadrature(sample(si().problem, sampler="geometric", seed=3, draws=10_000, progress=False))
