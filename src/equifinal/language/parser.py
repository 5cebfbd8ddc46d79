"""Text to exact rational expressions: a tokenizer and a recursive-descent parser.

The language is what a modeller writes: ``beta*S*I/(K + S)^2 - 1e-5``. Text is parsed and never evaluated; every error
says where it is, which word is at fault and what would be right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from equifinal.errors import ModelError
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    children,
    initial_name,
    negative,
    reciprocal,
)

MAX_LENGTH = 100_000
MAX_NESTING = 50
MAX_POWER = 1000  # of nested powers, their product
MAX_DIGITS = 300  # of a number, and of its decimal exponent's value


# --- tokens ---


class Token(NamedTuple):
    kind: str  # "number", "name", "sign", "newline", "end"
    text: str
    line: int
    column: int


_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# what pasted text contains for what the language writes
_SPELLINGS = {"−": "-", "–": "-", "·": "*", "×": "*", "⋅": "*", "÷": "/", "’": "'", "′": "'", "‘": "'", "µ": "μ"}
_SIGNS = ("**", "+", "-", "*", "/", "^", "(", ")", "=", "'", ";")
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_HINTS = {
    ",": "; write decimals with a point, and one equation on a line",
    "[": "; use round brackets",
    "{": "; use round brackets",
    "!": "; factorials are not rational functions",
    "<": "; equations cannot branch on a condition",
    ">": "; equations cannot branch on a condition",
    ":": "; write an equation as name = expression",
    '"': "; names are written without quotes",
}


def _starts_name(char: str) -> bool:
    return char == "_" or char.isalpha()


def _continues_name(char: str) -> bool:
    if char in _SUPERSCRIPTS:
        return False
    return char == "_" or char.isalnum() or unicodedata.category(char) in ("Mn", "Mc")


def canonical_name(name: str) -> str:
    """A name in the spelling that the tokenizer gives it: letters that look the same are the same."""
    return "".join(_SPELLINGS.get(char, char) for char in unicodedata.normalize("NFC", name))


def tokenize(text: str) -> list[Token]:
    """Split model text into tokens; comments run from ``#`` to the end of the line."""
    if not isinstance(text, str):
        raise ModelError(f"model text must be a string, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ModelError(f"the text is {len(text)} characters long; at most {MAX_LENGTH} are allowed")
    tokens: list[Token] = []
    lines = re.split(r"\r\n|\r|\n", unicodedata.normalize("NFC", text))
    for line_number, raw in enumerate(lines, start=1):
        line = "".join(_SPELLINGS.get(char, char) for char in raw)
        position = 0
        while position < len(line):
            char, column = line[position], position + 1
            if char == "#":
                break
            if char.isspace() or char == "\ufeff":
                position += 1
                continue
            if number := _NUMBER.match(line, position):
                tokens.append(Token("number", number.group(), line_number, column))
                position = number.end()
            elif _starts_name(char):
                end = position + 1
                while end < len(line) and _continues_name(line[end]):
                    end += 1
                tokens.append(Token("name", line[position:end], line_number, column))
                position = end
            elif sign := next((s for s in _SIGNS if line.startswith(s, position)), None):
                tokens.append(Token("newline" if sign == ";" else "sign", sign, line_number, column))
                position += len(sign)
            else:
                hint = "; write powers as x^2" if char in _SUPERSCRIPTS else _HINTS.get(char, "")
                shown = char if char.isprintable() else f"U+{ord(char):04X}"
                raise ModelError(f"unexpected character '{shown}'{hint}", line=line_number, column=column, word=char)
        tokens.append(Token("newline", "end of line", line_number, len(line) + 1))
    tokens.append(Token("end", "end of text", len(lines), len(lines[-1]) + 1))
    return tokens


# --- parser ---

_AS_A_STATE = {
    "exp": "for example w = exp(-k*t) is the state w' = -k*w with w(0) = 1",
    "log": "for example w = log(x) is the state w' = x'/x, with x' written out",
    "sin": "for example s = sin(w*t), c = cos(w*t) are the states s' = w*c, c' = -w*s with s(0) = 0, c(0) = 1",
    "sqrt": "for example w = sqrt(x) is the state w' = x'/(2*w), with x' written out",
    "tanh": "for example w = tanh(k*t) is the state w' = k*(1 - w^2) with w(0) = 0",
}
_AS_A_STATE |= {
    "ln": _AS_A_STATE["log"],
    "log10": _AS_A_STATE["log"],
    "log2": _AS_A_STATE["log"],
    "cos": _AS_A_STATE["sin"],
    "pow": _AS_A_STATE["sqrt"],
}
_FRACTIONAL = (
    "models must be rational, so an exponent is a whole number written out; a fractional power w = x^a can "
    "often be rewritten as an extra state, w' = a*w*x'/x with x' written out"
)


def _is_word(token: Token, *texts: str) -> bool:
    return token.kind in ("sign", "name") and token.text in texts


class Parser:
    """Recursive descent over tokens, with the usual precedence: ``+ -``, then ``* /``, then signs, then powers.

    Names of `constants` may stand in exponents; `exponents` are those that do.
    """

    def __init__(self, text: str, constants: Mapping[str, Fraction] | None = None):
        self.tokens = tokenize(text)
        self.constants, self.exponents = constants or {}, dict[str, Fraction]()
        self.position = 0
        self.nesting = 0

    # tokens

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self.position += 1
        if self.nesting:  # a bracket left open continues on the next line
            self.skip_newlines()
        return token

    def skip_newlines(self) -> None:
        while self.peek().kind == "newline" and self.peek().text != ";":
            self.position += 1

    def take_if(self, *texts: str) -> Token | None:
        return self.take() if _is_word(self.peek(), *texts) else None

    def expect(self, text: str, why: str) -> Token:
        if token := self.take_if(text):
            return token
        raise self.error(f"expected '{text}' {why}, found {_shown(self.peek())}")

    def error(self, message: str, token: Token | None = None) -> ModelError:
        token = token or self.peek()
        return ModelError(message, line=token.line, column=token.column, word=token.text)

    # grammar

    def expression(self) -> Expression:
        terms = [self.term()]
        while sign := self.take_if("+", "-"):
            self.skip_newlines()  # a line that ends with an operator goes on
            term = self.term()
            terms.append(term if sign.text == "+" else negative(term))
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def term(self) -> Expression:
        factors = [self.signed()]
        while sign := self.take_if("*", "/"):
            self.skip_newlines()
            start = self.peek()
            factor = self.signed()
            if sign.text == "/":
                if isinstance(factor, Number) and factor.value == 0:
                    raise self.error("division by zero", start)
                factor = reciprocal(factor)
            factors.append(factor)
        follower = self.peek()
        if follower.kind in ("number", "name") or _is_word(follower, "("):
            raise self.error(f"an operator is missing before {_shown(follower)}; products are written with *")
        return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def signed(self) -> Expression:
        is_negative = False
        while sign := self.take_if("+", "-"):
            is_negative ^= sign.text == "-"
        factor = self.power()
        return negative(factor) if is_negative else factor

    def power(self) -> Expression:
        start = self.peek()
        base = self.atom()
        if not self.take_if("^", "**"):
            return base
        exponent = self.exponent()
        if _is_word(self.peek(), "^", "**"):
            raise self.error("a power of a power is ambiguous; put brackets: (x^2)^3")
        if exponent < 0 and isinstance(base, Number) and base.value == 0:
            raise self.error("division by zero", start)
        if _power_height(base) * abs(exponent) > MAX_POWER:
            raise self.error(f"powers above {MAX_POWER} are not read", start)
        return Power(base, exponent) if exponent else Number(Fraction(1))

    def exponent(self) -> int:
        start = self.peek()
        bracket = self.take_if("(")
        sign = -1 if self.take_if("-") else 1
        token = self.take()
        if token.kind == "name" and token.text in self.constants:
            value = self.exponents[token.text] = self.constants[token.text]
        elif token.kind == "number":
            value = _number(token)
        else:
            raise self.error(_FRACTIONAL, start)
        if value.denominator != 1 or (bracket and not self.take_if(")")):
            raise self.error(_FRACTIONAL, start)
        if abs(value) > MAX_POWER:
            raise self.error(f"powers above {MAX_POWER} are not read", start)
        return sign * int(value)

    def atom(self) -> Expression:
        token = self.peek()
        if token.kind == "number":
            self.take()
            return Number(_number(token))
        if token.kind == "name":
            return self.named()
        if _is_word(token, "("):
            if self.nesting >= MAX_NESTING:
                raise self.error(f"brackets are nested more than {MAX_NESTING} deep")
            self.nesting += 1
            self.take()
            inner = self.expression()
            if not _is_word(self.peek(), ")"):
                raise self.error(
                    f"the bracket opened at line {token.line}, column {token.column} is not closed: "
                    f"expected ')' or an operator, found {_shown(self.peek())}"
                )
            self.nesting -= 1
            self.take()
            return inner
        raise self.error(f"expected a number, a name or '(', found {_shown(token)}")

    def named(self) -> Expression:
        """A name; ``x(t)`` means ``x``, and ``x(0)`` is the initial value of ``x``."""
        token = self.take()
        if not _is_word(self.peek(), "("):
            return Name(token.text, token.line, token.column)
        argument, closing = self.peek(1), self.peek(2)
        if argument.text in ("t", "0") and _is_word(closing, ")"):
            self.position += 3
            if self.nesting:
                self.skip_newlines()
            name = token.text if argument.text == "t" else initial_name(token.text)
            return Name(name, token.line, token.column)
        rewriting = _AS_A_STATE.get(token.text.lower())
        if rewriting:
            raise self.error(
                f"'{token.text}' is not rational, and models must be; such a term can often be rewritten as an "
                f"extra state: {rewriting}",
                token,
            )
        raise self.error(
            f"'{token.text}(...)' is a function call, and models must be rational: only + - * / and whole-number "
            f"powers; if a product was meant, write {token.text}*(...)",
            token,
        )


def _shown(token: Token) -> str:
    return f"'{token.text}'" if token.kind not in ("newline", "end") or token.text == ";" else f"the {token.text}"


def _power_height(expression: Expression) -> int:
    """The largest product of exponents on a way from the root to a leaf."""
    below = max((_power_height(child) for child in children(expression)), default=1)
    return below * abs(expression.exponent) if isinstance(expression, Power) else below


def _number(token: Token) -> Fraction:
    mantissa, _, exponent = token.text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent or 0)) > MAX_DIGITS:
        raise ModelError(
            f"the number '{token.text[:20]}...' has more than {MAX_DIGITS} digits",
            line=token.line,
            column=token.column,
            word=token.text,
        )
    return Fraction(token.text)


def is_name(text: str) -> bool:
    """Whether a text is just a name."""
    try:
        parsed = parse_expression(text)
    except ModelError:
        return False
    return isinstance(parsed, Name) and "(" not in text


def parse_expression(text: str, constants: Mapping[str, Fraction] | None = None) -> Expression:
    """Parse one expression, such as ``beta*N/gamma``; `constants` may stand in exponents."""
    parser = Parser(text, constants)
    parser.skip_newlines()
    expression = parser.expression()
    parser.skip_newlines()
    if parser.peek().kind != "end":
        raise parser.error(f"expected the end of the expression, found {_shown(parser.peek())}")
    return expression


def parsed_combination(text: str | Expression) -> Expression:
    """A combination that a user gives; an error says which one it is about."""
    if not isinstance(text, str):
        return text
    try:
        return parse_expression(text)
    except ModelError as error:
        raise ModelError(f"combination '{text}': {error}") from None
