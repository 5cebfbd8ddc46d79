"""Equations as MathML: the right signs, fractions and names, and nothing that a name could smuggle in."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from equifinal.language.expression import evaluate, names
from equifinal.language.lookalikes import told_apart
from equifinal.language.parser import parse_expression
from equifinal.report.mathml import direction_mathml, equation, mathml, name_mathml, rate


def flat(text: str) -> str:
    """MathML as a line of text: fractions as (a)/(b), powers as ^, so that it can be read back."""

    def walk(node: ElementTree.Element) -> str:
        parts = [walk(child) for child in node]
        match node.tag:
            case "mfrac":
                return f"(({parts[0]})/({parts[1]}))"
            case "msup":
                return f"({parts[0]})^({parts[1]})"
            case "msub":
                return f"{parts[0]}{parts[1]}"
            case "mspace":
                return "*"
        return (node.text or "") + "".join(parts)

    return walk(ElementTree.fromstring(f"<math>{mathml(parse_expression(text))}</math>"))


@pytest.mark.parametrize(
    "text",
    [
        "-b*S*J + g*J",
        "a*(b + c)/(d + 1)^2",
        "-(a + b)",
        "a - (b - c)",
        "a*-b",
        "-2*-3*x",
        "2*3*x - -4",
        "(a/b)^2/c",
        "1/(a + 1/(b - c))",
        "a/b/c*d",
        "(a + b)^3 - x^2*y",
        "-a/b",
        "-1",
        "0.25*a + 1e-5*b",
        "(-a)^2",
        "(-2)^3*a",
        "1/3 - a",
        "(a*b)^2*(c - d)",
    ],
)
def test_what_is_typeset_has_the_same_value(text: str) -> None:
    expression = parse_expression(text)
    values = dict(zip(names(expression), np.random.default_rng(0).random(9) + 0.5, strict=False))
    line = flat(text).replace("−", "-").replace("·", "*").replace("×", "*").replace(")(", ")*(")
    back = parse_expression(re.sub(r"\^\((-?\d+)\)", r"^\1", line))
    assert evaluate(back, values, float) == pytest.approx(evaluate(expression, values, float))


def test_no_needless_brackets() -> None:
    assert "<mo>(</mo>" not in mathml(parse_expression("-beta*S*I + gamma*I"))
    assert "<mo>(</mo>" not in mathml(parse_expression("a*b/(c + d)"))


def test_names() -> None:
    assert name_mathml("beta") == "<mi>β</mi>"
    assert name_mathml("I0") == "<msub><mi>I</mi><mn>0</mn></msub>"
    assert name_mathml("k_on") == "<msub><mi>k</mi><mi>on</mi></msub>"
    assert name_mathml("mu_2") == "<msub><mi>μ</mi><mn>2</mn></msub>"
    assert name_mathml("R0_treated") == "<msub><mi>R</mi><mrow><mn>0</mn><mo>,</mo><mi>treated</mi></mrow></msub>"
    assert name_mathml("beta [first & last]") == "<mrow><mi>β</mi><mtext> [first &amp; last]</mtext></mrow>"
    assert name_mathml("infectious_days") == "<mi>infectious_days</mi>"
    assert name_mathml("S(0)") == "<mrow><mi>S</mi><mo>(</mo><mn>0</mn><mo>)</mo></mrow>"
    assert "<script" not in name_mathml("<script>x")


def test_an_equation_is_well_formed() -> None:
    text = equation(rate("x_1"), parse_expression("a*(b + 1/c)^2"))
    ElementTree.fromstring(text)
    assert re.match(r"<math[^>]*><mfrac><mrow><mi>d</mi>", text)


def test_names_that_would_look_alike_stand_as_they_are() -> None:
    """PEtab problems have k1 and k_1, and a modeller may write both beta and its Greek letter."""
    with told_apart(["k1", "k_1", "beta", "β", "rho"], name_mathml):
        assert name_mathml("k1") == "<mi>k1</mi>"
        assert name_mathml("k_1") == "<mi>k_1</mi>"
        assert name_mathml("beta") == "<mi>beta</mi>"
        assert name_mathml("rho") == "<mi>ρ</mi>"
        assert name_mathml("k_1(0)") == "<mrow><mi>k_1</mi><mo>(</mo><mn>0</mn><mo>)</mo></mrow>"
    assert name_mathml("k1") == name_mathml("k_1")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqrt(a + b)", "<msqrt><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow></msqrt>"),
        ("a^n", "<msup><mrow><mi>a</mi></mrow><mrow><mi>n</mi></mrow></msup>"),
        ("exp(-a)", "<msup><mi>e</mi><mrow><mrow><mo>−</mo><mi>a</mi></mrow></mrow></msup>"),
        ("abs(a)", "<mrow><mo>|</mo><mi>a</mi><mo>|</mo></mrow>"),
        ("max(a, b)", "<mrow><mi>max</mi><mo>(</mo><mi>a</mi><mo>,</mo><mi>b</mi><mo>)</mo></mrow>"),
        (
            "piecewise(a, t < 3, 0)",
            "<mrow><mo>{</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mtext>if </mtext>"
            "<mrow><mi>t</mi><mo>&lt;</mo><mn>3</mn></mrow></mtd></mtr>"
            "<mtr><mtd><mn>0</mn></mtd><mtd><mtext>otherwise</mtext></mtd></mtr></mtable></mrow>",
        ),
    ],
)
def test_functions(text: str, shown: str) -> None:
    assert mathml(parse_expression(text)) == shown


def test_a_root_and_a_power_are_put_in_brackets_where_they_must_be() -> None:
    assert "<mo>(</mo><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mo>)</mo>" in mathml(parse_expression("(a + b)^n"))
    assert "<mo>(</mo>" not in mathml(parse_expression("sqrt(a + b)*c"))


def test_a_direction_is_a_product_and_the_logarithm_of_it_where_signs_change() -> None:
    a, b, c = map(parse_expression, ("a", "b - c", "d"))
    alone = direction_mathml({a: 1.0, c: -0.5}, {"a": True, "d": True})
    assert "<mi>log</mi>" not in alone
    assert "<msup><mrow><mi>d</mi></mrow><mrow><mo>−</mo><mn>0.5</mn></mrow></msup>" in alone
    both = direction_mathml({a: 1.0, b: -2.0}, {"a": True, "b - c": False})
    assert "<mi>log</mi><mo>(</mo><mi>a</mi><mo>)</mo><mo>−</mo><mrow><mn>2</mn></mrow>" in both
    assert both.endswith("<mrow><mo>(</mo><mrow><mi>b</mi><mo>−</mo><mi>c</mi></mrow><mo>)</mo></mrow></mrow></math>")
    sums = direction_mathml({a: 1.0, b: 1.0}, {"a": False, "b - c": False})
    assert "<mi>log</mi>" not in sums
    assert "<mi>a</mi><mo>+</mo>" in sums
