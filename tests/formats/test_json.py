"""Results carry their problem: it must come back whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.toml import loads
from equifinal.results.store import load, problem_of, save
from tests.support.problems import DECAY, EXPERIMENTS
from tests.support.runs import AWKWARD, problem_named, run

FORCED = """
[model]
equations = "x' = u - k*x"
outputs = ["x"]
inputs = ["u"]
[parameters]
k = { prior = "student-t", df = 3, location = 1, scale = 0.5, lower = 0 }
x_0 = { prior = "halfcauchy", scale = 2, coordinate = "identity" }
[noise]
x = { family = "student-t", df = 4, scale = 0.2, relative = 0.1 }
[inputs]
u = { time = [0, 2, 5], value = [1, 0, 3], interpolation = "step" }
[data]
time = [1, 2, 2, 3]
x = [1, 2, 2.5, 1.5]
[solver]
rtol = 1e-7
"""


@pytest.mark.parametrize(
    "problem",
    [
        problem_named("si"),
        problem_named("hiv"),
        problem_named("influenza"),
        loads(AWKWARD, name="awkward"),
        loads(DECAY.replace("[data]", "[other]").split("[other]")[0] + EXPERIMENTS, name="several"),
        loads(FORCED, name="forced"),
        loads(FORCED.replace("scale = 0.2,", "scale = 'x_0/7 + 0.1*m', below = 2,"), name="expression and limit"),
        loads(FORCED.replace("scale = 0.2", "scale = [1, 2, 3, 4]").replace("2.5", "'<3'"), name="rows and limits"),
    ],
    ids=lambda p: p.name,
)
def test_what_is_stored_is_the_same_problem(problem) -> None:
    again = problem_from_json(problem_to_json(problem))
    assert again.fingerprint() == problem.fingerprint()
    assert again.name == problem.name
    assert again.parameters == problem.parameters
    assert {k: str(v) for k, v in again.priors.items()} == {k: str(v) for k, v in problem.priors.items()}
    assert problem_to_json(again) == problem_to_json(problem)


def test_an_increment_remembers_its_interval_where_a_report_was_lost() -> None:
    again = problem_from_json(problem_to_json(loads(AWKWARD)))
    total = next(o for o in again.experiments[0].observations if o.output == "total")
    np.testing.assert_array_equal(total.times, [1, 4])
    np.testing.assert_array_equal(total.previous, [0, 2])  # not 1: the report at 2 was lost, not late


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"format": 99}', '{"format": 1, "experiments": []}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="not a stored problem"):
        problem_from_json(text)


def test_priors_are_checked_when_read() -> None:
    document = json.loads(problem_to_json(loads(DECAY)))
    document["priors"]["k"]["lower"] = 5
    with pytest.raises(DataError, match="must be below"):
        problem_from_json(json.dumps(document))


def test_results_give_their_problem_back(tmp_path) -> None:
    data = run("decay")
    found = load(save(data, tmp_path / "r.nc"))
    assert problem_of(found).fingerprint() == found.attrs["fingerprint"]
    del found.constant_data
    with pytest.raises(DataError, match="do not contain their problem"):
        problem_of(found)


def test_a_problem_with_many_data_is_kept_too(tmp_path) -> None:
    n = 30_000  # more than an attribute of a netCDF file can hold
    times = ", ".join(str(i / 1000) for i in range(n))
    text = DECAY.split("[data]")[0] + f"[data]\ntime = [{times}]\ny = [{', '.join(['1.25'] * n)}]\n"
    problem = loads(text)
    data = run("decay").copy()
    data.constant_data["problem"] = np.array(problem_to_json(problem))
    assert problem_of(load(save(data, tmp_path / "r.nc"))).fingerprint() == problem.fingerprint()
