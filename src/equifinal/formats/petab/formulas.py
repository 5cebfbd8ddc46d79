"""PEtab's formulas to open formulas: a tokenizer and a parser by precedence; text is never evaluated.

From weakest to strongest: ``||`` and ``&&``, comparisons, ``+ -``, ``* /``, signs and ``!``, ``^`` (from the right;
``**`` is read as well), calls and brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from equifinal.errors import ModelError, did_you_mean
from equifinal.files import quoted
from equifinal.formats.sbml.functions import FUNCTIONS_OF_ONE, ONE, ZERO, less, logarithm, power
from equifinal.language.expression import TIME, Call, Expression, Name, Number, Product, Sum, negative, reciprocal

MAX_LENGTH = 100_000
MAX_NESTING = 100
MAX_DIGITS = 300

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|<=|>=|==|!=|&&|\|\||[-+*/^<>!(),]))"
)
_OF_ONE = {
    name: function for name, function in FUNCTIONS_OF_ONE.items() if name not in ("ceiling", "factorial", "floor")
}
_COMPARISONS: dict[str, Callable[[Expression, Expression], Expression]] = {
    "<": less,
    "<=": lambda a, b: less(a, b, equal=True),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: less(b, a, equal=True),
    "==": lambda a, b: Call("eq", (a, b)),
    "!=": lambda a, b: Call("ne", (a, b)),
}
_LITERALS = {"true": ONE, "false": ZERO}
FUNCTIONS = {"pow", "log", "log2", "log10", "min", "max", "piecewise", *_OF_ONE}
# words that are no identifiers, in any case of their letters
RESERVED = {"time", "true", "false", "inf", "nan", *FUNCTIONS}
_SEVERAL = ("pow", "log", "log2", "log10", "min", "max", "piecewise")


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse_formula(text: str, renamed: Callable[[str], str] = lambda name: name) -> Expression:
    """The formula of a cell; `renamed` gives the name of each identifier.

    Raises
    ------
    ModelError
        With the column, the word and what was expected.
    """
    if len(text) > MAX_LENGTH:
        raise ModelError(f"the formula is {len(text)} characters long; at most {MAX_LENGTH} are allowed")
    parser = _Parser(_tokens(text), renamed)
    found = parser.disjunction()
    if parser.peek().kind != "end":
        raise parser.error("an operator or the end of the formula")
    return found


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            raise ModelError(f"unexpected character {quoted(text[at])} at column {at + 1}", word=text[at])
        kind = str(match.lastgroup)
        found.append(_Token(kind, match.group(kind), match.start(kind) + 1))
        position = match.end()
    return [*found, _Token("end", "the end", len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token], renamed: Callable[[str], str]):
        self.tokens, self.renamed = tokens, renamed
        self.position = 0
        self.nesting = 0

    def peek(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        self.position += self.peek().kind != "end"
        return self.tokens[self.position - 1]

    def take_if(self, *signs: str) -> str:
        token = self.peek()
        return self.take().text if token.kind == "sign" and token.text in signs else ""

    def error(self, expected: str) -> ModelError:
        token = self.peek()
        shown = token.text if token.kind == "end" else f"'{token.text[:30]}'"
        return ModelError(f"expected {expected} at column {token.column}, found {shown}", word=token.text[:30])

    def deeper(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ModelError(f"the formula is nested more than {MAX_NESTING} deep")

    def disjunction(self) -> Expression:
        found = self.comparison()
        depth = self.nesting
        while sign := self.take_if("&&", "||"):
            word, other = "and" if sign == "&&" else "or", self.comparison()
            if isinstance(found, Call) and found.function == word and self.nesting > depth:
                found = Call(word, (*found.arguments, other))
            else:
                self.deeper()
                found = Call(word, (found, other))
        self.nesting = depth
        return found

    def comparison(self) -> Expression:
        found = self.sum()
        depth = self.nesting
        while sign := self.take_if(*_COMPARISONS):
            self.deeper()
            found = _COMPARISONS[sign](found, self.sum())
        self.nesting = depth
        return found

    def sum(self) -> Expression:
        terms = [self.product()]
        while sign := self.take_if("+", "-"):
            term = self.product()
            terms.append(term if sign == "+" else negative(term))
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def product(self) -> Expression:
        factors = [self.signed()]
        while sign := self.take_if("*", "/"):
            factor = self.signed()
            if sign == "/" and isinstance(factor, Number) and not factor.value:
                raise ModelError("the formula divides by zero")
            factors.append(factor if sign == "*" else reciprocal(factor))
        return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def signed(self) -> Expression:
        if sign := self.take_if("+", "-", "!"):
            self.deeper()
            factor = self.signed()
            self.nesting -= 1
            return negative(factor) if sign == "-" else Call("not", (factor,)) if sign == "!" else factor
        return self.power()

    def power(self) -> Expression:
        base = self.atom()
        if not self.take_if("^", "**"):
            return base
        self.deeper()
        exponent = self.signed()  # which takes further powers with it
        self.nesting -= 1
        if isinstance(base, Number) and not base.value and isinstance(exponent, Number) and exponent.value < 0:
            raise ModelError("the formula divides by zero")
        return power(base, exponent)

    def atom(self) -> Expression:
        token = self.peek()
        if token.kind == "number":
            return Number(_number(self.take().text))
        if token.kind == "name":
            self.take()
            return self.called(token) if self.take_if("(") else self.named(token)
        if self.take_if("("):
            self.deeper()
            inner = self.disjunction()
            if not self.take_if(")"):
                raise self.error("')' or an operator")
            self.nesting -= 1
            return inner
        raise self.error("a number, a name or '('")

    def named(self, token: _Token) -> Expression:
        lowered = token.text.lower()
        if lowered == "time":
            return Name(TIME)
        if lowered in _LITERALS:
            return _LITERALS[lowered]
        if lowered in ("inf", "nan"):
            raise ModelError(f"'{token.text}' at column {token.column} is not supported in a formula", word=token.text)
        return Name(self.renamed(token.text))

    def called(self, token: _Token) -> Expression:
        self.deeper()
        arguments = [self.disjunction()]
        while self.take_if(","):
            arguments.append(self.disjunction())
        if not self.take_if(")"):
            raise self.error(f"',' or ')' after an argument of '{token.text}'")
        self.nesting -= 1
        name = token.text
        match name, arguments:
            case "pow", [a, b]:
                return power(a, b)
            case "log", [a] | [a, _]:
                return logarithm(a, *arguments[1:])
            case "log2" | "log10", [a]:
                return logarithm(a, Number(Fraction(name[3:])))
            case "min" | "max", [_, _, *_]:
                return Call(name, tuple(arguments))
            case "piecewise", [_, _, _, *_] if len(arguments) % 2:
                return Call(name, tuple(arguments))
        if name in _OF_ONE and len(arguments) == 1:
            return _OF_ONE[name](arguments[0])
        if name in _OF_ONE or name in _SEVERAL:
            raise ModelError(f"'{name}' at column {token.column} cannot take {len(arguments)} arguments", word=name)
        hint = did_you_mean(name, (*_OF_ONE, *_SEVERAL))
        raise ModelError(f"'{name}' at column {token.column} is not a function of PEtab{hint}", word=name)


def _number(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS or abs(int(exponent[:8] or 0)) > MAX_DIGITS:
        raise ModelError(f"the number '{text[:20]}' has too many digits")
    return Fraction(text)
