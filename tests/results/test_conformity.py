"""Data, model and priors that do not conform are told, and those that do are not."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.formats.toml import loads
from equifinal.prediction.predict import check, posterior_rows
from equifinal.problem.data import Observations
from equifinal.problem.noise import Noise
from equifinal.problem.problem import Problem
from equifinal.results.conformity import Discord, discords, foreseen, replicate_scatter
from equifinal.results.meaning import interpret
from equifinal.studies.sample import sample
from equifinal.words.conformity import discord_sentence

DECAY = """
[model]
equations = "x' = -k*x; x(0) = a"
outputs = ["x"]
[parameters]
k = { prior = PRIOR }
a = { prior = "lognormal", meanlog = 1, sdlog = 1 }
NOISE
[noise]
x = { family = "normal", sd = SD }
[data]
time = TIMES
x = VALUES
"""
PRIORS = {"lognormal": '"lognormal", meanlog = -1, sdlog = 1', "uniform": '"uniform", lower = 0.5, upper = 2'}
TIMES = np.repeat(np.linspace(0.2, 6, 15), 2)
SCATTER = np.random.default_rng(3).standard_normal(TIMES.size)
DECAYING = 2 * np.exp(-0.4 * TIMES) + 0.05 * SCATTER


def _problem(values: np.ndarray, *, prior: str = "lognormal", sd: str = "0.05", noise: str = "") -> Problem:
    text = DECAY.replace("PRIOR", PRIORS[prior]).replace("NOISE", noise).replace("SD", sd)
    return loads(text.replace("TIMES", str(TIMES.tolist())).replace("VALUES", str(values.tolist())))


def _found(problem: Problem) -> dict[tuple[str, str], Discord]:
    data = sample(problem, draws=500, seed=1, progress=False)
    told = discords(interpret(data), check(problem, posterior_rows(data, problem)))
    return {(discord.kind, discord.name): discord for discord in told}


def test_where_everything_conforms_nothing_is_told() -> None:
    assert not _found(_problem(DECAYING))


def test_data_in_other_units_lie_in_a_tail_of_the_prior() -> None:
    found = _found(_problem(1e3 * DECAYING, sd="50"))
    assert ("in a tail", "a") in found
    said = discord_sentence(found["in a tail", "a"])
    assert "a lies beyond 99.99% of its prior, among the largest values" in said
    assert "check its units" in said


def test_a_prior_that_excludes_the_truth() -> None:
    found = _found(_problem(2 * np.exp(-0.3 * TIMES) + 0.05 * SCATTER, prior="uniform"))
    assert ("at the lower bound", "k") in found
    assert "lower bound of its prior, 0.5" in discord_sentence(found["at the lower bound", "k"])


def test_a_model_that_misses_something() -> None:
    """A constant background: residuals too large for the noise that was given, and alike next to each other."""
    found = _found(_problem(DECAYING + 0.5))
    assert ("large residuals", "x") in found
    assert ("trend", "x") in found
    assert "standard deviations" in discord_sentence(found["large residuals", "x"])


def test_noise_that_stands_for_what_the_model_misses() -> None:
    noise = 's = { prior = "lognormal", meanlog = -1, sdlog = 1 }'
    found = _found(_problem(DECAYING + np.sin(2 * TIMES), sd='"s"', noise=noise))
    assert ("above replicates", "s") in found
    assert "replicates of the data scatter by 0.0" in discord_sentence(found["above replicates", "s"])


def test_scatter_of_replicates() -> None:
    noise, values = Noise("normal", sd="s"), 5 + 0.3 * np.random.default_rng(0).standard_normal(2000)
    assert replicate_scatter(Observations("x", np.repeat(np.arange(1000.0), 2), values, noise)) == pytest.approx(
        0.3, rel=0.1
    )
    assert replicate_scatter(Observations("x", [1, 2, 3], [1, 2, 3], noise)) == np.inf


def test_before_the_fit_data_are_set_beside_what_the_priors_predict() -> None:
    """In other units, data are beyond all predictions; in the right ones they are not."""
    assert not foreseen(_problem(DECAYING))
    (found,) = foreseen(_problem(1e9 * DECAYING, sd="5e7"))
    assert (found.kind, found.name, found.numbers["of"]) == ("above predictions", "x", 30)
    assert "30 of 30 observations of x lie above 99.5% of what your priors predict" in discord_sentence(found)
    (found,) = foreseen(_problem(-50 - DECAYING))
    assert found.kind == "below predictions"


def test_the_rule_before_the_fit_rarely_errs_where_priors_are_right() -> None:
    """Data simulated from the priors themselves, 60 data sets: at most 1% may be told, so 4 have p = 0.003."""
    rng, told = np.random.default_rng(8), 0
    for _ in range(60):
        k, a = np.exp(rng.normal(-1, 1)), np.exp(rng.normal(1, 1))
        told += bool(foreseen(_problem(a * np.exp(-k * TIMES) + 0.05 * rng.standard_normal(TIMES.size))))
    assert told < 4
