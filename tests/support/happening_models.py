"""Random models in which something happens, or which call functions, for hunting errors of the analysis."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from equifinal.errors import ModelError
from equifinal.language.expression import Number
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression

E = parse_expression


def happening_model(seed: int) -> tuple[Model, float]:
    """The model of a seed, and until when to look at it."""
    rng = Random(seed)
    while True:
        try:
            return rng.choice([_dosed, _dosed, _functions, _functions, _functions, _switched, _resting, _onset])(rng)
        except ModelError:
            continue


def _when(k: int) -> str:
    return ["0.7", "1.9", "2.6", "4.1", "5.3"][k]


def _compartments(rng: Random, starts: list[str]) -> tuple[list[str], int]:
    n = rng.randint(1, 3)
    lines = []
    for i in range(1, n + 1):
        loss = rng.choice([f"k{i}*x{i}", f"k{i}*x{i}", f"v{i}*x{i}/(m{i} + x{i})"])
        gains = [f" + k{j}*x{j}" for j in range(1, n + 1) if j != i and rng.random() < 0.5]
        lines += [f"x{i}' = -{loss}{''.join(gains)}", f"x{i}(0) = {rng.choice(starts)}"]
    return lines, n


def _dosed(rng: Random) -> tuple[Model, float]:
    lines, n = _compartments(rng, ["0", "0", "1", "d0"])
    lines.append(f"y = {rng.choice(['s*', '', ''])}x{rng.randint(1, n)}{rng.choice(['', '/V', ' + o'])}")
    model = Model.parse("\n".join(lines), ["y"])
    lag = rng.random() < 0.3
    events = []
    fraction = rng.choice(["", "F*", "F*"])
    into = f"x{rng.randint(1, n)}"
    for k in range(rng.randint(2, 4)):
        time = f"{_when(k)} + lag" if lag else _when(k)
        events.append(Event(E(time), {into: E(f"{into} + {fraction}{rng.randint(1, 9)}")}))
    if rng.random() < 0.5:
        x = f"x{rng.randint(1, n)}"
        new = rng.choice(["0", f"{x}/2", f"f*{x}", "r", f"{x} + x1*0.3"])
        events.append(Event(E("3.3"), {x: E(new)}))
        events.append(Event(E("4.7"), {x: E(new)}))
    if rng.random() < 0.4:
        events.append(Event(Number(Fraction(0)), {into: E(f"{into} + {fraction}2")}))
    return model.vary(events=events), 8.0


def _switched(rng: Random) -> tuple[Model, float]:
    lines, n = _compartments(rng, ["1", "2", "d0"])
    rate = rng.choice(["k1*(1 - e*(t >= 2))", "piecewise(k1, t < 1.5, k9, t < 3, k1)", "k1 + a*(t > 1)*(t < 2 + t2)"])
    lines[0] = f"x1' = b - ({rate})*x1" + (" + c*x2" if n > 1 else "")
    lines.append(f"y = {rng.choice(['', 's*'])}x{rng.randint(1, n)}")
    return Model.parse("\n".join(lines), ["y"]), 6.0


def _functions(rng: Random) -> tuple[Model, float]:
    rates = ["exp(lk)", "10^lk", "a*exp(-b*t)", "a*exp(-b*t + c)", "a*(1 + b*cos(2*t + phi))", "a*(2 + sin(w*t))", "a"]
    rates += ["a*x^n/(K^n + x^n)", "a*(x/K)^n", "a*sqrt(x)", "a*log(1 + x/K)", "a*tanh(b*x)", "a*x^1.5/(1 + x^0.5)"]
    rates += ["exp(lk + la)", "exp(lk)*exp(2*la)", "a*exp(-x/K)", "a*t/(b + t)", "a*exp(-b*exp(-c*t))", "a*2^(b*t)"]
    lines = [f"x' = {rng.choice(['', 'g - '])}{rng.choice(['k', 'exp(lm)', '0.3'])}*x/(1 + x) + {rng.choice(rates)}"]
    lines.append(f"x(0) = {rng.choice(['1', '2', 'x0', 'exp(l0)', 'x0^2'])}")
    if rng.random() < 0.5:
        lines += [f"z' = {rng.choice(rates)} - d*z", f"z(0) = {rng.choice(['1', 'z0'])}"]
        lines.append(f"y = {rng.choice(['x + z', 's*z', 'z', 'log(z)'])}")
    else:
        lines.append(f"y = {rng.choice(['x', 's*x', 'log(x)', 'sqrt(x)', 'exp(ls)*x', 'x + o', 'x^q'])}")
    return Model.parse("\n".join(lines), ["y"]), 4.0


def _resting(rng: Random) -> tuple[Model, float]:
    kind = rng.choice(["mm", "bind", "cascade", "root", "hill"])
    text = {
        "mm": "x' = k*u - 3*v*x/(m + x) - d*x\nx(0) = 1\ny = {s}x",
        "bind": "r' = -a*u*r*l + b*c\nl' = -a*u*r*l + b*c\nc' = a*u*r*l - b*c\nr(0) = r0\nl(0) = 2\nc(0) = 0\ny = {s}c",
        "cascade": "x' = k1*u*(1 - x) - k2*x\nz' = k3*x*(1 - z) - k4*z\nx(0) = 0\nz(0) = 0\ny = o + {s}z",
        "root": "x' = k*u - d*x^2 - e*x\nx(0) = 1\ny = {s}x",
        "hill": "x' = k*u/(1 + z^h) - d*x\nz' = g*x - f*z\nx(0) = 1\nz(0) = 1\ny = {s}z",
    }[kind].format(s=rng.choice(["", "s*"]))
    model = Model.parse(text, ["y"], constants={"u": 1})
    return model.vary(constants={"u": rng.choice([2, "1/2"])}, before=model), 5.0


def _onset(rng: Random) -> tuple[Model, float]:
    lines = [
        "m' = -delta*m",
        f"p' = k*m - {rng.choice(['beta*p', 'v*p/(1 + p)'])}",
        f"m(0) = {rng.choice(['m0', '1'])}",
    ]
    lines += ["p(0) = 0", f"y = {rng.choice(['p', 's*p', 's*p + o', 'log(1 + p)'])}"]
    return Model.parse("\n".join(lines), ["y"]).vary(onset=rng.choice(["t0", "t0 + t1", "t0"])), 6.0


def drawn(model: Model, rng) -> dict[str, float]:
    """Random positive parameters at which such models are tame."""
    return {name: float(rng.uniform(0.3, 1.4)) for name in model.parameters}
