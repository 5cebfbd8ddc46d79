"""Small problems that several tests use."""

from __future__ import annotations

from functools import cache

import numpy as np

from equifinal.examples import example_path
from equifinal.formats.toml import load, loads
from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem

DECAY = '''
[model]
equations = """
x' = -k*x
y = x
x(0) = a
"""
outputs = ["y"]
[quantities]
half_life = "0.693147/k"
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
a = { prior = "normal", mean = 2, sd = 1, lower = 0 }
[noise]
y = { family = "normal", sd = 0.2 }
[data]
time = [0, 0.5, 1, 2, 4]
y = [1.9, 1.6, 1.1, 0.8, 0.1]
'''

# to stand in place of its [data]
ARMS = """
[[experiment]]
name = 'one'
data = { time = [0, 1, 4], y = [1.9, 1.1, 0.1] }
[[experiment]]
name = 'two'
data = { time = [0.5, 2], y = [1.6, 0.8] }
[[experiment]]
name = 'three'
data = { time = [0, 3], y = [2.1, 0.4] }
"""


@cache
def decay() -> Posterior:
    """Exponential decay: two identifiable parameters, solved in closed form."""
    return Posterior(loads(DECAY, name="decay"))


@cache
def si() -> Posterior:
    return Posterior(load(example_path("si")))


def decay_log_likelihood(theta: np.ndarray) -> np.ndarray:
    """The log likelihood of `decay` in closed form."""
    (entry,) = decay().problem.experiments[0].observations
    k, a = theta[:, 0, None], theta[:, 1, None]
    residual = entry.values - a * np.exp(-k * entry.times)
    return np.sum(-0.5 * (residual / 0.2) ** 2 - np.log(0.2 * np.sqrt(2 * np.pi)), axis=1)


def quick_problem() -> Problem:
    return loads(DECAY, name="decay")
