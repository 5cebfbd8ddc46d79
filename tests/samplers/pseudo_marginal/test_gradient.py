"""Proposals of the combinations uphill: their shape against differences of log l, and their place in a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.protocol import Task
from equifinal.samplers.pseudo_marginal import gradient as gradient_proposal
from equifinal.samplers.pseudo_marginal import sampler
from equifinal.samplers.pseudo_marginal.gradient import aim
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import RunSettings, run
from equifinal.studies.paper.si_reference import si_data, si_log_likelihood
from tests.support.exact import case
from tests.support.problems import scaled, si
from tests.support.running import assert_same_draws, interrupt_after

NEAR = np.array([[2.5e-4, 0.25, 0.6, 40.0], [2.4e-4, 0.26, 0.5, 38.0]])  # theta of SI, where it fits


def differences(function, h: np.ndarray, step: float = 1e-5) -> np.ndarray:
    moves = step * np.eye(h.shape[1])
    return np.stack([(function(h + m) - function(h - m)) / (2 * step) for m in moves], axis=1)


def test_slope_and_shape_against_differences() -> None:
    """SI: log l and the reports are known functions of c, so that g and I are known."""
    posterior, fibre = si(), case("si").posterior.fibre
    coordinates = combination_coordinates(fibre)
    times, _ = si_data()
    found = aim(posterior, fibre, NEAR)
    h = coordinates.forward(fibre.xi(NEAR))

    def reports(h: np.ndarray) -> np.ndarray:
        k, g, m = (coordinates.backward(h)[0][:, j, None] for j in range(3))
        growth = np.exp(g * times)
        return m * growth / (1 + k * m * (growth - 1) / g)

    g = differences(lambda h: si_log_likelihood(coordinates.backward(h)[0]), h)
    rows = differences(reports, h) / 5  # sd of the noise
    for i in range(len(NEAR)):
        precision = rows[i] @ rows[i].T + np.diag(coordinates.spread**-2.0)
        covariance = found.factor[i] @ found.factor[i].T
        np.testing.assert_allclose(covariance @ precision, np.eye(3), atol=1e-2)
        assert np.array_equal(found.factor[i], np.tril(found.factor[i]))
        length = np.linalg.norm(found.slope[i])
        cut = min(1.0, 3 * np.sqrt(3) / np.linalg.norm(found.factor[i].T @ g[i]))
        np.testing.assert_allclose(found.slope[i], cut * found.factor[i].T @ g[i], atol=1e-2 * length)


def test_it_is_the_same_all_along_a_fibre() -> None:
    posterior, fibre = scaled()
    theta = np.array([[0.6, 1.0, 2.0], [0.6, 2.0, 1.0], [0.6, 0.5, 4.0]])
    found = aim(posterior, fibre, theta)
    for part in (found.log_likelihood, found.slope, found.factor):
        np.testing.assert_allclose(part, np.broadcast_to(part[:1], part.shape), rtol=1e-4, atol=1e-6)


def test_far_away_the_slope_is_cut() -> None:
    posterior, fibre = scaled()
    found = aim(posterior, fibre, np.array([[0.6, 50.0, 20.0], [0.6, 1.0, 2.0]]))
    lengths = np.linalg.norm(found.slope, axis=1)
    assert lengths[0] == pytest.approx(gradient_proposal.LONGEST * np.sqrt(2))
    assert lengths[1] < 0.9 * lengths[0]


def test_where_nothing_is_known_the_prior_is() -> None:
    """No slopes: as wide as the prior. Slopes that are no numbers: no likelihood."""
    known = case("product of four").posterior
    fibre = known.fibre
    spread = combination_coordinates(fibre).spread
    theta = known.sample_prior(np.random.default_rng(0), 3)
    flat = aim(known, fibre, theta)
    np.testing.assert_allclose(flat.factor, np.tile(np.diag(spread), (3, 1, 1)))
    assert np.isfinite(flat.log_likelihood).all()
    assert not flat.slope.any()

    class Broken:
        def expand(self, theta):
            found = known.expand(theta)
            found.information[1, 0, 0] = np.nan
            found.gradient[2, 0] = np.inf
            return found

    broken = aim(Broken(), fibre, theta)
    assert np.isfinite(broken.log_likelihood).tolist() == [True, False, False]
    assert np.isfinite(broken.factor).all()
    assert np.isfinite(broken.slope).all()


def test_the_density_is_that_of_the_proposal() -> None:
    rng = np.random.default_rng(1)
    h, slope, normals = rng.standard_normal((3, 4, 3))
    factor = np.tril(rng.standard_normal((4, 3, 3))) + 3 * np.eye(3)
    log_scale = np.log([0.5, 1.0, 1.5, 2.0])
    new = gradient_proposal.propose(h, slope, factor, log_scale, normals)
    found = gradient_proposal.log_density(new, h, slope, factor, log_scale)
    for i, eps in enumerate(np.exp(log_scale)):
        mean = h[i] + 0.5 * eps**2 * factor[i] @ slope[i]
        np.testing.assert_allclose(new[i], mean + eps * factor[i] @ normals[i])
        exact = stats.multivariate_normal(mean, eps**2 * factor[i] @ factor[i].T).logpdf(new[i])
        assert found[i] == pytest.approx(exact + 3 * np.log(eps) + 1.5 * np.log(2 * np.pi))


# --- in a run ---


def uphill_run(**options) -> running.Draws:
    posterior, fibre = scaled()
    given = {"aux": 8, "proposal": "gradient"}
    settings = RunSettings(sampler="pseudo-marginal", chains=3, warmup=120, draws=120, seed=7, options=given)
    return run(posterior, settings, fibre=fibre, **options)


def test_a_run_is_taken_up_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = uphill_run()
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-2)
    file = tmp_path / "checkpoint.npz"
    assert uphill_run(progress=interrupt_after(3), checkpoint=file).interrupted
    whole = uphill_run(checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)


def test_the_proposal_belongs_to_the_state() -> None:
    """Slope and factor stay until a proposal is accepted, and the scale after warm-up; the target is its own."""
    assert sampler.Settings(proposal="gradient").target == 0.5
    assert sampler.Settings().target == 0.27
    assert sampler.Settings(proposal="gradient", target=0.6).target == 0.6
    posterior, fibre = scaled()
    settings = sampler.Settings(aux=4, proposal="gradient")
    state = sampler.begin(
        Task(posterior, fibre, settings), posterior.to_coordinates(np.array([[0.6, 1.0, 2.0]] * 3))
    ).state
    rngs = [np.random.default_rng(i) for i in range(3)]
    for iteration in range(120):
        before = state
        state, info = sampler.step(Task(posterior, fibre, settings, 60), state, rngs, iteration)
        stay = ~info.accepted
        for name in ("h", "slope", "factor", "log_likelihood"):
            np.testing.assert_array_equal(getattr(state, name)[stay], getattr(before, name)[stay])
        assert (info.solves <= 1).all()
        if iteration >= 60:
            np.testing.assert_array_equal(state.log_scale, before.log_scale)
    there = aim(posterior, fibre, fibre.to_theta(state.position))
    np.testing.assert_allclose(state.slope, there.slope, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(state.factor, there.factor, rtol=1e-3, atol=1e-5)
