"""The page on problem files names every family with its arguments, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.toml import loads
from equifinal.problem import noise_families, prior_families
from equifinal.problem.families import Family

PAGE = Path(__file__).parents[2] / "docs" / "problem-file.md"


def table(heading: str) -> dict[str, list[str]]:
    """For each name in the first column of the table below a heading, the names in its second."""
    text = PAGE.read_text(encoding="utf-8").split(heading, 1)[1]
    rows = [row.split("|")[1:3] for row in re.findall(r"^\|.*\|$", text.split("\n## ")[0], flags=re.MULTILINE)[2:]]
    return {name: re.findall(r"`(.+?)`", second) for first, second in rows for name in re.findall(r"`(.+?)`", first)}


def arguments(families: dict[str, Family]) -> dict[str, list[str]]:
    return {name: [argument.name for argument in family.arguments] for name, family in families.items()}


def test_noise() -> None:
    assert table("## `[noise]`") == arguments(noise_families.FAMILIES)
    for name, family in noise_families.FAMILIES.items():
        assert re.search(
            rf"^\| `{name}` .*\| {family.support.word} \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
        )


def test_priors() -> None:
    bounds = {name: ["lower", "upper"] for name, family in prior_families.FAMILIES.items() if family.needs_bounds}
    assert table("## `[parameters]`") == arguments(prior_families.FAMILIES) | bounds


BASE = '''
[model]
equations = """
gut' = -ka*gut
blood' = ka*gut - k*wt*blood + drip
conc = blood/V
gut(0) = 0
blood(0) = 0
"""
outputs = ["conc"]
inputs = ["drip"]
MODEL
[constants]
wt = 70
D = 100
[noise]
conc = { family = "normal", sd = 1 }
[inputs]
drip = 1
'''
SUBJECTS = """id,TIME,AMT,EVID,CMT,CONC,wt,SEX
1,0,100,1,1,.,70,m
1,0,10,1,2,.,70,m
1,2,.,0,2,7,70,m
2,0,50,1,1,.,60,f
2,3,.,0,2,4,60,f
"""
HAPPENING = (
    "## `[[dose]]`",
    "## `[[change]]`",
    "## An unknown onset",
    "## A steady state before",
    "## Many subjects",
    "## Labels",
)


@pytest.mark.parametrize("heading", HAPPENING)
def test_what_happens_is_read_as_the_page_writes_it(heading: str, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").split(heading, 1)[1]
    shown = re.findall(r"^```toml\n(.*?)^```$", text.split("\n## ")[0], flags=re.MULTILINE | re.DOTALL)[0]
    in_model = shown.removeprefix("[model]\n") if shown.startswith("[model]") else ""
    (tmp_path / "subjects.csv").write_text(SUBJECTS)
    problem = loads(BASE.replace("MODEL", in_model) + ("" if in_model else shown), folder=tmp_path)
    assert problem_from_json(problem_to_json(problem)).fingerprint() == problem.fingerprint()
    model = problem.model
    seen = {
        "## `[[dose]]`": len(model.events) == 1 + 6 + 4 and {"tlag", "F"} <= set(problem.parameters),
        "## `[[change]]`": len(model.events) == 2 and {"wt", "D"} == set(model.levels),
        "## An unknown onset": "t0" in problem.parameters,
        "## A steady state before": model.before is not None and model.before.constants["wt"] == 60,
        "## Many subjects": [e.name for e in problem.experiments] == ["1", "2"] and len(model.events) == 2,
        "## Labels": problem.title("conc") == "concentration (mg/L)",
    }
    assert seen[heading]
