"""Harder problems for samplers, a function each: fibres, swaps, many combinations, stiffness, data as they come.

Data that nobody has measured are simulated with a fixed seed and rounded to four digits. What their posteriors look
like is in `references.json`, made by `benchmarks/references.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.prediction.simulate import simulate
from equifinal.problem.problem import Problem
from tests.support.published import CHOLERA, LYNX_HARE
from tests.support.shared_folder import SHARED


def seir() -> Problem:
    """SEIR in four states, all initial values unknown, a share of the infectious seen: r = 2, and a swap.

    R enters through the population alone, so that R_0 stands for its size. Scaling all states against rho, and R_0
    against b with what is left; the rates a of becoming infectious and g of recovery may change places.
    """
    text = '''
    [model]
    equations = """
    S' = -b*S*I/(S + E + I + R)
    E' = b*S*I/(S + E + I + R) - a*E
    I' = a*E - g*I
    R' = g*I
    y = rho*I
    """
    outputs = ["y"]
    [parameters]
    b = { prior = "lognormal", meanlog = 0, sdlog = 0.7 }
    a = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
    g = { prior = "lognormal", meanlog = -1.5, sdlog = 0.7 }
    rho = { prior = "beta", a = 2, b = 2 }
    S_0 = { prior = "lognormal", meanlog = 6.5, sdlog = 0.5 }
    E_0 = { prior = "lognormal", meanlog = 2, sdlog = 1 }
    I_0 = { prior = "lognormal", meanlog = 2, sdlog = 1 }
    R_0 = { prior = "lognormal", meanlog = 5, sdlog = 1 }
    s = { prior = "lognormal", meanlog = -2, sdlog = 1 }
    [noise]
    y = { family = "lognormal", sdlog = "s" }
    '''
    truth = {"b": 1.0, "a": 0.5, "g": 0.25, "rho": 0.4, "S_0": 700, "E_0": 6, "I_0": 8, "R_0": 150, "s": 0.1}
    return simulated("seir", text, truth, np.arange(0, 41, 2), 1)


def seir_roots() -> Problem:
    """SEIR with the infectious seen, all initial values unknown: a swap and no fibre."""
    text = '''
    [model]
    equations = """
    S' = -b*S*I
    E' = b*S*I - a*E
    I' = a*E - g*I
    """
    outputs = ["I"]
    [parameters]
    b = { prior = "lognormal", meanlog = -6.5, sdlog = 1 }
    a = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
    g = { prior = "lognormal", meanlog = -1.5, sdlog = 0.7 }
    S_0 = { prior = "lognormal", meanlog = 6.5, sdlog = 0.5 }
    E_0 = { prior = "lognormal", meanlog = 2, sdlog = 1 }
    I_0 = { prior = "lognormal", meanlog = 2, sdlog = 1 }
    s = { prior = "lognormal", meanlog = -2, sdlog = 1 }
    [noise]
    I = { family = "lognormal", sdlog = "s" }
    '''
    truth = {"b": 0.0012, "a": 0.5, "g": 0.25, "S_0": 700, "E_0": 6, "I_0": 8, "s": 0.1}
    return simulated("seir roots", text, truth, np.arange(0, 41, 2), 2)


def pharmacokinetics() -> Problem:
    """Two compartments that both lose drug, a bolus into the first, whose volume is not known: r = 1."""
    text = '''
    [model]
    equations = """
    A1' = -(k10 + k12)*A1 + k21*A2
    A2' = k12*A1 - (k21 + k20)*A2
    A1(0) = 100
    A2(0) = 0
    y = A1/V
    """
    outputs = ["y"]
    [parameters]
    k10 = { prior = "lognormal", meanlog = -1, sdlog = 1 }
    k12 = { prior = "lognormal", meanlog = -1, sdlog = 1 }
    k21 = { prior = "lognormal", meanlog = -1, sdlog = 1 }
    k20 = { prior = "lognormal", meanlog = -2, sdlog = 1 }
    V = { prior = "lognormal", meanlog = 2, sdlog = 1 }
    s = { prior = "lognormal", meanlog = -2, sdlog = 1 }
    [noise]
    y = { family = "lognormal", sdlog = "s" }
    '''
    truth = {"k10": 0.5, "k12": 0.4, "k21": 0.3, "k20": 0.1, "V": 10.0, "s": 0.1}
    times = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24]
    return simulated("pharmacokinetics", text, truth, times, 3)


GOODWIN = '''
[model]
equations = """
x' = a/(1 + z^POWER) - b*x
y' = c*x - d*y
z' = e*y - f*z
"""
outputs = OUTPUTS
[parameters]
a = { prior = "lognormal", meanlog = 1, sdlog = 0.7 }
b = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
c = { prior = "lognormal", meanlog = 0, sdlog = 0.7 }
d = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
e = { prior = "lognormal", meanlog = -0.5, sdlog = 0.7 }
f = { prior = "lognormal", meanlog = -1.5, sdlog = 0.7 }
x_0 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
y_0 = { prior = "lognormal", meanlog = -1, sdlog = 1 }
z_0 = { prior = "lognormal", meanlog = -1, sdlog = 1 }
s = { prior = "lognormal", meanlog = -2, sdlog = 1 }
[noise]
x = { family = "lognormal", sdlog = "s" }
'''


def goodwin() -> Problem:
    """A gene that its product's product shuts off, oscillating: r = 1, and a swap of the last two decays."""
    text = GOODWIN.replace("POWER", "10").replace("OUTPUTS", '["x", "z"]')
    text += 'z = { family = "lognormal", sdlog = "s" }'
    truth = {
        **{"a": 4.0, "b": 0.3, "c": 0.8, "d": 0.35, "e": 0.6, "f": 0.25},
        **{"x_0": 0.5, "y_0": 0.3, "z_0": 0.4, "s": 0.15},
    }
    return simulated("goodwin", text, truth, np.arange(0, 60.5, 2.0), 4)


def goodwin_unanalysed() -> Problem:
    """The same seen through its messenger alone: a fibre and a swap that the analysis does not find in 20 seconds."""
    text = GOODWIN.replace("POWER", "4").replace("OUTPUTS", '["x"]')
    truth = {
        **{"a": 4.0, "b": 0.3, "c": 0.8, "d": 0.35, "e": 0.6, "f": 0.25},
        **{"x_0": 0.5, "y_0": 0.3, "z_0": 0.4, "s": 0.08},
    }
    return simulated("goodwin unanalysed", text, truth, np.arange(0, 60.5, 1.5), 4)


def food_chain() -> Problem:
    """Three species that eat each other, the last one on an unknown scale: 13 parameters in 12 combinations."""
    text = '''
    [model]
    equations = """
    x' = x*(r - k*x - b*y)
    y' = y*(c*x - m - d*z)
    z' = z*(e*y - n)
    top = w*z
    """
    outputs = ["x", "y", "top"]
    [parameters]
    r = { prior = "lognormal", meanlog = 0, sdlog = 0.7 }
    k = { prior = "lognormal", meanlog = -1.5, sdlog = 0.7 }
    b = { prior = "lognormal", meanlog = -0.5, sdlog = 0.7 }
    c = { prior = "lognormal", meanlog = -0.5, sdlog = 0.7 }
    m = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
    d = { prior = "lognormal", meanlog = -0.5, sdlog = 0.7 }
    e = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
    n = { prior = "lognormal", meanlog = -1, sdlog = 0.7 }
    w = { prior = "lognormal", meanlog = 0, sdlog = 0.7 }
    x_0 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
    y_0 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
    z_0 = { prior = "lognormal", meanlog = 0, sdlog = 1 }
    s = { prior = "lognormal", meanlog = -2, sdlog = 1 }
    [noise]
    x = { family = "lognormal", sdlog = "s" }
    y = { family = "lognormal", sdlog = "s" }
    top = { family = "lognormal", sdlog = "s" }
    '''
    truth = {
        **{"r": 1.2, "k": 0.2, "b": 0.6, "c": 0.5, "m": 0.4, "d": 0.5, "e": 0.4, "n": 0.4, "w": 1.5},
        **{"x_0": 1.5, "y_0": 1.0, "z_0": 0.5, "s": 0.1},
    }
    return simulated("food chain", text, truth, np.arange(0, 25, 1.0), 5)


def robertson() -> Problem:
    """Robertson's reaction, whose rates are nine orders apart: stiff."""
    text = '''
    [model]
    equations = """
    A' = -k1*A + k3*B*C
    B' = k1*A - k3*B*C - k2*B^2
    C' = k2*B^2
    A(0) = 1
    B(0) = 0
    C(0) = 0
    trace = 10000*B
    """
    outputs = ["A", "trace"]
    [parameters]
    k1 = { prior = "loguniform", lower = 1e-3, upper = 1 }
    k2 = { prior = "loguniform", lower = 1e5, upper = 1e9 }
    k3 = { prior = "loguniform", lower = 1e2, upper = 1e6 }
    s = { prior = "halfnormal", sd = 0.2 }
    [noise]
    A = { family = "normal", sd = "s" }
    trace = { family = "normal", sd = "s" }
    '''
    truth = {"k1": 0.04, "k2": 3e7, "k3": 1e4, "s": 0.02}
    times = [1e-3, 2e-3, 5e-3, 0.01, 0.1, 1, 4, 10, 40, 100, 400, 1000, 4000, 1e4]
    return simulated("robertson", text, truth, times, 6)


def influenza() -> Problem:
    """A boarding school, 1978: everything can be identified, little is."""
    return load(example_path("influenza"))


def lynx_hare(folder: Path = SHARED / "data") -> Problem:
    return loads(LYNX_HARE, folder=folder, name="lynx and hare")


def cholera(folder: Path = SHARED / "data") -> Problem:
    return loads(CHOLERA, folder=folder, name="cholera")


TARGETS: dict[str, Callable[[], Problem]] = {
    made.__name__: made
    for made in (
        *(seir, seir_roots, pharmacokinetics, goodwin, goodwin_unanalysed, food_chain, robertson),
        *(influenza, lynx_hare, cholera),
    )
}


def simulated(
    name: str, text: str, truth: Mapping[str, float], times: object, seed: int, increments: bool = False
) -> Problem:
    """The problem of a text without data, with data simulated at the truth; of outputs, or of how much they grow."""
    at = [float(t) for t in np.asarray(times, float)]
    found = re.search(r"outputs = \[(.*)\]", text)
    assert found
    outputs = re.findall(r'"(\w+)"', found[1])

    def with_data(columns: Mapping[str, list[float]]) -> Problem:
        lines = [f"{key} = {values!r}" for key, values in columns.items()]
        if increments:
            lines.append(f"increments = {outputs!r}")
        return loads("\n".join([text, "[data]", f"time = {at!r}", *lines]), name=name)

    blank = with_data({output: [1.0] * len(at) for output in outputs})
    (made,) = simulate(blank, truth, rng=np.random.default_rng(seed))
    return with_data({output: [float(f"{v:.4g}") for v in made.observed[output]] for output in outputs})
