"""Which functions are kept, and when they are complete."""

from __future__ import annotations

import random

from equifinal.algebra.generators.candidates import Search
from equifinal.algebra.generators.selection import Selection, level_set
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from tests.support.fields import same_field
from tests.support.modulo import PRIME, plenty, slice_of, values_of

SWAP = Model.parse("x' = -k*x\nz' = -m*z\nx(0) = 1\nz(0) = 1\ny = x + z", ["y"])


def parsed(*texts: str) -> list:
    return [parse_expression(text) for text in texts]


def test_all_points_of_a_level_set() -> None:
    point = {"a": 918273645, "b": 546372819, "c": 11}
    names, points = level_set(parsed("a + b", "a*b*c"), {}, point, {"c": 11}, PRIME, random.Random(0), plenty())
    by_name = dict(zip(names, points.coordinates, strict=True))
    assert values_of(by_name["a"], points) == sorted((point["a"], point["b"]))


def test_points_where_a_function_is_undefined_are_none() -> None:
    """a*(a - b)/(a - b) is a; that a = b solves the equation without its denominator does not count."""
    point = {"a": 918273645, "b": 546372819}
    _, points = level_set(parsed("a*(a - b)/(a - b)", "a*b"), {}, point, {}, PRIME, random.Random(0), plenty())
    assert points.count == 1


def test_the_rank_comes_first_and_then_what_tells_points_apart() -> None:
    fibre = slice_of(SWAP)
    selection = Selection(fibre, random.Random(0))
    selection.offer(parsed("(k + m)^2"))
    assert not selection.separate(plenty())  # the rank is not complete
    selection.offer(parsed("k*m", "(k + m)^4", "k + m"))
    assert selection.kept == parsed("(k + m)^2", "k*m")
    assert selection.rank == 2
    assert selection.separate(plenty())
    assert selection.kept == parsed("(k + m)^2", "k*m", "k + m")  # the fourth power told nothing apart


def test_a_search_ends_with_the_whole_field() -> None:
    model = Model.parse("I' = b*(N - I)*I - g*I\ny = r*I", ["y"], constants={"N": 100})
    for each, expected in ((model, ["100*b - g", "b/r", "r*I_0"]), (SWAP, ["k + m", "k*m"])):
        found = Search([each], [slice_of(each)], {}, random.Random(0)).run(plenty())
        assert found.complete
        assert same_field(found.functions, parsed(*expected), each.parameters, plenty()) == ([], [])
