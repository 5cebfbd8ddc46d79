"""Fits that end between their last draw and their last file: the same call finishes them, with the same draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.samplers.running import under_way
from equifinal.studies.fit import Fit, fit
from equifinal.studies.folder import CHECKPOINT, RESULTS
from tests.support.problems import quick_problem

SETTINGS = {"sampler": "random-walk", "chains": 2, "warmup": 50, "draws": 200, "seed": 3}


def fitted(folder: Path, **options) -> Fit:
    return fit(quick_problem(), SETTINGS, folder=folder, progress=False, analysis=False, **options)


@pytest.fixture(autouse=True)
def many_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-3)
    monkeypatch.setattr(under_way, "CHECKPOINT_SECONDS", 0.0)


@pytest.fixture
def alone(tmp_path: Path) -> Fit:
    return fitted(tmp_path / "alone")


def assert_same(one: Fit, other: Fit) -> None:
    for name in ("k", "a"):
        np.testing.assert_array_equal(one.data.posterior[name], other.data.posterior[name])


def test_an_end_between_results_and_report(alone: Fit, tmp_path: Path) -> None:
    def killed(done: Fit) -> Fit:
        raise SystemExit(137)

    with pytest.raises(SystemExit):
        fitted(tmp_path / "out", finish=killed)
    assert (tmp_path / "out" / RESULTS).exists()
    finished = []
    again = fitted(tmp_path / "out", finish=lambda done: finished.append(done) or done)
    assert len(finished) == 1
    assert_same(again, alone)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [RESULTS]


def test_a_disk_that_fills_up_at_the_end(alone: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=50_000))
        with pytest.raises(DataError, match=r"nearly full.*the draws are kept in .*checkpoint.npz: free some space"):
            fitted(tmp_path / "out")
    assert (tmp_path / "out" / CHECKPOINT).exists()
    assert_same(fitted(tmp_path / "out"), alone)


@pytest.mark.slow
def test_kills_at_named_moments() -> None:
    command = [sys.executable, "-m", "tests.support.killing", "--kills", "9", "auto", "random-walk"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.count("wrong: 0") == 2
    assert int(done.stdout.split()[-4]) > 12
