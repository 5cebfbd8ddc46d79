from __future__ import annotations

import pickle
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equifinal.errors import EquifinalError, ModelError
from equifinal.language.expression import evaluate, to_text
from equifinal.language.model import Model

SI = """
S' = -beta*S*I + gamma*I   # susceptible
I' =  beta*S*I - gamma*I
cases = rho*I
S(0) = N - I0
I(0) = I0
"""


def si() -> Model:
    return Model.parse(SI, ["cases"], constants={"N": 10000}, quantities={"R0": "beta*N/gamma"})


def test_si_is_read_as_written() -> None:
    model = si()
    assert model.states == ("S", "I")
    assert model.parameters == ("beta", "gamma", "rho", "I0")
    assert model.constants == {"N": Fraction(10000)}
    assert model.outputs == ("cases",)
    assert [to_text(e) for e in model.start] == ["N - I0", "I0"]
    assert to_text(model.observed[0]) == "rho*I"
    assert to_text(model.interest["R0"]) == "beta*N/gamma"


def test_both_spellings_of_a_derivative() -> None:
    a = Model.parse("x' = -k*x", ["x"])
    b = Model.parse("dx/dt = -k*x", ["x"])
    c = Model.parse("x(t)’ = −k·x(t)", ["x"])
    assert a == b == c


def test_initial_values_left_out_are_parameters() -> None:
    model = Model.parse("x' = -k*x\ny' = k*x\ny(0) = 0", ["y"])
    assert model.parameters == ("k", "x_0")
    assert [to_text(e) for e in model.start] == ["x_0", "0"]


def test_initial_values_may_name_each_other() -> None:
    model = Model.parse("S' = -b*S*I\nI' = b*S*I\nS(0) = N - I(0)", ["I"], constants={"N": 100})
    assert to_text(model.start[0]) == "N - I_0"


def test_definitions_may_name_initial_values() -> None:
    model = Model.parse("x' = d\nd = -x(0)*k\nx(0) = 2*e\ne = a", ["x"])
    assert evaluate(model.rhs[0], {"k": 3, "a": 5}, int) == -30
    assert model.parameters == ("k", "a")


def test_look_alike_letters_are_the_same_name() -> None:
    model = Model.parse("x' = -\u00b5*x", ["x"], constants={"\u03bc": 2})  # micro sign and mu
    assert model.parameters == ("x_0",)
    assert Model.parse("x' = -\u03bc*x", ["x"], constants={"\u00b5": 2}).parameters == ("x_0",)


def test_definitions_in_any_order_are_put_in() -> None:
    model = Model.parse("x' = rate\nrate = k*double\ndouble = 2*x\ny = double", ["y"])
    assert to_text(model.rhs[0]) == "k*2*x" or evaluate(model.rhs[0], {"k": 3, "x": 5}, int) == 30
    assert evaluate(model.observed[0], {"x": 5}, int) == 10
    assert model.parameters == ("k", "x_0")


def test_names_that_other_languages_reserve() -> None:
    model = Model.parse("in' = lambda*in - is*in\nE' = N*Q - S", ["in", "E"])
    assert set(model.parameters) == {"lambda", "is", "N", "Q", "S", "in_0", "E_0"}


def test_text_reads_back() -> None:
    model = si()
    again = Model.parse(model.to_text(), model.outputs, constants=model.constants, quantities={"R0": "beta*N/gamma"})
    assert again == model
    assert pickle.loads(pickle.dumps(model)) == model


def test_numbers_are_exact() -> None:
    model = Model.parse("x' = -1e-5*x", ["x"], constants={"a": 0.1, "b": "1/3", "c": 7})
    assert model.constants == {"a": Fraction(1, 10), "b": Fraction(1, 3), "c": Fraction(7)}
    assert evaluate(model.rhs[0], {"x": Fraction(1)}, Fraction) == Fraction(-1, 100000)


def test_vary_gives_another_experiment() -> None:
    other = si().vary(constants={"N": 500}, initial={"S": "N - I0 - R", "I": "I0"})
    assert other.constants["N"] == 500
    assert other.parameters == ("beta", "gamma", "rho", "I0", "R")
    with pytest.raises(ModelError, match="did you mean 'N'"):
        si().vary(constants={"n": 3})
    with pytest.raises(ModelError, match="unknown state"):
        si().vary(initial={"X": "3"})


GAMA = "gama has no prior: add it to [parameters] or give it a value in [constants], or did you mean 'gamma'?"


@pytest.mark.parametrize(
    ("equations", "declared", "place", "words"),
    [
        (
            "x' = gama*x",
            {"parameters": ["gamma"]},
            (1, 6),
            GAMA,
        ),
        ("x' = 1\nx' = 2", {}, (2, 1), "two equations"),
        ("x' = 1\ny = 2\ny = 3", {}, (3, 1), "defined twice"),
        ("x' = 1\nx(0) = 1\nx(0) = 2", {}, (3, 1), "two initial values"),
        ("x' = 1\ny(0) = 1", {}, (2, 1), "no equation"),
        ("x' = 1\nx(1) = 1", {}, (2, 3), "time 0"),
        ("x'' = 1", {}, (1, 3), "first derivatives"),
        ("x' = 1\nx = 2", {}, (2, 1), "a state"),
        ("x' = k\nk = 2", {"constants": {"k": 1}}, (2, 1), "a constant"),
        ("x' = u\nu = 2", {"inputs": ["u"]}, (2, 1), "an input"),
        ("x' = 1\nx(0) = t", {}, None, "depends on 't', which changes with time"),
        ("x' = y\ny = z\nz = y", {}, None, "circular"),
        ("x' = 1\nx(0) = y(0)\ny' = 1\ny(0) = x(0)", {}, None, "circular"),
        ("x' = 1\ny' = 1\nx(0) = y", {}, None, "write y(0)"),
        ("x' = 1", {"outputs": ["z"]}, None, "not defined"),
        ("x' = 1", {"outputs": ["X"]}, None, "did you mean 'x'"),
        ("x' = 1", {"outputs": []}, None, "no outputs"),
        ("x' = 1", {"outputs": "x"}, None, "list of names"),
        ("x' = 1", {"outputs": ["x", "x"]}, None, "twice"),
        ("y = 1", {"outputs": ["y"]}, None, "no states"),
        ("x' = k/(a - a)", {}, None, "divides by zero"),
        ("x' = k/(2*a - a - a*b/b)", {}, None, "divides by zero"),
        ("x' = 1/N", {"constants": {"N": 0}}, None, "divides by zero"),
        ("x' = k*x", {"quantities": {"R": "kk"}}, None, "did you mean 'k'"),
        ("x' = k*x", {"quantities": {"k": "2"}}, None, "same name as something else"),
        ("x' = k*x", {"quantities": {"R": "k +"}}, None, "quantity 'R', column 4"),
        ("x' = k*x", {"constants": {"k": "abc"}}, None, "finite number"),
        ("x' = k*x", {"constants": {"k": float("nan")}}, None, "finite number"),
        ("x' = k*x", {"constants": {"k": True}}, None, "must be a number"),
        ("x' = k*x", {"constants": {"k": "1e300*1e300"}}, None, "too large"),
        ("x' = k*x", {"constants": {"k": "1e300^100"}}, None, "too large"),
        ("x' = k*x", {"constants": {"2k": 1}}, None, "cannot be the name"),
        ("just some text", {}, (1, 6), "expected '='"),
        ("= 3", {}, (1, 1), "expected an equation"),
        ("x' = 1 +", {}, (1, 9), "found the end"),
        ("x' = k*0^-1", {}, (1, 8), "division by zero"),
        ("x' = erf(x)", {}, (1, 6), "'erf' is not a function that is known; if a product was meant, write erf*(...)"),
        ("x' = expp(x)", {}, (1, 6), "did you mean 'exp'"),
        ("x' = " + 300 * "(" + "x" + 300 * ")", {}, (1, 56), "brackets are nested more than"),
        ("x' = x^p", {"constants": {"p": 1e9}}, (1, 9), "powers above"),
        ("x' = k*xx(0)", {}, (1, 8), "'xx(0)' is not the initial value of a state; did you mean 'x'"),
        ("x' = u\nx(0) = u", {"inputs": ["u"]}, None, "the initial value of 'x' depends on the input 'u'"),
        ("x' = 1\nx_0 = 3", {}, None, "'x_0' names the initial value of 'x' and cannot be defined"),
        ("x' = u", {"inputs": ["u"], "constants": {"u": 1}}, None, "declared both as a constant and as an input"),
        ("t = 3\nx' = 1", {}, (1, 1), "'t' stands for time and cannot be defined"),
        ("x' = k", {"constants": {"t": 1}}, None, "'t' stands for time and cannot be the name of a constant"),
        ("x' = k", {"constants": {3: 1}}, None, "the name of a constant must be text, not 3"),
    ],
)
def test_errors(equations: str, declared: dict, place: tuple[int, int] | None, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        Model.parse(equations, **({"outputs": ["x"]} | declared))
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (place or (None, None))


def test_definitions_that_explode_are_refused_quickly() -> None:
    lines = ["x' = d30*x", "d0 = x + k"] + [f"d{i} = d{i - 1}*d{i - 1}" for i in range(1, 31)]
    with pytest.raises(ModelError, match="terms"):
        Model.parse("\n".join(lines), ["x"])
    deep = ["x' = d400*x", "d0 = x + k"] + [f"d{i} = d{i - 1} + 1" for i in range(1, 401)]
    with pytest.raises(ModelError, match="deep"):
        Model.parse("\n".join(deep), ["x"])


def test_model_errors_survive_pickling() -> None:
    with pytest.raises(ModelError) as caught:
        Model.parse("x' = ex(x)", ["x"])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.word == "ex"


lines = st.lists(
    st.sampled_from(["x' = ", "dy/dt =", "x(0)=", "y(0) =", "z = ", "w = z*", "t=", "a'b", "  ", "#"]).flatmap(
        lambda left: st.text(alphabet="xyzwabt()0123.+-*/^ \n'", max_size=15).map(lambda right: left + right)
    ),
    max_size=6,
).map("\n".join)


@given(lines | st.text(max_size=80), st.lists(st.sampled_from(["x", "y", "z", "w", "", "2", "t"]), max_size=2))
@example("x' = (((((((((x)))))))))", ["x"])
@example("x' = x/(y-y)\ny'=1", ["x"])
def test_no_input_leads_anywhere_but_to_a_model_or_a_model_error(text: str, outputs: list[str]) -> None:
    try:
        model = Model.parse(text, outputs)
    except ModelError as error:
        assert str(error)
    else:
        assert Model.parse(model.to_text(), model.outputs).states == model.states
        assert model.describe()


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers() | st.floats() | st.none(), max_size=3))
def test_no_declaration_leads_anywhere_else_either(declared: dict) -> None:
    for kind in ("constants", "quantities"):
        try:
            Model.parse("x' = k*x", ["x"], **{kind: declared})
        except EquifinalError as error:
            assert str(error)


# --- exponents, quotients and declarations ---


def test_a_constant_may_be_an_exponent() -> None:
    model = Model.parse("x' = -k*x^n/(1 + x^(n))\ny = n*x", ["y"], constants={"n": 3, "c": 2}, quantities={"q": "k^n"})
    assert model == Model.parse("x' = -k*x^3/(1 + x^(3))\ny = 3*x", ["y"], constants={"c": 2}, quantities={"q": "k^3"})
    with pytest.raises(ModelError, match="unknown constant 'n'; an exponent cannot be varied"):
        model.vary(constants={"n": 4})
    assert Model.parse("x' = -x^n", ["x"], constants={"n": "1.5"}).constants == {"n": Fraction(3, 2)}
    assert "n" in Model.parse("x' = -x^n", ["x"]).parameters


@pytest.mark.parametrize(
    ("right", "start", "value"),
    [
        ("a*x^2/x", "0", 0),
        ("(a*x + x^2)/x", "0", 2),
        ("(x^2 - b^2)/(x - b)", "b", 6),
        ("a*x^2/x", "b", 6),
        ("a/(1 + x)", "0", 2),
    ],
)
def test_quotients_that_have_a_value_at_the_start(right: str, start: str, value: int) -> None:
    model = Model.parse(f"x' = {right}\nx(0) = {start}", ["x"])
    at = {"a": Fraction(2), "b": Fraction(3)}
    at["x"] = evaluate(model.start[0], at, Fraction)
    assert evaluate(model.rhs[0], at, Fraction) == value


def test_declared_parameters_stay() -> None:
    model = Model.parse("x' = -k*x", ["x"], parameters=["unseen", "k"])
    assert model.parameters == ("k", "x_0", "unseen")
    assert model.vary(initial={"x": "1"}).parameters == ("k", "unseen")
