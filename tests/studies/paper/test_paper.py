"""The case studies: their references against exact draws and each other, the comparison and its files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.examples import example_path
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.report.paper import figures, folder
from equifinal.report.paper.folder import study
from equifinal.samplers.protocol import NoPlan, Task
from equifinal.samplers.random_walk import sampler as random_walk
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.running.segment import Work, advance
from equifinal.samplers.running.sent_once import SentOnce
from equifinal.studies.paper import hiv_reference, runs, si_reference
from equifinal.studies.paper.cases import METHODS, case_study
from equifinal.studies.paper.marginal import Marginal
from tests.support.exact import si_draw


def test_marginals_of_si_agree_with_exact_draws() -> None:
    """Seven Kolmogorov distances of 20,000 draws below 2.6/sqrt(n): a false alarm once in 100,000 seeds."""
    theta = si_draw(np.random.default_rng(1), 20_000)
    case = case_study("si")
    for name in case.quantities:
        exact = case.marginal(name, False)
        assert exact.distance(case.column(name, theta)) < 2.6 / np.sqrt(20_000), name
        assert np.trapezoid(exact.density, exact.values) == pytest.approx(1, abs=1e-3)
        assert exact.mean == pytest.approx(case.column(name, theta).mean(), rel=0.02)


def test_marginals_of_hiv_have_the_right_law_along_fibres() -> None:
    case = case_study("hiv")
    found = case.marginal("lambda", True)
    assert np.trapezoid(found.density, found.values) == pytest.approx(1, abs=2e-3)
    m = case.marginal("lambda*N", True).mean
    low, high = hiv_reference.interval(np.array([m]))
    levels = np.array([5.0, 10.0, 30.0])
    expected = np.log(levels / low) / np.log(high / low)  # a density proportional to 1/lambda
    np.testing.assert_allclose(found.cdf(levels), expected, atol=6 * found.error)


def test_a_distance_of_distributions() -> None:
    line = np.linspace(0, 1, 101)
    flat = Marginal(line, line, np.ones(101))
    assert flat.distance(np.linspace(0, 1, 10_001)) < 1e-3
    assert flat.distance(np.full(10, 0.5)) == pytest.approx(0.5, abs=0.01)
    assert flat.mean == pytest.approx(0.5)


def test_the_truth_and_the_names_are_those_of_the_examples() -> None:
    for name in ("si", "hiv"):
        case = case_study(name)
        problem = load(example_path(name))
        assert case.names == problem.parameters
        truth = np.array([case.truth])
        assert np.isfinite(Posterior(problem).log_prior(truth)).all()
        for text in case.combinations:
            assert np.isfinite(case.column(text, truth)).all()
        assert set(case.literal) == set(METHODS)
    with pytest.raises(DataError, match="there is no case study 'hvi'; did you mean 'hiv'"):
        case_study("hvi")


def test_a_run_from_a_given_start_is_the_usual_one() -> None:
    """The random walk starts at a prior draw by itself, so that both ways are the same chain."""
    posterior = Posterior(load(example_path("si")))
    settings = RunSettings(sampler="random-walk", chains=1, warmup=100, draws=300, seed=4)
    usual = run(posterior, settings)
    rng = runs.spawn_generators(4, 1)[0]
    start = runs.prior_start(posterior, rng).position
    task = Task(posterior, None, settings.sampler_settings(), settings.warmup)
    work = SentOnce(Work("random-walk", task, NoPlan(), 1))
    part = advance(work, random_walk.begin(task, start[None]).state, [rng], 0, 400)
    np.testing.assert_array_equal(posterior.to_theta(part.chunk.position[0]), usual.theta[0])
    theta, tally, _ = runs.run_from(posterior, settings, None, start)
    assert theta.shape == usual.theta.shape
    assert tally.sampled[0] == 300


def test_the_fibre_curve_is_a_fibre() -> None:
    for name in ("si", "hiv"):
        case = case_study(name)
        x, y = case.fibre_curve()
        np.testing.assert_allclose(x * y, x[0] * y[0], rtol=1e-9)
        assert fibre_of(load(example_path(name))).dimension == 1


def test_autocorrelation() -> None:
    rng = np.random.default_rng(1)
    x = np.zeros((2, 20_000))
    noise = rng.standard_normal(x.shape)
    for t in range(1, x.shape[1]):
        x[:, t] = 0.8 * x[:, t - 1] + noise[:, t]
    np.testing.assert_allclose(figures.autocorrelation(x, 4), 0.8 ** np.arange(5), atol=0.06)
    assert (figures.autocorrelation(np.ones((1, 50)), 4) == 1).all()


@pytest.mark.slow
def test_a_case_study_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ITERATIONS", 40_000)
    done = study("si", tmp_path / "out", quick=True, seed=1)
    rows = {(r.setting, r.method): t for r, t in zip(done.runs, done.tables, strict=True)}
    assert set(rows) == {(s, m) for s in runs.SETTINGS for m in METHODS}
    assert rows["tuned", "collapsed"]["gamma"]["error"] < 0.06
    assert rows["literal", "random walk"]["gamma"]["error"] > 0.1  # it hardly moves
    names = {path.name for path in done.written}
    assert {"table.md", "table.csv", "table.json", "literal-traces.svg", "tuned-densities.png"} <= names
    assert len(names) == 3 + 16
    for path in done.written:
        assert path.stat().st_size > 500
    table = list(csv.DictReader(io.StringIO((tmp_path / "out" / "table.csv").read_text())))
    assert len(table) == 8 * 7
    document = json.loads((tmp_path / "out" / "table.json").read_text())
    assert document["published"]["random walk"]["acceptance"] == pytest.approx(0.2793)
    assert "| **collapsed** |" in (tmp_path / "out" / "table.md").read_text()


def test_the_files_of_a_study_say_what_the_draws_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact, independent draws: as many effective draws as there are, and no error but chance."""
    theta, methods = si_draw(np.random.default_rng(2), 4000), ("random walk", "collapsed")

    def made(case: object, **options: object) -> list[runs.MethodRun]:
        return [
            runs.MethodRun(method, setting, theta.reshape(chains, -1, 4), 1000, 4000, 8000, 500, 2.0)
            for setting, chains in (("literal", 1), ("tuned", 4))
            for method in methods
        ]

    monkeypatch.setattr(folder, "compare", made)
    drawn = {}
    monkeypatch.setattr(folder.style, "save", lambda figure, path: drawn.update({path.name: figure}))
    done = study("si", tmp_path, quick=True)
    assert {path.name for path in done.written} == {"table.md", "table.csv", "table.json", *drawn}
    for setting in runs.SETTINGS:
        for ending in folder.FORMATS:
            assert len(drawn[f"{setting}-traces{ending}"].axes) == 2 * len(methods)
            assert len(drawn[f"{setting}-projections{ending}"].axes) == len(methods)
            for axes in drawn[f"{setting}-autocorrelations{ending}"].axes:
                for line in axes.lines[: len(methods)]:  # of independent draws
                    assert np.abs(line.get_ydata()[line.get_xdata() < 100]).max() < 0.2
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert len(rows) == 2 * len(methods) * len(done.case.quantities)
    for row in rows:
        assert row["acceptance"] == "0.25"
        assert float(row["ess"]) == pytest.approx(4000, rel=0.15)
        assert float(row["ess_per_second"]) == pytest.approx(float(row["ess"]) / 2, rel=1e-4)
        assert float(row["ess_per_solve"]) == pytest.approx(float(row["ess"]) / 8000, rel=1e-4)
        assert float(row["error"]) < 2.6 / np.sqrt(4000)
    document = json.loads((tmp_path / "table.json").read_text())
    assert {run["chains"] * run["draws"] for run in document["runs"]} == {4000}
    page = (tmp_path / "table.md").read_text()
    assert "### SI, literal: one chain of 4,000 draws" in page
    assert "### SI, tuned: 4 chains of 1,000 draws" in page
    assert "1,000 accepted (25.00%)" in page
    assert "8,000 solves, 2.0 s" in page


def test_a_study_does_not_write_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match="is a file, but `folder` must name a folder"):
        study("si", tmp_path / "taken")


def test_literal_settings_are_the_paper_s() -> None:
    assert case_study("si").literal["random walk"] == {"covariance": 0.05}
    assert case_study("hiv").literal["random walk"] == {"covariance": 0.01}
    geometric = case_study("hiv").literal["geometric"]
    assert (geometric["step_size"], geometric["steps"]) == (0.005, 20)
    assert (geometric["normal_sd"], geometric["tangent_sd"]) == (0.8, 0.2)
    assert case_study("si").literal["pseudo-marginal"]["aux"] == 128


def test_the_reference_of_si_knows_its_data() -> None:
    assert si_reference.si_data()[0].tolist() == list(range(1, 11))
