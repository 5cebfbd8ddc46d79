"""Before there are data: what has to be given is asked for, and then all is as with data."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.formats.toml import loads
from equifinal.prediction.equivalents import equivalents
from equifinal.prediction.predict import posterior_rows, predict
from equifinal.prediction.simulate import simulate
from equifinal.problem.problem import Problem
from tests.support.problems import DECAY
from tests.support.runs import run

VALUES = {"k": 0.5, "a": 2.0}


@pytest.fixture
def bare() -> Problem:
    return loads(DECAY.split("[data]")[0])


def test_times_must_be_given(bare: Problem) -> None:
    with pytest.raises(DataError, match=r"no data, so the simulation times must be given \(`times`\)"):
        simulate(bare, VALUES)
    with pytest.raises(DataError, match=r"the prediction times must be given \(`times` or `until`\)"):
        predict(bare, np.array([[0.5, 2.0]]))
    with pytest.raises(DataError, match="the times at which to compare the outputs must be given"):
        equivalents(bare, VALUES)
    (found,) = simulate(bare, VALUES, times=[0, 1, 2])
    np.testing.assert_allclose(found.outputs["y"], 2 * np.exp(-0.5 * np.arange(3)), rtol=1e-5)
    band = predict(bare, np.array([[0.5, 2.0]]), until=4).named("y")
    np.testing.assert_allclose(band.mean, 2 * np.exp(-0.5 * band.times), rtol=1e-5)


def test_values_must_be_given(bare: Problem) -> None:
    with pytest.raises(DataError, match="no value is given for a"):
        simulate(bare, {"k": 0.5}, times=[1])
    with pytest.raises(DataError, match="'kk' is not a parameter; did you mean 'k'"):
        simulate(bare, VALUES | {"kk": 1.0}, times=[1])
    for value in (True, "1", float("nan")):
        with pytest.raises(DataError, match="parameter 'k' must be a finite number, not"):
            simulate(bare, VALUES | {"k": value}, times=[1])  # type: ignore[dict-item]


def test_draws_must_be_those_of_the_problem() -> None:
    prior = "q = { prior = 'uniform', lower = 0, upper = 1 }\n[noise]"
    other = loads(DECAY.replace("x' = -k*x", "x' = -k*x - q").replace("[noise]", prior))
    with pytest.raises(DataError, match="these results have no draws of q"):
        posterior_rows(run("decay"), other)
