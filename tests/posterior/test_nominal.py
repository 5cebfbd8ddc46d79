"""What is said of a problem at the nominal values that it comes with."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from equifinal import Problem, load
from equifinal.ode import Status
from equifinal.posterior.likelihood import ExperimentLikelihood
from equifinal.posterior.nominal import at_nominal
from equifinal.words.problem import problem_facts, problem_words

GROWING = """
[model]
equations = '''
x' = r*x^2
x(0) = x0
y = x
'''
outputs = ["y"]
[constants]
x0 = 0
[parameters]
r = { prior = "uniform", lower = 0, upper = 3, nominal = %s }
[[experiment]]
name = "calm"
[experiment.noise]
y = { %s }
[experiment.data]
time = [1, 2]
y = [0, %s]
[[experiment]]
name = "wild"
constants = { x0 = 1 }
[experiment.noise]
y = { %s }
[experiment.data]
time = [0.5]
y = [2]
"""
NORMAL, POISSON = 'family = "normal", sd = 0.5', 'family = "poisson"'


def problem(folder: Path, rate: float, noise: str, seen: float) -> Problem:
    path = folder / "growing.toml"
    path.write_text(GROWING % (rate, noise, seen, noise))
    return load(path)


def test_likelihood_is_that_of_the_solution(tmp_path: Path) -> None:
    found = at_nominal(problem(tmp_path, 1, NORMAL, 0.25))
    assert found is not None
    expected = stats.norm.logpdf([0, 0.25, 2 - 1 / (1 - 0.5)], scale=0.5).sum()  # x = 1/(1 - r t)
    assert found.log_likelihood == pytest.approx(expected, abs=1e-6)
    assert found.chi_squared == pytest.approx(0.25, abs=1e-6)
    assert not found.unsolved
    assert not found.impossible


def test_experiments_that_are_not_solved_say_how_it_ended(tmp_path: Path) -> None:
    made = problem(tmp_path, 2.5, NORMAL, 0.25)  # x grows beyond all bounds at time 0.4
    found = at_nominal(made)
    assert found is not None
    assert found.log_likelihood == -math.inf
    assert dict(found.unsolved) == {"wild": Status.step_too_small}
    told = "the model cannot be solved in experiment 'wild': the step became too small to go on"
    assert f"at the nominal values: {told}" in problem_words(made, found)
    assert problem_facts(made, found)["nominal"]["trouble"][0].startswith(told)


def test_data_that_the_noise_cannot_give_are_told_by_experiment(tmp_path: Path) -> None:
    made = problem(tmp_path, 1, POISSON, 3)  # three counts where none can be
    found = at_nominal(made)
    assert found is not None
    assert found.log_likelihood == -math.inf
    assert found.impossible == ("calm",)
    assert "the data are impossible in experiment 'calm'" in problem_words(made, found)


def test_what_cannot_be_solved_so_exactly_is_solved_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tolerances ten times as wide, and again, up to the problem's own."""
    made, tried = problem(tmp_path, 1, NORMAL, 0.25), []
    solve = ExperimentLikelihood.outputs

    def outputs(self: ExperimentLikelihood, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, status = solve(self, theta)
        tried.append(self.settings["rtol"])
        too_fine = self.settings["rtol"] < 5e-8
        return found, np.full_like(status, Status.step_too_small) if too_fine else status

    monkeypatch.setattr(ExperimentLikelihood, "outputs", outputs)
    found = at_nominal(made)
    assert found is not None
    assert tried == pytest.approx([1e-9, 1e-8, 1e-7] * 2)
    expected = stats.norm.logpdf([0, 0.25, 2 - 1 / (1 - 0.5)], scale=0.5).sum()
    assert found.log_likelihood == pytest.approx(expected, abs=1e-5)


def test_values_that_the_prior_does_not_allow_are_named(tmp_path: Path) -> None:
    path = tmp_path / "growing.toml"
    path.write_text((GROWING % (1, NORMAL, 0.25, NORMAL)).replace("lower = 0,", "lower = 1.5,"))
    made = load(path)
    found = at_nominal(made)
    assert found is not None
    assert found.outside == ("r",)
    told = "the prior does not allow them: r is 1, its prior uniform on (1.5, 3)"
    assert problem_facts(made, found)["nominal"]["trouble"] == [told]
    assert f"at the nominal values: {told}" in problem_words(made, found)
    assert "log likelihood" in problem_words(made, found)
    assert "log prior" not in problem_words(made, found)
