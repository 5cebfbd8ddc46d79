"""Posteriors with 7 to 21 directions: an epidemic, four competing species, three kinases, a chain of compartments.

Data are simulated with fixed seeds, most priors are lognormal, and some directions are hardly informed by the data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from equifinal.problem.problem import Problem
from tests.support.targets import simulated


def _text(equations: list[str], outputs: list[str], priors: dict[str, str], noise: str) -> str:
    lines = "\n".join(equations)
    named = ", ".join(f'"{output}"' for output in outputs)
    table = "\n".join(f"{name} = {{ {prior} }}" for name, prior in priors.items())
    scatter = "\n".join(f"{output} = {{ {noise} }}" for output in outputs)
    return f'[model]\nequations = """\n{lines}\n"""\noutputs = [{named}]\n[parameters]\n{table}\n[noise]\n{scatter}\n'


def _lognormal(median: float, sdlog: float) -> str:
    return f'prior = "lognormal", meanlog = {np.log(median):.4f}, sdlog = {sdlog}'


def glv4() -> Problem:
    """Four species that compete (Lotka and Volterra's equations, generalised): 20 rates and a scale of the noise."""
    species = range(1, 5)
    rng = np.random.default_rng(4)
    equations, priors, truth = [], {}, {}
    for i in species:
        loss = " - ".join(f"a{i}{j}*x{j}" for j in species)
        equations += [f"x{i}' = x{i}*(r{i} - {loss})", f"x{i}(0) = 0.2"]
        priors[f"r{i}"] = _lognormal(1, 0.7)
        truth[f"r{i}"] = float(np.exp(rng.normal(0, 0.2)))
    for i in species:
        for j in species:
            median = 1.0 if i == j else 0.3
            priors[f"a{i}{j}"] = _lognormal(median, 1)
            truth[f"a{i}{j}"] = float(median * np.exp(rng.normal(0, 0.4)))
    priors["sigma"], truth["sigma"] = 'prior = "halfnormal", sd = 0.5', 0.1
    noise = 'family = "lognormal", sdlog = "sigma"'
    text = _text(equations, [f"x{i}" for i in species], priors, noise)
    return simulated("glv4", text, truth, np.arange(0.5, 15.1, 0.5), 4)


def casc3() -> Problem:
    """Three kinases in a row, each seen with a scale and an offset of its own: 16 parameters."""
    equations, priors, truth = ["w' = -kd*w", "w(0) = 1"], {}, {}
    rng = np.random.default_rng(5)
    for i in range(1, 4):
        before = "w" if i == 1 else f"y{i - 1}"
        equations += [f"y{i}' = a{i}*{before}*(T{i} - y{i}) - b{i}*y{i}", f"y{i}(0) = 0", f"u{i} = s{i}*y{i} + o{i}"]
        for name, median, sdlog in ((f"a{i}", 1.0, 1.0), (f"b{i}", 0.6, 1.0), (f"T{i}", 1.0, 0.7)):
            priors[name], truth[name] = _lognormal(median, sdlog), float(median * np.exp(rng.normal(0, 0.2)))
    priors["kd"], truth["kd"] = _lognormal(0.3, 1), 0.15
    for i in range(1, 4):
        for name, median in ((f"s{i}", 2.0), (f"o{i}", 0.1)):
            priors[name], truth[name] = _lognormal(median, 1), float(median * np.exp(rng.normal(0, 0.2)))
    text = _text(equations, ["u1", "u2", "u3"], priors, 'family = "normal", sd = 0.05')
    return simulated("casc3", text, truth, np.linspace(0, 15, 20), 5)


def chain21() -> Problem:
    """A dose that passes through ten compartments, each with a loss: 20 rates and a scale of the noise."""
    equations, priors, truth = [], {}, {}
    rng = np.random.default_rng(6)
    for i in range(1, 11):
        inflow = "" if i == 1 else f"k{i - 1}*x{i - 1} "
        equations += [f"x{i}' = {inflow}- k{i}*x{i} - m{i}*x{i}", f"x{i}(0) = {1 if i == 1 else 0}"]
        for name, median, sdlog in ((f"k{i}", 1.0, 0.7), (f"m{i}", 0.05, 1.0)):
            priors[name], truth[name] = _lognormal(median, sdlog), float(median * np.exp(rng.normal(0, 0.3)))
    priors["sigma"], truth["sigma"] = 'prior = "halfnormal", sd = 0.1', 0.01
    seen = [f"x{i}" for i in range(1, 11)]
    text = _text(equations, seen, priors, 'family = "normal", sd = "sigma"')
    return simulated("chain21", text, truth, np.arange(1, 21), 6)


def seir7() -> Problem:
    """A textbook's SEIR epidemic, of whose cases a share is reported week by week: 7 parameters, negative binomial."""
    equations = ["S' = -beta*S*I/N", "E' = beta*S*I/N - sigma*E", "I' = sigma*E - gamma*I", "C' = sigma*E", "y = rho*C"]
    equations += ["S(0) = N - E0 - I0", "E(0) = E0", "I(0) = I0", "C(0) = 0"]
    priors = {"beta": _lognormal(3, 0.7), "sigma": _lognormal(2, 0.5), "gamma": _lognormal(1.5, 0.5)}  # per week
    priors |= {"rho": 'prior = "beta", a = 2, b = 2', "E0": _lognormal(10, 1), "I0": _lognormal(10, 1)}
    priors |= {"phi": _lognormal(0.05, 1)}
    truth = {"beta": 3.2, "sigma": 2.2, "gamma": 1.4, "rho": 0.3, "E0": 12, "I0": 6, "phi": 0.05}
    text = _text(equations, ["y"], priors, 'family = "negative-binomial", overdispersion = "phi"')
    text += "[constants]\nN = 20000\n"
    return simulated("seir7", text, truth, np.arange(1, 25), 7, increments=True)


LARGE: dict[str, Callable[[], Problem]] = {make.__name__: make for make in (seir7, glv4, casc3, chain21)}
