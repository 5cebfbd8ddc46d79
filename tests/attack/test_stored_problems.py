"""Stored problems: read back as they were, and whatever else is there is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from equifinal.errors import DataError
from equifinal.examples import example_path
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.load import load
from equifinal.formats.toml import loads

TRICKY = [
    "a + -b*c",
    "a - -b",
    "1/x^2 + x^(-2)",
    "-(-a)*b/(c*d)",
    "a/(b/(c/x))",
    "2*3*x/4/5",
    "(x^2)^3 - 1e-300*x",
    "3.25e299*x*1e-299",
    "a*x^n/(K^n + x^n)",
    "exp(-(a + b)*t)*(t < 5)",
    "piecewise(a, t < 1, b, t >= t1 and t < 3, x)",
    "min(x, a, 0.1)^0.5 + 12345678901234567890123",
]
PROBLEM = """
[model]
equations = \"\"\"
x' = {}
x(0) = 1e-300
\"\"\"
outputs = ["x"]
"""
EXAMPLES = ("si", "doses", "treatment", "signalling", "mrna")


@pytest.mark.parametrize("text", TRICKY)
def test_problems_are_read_back_as_they_were(text: str) -> None:
    problem = loads(PROBLEM.format(text))
    again = problem_from_json(problem_to_json(problem))
    assert again.model == problem.model
    assert again.fingerprint() == problem.fingerprint()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_read_back_as_they_were(name: str) -> None:
    problem = load(example_path(name))
    again = problem_from_json(problem_to_json(problem))
    assert again.fingerprint() == problem.fingerprint()
    assert problem_to_json(again) == problem_to_json(problem)


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1e308,
    "",
    "1/0",
    "1e999999",
    "nan",
    [],
    {},
    ["+"],
    ["^", "x", "1e9"],
    "t",
    [[[]]],
]


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        found += _places(value, (*path, key))
    return found


def _hostile_edit(document: Any, rng: random.Random) -> None:
    *way, last = rng.choice(_places(document))
    for key in way:
        document = document[key]
    kind = rng.randrange(3)
    if kind == 0 and isinstance(document, dict):
        del document[last]
    elif kind == 1 and isinstance(document, list):
        document.append(rng.choice(HOSTILE))
    else:
        document[last] = rng.choice(HOSTILE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_hostile_edits_are_refused_or_harmless(name: str) -> None:
    """Each of 60 edits gives a problem that is stored and read back, or one of our errors, and no other."""
    stored, refused = problem_to_json(load(example_path(name))), 0
    for seed in range(60):
        document = json.loads(stored)
        _hostile_edit(document, random.Random(seed))
        try:
            problem = problem_from_json(json.dumps(document))
            problem_from_json(problem_to_json(problem))
        except DataError as error:
            refused += 1
            assert len(str(error)) < 2000
    assert refused > 10
