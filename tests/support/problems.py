"""Small problems that several tests use."""

from __future__ import annotations

from functools import cache

import numpy as np

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.formats.toml import loads
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
EXPERIMENTS = """
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

SCALED = '''
[model]
equations = """
x' = -k*x
y = s*x
x(0) = a
"""
outputs = ["y"]
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
s = { prior = "lognormal", meanlog = 0, sdlog = 1 }
a = { prior = "gamma", shape = 2, rate = 1 }
[noise]
y = { family = "normal", sd = 0.2 }
[data]
time = [0, 0.5, 1, 2, 4]
y = [1.9, 1.6, 1.1, 0.8, 0.1]
'''

TWO_STAGES = '''
[model]
equations = """
x' = -k*x
z' = k*x - s*z
y = b*z
x(0) = 4
z(0) = 0
"""
outputs = ["y"]
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
s = { prior = "lognormal", meanlog = 0, sdlog = 1 }
b = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
y = { family = "normal", sd = 0.2 }
[data]
time = [0, 0.5, 1, 2, 4]
y = [0.1, 0.5, 0.7, 0.7, 0.2]
'''

# a broad mode at p = -2, and a narrow one at p = 2 of three times its mass that hardly any prior draw is high up on
HIDDEN = '''
[model]
equations = """
x' = 0
v' = 0
y' = 0
z' = 0
x(0) = (p + 2)/0.6*(p - 2)^4/((p - 2)^4 + (p + 2)^4)
v(0) = (p - 2)/0.03*(p + 2)^4/((p - 2)^4 + (p + 2)^4)
y(0) = (q/0.6*(p - 2)^4 + q/0.03*(p + 2)^4)/((p - 2)^4 + (p + 2)^4)
z(0) = 3.85*(p - 2)^4/((p - 2)^4 + (p + 2)^4)
"""
outputs = ["x", "v", "y", "z"]
[parameters]
p = { prior = "uniform", lower = -4, upper = 4 }
q = { prior = "uniform", lower = -4, upper = 4 }
[noise]
x = { family = "normal", sd = 1 }
v = { family = "normal", sd = 1 }
y = { family = "normal", sd = 1 }
z = { family = "normal", sd = 1 }
[data]
time = [0]
x = [0]
v = [0]
y = [0]
z = [0]
'''


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


@cache
def scaled() -> tuple[Posterior, Fibre]:
    """Decay, seen through an unknown scale: only k and s*a can be known."""
    problem = loads(SCALED, name="scaled")
    return Posterior(problem), fibre_of(problem)


@cache
def hidden() -> tuple[Posterior, Fibre]:
    problem = loads(HIDDEN, name="hidden")
    return Posterior(problem), Fibre(["p", "q"], problem.priors)


# data see V*exp(la) only, which is no rational function: the combinations for samplers are la and V, each by itself
FINER = """
[model]
equations = '''
x' = -exp(la)*V*x
u' = exp(la)*x
w' = exp(la)*V*x
x(0) = 1
u(0) = 0
w(0) = 0
'''
outputs = ["x"]
[parameters]
la = { prior = "normal", mean = 0, sd = 1 }
V = { prior = "lognormal", meanlog = 0, sdlog = 1 }
[noise]
x = { family = "normal", sd = 0.05 }
[data]
time = [0.5, 1, 2]
x = [0.6, 0.37, 0.14]
"""

# data see the product a*s only; at its start the output is 0/0, and exact algebra says nothing
UNDEFINED_AT_FIRST = """
[model]
equations = '''
A' = k - a*s*A
B' = a*s*A - 0.3*B
share = A/(A + B)
A(0) = 0
B(0) = 0
'''
outputs = ["share"]
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 5 }
a = { prior = "uniform", lower = 0.1, upper = 5 }
s = { prior = "uniform", lower = 0.1, upper = 5 }
[noise]
share = { family = "normal", sd = 0.1 }
[data]
time = [1, 2, 3, 4, 6]
share = [0.7, 0.5, 0.4, 0.3, 0.25]
"""
