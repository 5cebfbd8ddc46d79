"""Which states, and functions of states, the outputs determine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equifinal.fibre.of_problem import fibre_of
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.trajectories import judge_trajectories
from equifinal.language.model import Model
from equifinal.prediction import dependence
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import predict
from equifinal.problem.data import Experiment
from equifinal.problem.prior import Prior
from equifinal.problem.problem import Problem

EPIDEMIC = """
S' = -beta*S*I
I' = beta*S*I - gamma*I
S(0) = S0
I(0) = I0
y = rho*I
"""
INTEREST = {"R0": "beta*S0/gamma", "incidence": "rho*beta*S*I", "share": "S/S0", "total": "S + I"}


def judged(*models: Model) -> tuple[dict[str, str], ...]:
    return tuple(map(dict, judge_trajectories(models, analyse(models))))


def epidemic() -> Model:
    return Model.parse(EPIDEMIC, ["y"], quantities=INTEREST)


def test_functions_of_states_may_be_determined_where_states_are_not():
    """The scale of S and I is free; ratios, and rho times an incidence, are not."""
    assert judged(epidemic()) == (
        {"S": "not", "I": "not", "incidence": "globally", "share": "globally", "total": "not"},
    )


def test_trajectories_that_call_functions():
    expected = {
        "log10(rho*I)": "globally",
        "exp(-gamma)*beta*S": "globally",
        "log(S)": "not",
        "sqrt(gamma)*I": "not",
        "log(S) - log(I)": "unknown",  # determined in truth: two calls that move together
    }
    model = Model.parse(EPIDEMIC, ["y"], quantities={f"q{i}": text for i, text in enumerate(expected)})
    (found,) = judged(model)
    assert found == {"S": "not", "I": "not"} | {f"q{i}": word for i, word in enumerate(expected.values())}


def test_one_of_several():
    """Slow and fast may change places; then the amount in the blood is another, but not the sum of both rates."""
    absorption = Model.parse(
        "gut' = -ka*gut\nblood' = ka*gut - ke*blood\ngut(0) = 1\nblood(0) = 0\ny = blood/V",
        ["y"],
        quantities={"flow": "ka*ke*gut/V", "seen": "blood/V"},
    )
    (found,) = judged(absorption)
    assert found["gut"] == found["blood"] == "locally"
    assert found["seen"] == "globally"


def test_everything_is_determined_where_parameters_are():
    assert judged(Model.parse("x' = -k*x\nz' = x - k*z\nx(0) = 1\nz(0) = 2", ["x"])) == (
        {"x": "globally", "z": "globally"},
    )


def test_an_experiment_may_tell_of_the_states_of_another():
    scaled = Model.parse("x' = -k*x\nx(0) = x0\ny = s*x", ["y"])
    direct = Model.parse("z' = -k*z + s\nz(0) = 0", ["z"])
    assert judged(scaled) == ({"x": "not"},)
    assert judged(scaled, direct) == ({"x": "globally"}, {"z": "globally"})


def test_where_combinations_are_not_complete_it_is_at_least_local():
    model = epidemic()
    (found,) = judge_trajectories(model, replace(analyse(model), complete=False))
    assert dict(found) == {"S": "not", "I": "not", "incidence": "locally", "share": "locally", "total": "not"}


def test_predictions_have_them_and_agree_with_solving():
    names = ("beta", "gamma", "rho", "S0", "I0")
    priors = {name: Prior("lognormal", meanlog=0, sdlog=0.3) for name in names}
    problem = Problem((Experiment(epidemic()),), priors)
    theta = np.exp(0.3 * np.random.default_rng(1).standard_normal((20, 5)))
    shown = predict(problem, theta, until=2.0)
    assert [band.name for band in shown.bands] == ["y", "S", "I", "incidence", "share", "total"]
    np.testing.assert_allclose(shown.named("share").quantiles[:, 0], 1.0, rtol=1e-12)
    np.testing.assert_allclose(shown.named("total").mean, shown.named("S").mean + shown.named("I").mean, rtol=1e-6)
    by_analysis = determined_trajectories(problem, None, theta, analyse(problem.model))
    by_solving = determined_trajectories(problem, fibre_of(problem), theta)
    assert by_analysis == by_solving
    assert by_analysis["", "incidence"] is True
    assert by_analysis["", "total"] is False


def test_of_many_states_none_is_judged_by_algebra(monkeypatch: pytest.MonkeyPatch):
    """Whose work grows faster than their number: for 200 of them it took longer than the fit."""

    def refuse(*_):
        raise AssertionError("too much work")

    chain = [f"x{i}' = k*(x{i - 1} - x{i}); x{i}(0) = 0" for i in range(2, 61)]
    model = Model.parse("\n".join(["x1' = -k*x1; x1(0) = D", *chain, "y = s*x60"]), ["y"])
    priors = {name: Prior("lognormal", meanlog=0, sdlog=0.3) for name in model.parameters}
    problem, theta = Problem((Experiment(model),), priors), np.ones((3, 3))
    analysis = analyse(epidemic())  # of whatever: it is not asked
    monkeypatch.setattr(dependence, "judge_trajectories", refuse)
    found = determined_trajectories(problem, None, theta, analysis)
    assert found["", "y"] is True
    assert found["", "x7"] is None


def test_what_is_not_judged_by_algebra_is_judged_by_solving(monkeypatch: pytest.MonkeyPatch):
    priors = {name: Prior("lognormal", meanlog=0, sdlog=0.3) for name in ("beta", "gamma", "rho", "S0", "I0")}
    problem = Problem((Experiment(epidemic()),), priors)
    theta = np.exp(0.3 * np.random.default_rng(1).standard_normal((20, 5)))
    analysis = analyse(problem.model)
    by_analysis = determined_trajectories(problem, fibre_of(problem), theta, analysis)
    monkeypatch.setattr(dependence, "MOST_STATES", 1)
    assert determined_trajectories(problem, fibre_of(problem), theta, analysis) == by_analysis
