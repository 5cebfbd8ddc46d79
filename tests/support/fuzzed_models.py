"""Model text that is nearly right: random models with functions, time and inputs, then bent at random; and points to
solve them at that no one would choose."""

from __future__ import annotations

import re
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tests.support.random_models import random_text

FUNCTIONS = ("exp", "log", "sqrt", "sin", "tan", "tanh", "abs", "log10")
WRAPPED = (
    "{f}({x})",
    "{x}*{f}({y})",
    "max({x}, {y})",
    "min(1, {x})",
    "pow({x}, {y})",
    "{x}^(1/2)",
    "{x}*cos(2*t)",
    "piecewise({x}, t < 2, {y})",
    "(t >= {y})*{x}",
    "{x}/({x} + {y})",
    "u*{x}",
    "c*{x}",
    "({x} - {x})",
)
TOKENS = (
    *("1e999", "1e-400", "1e308", "9" * 400, "0", "00.1", "1/0", "0/0"),
    *("0^0", "^-1", "^1000", "^0.5", "^(1/3)", "^n", "**2"),
    *("(", ")", "((((", "()", "+", "-", "--", "*", "/", "=", "==", "'"),
    *("''", "' = ", ";", ",", ".", "<", ">=", "!", "\\", '"'),
    *("t", "t(0)", "u", "u(t)", "x1", "x1(0)", "x1(t)", "x1'", "dx1/dt"),
    *("y", "pi", "e", "I", "nan", "inf", "lambda", "import os"),
    *("exp", "exp(", "log(-1)", "sqrt(-1)", "abs(", "min()", "max(1)"),
    *("pow(1)", "tan(1e300)", "exp(exp(exp(9)))", "sin(t"),
    *("piecewise(", "piecewise(1, t < 1)", "piecewise(a, x1 < 1, b)"),
    *("(t < 1 and t > 0)", "not ", " or ", "(x1 > 0)"),
    *("# ", "\n", "\r", "\x00", "\x1b[31m", "\ufeff", "\u202e", "é", "β"),
    *("²", "−", "’", "𝟙", "٣", "\ud800", "__import__('os')"),
)  # fmt: skip
_PIECES = re.compile(r"\w+|\s+|[^\w\s]")
_NAMES = re.compile(r"\b(?:x\d|[abcdkm]\d?)\b(?!['(])")


class Fuzzed(NamedTuple):
    """What `Model.parse` is given."""

    text: str
    outputs: list[str]
    options: dict[str, Any]


def fuzzed_model(seed: int) -> Fuzzed:
    """The text of a seed: a third is as it was made, a third has functions in it, a third is bent as well."""
    rng = Random(seed)
    text, outputs = random_text(rng)
    options: dict[str, Any] = {}
    if rng.random() < 0.65:
        for _ in range(rng.randint(1, 3)):
            text = _wrapped(rng, text)
        options = {"inputs": ["u"] if re.search(r"\bu\*", text) and "u'" not in text else []}
        options["constants"] = {"c": rng.choice([2, 0, "1e-300", 1e300, "1/3", -1])} if "c*" in text else {}
    if rng.random() < 0.35:
        for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
            text = bent(rng, text)
        if rng.random() < 0.1:
            outputs = rng.choice([[], ["nothing"], [*outputs, *outputs], ["x1"], ["t"], ["u"], ["y", ""]])
    return Fuzzed(text, outputs, options)


def _wrapped(rng: Random, text: str) -> str:
    """With a function, time or an input where a name was."""
    places = list(_NAMES.finditer(text))
    if not places:
        return text
    at, other = rng.choice(places), rng.choice(places).group()
    new = rng.choice(WRAPPED).format(x=at.group(), y=other, f=rng.choice(FUNCTIONS))
    return text[: at.start()] + new + text[at.end() :]


def bent(rng: Random, text: str) -> str:
    """Text with one piece gone, doubled, moved, replaced or put in, a line repeated, or brackets a thousand deep."""
    pieces = _PIECES.findall(text) or [""]
    i, j = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    match rng.randrange(8):
        case 0:
            del pieces[i]
        case 1:
            pieces.insert(i, pieces[j])
        case 2:
            pieces[i], pieces[j] = pieces[j], pieces[i]
        case 3 | 4:
            pieces[i] = rng.choice(TOKENS)
        case 5:
            pieces.insert(i, rng.choice(TOKENS))
        case 6:
            lines = text.split("\n")
            pieces = [text, "\n", rng.choice(lines)]
        case 7:
            depth = rng.choice([2, 50, 1000])
            pieces[i] = rng.choice(
                ["(" * depth + pieces[i] + ")" * depth, "-" * depth + pieces[i], "^2" * min(depth, 50)]
            )
    return "".join(pieces)


HOSTILE = np.array(
    [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-300, 1e-30, 1e30, 1e154, 1e300, -1e300, 1.7e308, np.inf, -np.inf, np.nan]
)


def hostile_points(rng: np.random.Generator, lanes: int, width: int) -> np.ndarray:
    """Vectors over 600 orders of magnitude and both signs, with zeros, infinities and NaN; a third of them moderate."""
    spread = rng.choice([1.0, 5.0, 30.0, 300.0], size=(lanes, 1))
    with np.errstate(over="ignore"):
        points = np.exp(rng.normal(size=(lanes, width)) * spread)
    points *= np.where(rng.random((lanes, width)) < 0.1, -1, 1)
    odd = rng.random((lanes, width)) < rng.choice([0.0, 0.1, 0.5], size=(lanes, 1))
    return np.where(odd, rng.choice(HOSTILE, size=(lanes, width)), points)
