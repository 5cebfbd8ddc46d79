"""Random models for hunting errors of the identifiability analysis: many of them odd, most of them small.

States start at zero, at numbers, at functions of parameters, at equilibria or anywhere; powers and quotients abound.
"""

from __future__ import annotations

from random import Random

from equifinal.errors import ModelError
from equifinal.language.model import Model


def random_model(seed: int) -> Model:
    """The model of a seed; about a third have the structure of models that people write."""
    rng = Random(seed)
    while True:
        text, outputs = random_text(rng)
        try:
            return Model.parse(text, outputs)
        except ModelError:  # a division by zero for all parameters
            continue


def random_text(rng: Random) -> tuple[str, list[str]]:
    """The text of a model, and its outputs."""
    make = rng.choice([_anything, _anything, _anything, _cascade, _compartments, _equilibrium])
    return make(rng)


def _term(rng: Random, states: list[str], rates: list[str]) -> str:
    factors = [rng.choice([*rates, *rates, "1", "2", f"{rng.choice(rates)}*{rng.choice(rates)}"])]
    for x in rng.sample(states, rng.randint(0, min(2, len(states)))):
        factors.append(x if rng.random() < 0.6 else f"{x}^{rng.randint(2, 4)}")
    text = "*".join(factors)
    if rng.random() < 0.2:
        below = rng.choice(["1", rng.choice(rates)])
        text += f"/({below} + {rng.choice(['', rng.choice(rates) + '*'])}{rng.choice(states)}^{rng.randint(1, 3)})"
    return text


def _start(rng: Random, rates: list[str]) -> str | None:
    """None is an initial value of its own."""
    a, b = rng.choice(rates), rng.choice(rates)
    return rng.choice(["0", "0", "0", str(rng.randint(1, 3)), a, f"{a}*{rng.randint(2, 4)} + 1", f"{a}/{b}", None])


def _anything(rng: Random) -> tuple[str, list[str]]:
    states = [f"x{i + 1}" for i in range(rng.randint(1, 4))]
    rates = list("abcd"[: rng.randint(1, 4)])
    lines = []
    for x in states:
        terms = [rng.choice("+-") + _term(rng, states, rates) for _ in range(rng.randint(1, 3))]
        lines.append(f"{x}' = {' '.join(terms)}")
        start = _start(rng, rates)
        if start is not None:
            lines.append(f"{x}(0) = {start}")
    x, z = rng.choice(states), rng.choice(states)
    output = rng.choice([x, x, f"{x} + {z}", f"{x}^2", f"{rng.choice(rates)}*{x}", f"s*{x}", f"{x}*{z} + 1"])
    lines.append(f"y = {output}")
    if rng.random() < 0.2:
        return "\n".join([*lines, f"w = {_term(rng, states, rates)}"]), ["y", "w"]
    return "\n".join(lines), ["y"]


def _cascade(rng: Random) -> tuple[str, list[str]]:
    """Each state drives the next by a power and starts at zero: outputs begin late."""
    n = rng.randint(2, 3)
    lines = [f"x1' = {rng.choice(['k1', '1', 'k1 - d1*x1', 'k1*u - d1*x1'])}", "x1(0) = 0", "u' = -e*u", "u(0) = 1"]
    for i in range(2, n + 1):
        drive = rng.choice([f"k{i}*x{i - 1}^{rng.randint(1, 4)}", f"x{i - 1}^{rng.randint(2, 4)}/(1 + m*x{i - 1})"])
        loss = rng.choice(["", f" - d{i}*x{i}", " - d1*x1"])
        lines += [f"x{i}' = {drive}{loss}", f"x{i}(0) = 0"]
    lines.append(f"y = {rng.choice(['', 's*', 'k1 + '])}x{n}{rng.choice(['', '^2'])}")
    return "\n".join(lines), ["y"]


def _compartments(rng: Random) -> tuple[str, list[str]]:
    """Linear exchange, with or without saturation, some compartments empty at first."""
    n = rng.randint(2, 3)
    lines = []
    for i in range(1, n + 1):
        terms = [f"- k{i}*x{i}" + rng.choice(["", "/(m + x1)"])]
        terms += [f"+ k{j}*x{j}" for j in range(1, n + 1) if j != i and rng.random() < 0.5]
        lines.append(f"x{i}' = {' '.join(terms)}")
        start = rng.choice(["0", "1", "D", None])
        if start is not None:
            lines.append(f"x{i}(0) = {start}")
    lines.append(f"y = {rng.choice(['x1', f'x{n}', f'x{n}/V', 'x1 + x2'])}")
    return "\n".join(lines), ["y"]


def _equilibrium(rng: Random) -> tuple[str, list[str]]:
    """At rest but for a disturbance, of which powers are seen."""
    disturbance = rng.choice(["e*w", "e*w^2", "w^3", "c*w*x"])
    start = rng.choice(["0", "0", "1", None])
    lines = ["x' = a - d*x + " + disturbance, "x(0) = a/d", f"w' = {rng.choice(['1', 'g', 'g - w', 'g*x'])}"]
    if start is not None:
        lines.append(f"w(0) = {start}")
    lines += [f"z' = b*(x - {rng.choice(['a/d', 'x(0)', 'q'])})^{rng.randint(1, 3)} - h*z", "z(0) = 0"]
    return "\n".join([*lines, f"y = {rng.choice(['z', 's*z', 'x', 'x + z', 'z + a'])}"]), ["y"]


def heavy_model(seed: int) -> Model:
    """A model whose exact algebra is long: more states, high powers, initial values that are powers of sums."""
    rng = Random(seed)
    while True:
        states = [f"x{i + 1}" for i in range(rng.randint(2, 7))]
        rates = [f"k{i + 1}" for i in range(rng.randint(2, 8))]
        lines = []
        for x in states:
            terms = [rng.choice("+-") + _term(rng, states, rates) for _ in range(rng.randint(1, 4))]
            lines.append(f"{x}' = {' '.join(terms)}")
            total = " + ".join(["3", *rng.sample(rates, min(len(rates), rng.randint(1, 4)))])
            start = rng.choice([None, None, "0", "1", f"({total})^{rng.choice([2, 30, 300, 1000])}"])
            if start is not None:
                lines.append(f"{x}(0) = {start}")
        lines.append(f"y = {_term(rng, states, rates)} + {rng.choice(states)}^{rng.choice([1, 2, 9])}")
        try:
            return Model.parse("\n".join(lines), ["y"])
        except ModelError:
            continue
