"""Many problems side by side: what is done is kept, what fails is told, and a kill loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError, SamplingError
from equifinal.formats.toml import loads
from equifinal.identifiability.freedoms import Scaling
from equifinal.report.index_page import index_page, write_index
from equifinal.results import store
from equifinal.results.diagnostics import Concern
from equifinal.studies import many
from equifinal.studies.many import Given, Outcome, fit_many, folder_names
from equifinal.words.many import headline, outcome_line
from tests.support.problems import DECAY

SETTINGS = {"sampler": "random-walk", "draws": 60, "warmup": 60, "chains": 2, "seed": 3}


def given(source: str, first: str = "1.9") -> Given:
    return Given(source, loads(DECAY.replace("1.9", first)))


class Here(Executor):
    """Does what it is given at once; the work on one problem dies, if that is wanted."""

    def __init__(self, dies: str = ""):
        self.dies = dies

    def submit(self, work, /, *args, **kwargs):
        future: Future = Future()
        if args[0].given.source == self.dies:
            future.set_exception(SamplingError("4 processes died over the same work"))
        else:
            future.set_result(work(*args, **kwargs))
        return future


# --- folders ---


def test_files_of_the_same_name_get_folders_of_their_own() -> None:
    assert folder_names(["a.toml", "si", "x/b.yaml", "x/model.v2.toml"]) == {
        "a.toml": "a",
        "si": "si",
        "x/b.yaml": "b",
        "x/model.v2.toml": "model.v2",
    }
    found = folder_names(["x/problem.yaml", "y/Problem.yaml", "z.toml"])
    assert list(found.values()) == ["x-problem", "y-Problem", "z"]


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["a.toml", "b.toml", "a.toml"], "a.toml is given twice"),
        (["x/a.toml", "x/a.yaml"], "x/a.toml and x/a.yaml would go to the same folder, x-a"),
        (["x/a.toml", "y/a.toml", "x-a.toml"], "would go to the same folder"),
        (["index.html.toml", "a.toml"], "cannot be called index.html"),
        (["..", "a.toml"], "cannot be called .."),
    ],
)
def test_folders_that_would_collide_are_refused(sources: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        folder_names(sources)


# --- fits ---


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    """A file that cannot be read, a process that dies, and results that are none of ours."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "results.nc").write_text("not netCDF")
    problems = [given("a.toml"), Given("b.toml", DataError("b.toml: no model")), given("c.toml")]
    outcomes = fit_many(problems, SETTINGS, tmp_path, Here(dies="c.toml"))
    assert [outcome.state for outcome in outcomes] == ["failed"] * 3
    assert "cannot read results from" in outcomes[0].failure
    assert [outcome.failure for outcome in outcomes[1:]] == ["b.toml: no model", "4 processes died over the same work"]


@pytest.mark.parametrize("there", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_fails_does_not_lose_the_others_and_what_is_done_is_kept(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [given("x/a.toml"), Given("b.toml", DataError("b.toml: no model")), given("y/a.toml", "1.8"), given("c")]
    seen: list[int] = []
    run = {"folder": tmp_path, "there": there, "analysis": False, "told": lambda outcomes: seen.append(len(outcomes))}
    outcomes = fit_many(problems, SETTINGS, executor=Here(dies="c"), **run)  # type: ignore[arg-type]
    assert [outcome.name for outcome in outcomes] == ["x-a", "b", "y-a", "c"]
    assert [outcome.failure for outcome in outcomes] == [
        "",
        "b.toml: no model",
        "",
        "4 processes died over the same work",
    ]
    assert seen == [1, 2, 3, 4] if not there else seen[-1] == 4
    assert not (tmp_path / "c").exists()
    first, second = (store.load(tmp_path / name) for name in ("x-a", "y-a"))
    assert first.attrs["folder"] == str(tmp_path / "x-a")  # wherever it was made
    assert first.attrs["cpu_seconds"] > 0
    assert not np.array_equal(first.posterior["k"], second.posterior["k"])
    drawn = first.posterior["k"].values
    first.close()
    second.close()

    fitted = many.fit
    monkeypatch.setattr(many, "fit", lambda problem, *args, **kwargs: _only_c(fitted, problem, args, kwargs))
    again = fit_many(problems, SETTINGS, executor=Here(), **run)  # type: ignore[arg-type]
    assert [bool(outcome.failure) for outcome in again] == [False, True, False, False]
    assert replace(again[0], said=()) == replace(outcomes[0], said=())
    other = fit_many(problems, SETTINGS | {"seed": 4}, executor=Here(), **run)  # type: ignore[arg-type]
    refused = "holds results of another problem, or of other settings"
    assert [refused in outcome.failure for outcome in other] == [True, False, True, True]
    with closing(store.load(tmp_path / "x-a")) as kept:
        np.testing.assert_array_equal(kept.posterior["k"].values, drawn)


def _only_c(fit, problem, args, kwargs):
    assert kwargs["source"] == "c", "what was done is done again"
    return fit(problem, *args, **kwargs)


# --- the page ---

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"


def test_the_index_escapes_what_users_wrote(tmp_path: Path) -> None:
    scaled = Scaling({HOSTILE: 1, "b": -1}, "q")
    outcomes = [
        Outcome(HOSTILE, HOSTILE, failure=HOSTILE),
        Outcome("a/../b", "s", sampler=HOSTILE, ess=812.4, cpu_seconds=3.21, freedoms=(scaled,), report=True),
        Outcome("javascript:alert(1)", "s", ess=5.0, report=True, resumed=True, cpu_seconds=123.4),
        Outcome("d", "s", concerns=(Concern("one chain", serious=True),), freedoms=()),
    ]
    page = write_index(outcomes, 5, tmp_path).read_text()
    assert page == index_page(outcomes, 5)
    assert "<img" not in page
    assert "<script" not in page
    assert "{{7*7}}" in page
    assert 'href="./javascript%3Aalert%281%29/report.html"' in page
    assert "4 of 5 problems are done: 2 sound, 1 do not use, 1 failed." in page
    for words in ("812", "3.2", "over 123", "do not use", "not analysed", "Only 1 chain"):
        assert words in page, words


def test_lines_and_headline() -> None:
    good = Outcome("a", "a.toml", sampler="collapsed", ess=1234.0, cpu_seconds=9.87)
    assert outcome_line(good) == "a: sound, collapsed, at least 1,234 effective draws, 9.9 CPU seconds"
    assert outcome_line(Outcome("b", "b", failure="no")) == "b: failed: no"
    assert headline([], 2) == "0 of 2 problems are done."
    assert headline([good, good], 2) == "2 problems: 2 sound."


# --- the command, in processes ---


@pytest.mark.slow
def test_the_command_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Killed in the midst of two fits, the same command ends with the draws of one that was not; a bad file is told."""
    (tmp_path / "a.toml").write_text(DECAY)
    (tmp_path / "b.toml").write_text(DECAY.replace("1.9", "1.8"))
    (tmp_path / "bad.toml").write_text("[model]\n")
    arguments = ["--sampler", "random-walk", "--draws", "60000", "--thin", "4", "--warmup", "500", "--no-report", "-q"]
    command = [sys.executable, "-m", "equifinal", "fit", "a.toml", "bad.toml", "b.toml", *arguments, "--out"]
    running = subprocess.Popen([*command, "killed"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    from tests.support.clusters import until

    until(lambda: (tmp_path / "killed" / "a" / "checkpoint.npz").exists() or running.poll() is not None)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    until(lambda: not _locked(tmp_path / "killed" / "a"))  # its processes notice, and end
    for folder in ("killed", "whole"):
        done = subprocess.run([*command, folder], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert "bad: failed: bad.toml" in done.stdout
    for name in ("a", "b"):
        folders = (tmp_path / "killed" / name, tmp_path / "whole" / name)
        with closing(store.load(folders[0])) as found, closing(store.load(folders[1])) as expected:
            np.testing.assert_array_equal(found.posterior["k"].values, expected.posterior["k"].values)
    with closing(store.load(tmp_path / "killed" / "a")) as found:
        assert int(found.attrs["resumed_at"]) >= 0


def _locked(folder: Path) -> bool:
    from equifinal.studies.folder import _is_free

    return not _is_free(folder)
