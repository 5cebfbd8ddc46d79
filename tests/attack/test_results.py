"""Files of results that somebody has edited: each is read as it is or refused, and nothing else happens."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from equifinal.cli import app
from equifinal.errors import DataError, EquifinalError
from equifinal.report.compare_page import comparison_page
from equifinal.results.diagnostics import concerns, summarise
from equifinal.results.store import identifiability_of, load, problem_of, save
from equifinal.studies.comparison import Comparison
from equifinal.studies.fit import Fit
from equifinal.studies.sample import sample
from equifinal.words.diagnostics import advise, sampler_notes
from equifinal.words.next_step import next_step
from tests.support.hostile_results import edited, edits
from tests.support.problems import quick_problem

SOME = 71  # every so many of the edits in the default run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = sample(quick_problem(), chains=2, warmup=100, draws=100, seed=4, progress=False)
    return save(made, tmp_path_factory.mktemp("hostile") / "results.nc")


def _read(path: Path) -> bool:
    """Read, and say whether that was possible, all that is told of a run without solving anything."""
    try:
        data = load(path)
        problem_of(data)
        identifiability_of(data)
        wrong = concerns(data, summarise(data))
    except DataError as error:
        assert len(str(error)) < 500
        return False
    next_step(data, wrong)
    sampler_notes(data)
    advise(data)
    return True


def _all(results: Path, every: int, tmp_path: Path) -> list[Path]:
    """Files that were edited and are read nonetheless."""
    tried, fine = 0, []
    for number, (what, edit) in enumerate(edits(results)):
        if number % every:
            continue
        target = edited(results, tmp_path / f"{number}.nc", edit)
        tried += 1
        try:
            read = _read(target)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        if read:
            fine.append(target)
        else:
            target.unlink()
    assert tried > 5
    assert len(fine) < tried
    return fine


def test_edited_results_are_read_or_refused(results: Path, tmp_path: Path) -> None:
    _all(results, SOME, tmp_path)


@pytest.mark.slow
def test_whatever_is_read_of_edited_results_is_shown(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """In predictions, figures, the report and a comparison: no internal error, with every edit."""
    wrong = []
    for path in _all(results, 1, tmp_path):
        for command in (["predict", str(path), "--plot", str(tmp_path / "a.png")], ["report", str(path)]):
            monkeypatch.setattr(sys, "argv", ["equifinal", *command])
            with pytest.raises(SystemExit) as caught:
                app.main()
            told = capsys.readouterr().err
            if caught.value.code not in (0, None, 2):
                wrong.append((path.stem, told))
        try:
            _compared(results, path)
        except Exception as error:
            wrong.append((path.stem, repr(error)))
        plt.close("all")
        path.unlink()
    assert not wrong


def _compared(results: Path, other: Path) -> None:
    """Show two runs side by side, as ``compare`` does."""
    fits = {}
    for name, path in {"one": results, "other": other}.items():
        data = load(path)
        rows = summarise(data)
        fits[name] = Fit(data, rows, concerns(data, rows), path)
    try:
        comparison = Comparison(problem_of(fits["one"].data), fits, {})
        comparison.to_json()
        comparison_page(comparison)
    except EquifinalError as error:
        assert len(str(error)) < 500


def test_foreign_results_have_no_problem(results: Path, tmp_path: Path) -> None:
    data = load(results)
    del data.constant_data
    with pytest.raises(EquifinalError, match="do not contain their problem"):
        problem_of(data)
