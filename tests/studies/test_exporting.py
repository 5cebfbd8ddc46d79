"""Exports of a finished run: the most probable draw, the combinations, and the identifiable model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.identifiability.analysis import analyse
from equifinal.prediction.simulate import simulate
from equifinal.results.store import save, store_identifiability
from equifinal.studies.exporting import exported, most_probable
from equifinal.studies.sample import sample
from tests.support.command import run as command
from tests.support.problems import FINER
from tests.support.runs import problem_named, run

TIMES = [0.5, 2.0, 5.0]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return save(run("si"), tmp_path / "results.nc")


def test_the_most_probable_draw_is_the_nominal_one(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("libsbml")
    assert command(monkeypatch, "export", results, "--to", "petab", "--out", tmp_path / "out") == 0
    nominal = load(tmp_path / "out" / "problem.yaml").nominal
    density = run("si").sample_stats["lp"].values
    best = np.unravel_index(density.argmax(), density.shape)
    assert nominal == pytest.approx({name: run("si").posterior[name].values[best] for name in nominal}, rel=1e-12)


def test_the_identifiable_model_of_a_run_has_the_same_course(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("libsbml")
    out = tmp_path / "model.xml"
    assert command(monkeypatch, "export", results, "--to", "sbml", "--reduced", "--out", out) == 0
    problem, back = problem_named("si"), load(out)
    values = most_probable(run("si"), problem)
    (mine,), (its,) = simulate(problem, values, times=TIMES), simulate(back, back.nominal, times=TIMES)
    for x in ("S", "I"):  # SBML does not say what is observed
        np.testing.assert_allclose(its.states[x], mine.states[x], rtol=1e-4)
    assert {"c2", "c3"} <= {*back.parameters}
    assert not {"beta", "I0"} & {*back.parameters}


def test_a_document_of_a_run_lists_the_combinations(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for extra in ([], ["--reduced"]):
        out = tmp_path / f"problem{len(extra)}.tex"
        assert command(monkeypatch, "export", results, "--to", "latex", "--out", out, *extra) == 0
        text = out.read_text()
        assert r"\section*{Identifiable combinations}" in text
        assert r"\frac{\beta}{\rho}" in text
        assert ("The same model in identifiable combinations" in text) == bool(extra)


def test_what_has_no_smaller_model_is_said() -> None:
    problem = problem_named("decay")
    values = {name: float(prior.quantile(0.5)) for name, prior in problem.priors.items()}
    with pytest.raises(DataError, match="the model is its own identifiable model"):
        exported(problem, values, "latex", reduced=True)
    with pytest.raises(DataError, match="stan needs priors, which combinations do not have"):
        exported(problem, values, "stan", reduced=True)
    with pytest.raises(DataError, match="no value is known for"):
        exported(problem, {}, "pymc")


def test_finer_combinations_are_not_called_identifiable() -> None:
    problem = loads(FINER)
    with pytest.raises(DataError, match="finer than what data determine"):
        exported(problem, {"la": 0.0, "V": 1.0}, "latex", reduced=True)
    data = sample(problem, sampler="random-walk", draws=50, warmup=100, progress=False)
    store_identifiability(data, analyse([problem.model]))
    assert (
        "Identifiable combinations" not in exported(problem, {"la": 0.0, "V": 1.0}, "latex", data=data)["problem.tex"]
    )
