"""The geometric sampler's parts, its options, and its place among executors and checkpoints."""

from __future__ import annotations

import ctypes
import json
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import arviz
import numpy as np
import pytest
from scipy import stats

from equifinal.errors import DataError, SamplingError
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.constraint import constraint_code
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.problem.prior import Prior
from equifinal.samplers import root_swap
from equifinal.samplers.geometric import loops as kernel
from equifinal.samplers.geometric import rattle
from equifinal.samplers.geometric import sampler as geometric
from equifinal.samplers.geometric.scaled_fibre import equipment, scaled_fibre
from equifinal.samplers.geometric.settings import PAPER
from equifinal.samplers.protocol import Task
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.samplers.searching.climbing import search
from equifinal.studies.sample import sample
from equifinal.words.diagnostics import advise
from tests.support.exact import case
from tests.support.problems import TWO_STAGES, decay, scaled, si
from tests.support.running import assert_same_draws, interrupt_after


def mixed_fibre() -> Fibre:
    """All kinds of coordinates."""
    priors = {
        "a": Prior("uniform", lower=1e-3, upper=1.0, coordinate="log"),
        "b": Prior("uniform", lower=0.5, upper=4.0),
        "c": Prior("normal", mean=3.0, sd=2.0),
        "d": Prior("normal", mean=0.0, sd=1.0, upper=2.0, coordinate="log"),
    }
    return Fibre(["a*b*c", "c + d/b"], priors)


def points(fibre: Fibre, n: int) -> np.ndarray:
    return fibre.to_coordinates(fibre.prior_draws[:n])


# --- the fibre as a constraint ---


def test_the_constraint_is_the_fibre_in_scaled_coordinates() -> None:
    fibre, scale = mixed_fibre(), np.array([0.5, 2.0, 1.5, 0.7])
    code, u = constraint_code(fibre, scale), points(mixed_fibre(), 20)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(code.function)
    expected = fibre.geometry_in_coordinates(u)
    for i, row in enumerate(u):
        v, xi, jacobian = row / scale, np.empty(2), np.empty((2, 4))
        assert call(*(a.ctypes.data for a in (v, code.data, xi, jacobian))) == 0
        np.testing.assert_allclose(xi, expected.values[i], rtol=1e-12)
        np.testing.assert_allclose(jacobian, expected.jacobian[i] * scale, rtol=1e-12)


def test_the_force_is_the_gradient_of_the_density_on_the_fibre() -> None:
    fibre, scale = mixed_fibre(), np.array([0.5, 2.0, 1.5, 0.7])
    code = constraint_code(fibre, scale)
    constraint = rattle.Constraint(code.function, code.data, 2, 4, keepalive=code.keepalive)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(code.force)

    def log_density(v: np.ndarray) -> float:
        theta = fibre.to_theta(v * scale)
        slope = np.abs((fibre.to_theta(v * scale + 1e-6) - fibre.to_theta(v * scale - 1e-6)) / 2e-6)
        return float(fibre.log_prior(theta)[0] + np.log(slope).sum() - rattle.log_volume(constraint, v[None])[0])

    for row in points(fibre, 5):
        v, gradient = row / scale, np.empty(4)
        assert call(*(a.ctypes.data for a in (v, code.data, gradient))) == 0
        numerical = [(log_density(v + e) - log_density(v - e)) / 2e-4 for e in 1e-4 * np.eye(4)]
        np.testing.assert_allclose(gradient, numerical, rtol=1e-3, atol=1e-3)


def test_ratios_of_the_volume_do_not_depend_on_how_combinations_are_written() -> None:
    priors = {n: Prior("uniform", lower=0.2, upper=3.0) for n in "abc"}
    one, other = Fibre(["a*b", "b + c"], priors), Fibre(["(a*b)^3", "(b + c)/(a*b)"], priors)
    u = points(one, 1)
    code = constraint_code(one, np.ones(3))
    moved = rattle.move(rattle.Constraint(code.function, code.data, 2, 3, keepalive=code), u, np.ones((1, 3)), 0.2, 3)
    assert moved.status[0] == rattle.Status.OK
    assert np.abs(moved.u - u).max() > 0.05
    ratios = [np.diff(f.geometry_in_coordinates(np.vstack([u, moved.u])).log_volume)[0] for f in (one, other)]
    assert ratios[0] == pytest.approx(ratios[1], abs=1e-8)
    assert abs(ratios[0]) > 1e-3


# --- transitions ---


@pytest.mark.parametrize("transition", ["learned", "paper"])
def test_the_proposal_has_the_density_it_claims(transition: str) -> None:
    """The kernel's log ratio against normal densities with covariances written out in NumPy."""
    fibre, settings = mixed_fibre(), geometric.Settings(transition=transition)
    known = scaled_fibre(fibre, True)
    u = points(fibre, 6)
    n, q = len(u), 2
    factor = np.linalg.cholesky([[0.04, 0.01], [0.01, 0.09]])
    log_normal, log_tangent = np.full(n, np.log(0.3)), np.full(n, np.log(0.1))
    across = kernel.Transition(transition == "learned", np.tile(factor, (n, 1, 1)), log_normal, log_tangent)
    proposal, log_ratio, counts = np.empty_like(u), np.empty(n), np.zeros((n, kernel.COUNTS), np.int64)
    normals = np.random.default_rng(0).standard_normal(u.shape)
    tools = equipment(fibre, settings.scaled, False)
    kernel.transit(*tools, across, kernel.Weights(), u, normals, proposal, log_ratio, counts)
    assert counts.sum() == 0

    def log_q(target: np.ndarray, start: np.ndarray) -> float:
        found = fibre.geometry_in_coordinates(start[None])
        d = found.jacobian[0] * known.scale
        if transition == "learned":
            d = d / np.hypot(found.values[0], known.softening)[:, None]
        inverse = np.linalg.pinv(d)
        tangent = np.eye(4) - inverse @ d
        spread = factor @ factor.T if transition == "learned" else None
        normal = inverse @ spread @ inverse.T if spread is not None else np.eye(4) - tangent
        covariance = 0.3**2 * normal + 0.1**2 * tangent
        return float(stats.multivariate_normal.logpdf((target - start) / known.scale, np.zeros(4), covariance))

    expected = [log_q(a, b) - log_q(b, a) for a, b in zip(u, proposal, strict=True)]
    np.testing.assert_allclose(log_ratio, expected, rtol=1e-6, atol=1e-6)
    assert np.ptp(expected) > 0.01
    assert q == fibre.rank


def test_composite_moves_are_undone_by_the_other_order() -> None:
    """The ratio of a move is the inverse of the ratio of its reverse, made in the other order."""
    fibre = mixed_fibre()
    u, n, d = points(fibre, 12), 12, 4
    state_factor = np.tile(np.diag([0.2, 0.3]), (n, 1, 1))
    across = kernel.Transition(True, state_factor, np.full(n, np.log(0.2)), np.full(n, np.log(0.1)))
    tools, rng = equipment(fibre, True, False), np.random.default_rng(1)
    normals, momenta = rng.standard_normal((n, d)), rng.standard_normal((n, d))
    uniforms = np.column_stack([np.zeros(n), np.full(n, 0.5), np.zeros(n)])
    eps, steps, counts = np.full(n, 0.1), np.full(n, 3), np.zeros((n, kernel.COUNTS), np.int64)
    proposal, log_ratio, along = np.empty_like(u), np.empty(n), np.empty(n)
    kernel.compose(
        *tools,
        across,
        kernel.Weights(),
        u,
        normals,
        momenta,
        uniforms,
        eps,
        steps,
        (proposal, log_ratio),
        along,
        counts,
    )
    scale = scaled_fibre(fibre, True).scale
    code = constraint_code(fibre, scale)
    constraint = rattle.Constraint(code.function, code.data, 2, d, keepalive=code)
    moved = rattle.move(constraint, u / scale, momenta, 0.1, 3)
    checked = 0
    for i in np.flatnonzero(np.isfinite(log_ratio)):
        # from the proposal across to where the first move ended: which normals do that?
        start, middle = proposal[i : i + 1], moved.u[i] * scale
        found = fibre.geometry_in_coordinates(start)
        jacobian = found.jacobian[0] * scale / np.hypot(found.values[0], scaled_fibre(fibre, True).softening)[:, None]
        normal = np.linalg.qr(jacobian.T)[0].T
        normal *= np.sign(np.diag(jacobian @ normal.T))[:, None]
        delta = (middle - start[0]) / scale
        z_normal = np.linalg.solve(np.diag([0.2, 0.3]) * 0.2, jacobian @ delta)
        z = normal.T @ z_normal + (delta - normal.T @ (normal @ delta)) / 0.1
        back, ratio = np.empty((1, d)), np.empty(1)
        one = kernel.Transition(True, state_factor[:1], across.log_normal[:1], across.log_tangent[:1])
        last = np.array([[0.0, 0.5, 1.0]])
        kernel.compose(
            *tools, one, kernel.Weights(), start, z[None], -moved.p[i : i + 1], last, eps[:1], steps[:1],
            (back, ratio), np.empty(1), np.zeros((1, kernel.COUNTS), np.int64),
        )  # fmt: skip
        np.testing.assert_allclose(back[0], u[i], rtol=1e-7, atol=1e-7)
        assert ratio[0] == pytest.approx(-log_ratio[i], abs=1e-5)
        checked += 1
    assert checked > 6


# --- swaps ---


def test_swaps_stay_on_the_fibre_and_reach_every_root() -> None:
    fibre = case("cubic").posterior.fibre
    theta = np.tile([[0.05, 0.1]], (2000, 1))
    u = fibre.to_coordinates(theta)
    done = root_swap.swap(fibre, u, np.zeros(2000), [np.random.default_rng(0)] * 2000)
    np.testing.assert_allclose(fibre.xi(fibre.to_theta(done.position)), fibre.xi(theta), rtol=1e-9)
    assert len(np.unique(np.round(done.position[:, 1], 6))) == 3
    np.testing.assert_array_equal(done.position[~done.swapped], u[~done.swapped])
    assert not done.unresolved.any()


# --- a run ---

SETTINGS = RunSettings(sampler="geometric", chains=3, warmup=150, draws=150, seed=7)


def geometric_run(**options) -> running.Draws:
    posterior, fibre = scaled()
    return run(posterior, SETTINGS, fibre=fibre, **options)


@pytest.fixture(scope="module")
def plain() -> running.Draws:
    return geometric_run()


def test_what_is_counted(plain: running.Draws) -> None:
    counts = plain.counts
    moves = sum(counts[f"fibre_{status.name.lower()}"] for status in rattle.Status)
    assert moves == 3 * 150 * geometric.Settings().fibre_moves
    assert 0.3 * moves < counts["fibre_accepted"] < moves
    after = plain.tally.solves - plain.tally.warmup_solves
    assert (after <= 150).all()  # one solve an iteration


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_give_the_same_draws(plain: running.Draws, kind: str) -> None:
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool as executor:
        assert_same_draws(geometric_run(executor=executor), plain)


def test_a_run_is_taken_up_where_it_stopped(
    plain: running.Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-2)
    file = tmp_path / "checkpoint.npz"
    assert geometric_run(progress=interrupt_after(3), checkpoint=file).interrupted
    whole = geometric_run(checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)


def test_composite_and_paper_options_run() -> None:
    posterior, fibre = scaled()
    for options in ({"kernel": "composite"}, dict(PAPER), {"force": True, "steps": 3}):
        settings = RunSettings(sampler="geometric", chains=2, warmup=50, draws=50, options=options)
        assert np.isfinite(run(posterior, settings, fibre=fibre).theta).all()


def test_nothing_adapts_after_warmup() -> None:
    posterior, fibre = scaled()
    settings = geometric.Settings()
    rngs = [np.random.default_rng(i) for i in range(3)]
    start = posterior.to_coordinates(posterior.sample_prior(np.random.default_rng(0), 3))
    state = geometric.begin(Task(posterior, fibre, settings), start).state
    for iteration in range(300):
        state, _ = geometric.step(Task(posterior, fibre, settings, 300), state, rngs, iteration)
    frozen = state
    for iteration in range(300, 350):
        state, _ = geometric.step(Task(posterior, fibre, settings, 300), state, rngs, iteration)
    for name in geometric.State._fields[3:]:
        np.testing.assert_array_equal(getattr(state, name), getattr(frozen, name))
    assert not np.array_equal(state.position, frozen.position)


def test_warmup_reaches_its_targets() -> None:
    posterior, fibre = scaled()
    settings = RunSettings(sampler="geometric", chains=4, warmup=2000, draws=1000)
    done = run(posterior, settings, fibre=fibre)
    moves = 4 * 1000 * geometric.Settings().fibre_moves
    assert 0.2 < done.acceptance.mean() < 0.4
    assert 0.6 < done.counts["fibre_accepted"] / moves < 0.85


def test_chains_from_prior_draws_arrive() -> None:
    problem = load(example_path("hiv"))
    settings = RunSettings(sampler="geometric", chains=8, warmup=300, draws=100)
    mean = run(Posterior(problem), settings, fibre=fibre_of(problem)).chunk.log_likelihood.mean(axis=1)
    assert np.ptp(mean) < 10


def test_the_first_transitions_are_like_those_that_warmup_finds() -> None:
    posterior, fibre = scaled()
    settings = geometric.Settings()
    rngs = [np.random.default_rng(i) for i in range(4)]
    start = np.stack([search(posterior, rng).position for rng in rngs])
    first = state = geometric.begin(Task(posterior, fibre, settings), start).state
    for iteration in range(2000):
        state, _ = geometric.step(Task(posterior, fibre, settings, 2000), state, rngs, iteration)
    widths = [np.sqrt(np.diagonal(s.factor @ s.factor.transpose(0, 2, 1), axis1=1, axis2=2)) for s in (first, state)]
    assert (np.abs(np.log(widths[0] / widths[1])) < np.log(2)).all()
    assert (np.abs(first.log_tangent - state.log_tangent) < np.log(3)).all()


def test_a_first_guess_as_wide_as_the_prior_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """On SI the posterior is a hundred times narrower."""
    posterior, fibre = si(), fibre_of(si().problem)
    widest = np.diag(scaled_fibre(fibre, True).spread ** 2)
    monkeypatch.setattr(geometric, "first_covariance", lambda posterior, u, fibre: np.tile(widest, (len(u), 1, 1)))
    settings = RunSettings(sampler="geometric", warmup=4000, draws=2000)
    theta = run(posterior, settings, fibre=fibre).theta
    assert max(float(arviz.rhat(draws)) for draws in np.moveaxis(theta, 2, 0)) < 1.1


def test_without_a_fibre_it_says_so_and_goes_on() -> None:
    with pytest.warns(UserWarning, match="nothing to move along"):
        data = sample(decay().problem, sampler="geometric", chains=2, warmup=100, draws=100, progress=False)
    counts = json.loads(data.attrs["counts"])
    assert sum(counts[name] for name in counts if name.startswith("fibre")) == 0


@pytest.mark.parametrize(("sampler", "options"), [("geometric", {}), ("random-walk", {"swap": True})])
def test_both_of_two_equivalent_rate_constants_are_visited(sampler: str, options: dict) -> None:
    """y = 4 b k/(s - k) (exp(-k t) - exp(-s t)) is the same with k and s exchanged, and b k/s for b."""
    problem = loads(TWO_STAGES, name="two stages")
    assert fibre_of(problem).chart.degree == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = sample(problem, sampler=sampler, options=options, chains=2, warmup=300, draws=300, progress=False)
    larger = (data.posterior["k"].values > data.posterior["s"].values).mean(axis=1)
    assert ((larger > 0.02) & (larger < 0.98)).all()
    assert json.loads(data.attrs["counts"])["swapped"] > 20


def test_a_fibre_of_another_problem_is_refused() -> None:
    with pytest.raises(SamplingError, match="other parameters"):
        run(decay(), SETTINGS, fibre=scaled()[1])
    with pytest.raises(SamplingError, match="needs to know the fibres"):
        run(decay(), SETTINGS)


def test_what_is_sent_is_made_once() -> None:
    packed = pickle.dumps(SentOnce(scaled()[1]))
    first, second = pickle.loads(packed), pickle.loads(packed)
    assert first.content is second.content
    assert repr(first.content) == repr(scaled()[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "seperate"}, "did you mean 'separate'"),
        ({"transition": "other"}, "learned or paper"),
        ({"fibre_moves": 0}, "'fibre_moves' must be a whole number"),
        ({"steps": 2.5}, "'steps'"),
        ({"step_size": -1}, "'step_size' must be a positive"),
        ({"fibre_target": 1.5}, "between 0 and 1"),
        ({"force": 1}, "true or false"),
        ({"stepsize": 1}, "did you mean 'step_size'"),
    ],
)
def test_bad_options(options: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        RunSettings(sampler="geometric", options=options)


# --- what the likelihood sees besides the outputs ---

SHARED_SCALE = """
[model]
equations = \"\"\"
x' = -k*x
y = s*x
x(0) = A
\"\"\"
outputs = ["y"]
[parameters]
k = { prior = "uniform", lower = 0.05, upper = 3 }
s = { prior = "uniform", lower = 0.02, upper = 3 }
A = { prior = "uniform", lower = 0.1, upper = 100 }
[noise]
y = { family = "normal", sd = "s" }
[data]
time = [0.5, 1, 2, 3, 4, 6, 8]
y = [2.05, 1.45, 0.80, 0.47, 0.31, 0.13, 0.06]
"""


def test_a_parameter_of_model_and_noise_is_seen_by_the_likelihood():
    problem = loads(SHARED_SCALE, name="shared")
    assert fibre_of(problem, outputs_only=True).dimension == 1
    assert fibre_of(problem).dimension == 0
    assert fibre_of(problem, ["k", "s*A"]).dimension == 0


def test_a_likelihood_that_changes_on_the_fibre_is_noticed():
    problem = loads(SHARED_SCALE, name="shared")
    wrong = fibre_of(problem, outputs_only=True)
    options = {"chains": 2, "warmup": 300, "draws": 300, "seed": 1, "progress": False}
    advice = advise(sample(problem, sampler="geometric", fibre=wrong, **options))
    assert any("not constant on the fibres" in line for line in advice)
    with pytest.warns(UserWarning, match="nothing to move along"):
        right = sample(problem, sampler="geometric", **options)
    assert right.attrs["likelihood_gap"] < 1e-3
