"""After a failure: which parameter is worst, and a command that keeps what was asked for and changes what helps."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray

from equifinal.results.diagnostics import Concern
from equifinal.words.next_step import least_effective, next_lines, next_step


class Results:
    """What the words look at: attributes, and the size of the posterior."""

    def __init__(self, asked: dict, source: str = "", folder: str = "my run", draws: int = 500) -> None:
        self.attrs = {"asked": json.dumps(asked), "seed": asked.get("seed", 0)}
        self.attrs |= {"source": source, "folder": folder} if source else {}
        self.posterior = xarray.Dataset({"k": (("chain", "draw"), np.zeros((4, draws)))})


DISAGREE = Concern("chains disagree", ("k",), "k", {"limit": 1.01, "rhat": 1.3}, serious=True)
FEW = Concern("few effective draws", ("k",), "k", {"limit": 100, "ess": 50, "factor": 8})


@pytest.mark.parametrize(
    ("asked", "concerns", "command"),
    [
        ({}, [DISAGREE], "equifinal fit a.toml --seed 1 AGAIN"),
        ({"seed": 7, "chains": 6}, [DISAGREE], "equifinal fit a.toml --seed 8 --chains 6 AGAIN"),
        ({"sampler": "random-walk"}, [DISAGREE], "equifinal fit a.toml AGAIN"),
        ({"draws": 500}, [FEW], "equifinal fit a.toml --draws 4000 AGAIN"),
        ({"draws": 500, "chains": 1}, [Concern("one chain")], "equifinal fit a.toml --draws 500 --chains 4 AGAIN"),
        (
            {"options": {"aux": 8}},
            [Concern("noisy estimates", numbers={"points": 64})],
            "equifinal fit a.toml --aux 64 AGAIN",
        ),
        ({"max_time": 9.0}, [Concern("interrupted")], "equifinal fit a.toml --max-time 9.0 --out 'my run'"),
        ({}, [Concern("misfit", serious=True)], "equifinal predict 'my run' --prior --plot prior.png"),
        ({}, [Concern("empty points")], ""),
    ],
)
def test_the_command(asked: dict, concerns: list[Concern], command: str) -> None:
    again = "--out 'my run' --overwrite"
    assert next_step(Results(asked, "a.toml"), concerns) == command.replace("AGAIN", again)  # type: ignore[arg-type]


def test_in_python_it_is_a_call() -> None:
    assert next_step(Results({"draws": 500}), [FEW]) == "sample(problem, draws=4000)"  # type: ignore[arg-type]


def test_so_many_draws_that_another_sampler_is_better() -> None:
    far = Concern("few effective draws", ("k",), "k", {"factor": 1e6})
    assert "--draws" not in next_step(Results({"sampler": "geometric"}, "si"), [far])  # type: ignore[arg-type]


def test_the_least_effective_parameter_is_named() -> None:
    rows = {
        "a": {"ess_bulk": 900.0, "ess_tail": 40.0},
        "b": {"ess_bulk": 90.0, "ess_tail": 80.0},
        "c": {"ess_bulk": np.nan, "ess_tail": np.nan},
    }
    assert least_effective(rows) == ("a", 40.0)
    lines = next_lines(Results({}), [DISAGREE], rows)  # type: ignore[arg-type]
    assert lines == ["fewest effective draws: a, 40", "next: sample(problem, seed=1)"]
    assert next_lines(Results({}), [], rows) == []  # type: ignore[arg-type]
