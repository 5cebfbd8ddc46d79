"""Level sets of given functions."""

from __future__ import annotations

from itertools import combinations

import pytest

from equifinal.algebra.generators.levels import Levels
from equifinal.language.parser import parse_expression
from tests.support.modulo import plenty


def levels(*functions: str, names: str = "abc") -> Levels:
    return Levels([parse_expression(f) for f in functions], {}, list(names))


@pytest.mark.parametrize(
    ("functions", "rank", "valid"),
    [
        (["a*b", "b*c"], 2, ["a", "b", "c"]),
        (["a*b", "c"], 2, ["a", "b"]),
        (["a + b + c"], 1, ["ab", "ac", "bc"]),
        (["a", "b", "a*b"], 2, ["c"]),
    ],
)
def test_what_may_be_fixed(functions: list[str], rank: int, valid: list[str]) -> None:
    found = levels(*functions)
    assert found.rank == rank
    size = 3 - rank
    assert ["".join(free) for free in combinations("abc", size) if found.is_valid(free)] == valid
    assert found.is_valid(found.some_free())


@pytest.mark.parametrize(
    ("functions", "names", "count"),
    [(["a + b", "a*b"], "ab", 2), (["a + b + c", "a*b + b*c + c*a", "a*b*c"], "abc", 6), (["a^2", "a^3"], "a", 1)],
)
def test_points_of_a_level_set(functions: list[str], names: str, count: int) -> None:
    assert levels(*functions, names=names).count([], plenty()) == count


def test_functions_that_do_not_determine_points_are_told() -> None:
    assert levels("a*b").count(["c"], plenty()) == 0  # a curve is left


def test_independent_choices_that_tell_the_most_apart() -> None:
    found = levels("a^2", "a*b", "b^2", names="ab")
    choices, all_told = found.independent(plenty())
    assert set(choices) == {(0, 1), (1, 2)}  # a^2 and b^2 alone leave four points
    assert all_told
    choices, all_told = levels("a^2", "a^3", names="a").independent(plenty())
    assert choices == [(0,)]
    assert not all_told  # without a^3, the sign of a is lost
