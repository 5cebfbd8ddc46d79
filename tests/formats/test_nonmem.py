"""Rows of doses and observations, as NONMEM has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.formats.toml import load
from equifinal.language.expression import to_text
from equifinal.problem.problem import Problem

MODEL = '''
[model]
equations = """
gut' = -ka*gut
blood' = ka*gut - CL*wt/V*blood
conc = blood/V
gut(0) = 0
blood(0) = base
"""
outputs = ["conc"]
[constants]
wt = 70
[noise]
conc = { family = "normal", sd = 1 }
'''
DATA = '[data]\nfile = "rows.csv"\nconstants = ["wt"]\n'
ROWS = """ID,TIME,AMT,EVID,CMT,DV,MDV,ADDL,II,RATE,WT
1,0,100,1,1,.,1,2,12,0,80
1,0,.,0,2,0.5,0,.,.,.,80
1,5,.,0,2,7.5,0,.,.,.,80
1,12,.,0,2,2.5,0,.,.,.,80
2,0,.,0,2,0,0,.,.,.,60
2,0,50,1,2,.,1,.,.,25,60
2,3,.,0,2,7,0,.,.,.,60
2,4,.,0,2,9,1,.,.,.,60
2,6,20,4,1,.,1,.,.,.,60
"""


def read(tmp_path: Path, rows: str = ROWS, data: str = DATA, model: str = MODEL) -> Problem:
    (tmp_path / "rows.csv").write_text(rows)
    (tmp_path / "p.toml").write_text(model + data)
    return load(tmp_path / "p.toml")


def events(problem: Problem, subject: int) -> list[tuple[str, dict[str, str], bool]]:
    model = problem.experiments[subject].model
    return [(to_text(e.time), {x: to_text(v) for x, v in e.sets.items()}, e.first) for e in model.events]


def test_a_subject_is_an_experiment(tmp_path: Path) -> None:
    problem = read(tmp_path)
    first, second = problem.experiments
    assert (first.name, second.name) == ("1", "2")
    assert (first.model.constants["wt"], second.model.constants["wt"]) == (80, 60)
    np.testing.assert_array_equal(first.observations[0].times, [0, 5, 12])
    np.testing.assert_array_equal(first.observations[0].values, [0.5, 7.5, 2.5])
    np.testing.assert_array_equal(second.observations[0].times, [0, 3])  # mdv leaves one out


def test_rows_are_doses(tmp_path: Path) -> None:
    problem = read(tmp_path)
    assert events(problem, 0) == [
        ("0", {"gut": "gut + 100"}, True),  # it stands above the observation at its time
        ("12", {"gut": "gut + 100"}, True),  # ... as additional doses do in any case
        ("24", {"gut": "gut + 100"}, True),
    ]
    assert events(problem, 1) == [
        ("6", {"gut": "gut(0)", "blood": "blood(0)"}, False),  # a reset, then a dose
        ("0", {"infusion_blood": "infusion_blood + 25"}, False),
        ("2", {"infusion_blood": "infusion_blood - 25"}, False),
        ("6", {"gut": "gut + 20"}, False),
    ]
    assert to_text(problem.experiments[1].model.jumps[0].sets["blood"]) == "base"


def test_compartments_columns_and_parameters_may_be_named(tmp_path: Path) -> None:
    rows = "subject,hour,amt,rate,cmt,level\n7,0,10,-2,3,\n7,1,,,5,2\n"
    data = (
        '[data]\nfile = "rows.csv"\nformat = "nonmem"\ncolumns = { id = "subject", time = "hour", dv = "level" }\n'
        'doses = { 3 = { state = "blood", lag = "tlag", fraction = "F", duration = "D3" } }\noutputs = { 5 = "conc" }\n'
    )
    problem = read(tmp_path, rows, data)
    assert events(problem, 0) == [
        ("tlag", {"infusion_blood": "infusion_blood + 10*F/D3"}, False),
        ("tlag + D3", {"infusion_blood": "infusion_blood - 10*F/D3"}, False),
    ]
    assert {"tlag", "F", "D3"} <= set(problem.parameters)


def test_one_subject_may_be_chosen(tmp_path: Path) -> None:
    data = (
        '[[experiment]]\nname = "a"\nconstants = { wt = "w" }\ndata = { file = "rows.csv", id = 2, ignore = ["WT"] }\n'
        '[[experiment]]\nname = "b"\ndata = { file = "rows.csv", id = 1, constants = ["wt"] }\n'
    )
    problem = read(tmp_path, data=data)
    assert [e.name for e in problem.experiments] == ["a", "b"]
    assert "w" in problem.experiments[0].model.parameters
    assert len(problem.experiments[1].model.events) == 3
    with pytest.raises(DataError, match="the file has 2 subjects; say which"):
        read(tmp_path, data='[[experiment]]\ndata = { file = "rows.csv", ignore = ["WT"] }\n')


def test_doses_are_there_without_the_data(tmp_path: Path) -> None:
    read(tmp_path)
    assert len(load(tmp_path / "p.toml", data=False).model.events) == 3


def test_other_files_are_what_they_were(tmp_path: Path) -> None:
    problem = read(tmp_path, "time,conc\n1,2\n", '[data]\nfile = "rows.csv"\n')
    assert problem.experiments[0].size == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,12,.,0", "1,4,.,0", "line 5: time 4 comes after 5"),
        ("1,12,.,0", "1,,.,0", "line 5: a time is missing"),
        ("1,12,.,0", "1,12,5,0", "line 5: an observation .evid 0. with an amount"),
        ("1,12,.,0", "1,12,.,7", "evid must be 0, 1, 2, 3 or 4, not 7"),
        ("2,3,.,0", "1,3,.,0", "subject 1 appears again"),
        ("7.5", "high", "line 4, column 'dv': 'high' is not a number"),
        ("50,1,2", "50,1,9", "line 7: a dose into cmt '9'"),
        ("50,1,2", "0,1,2", "line 7: a dose needs a positive amt"),
        (".,25,60", ".,-1,60", "rate = -1 means that the rate is a parameter"),
        (".,25,60", ".,-3,60", "rate must be positive"),
        ("1,2,12,0", "1,2,0,0", "line 2: addl.*positive ii"),
        ("1,5,.,0,2,7.5,0,.,.,.,80", "1,5,.,0,2,7.5,0,.,.,.,81", "'wt' changes within subject 1"),
        ("7.5", "inf", "line 4, column 'dv': 'inf' is not a finite number"),
        ("1,0,100,1,1,.,1,2,12", "1,0,100,1,1,.,1,2.5,12", "column 'addl': 2.5 is not a whole number"),
        ("1,0,100,", "1,0,much,", "line 2, column 'amt': 'much' is not a number"),
        ("RATE", "SS", "dose at steady state .ss. is not read"),
        ("RATE", "RTE", "column 'RTE' is not known; did you mean 'rate'"),
        ("DV", "DVX", "no column 'dv'"),
        ("1,0,100,1,1", "1,0,.,0,2,1,0,.,.,.,80\n1,0,100,1,1", "stand above and below it"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    data = DATA + 'format = "nonmem"\n'
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, ROWS.replace(old, new).replace(",25,60", ",25,60"), data)
    assert "rows.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('format = "monolix"\n', 'must be "nonmem"'),
        ('doses = { 1 = "guts" }\n', "'guts' is not a state; did you mean 'gut'"),
        ('doses = { 2 = "blood" }\n', "line 2: a dose into cmt '1', which is not in doses"),
        ('outputs = { 2 = "con" }\n', "'con' is not an output; did you mean 'conc'"),
        ('outputs = { 3 = "conc" }\n', "line 3: observation of '2', which is not in outputs"),
        ("id = 5\n", "no subject 5"),
        ("ignore = 3\n", "ignore must be a list of names, not 3"),
        ("columns = { dv = 3 }\n", 'columns must be a table such as { dv = "concentration" }'),
        ("doses = 3\n", 'doses must be a table such as { 1 = "gut" }'),
        ("doses = { 1 = { lag = 1 } }\n", "doses, 1: expected the name of a state, or a table"),
        ('columns = { dose = "AMT" }\n', "'dose' is not a column that is read"),
        ("docs = 1\n", "unknown key 'docs'; did you mean 'doses'"),
    ],
)
def test_mistakes_in_the_table_are_told(tmp_path: Path, data: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, data=DATA + data)


@pytest.mark.parametrize(
    ("rows", "data", "message"),
    [
        (ROWS.splitlines()[0] + "\n", DATA, "rows.csv has a header, but no rows"),
        (ROWS, DATA.replace("wt", "weight"), "'weight' is not a constant of the model.*; declare it under"),
        (ROWS.replace(",80", ",.").replace(",60", ",."), DATA, "line 2: 'wt' has no value for subject 1"),
        (ROWS, '[data]\nformat = "nonmem"\nfile = 3\n', "file must be the name of a CSV file"),
    ],
)
def test_what_is_missing_is_told(rows: str, data: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, rows, data)


def test_compartments_may_be_called_by_their_names(tmp_path: Path) -> None:
    named = ROWS.replace("100,1,1,", "100,1,GUT,").replace("20,4,1,", "20,4,Gut,").replace(".,0,2,", ".,0,CONC,")
    named = named.replace("50,1,2,", "50,1,blood,")
    found, expected = read(tmp_path, named), read(tmp_path)
    for subject in (0, 1):
        assert events(found, subject) == events(expected, subject)
        assert found.experiments[subject].observations[0].times.size == 3 - subject


@pytest.mark.parametrize(
    "row",
    ["1,0,100,1,1,.,1,2,12,0,80", "1,0,100,1,1,.,1,.,.,5,80"],
    ids=["additional doses", "an infusion"],
)
def test_a_reset_does_not_leave_doses_pending(row: str, tmp_path: Path) -> None:
    rows = "\n".join([ROWS.splitlines()[0], row, "1,6,20,4,1,.,1,.,.,.,80", "1,9,.,0,2,7.5,0,.,.,.,80"])
    with pytest.raises(DataError, match=r"line 3: a reset .* while earlier doses may still have to give something"):
        read(tmp_path, rows + "\n")
