"""The arithmetic graph, its derivatives, and the functions assembled from it."""

from __future__ import annotations

import ctypes
import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.errors import ModelError
from equifinal.language.expression import evaluate
from equifinal.language.parser import parse_expression
from equifinal.machine import native
from equifinal.machine.assembly import assemble
from equifinal.machine.graph import Graph, Term
from tests.support.expressions import NAMES, as_sympy


def nodes_of(text: str) -> tuple[Graph, int]:
    graph = Graph()
    values = {name: Term(graph, graph.load("x", i)) for i, name in enumerate(NAMES)}
    return graph, evaluate(parse_expression(text), values, lambda v: Term(graph, graph.number(v))).node


def run(graph: Graph, roots: list[int], x: np.ndarray) -> np.ndarray:
    assembly = assemble(graph, {"f": roots}, typed_pointers=native.typed_pointers())
    code = native.compile_assembly(assembly, ["f"])
    out = np.full(len(roots), np.nan)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 6)(code.addresses["f"])
    function(x.ctypes.data, 0, 0, 0, 0, out.ctypes.data)
    return out


@pytest.mark.parametrize(
    "text",
    [
        "a*b + c",
        "-a*b - 2*c + a*b",
        "(a - b)^3/(a + c)^2",
        "a^7 - 3/(b*c)",
        "1/(1 + a/(b + c^2))",
        "-(a - b)*(b - a)",
        "0*a + 1*b - 0",
        "2/3*a - a*1/3",
    ],
)
def test_values_and_derivatives_agree_with_sympy(text):
    graph, root = nodes_of(text)
    x = np.array([1.3, 0.7, 2.1])
    exact = as_sympy(text)
    at = dict(zip(map(sympy.Symbol, NAMES), x, strict=True))
    gradient = graph.gradient(root, "x")
    roots = [root, *(gradient.get(i, graph.zero) for i in range(3))]
    expected = [exact.subs(at), *(exact.diff(sympy.Symbol(name)).subs(at) for name in NAMES)]
    np.testing.assert_allclose(run(graph, roots, x), [float(e) for e in expected], rtol=1e-13)


expressions = st.recursive(
    st.sampled_from([*NAMES, "2", "3/7", "0", "1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.integers(-3, 4)).map(lambda t: f"({t[0]})^({t[1]})"),
    ),
    max_leaves=12,
)


def exactly(text: str, at: dict[str, Fraction]) -> Fraction | None:
    try:
        return evaluate(parse_expression(text), at, Fraction)
    except (ZeroDivisionError, ModelError):
        return None


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_simplifications_keep_the_value(text):
    at = {"a": Fraction(13, 8), "b": Fraction(-5, 4), "c": Fraction(1, 2)}
    value = exactly(text, at)
    if value is None:
        return
    graph, root = nodes_of(text)
    found = run(graph, [root], np.array([float(at[name]) for name in NAMES]))[0]
    if abs(value) < 1e-6 or abs(value) > 1e12:
        return  # cancellation: nothing to compare in floating point
    assert found == pytest.approx(float(value), rel=1e-6)


def test_equal_terms_are_computed_once():
    graph, root = nodes_of("a*b/(1 + a*b) + (a*b)^2")
    assembly = assemble(graph, {"f": [root]}, typed_pointers=native.typed_pointers())
    assert len(re.findall(r"fmul", assembly)) == 2  # a*b, and its square


def test_integer_powers_become_multiplications():
    graph, root = nodes_of("a^13")
    assembly = assemble(graph, {"f": [root]}, typed_pointers=native.typed_pointers())
    assert "call" not in assembly
    assert assembly.count("fmul") == 5  # 13 = 1101 in binary
    assert run(graph, [root], np.array([1.5]))[0] == pytest.approx(1.5**13, rel=1e-14)


def test_numbers_out_of_range_are_infinite_rather_than_an_error():
    graph = Graph()
    assert run(
        graph, [graph.number(Fraction(10) ** 400), graph.number(-(Fraction(10) ** 400))], np.zeros(1)
    ).tolist() == [
        np.inf,
        -np.inf,
    ]


def test_long_sums_do_not_exhaust_the_stack():
    text = " + ".join(["a*b"] + [f"{i}*a" for i in range(2, 4000)])
    graph, root = nodes_of(text)
    gradient = graph.gradient(root, "x")
    found = run(graph, [gradient[0]], np.array([1.0, 2.0, 0.0]))[0]
    assert found == 2.0 + sum(range(2, 4000))


def test_powers_of_powers_and_of_negatives_are_one_power() -> None:
    graph = Graph()
    x = graph.load("x", 0)
    cube = graph.power(x, 3)
    assert graph.power(x, 0) == graph.one
    assert graph.power(x, 1) == x
    assert graph.power(cube, 2) == graph.power(x, 6)
    assert graph.power(x, -2) == graph.divide(graph.one, graph.power(x, 2))
    assert graph.power(graph.negative(x), 2) == graph.power(x, 2)
    assert graph.power(graph.negative(x), 3) == graph.negative(cube)
    assert graph.real_power(x, graph.number(Fraction(3))) == cube
    assert graph.divide(graph.negative(x), cube) == graph.negative(graph.divide(x, cube))
    assert graph.divide(x, graph.negative(cube)) == graph.negative(graph.divide(x, cube))
