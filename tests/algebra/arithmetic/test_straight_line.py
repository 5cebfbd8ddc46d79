"""Programs recorded from expressions: the same values, nothing twice."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from equifinal.algebra.arithmetic.straight_line import Program
from equifinal.language.parser import parse_expression
from tests.support.expressions import NAMES, rational_texts
from tests.support.modulo import PRIME, modulo

AT = {"a": 1234567, "b": 89101112, "c": 131415}


def run(program: Program, root: int) -> int:
    """Step by step, modulo the prime."""
    values: list[int] = []
    for step in program.steps[: root + 1]:
        if step.kind == "number":
            values.append(step.value.numerator * pow(step.value.denominator, -1, PRIME) % PRIME)
        elif step.kind == "name":
            values.append(AT[step.name])
        else:
            left, right = values[step.left], values[step.right]
            right = pow(right, -1, PRIME) if step.kind == "div" else right
            values.append((left + right if step.kind == "add" else left * right) % PRIME)
    return values[root]


@given(rational_texts)
def test_a_program_gives_the_value_of_its_expression(text: str) -> None:
    program = Program()
    (root,) = program.record([parse_expression(text)], {})
    assert run(program, root) == modulo(text, AT)


@given(rational_texts)
def test_steps_use_earlier_ones_and_differ(text: str) -> None:
    program = Program()
    program.record([parse_expression(text)], {})
    assert all(max(step.left, step.right) < i for i, step in enumerate(program.steps))
    assert len(set(program.steps)) == len(program.steps)
    assert {step.name for step in program.steps if step.kind == "name"} <= set(NAMES)


def test_common_parts_are_computed_once_and_constants_at_once() -> None:
    program = Program()
    expressions = [parse_expression(text) for text in ("(a + b)^2*N", "b + a", "N*2/3 + 1 - 1")]
    square, plain, number = program.record(expressions, {"N": Fraction(9)})
    kinds = [step.kind for step in program.steps]
    assert (kinds.count("add"), kinds.count("mul"), kinds.count("div")) == (1, 2, 0)
    assert program.steps[program.steps[square].left].kind in ("number", "mul")
    assert program.steps[plain].kind == "add"
    assert program.steps[number].value == 6
