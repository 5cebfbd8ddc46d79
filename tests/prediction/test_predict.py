"""Bands against closed forms, checks against data of known truth, and which trajectories data determine."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import DataError, SolverError
from equifinal.formats.toml import loads
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import LEVELS, check, posterior_rows, predict, prior_rows
from equifinal.words.predictions import predict as prediction_table
from tests.support.problems import DECAY
from tests.support.runs import AWKWARD, meaning, problem_named, rows, run

BLOW_UP = """
[model]
equations = "x' = x^2"
outputs = ["x"]
[parameters]
x_0 = { prior = "uniform", lower = 0, upper = 20 }
[noise]
x = { family = "normal", sd = 1 }
[data]
time = [1]
x = [1]
"""


def test_bands_are_the_quantiles_of_the_closed_form() -> None:
    problem = loads(DECAY)
    theta = prior_rows(problem, 300, seed=1)
    found = predict(problem, theta, times=[0, 1, 7.5])  # beyond the data, which end at 4
    k, a = theta[:, 0], theta[:, 1]
    expected = np.quantile(a[:, None] * np.exp(-k[:, None] * np.array([0, 1, 7.5])), LEVELS, axis=0)
    np.testing.assert_allclose(found.named("y").quantiles, expected, rtol=1e-4)
    np.testing.assert_allclose(found.named("x").quantiles, expected, rtol=1e-4)
    assert found.named("x").kind == "state"
    assert (found.draws, found.failed) == (300, 0)


def test_new_observations_scatter_as_the_noise_says() -> None:
    problem = loads(DECAY)
    theta = np.tile(rows(problem, k=0.5, a=2.0), (20_000, 1))
    band = predict(problem, theta, times=[2.0]).named("y")
    assert band.observed is not None
    # 20,000 draws: the quantiles are good to about 1% of the standard deviation
    np.testing.assert_allclose(
        band.observed[:, 0], 2 * np.exp(-1) + 0.2 * np.array([-1.645, -0.674, 0, 0.674, 1.645]), atol=0.02
    )
    np.testing.assert_allclose(band.quantiles[:, 0], 2 * np.exp(-1), rtol=1e-4)


def test_noise_parameters_are_those_of_each_draw() -> None:
    problem = loads(AWKWARD)
    one = rows(problem, k1=1, k2=2, x_0=1, z_0=1, total_0=0, sigma=0.001)
    other = rows(problem, k1=1, k2=2, x_0=1, z_0=1, total_0=0, sigma=5.0)
    names = [e.name for e in problem.experiments]
    quiet = predict(problem, np.tile(one, (500, 1)), times=[1]).named("y", names[0])
    loud = predict(problem, np.tile(other, (500, 1)), times=[1]).named("y", names[0])
    assert np.ptp(quiet.observed) < 0.01 < 5 < np.ptp(loud.observed)
    assert predict(problem, one, times=[1]).named("total", names[0]).observed is None  # increments have no curve


@pytest.mark.parametrize(("sd", "few", "many"), [(0.2, 0.80, 0.97), (0.05, 0.1, 0.6)])
def test_coverage_tells_whether_the_noise_fits(sd: float, few: float, many: float) -> None:
    times = np.linspace(0.01, 4, 300)
    truth = 2 * np.exp(-0.7 * times) + 0.2 * np.random.default_rng(5).standard_normal(300)
    head = DECAY.split("[data]")[0].replace("sd = 0.2", f"sd = {sd}")
    problem = loads(f"{head}[data]\ntime = {times.tolist()}\ny = {truth.tolist()}\n")
    theta = np.tile(rows(problem, k=0.7, a=2.0), (2000, 1))
    (found,) = check(problem, theta)
    assert few < found.inside_90 < many  # 3.4 standard deviations of the share, either way
    assert found.inside_50 < found.inside_90
    np.testing.assert_allclose(found.residuals.std(), 0.2 / sd, rtol=0.15)


def test_increments_are_checked_as_increments() -> None:
    problem = loads(AWKWARD)
    theta = rows(problem, k1=1.0, k2=2.0, x_0=1.5, z_0=1.0, total_0=0.3, sigma=0.1)
    found = next(c for c in check(problem, theta) if c.output == "total")
    assert found.increment
    grown = 1.5 * (1 - np.exp(-np.array([0, 1, 2, 4.0])))
    np.testing.assert_allclose(found.expected[2], [grown[1] - grown[0], grown[3] - grown[2]], rtol=1e-4)


def test_increments_are_predicted_from_one_asked_time_to_the_next() -> None:
    problem = loads(AWKWARD)
    name = problem.experiments[0].name
    theta = np.tile(rows(problem, k1=1.0, k2=2.0, x_0=1.5, z_0=1.0, total_0=0.3, sigma=0.1), (4000, 1))
    seen = predict(problem, theta, times=[4, 6, 7]).named("total", name).observed
    assert np.isnan(seen[:, 0]).all()  # since when is not known
    gained = -1.5 * np.diff(np.exp(-np.array([4.0, 6.0, 7.0])))
    np.testing.assert_allclose(seen[2, 1:], gained, atol=0.008)  # medians of 4,000 with a sd of 0.1: 4 standard errors
    np.testing.assert_allclose(seen[4, 1:] - seen[0, 1:], 2 * 1.645 * 0.1, rtol=0.07)
    assert predict(problem, theta[:1], until=7).named("total", name).observed is None  # no grid of reports


def test_draws_that_cannot_be_solved_are_left_out_and_counted() -> None:
    problem = loads(BLOW_UP)
    found = predict(problem, np.array([[0.1], [10.0], [0.1]]), times=[0, 1])
    assert (found.draws, found.failed) == (3, 1)
    np.testing.assert_allclose(found.named("x").quantiles[:, 1], 1 / 9, rtol=1e-4)
    with pytest.raises(SolverError, match="no draw could be solved"):
        predict(problem, np.array([[10.0]]), times=[0, 1])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"times": [-1.0]}, "not negative"),
        ({"times": []}, "not negative"),
        ({"until": 0}, "positive"),
        ({"until": float("inf")}, "positive"),
        ({"times": [1], "until": 2}, "not both"),
        ({"times": np.linspace(0, 1, 1_000_000)}, "fewer times"),
    ],
)
def test_times_that_make_no_sense(asked: dict, words: str) -> None:
    problem = loads(DECAY)
    with pytest.raises(DataError, match=words):
        predict(problem, prior_rows(problem, 200), **asked)


def test_rows_are_taken_evenly_from_all_chains() -> None:
    data, problem = run("decay"), problem_named("decay")
    every = np.sort(data.posterior["k"].values.reshape(-1))
    taken = posterior_rows(data, problem, 200)
    assert len(taken) == 200
    assert set(taken[:, 0]) <= set(every)
    assert abs(taken[:, 0].mean() - every.mean()) < 0.5 * every.std()
    assert len(posterior_rows(data, problem, 10**9)) == every.size
    with pytest.raises(DataError, match="positive whole number"):
        posterior_rows(data, problem, 0)


# --- what the data determine ---


def test_states_that_change_along_the_fibre_depend_on_the_prior() -> None:
    found = meaning("si")
    theta = posterior_rows(run("si"), found.problem, 50)
    assert determined_trajectories(found.problem, found.fibre, theta) == {
        ("", "cases"): True,
        ("", "S"): False,
        ("", "I"): False,
    }


def test_a_state_may_be_determined_though_parameters_are_not() -> None:
    found = meaning("product")
    assert set(found.identifiability.parameters.values()) == {"not"}
    theta = posterior_rows(run("product"), found.problem, 50)
    verdicts = determined_trajectories(found.problem, found.fibre, theta)
    assert verdicts == {("", "u"): True, ("", "v"): True, ("", "w"): False}


def test_everything_is_determined_without_a_fibre_of_one() -> None:
    found = meaning("decay")
    assert determined_trajectories(found.problem, found.fibre, np.ones((3, 2))) == {("", "y"): True, ("", "x"): True}
    assert determined_trajectories(found.problem, None, np.ones((3, 2))) == {("", "y"): True, ("", "x"): None}


def test_states_that_swap_depend_on_the_prior() -> None:
    found = meaning("swap")
    theta = posterior_rows(run("swap"), found.problem, 50)
    verdicts = determined_trajectories(found.problem, found.fibre, theta)
    assert verdicts == {("", "y"): True, ("", "x"): False, ("", "z"): False}


# --- the table ---


def test_a_table_of_predictions() -> None:
    table = prediction_table(run("si"), until=20, states=["S"], draws=100)
    lines = table.to_csv().splitlines()
    assert lines[0].startswith("name,kind,identifiable,time,mean,5%")
    assert {line.split(",")[0] for line in lines[1:]} == {"cases", "S"}
    assert {line.split(",")[2] for line in lines[1:] if line.startswith("S,")} == {"no"}
    assert lines[-1].split(",")[3] == "20"
    told = table.to_json()
    assert [c["output"] for c in told["checks"]] == ["cases"]
    assert any("depends on your prior" in line for line in table.words())
    with pytest.raises(DataError, match="did you mean 'S'"):
        prediction_table(run("si"), states=["s"])


def test_what_the_prior_alone_predicts_is_wider() -> None:
    before = prediction_table(run("si"), times=[5], draws=300, prior=True)
    after = prediction_table(run("si"), times=[5], draws=300)
    assert before.checks == ()
    assert np.ptp(before.bands[0].quantiles) > 20 * np.ptp(after.bands[0].quantiles)
