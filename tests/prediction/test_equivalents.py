"""Parameter vectors with the same output: what is refused, what is left out, and how it is told."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from equifinal.errors import DataError, SolverError
from equifinal.formats.toml import loads
from equifinal.prediction import equivalents as room
from equifinal.prediction.equivalents import Equivalents, equivalents
from tests.support.problems import FINER
from tests.support.runs import problem_named

AT = {"k1": 0.5}  # where k1 is k2, as at the medians, there is nothing to exchange


@cache
def swapped() -> Equivalents:
    return equivalents(problem_named("swap"), AT, n=5)


def said(found: Equivalents) -> str:
    return " ".join(str(found).split())


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match=r"equivalents needs a Problem, such as equifinal.load\(FILE\) gives, not 'si'"):
        equivalents("si")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'at' must map names of parameters to numbers"):
        equivalents(problem_named("swap"), [1.0])  # type: ignore[arg-type]


def test_where_the_solver_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector at which it fails is left out and told, unless it is the given one."""
    solve, problem = room.simulate, problem_named("swap")
    given = dict(zip(swapped().fibre.names, swapped().theta[0], strict=True))

    def fails(where: bool) -> Any:
        def simulate(problem: Any, values: Any, **options: Any) -> Any:
            if (values == given) is where:
                raise SolverError("too many steps")
            return solve(problem, values, **options)

        return simulate

    monkeypatch.setattr(room, "simulate", fails(False))
    found = equivalents(problem, AT, n=5)
    assert len(found.theta) == 1
    assert len(found.unsolved) == len(swapped().theta) - 1
    assert "! Left out because the solver failed" in said(found)
    assert "(too many steps)" in said(found)
    monkeypatch.setattr(room, "simulate", fails(True))
    with pytest.raises(SolverError, match="at the given parameters: too many steps"):
        equivalents(problem, AT, n=5)


def test_headlines() -> None:
    found = swapped()
    assert found.fibre.dimension == 0
    assert found.agree
    assert f"These {len(found.theta)} parameter vectors give the same output." in said(found)
    apart = replace(found, differences=dict.fromkeys(found.differences, 0.1))
    assert "were expected to give the same output, but in simulations they do not" in said(apart)
    assert "! The given parameters are a special point" in said(replace(found, certain=False))
    one = {"theta": found.theta[:1], "trajectories": found.trajectories[:1]}
    alone = replace(found, **one)
    assert "There are no other parameters inside the priors' support with the same output." in said(alone)
    assert "No other parameters were found" in said(replace(alone, certain=False))
    assert "with the same values of the given combinations" in said(replace(alone, by_hand=True))
    assert "Only the given parameters were asked for" in said(replace(alone, asked=1))
    assert np.array_equal(found.theta[0], alone.theta[0])


def test_a_finer_fibre_shows_no_more_than_it_can() -> None:
    """V = 2 and la = -log(2) have the same output as V = 1 and la = 0."""
    found = equivalents(loads(FINER), {"la": 0.0, "V": 1.0})
    text = said(found)
    assert "No other parameters were found" in text
    assert "more parameters than shown have this output" in text
    assert found.to_json()["finer"]
