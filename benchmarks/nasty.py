"""Small problems with nasty posteriors, which a run must either sample rightly or say that it did not.

Several modes, some of them narrow; aliases; tails of half-Cauchy priors; posteriors that end at bounds; fewer data than
parameters; counts of zero; elbows; funnels; fibres. Each has two to eight parameters, and an ODE that is solved in
microseconds, so that `campaign.py` can run every one of them many times. Data are simulated with a fixed seed, or are
what they are for a purpose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.problem.problem import Problem
from tests.support.shared_folder import SHARED
from tests.support.targets import simulated


def _text(equations: str, outputs: str, parameters: Mapping[str, str], noise: str, constants: str = "") -> str:
    named = ", ".join(f'"{output}"' for output in outputs.split())
    priors = "\n".join(f"{name} = {{ {prior} }}" for name, prior in parameters.items())
    return (
        f'[model]\nequations = """\n{equations.strip()}\n"""\noutputs = [{named}]\n'
        + (f"[constants]\n{constants}\n" if constants else "")
        + f"[parameters]\n{priors}\n[noise]\n{noise}\n"
    )


def _uniform(lower: float, upper: float) -> str:
    return f'prior = "uniform", lower = {lower}, upper = {upper}'


def _lognormal(meanlog: float, sdlog: float) -> str:
    return f'prior = "lognormal", meanlog = {meanlog}, sdlog = {sdlog}'


def _normal(mean: float, sd: float) -> str:
    return f'prior = "normal", mean = {mean}, sd = {sd}'


HALFCAUCHY = 'prior = "halfcauchy", scale = 1'


def _given(name: str, text: str, **columns: list[float]) -> Problem:
    """A problem with these data."""
    return loads("\n".join([text, "[data]", *(f"{key} = {values!r}" for key, values in columns.items())]), name=name)


OSCILLATOR = "x' = w*y\ny' = -w*x\nx(0) = a\ny(0) = b"


def aliased() -> Problem:
    """An oscillator seen at whole numbers and once between: frequencies w + 2 pi k, less and less likely."""
    text = _text(
        OSCILLATOR,
        "x",
        {"w": _uniform(0.1, 20), "a": _normal(0, 2), "b": _normal(0, 2)},
        'x = { family = "normal", sd = 0.3 }',
    )
    return simulated("aliased", text, {"w": 1.3, "a": 1.0, "b": 0.5}, [1, 2, 3, 4, 5, 6, 7, 7.1], 1)


def aliased_exactly() -> Problem:
    """The same at whole numbers alone: modes of one height, with the sign of b in turn."""
    text = _text(
        OSCILLATOR,
        "x",
        {"w": _uniform(0.1, 12.0), "a": _normal(0, 2), "b": _normal(0, 2), "s": _lognormal(-1, 0.5)},
        'x = { family = "normal", sd = "s" }',
    )
    return simulated("aliased exactly", text, {"w": 1.3, "a": 1.0, "b": 0.5, "s": 0.2}, np.arange(1, 11), 2)


def damped_alias() -> Problem:
    """A damped oscillator, seen seldom."""
    text = _text(
        "x' = -g*x + w*y\ny' = -g*y - w*x\nx(0) = a\ny(0) = 0",
        "x",
        {"w": _uniform(0.1, 15), "g": _lognormal(-2, 1), "a": _lognormal(0, 0.5)},
        'x = { family = "normal", sd = 0.15 }',
    )
    return simulated("damped", text, {"w": 2.1, "g": 0.1, "a": 1.2}, [0.7, 1.9, 3.1, 4.3, 5.5, 6.7], 3)


def widths() -> Problem:
    """A cubic with three roots, at two of which it is steep; a second output tells them apart a little."""
    text = _text(
        "x' = -x\nx(0) = 1\ny = (a^3 - 3*a)*x\nz = (a*a*0.3 + b)*x",
        "y z",
        {"a": _normal(0, 2), "b": _normal(0, 1)},
        'y = { family = "normal", sd = 0.15 }\nz = { family = "normal", sd = 0.5 }',
    )
    return _given("widths", text, time=[0.1, 0.5], y=[1.6, 1.0], z=[0.4, 0.1])


def narrow() -> Problem:
    """Two modes, one of them a tenth as wide as the other in both directions, with comparable masses."""
    text = _text(
        "x' = -x\nx(0) = 1\ny = (k/(1 + 0.2*k^2))*x\nz = (m/(1 + 0.2*m^2))*x\nv = (k - m)*x",
        "y z v",
        {"k": _lognormal(0.5, 1.2), "m": _lognormal(0.5, 1.2)},
        'y = { family = "normal", sd = 0.05 }\nz = { family = "normal", sd = 0.05 }\nv = { family = "normal", sd = 6 }',
    )
    return _given("narrow", text, time=[0.1], y=[0.62], z=[0.60], v=[1.0])


def switch() -> Problem:
    """A bistable switch, seen near one of its states: thresholds on either side explain it."""
    text = _text(
        "x' = s + v*x^2/(k + x^2) - x\nx(0) = 0.3",
        "x",
        {"s": _lognormal(-2, 1), "v": _lognormal(0.5, 0.7), "k": _lognormal(0, 1)},
        'x = { family = "normal", sd = 0.1 }',
    )
    return simulated("switch", text, {"s": 0.12, "v": 1.6, "k": 0.7}, [1, 2, 4, 8], 4)


def one_compartment() -> Problem:
    """The tail of K_m, from posteriordb."""
    return load(SHARED / "problems" / "onecomp.toml")


def saturation() -> Problem:
    """Michaelis-Menten, never saturated: only V/K is known, with half-Cauchy priors."""
    text = _text(
        "x' = -V*x/(K + x)\nx(0) = 1",
        "x",
        {"V": HALFCAUCHY, "K": HALFCAUCHY},
        'x = { family = "normal", sd = 0.05 }',
    )
    return simulated("saturation", text, {"V": 2.0, "K": 4.0}, [0.5, 1, 2, 3, 4], 5)


def cauchy_growth() -> Problem:
    """Logistic growth before the bend: the capacity has no upper end but its prior's."""
    text = _text(
        "n' = r*n*(1 - n/K)\nn(0) = n0",
        "n",
        {"r": HALFCAUCHY, "K": 'prior = "halfcauchy", scale = 20', "n0": _lognormal(0, 0.5), "s": HALFCAUCHY},
        'n = { family = "lognormal", sdlog = "s" }',
    )
    return simulated("growth", text, {"r": 0.5, "K": 30, "n0": 1, "s": 0.15}, [0.5, 1, 2, 3, 4, 5, 6], 6)


def few_data() -> Problem:
    """Two data for five parameters of a predator and its prey."""
    text = _text(
        "x' = a*x - b*x*y\ny' = c*x*y - d*y\nx(0) = x0\ny(0) = 1",
        "x",
        {
            "a": _lognormal(0, 0.5),
            "b": _lognormal(0, 0.5),
            "c": _lognormal(-0.5, 0.5),
            "d": _lognormal(0, 0.5),
            "x0": _lognormal(0.5, 0.5),
        },
        'x = { family = "lognormal", sdlog = 0.1 }',
    )
    return _given("few data", text, time=[1.0, 4.0], x=[1.3, 0.8])


def at_bounds() -> Problem:
    """Decay that hardly happens: the rate presses on zero, the start on its upper bound."""
    text = _text(
        "x' = -k*x + f\nx(0) = x0",
        "x",
        {"k": _uniform(0, 2), "f": _uniform(0, 1), "x0": _uniform(0, 5)},
        'x = { family = "normal", sd = 0.2 }',
    )
    return _given("bounds", text, time=[1, 2, 3, 4, 5, 6], x=[5.1, 5.0, 5.2, 4.9, 5.1, 5.0])


def at_corner() -> Problem:
    """A two-step decay whose rates both end at their bounds."""
    text = _text(
        "x' = -k*x\nz' = k*x - m*z\nx(0) = 4\nz(0) = 0",
        "z",
        {"k": _uniform(0.1, 1.0), "m": _uniform(0.05, 1.0), "s": _lognormal(-1.5, 0.7)},
        'z = { family = "normal", sd = "s" }',
    )
    return _given("corner", text, time=[0.5, 1, 2, 3, 5, 8], z=[1.9, 2.8, 3.4, 3.6, 3.5, 3.1])


SIR = "S' = -b*S*I/1000\nI' = b*S*I/1000 - g*I\nS(0) = 1000 - I0\nI(0) = I0\ny = rho*I"
SIR_PRIORS = {
    "b": _lognormal(-1, 1),
    "g": _lognormal(-1, 0.7),
    "I0": _lognormal(1, 1),
    "rho": 'prior = "beta", a = 1, b = 4',
}


def zero_counts() -> Problem:
    """No case was ever seen: only that some product of rates is small."""
    text = _text(
        SIR,
        "y",
        {
            "b": _lognormal(-1, 1),
            "g": _lognormal(-1, 0.7),
            "I0": _lognormal(1, 1),
            "rho": 'prior = "beta", a = 1, b = 4',
        },
        'y = { family = "poisson" }',
    )
    return _given("zeros", text, time=[1, 2, 3, 4, 5, 6, 7], y=[0, 0, 0, 0, 0, 0, 0])


def zero_counts_scattered() -> Problem:
    """The same with an overdispersion to find."""
    text = _text(
        SIR,
        "y",
        SIR_PRIORS | {"phi": 'prior = "exponential", rate = 1'},
        'y = { family = "negative-binomial", overdispersion = "phi" }',
    )
    return _given("zeros scattered", text, time=[1, 2, 3, 4, 5, 6, 7], y=[0, 0, 1, 0, 0, 0, 0])


def small_epidemic() -> Problem:
    """SIR with few counts."""
    text = _text(
        SIR,
        "y",
        {
            "b": _lognormal(-0.5, 1),
            "g": _lognormal(-1, 0.7),
            "I0": _lognormal(1, 1),
            "rho": 'prior = "beta", a = 2, b = 2',
        },
        'y = { family = "poisson" }',
    )
    return simulated("epidemic", text, {"b": 0.9, "g": 0.35, "I0": 3, "rho": 0.3}, np.arange(2, 25, 3), 7)


def funnel() -> Problem:
    """Three nearly perfect data for three parameters and a noise scale without a floor."""
    text = _text(
        "x' = -k*x\nx(0) = a\ny = x + c",
        "y",
        {"k": _lognormal(-0.5, 0.7), "a": _lognormal(1, 0.7), "c": _normal(0, 1), "s": HALFCAUCHY},
        'y = { family = "normal", sd = "s" }',
    )
    return _given("funnel", text, time=[0.5, 1.5, 3.0, 5.0], y=[3.0, 1.9, 1.2, 0.85])


def two_parts() -> Problem:
    """Noise of a constant and a relative part: an L-shaped posterior."""
    text = _text(
        "x' = -k*x\nx(0) = a",
        "x",
        {"k": _lognormal(-1, 0.7), "a": _lognormal(1, 0.7), "s": _lognormal(-2, 1.2), "r": _lognormal(-2, 1.2)},
        'x = { family = "normal", sd = "s", relative = "r" }',
    )
    return simulated("two parts", text, {"k": 0.4, "a": 4, "s": 0.05, "r": 0.05}, np.arange(0.5, 9, 1), 8)


def elbow() -> Problem:
    """Binding with either little substance or weak affinity: an elbow with arms along both axes."""
    text = _text(
        "c' = kon*(B - c)*(2 - c) - koff*c\nc(0) = 0",
        "c",
        {"kon": _lognormal(-1, 1.5), "koff": _lognormal(-1, 1.5), "B": _lognormal(0, 1.5)},
        'c = { family = "normal", sd = 0.05 }',
    )
    return simulated("elbow", text, {"kon": 0.3, "koff": 0.5, "B": 0.8}, [0.3, 0.6, 1, 1.5, 2.5], 9)


def banana() -> Problem:
    """The sum of two decays, of which a product is seen well: a long curved ridge."""
    text = _text(
        "x' = -a*b*x\nz' = -(a + 0.2*b*b)*z\nx(0) = 1\nz(0) = 1",
        "x z",
        {"a": _lognormal(0, 1), "b": _lognormal(0, 1)},
        'x = { family = "normal", sd = 0.01 }\nz = { family = "normal", sd = 0.2 }',
    )
    return simulated("banana", text, {"a": 0.6, "b": 1.2}, [0.5, 1, 2], 10)


def two_decays() -> Problem:
    """A sum of two exponentials that may change places, with little to tell them apart."""
    text = _text(
        "p' = -k1*p\nq' = -k2*q\np(0) = a1\nq(0) = a2\ny = p + q",
        "y",
        {"k1": _lognormal(-1, 1), "k2": _lognormal(-1, 1), "a1": _lognormal(0, 0.7), "a2": _lognormal(0, 0.7)},
        'y = { family = "normal", sd = 0.05 }',
    )
    return simulated("two decays", text, {"k1": 0.2, "k2": 1.0, "a1": 1.0, "a2": 1.5}, [0.2, 0.5, 1, 2, 3, 5, 8], 11)


def outliers() -> Problem:
    """Student noise, and two data that belong to other parameters."""
    text = _text(
        "x' = -k*x\nx(0) = a",
        "x",
        {"k": _lognormal(-1, 1), "a": _lognormal(1, 1), "s": _lognormal(-2, 1)},
        'x = { family = "student-t", df = 2, scale = "s" }',
    )
    return _given("outliers", text, time=[0.5, 1, 1.5, 2, 3, 4, 5, 6], x=[3.3, 2.6, 5.2, 1.9, 1.3, 3.6, 0.52, 0.36])


def relaxation() -> Problem:
    """Van der Pol's oscillator with an unknown phase: steep flanks, and fits that are off by a period."""
    text = _text(
        "x' = y\ny' = m*(1 - x*x)*y - w*x\nx(0) = x0\ny(0) = 0",
        "x",
        {"m": _lognormal(0, 0.7), "w": _lognormal(0, 0.7), "x0": _lognormal(0, 0.5)},
        'x = { family = "normal", sd = 0.5 }',
    )
    return simulated("relaxation", text, {"m": 1.2, "w": 1.0, "x0": 1.5}, [2, 5, 9, 14, 20], 12)


def influenza() -> Problem:
    return load(example_path("influenza"))


def oral() -> Problem:
    return load(example_path("oral"))


def treatment() -> Problem:
    return load(example_path("treatment"))


NASTY: dict[str, Callable[[], Problem]] = {
    make.__name__: make
    for make in (
        *(aliased, aliased_exactly, damped_alias, widths, narrow, switch, one_compartment, saturation, cauchy_growth),
        *(few_data, at_bounds, at_corner, zero_counts, zero_counts_scattered, small_epidemic, funnel),
        *(two_parts, elbow, banana, two_decays, outliers, relaxation, influenza, oral, treatment),
    )
}
