"""What experiments as they are determine, beside what rich ones could."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.trajectories import judge_trajectories
from equifinal.identifiability.verdicts import Design, Identifiability
from equifinal.language.expression import Number
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression
from equifinal.posterior.design import analysed, examined
from equifinal.posterior.study import Study
from equifinal.problem.data import Experiment, InputSeries, Observations
from equifinal.problem.noise import Noise
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem
from tests.support.analysed import said

TIMES = np.linspace(0.2, 8, 20)


def problem_of(*models: Model, inputs: dict[str, InputSeries] | None = None) -> Problem:
    noise = Noise("normal", sd=1.0)
    experiments = [
        Experiment(m, tuple(Observations(y, TIMES, np.ones(TIMES.size), noise) for y in m.outputs), inputs or {})
        for m in models
    ]
    priors = {name: Prior("uniform", lower=0.3, upper=2.0) for m in models for name in m.parameters}
    return Problem(tuple(experiments), priors)


INFUSED = Model.parse("x' = -(k + q)*x + u/V\nz' = q*x - l*z\nx(0) = 0\nz(0) = 1\ny = x + z", ["y"], inputs=["u"])


def infused(*values: float) -> Identifiability:
    series = InputSeries(np.arange(float(len(values))), np.array(values), "step")
    return analysed(problem_of(INFUSED, inputs={"u": series}))


def test_a_rich_input_is_enough() -> None:
    result = infused(1.0, 3.0, 0.0, 2.0)
    assert result.assumptions == ("rich inputs",)
    assert result.design is not None
    assert result.design.enough
    assert result.design.is_clear
    assert "nothing is lost" in said(result)


def test_an_input_that_is_zero_determines_less() -> None:
    result = infused(0.0, 0.0)
    assert result.design is not None
    assert (result.design.rank, result.design.expected) == (1, 4)  # l is left
    assert set(result.design.unseen) == {"k", "q", "V"}
    text = said(result)
    assert "THEY DETERMINE LESS" in text
    assert "They do not determine k, q and V" in text


def test_nothing_is_asked_of_models_to_which_nothing_happens() -> None:
    result = analysed(problem_of(Model.parse("x' = -k*x\nx(0) = 1", ["x"])))
    assert (result.design, result.assumptions) == (None, ())


def test_without_priors_the_analysis_stands_alone() -> None:
    problem = problem_of(INFUSED, inputs={"u": InputSeries(np.array([0.0]), np.array([1.0]))})
    assert analysed(Problem(problem.experiments)).design is None


def test_functions_without_derivatives_are_judged_by_numbers() -> None:
    model = Model.parse("x' = a*max(x - 1, 0) - k*b*x\nx(0) = 2\ny = x", ["y"])
    result = analysed(problem_of(model))
    assert result.parameters == {"a": "locally", "k": "not", "b": "not"}
    assert (result.scope, result.finer, result.fibre_dimension) == ("local", True, 1)
    assert "in numbers alone" in said(result)
    fibre, _ = Study(problem_of(model)).coarsest_fibre
    assert fibre.dimension == 0  # every parameter for itself


def test_models_that_are_undefined_where_they_start_are_judged_by_numbers() -> None:
    model = Model.parse("A' = k - a*s*A\nB' = a*s*A - B\nA(0) = 0\nB(0) = 0\nshare = A/(A + B)", ["share"])
    result = analysed(problem_of(model))
    assert result.parameters == {"k": "not", "a": "not", "s": "not"}  # only a*s is determined
    assert (result.scope, result.fibre_dimension, result.is_exact) == ("local", 2, False)
    assert "divides by zero at its initial values" in said(result)


def test_functions_and_time_are_solved_for() -> None:
    model = Model.parse("x' = -exp(lk)*x*(1 + a*sin(3*t))\nx(0) = 1\ny = exp(ls)*exp(lv)*x", ["y"])
    result = analysed(problem_of(model))
    assert result.design is not None
    assert result.design.enough
    assert result.design.rank == 3
    fibre, note = Study(problem_of(model)).coarsest_fibre  # its guard compares outputs along fibres
    assert (fibre.dimension, note) == (1, "")


SWALLOWED = "gut' = -ka*gut\nblood' = ka*gut - ke*blood\ngut(0) = 0\nblood(0) = 0\ny = blood/V\n"
DOSE = Event(Number(Fraction(0)), {"gut": parse_expression("gut + 100*F")})


def test_an_output_that_is_undefined_before_the_first_dose() -> None:
    """A share of nothing tells nothing; from the dose on it tells the two rates apart."""
    model = Model.parse(SWALLOWED + "part = blood/(blood + gut)", ["y", "part"]).vary(events=[DOSE])
    result = analysed(problem_of(model))
    assert result.parameters == {"ka": "globally", "ke": "globally", "V": "not", "F": "not"}
    assert result.design is not None
    assert (result.design.rank, result.design.enough) == (3, True)


def test_a_trajectory_that_is_undefined_before_the_first_dose() -> None:
    quantities = {"part": "blood/(blood + gut)", "seen": "2*blood/V", "unseen": "gut/V"}
    model = Model.parse(SWALLOWED, ["y"], quantities=quantities).vary(events=[DOSE])
    (judged,) = judge_trajectories(model, analyse(model))
    assert judged == {"gut": "not", "blood": "not", "part": "locally", "seen": "globally", "unseen": "locally"}


def test_an_examination_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(INFUSED, inputs={"u": InputSeries(np.array([0.0]), np.array([1.0]))})
    alone = analyse([experiment.analysed for experiment in problem.experiments])
    monkeypatch.setattr("equifinal.posterior.design._rank", lambda *_: time.sleep(600))
    for end in (time.monotonic() + 0.01, time.monotonic() - 1.0):
        result = examined(problem, alone, end=end)
        assert (result.design, result.unfinished) == (None, "out of time")
        assert "no time to find out how much they determine" in said(result)


def test_an_examination_that_is_killed_leaves_the_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(INFUSED, inputs={"u": InputSeries(np.array([0.0]), np.array([1.0]))})
    alone = analyse([experiment.analysed for experiment in problem.experiments])
    monkeypatch.setattr("equifinal.posterior.design._rank", lambda *_: os._exit(1))
    assert examined(problem, alone, end=time.monotonic() + 600) == alone


def test_a_stored_analysis_is_read_back() -> None:
    for result in (infused(0.0), analysed(problem_of(Model.parse("x' = -k*x^n/(K^n + x^n)\nx(0) = 2", ["x"])))):
        assert Identifiability.from_json(result.to_json()) == result


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_rank_does_not_depend_on_the_seed(seed: int) -> None:
    problem = problem_of(INFUSED, inputs={"u": InputSeries(np.array([0.0, 1.0]), np.array([1.0, 0.0]), "step")})
    design = analysed(problem, seed=seed).design
    assert design is not None
    assert design.enough


def test_experiments_that_determine_more_than_the_analysis_allows() -> None:
    """An analysis of another model, which says that no data tell q from k: the solver knows better, and it is said."""
    problem = problem_of(INFUSED, inputs={"u": InputSeries(np.arange(4.0), np.array([1.0, 3.0, 0.0, 2.0]), "step")})
    other = Model.parse("x' = -(k + q)*x + u/V\nz' = -l*z\nx(0) = 0\nz(0) = 1\ny = x + z", ["y"], inputs=["u"])
    wrong = replace(analyse(other), parameters={n: analyse(other).parameters[n] for n in INFUSED.parameters})
    result = examined(problem, wrong)
    assert result.design is not None
    assert result.design.contradicts
    assert (result.design.rank, result.design.expected) == (4, 3)
    assert "CONTRADICTION" in said(result)
    assert Identifiability.from_json(result.to_json()) == result
    study = Study(problem, analysis=result)
    with pytest.warns(UserWarning, match="CONTRADICT"):
        fibre, note = study.coarsest_fibre
    assert fibre.dimension == 0  # every parameter for itself
    assert "CONTRADICT" in note


def test_a_rank_that_is_larger_by_rounding_errors_is_no_contradiction() -> None:
    by_a_hair = Design(rank=4, expected=3, unseen=(), combinations=(), gap=1e300, points=8, excess=40.0)
    assert not by_a_hair.contradicts
    assert not by_a_hair.is_clear
