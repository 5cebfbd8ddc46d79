"""Expressions in files: read back node for node, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equifinal.errors import ModelError
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, number_text
from equifinal.language.parser import parse_expression
from equifinal.language.trees import from_tree, to_tree

_leaves = st.one_of(st.fractions().map(Number), st.sampled_from(["a", "x(0)", "t", "μ", "condition 1"]).map(Name))


def _grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        several.map(Sum),
        several.map(Product),
        st.builds(Power, inner, st.integers(-1000, 1000)),
        st.builds(lambda e: Call("exp", (e,)), inner),
        st.builds(lambda a, b: Call("power", (a, b)), inner, inner),
    )


@given(st.recursive(_leaves, _grown, max_leaves=12))
def test_read_back_node_for_node(expression: Expression) -> None:
    assert from_tree(to_tree(expression)) == expression


@pytest.mark.parametrize(
    "tree",
    [
        "",
        "1/0",
        "1e999999",
        "1.5",
        "-",
        3,
        None,
        [],
        ["+"],
        ["sin", "x", "y"],
        ["eval", "x"],
        ["^", "x", "y"],
        ["^", "x", "1.5"],
        ["^", "x", "9" * 20],
        "9" * 2000,
        {"a": 1},
        [["+"], "x"],
    ],
)
def test_anything_else_is_refused(tree: Any) -> None:
    with pytest.raises(ModelError, match="not an ex"):
        from_tree(tree)


def test_deep_nesting_is_refused() -> None:
    tree: Any = "x"
    for _ in range(5000):
        tree = ["+", tree]
    with pytest.raises(ModelError, match="nested too deeply"):
        from_tree(tree)


@pytest.mark.parametrize(
    "text", ["1e-300", "3.25e299", "12345678901234567890123", "1.5e-7", "0.1", "-2.5e-200", "3.141592653589793"]
)
def test_numbers_of_any_size_are_written_shortly(text: str) -> None:
    number = parse_expression(text)
    assert isinstance(number, Number)
    assert len(number_text(number.value)) <= min(29, len(text) + 2)
    assert parse_expression(number_text(number.value)) == number
