"""Exact expressions, and their text.

Names are plain names (``S``, ``I``, ``lambda`` and ``gamma`` mean nothing special) but for ``t``, which is time;
numbers are exact rationals. Six node types suffice, because a difference is a sum and a quotient is a product with a
negative power. An expression without calls of functions is rational.

Everything downstream is one function, `evaluate`: handed SymPy symbols it gives a SymPy expression, handed flint
elements an element of that ring, handed NumPy arrays their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

# --- nodes ---


class _Node:
    """What all nodes have in common: they are shown as their text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return to_text(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, repr=False)
class Number(_Node):
    value: Fraction


@dataclass(frozen=True, slots=True, repr=False)
class Name(_Node):
    """A name; ``line`` and ``column`` say where it stood and take no part in equality."""

    name: str
    line: int = field(default=1, compare=False)
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class Sum(_Node):
    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Product(_Node):
    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Power(_Node):
    base: Expression
    exponent: int


@dataclass(frozen=True, slots=True, repr=False)
class Call(_Node):
    """A function of `equifinal.language.functions` at its arguments."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Name | Sum | Product | Power | Call

TIME = "t"


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Sum(parts) | Product(parts) | Call(_, parts):
            return parts
        case Power(base, _):
            return (base,)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node, parents first, left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def initial_name(state: str) -> str:
    """How ``x(0)`` on a right-hand side is named until the model puts the initial value in."""
    return f"{state}(0)"


def height(expression: Expression) -> int:
    """How many nodes stand above each other at most."""
    return 1 + max((height(child) for child in children(expression)), default=0)


def calls(expression: Expression) -> Iterator[Call]:
    return (node for node in walk(expression) if isinstance(node, Call))


def is_rational(expression: Expression) -> bool:
    """Whether no function is called; time counts as a name like any other."""
    return next(calls(expression), None) is None


def name_nodes(expression: Expression) -> Iterator[Name]:
    return (node for node in walk(expression) if isinstance(node, Name))


def names(expression: Expression) -> tuple[str, ...]:
    """The distinct names in order of first appearance."""
    return tuple(dict.fromkeys(node.name for node in name_nodes(expression)))


def _not_rational(function: str, arguments: Sequence[Any]) -> Any:
    raise TypeError(f"'{function}' is not rational")


def evaluate(
    expression: Expression,
    values: Mapping[str, Any],
    number: Callable[[Fraction], Any],
    call: Callable[[str, Sequence[Any]], Any] = _not_rational,
) -> Any:
    """The expression's value in any commutative ring with division.

    Parameters
    ----------
    values
        What each name stands for: numbers, arrays, symbols, polynomials.
    number
        Turns an exact rational into an element of that ring.
    call
        The value of a function at arguments of that ring; left out, only rational expressions have one.
    """
    match expression:
        case Number(value):
            return number(value)
        case Name(name):
            return values[name]
        case Sum(terms):
            total = evaluate(terms[0], values, number, call)
            for term in terms[1:]:
                total = total + evaluate(term, values, number, call)
            return total
        case Product(factors):
            # numerators first, so that a quotient is one division and 1/x is never formed needlessly
            over = [f for f in factors if not _is_reciprocal(f)]
            under = [Power(f.base, -f.exponent) for f in factors if isinstance(f, Power) and f.exponent < 0]
            product = evaluate(over[0], values, number, call) if over else number(Fraction(1))
            for factor in over[1:]:
                product = product * evaluate(factor, values, number, call)
            for factor in under:
                product = product / evaluate(factor, values, number, call)
            return product
        case Power(base, exponent):
            value = evaluate(base, values, number, call)
            if exponent < 0:
                return number(Fraction(1)) / (value if exponent == -1 else value**-exponent)
            return value if exponent == 1 else value**exponent
        case Call(function, arguments):
            return call(function, [evaluate(argument, values, number, call) for argument in arguments])


def substitute(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    match expression:
        case Name(name):
            return replacements.get(name, expression)
        case Sum(terms):
            return Sum(tuple(substitute(term, replacements) for term in terms))
        case Product(factors):
            return Product(tuple(substitute(factor, replacements) for factor in factors))
        case Power(base, exponent):
            return Power(substitute(base, replacements), exponent)
        case Call(function, arguments):
            return Call(function, tuple(substitute(argument, replacements) for argument in arguments))
    return expression


def with_name(expression: Expression, part: Expression, name: Name) -> Expression:
    """The expression with a name wherever a part stands, among other factors or terms, too."""
    if expression == part:
        return name
    match expression:
        case Sum(terms):
            return Sum(_with_name(terms, part.terms if isinstance(part, Sum) else (), part, name))
        case Product(factors):
            return Product(_with_name(factors, part.factors if isinstance(part, Product) else (), part, name))
        case Power(base, exponent):
            return Power(with_name(base, part, name), exponent)
        case Call(function, arguments):
            return Call(function, tuple(with_name(argument, part, name) for argument in arguments))
    return expression


def _with_name(
    whole: tuple[Expression, ...], parts: tuple[Expression, ...], part: Expression, name: Name
) -> tuple[Expression, ...]:
    """Terms or factors, of which some may be those of the part, in whatever order."""
    left = list(whole)
    for one in parts:
        if one not in left:
            break
        left.remove(one)
    else:
        whole = (*left, name) if parts else whole
    return tuple(with_name(one, part, name) for one in whole)


def _is_reciprocal(expression: Expression) -> bool:
    return isinstance(expression, Power) and expression.exponent < 0


def negative(expression: Expression) -> Expression:
    match expression:
        case Number(value):
            return Number(-value)
        case Product((Number(value), *rest)):
            return Product((Number(-value), *rest))
        case Product(factors):
            return Product((Number(Fraction(-1)), *factors))
    return Product((Number(Fraction(-1)), expression))


def reciprocal(expression: Expression) -> Expression:
    if isinstance(expression, Power):
        return Power(expression.base, -expression.exponent)
    return Power(expression, -1)


# --- back to text ---


def number_text(value: Fraction) -> str:
    """A short exact writing: a whole number, a decimal, or a fraction."""
    if value.denominator == 1 and abs(value.numerator) < LONG:
        return str(value.numerator)
    decimal, fraction = _float_text(value), f"{value.numerator}/{value.denominator}"
    if 0 < len(decimal) <= max(12, len(fraction)) and Fraction(decimal) == value:
        return decimal
    if value.denominator < LONG and abs(value.numerator) < LONG:
        return fraction
    return _decimal_text(value) or fraction


LONG = 10**20  # whole numbers from here on are written with an exponent


def _float_text(value: Fraction) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        return ""


def _decimal_text(value: Fraction) -> str:
    """An exact decimal such as -12345e-310; empty where there is none."""
    bottom, twos, fives = value.denominator, 0, 0
    while bottom % 2 == 0:
        bottom, twos = bottom // 2, twos + 1
    while bottom % 5 == 0:
        bottom, fives = bottom // 5, fives + 1
    if bottom > 1:
        return ""
    exponent = max(twos, fives)
    digits = str(value.numerator * 10**exponent // value.denominator)
    short = digits.rstrip("0") or "0"
    exponent = len(digits) - len(short) - exponent
    return f"{short}e{exponent}" if exponent else short


def to_text(expression: Expression, *, decimals: bool = False) -> str:
    """The expression in the model language; parsing it gives an equal value.

    Numbers are fractions, all of them, or `decimals` where these are short, as people write them in models.
    """
    return _text(expression if decimals else fractional(expression))[0]


def fractional(expression: Expression) -> Expression:
    """The expression with every number that is not whole written as a quotient."""
    match expression:
        case Number(value) if value.denominator > 1:
            return Product((Number(Fraction(value.numerator)), Power(Number(Fraction(value.denominator)), -1)))
        case Sum(terms):
            return Sum(tuple(map(fractional, terms)))
        case Product(factors):
            return Product(tuple(map(fractional, factors)))
        case Power(base, exponent):
            return Power(fractional(base), exponent)
        case Call(function, arguments):
            return Call(function, tuple(map(fractional, arguments)))
    return expression


# how tightly a piece of text binds: 0 condition, 1 sum, 2 product, 3 power or signed number, 4 atom
def _text(expression: Expression) -> tuple[str, int]:
    match expression:
        case Number(value):
            text = number_text(value)
            return text, 2 if "/" in text else 3 if value < 0 else 4
        case Name(name):
            return name, 4
        case Sum(terms):
            return _sum_text(terms)
        case Product(factors):
            return _product_text(factors)
        case Power(base, exponent):
            if exponent < 0:
                return _product_text((expression,))
            return f"{_wrapped(base, 4)}^{exponent}", 3
        case Call():
            return _call_text(expression)


def _wrapped(expression: Expression, least: int) -> str:
    text, binding = _text(expression)
    return text if binding >= least else f"({text})"


def _call_text(call: Call) -> tuple[str, int]:
    match call:
        case Call("power", (base, exponent)):
            return f"{_wrapped(base, 4)}^{_wrapped(exponent, 4)}", 3
        case Call("before" | "until" as function, (border,)):
            return f"{TIME} {'<' if function == 'before' else '<='} {_wrapped(border, 1)}", 0
    return f"{call.function}({', '.join(_text(argument)[0] for argument in call.arguments)})", 4


def _sum_text(terms: tuple[Expression, ...]) -> tuple[str, int]:
    pieces: list[str] = []
    for term in terms:
        text = _wrapped(term, 2)
        if not pieces:
            pieces.append(text)
        elif text.startswith("-"):
            pieces.append(f" - {text[1:]}")
        else:
            pieces.append(f" + {text}")
    return "".join(pieces), 1


def _product_text(factors: tuple[Expression, ...]) -> tuple[str, int]:
    over = [f for f in factors if not _is_reciprocal(f)]
    under = [Power(f.base, -f.exponent) for f in factors if isinstance(f, Power) and f.exponent < 0]
    sign = ""
    if len(over) > 1 and isinstance(over[0], Number) and over[0].value == -1:
        sign, over = "-", over[1:]
    # a leading sign or fraction is safe only on the first factor of an unsigned product
    texts = [_wrapped(f, 2 if i == 0 and not sign else 4 if isinstance(f, Number) else 3) for i, f in enumerate(over)]
    text = sign + ("*".join(texts) or "1")
    for divisor in under:
        base = divisor.base if divisor.exponent == 1 else divisor
        text += f"/{_wrapped(base, 4 if divisor.exponent == 1 else 3)}"
    return text, 2
