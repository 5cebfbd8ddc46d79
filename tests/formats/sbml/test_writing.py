"""A model written as SBML is valid, and comes back with the same course."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from equifinal.errors import DataError
from equifinal.formats import toml
from equifinal.formats.load import load
from equifinal.language.parser import parse_expression
from equifinal.prediction.simulate import simulate
from equifinal.problem.problem import Problem
from equifinal.studies.exporting import exported
from tests.support.varied_problems import VARIED

libsbml = pytest.importorskip("libsbml")
REFUSED = [name for name in VARIED if name.startswith(("rest", "onset"))]
TIMES = [0.4, 1.1, 2.7, 5.0]


def courses(problem: Problem) -> list[list[float]]:
    values = {name: problem.nominal[name] for name in problem.parameters}
    found = simulate(replace(problem, solver=replace(problem.solver, rtol=1e-9, atol=1e-11)), values, times=TIMES)[0]
    return [list(course) for course in found.states.values()]


@pytest.mark.filterwarnings("ignore:SBML has one model")
@pytest.mark.parametrize("name", [name for name in VARIED if name not in REFUSED])
def test_the_same_comes_back(name: str, tmp_path: Path) -> None:
    problem = toml.loads(VARIED[name], name="one")
    text = exported(problem, problem.nominal, "sbml")["model.xml"]
    document = libsbml.readSBMLFromString(text)
    document.setConsistencyChecks(libsbml.LIBSBML_CAT_UNITS_CONSISTENCY, False)
    document.checkConsistency()
    assert not document.getNumErrors(libsbml.LIBSBML_SEV_ERROR)
    path = tmp_path / "model.xml"
    path.write_text(text, encoding="utf-8")
    back = courses(load(path))
    for course in courses(problem):
        assert any(course == pytest.approx(its, rel=1e-5, abs=1e-8) for its in back)


@pytest.mark.parametrize("name", REFUSED)
def test_what_sbml_cannot_express_is_refused(name: str) -> None:
    problem = toml.loads(VARIED[name])
    with pytest.raises(DataError, match="which SBML cannot express; try `to` petab"):
        exported(problem, problem.nominal, "sbml")


def test_names_that_are_no_identifiers_stand_beside_them() -> None:
    problem = toml.loads(VARIED["names"])
    text = exported(problem, problem.nominal, "sbml")["model.xml"]
    assert 'id="beta_1" name="β_1"' in text


@pytest.mark.parametrize("call", ["above(x - 5)", "arctan(x)", "floor(2.5 + d)"])
def test_functions_that_imported_models_have(call: str, tmp_path: Path) -> None:
    problem = toml.loads(VARIED["numbers by row"])
    model = problem.model
    wider = replace(model, equations={**model.equations, "c": parse_expression(call)})
    changed = replace(problem, experiments=(replace(problem.experiments[0], model=wider),))
    path = tmp_path / "model.xml"
    path.write_text(exported(changed, problem.nominal, "sbml")["model.xml"])
    assert courses(load(path)) == [pytest.approx(course, rel=1e-5) for course in courses(changed)]


def test_that_other_experiments_have_another_model_is_said() -> None:
    problem = toml.loads(VARIED["several"])
    with pytest.warns(UserWarning, match="that of experiment 'A'"):
        exported(problem, problem.nominal, "sbml")
