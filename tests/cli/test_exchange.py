"""``import`` and ``export`` as a user calls them, and problems of other formats with every command that is quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.petab import FILES_1, FILES_2, MODEL, write


@pytest.mark.parametrize("files", [FILES_1, FILES_2], ids=["version 1", "version 2"])
@pytest.mark.parametrize("kind", ["toml", "json"])
def test_import_gives_the_same_likelihood(
    files: dict[str, str],
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = write(tmp_path / "petab", files), tmp_path / f"own.{kind}"
    assert run(monkeypatch, "import", path, "--out", out) == 0
    found = []
    for file in (path, out):
        capsys.readouterr()
        assert run(monkeypatch, "check", file, "--json") == 0
        found.append(json.loads(capsys.readouterr().out)["nominal"])
    assert found[0] == found[1]
    assert {"log_likelihood", "log_prior", "chi2"} <= set(found[0])
    assert found[0]["chi2"] > 0


def test_import_replaces_nothing_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(tmp_path / "petab", FILES_1), tmp_path / "own.toml"
    out.write_text("precious")
    assert run(monkeypatch, "import", path, "--out", out) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run(monkeypatch, "import", path, "--out", out, "--overwrite") == 0


def test_a_model_alone_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.xml"
    path.write_text(MODEL)
    assert run(monkeypatch, "simulate", path, "--times", "0,1") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert {"A", "B"} <= {*header.split(",")}
    assert len(rows) == 2
    assert run(monkeypatch, "fit", path, "--out", tmp_path / "run") == 2
    assert "data" in capsys.readouterr().err


@pytest.mark.parametrize("tool", ["petab", "sbml", "latex", "stan", "pymc"])
def test_export_of_what_was_imported(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = write(tmp_path / "petab", FILES_1), tmp_path / ("out" if tool == "petab" else f"out.{tool}")
    assert run(monkeypatch, "export", path, "--to", tool, "--out", out) == 0
    written = [*out.iterdir()] if out.is_dir() else [out]
    assert all(file.stat().st_size for file in written)
    assert run(monkeypatch, "export", path, "--to", tool, "--out", out) == 2  # nothing is replaced unasked
    assert run(monkeypatch, "export", path, "--to", tool, "--out", out, "--overwrite") == 0


def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "petab", FILES_1), tmp_path / "back"
    assert run(monkeypatch, "export", path, "--to", "petab", "--out", out) == 0
    (yaml,) = out.glob("*.yaml")
    found = []
    for file in (path, yaml):
        capsys.readouterr()
        assert run(monkeypatch, "check", file, "--json") == 0
        found.append(json.loads(capsys.readouterr().out)["nominal"])
    for name in ("log_likelihood", "log_prior", "chi2"):
        assert found[1][name] == pytest.approx(found[0][name], abs=1e-9)


def test_an_exported_script_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs NumPy and SciPy, and not this package."""
    path, out = write(tmp_path / "petab", FILES_1), tmp_path / "alone.py"
    assert run(monkeypatch, "export", path, "--to", "pymc", "--out", out) == 0
    call = "import sys, alone; print(alone.log_likelihood([0.8, 0.6])); assert 'equifinal' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=True
    )
    assert float(done.stdout) < 0


@pytest.mark.parametrize(
    ("example", "tool", "words"),
    [
        ("signalling", "stan", "experiment 'strong' has a steady state before its start"),
        ("doses", "petab", "'gut' changes at time 12, after an observation"),
        ("treatment", "petab", "censored"),
        ("influenza", "petab", "negative-binomial"),
        ("si", "word", "petab"),
    ],
)
def test_what_a_format_cannot_say_is_refused_by_name(
    example: str,
    tool: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "export", example, "--to", tool, "--out", tmp_path / "out") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
