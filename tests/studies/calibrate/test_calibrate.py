"""Calibration end to end: what it finds right, what it finds wrong, interruptions, executors, and bad input."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import equifinal
from equifinal.errors import DataError, InterruptedRunError, SamplingError
from equifinal.formats.toml import loads
from equifinal.language.model import Model
from equifinal.posterior.posterior import Posterior
from equifinal.prediction import fresh_data
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem
from equifinal.report.calibration import calibrate_to
from equifinal.studies.calibrate import replicates as calibrating
from equifinal.studies.calibrate.findings import Calibration
from equifinal.studies.calibrate.log import ReplicateLog
from equifinal.studies.calibrate.replicates import calibrate
from equifinal.words.calibration import verdict_sentence, warning_sentences
from tests.support.marks import slow_but
from tests.support.problems import DECAY, EXPERIMENTS, quick_problem

QUICK = {"replicates": 6, "chains": 2, "draws": 60, "ranked": 19, "seed": 3, "progress": False}


def quick(problem: Problem | None = None, **settings) -> Calibration:
    return calibrate(problem or quick_problem(), **(QUICK | settings))


@pytest.fixture(scope="module")
def plain() -> Calibration:
    return quick()


def test_everything_is_ranked(plain: Calibration) -> None:
    assert plain.names == ("k", "a", "half_life", "log likelihood")
    assert plain.kinds == ("parameter", "parameter", "quantity", "log likelihood")
    assert plain.ranks.shape == (6, 4)
    assert ((plain.ranks >= 0) & (plain.ranks <= 19)).all()
    # half the life, twice the rate
    np.testing.assert_array_equal(plain.ranks_of("half_life"), 19 - plain.ranks_of("k"))
    assert equifinal.calibrate is calibrate


def test_combinations_are_ranked() -> None:
    found = quick(loads(DECAY.replace("y = x", "y = s*x").replace("[noise]", SCALE), name="scaled"), replicates=2)
    assert found.names == ("k", "a", "s", "half_life", "s*a", "log likelihood")
    assert found.kinds[4] == "combination"


SCALE = 's = { prior = "lognormal", meanlog = 0, sdlog = 1 }\n[noise]'


@pytest.mark.parametrize("kind", slow_but("threads", of=["threads", "processes"]))
def test_executors_give_the_same_ranks(plain: Calibration, kind: str) -> None:
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool as executor:
        np.testing.assert_array_equal(quick(executor=executor).ranks, plain.ranks)


def test_the_data_do_not_matter(plain: Calibration) -> None:
    other = loads(DECAY.replace("1.9, 1.6, 1.1", "7.0, 3.0, 2.0"), name="decay")
    np.testing.assert_array_equal(quick(other, replicates=2).ranks, plain.ranks[:2])


def test_a_calibration_is_gone_on_with(plain: Calibration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, made = tmp_path / "replicates.jsonl", []
    whole = calibrating.replicate

    def until_the_third(parcel, number):
        made.append(number)
        if len(made) == 3:
            raise KeyboardInterrupt
        return whole(parcel, number)

    monkeypatch.setattr(calibrating, "replicate", until_the_third)
    with pytest.raises(InterruptedRunError, match="after 2 of 6"):
        quick(record=record)
    with open(record, "a") as file:
        file.write('{"number": 2, "ranks": {"k"')  # killed while writing
    again = quick(record=record)
    assert made == [0, 1, 2, 2, 3, 4, 5]
    np.testing.assert_array_equal(again.ranks, plain.ranks)
    np.testing.assert_array_equal(quick(record=record).ranks, plain.ranks)
    assert len(made) == 7
    assert len(quick(record=record, replicates=4).ranks) == 4
    assert len(quick(record=record, replicates=7).ranks) == 7
    for line in record.read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 4}, "seed"),
        ({"draws": 70}, "draws"),
        ({"sampler": "random-walk"}, "sampler"),
        ({"ranked": 9}, "ranked"),
    ],
)
def test_a_record_of_other_settings_is_refused(change, word: str, tmp_path: Path) -> None:
    record = tmp_path / "replicates.jsonl"
    quick(record=record, replicates=1)
    with pytest.raises(DataError, match=f"another.* {word}.*`record`"):
        quick(record=record, **change)


def test_a_record_of_another_problem_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "replicates.jsonl"
    quick(record=record, replicates=1)
    with pytest.raises(DataError, match="another problem"):
        quick(loads(DECAY.replace("upper = 2", "upper = 3"), name="decay"), record=record)
    record.write_text("nonsense\n")
    with pytest.raises(DataError, match="not the record of a calibration"):
        quick(record=record)


def test_failures_are_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = calibrating.sample, []

    def fails_once(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise SamplingError("no start was found")
        return whole(*arguments, **options)

    monkeypatch.setattr(calibrating, "sample", fails_once)
    found = quick(replicates=4)
    assert found.failures == ((1, "SamplingError: no start was found"),)
    assert len(found.ranks) == 3
    assert not found.calibrated
    assert "1 of 4 replicates failed" in verdict_sentence(found)
    assert any("replicate 1 failed: SamplingError" in line for line in warning_sentences(found))
    assert found.to_json()["failed"] == 1


def test_if_all_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating, "from_prior", lambda *_: 1 / 0)
    found = quick(replicates=2)
    assert verdict_sentence(found) == "nothing can be said: all 2 replicates failed"
    json.dumps(found.to_json())


def test_short_runs_are_made_longer() -> None:
    found = quick(replicates=2, sampler="random-walk", warmup=500, ranked=99)
    assert {entry["thin"] for entry in found.entries} == {8}
    assert any("fewer than 99 effective draws" in line for line in warning_sentences(found))


def test_where_the_model_cannot_be_solved_truths_are_passed_over() -> None:
    """x' = x^2 explodes before time 1 for a > 1: the prior is restricted to a < 1 in fits and in truths alike."""
    model = Model.parse("x' = x^2\nx(0) = a", outputs=["x"])
    seen = Observations("x", [0.5, 1.0], [1.0, 1.0], Noise("normal", sd=0.3))
    problem = Problem((Experiment(model, (seen,)),), {"a": Prior("uniform", lower=0.0, upper=2.0)}, name="explosive")
    posterior = Posterior(problem)
    made = [fresh_data.from_prior(posterior, np.random.default_rng(seed)) for seed in range(40)]
    assert max(m.theta[0] for m in made) < 1
    assert sum(m.passed_over for m in made) > 10


# --- simulated data ---


def test_replicates_at_one_time_scatter_apart() -> None:
    model = Model.parse("x' = -k*x\nx(0) = 1", outputs=["x"])
    seen = Observations("x", [1.0, 1.0, 2.0], [1.0, 1.0, 1.0], Noise("normal", sd=0.1))
    posterior = Posterior(Problem((Experiment(model, (seen,)),), {"k": Prior("uniform", lower=0.0, upper=1.0)}))
    ((values,),) = fresh_data.observations_at(posterior, np.array([[0.5]]), np.random.default_rng(1))
    assert values[0] != values[1]


def test_increments_count_since_their_own_previous_row() -> None:
    """A missing row in between still ends an increment; another output's times do not matter."""
    model = Model.parse("x' = k\nx(0) = 0\nz = 2*x", outputs=["x", "z"])
    noise = Noise("normal", sd=1e-9)
    seen = Observations("x", [1.0, 2.0, 4.0], [1.0, np.nan, 1.0], noise, increment=True)
    other = Observations("z", [0.5, 3.5], [1.0, 1.0], noise)
    problem = Problem((Experiment(model, (seen, other)),), {"k": Prior("uniform", lower=0.0, upper=9.0)})
    values = fresh_data.observations_at(Posterior(problem), np.array([[3.0]]), np.random.default_rng(1))
    np.testing.assert_allclose(values[0][0], [3.0, 6.0], atol=1e-5)
    np.testing.assert_allclose(values[0][1], [3.0, 21.0], atol=1e-5)
    fresh = fresh_data.with_values(problem, values).experiments[0].observations[0]
    np.testing.assert_array_equal(fresh.previous, seen.previous)


def test_noise_parameters_and_several_experiments() -> None:
    text = DECAY[: DECAY.index("[data]")].replace("sd = 0.2", 'sd = "s"') + EXPERIMENTS
    problem = loads(text.replace("[noise]", 's = { prior = "exponential", rate = 1 }\n[noise]'), name="several")
    posterior, theta = Posterior(problem), np.array([[0.5, 2.0, 3.0]])
    drawn = [fresh_data.observations_at(posterior, theta, np.random.default_rng(i)) for i in range(400)]
    first = np.array([values[0][0] for values in drawn])
    np.testing.assert_allclose(first.std(axis=0), 3.0, rtol=0.2)
    assert quick(problem, replicates=2).names[:3] == ("k", "a", "s")


# --- what it is for ---


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["auto", "random-walk"])
def test_the_samplers_are_calibrated(sampler: str) -> None:
    """Two tests, all quantities together at level 1e-5 each: a false alarm once in 50,000 seeds."""
    found = quick(replicates=80, draws=200, sampler=sampler, warmup=None if sampler == "auto" else 1000)
    assert not found.failures
    assert min(found.adjusted.values()) > 1e-5, verdict_sentence(found)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["noise", "prior"])
def test_an_error_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data with twice the noise that the fit believes in; truths from another prior than the fit's."""
    problem = quick_problem()
    if wrong == "noise":
        whole = Noise.simulate
        monkeypatch.setattr(Noise, "simulate", lambda self, mean, *rest: mean + 2 * (whole(self, mean, *rest) - mean))
    else:  # where the data say little
        problem = loads(DECAY.replace("sd = 0.2", "sd = 3"), name="decay")
        elsewhere = Posterior(replace(problem, priors=problem.priors | {"k": Prior("uniform", lower=0.1, upper=1.0)}))
        monkeypatch.setattr(Posterior, "sample_prior", lambda self, *rest: WHOLE(elsewhere, *rest))
    found = quick(problem, replicates=70, draws=100)
    assert min(found.adjusted.values()) < 1e-6
    assert "NOT calibrated" in verdict_sentence(found)
    assert not found.calibrated


WHOLE = Posterior.sample_prior


# --- bad input ---


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replicates": 0}, "'replicates' must be a whole number from 1"),
        ({"replicates": 2.5}, "'replicates' must be a whole number from 1"),
        ({"ranked": 1}, "'ranked' must be a whole number from 9"),
        ({"draws": 5, "chains": 1}, "fewer than the 19"),
        ({"sampler": "gibbs"}, "unknown sampler"),
        ({"seed": -1}, "'seed'"),
        ({"options": {"aux": 0}}, "'aux'"),
    ],
)
def test_bad_settings_are_refused(settings, words: str) -> None:
    with pytest.raises(DataError, match=words):
        quick(**settings)


def test_what_is_missing_is_named() -> None:
    bare = loads(DECAY[: DECAY.index("[data]")], name="decay")
    with pytest.raises(DataError, match=r"(?s)before a calibration.* data for output 'y'.*times are needed"):
        quick(bare)
    with pytest.raises(DataError, match="a prior for 'k'"):
        quick(replace(quick_problem(), priors={"a": quick_problem().priors["a"]}))


def test_replicates_are_recorded_when_they_end_whatever_comes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a kill costs only those under way."""
    record, whole, others_done = tmp_path / "replicates.jsonl", calibrating.replicate, threading.Event()

    def slow_first(parcel, number):
        if number == 0:
            assert others_done.wait(60)
        return whole(parcel, number)

    def seen(self, entry):
        append(self, entry)
        if len(record.read_text().splitlines()) == 3:  # with the header
            others_done.set()

    append = ReplicateLog.append
    monkeypatch.setattr(calibrating, "replicate", slow_first)
    monkeypatch.setattr(ReplicateLog, "append", seen)
    with ThreadPoolExecutor(2) as executor:
        quick(record=record, replicates=3, executor=executor)
    assert [json.loads(line)["number"] for line in record.read_text().splitlines()[1:]] == [1, 2, 0]


def test_findings_without_a_number_are_null(
    plain: Calibration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    undefined = replace(plain, ranks=np.full_like(plain.ranks, -1))
    monkeypatch.setattr("equifinal.report.calibration.calibrate", lambda *_, **__: undefined)
    calibrate_to(tmp_path, quick_problem())

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    found = json.loads((tmp_path / "calibration.json").read_text(), parse_constant=refuse)
    assert found["quantities"]["k"]["p"] is None
