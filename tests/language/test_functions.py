"""Functions, time and conditions: read, written, evaluated and lowered."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from equifinal.errors import ModelError
from equifinal.language.expression import Call, Name, Number, evaluate, to_text
from equifinal.language.functions import call_on_arrays
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Event, Model, exact_number
from equifinal.language.parser import parse_expression


@pytest.mark.parametrize(
    "text",
    [
        "exp(-k*t)",
        "a*x^n/(K^n + x^n)",
        "(x + 1)^(1/2)",
        "log(x)/log(10)",
        "piecewise(a, t < 10, b, (1 - (t < t1))*(t < t2), c)",
        "k*(t < 5)",
        "min(a, b, c) + max(x, 0)",
        "abs(x - y)*tanh(x)*sin(2*t)",
        "2^x - x^(n + 1)",
        "1 - (t <= 2*a)",
    ],
)
def test_what_is_written_is_read_back(text: str) -> None:
    expression = parse_expression(text)
    assert to_text(expression) == text
    assert parse_expression(to_text(expression)) == expression


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("sqrt(x)", "x^0.5"),
        ("ln(x)", "log(x)"),
        ("Exp(x)", "exp(x)"),
        ("pow(x, 3)", "x^3"),
        ("pow(x, n)", "x^n"),
        ("x^(4/2)", "x^2"),
        ("(t ≥ a)", "(t >= a)"),
        ("(a > t)", "(t < a)"),
        ("(t - a < 0)", "(1*t < a)"),
        ("(not t < a)", "(t >= a)"),
        ("(1 <= t < 2)", "(t >= 1 and t < 2)"),
        ("(t < 1 or t > 2)", "(not (t >= 1 and t <= 2))"),
    ],
)
def test_other_ways_of_writing(text: str, same: str) -> None:
    first, second = parse_expression(text), parse_expression(same)
    borders = {"a": 1.5, "x": 2.0, "n": 0.7}
    for time in (0.5, 1.0, 1.5, 2.0, 2.5):

        def call(function: str, arguments: list[float], time: float = time) -> float:
            if function == "before":
                return float(time < arguments[0])
            if function == "until":
                return float(time <= arguments[0])
            return float(call_on_arrays(function, arguments))

        values = [evaluate(e, borders | {"t": time}, float, call) for e in (first, second)]
        assert values[0] == pytest.approx(values[1], rel=1e-15)


def test_functions_of_numbers_and_arrays() -> None:
    x = np.array([0.5, 1.0, 4.0])
    found = evaluate(parse_expression("exp(-x)*sqrt(x) + log10(x) + min(x, 1, 2)"), {"x": x}, float, call_on_arrays)
    np.testing.assert_allclose(found, np.exp(-x) * np.sqrt(x) + np.log10(x) + np.minimum(x, 1), rtol=1e-15)
    with pytest.raises(TypeError, match="not rational"):
        evaluate(parse_expression("exp(x)"), {"x": 1}, Fraction)


def test_a_constant_may_be_a_function_of_numbers() -> None:
    assert float(exact_number("log(2)/3", "c")) == pytest.approx(math.log(2) / 3, rel=1e-15)
    with pytest.raises(ModelError, match="finite number"):
        exact_number("log(-1)", "c")


def test_functions_and_time_in_models() -> None:
    model = Model.parse("x' = -k*exp(-t)*x\ny = log10(x)\nx(0) = 1", ["y"])
    assert model.parameters == ("k",)
    assert model.uses_time
    assert not model.is_plain
    assert Model.parse(model.to_text(), ["y"]) == model
    assert Model.parse("x' = -k*x", ["x"]).is_plain


def test_conditions_become_levels() -> None:
    model = Model.parse("x' = -piecewise(a, t < t1, b)*x + c*(t <= 5)\ny = x*(t < t1)", ["y"])
    lowered = without_conditions(model)
    assert list(lowered.levels) == ["condition 1", "condition 2"]
    assert lowered.events == (
        Event(Name("t1"), {"condition 1": Number(Fraction(0))}, first=True),
        Event(Number(Fraction(5)), {"condition 2": Number(Fraction(0))}, first=False),
    )
    assert lowered.equations["x"] != model.equations["x"]
    assert not any("before" in repr(e) for e in (*lowered.rhs, *lowered.observed))
    assert without_conditions(lowered) is lowered


def test_events_are_checked() -> None:
    model = Model.parse("x' = -k*x\nx(0) = 1", ["x"])
    dosed = model.vary(events=[Event(Name("lag"), {"x": parse_expression("x + F*D")})])
    assert dosed.parameters == ("k", "lag", "F", "D")
    with pytest.raises(ModelError, match="event 1 sets 'z', which is not a state"):
        model.vary(events=[Event(Number(Fraction(1)), {"z": Name("x")})])
    with pytest.raises(ModelError, match="the time of event 1 depends on 'x', which changes with time"):
        model.vary(events=[Event(Name("x"), {"x": Name("k")})])
    with pytest.raises(ModelError, match="the onset depends on 't'"):
        model.vary(onset="t")
    assert model.vary(onset="t0").parameters == ("k", "t0")
    assert model.vary(onset="t0").start_time == Name("t0")


def test_a_constant_may_stand_for_a_parameter_in_an_experiment() -> None:
    model = Model.parse("x' = -k*x\ny = scale*x\nx(0) = 1", ["y"], constants={"scale": 1})
    varied = model.vary(constants={"scale": "s_2"})
    assert varied.parameters == ("k", "s_2")
    assert varied.observed == Model.parse("x' = -k*x\ny = s_2*x\nx(0) = 1", ["y"]).observed
    assert model.vary(constants={"scale": "1/2"}).constants == {"scale": Fraction(1, 2)}


def test_a_steady_state_needs_equations_that_rest() -> None:
    model = Model.parse("x' = a - k*x", ["x"])
    assert model.vary(before=model).before == model
    with pytest.raises(ModelError, match="do not change with time"):
        model.vary(before=Model.parse("x' = a*t - k*x", ["x"]))
    assert Call("exp", (Name("x"),)) == parse_expression("exp(x)")
