"""Bounds on errors hold, and say when nothing is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from equifinal.language.parser import parse_expression
from equifinal.machine.bounded import ARGUMENT_ERROR
from equifinal.machine.compiled import compiled
from equifinal.machine.determinant import TooLong, determinant
from equifinal.machine.functions import Functions
from equifinal.machine.graph import Graph
from equifinal.machine.pointers import call_on

NAMES = ("a", "b", "d")
TEXTS = [
    "a + b",
    "a - b",
    "a*b - d^2",
    "(a - b)/(a - d)",
    "a^5 - b^5",
    "1/3 + a/7 - b",
    "(a*b - b*d)/(a^2 - 1/10*b) - a/b",
    "((a - b)^3 + a*d)/(d - 1/3) + 10^20*a - 10^20*b",
    "a",
    "3",
]


@compiled
def _called(address, rows, size):
    found = np.empty((len(rows), size))
    x, out = np.empty(rows.shape[1]), np.empty(size)
    for i in range(len(rows)):
        x[:] = rows[i]
        call_on(address, x, x, out)
        found[i] = out
    return found


def values_and_bounds(text, rows):
    functions = Functions({"x": NAMES}, {"f": [parse_expression(text)]})
    code = functions.compile_bounded("f", functions.nodes["f"])
    return _called(code.addresses["f"], rows, 2).T


def exact(text, point):
    x = dict(zip(NAMES, map(Fraction, point), strict=True))
    return eval(
        text.replace("^", "**").replace("1/3", "Fraction(1, 3)").replace("1/10", "Fraction(1, 10)"),
        {"Fraction": Fraction, **x},
    )


def points(n, seed=0):
    """Some of them with cancellation."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-6, 6, (n, 3))
    rows[::2, 1] = rows[::2, 0] * (1 + 10.0 ** rng.uniform(-16, -3, len(rows[::2])))
    rows[::3, 2] = 1 / 3 + 10.0 ** rng.uniform(-17, -3, len(rows[::3]))
    return rows


@pytest.mark.parametrize("text", TEXTS)
def test_errors_are_within_their_bounds(text):
    rows = points(300)
    rng = np.random.default_rng(1)
    values, bounds = values_and_bounds(text, rows)
    told = 0
    for row, value, bound in zip(rows, values, bounds, strict=True):
        if not np.isfinite(bound):
            continue
        told += 1
        for moved in (np.zeros(3), rng.choice([-1.0, 1.0], 3)):  # as given, and with arguments off by what is allowed
            at = [Fraction(x) * (1 + Fraction(ARGUMENT_ERROR) * int(m)) for x, m in zip(row, moved, strict=True)]
            assert abs(Fraction(value) - exact(text, at)) <= Fraction(bound) * (1 + Fraction(1, 10**12))
    assert told > 150


def test_bounds_are_not_idle():
    rows = np.random.default_rng(2).uniform(1, 2, (100, 3))
    for text in ("a*b*d", "a + b + d", "a^3/(b + d)"):
        values, bounds = values_and_bounds(text, rows)
        assert (bounds < 1e-14 * np.abs(values)).all()


def test_nothing_is_known_where_a_denominator_may_be_zero():
    one = np.nextafter(1.0, 2.0)
    rows = np.array([[1.0, 1.0, 2.0], [1.0, one, 2.0], [np.inf, 1.0, 2.0], [np.nan, 1.0, 2.0]])
    assert not np.isfinite(values_and_bounds("d/(a - b)", rows)[1]).any()
    assert not np.isfinite(values_and_bounds("1/(a - b) + d", rows)[1][:2]).any()


def test_underflow_is_accounted_for():
    rows = np.array([[1e-200, 1e-200, 1e200]])
    value, bound = values_and_bounds("a*b*d", rows)[:, 0]
    assert abs(value - 1e-200) <= bound


# --- determinants ---


def sparse(rng, q, share):
    found = np.where(rng.random((q, q)) < share, rng.integers(-5, 6, (q, q)), 0)
    return found.astype(int)


@pytest.mark.parametrize("q", [0, 1, 2, 3, 5, 7])
def test_determinant_of_numbers(q):
    """Numbers are folded, so the node is the determinant itself."""
    rng = np.random.default_rng(q)
    for share in (0.3, 0.6, 1.0):
        matrix = sparse(rng, q, share)
        graph = Graph()
        node = determinant(graph, [[graph.number(Fraction(int(x))) for x in row] for row in matrix], 1000)
        assert graph.nodes[node][0] == "number"
        assert graph.nodes[node][1] == round(np.linalg.det(matrix))


def test_determinant_of_a_triangle_is_a_product():
    graph = Graph()
    x = [[graph.load("x", 5 * i + k) if k <= i else graph.zero for k in range(5)] for i in range(5)]
    node = determinant(graph, x, 10)
    assert graph.loads([node], "x") == [0, 6, 12, 18, 24]
    assert sum(graph.nodes[a][0] != "load" for a in graph.reachable([node])) == 4


def test_long_determinants_are_given_up():
    graph = Graph()
    with pytest.raises(TooLong):
        determinant(graph, [[graph.load("x", 12 * i + k) for k in range(12)] for i in range(12)], 500)


def test_a_copy_has_other_arguments():
    text = parse_expression("-(a/b)^3 + 2*a - b*a")
    source, target = Functions({"x": ("a", "b")}, {"f": [text]}), Functions({"p": ("b", "a")}, {})
    arguments = {("x", 0): target.names["a"].node, ("x", 1): target.names["b"].node}
    assert target.graph.copied(source.graph, source.nodes["f"], arguments) == target.record([text])
