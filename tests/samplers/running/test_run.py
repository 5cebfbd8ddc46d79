from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError, SamplingError
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.running.under_way import Mixing, Update
from equifinal.samplers.searching.climbing import PRIOR_DRAWS
from tests.support.problems import DECAY, decay, scaled
from tests.support.running import assert_same_draws, interrupt_after

SETTINGS = RunSettings(chains=3, warmup=150, draws=200, seed=7)


@pytest.fixture(scope="module")
def plain() -> running.Draws:
    return run(decay(), SETTINGS)


def test_shapes_and_counts(plain: running.Draws) -> None:
    assert plain.theta.shape == (3, 200, 2)
    assert (plain.tally.solves <= 350 + PRIOR_DRAWS + 1).all()  # and the start once more
    assert plain.tally.sampled.tolist() == [200] * 3
    assert ((plain.acceptance > 0.05) & (plain.acceptance < 0.9)).all()
    assert not plain.interrupted


def test_chains_differ_and_seeds_differ(plain: running.Draws) -> None:
    assert not np.array_equal(plain.theta[0], plain.theta[1])
    other = run(decay(), RunSettings(chains=3, warmup=150, draws=200, seed=8))
    assert not np.array_equal(plain.theta, other.theta)


def test_a_chain_does_not_depend_on_how_many_there_are(plain: running.Draws) -> None:
    one = run(decay(), RunSettings(chains=1, warmup=150, draws=200, seed=7))
    np.testing.assert_array_equal(one.theta[0], plain.theta[0])


def test_threads_give_the_same_draws(plain: running.Draws) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert_same_draws(run(decay(), SETTINGS, executor=executor), plain)


def test_spawned_processes_give_the_same_draws(plain: running.Draws) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert_same_draws(run(decay(), SETTINGS, executor=executor), plain)


def test_dask_gives_the_same_draws(plain: running.Draws) -> None:
    distributed = pytest.importorskip("distributed", reason="the optional dependency 'cluster' is not installed")
    with distributed.Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as client:
        assert_same_draws(run(decay(), SETTINGS, executor=client), plain)


def test_the_length_of_segments_does_not_matter(plain: running.Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-5)
    assert_same_draws(run(decay(), SETTINGS), plain)


def test_thinning_keeps_every_so_many() -> None:
    long = run(decay(), RunSettings(chains=2, warmup=50, draws=60, seed=1))
    thin = run(decay(), RunSettings(chains=2, warmup=50, draws=20, thin=3, seed=1))
    np.testing.assert_array_equal(thin.theta, long.theta[:, 2::3])


@pytest.mark.parametrize("updates", [1, 2, 4])
def test_ctrl_c_keeps_what_was_drawn_and_a_second_run_goes_on(
    plain: running.Draws, tmp_path: Path, updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-2)
    file = tmp_path / "checkpoint.npz"
    part = run(decay(), SETTINGS, progress=interrupt_after(updates), checkpoint=file)
    assert part.interrupted
    kept = part.theta.shape[1]
    assert kept < 200
    np.testing.assert_array_equal(part.theta, plain.theta[:, :kept])
    whole = run(decay(), SETTINGS, checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.npz"
    run(decay(), SETTINGS, progress=interrupt_after(1), checkpoint=file)
    with pytest.raises(SamplingError, match="another model, data, priors, settings or version"):
        run(decay(), RunSettings(chains=3, warmup=150, draws=201, seed=7), checkpoint=file)
    other = Posterior(loads(DECAY.replace("1.9", "1.8")))
    with pytest.raises(SamplingError, match="another model"):
        run(other, SETTINGS, checkpoint=file)


@pytest.mark.parametrize("damage", [b"", b"not a zip file", None])
def test_a_damaged_checkpoint_is_an_error_that_says_what_to_do(tmp_path: Path, damage: bytes | None) -> None:
    file = tmp_path / "checkpoint.npz"
    run(decay(), SETTINGS, progress=interrupt_after(1), checkpoint=file)
    file.write_bytes(file.read_bytes()[:-200] if damage is None else damage)
    with pytest.raises(SamplingError, match="remove it"):
        run(decay(), SETTINGS, checkpoint=file)


def test_a_checkpoint_that_cannot_be_written_costs_no_draws(plain: running.Draws, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="cannot write the checkpoint"):
        found = run(decay(), SETTINGS, checkpoint=tmp_path / "file" / "checkpoint.npz")
    assert_same_draws(found, plain)


def test_settings_equal_in_value_are_the_same_run(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.npz"
    options = {"covariance": 0.123456789 * np.eye(2)}
    run(
        decay(),
        RunSettings(chains=2, draws=500, seed=np.int64(1), options=options),
        progress=interrupt_after(1),
        checkpoint=file,
    )
    same = RunSettings(chains=2, draws=500, seed=1, options={"covariance": (0.123456789 * np.eye(2)).tolist()})
    assert run(decay(), same, progress=interrupt_after(1), checkpoint=file).resumed_at is not None
    other = RunSettings(chains=2, draws=500, seed=1, options={"covariance": 0.1234567891 * np.eye(2)})
    with pytest.raises(SamplingError, match="another model"):
        run(decay(), other, checkpoint=file)


def test_acceptance_of_an_interrupted_thinned_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-3)
    part = run(decay(), RunSettings(chains=2, warmup=0, draws=100, thin=1000), progress=interrupt_after(3))
    assert part.interrupted
    assert ((part.acceptance >= 0) & (part.acceptance <= 1)).all()


KILLED = """
import os, signal, sys
from equifinal.samplers.running import run as running, under_way
from tests.support.problems import decay
under_way.CHECKPOINT_SECONDS = 0.0
under_way.SEGMENT_SECONDS = 0.01

def kill(update):
    if update.iteration > 2300:
        os.kill(os.getpid(), signal.SIGKILL)

settings = running.RunSettings(chains=3, warmup=2000, draws=4000, seed=3)
running.run(decay(), settings, checkpoint=sys.argv[1], progress=kill)
"""


def test_a_killed_run_ends_with_the_same_draws(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.npz"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(file)], env=environment)
    assert killed.returncode == -signal.SIGKILL
    settings = RunSettings(chains=3, warmup=2000, draws=4000, seed=3)
    resumed = run(decay(), settings, checkpoint=file)
    assert resumed.resumed_at is not None
    assert 0 < resumed.resumed_at < 6000
    assert_same_draws(resumed, run(decay(), settings))


def test_no_starting_point_is_an_error_with_advice() -> None:
    text = DECAY.replace('family = "normal", sd = 0.2', 'family = "lognormal", sdlog = 1').replace("y = x", "y = 0 - x")
    with pytest.raises(SamplingError, match=r"none of 1000 prior draws.*Check that"):
        run(Posterior(loads(text)), SETTINGS)


def test_an_executor_that_was_shut_down_is_reported() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(SamplingError, match="a worker failed"):
        run(decay(), SETTINGS, executor=executor)


class BrokenExecutor(ThreadPoolExecutor):
    def submit(self, *args, **kwargs):
        return super().submit(lambda: 1 / 0)


def test_a_worker_that_fails_is_reported(tmp_path: Path) -> None:
    with BrokenExecutor(1) as executor, pytest.raises(SamplingError, match="a worker failed: ZeroDivisionError"):
        run(decay(), SETTINGS, executor=executor, checkpoint=tmp_path / "c.npz")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sampler": "randomwalk"}, "did you mean 'random-walk'"),
        ({"chains": 0}, "'chains' must be a whole number of at least 1"),
        ({"draws": 2.5}, "'draws'"),
        ({"seed": -1}, "'seed'"),
        ({"seed": 2**70}, "'seed'"),
        ({"warmup": True}, "'warmup'"),
        ({"ess": 0}, "'ess' must be a whole number of at least 1"),
        ({"max_solves": 1.5}, "'max_solves'"),
        ({"max_time": 0}, "'max_time' must be a positive number of seconds, not 0"),
        ({"options": {"covarience": 1}}, "did you mean 'covariance'"),
    ],
)
def test_bad_settings(settings: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        RunSettings(**settings)


# --- until there are enough ---


GOING_ON = RunSettings(chains=2, warmup=100, seed=3, ess=300)


def fifth(theta: np.ndarray) -> Mixing:
    """Enough only at the fifth look of a run with `short_looks`."""
    return Mixing(np.inf if theta.shape[1] == 244 else 0.0, 1.0)


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "FIRST_LOOK", 400)
    monkeypatch.setattr(under_way, "MOST_KEPT", 450)
    monkeypatch.setattr(under_way, "SHOWN_FOR_WANTED", 1)


def test_a_run_goes_on_until_it_has_enough(short_looks: None) -> None:
    """Looks after 400, 500, 625, 781 and 976 iterations; from 400 on every second is kept, then every fourth."""
    seen: list[int] = []

    def measured(theta: np.ndarray) -> Mixing:
        seen.append(theta.shape[1])
        return fifth(theta)

    made = run(decay(), GOING_ON, measure=measured)
    assert seen == [400, 250, 312, 390, 244]
    assert (made.theta.shape[1], made.settings.thin, made.settings.draws) == (244, 4, 244)
    assert made.tally.sampled.tolist() == [976, 976]
    fixed = run(decay(), RunSettings(chains=2, warmup=100, seed=3, draws=244, thin=4))
    np.testing.assert_array_equal(made.theta, fixed.theta)
    assert not made.notes


def test_chains_that_disagree_do_not_have_enough(short_looks: None) -> None:
    seen: list[int] = []

    def measured(theta: np.ndarray) -> Mixing:
        seen.append(theta.shape[1])
        return Mixing(np.inf, 1.05 if len(seen) < 3 else 1.005)

    assert run(decay(), GOING_ON, measure=measured).tally.sampled[0] == 625


def test_a_budget_of_solves_ends_a_run(short_looks: None) -> None:
    settings = RunSettings(chains=2, warmup=100, seed=3, max_solves=2500)
    made = run(decay(), settings, measure=lambda theta: Mixing(12.0, 1.0))
    assert made.tally.solves.sum() <= 2500
    assert made.notes[-1].startswith("max_solves, 2500, would be spent before the next look: 12 effective draws of")


@pytest.mark.parametrize("experiments", [1, 2])
def test_a_budget_is_for_each_experiment(short_looks: None, monkeypatch: pytest.MonkeyPatch, experiments: int) -> None:
    """Unless it is given: each experiment takes solves of its own."""
    monkeypatch.setattr(under_way, "MOST_SOLVES", 2500)
    (experiment,) = decay().problem.experiments
    several = tuple(replace(experiment, name=f"e{k}") for k in range(experiments))
    posterior = Posterior(replace(decay().problem, experiments=several))
    made = run(posterior, RunSettings(chains=2, warmup=100, seed=3), measure=lambda theta: Mixing(12.0, 1.0))
    assert 0.7 * 2500 * experiments < made.tally.solves.sum() <= 2500 * experiments
    assert made.notes[-1].startswith(f"max_solves, {2500 * experiments}, would be spent")


def test_time_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first segment behind the warm-up, at the latest; and it is said."""
    settings = RunSettings(chains=2, warmup=10, seed=3, max_time=1e-9)
    made = run(decay(), settings, measure=fifth)
    assert made.theta.shape[1] >= 1
    assert made.notes[-1].startswith("max_time, 1e-09 s, is spent")
    assert not made.interrupted


def test_time_may_end_before_anything_is_drawn() -> None:
    posterior, fibre = scaled()
    with pytest.raises(SamplingError, match=r"before the preparation did \(screening .*\): nothing has been drawn"):
        run(posterior, RunSettings(sampler="collapsed", max_time=1e-9), fibre=fibre, measure=fifth)


def test_a_run_that_goes_on_can_be_resumed(short_looks: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = run(decay(), GOING_ON, measure=fifth)
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-6)
    file = tmp_path / "checkpoint.npz"
    for updates in (30, 300, 600):
        assert run(decay(), GOING_ON, measure=fifth, checkpoint=file, progress=interrupt_after(updates)).interrupted
    resumed = run(decay(), GOING_ON, measure=fifth, checkpoint=file)
    assert resumed.resumed_at > 500
    assert_same_draws(resumed, whole)


def test_a_run_that_has_ended_goes_on_if_more_is_asked_for(short_looks: None, tmp_path: Path) -> None:
    """More effective draws, more solves or more time: then the draws are those of a run that never ended."""
    whole = run(decay(), GOING_ON, measure=fifth)
    file = tmp_path / "checkpoint.npz"
    first = run(decay(), replace(GOING_ON, max_time=1e-9), measure=fifth, checkpoint=file)
    second = run(decay(), replace(GOING_ON, max_solves=1500), measure=fifth, checkpoint=file)
    third = run(decay(), replace(GOING_ON, ess=1), measure=lambda theta: Mixing(10.0, 1.0), checkpoint=file)
    assert first.theta.shape[1] < second.theta.shape[1] == third.theta.shape[1] < 900
    assert_same_draws(run(decay(), GOING_ON, measure=fifth, checkpoint=file), whole)


def test_an_interrupt_at_a_look_leaves_no_trace(
    short_looks: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wherever a look is interrupted, also just before it decides or just after."""
    whole = run(decay(), GOING_ON, measure=fifth)
    file = tmp_path / "checkpoint.npz"
    looked = under_way.UnderWay._has_enough

    def before(theta: np.ndarray) -> Mixing:
        if theta.shape[1] == 312:
            raise KeyboardInterrupt
        return fifth(theta)

    assert run(decay(), GOING_ON, measure=before, checkpoint=file).interrupted

    def after(self: under_way.UnderWay) -> bool:
        looked(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(under_way.UnderWay, "_has_enough", after)
    assert run(decay(), GOING_ON, measure=fifth, checkpoint=file).interrupted
    monkeypatch.setattr(under_way.UnderWay, "_has_enough", looked)
    assert_same_draws(run(decay(), GOING_ON, measure=fifth, checkpoint=file), whole)


def test_updates_tell_how_much_is_to_be_done(short_looks: None) -> None:
    """After a look with a fifth of the draws wanted, the run will end at five times the iterations of that look."""
    seen: list[Update] = []
    measured = iter([Mixing(60.0, 1.0), Mixing(300.0, 1.0)])
    run(decay(), GOING_ON, measure=lambda theta: next(measured), progress=seen.append)
    at_first = [update for update in seen if update.mixing is None]
    assert {(update.end, update.effective) for update in at_first} == {(500, None)}
    last = seen[-1]
    assert (last.iteration, last.goal, last.end) == (600, 600, 100 + 400 * 300 // 60)
    assert (last.effective, last.wanted) == (pytest.approx(60 * 500 / 400), 300)


def test_a_run_must_know_when_to_end() -> None:
    with pytest.raises(SamplingError, match="a number of draws, or a measure"):
        run(decay(), GOING_ON)
