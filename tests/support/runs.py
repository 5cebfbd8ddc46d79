"""Small finished runs that several tests look at, each made once in a process."""

from __future__ import annotations

from functools import cache

import numpy as np
from arviz import InferenceData

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.problem.problem import Problem
from equifinal.report.page import report_page
from equifinal.results.meaning import Meaning, interpret
from equifinal.results.store import identifiability_of, store_identifiability
from equifinal.studies.sample import sample
from tests.support.problems import DECAY

# a parameter of the noise, increments with a lost report, two experiments, and names that look like markup
AWKWARD = '''
[model]
equations = """
x' = -k1*x
z' = -k2*z
y = x + z
total' = k1*x
"""
outputs = ["y", "total"]
[constants]
start = 2
[quantities]
slow = "k1*k2"
[parameters]
k1 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
k2 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
x_0 = { prior = "uniform", lower = 0.5, upper = 4 }
z_0 = { prior = "uniform", lower = 0.5, upper = 4 }
total_0 = { prior = "uniform", lower = 0, upper = 1 }
sigma = { prior = "exponential", rate = 5 }
[noise]
y = { family = "normal", sd = "sigma" }
total = { family = "normal", sd = 0.1 }
[[experiment]]
name = "<b>first</b> & $a_b$"
data = { time = [0, 1, 2, 4], y = [3.9, 2.1, 1.2, 0.5], total = ["", 1.2, "", 0.3], increments = ["total"] }
[[experiment]]
name = "second"
initial = { x = "start" }
data = { time = [0.5, 2], y = [3.0, 1.1] }
'''

# two parameters of which data see the product only, and a state that nobody measures but data determine
PRODUCT = '''
[model]
equations = """
u' = -a*b*u
v' = u - v
w' = a*u
u(0) = 1
v(0) = 0
w(0) = 0
"""
outputs = ["u"]
[parameters]
a = { prior = "uniform", lower = 0.1, upper = 3 }
b = { prior = "uniform", lower = 0.1, upper = 3 }
[noise]
u = { family = "normal", sd = 0.02 }
[data]
time = [0, 0.5, 1, 2, 3]
u = [1.01, 0.62, 0.36, 0.14, 0.05]
'''

# which of the two is fast, no data can tell
SWAP = '''
[model]
equations = """
x' = -k1*x
z' = -k2*z
x(0) = 1
z(0) = 1
y = x + z
"""
outputs = ["y"]
[parameters]
k1 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
k2 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
y = { family = "normal", sd = 0.02 }
[data]
time = [0.2, 0.5, 1, 2, 4]
y = [1.55, 1.12, 0.76, 0.44, 0.17]
'''


def problem_named(name: str) -> Problem:
    texts = {"decay": DECAY, "awkward": AWKWARD, "product": PRODUCT, "swap": SWAP}
    return loads(texts[name], name=name) if name in texts else load(example_path(name))


@cache
def run(name: str, sampler: str = "auto", draws: int = 400) -> InferenceData:
    """A short run with its analysis, as a fit would save it."""
    data = sample(problem_named(name), sampler=sampler, chains=4, draws=draws, seed=3, progress=False)
    store_identifiability(data, identifiability_of(data))
    return data


@cache
def meaning(name: str) -> Meaning:
    return interpret(run(name))


@cache
def page(name: str) -> str:
    return report_page(run(name))


def rows(problem: Problem, **values: float) -> np.ndarray:
    """One row of parameters."""
    return np.array([[values[name] for name in problem.parameters]])
