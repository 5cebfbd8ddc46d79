"""Whole problems at random, from the file to the page: a result, or one of our errors."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.errors import EquifinalError
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.load import load
from equifinal.problem.problem import Problem
from equifinal.report.page import write_report
from equifinal.results.diagnostics import concerns, summarise
from equifinal.results.store import load as load_results
from equifinal.results.store import save
from equifinal.studies.sample import sample
from tests.support.random_problems import random_problem

SEEDS = st.integers(0, 10**9)


def loaded(seed: int, folder: Path) -> Problem | None:
    """The problem of a seed, from its files; None if it was refused in words."""
    text, data = random_problem(seed)
    (folder / "problem.toml").write_text(text)
    (folder / "data.csv").write_text(data)
    try:
        return load(folder / "problem.toml")
    except EquifinalError as error:
        assert 10 < len(str(error)) < 1500
        return None


@settings(max_examples=12)
@given(SEEDS)
def test_problems_are_read_and_stored_or_refused(seed: int) -> None:
    with TemporaryDirectory() as folder:
        problem = loaded(seed, Path(folder))
    if problem is not None:
        again = problem_from_json(problem_to_json(problem))
        assert again.fingerprint() == problem.fingerprint()


def test_most_of_them_are_right(tmp_path: Path) -> None:
    assert sum(loaded(seed, tmp_path) is not None for seed in range(12)) > 4


@pytest.mark.slow
@settings(max_examples=30)
@given(SEEDS)
def test_from_the_file_to_the_page(seed: int) -> None:
    with TemporaryDirectory() as place:
        from_file_to_page(seed, Path(place))


def from_file_to_page(seed: int, folder: Path) -> str:
    """How far a problem of a seed came."""
    problem = loaded(seed, folder)
    if problem is None:
        return "refused"
    try:
        data = sample(problem, chains=2, warmup=50, draws=50, progress=False)
    except EquifinalError as error:
        assert len(str(error)) < 1500
        return "not sampled"
    again = load_results(save(data, folder / "results.nc"))
    for name in problem.parameters:
        assert (again.posterior[name].values == data.posterior[name].values).all()
    concerns(again, summarise(again))
    try:
        assert write_report(again, folder / "report.html").stat().st_size > 10_000
    except EquifinalError:
        return "no report"
    return "done"
