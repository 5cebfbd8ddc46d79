"""A problem written as PEtab comes back with the same likelihood and prior, or is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.formats import toml
from equifinal.formats.load import load
from equifinal.formats.petab.writing import problem_to_petab
from equifinal.posterior.nominal import at_nominal
from equifinal.problem.problem import Problem
from tests.support.petab import write
from tests.support.varied_problems import VARIED

REFUSED = {
    "limits": "'x' has censored data",
    "limits of cells": "'x' has censored data",
    "increments": "'x' has poisson noise",
    "doses at observations": "'gut' changes at time 4, after an observation",
    "lag": "at time tl, which is not a number",
    "infusion": "which is not a number",
    "onset": "at time t0, which is not a number",
    "rest under an input": "known inputs and a steady state before its start",
}


def densities(problem: Problem) -> tuple[float, float]:
    found = at_nominal(problem)
    assert found is not None
    return found.log_likelihood, found.log_prior


@pytest.mark.parametrize("name", [name for name in VARIED if name not in REFUSED])
def test_the_same_comes_back(name: str, tmp_path: Path) -> None:
    problem = toml.loads(VARIED[name], name="one")
    files = problem_to_petab(problem, problem.nominal)
    assert densities(load(write(tmp_path, files))) == pytest.approx(densities(problem), rel=1e-6)
    first = {row.split("\t")[0]: row.split("\t")[2] for row in reversed(files["experiments.tsv"].splitlines()[1:])}
    known = {row.split("\t")[0] for row in files["parameters.tsv"].splitlines()}
    for row in files["conditions.tsv"].splitlines()[1:]:
        condition, _, value = row.split("\t")
        if condition in first.values():  # nothing else has a value then
            assert {*re.findall(r"[A-Za-z_]\w*", value)} <= known


@pytest.mark.parametrize("name", REFUSED)
def test_what_petab_cannot_express_is_refused(name: str) -> None:
    problem = toml.loads(VARIED[name])
    with pytest.raises(DataError, match=REFUSED[name]):
        problem_to_petab(problem, problem.nominal)


def test_the_experiment_is_named() -> None:
    doses = "[[experiment.dose]]\nstate = 'x'\namount = 1\ntime = 'r'\n"
    problem = toml.loads(VARIED["several"] + doses)
    with pytest.raises(DataError, match="experiment 'C': something happens at time r"):
        problem_to_petab(problem, problem.nominal)


def test_conditions_on_time_and_steps_are_comparisons(tmp_path: Path) -> None:
    """In the formula of an output, where the model language has its own way of writing them."""
    text = VARIED["numbers by row"].replace("x(0) = 10", "x(0) = 10\ny = x*(t >= d) + c/2").replace('["x"]', '["y"]')
    problem = toml.loads(text.replace("\nx = ", "\ny = "))
    files = problem_to_petab(problem, problem.nominal)
    assert "piecewise(1, time < (d), 0)" in files["observables.tsv"]
    assert densities(load(write(tmp_path, files))) == pytest.approx(densities(problem), rel=1e-6)


def test_noise_that_depends_on_another_output(tmp_path: Path) -> None:
    problem = toml.loads(
        VARIED["an output that is a number"].replace("none = 0", "none = 2 + c/9").replace("sd = 's'", "sd = 's*none'")
    )
    back = load(write(tmp_path, problem_to_petab(problem, problem.nominal)))
    assert densities(back) == pytest.approx(densities(problem), rel=1e-6)


def test_a_formula_of_time_that_only_one_experiment_has_is_refused() -> None:
    problem = toml.loads(VARIED["several"].replace("f = 2 }", 'f = "2 + t" }'))
    with pytest.raises(DataError, match="experiment 'A': 'f' changes with time"):
        problem_to_petab(problem, problem.nominal)
