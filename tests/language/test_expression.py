from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equifinal.errors import ModelError
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    evaluate,
    names,
    to_text,
    with_name,
)
from equifinal.language.parser import MAX_NESTING, parse_expression


def value(text: str, **values: int) -> Fraction:
    return evaluate(parse_expression(text), {k: Fraction(v) for k, v in values.items()}, Fraction)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3", 7),
        ("2*3 - 4/8", Fraction(11, 2)),
        ("1 - 2 - 3", -4),
        ("8/2/2", 2),
        ("8/2*2", 8),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2**3", 8),
        ("2^-1", Fraction(1, 2)),
        ("2^(-2)", Fraction(1, 4)),
        ("2^0", 1),
        ("- - 3", 3),
        ("1e-5", Fraction(1, 100000)),
        ("0.1 + 0.2", Fraction(3, 10)),
        (".5*2.", 1),
        ("1/3", Fraction(1, 3)),
        ("2·3 − 1", 5),
        ("(1 +\n 2)", 3),
        ("1 + # comment\n 2", 3),
    ],
)
def test_arithmetic_is_exact(text: str, expected: Fraction) -> None:
    assert value(text) == expected


@pytest.mark.parametrize("name", ["S", "I", "N", "E", "lambda", "beta", "in", "is", "λ", "β_1", "x₁", "_k", "Q", "pi"])
def test_any_modellers_name_is_just_a_name(name: str) -> None:
    assert names(parse_expression(f"2*{name} + 1")) == (name,)
    assert value(f"2*{name} + 1", **{name: 3}) == 7


def test_time_arguments_are_read() -> None:
    assert names(parse_expression("u(t)*x(t) + x(0)")) == ("u", "x", "x(0)")


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("gamma(-k)", 1, ["gamma", "not a function", "gamma*(...)"]),
        ("1 + sine(x)", 5, ["sine", "did you mean 'sin'"]),
        ("exp(x, y)", 1, ["1 argument, not 2"]),
        ("min(x)", 1, ["2 arguments or more, not 1"]),
        ("exp(x", 6, ["',' or ')'"]),
        ("piecewise(a, b, c)", 1, ["conditions on time"]),
        ("piecewise(a, t < 1, b, t < 2)", 1, ["piecewise(value, t < time, ..., otherwise)"]),
        ("(x < 3)", 4, ["conditions compare the time t"]),
        ("(a*t < 3)", 6, ["conditions compare the time t"]),
        ("x < 3", 3, ["(t < 10)"]),
        ("f(x)", 1, ["f*(...)"]),
        ("x^y^z", 4, ["put brackets"]),
        ("pow(x, 1001)", 1, ["1000"]),
        ("2x", 2, ["operator is missing", "*"]),
        ("a b", 3, ["operator is missing"]),
        ("a(b + c)", 1, ["a*(...)"]),
        ("(a + b", 7, ["not closed"]),
        ("a + b)", 6, ["')'"]),
        ("a +", 4, ["end of"]),
        ("", 1, ["end of text"]),
        ("a & b", 3, ["'&'"]),
        ("0,5", 2, ["point"]),
        ("x²", 2, ["x^2"]),
        ("x^2^3", 4, ["brackets"]),
        ("1/0", 3, ["division by zero"]),
        ("x^1001", 1, ["1000"]),
        ("((x^30)^30)^30", 1, ["1000"]),
        ("1e999", 1, ["digits"]),
        ("9" * 400, 1, ["digits"]),
        ("a = b", 3, ["'='"]),
    ],
)
def test_errors_say_where_and_what(text: str, column: int, words: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        parse_expression(text)
    assert caught.value.line == 1
    assert caught.value.column == column
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(("text", "column"), [("a*(b - k*c\nd + e", 3), ("a*exp(k*c\nd + e", 6)])
def test_a_bracket_that_is_left_open_is_said_to_be(text: str, column: int) -> None:
    with pytest.raises(ModelError, match=f"the bracket opened at line 1, column {column} is not closed"):
        parse_expression(text)


def test_caps() -> None:
    with pytest.raises(ModelError, match="nested"):
        parse_expression("(" * (MAX_NESTING + 1) + "x" + ")" * (MAX_NESTING + 1))
    parse_expression("(" * MAX_NESTING + "x" + ")" * MAX_NESTING)
    with pytest.raises(ModelError, match="characters long"):
        parse_expression("x+" * 100_000 + "x")
    long_sum = parse_expression("+".join(["x"] * 5000))
    assert evaluate(long_sum, {"x": 1}, int) == 5000


numbers = st.fractions(min_value=-50, max_value=50, max_denominator=20).map(Number)
trees = st.recursive(
    numbers | st.sampled_from("abλ").map(Name),
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda t: Sum(tuple(t)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda t: Product(tuple(t)))
        | st.builds(Power, inner, st.integers(-3, 3).filter(bool))
    ),
    max_leaves=12,
)


@given(trees)
@example(Product((Number(Fraction(-1)), Product((Name("a"), Number(Fraction(-2, 3)))))))
@example(Power(Number(Fraction(-1, 2)), 2))
@example(Product((Name("a"), Power(Product((Name("b"), Name("λ"))), -1))))
def test_text_reads_back_as_the_same_value(tree: Expression) -> None:
    values = {"a": Fraction(3, 7), "b": Fraction(-11, 5), "λ": Fraction(13)}
    try:
        expected = evaluate(tree, values, Fraction)
    except ZeroDivisionError:
        return
    for decimals in (False, True):
        try:
            again = parse_expression(to_text(tree, decimals=decimals))
        except ModelError as error:
            assert "division by zero" in str(error)  # a literal zero divided away only symbolically
            return
        assert evaluate(again, values, Fraction) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-beta*S*I + gamma*I", "-beta*S*I + gamma*I"),
        ("a - (b - c)", "a - (b - c)"),
        ("N*delta*Ts - c*V", "N*delta*Ts - c*V"),
        ("beta/(K+S)^2", "beta/(K + S)^2"),
        ("1e-5*x", "1e-05*x"),
        ("x/3", "x/3"),
    ],
)
def test_text_looks_as_a_person_would_write_it(text: str, shown: str) -> None:
    assert to_text(parse_expression(text), decimals=True) == shown


@pytest.mark.parametrize(("text", "shown"), [("0.5*x + y/3", "1/2*x + y/3"), ("a - 0.25", "a - 1/4"), ("1.5", "3/2")])
def test_numbers_are_fractions_unless_decimals_are_asked_for(text: str, shown: str) -> None:
    assert to_text(parse_expression(text)) == shown


@given(st.text(alphabet="abx01.9e+-*/^()=' \n#;_λ²,tdS", max_size=60))
@example("((((((")
@example("x^" * 30)
@example("-" * 5000 + "x")
@example("\x00")
@example("'" * 10)
def test_no_text_leads_anywhere_but_to_an_expression_or_a_model_error(text: str) -> None:
    try:
        assert isinstance(parse_expression(text), Expression)
    except ModelError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [
        ("a + b*(k*x)", "k*x", "a + b*y"),
        ("a + b*k*x", "x*k", "a + b*y"),
        ("a + x + z + b", "z + x", "a + b + y"),
        ("(x + z)^2/(1 + exp(x + z))", "x + z", "y^2/(1 + exp(y))"),
        ("b*x + x", "x", "b*y + y"),
        ("b*k*z", "k*x", "b*k*z"),
        ("k*x*k*x", "k*x", "k*x*y"),
    ],
)
def test_a_name_in_place_of_what_it_stands_for(text: str, part: str, found: str) -> None:
    """The value is the same where the name has that of the part."""
    made = with_name(parse_expression(text), parse_expression(part), Name("y"))
    assert to_text(made) == found
    at = {"a": 1, "b": 2, "k": 3, "x": 5, "z": 7}
    if "exp" not in text:
        assert value(to_text(made), **at, y=value(part, **at)) == value(text, **at)
