"""Outputs that are undefined at times at which nobody observed them: a share of nothing."""

from __future__ import annotations

import numpy as np
import pytest

import equifinal
from equifinal.errors import SolverError
from equifinal.formats.toml import loads
from equifinal.prediction.predict import check, predict, prior_rows
from equifinal.problem.problem import Problem
from equifinal.results.conformity import foreseen
from equifinal.words.predictions import predict as predicted

SHARE = """
[model]
equations = '''
x' = a - b*x
z' = c - b*z
x(0) = 0
z(0) = 0
share = z/(x + z)
total = x + z
'''
outputs = ["share", "total"]
[parameters]
a = { prior = "lognormal", meanlog = 0, sdlog = 1 }
b = { prior = "lognormal", meanlog = -1, sdlog = 1 }
c = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
share = { family = "normal", sd = 0.05 }
total = { family = "normal", sd = 0.2 }
[data]
time = [0, 1, 2, 4, 6]
share = [nan, 0.31, 0.35, 0.32, 0.34]
total = [0.1, 2.1, 3.5, 5.0, 5.3]
"""
VALUES = {"a": 1.0, "b": 0.4, "c": 0.5}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return loads(SHARE, name="share")


def test_a_simulation_has_no_number_there(problem: Problem) -> None:
    (found,) = equifinal.simulate(problem, VALUES)
    np.testing.assert_allclose(found.outputs["share"], [np.nan, 1 / 3, 1 / 3, 1 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(found.outputs["total"], 1.5 / 0.4 * -np.expm1(-0.4 * found.times), rtol=1e-5)
    (later,) = equifinal.simulate(problem, VALUES, times=[1.0, 2.0], rng=np.random.default_rng(0))
    assert np.isfinite(later.outputs["share"]).all()
    assert np.isfinite(later.observed["share"]).all()


def test_a_simulation_without_any_number_is_an_error(problem: Problem) -> None:
    with pytest.raises(SolverError, match="undefined"):
        equifinal.simulate(problem, VALUES, times=[0.0])


def test_priors_are_compared_with_data(problem: Problem) -> None:
    assert foreseen(problem) == []
    share, total = check(problem, prior_rows(problem, 200))
    assert np.isfinite(share.replicated).all()
    assert np.isfinite(total.replicated).all()


def test_bands_begin_where_there_is_something(problem: Problem) -> None:
    found = predict(problem, prior_rows(problem, 50), times=[0, 1, 2])
    share = next(band for band in found.bands if band.name == "share")
    assert found.failed == 0
    assert np.isnan(share.mean).tolist() == [True, False, False]
    assert np.isnan(share.quantiles).tolist() == [[True, False, False]] * 5


def test_a_fit_predicts_although_the_analysis_cannot_be_made(problem: Problem) -> None:
    data = equifinal.sample(problem, sampler="random-walk", warmup=200, draws=100, chains=2, progress=False, seed=1)
    assert "posterior_predictive" in data.groups()
    found = predicted(data, times=[0, 3])
    share, total = found.bands[:2]
    assert np.isnan(share.mean[0])
    assert np.isfinite(share.mean[1])
    assert np.isfinite(total.mean).all()
