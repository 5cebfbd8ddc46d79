"""Programs for PyMC and Stan that problems become: the same likelihood, or a refusal that says what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from equifinal.errors import DataError
from equifinal.formats import toml
from equifinal.language.parser import parse_expression
from equifinal.posterior.nominal import at_nominal
from equifinal.problem.data import Observations
from equifinal.problem.problem import Problem
from equifinal.studies.exporting import exported
from tests.support.varied_problems import VARIED

RESTING = [name for name in VARIED if name.startswith("rest")]


def script(problem: Problem) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(exported(problem, problem.nominal, "pymc")["problem.py"], "exported.py", "exec"), names)
    return names


def likelihoods(problem: Problem) -> tuple[float, float]:
    """The script's, and ours."""
    exact = replace(problem, solver=replace(problem.solver, rtol=1e-9, atol=1e-11))
    own = at_nominal(exact)
    assert own is not None
    compute: Callable[[list[float]], float] = script(exact)["log_likelihood"]
    return compute([problem.nominal[name] for name in problem.parameters]), own.log_likelihood


@pytest.mark.parametrize("name", [name for name in VARIED if name not in RESTING])
def test_the_script_for_pymc_computes_the_same(name: str) -> None:
    its, own = likelihoods(toml.loads(VARIED[name]))
    assert its == pytest.approx(own, abs=1e-5, rel=1e-6)


@pytest.mark.parametrize("call", ["above(x - 5)", "arctan(x)", "floor(2.5 + d)"])
def test_functions_that_imported_models_have(call: str) -> None:
    problem = toml.loads(VARIED["numbers by row"])
    model = problem.model
    wider = replace(model, equations={**model.equations, "c": parse_expression(call)})
    changed = replace(problem, experiments=(replace(problem.experiments[0], model=wider),))
    its, own = likelihoods(changed)
    assert its == pytest.approx(own, abs=1e-5)
    assert exported(changed, problem.nominal, "stan")


def test_a_name_of_the_problem_is_no_code() -> None:
    problem = toml.loads(VARIED["numbers by row"], name='x"""\nraise SystemExit\n"""\\')
    assert script(problem)["PARAMETERS"] == ["d", "s"]


@pytest.mark.parametrize("to", ["pymc", "stan"])
@pytest.mark.parametrize("name", RESTING)
def test_a_steady_state_is_refused(name: str, to: str) -> None:
    problem = toml.loads(VARIED[name])
    with pytest.raises(DataError, match=r"a steady state before its start, .*; try `to` petab"):
        exported(problem, problem.nominal, to)


def test_data_at_infinity_are_refused() -> None:
    problem = toml.loads(VARIED["limits"])
    noise = problem.experiments[0].observations[0].noise
    late = Observations("x", [1.0, float("inf")], [4.0, 3.0], noise)
    endless = replace(problem, experiments=(replace(problem.experiments[0], observations=(late,)),))
    for to in ("pymc", "stan"):
        with pytest.raises(DataError, match="data at time infinity"):
            exported(endless, problem.nominal, to)
