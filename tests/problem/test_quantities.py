"""A quantity that depends on a constant that differs between experiments has a value for each, and is named so."""

from __future__ import annotations

import numpy as np
import pytest

import equifinal
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.toml import loads
from equifinal.formats.toml_writing import problem_to_toml
from equifinal.posterior.posterior import Posterior

TEXT = """
[model]
equations = "I' = beta*N*I - gamma*I; I(0) = 1"
outputs = ["I"]
[constants]
N = 10
[quantities]
R0 = "beta*N/gamma"
period = "1/gamma"
[parameters]
beta = { prior = "lognormal", meanlog = 0, sdlog = 1 }
gamma = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[labels]
R0 = { label = "R₀" }
[noise]
I = { family = "normal", sd = 1 }
[[experiment]]
name = "Ulm"
data = { time = [1], I = [2] }
[[experiment]]
name = "Bonn/West"
constants = { N = 30 }
data = { time = [1], I = [2] }
"""
NAMES = ["R0 [Ulm]", "period", "R0 [Bonn%2FWest]"]


def test_one_value_per_experiment() -> None:
    problem = loads(TEXT)
    assert list(problem.quantities) == NAMES
    found = Posterior(problem).quantities(np.array([[0.2, 4.0]]))
    assert [float(found[name][0]) for name in NAMES] == pytest.approx([0.5, 0.25, 1.5])
    assert problem.title("R0 [Bonn%2FWest]") == "R₀ [Bonn/West]"
    assert set(equifinal.analyse(problem).quantities) == set(NAMES)


def test_files_keep_them() -> None:
    problem = loads(TEXT)
    assert list(problem_from_json(problem_to_json(problem)).quantities) == NAMES
    again = loads(problem_to_toml(problem))
    assert sorted(again.quantities) == sorted(NAMES)
    assert again.title("R0 [Ulm]") == "R₀ [Ulm]"


def test_the_same_in_all_experiments_stays_one() -> None:
    assert list(loads(TEXT.replace("N = 30", "N = 10")).quantities) == ["R0", "period"]
