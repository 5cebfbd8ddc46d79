"""Text to exact expressions: a tokenizer and a recursive-descent parser.

The language is what a modeller writes: ``beta*S*I/(K + S)^2 - 1e-5*exp(-k*t)``. Text is parsed and never evaluated;
every error says where it is, which word is at fault and what would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from equifinal.errors import ModelError, did_you_mean
from equifinal.language.conditions import both, compared, either, negated
from equifinal.language.expression import (
    Call,
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    children,
    evaluate,
    initial_name,
    names,
    negative,
    reciprocal,
)
from equifinal.language.functions import CONDITIONS, FUNCTIONS
from equifinal.language.tokens import Token, is_word, shown, tokenize

MAX_NESTING = 50
MAX_POWER = 1000  # of nested powers, their product
MAX_DIGITS = 300  # of a number, and of its decimal exponent's value


COMPARISONS = ("<=", ">=", "<", ">")
# other ways of writing a function, in terms of those there are
_SQUARE_ROOT = Number(Fraction(1, 2))
_WRITTEN_OTHERWISE: dict[str, Callable[..., Expression]] = {
    "ln": lambda x: Call("log", (x,)),
    "log10": lambda x: _logarithm(x, 10),
    "log2": lambda x: _logarithm(x, 2),
    "sqrt": lambda x: Call("power", (x, _SQUARE_ROOT)),
    "pow": lambda x, n: _power(x, n),
}
_ARITIES = {"ln": 1, "log10": 1, "log2": 1, "sqrt": 1, "pow": 2}
KNOWN_FUNCTIONS = (*(name for name in FUNCTIONS if name not in CONDITIONS), *_WRITTEN_OTHERWISE)


def _logarithm(x: Expression, base: int) -> Expression:
    return Product((Call("log", (x,)), Power(Call("log", (Number(Fraction(base)),)), -1)))


def _power(base: Expression, exponent: Expression) -> Expression:
    """A power: a `Power` where the exponent is a whole number."""
    number = _rational_number(exponent)
    if number is None:
        return Call("power", (base, exponent))
    if number.denominator != 1:
        return Call("power", (base, Number(number)))
    return Power(base, int(number)) if number else Number(Fraction(1))


def _rational_number(expression: Expression) -> Fraction | None:
    """The value of an expression without names and functions; None if it has some, or no value."""
    try:
        return Fraction(evaluate(expression, {}, Fraction))
    except (KeyError, TypeError, ArithmeticError):
        return None


class Parser:
    """Recursive descent over tokens, with the usual precedence: ``+ -``, then ``* /``, then signs, then powers.

    Names of `constants` may stand in exponents; `exponents` are those that do.
    """

    def __init__(self, text: str, constants: Mapping[str, Fraction] | None = None):
        self.tokens: list[Token] = tokenize(text)
        self.constants: Mapping[str, Fraction] = constants or {}
        self.exponents: dict[str, Fraction] = dict[str, Fraction]()
        self.position: int = 0
        self.opened: list[Token] = []  # brackets that are not closed yet

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
        return self.take() if is_word(self.peek(), *texts) else None

    def expect(self, text: str, why: str) -> Token:
        if token := self.take_if(text):
            return token
        raise self.error(f"expected '{text}' {why}, found {shown(self.peek())}")

    def error(self, message: str, token: Token | None = None) -> ModelError:
        token = token or self.peek()
        return ModelError(message, line=token.line, column=token.column, word=token.text)

    @property
    def nesting(self) -> int:
        return len(self.opened)

    def left_open(self) -> str:
        token = self.opened[-1]
        return f"the bracket opened at line {token.line}, column {token.column} is not closed"

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
        joins = self.nesting and is_word(follower, "and", "or")
        if (follower.kind in ("number", "name") and not joins) or is_word(follower, "("):
            if self.opened and follower.line > self.opened[-1].line:  # most likely a line of its own
                raise self.error(f"{self.left_open()}: expected ')' or an operator, found {shown(follower)}")
            raise self.error(f"an operator is missing before {shown(follower)}; products are written with *")
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
        if is_word(self.peek(), "^", "**"):
            raise self.error("a power of a power is ambiguous; put brackets: (x^2)^3")
        found = _power(base, exponent)
        return self.checked_power(found, start)

    def checked_power(self, found: Expression, start: Token) -> Expression:
        match found:
            case Power(Number(value), exponent) if value == 0 and exponent < 0:
                raise self.error("division by zero", start)
        if _power_height(found) > MAX_POWER:
            raise self.error(f"powers above {MAX_POWER} are not read", start)
        return found

    def exponent(self) -> Expression:
        """A number, a name, or anything in brackets."""
        is_negative = bool(self.take_if("-"))
        exponent = self.settled(self.atom())
        return negative(exponent) if is_negative else exponent

    def settled(self, exponent: Expression) -> Expression:
        """An exponent in which constants that make it a whole number are put in for good."""
        numbers = {name: self.constants[name] for name in names(exponent) if name in self.constants}
        if numbers and set(names(exponent)) == set(numbers):
            try:
                value = Fraction(evaluate(exponent, numbers, Fraction))
            except (TypeError, ArithmeticError):
                value = Fraction(1, 2)  # something else than a whole number
            if value.denominator == 1:
                if abs(value) > MAX_POWER:
                    raise self.error(f"powers above {MAX_POWER} are not read")
                self.exponents |= numbers
                return Number(value)
        return exponent

    def atom(self) -> Expression:
        token = self.peek()
        if token.kind == "number":
            self.take()
            return Number(_number(token))
        if token.kind == "name":
            return self.named()
        if is_word(token, "("):
            if self.nesting >= MAX_NESTING:
                raise self.error(f"brackets are nested more than {MAX_NESTING} deep")
            self.opened.append(token)
            self.take()
            inner = self.condition()
            if not is_word(self.peek(), ")"):
                raise self.error(f"{self.left_open()}: expected ')' or an operator, found {shown(self.peek())}")
            self.opened.pop()
            self.take()
            return inner
        raise self.error(f"expected a number, a name or '(', found {shown(token)}")

    def named(self) -> Expression:
        """A name; ``x(t)`` means ``x``, and ``x(0)`` is the initial value of ``x``."""
        token = self.take()
        if not is_word(self.peek(), "("):
            return Name(token.text, token.line, token.column)
        argument, closing = self.peek(1), self.peek(2)
        if token.text in KNOWN_FUNCTIONS:
            return self.called(token)
        if argument.text in ("t", "0") and is_word(closing, ")"):
            self.position += 3
            if self.nesting:
                self.skip_newlines()
            name = token.text if argument.text == "t" else initial_name(token.text)
            return Name(name, token.line, token.column)
        return self.called(token)

    def called(self, token: Token) -> Expression:
        """A function of arguments in brackets, whose name was just taken."""
        name = token.text if token.text in KNOWN_FUNCTIONS else token.text.lower()
        if name not in KNOWN_FUNCTIONS:
            hint = did_you_mean(token.text, KNOWN_FUNCTIONS) or f"; if a product was meant, write {token.text}*(...)"
            raise self.error(f"'{token.text}' is not a function that is known{hint}", token)
        if self.nesting >= MAX_NESTING:
            raise self.error(f"brackets are nested more than {MAX_NESTING} deep")
        self.opened.append(self.take())
        self.skip_newlines()
        arguments: list[Expression] = []
        while True:
            arguments.append(self.condition())
            if not self.take_if(","):
                break
        if not is_word(self.peek(), ")"):
            raise self.error(f"expected ',' or ')' after an argument of '{token.text}', found {shown(self.peek())}")
        self.opened.pop()
        self.take()
        least, most = (_ARITIES[name],) * 2 if name in _ARITIES else FUNCTIONS[name][:2]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"{least} argument{'s' if least > 1 else ''}" + ("" if most == least else " or more")
            raise self.error(f"'{token.text}' takes {wanted}, not {len(arguments)}", token)
        if name == "piecewise":
            self.check_pieces(arguments, token)
        if name not in _WRITTEN_OTHERWISE:
            return Call(name, tuple(arguments))
        if name == "pow":
            arguments[1] = self.settled(arguments[1])
        return self.checked_power(_WRITTEN_OTHERWISE[name](*arguments), token)

    def check_pieces(self, arguments: list[Expression], token: Token) -> None:
        if len(arguments) % 2 == 0:
            raise self.error("piecewise needs a last value: piecewise(value, t < time, ..., otherwise)", token)
        if not all(_is_condition(condition) for condition in arguments[1::2]):
            raise self.error("piecewise takes values and conditions on time in turn: piecewise(a, t < 10, b)", token)

    # conditions

    def condition(self) -> Expression:
        """An expression, or a condition on time: comparisons with *and*, *or* and *not*."""
        found = self.conjunction()
        while self.take_if("or"):
            found = either(found, self.conjunction())
        return found

    def conjunction(self) -> Expression:
        found = self.negation()
        while self.take_if("and"):
            found = both(found, self.negation())
        return found

    def negation(self) -> Expression:
        if is_word(self.peek(), "not") and (self.peek(1).kind in ("name", "number") or self.peek(1).text == "("):
            self.take()
            return negated(self.negation())
        return self.comparison()

    def comparison(self) -> Expression:
        left = self.expression()
        found: Expression | None = None
        while sign := self.take_if(*COMPARISONS):
            right = self.expression()
            holds = compared(left, sign.text, right)
            if holds is None:
                raise self.error(
                    "conditions compare the time t with numbers, constants and parameters, such as t < 10 or t >= t_on",
                    sign,
                )
            found, left = holds if found is None else both(found, holds), right
        return left if found is None else found


def _is_condition(expression: Expression) -> bool:
    """Whether an expression is made of conditions on time only, and so is 0 or 1."""
    match expression:
        case Call(function, _):
            return function in CONDITIONS or function == "above"
        case Product(parts):
            return all(map(_is_condition, parts))
        case Sum((Number(value), Product((Number(sign), *inner)))):
            return value == 1 and sign == -1 and all(map(_is_condition, inner))
    return False


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
    return isinstance(parsed, Name) and "(" not in text and parsed.name not in ("and", "or", "not")


def parse_expression(text: str, constants: Mapping[str, Fraction] | None = None) -> Expression:
    """Parse one expression, such as ``beta*N/gamma``; `constants` may stand in exponents."""
    parser = Parser(text, constants)
    parser.skip_newlines()
    expression = parser.expression()
    parser.skip_newlines()
    if parser.peek().kind != "end":
        raise parser.error(f"expected the end of the expression, found {shown(parser.peek())}")
    return expression


def parsed_combination(text: str | Expression) -> Expression:
    """A combination that a user gives; an error says which one it is about."""
    if not isinstance(text, str):
        return text
    try:
        return parse_expression(text)
    except ModelError as error:
        raise ModelError(f"combination '{text}': {error}") from None
