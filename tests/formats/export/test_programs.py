"""Programs for PyMC and Stan that problems become: the same likelihood, or a refusal that says what is in the way."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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


@pytest.mark.parametrize("name", [name for name in VARIED if name not in RESTING])
def test_stan_accepts_the_program(name: str, tmp_path: Path) -> None:
    """Syntax and types, by the compiler that comes with httpstan."""
    package = importlib.util.find_spec("httpstan")
    problem = toml.loads(VARIED[name])
    path = tmp_path / "problem.stan"
    path.write_text(exported(problem, problem.nominal, "stan")["problem.stan"])
    if package is None or package.origin is None:
        pytest.skip("Stan's compiler is not installed; uv run --with httpstan pytest runs this")
    compiler = Path(package.origin).parent / "stanc"
    done = subprocess.run([compiler, path, "--o", tmp_path / "out.hpp"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # Stan compiles each for a minute
@pytest.mark.parametrize("name", ["infusion", "onset and dose", "limits of cells", "doses at observations", "input"])
def test_stan_computes_the_same(name: str) -> None:
    pytest.importorskip("httpstan", reason="Stan is not installed; uv run --with httpstan --with setuptools runs this")
    from httpstan import models

    problem = toml.loads(VARIED[name])
    problem = replace(problem, solver=replace(problem.solver, rtol=1e-9, atol=1e-11))
    program = exported(problem, problem.nominal, "stan")["problem.stan"]
    asyncio.run(models.build_services_extension_module(program, ["-O0"]))
    stan: Any = models.import_services_extension_module(models.calculate_model_name(program))
    free = stan.transform_inits({}, dict(problem.nominal))
    own = at_nominal(problem)
    assert own is not None
    assert stan.write_array({}, free, True, False)[-1] == pytest.approx(own.log_likelihood, abs=1e-5, rel=1e-6)


def test_a_document_has_what_happens() -> None:
    problem = toml.loads(VARIED["rest, then a switch"])
    text = exported(problem, problem.nominal, "latex")["problem.tex"]
    assert r"\section*{What happens}" in text
    assert text.count(r"\item") >= 2
    assert "What happens" not in exported(toml.loads(VARIED["limits"]), {"d": 1.0, "s": 1.0}, "latex")["problem.tex"]
