"""What happens to a model, in words."""

from __future__ import annotations

import pytest

from equifinal.language.happening import happening_lines
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression


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


@pytest.mark.parametrize(
    ("value", "words"), [("u + 1/2", "u rises by 0.5"), ("u - k", "u falls by k"), ("k", "u becomes k")]
)
def test_a_level(value: str, words: str) -> None:
    model = Model.parse("x' = -k*x + u\nx(0) = 1", ["x"], parameters=["k"], constants={"u": 1})
    event = Event(parse_expression("3"), {"u": parse_expression(value)})
    model = model.vary(constants={}, levels={"u": parse_expression("1")}, events=[event])
    assert any(words in line for line in happening_lines(model))
