"""Small problems as problem files, each with something that exchange formats must get right; with nominal values."""

from __future__ import annotations

DECAY = """
[model]
equations = '''
x' = -d*x
c' = d*x
x(0) = 10
c(0) = 0
'''
outputs = ["x"]
[parameters]
d = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.6 }
s = { prior = "halfnormal", sd = 1, nominal = 0.4 }
"""
ORAL = """
[model]
equations = '''
gut' = -ka*gut
blood' = ka*gut - CL/V*blood
gut(0) = 0
blood(0) = 0.5
conc = blood/V
'''
outputs = ["conc"]
[parameters]
ka = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 1.2 }
CL = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.6 }
V = { prior = "lognormal", meanlog = 1, sdlog = 1, nominal = 3 }
tl = { prior = "uniform", lower = 0.1, upper = 0.4, nominal = 0.2 }
[noise]
conc = { family = "normal", sd = "0.2 + tl", relative = 0.1 }
"""
ORAL_DATA = "[data]\ntime = [0.5, 1, 2, 4, 8]\nconc = [10, 15, 12, 9, 4]\n"
REST = """
[model]
initial = "steady state"
before = { constants = { u = 0 } }
equations = '''
x' = k*u - d*x + b
z' = x - z
x(0) = 2
z(0) = 1
y = x + z
'''
outputs = ["y"]
[constants]
u = 1
[parameters]
k = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 1.2 }
d = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.6 }
b = { prior = "uniform", lower = 0.5, upper = 3, nominal = 1.3 }
[noise]
y = { family = "log10-normal", sd = 0.1 }
"""
REST_DATA = "[data]\ntime = [0.5, 1, 2, 4]\ny = [5, 3, 2.5, 5.5]\n"
DRIVEN = """
[model]
equations = "x' = -d*x + u\\nx(0) = 10"
outputs = ["x"]
inputs = ["u"]
[parameters]
d = { prior = "normal", mean = 0.5, sd = 1, lower = 0, nominal = 0.6 }
[noise]
x = { family = "normal", sd = 0.4 }
[data]
time = [0, 0.5, 1, 3, 5]
x = [10.1, 8, 5, 2, 4]
[inputs]
u = { time = [0, 2, 4.5], value = [1, 0, 3] }
"""
ONSET = """
[model]
start = "t0"
equations = "x' = -d*x + 1\\nx(0) = 10"
outputs = ["x"]
[parameters]
d = { prior = "normal", mean = 0.5, sd = 1, lower = 0, nominal = 0.6 }
t0 = { prior = "uniform", lower = -3, upper = 1, nominal = -1.2 }
[noise]
x = { family = "normal", sd = 0.4 }
[data]
time = [-2, 0.5, 1, 2]
x = [10.1, 8, 5, 1]
"""
NAMES = """
[model]
equations = '''
avogadro' = -β_1*avogadro + lower
x' = β_1*avogadro - in*x
lower' = -lower*log_lik
avogadro(0) = 5
x(0) = y
lower(0) = pi
int = avogadro + x + e
self = x*likelihood
'''
outputs = ["int", "self"]
[constants]
pi = 1.5
[parameters]
"β_1" = { prior = "loguniform", lower = 0.01, upper = 10, nominal = 0.3 }
in = { prior = "uniform", lower = 0, upper = 2, nominal = 0.5 }
y = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.4 }
log_lik = { prior = "rayleigh", scale = 1, nominal = 0.4 }
likelihood = { prior = "exponential", rate = 1, nominal = 0.9 }
e = { prior = "loglaplace", location = 0, scale = 1, nominal = 0.7 }
[noise]
int = { family = "normal", sd = 0.3 }
self = { family = "laplace", scale = 0.2 }
[data]
time = [0.5, 1, 2]
int = [5, 4.5, 3]
self = [2, 3, 4]
"""
SEVERAL = """
[model]
equations = "x' = -d*x + f\\nx(0) = x0\\ny = scale*x"
outputs = ["y"]
[constants]
f = 1
x0 = 2
scale = 1
[parameters]
d = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.6 }
r = { prior = "lognormal", meanlog = 0, sdlog = 1, nominal = 0.8 }
[[experiment]]
name = "A"
constants = { scale = "r", f = 2 }
noise = { y = { family = "normal", sd = "r + 0.1*m" } }
data = { time = [0, 1, 2], y = [2, 3, 3] }
[[experiment]]
name = "B"
constants = { x0 = "r" }
noise = { y = { family = "laplace", scale = "r" } }
data = { time = [0, 1, 1], y = [2, 3, 3.5] }
[[experiment]]
name = "C"
noise = { y = { family = "laplace", scale = 0.3 } }
data = { time = [1, 2], y = [2, 3] }
"""
LIMITS = "[noise]\nx = { family = 'log10-normal', sd = 's', below = 2 }\n"

VARIED: dict[str, str] = {
    "limits": DECAY + LIMITS + "[data]\ntime = [0.5, 1, 2, 4]\nx = [8, 5, 1, 1]\n",
    "limits of cells": DECAY
    + LIMITS.replace("below = 2", "above = 7.5")
    + "[data]\ntime = [0.5, 1, 2, 4]\nx = [8, '<6', '>0.1', 1]\n",
    "increments": DECAY.replace('["x"]', '["x", "c"]')
    + "[noise]\nc = { family = 'negative-binomial', overdispersion = 's' }\nx = { family = 'poisson' }\n"
    + "[data]\ntime = [0.5, 1, 2, 4]\nc = [2, '', 3, 2]\nx = ['', '', 3, 1]\nincrements = ['c']\n",
    "numbers by row": DECAY
    + "[noise]\nx = { family = 'normal', sd = { column = 'se' }, relative = 's' }\n"
    + "[data]\ntime = [0.5, 1, 2]\nx = [8, 5, 1]\nse = [1, 0.5, 0.2]\n",
    "a start that is said to be zero": DECAY.replace('["x"]', '["x"]\nstart = "0"')
    + LIMITS.replace(", below = 2", "")
    + "[data]\ntime = [0.5, 1, 2, 4]\nx = [8, 5, 1, 1]\n",
    "dose at the start": ORAL + "[[dose]]\nstate = 'gut'\namount = 90\ntime = 0\n" + ORAL_DATA,
    "dose at the start, seen": ORAL
    + "[[dose]]\nstate = 'blood'\namount = 'V'\ntime = 0\nfirst = true\n"
    + ORAL_DATA.replace("0.5", "0"),
    "doses": ORAL + "[[dose]]\nstate = 'gut'\namount = 90\ntime = 0.3\nevery = 3\ncount = 2\n" + ORAL_DATA,
    "doses at observations": ORAL + "[[dose]]\nstate = 'gut'\namount = 90\nevery = 4\ncount = 2\n" + ORAL_DATA,
    "lag": ORAL + "[[dose]]\nstate = 'gut'\namount = 90\ntime = 0\nlag = 'tl'\n" + ORAL_DATA,
    "infusion": ORAL + "[[dose]]\nstate = 'blood'\namount = 90\ntime = 0.75\nduration = 'V'\n" + ORAL_DATA,
    "rest": REST + REST_DATA.replace("0.5", "0"),
    "rest, then a dose": REST + "[[dose]]\nstate = 'x'\namount = 'k'\ntime = 0\n" + REST_DATA,
    "rest, then a dose that is seen": REST
    + "[[dose]]\nstate = 'x'\namount = 2\ntime = 0\nfirst = true\n"
    + REST_DATA.replace("0.5", "0"),
    "rest, then a switch": REST + "[[change]]\ntime = 0\nconstants = { u = 'k + u' }\n" + REST_DATA,
    "rest, then a switch and a dose": REST
    + "[[change]]\ntime = 0\nconstants = { u = 3 }\nset = { z = 'x + u' }\n"
    + "[[dose]]\nstate = 'x'\namount = 'u'\ntime = 0\n[[dose]]\nstate = 'z'\namount = 'x'\ntime = 1.5\n"
    + REST_DATA,
    "onset": ONSET,
    "onset and dose": ONSET.replace('start = "t0"', "start = -2")
    .replace("+ 1", "+ t0")
    .replace("-3", "0")
    .replace("-1.2", "0.8")
    + "[[dose]]\nstate = 'x'\namount = 3\ntime = -1\n",
    "input": DRIVEN,
    "input of steps": DRIVEN.replace("value = [1, 0, 3]", "value = [1, 0, 3], interpolation = 'step'"),
    "rest under an input": DRIVEN.replace(
        "[model]", "[model]\ninitial = 'steady state'\nbefore = { inputs = { u = 2 } }"
    ),
    "an output that is a number": DECAY.replace("c(0) = 0", "c(0) = 0\nnone = 0").replace('["x"]', '["x", "none"]')
    + "[noise]\nx = { family = 'normal', sd = 's' }\nnone = { family = 'normal', sd = 1 }\n"
    + "[data]\ntime = [1, 2]\nx = [8, 5]\nnone = [0.3, -0.4]\n",
    "names": NAMES,
    "several": SEVERAL,
}
