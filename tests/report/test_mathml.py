"""Equations as MathML: the right signs, fractions and names, and nothing that a name could smuggle in."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from equifinal.language.expression import evaluate, names
from equifinal.language.lookalikes import told_apart
from equifinal.language.parser import parse_expression
from equifinal.report.mathml import equation, mathml, name_mathml, rate


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
