"""Simulated observations: scattered by expressions and by row, censored where real ones would be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.prediction.fresh_data import from_prior
from equifinal.prediction.predict import check, predict
from equifinal.prediction.simulate import simulate
from equifinal.words.problem import problem_words
from equifinal.words.simulations import tables, write

TEXT = '''
[model]
equations = """
x' = -k*x
x(0) = a
y = 2*x
"""
outputs = ["y"]
[quantities]
half = "x/2"
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
a = { prior = "lognormal", meanlog = 3, sdlog = 0.3 }
e = { prior = "uniform", lower = 0.1, upper = 0.3 }
[noise]
y = { @ }
[data]
time = [0, 0, 1, 1, 2, 2, 3]
y = [41, 38, 22, "<25", "", 11, 5]
'''
GROWING = 'family = "normal", sd = "e*m", below = 8, above = 60'
ROWS = TEXT.replace("@", 'family = "normal", sd = [1, 2, 3, 4, 5, 6, 0.001]').replace("e = {", "# e = {")
VALUES = {"k": 0.6, "a": 20.0, "e": 0.2}


VALUES_OF_ROWS = {"k": 0.6, "a": 20.0}


def problem(noise: str):
    return loads(TEXT.replace("@", noise))


def test_noise_that_is_an_expression() -> None:
    """At time 0 the standard deviation is 0.2 x 40."""
    loaded = loads(TEXT.replace("@", 'family = "normal", sd = "e*m"').replace('"<25"', "25"))
    drawn = [simulate(loaded, VALUES, times=[0], rng=np.random.default_rng(i))[0].observed["y"][0] for i in range(400)]
    # |z| < 5
    assert abs(np.mean(drawn) - 40) < 5 * 8 / 20
    assert abs(np.std(drawn) - 8) < 5 * 8 / np.sqrt(800)


def test_a_simulation_is_censored_and_can_be_read_again(tmp_path: Path) -> None:
    loaded = problem(GROWING)
    (made,) = simulate(loaded, VALUES, times=[0, 1, 2, 3, 6], rng=np.random.default_rng(1))
    assert made.observed["y"][-1] == 8
    assert made.censored["y"].tolist() == [0, 0, 0, -1, -1]
    assert list(made.outputs) == ["y"]
    made_tables = tables(loaded, VALUES, np.array([0.0, 1, 2, 3, 6]), True, False, 1)
    write(made_tables, tmp_path / "new.csv")
    assert (tmp_path / "new.csv").read_text().splitlines()[-1] == "6,<8"
    assert made_tables[0].to_json()["censored"] == {"y": [0, 0, 0, -1, -1]}
    head = TEXT.replace("@", 'family = "normal", sd = "e"').split("[data]")[0]
    (entry,) = loads(head + "[data]\nfile = 'new.csv'\n", folder=tmp_path).experiments[0].observations
    assert entry.censored.tolist() == [0, 0, 0, -1, -1]


def test_fresh_data_are_censored_as_the_data_are() -> None:
    """In rows with a limit of their own, at that one."""
    posterior = Posterior(problem(GROWING))
    (old,) = posterior.problem.experiments[0].observations
    assert old.below.tolist() == [8, 8, 8, 25, 8, 8]
    sides, limits = [], []
    for i in range(60):
        (entry,) = from_prior(posterior, np.random.default_rng(i)).problem.experiments[0].observations
        assert (entry.values >= old.below).all()
        assert (entry.values <= 60).all()
        sides.append(entry.censored)
        limits.append(entry.values[entry.censored == -1])
    assert {-1, 0, 1} == set(np.concatenate(sides).tolist())
    assert {8, 25} == set(np.concatenate(limits).tolist())


def test_predictions_stop_at_limits() -> None:
    loaded = problem(GROWING.replace("below = 8, ", ""))
    theta = np.tile([VALUES[name] for name in loaded.parameters], (200, 1))
    theta[:, 1] *= np.random.default_rng(0).lognormal(0, 0.4, 200)
    (checked,) = check(loaded, theta)
    assert checked.censored.tolist() == [0, 0, 0, -1, 0, 0]
    assert checked.replicated[0, 3] == 25  # censored at its own limit
    assert checked.replicated[0, 2] < 20
    assert checked.replicated.max() <= 60
    loaded = loads(TEXT.replace("@", GROWING).replace('"<25"', "25"))
    bands = predict(loaded, theta, until=8)
    band = bands.named("y").observed
    assert band is not None
    assert (band.min(), band.max()) == (8, 60)
    assert bands.named("half").kind == "quantity"
    np.testing.assert_allclose(bands.named("half").mean, bands.named("y").mean / 4)


def test_noise_by_row_is_known_there_alone() -> None:
    loaded = loads(ROWS)
    (made,) = simulate(loaded, VALUES_OF_ROWS, rng=np.random.default_rng(1))
    assert made.times.tolist() == [0, 1, 2, 3]
    assert made.observed["y"][-1] == pytest.approx(40 * np.exp(-1.8), abs=0.01)
    with pytest.raises(DataError, match="given by row: it is known at the times of the data only"):
        simulate(loaded, VALUES_OF_ROWS, times=[0.5], rng=np.random.default_rng(1))
    theta = np.array([[VALUES_OF_ROWS[name] for name in loaded.parameters]] * 3)
    assert predict(loaded, theta).named("y").observed is None
    assert np.isfinite(check(loaded, theta)[0].replicated).all()


def test_in_words() -> None:
    words = problem_words(problem(GROWING))
    assert (
        "y: 6 values, at times 0 to 3, 2 below a limit; noise normal(sd = e*y), censored below 8, censored above 60"
        in words
    )
    assert "noise laplace(scale = 0.001 to 6 by row), censored above 2 to 70 by row" in problem_words(
        loads(ROWS.replace('"normal"', '"laplace"').replace("sd =", "above = [70, 70, 70, 60, 60, 60, 2], scale ="))
    )
