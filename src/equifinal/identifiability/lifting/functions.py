"""Functions of parameters as parameters of their own, functions of states as further states.

A state w = g(x) has the rate of change g'(x) f, which is rational in x and w for every function here, and the initial
value g(x0), a function of parameters. `atoms` says in which functions all others are rational.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor

from equifinal.identifiability.lifting.atoms import Key, Vector, divided, hashable, in_whole_numbers
from equifinal.identifiability.lifting.lifted import Tie
from equifinal.identifiability.verdicts import NoExactAnalysis
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, names, to_text
from equifinal.language.functions import call_on_arrays
from equifinal.language.rational import (
    ONE,
    ZERO,
    added,
    factors_of,
    linear_parts,
    multiplied,
    number,
    raised,
    simplified,
    terms_of,
)

Rotation = tuple[Expression, Expression]  # cosine and sine


class NotLiftable(NoExactAnalysis):
    """A model that has no rational form."""


class Solve(Exception):
    """A parameter must be written in terms of others, and the lifting begin again."""

    def __init__(self, name: str, value: Expression, root: tuple[str, Call] | None = None):
        super().__init__()
        self.name = name
        self.value = value
        self.root = root


class SingularStart(Exception):
    """A function has no power series at the initial values."""


class Atoms(ABC):
    """Independent functions, made when they are first needed: powers, rotations, logarithms."""

    def __init__(self, divisors: Mapping[frozenset[tuple[Key, Fraction]], int]):
        self.divisors = divisors
        self.powers: list[tuple[Vector, Name]] = []
        self.rotations: list[tuple[Vector, Rotation]] = []
        self.logarithms: dict[Expression, Name] = {}

    def power(self, vector: Vector) -> Expression:
        divisor = self.divisors.get(hashable(vector), 1)
        if divisor > 1:
            return raised(self.power(divided(vector, divisor)), divisor)
        whole = in_whole_numbers(vector, [v for v, _ in self.powers])
        if whole is not None:
            return multiplied(*(raised(w, n) for (_, w), n in zip(self.powers, whole, strict=True) if n))
        made = self.new_power(vector)
        self.powers.append((vector, made))
        return made

    def rotation(self, vector: Vector) -> Rotation:
        divisor = self.divisors.get(hashable(vector), 1)
        if divisor > 1:
            return turned([(self.rotation(divided(vector, divisor)), divisor)])
        whole = in_whole_numbers(vector, [v for v, _ in self.rotations])
        if whole is not None:
            return turned([(r, n) for (_, r), n in zip(self.rotations, whole, strict=True) if n])
        made = self.new_rotation(vector)
        self.rotations.append((vector, made))
        return made

    def logarithm(self, factor: Expression) -> Name:
        if factor not in self.logarithms:
            self.logarithms[factor] = self.new_logarithm(factor)
        return self.logarithms[factor]

    @abstractmethod
    def new_power(self, vector: Vector) -> Name: ...

    @abstractmethod
    def new_rotation(self, vector: Vector) -> Rotation: ...

    @abstractmethod
    def new_logarithm(self, factor: Expression) -> Name: ...


def turned(rotations: list[tuple[Rotation, int]]) -> Rotation:
    """One rotation after the other, each so many times, or so many times back."""
    cosine: Expression = ONE
    sine: Expression = ZERO
    for (c, s), times in rotations:
        s = s if times > 0 else multiplied(number(-1), s)
        for _ in range(abs(times)):
            cosine, sine = (
                added([multiplied(cosine, c), multiplied(number(-1), sine, s)]),
                added([multiplied(sine, c), multiplied(cosine, s)]),
            )
    return cosine, sine


def argument_of(vector: Vector, logarithm: Callable[[Expression], Expression]) -> Expression:
    """The logarithm of a power."""
    return added(
        multiplied(*(() if c == 1 else (number(c),)), m, *(() if base is None else (logarithm(base),)))
        for (base, m), c in vector.items()
    )


def shown_power(vector: Vector) -> Expression:
    """A power as one would write it."""
    factors: list[Expression] = []
    exponent = added(multiplied(number(c), m) for (base, m), c in vector.items() if base is None)
    if exponent != ZERO:
        factors.append(Call("exp", (exponent,)))
    by_exponent: dict[Expression, list[Expression]] = {}
    for (base, m), c in vector.items():
        if base is not None:
            by_exponent.setdefault(multiplied(number(c), m), []).append(base)
    for exponent, bases in by_exponent.items():
        factors.append(Call("power", (simplified(multiplied(*bases)), exponent)))
    return multiplied(*factors)


class Ties(Atoms):
    """Functions of parameters: each is a parameter itself, tied to those it depends on."""

    def __init__(
        self, divisors: Mapping[frozenset[tuple[Key, Fraction]], int], solvable: Callable[[], tuple[str, ...]]
    ):
        super().__init__(divisors)
        self.solvable = solvable
        self.ties: list[Tie] = []
        self.positive = False  # whether factors under roots, powers and logarithms were taken to be positive each
        self.rough: bool = False  # whether a root stayed, whose square is a rational function of parameters

    def _new(self, kind: str, argument: Expression, shown: Expression, vector: Vector | None = None) -> Name:
        self.ties.append(Tie(f"{kind} {len(self.ties) + 1}", kind, argument, shown, vector or {}))
        return Name(self.ties[-1].name)

    def new_power(self, vector: Vector) -> Name:
        if all(m == ONE for _, m in vector):
            self._solve_root(vector)
        return self._new("exp", argument_of(vector, self.logarithm), shown_power(vector), vector)

    def _solve_root(self, vector: Vector) -> None:
        """Write a parameter in terms of a root, so that the root is a parameter and there is no tie."""
        ((base, _), c) = next(iter(vector.items()))
        assert base is not None
        tied = {tie.name for tie in self.ties}
        root = f"root {to_text(base)} {c.denominator}"
        for name in sorted(names(base), key=lambda n: base != Name(n)):
            parts = linear_parts(base, name)
            if name in self.solvable() and parts and not tied & set(names(base)):
                rest = added([raised(Name(root), c.denominator), multiplied(number(-1), parts[1])])
                shown = Call("power", (base, number(Fraction(1, c.denominator))))
                raise Solve(name, simplified(multiplied(rest, raised(parts[0], -1))), (root, shown))
        self.rough = True

    def new_rotation(self, vector: Vector) -> Rotation:
        angle = argument_of(vector, self.logarithm)
        half = self._new("turn", angle, Call("tan", (multiplied(number(Fraction(1, 2)), angle),)))
        under = raised(added([ONE, raised(half, 2)]), -1)
        cosine = multiplied(added([ONE, multiplied(number(-1), raised(half, 2))]), under)
        return cosine, multiplied(number(2), half, under)

    def new_logarithm(self, factor: Expression) -> Name:
        return self._new("log", factor, Call("log", (factor,)))


class Functions:
    """Rational forms of expressions of one model.

    Parameters
    ----------
    ties
        For functions of parameters, shared by all models.
    moving
        Names of what changes with time.
    constants
        Known numbers.
    """

    def __init__(self, ties: Ties, own: Atoms, moving: Callable[[], set[str]], constants: Mapping[str, Fraction]):
        self.ties = ties
        self.own = own
        self.moving = moving
        self.constants = constants

    def rational(self, expression: Expression, numeric: bool = False) -> Expression:
        """The expression without calls; with numbers in place of constants where it is an argument of one."""
        match expression:
            case Name(name) if numeric and name in self.constants:
                return number(self.constants[name])
            case Sum(terms):
                return Sum(tuple(self.rational(term, numeric) for term in terms))
            case Product(factors):
                return Product(tuple(self.rational(factor, numeric) for factor in factors))
            case Power(base, exponent):
                return Power(self.rational(base, numeric), exponent)
            case Call(function, arguments):
                return self._call(function, [simplified(self.rational(argument, True)) for argument in arguments])
        return expression

    def _call(self, function: str, arguments: list[Expression]) -> Expression:
        if all(isinstance(argument, Number) for argument in arguments):
            return _known(function, arguments)
        match function:
            case "exp":
                return self._exponential(arguments[0])
            case "tanh":
                square = self._exponential(multiplied(number(2), arguments[0]))
                return multiplied(added([square, number(-1)]), raised(added([square, ONE]), -1))
            case "log":
                return self._logarithm(arguments[0])
            case "power":
                return self._power(*arguments)
            case "sin" | "cos" | "tan":
                cosine, sine = self._rotation(arguments[0])
                return {"sin": sine, "cos": cosine, "tan": multiplied(sine, raised(cosine, -1))}[function]
        shown = f"{function}({', '.join(map(to_text, arguments))})"
        raise NotLiftable(f"{shown} has no derivative everywhere, so that exact algebra says nothing about the model")

    def _moves(self, *expressions: Expression | None) -> bool:
        moving = self.moving()
        return any(name in moving for e in expressions if e is not None for name in names(e))

    # --- powers ---

    def _exponential(self, argument: Expression) -> Expression:
        factor: Expression = ONE
        vector: Vector = {}
        logarithms = {name.name: base for atoms in (self.ties, self.own) for base, name in atoms.logarithms.items()}
        for term, c in terms_of(argument).items():
            inside = [name for name in names(term) if name in logarithms]
            if term == ONE:
                factor = _known("exp", [number(c)])
            elif inside:
                vector[logarithms[inside[0]], simplified(multiplied(term, raised(Name(inside[0]), -1)))] = c
            else:
                vector[None, term] = c
        return multiplied(factor, self._product(vector))

    def _power(self, base: Expression, exponent: Expression) -> Expression:
        if base == ZERO:
            raise SingularStart
        content, factors = factors_of(base)
        self.ties.positive |= content < 0 or any(times != 1 for times in factors.values()) or len(factors) > 1
        vector: Vector = {}
        for m, c in terms_of(exponent).items():
            for factor, times in factors.items():
                vector[factor, m] = vector.get((factor, m), Fraction(0)) + times * c
            if m == ONE and abs(content) != 1:
                vector[number(abs(content)), m] = c
            elif abs(content) != 1:
                for prime, times in _primes(abs(content)).items():
                    vector[number(prime), m] = times * c
        return self._product(vector)

    def _product(self, vector: Vector) -> Expression:
        """A power, as a product of what is rational, what does not move, and what does."""
        found: list[Expression] = []
        own: Vector = {}
        tied: Vector = {}
        for (base, m), c in vector.items():
            if m == ONE and isinstance(base, Number):
                found.append(_known("power", [base, number(c)]))
            elif m == ONE and base is not None:
                whole = floor(c)
                found.append(raised(base, whole))
                if c != whole:
                    atoms = self.own if self._moves(base) else self.ties
                    found.append(atoms.power({(base, ONE): c - whole}))
            elif c:
                (own if self._moves(base, m) else tied)[base, m] = c
        found += [self.own.power(own)] if own else []
        found += [self.ties.power(tied)] if tied else []
        return multiplied(*found)

    # --- the others ---

    def _logarithm(self, argument: Expression) -> Expression:
        if argument == ZERO:
            raise SingularStart
        content, factors = factors_of(argument)
        self.ties.positive |= content < 0 or any(times % 2 == 0 for times in factors.values()) or len(factors) > 1
        powers = {name: vector for atoms in (self.ties, self.own) for vector, name in atoms.powers}
        found: list[Expression] = [] if abs(content) == 1 else [_known("log", [number(abs(content))])]
        for factor, times in factors.items():
            if factor in powers:
                value = argument_of(powers[factor], lambda base: self._logarithm(base))
            else:
                value = (self.own if self._moves(factor) else self.ties).logarithm(factor)
            found.append(multiplied(number(times), value))
        return added(found)

    def _rotation(self, angle: Expression) -> Rotation:
        own: Vector = {}
        tied: Vector = {}
        parts: list[tuple[Rotation, int]] = []
        for term, c in terms_of(angle).items():
            if term == ONE:
                half = _known("tan", [number(c / 2)])
                under = 1 + half.value**2
                parts.append(((number((1 - half.value**2) / under), number(2 * half.value / under)), 1))
            else:
                (own if self._moves(term) else tied)[None, term] = c
        parts += [(self.own.rotation(own), 1)] if own else []
        parts += [(self.ties.rotation(tied), 1)] if tied else []
        return turned(parts)


def _known(function: str, arguments: list[Expression]) -> Number:
    """The value of a function of numbers, as it prints."""
    values = [float(a.value) for a in arguments if isinstance(a, Number)]
    try:
        return number(Fraction(repr(float(call_on_arrays(function, values)))))
    except ValueError:
        raise NotLiftable(f"{function} of {', '.join(f'{v:g}' for v in values)} is not a number") from None


def _primes(value: Fraction) -> dict[Fraction, int]:
    """Prime factors with their exponents; what is left of very large numbers counts as one."""
    found: dict[Fraction, int] = {}
    for part, sign in ((value.numerator, 1), (value.denominator, -1)):
        divisor = 2
        while divisor * divisor <= part and divisor < 10_000:
            while part % divisor == 0:
                found[Fraction(divisor)] = found.get(Fraction(divisor), 0) + sign
                part //= divisor
            divisor += 1
        if part > 1:
            found[Fraction(part)] = found.get(Fraction(part), 0) + sign
    return {prime: times for prime, times in found.items() if times}
