"""What happens to a model, in words."""

from __future__ import annotations

import pytest

from equifinal.language.happening import happening_lines
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression
from equifinal.problem.changes import Change, changed
from equifinal.problem.doses import Dose, dosed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x + 2", "2 is added to x"),
        ("x - 2", "2 is taken from x"),
        ("x - k", "k is taken from x"),
        ("x - k*q", "k*q is taken from x"),
        ("x - 3*k", "3*k is taken from x"),
        ("x + k - q", "k - q is added to x"),
        ("2*x", "x becomes 2*x"),
        ("0", "x becomes 0"),
    ],
)
def test_a_state(value: str, words: str) -> None:
    model = Model.parse("x' = -k*x + q\nx(0) = 1", ["x"])
    model = model.vary(events=[Event(parse_expression("3"), {"x": parse_expression(value)})])
    (line,) = happening_lines(model)
    assert words in line


def test_a_level() -> None:
    """An infusion begins and ends, and a constant changes."""
    model = Model.parse("x' = -k*x + u\nx(0) = 1", ["x"], parameters=["k"], constants={"u": 1})
    lines = happening_lines(dosed(model, [Dose("x", rate="2*k", duration=1.5, time=2)]))
    assert ["rises by 2*k" in line for line in lines] == [True, False]
    assert ["falls by 2*k" in line for line in lines] == [False, True]
    lines = happening_lines(changed(model, [Change(3, constants={"u": "k"})]))
    assert "at t = 3: u becomes k" in lines
