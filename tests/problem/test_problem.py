"""What is wrong with data, experiments and problems that are put together in Python is said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.language.model import Model
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem, SolverSettings

MODEL = Model.parse("x' = u - k*x\nx(0) = 1\ny = x", ["y"], inputs=["u"])
PRIORS = {"k": Prior("uniform", lower=0, upper=1)}
NOISE = Noise("normal", sd=1)
INPUT = {"u": InputSeries([0, 1], [0, 1])}


def observed(output: str = "y", times: Any = (1, 2), values: Any = (1, 2), **more: Any) -> Observations:
    return Observations(output, times, values, NOISE, **more)


def problem(*experiments: Experiment, **more: Any) -> Problem:
    return Problem(experiments or (Experiment(MODEL, (observed(),), INPUT),), PRIORS, **({"name": "named"} | more))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: InputSeries([0, 1], [1]), "as many values as times, and at least one; there are 1 and 2"),
        (lambda: InputSeries([0, np.inf], [1, 2]), "times and values must be finite"),
        (lambda: InputSeries([0], [1], "linaer"), "not 'linaer'; did you mean 'linear'"),
        (lambda: InputSeries(["a"], [1]), "times must be numbers"),
        (lambda: InputSeries([[0]], [1]), "times must be a flat list of numbers"),
        (lambda: observed(times=[-1, 2], increment=True), "an increment, which counts from time 0; found time -1"),
        (lambda: observed(times=[0, 2], increment=True), "cannot have a value at time 0, when nothing has accumulated"),
        (lambda: Experiment(MODEL, (observed("x"),), INPUT), "observations of 'x', which is not an output"),
        (lambda: Experiment(MODEL, (observed(), observed()), INPUT), "'y' has two sets of observations; merge them"),
        (lambda: Experiment(MODEL, (), {"v": INPUT["u"]}), "'v' is not an input of the model"),
        (lambda: Experiment(MODEL, (observed(),), name="a"), "experiment 'a': input 'u' has no values"),
        (lambda: Problem((), PRIORS), "at least one experiment"),
        (lambda: problem(Experiment(MODEL, name="a\tb")), "contains control characters"),
        (lambda: problem(nominal={"kk": 1.0}), "'kk' has a nominal value but is not a parameter; did you mean 'k'"),
        (lambda: problem(nominal={"k": np.nan}), "the nominal value of 'k' must be a finite number, not nan"),
        (lambda: SolverSettings(max_steps=0), "'max_steps' must be a positive whole number, not 0"),
    ],
)  # fmt: skip
def test_errors(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()


def test_what_a_fit_would_still_need_is_listed() -> None:
    bare = Model.parse("x' = u - x\nx(0) = 1", ["x"], inputs=["u"])
    with pytest.raises(DataError) as caught:
        Problem((Experiment(bare),)).require_complete()
    assert "neither the model nor the noise has a parameter" in str(caught.value)
    assert "values of the input 'u'" in str(caught.value)


def test_a_problem_shows_itself_in_a_line() -> None:
    twice = problem(Experiment(MODEL, (observed(),), INPUT, "a"), Experiment(MODEL, (observed(),), INPUT, "b"))
    assert repr(problem()) == "<Problem named: 1 parameters, 2 observations>"
    assert repr(twice) == "<Problem named: 2 experiments, 1 parameters, 4 observations>"
    assert str(problem()).startswith("named\n\n")


def test_a_name_is_shown_as_far_as_it_can_be() -> None:
    assert problem(name="a\tb").name == "a\ufffdb"
