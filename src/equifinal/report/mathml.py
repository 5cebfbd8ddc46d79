"""Expressions typeset as MathML, which browsers draw without any script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from itertools import pairwise

from equifinal.language.expression import (
    TIME,
    Call,
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    fractional,
    number_text,
    to_text,
)
from equifinal.language.lookalikes import looks_like_another

GREEK = dict(
    zip(
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Phi",
            "Psi",
            "Omega",
        ],
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        strict=True,
    )
)
TIMES = '<mspace width="0.17em"/>'
_START = re.compile(r"^(.*)\(0\)$")
_DIGITS = re.compile(r"^([^\W\d_]+)(\d+)$")


def name_mathml(name: str) -> str:
    """A name as a modeller would write it: Greek letters, and what follows a letter's underscore as an index.

    Names that would look like another one stand as they are (`told_apart`).
    """
    if start := _START.match(name):
        return f"<mrow>{name_mathml(start[1])}<mo>(</mo><mn>0</mn><mo>)</mo></mrow>"
    if " [" in name and name.endswith("]"):  # a quantity of one experiment
        quantity, _, experiment = name.partition(" [")
        return f"<mrow>{name_mathml(quantity)}<mtext> [{escape(experiment)}</mtext></mrow>"
    if looks_like_another(name):
        return f"<mi>{escape(name)}</mi>"
    head, _, tail = name.partition("_")
    if head and tail and (len(head) <= 2 or head in GREEK):
        if digits := _DIGITS.match(head):  # R0_treated has two indices
            return f"<msub>{_word(digits[1])}<mrow><mn>{digits[2]}</mn><mo>,</mo>{_index(tail)}</mrow></msub>"
        return f"<msub>{_word(head)}{_index(tail)}</msub>"
    if digits := _DIGITS.match(name):
        return f"<msub>{_word(digits[1])}<mn>{digits[2]}</mn></msub>"
    return _word(name)


def _word(text: str) -> str:
    return f"<mi>{escape(GREEK.get(text, text))}</mi>"


def _index(text: str) -> str:
    return f"<mn>{text}</mn>" if text.isdigit() else f"<mi>{escape(GREEK.get(text, text.replace('_', ' ')))}</mi>"


def mathml(expression: Expression) -> str:
    """Presentation MathML of an expression, without the ``<math>`` around it."""
    return _typeset(expression)[0]


def block(*parts: str) -> str:
    """``<math>`` around parts that are MathML already, with fractions at full size."""
    return f'<math displaystyle="true">{"".join(parts)}</math>'


def direction_mathml(weights: Mapping[Expression, float], logarithmic: Mapping[str, bool]) -> str:
    """A product of powers of combinations, with those that change sign added to its logarithm."""
    powers, terms = [], []
    for expression, weight in weights.items():
        if logarithmic[to_text(expression)]:
            inner = _wrapped(fractional(expression), 4, fractions=True)
            powers.append(inner if abs(weight - 1) < 0.05 else f"<msup><mrow>{inner}</mrow>{_decimal(weight)}</msup>")
        else:
            inner = _wrapped(fractional(expression), 2)
            terms.append((weight < 0, inner if abs(weight - 1) < 0.05 else f"{_decimal(abs(weight))}{TIMES}{inner}"))
    product = TIMES.join(powers)
    if not terms:
        return block(f"<mrow>{product}</mrow>")
    parts = [f"<mi>log</mi><mo>(</mo>{product}<mo>)</mo>"] if powers else []
    for down, term in terms:
        parts += [f"<mo>{'−' if down else '+'}</mo>" if parts or down else "", term]
    return block(f"<mrow>{''.join(parts)}</mrow>")


def _decimal(value: float) -> str:
    sign = "<mo>−</mo>" if value < 0 else ""
    return f"<mrow>{sign}<mn>{abs(value):.2g}</mn></mrow>"


def rate(state: str) -> str:
    return f"<mfrac><mrow><mi>d</mi>{name_mathml(state)}</mrow><mrow><mi>d</mi><mi>t</mi></mrow></mfrac>"


def equation(left: str, right: Expression) -> str:
    return block(left, "<mo>=</mo>", mathml(right))


# how tightly a piece binds: 1 sum, 2 product, 3 power or signed number, 4 atom or fraction bar
def _typeset(expression: Expression) -> tuple[str, int]:
    match expression:
        case Number(value):
            return _number(value)
        case Name(name):
            return name_mathml(name), 4
        case Sum(terms):
            return _sum(terms)
        case Product(factors):
            return _product(factors)
        case Power(base, exponent):
            if exponent < 0:
                return _product((expression,))
            return f"<msup><mrow>{_wrapped(base, 4, fractions=True)}</mrow><mn>{exponent}</mn></msup>", 3
        case Call():
            return _call(expression)


def _call(call: Call) -> tuple[str, int]:
    match call:
        case Call("power", (base, Number(value))) if value == Fraction(1, 2):
            return f"<msqrt>{_typeset(base)[0]}</msqrt>", 4
        case Call("power", (base, exponent)):
            return (
                f"<msup><mrow>{_wrapped(base, 4, fractions=True)}</mrow><mrow>{_typeset(exponent)[0]}</mrow></msup>",
                3,
            )
        case Call("exp", (exponent,)):
            return f"<msup><mi>e</mi><mrow>{_typeset(exponent)[0]}</mrow></msup>", 3
        case Call("abs", (inner,)):
            return f"<mrow><mo>|</mo>{_typeset(inner)[0]}<mo>|</mo></mrow>", 4
        case Call("before" | "until" as function, (border,)):
            sign = "&lt;" if function == "before" else "≤"
            return f"<mrow>{name_mathml(TIME)}<mo>{sign}</mo>{_wrapped(border, 1)}</mrow>", 0
        case Call("piecewise", (*pieces, otherwise)):
            rows = [(pieces[i], f"<mtext>if </mtext>{_typeset(pieces[i + 1])[0]}") for i in range(0, len(pieces), 2)]
            rows.append((otherwise, "<mtext>otherwise</mtext>"))
            cells = "".join(f"<mtr><mtd>{_typeset(v)[0]}</mtd><mtd>{when}</mtd></mtr>" for v, when in rows)
            return f"<mrow><mo>{{</mo><mtable>{cells}</mtable></mrow>", 4
    listed = "<mo>,</mo>".join(_typeset(argument)[0] for argument in call.arguments)
    return f"<mrow><mi>{call.function}</mi><mo>(</mo>{listed}<mo>)</mo></mrow>", 4


def _number(value: Fraction) -> tuple[str, int]:
    if value < 0:
        return f"<mrow><mo>−</mo>{_number(-value)[0]}</mrow>", 1
    text = number_text(value)
    if "e" in text:
        digits, _, power = text.partition("e")
        lead = "" if digits == "1" else f"<mn>{digits}</mn><mo>×</mo>"
        return f"<mrow>{lead}<msup><mn>10</mn><mn>{int(power)}</mn></msup></mrow>", 2
    if "/" in text:
        over, under = text.split("/")
        return f"<mfrac><mn>{over}</mn><mn>{under}</mn></mfrac>", 4
    return f"<mn>{text}</mn>", 4


def _wrapped(expression: Expression, least: int, *, fractions: bool = False) -> str:
    text, binding = _typeset(expression)
    bare = binding >= least and not (fractions and text.startswith("<mfrac>"))
    return text if bare else f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def _flat(factors: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Products inside products opened, and all signs gathered in one number at the front."""
    open_factors: list[Expression] = []
    for factor in factors:
        open_factors += _flat(factor.factors) if isinstance(factor, Product) else (factor,)
    minus = sum(isinstance(f, Number) and f.value < 0 for f in open_factors) % 2
    plain = [Number(abs(f.value)) if isinstance(f, Number) else f for f in open_factors]
    plain = [f for f in plain if f != Number(Fraction(1))]
    return (Number(Fraction(-1)), *plain) if minus else tuple(plain)


def _split_sign(expression: Expression) -> tuple[bool, Expression]:
    match expression:
        case Number(value) if value < 0:
            return True, Number(-value)
        case Product(factors):
            flat = _flat(factors)
            negative = bool(flat) and flat[0] == Number(Fraction(-1))
            kept = flat[negative:] or (Number(Fraction(1)),)
            return negative, kept[0] if len(kept) == 1 else Product(kept)
    return False, expression


def _sum(terms: tuple[Expression, ...]) -> tuple[str, int]:
    pieces: list[str] = []
    for term in terms:
        negative, positive = _split_sign(term)
        sign = "<mo>−</mo>" if negative else "<mo>+</mo>" if pieces else ""
        pieces.append(sign + _wrapped(positive, 2))
    return f"<mrow>{''.join(pieces)}</mrow>", 1


def _product(factors: tuple[Expression, ...]) -> tuple[str, int]:
    negative, rest = _split_sign(Product(factors))
    if negative:
        return f"<mrow><mo>−</mo>{_wrapped(rest, 2)}</mrow>", 1
    factors = rest.factors if isinstance(rest, Product) else (rest,)
    over = [f for f in factors if not (isinstance(f, Power) and f.exponent < 0)]
    under = [Power(f.base, -f.exponent) for f in factors if isinstance(f, Power) and f.exponent < 0]
    if under:
        bottom = [f.base if f.exponent == 1 else f for f in under]
        return f"<mfrac><mrow>{_row(over)}</mrow><mrow>{_row(bottom)}</mrow></mfrac>", 4
    return f"<mrow>{_row(over)}</mrow>", 2


def _row(factors: list[Expression]) -> str:
    if not factors:
        return "<mn>1</mn>"
    if len(factors) == 1:
        return _typeset(factors[0])[0]
    # two numbers side by side would read as one
    pieces = [_wrapped(factors[0], 2)]
    for before, factor in pairwise(factors):
        both = isinstance(before, Number) and isinstance(factor, Number)
        pieces += ["<mo>·</mo>" if both else TIMES, _wrapped(factor, 2)]
    return "".join(pieces)
