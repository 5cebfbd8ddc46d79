"""Functions in compiled code: values, derivatives, where they are not defined, and where their code comes from."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from equifinal.language.expression import evaluate
from equifinal.language.functions import call_on_arrays
from equifinal.language.parser import parse_expression
from equifinal.machine import native
from equifinal.machine.assembly import assemble
from equifinal.machine.functions import Functions

NAMES = ("a", "b", "c")
TEXTS = [
    "exp(a*b) - exp(-c)",
    "log(a + b^2)*c",
    "log10(a)*log2(b) + ln(c)",
    "sqrt(a*b + c)",
    "sin(a*b)*cos(c) - sin(c)^2",
    "tan(a/3)*b",
    "tanh(a - b*c)",
    "abs(a - b)*abs(c - 2*b)",
    "min(a, b*c, 2*c) + max(b, a*c)",
    "a^b",
    "a^(1/3) + b^2.5 - c^(-0.7)",
    "(a + b)^(c - a)*2^a",
    "pow(a, b)/(c + pow(a, b))",
    "exp(sin(log(a*b + sqrt(c))))",
]


def compiled(text: str):
    """The values of an expression, its gradient and the rows of its second derivatives, as one function of x."""
    functions = Functions({"x": NAMES}, {"f": [parse_expression(text)]})
    graph, (root,) = functions.graph, functions.nodes["f"]
    loads = [graph.load("x", i) for i in range(3)]
    first = [graph.derivatives([root], {load: graph.one})[0] for load in loads]
    second = [node for load in loads for node in graph.derivatives(first, {load: graph.one})]
    roots = [root, *first, *second]
    code = functions.compile({"f": roots})
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 6)(code.addresses["f"])

    def run(x) -> np.ndarray:
        x, out = np.array(x, float), np.full(len(roots), np.nan)
        call(x.ctypes.data, 0, 0, 0, 0, out.ctypes.data)
        return out

    run.code = code  # kept alive with the function
    return run


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_both_derivatives(text):
    """Values agree with NumPy's, first and second derivatives with central differences of what they derive."""
    run, x, h = compiled(text), np.array([1.3, 0.7, 2.1]), 1e-5
    found = run(x)
    expected = evaluate(parse_expression(text), dict(zip(NAMES, x, strict=True)), float, call_on_arrays)
    assert found[0] == pytest.approx(float(expected), rel=1e-13)
    moves = [h * np.eye(3)[i] for i in range(3)]
    differences = [(run(x + move)[:4] - run(x - move)[:4]) / (2 * h) for move in moves]
    np.testing.assert_allclose(found[1:4], [d[0] for d in differences], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found[4:].reshape(3, 3), [d[1:4] for d in differences], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n", [0.5, 1.0, 1.5, 2.0, 3.7])
def test_powers_with_unknown_exponent_at_zero(n):
    """x^n, its derivatives and theirs are finite at x = 0, and where there is a limit they are the limit."""
    found = compiled("a^b")([0.0, n, 0.0])
    assert np.isfinite(found).all()
    assert found[0] == 0
    assert found[1] == (1.0 if n == 1 else 0.0)
    assert found[2] == 0
    fractional = compiled("sqrt(a)*b")([0.0, n, 0.0])
    assert np.isfinite(fractional).all()


def test_powers_of_negative_numbers():
    whole = compiled("a^b")
    assert whole([-2.0, 3.0, 0.0])[:2].tolist() == [-8.0, 12.0]
    assert whole([-2.0, -2.0, 0.0])[:2].tolist() == [0.25, 0.25]
    assert np.isnan(whole([-2.0, 0.5, 0.0])[0])


@pytest.mark.parametrize(
    "text", ["log(a)", "sqrt(a)", "a^1.5", "min(b, log(a))", "min(log(a), b)", "max(b, log(a))", "max(log(a), b)"]
)
def test_what_is_not_defined_is_not_a_number(text):
    assert np.isnan(compiled(text)([-1.0, 2.0, 0.0])[0])


def test_ties_of_the_smaller_and_larger():
    assert compiled("min(a, b)")([2.0, 2.0, 0.0])[:3].tolist() == [2.0, 0.5, 0.5]
    assert compiled("max(a, b)")([2.0, 2.0, 0.0])[:3].tolist() == [2.0, 0.5, 0.5]


def test_no_name_of_a_function_is_left_unresolved():
    """All of them in one module: LLVM's own, and those of the C library."""
    functions = Functions({"x": NAMES}, {"f": [parse_expression(text) for text in TEXTS]})
    text = assemble(functions.graph, {"f": functions.nodes["f"]}, typed_pointers=native.typed_pointers())
    assert "@tan(" in text
    assert "@tanh(" in text
    assert native.compile_assembly(text, ["f"]).addresses["f"]


FRESH = """
import sys
from equifinal.language.model import Model
from equifinal.ode import compile_system, simulate
model = Model.parse("x' = -tanh(k)*x + tan(t/9) + exp(-k)*sin(t)^2 + x^k + log(2 + cos(t))\\nx(0) = 1", ["x"])
found = simulate(compile_system(model, ("k",)), [[0.7]], [1.0], sensitivities=True, method=sys.argv[1])
print(found.status[0], repr(float(found.outputs[0, 0, 0])), "numba" in sys.modules)
"""


def test_functions_in_a_new_process():
    """The C library's functions are found without Numba, which a later run does not import."""
    found = [
        subprocess.run([sys.executable, "-c", FRESH, method], capture_output=True, text=True, check=True).stdout.split()
        for method in ("explicit", "stiff")
    ]
    (status, explicit, numba), (other, stiff, _) = found
    assert (status, other, numba) == ("0", "0", "False")
    assert float(explicit) == pytest.approx(float(stiff), rel=1e-5)
