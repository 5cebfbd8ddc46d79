r"""Solving xi(theta) = c for some coordinates of theta, symbolically: one unknown after the other.

Let I be coordinates to fix and D the others, as many as xi has independent functions. Over the field
K = Q(theta_I, c) the system xi = c has finitely many solutions, and they are conjugate: Q(theta) is a field,
finite over its subfield Q(theta_I, xi), so a polynomial in theta_D with coefficients in K vanishes at all
solutions or at none. One point decides which: a random theta modulo a prime, with c = xi(theta). That makes
elimination easy. Every polynomial that is met is replaced by its irreducible factor that vanishes there, and
a leading coefficient that vanishes there is an equation of its own; extraneous factors never survive.

What is left is Euclid's algorithm. An unknown is eliminated by dividing all equations that contain it by the
one of least degree in it until only one does; that one is its step, and the unknown's remaining values are
its roots once all other unknowns in it are known. Most steps turn out linear.

Reference: J. F. Ritt, Differential Algebra, 1950, ch. 4 (characteristic sets of prime ideals).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import flint

from equifinal.algebra.arithmetic.budget import Budget, divisor_steps, factor_steps, product_steps, terms_steps
from equifinal.algebra.arithmetic.functions import polynomial_expression
from equifinal.algebra.arithmetic.polynomials import Ratio
from equifinal.algebra.arithmetic.residues import BadPrime, random_prime
from equifinal.language.expression import Expression, evaluate

Polynomial = Any  # flint.fmpz_mpoly
Ring = Any  # flint.fmpz_mpoly_ctx

BOUND = "[bound]"  # a value that one coordinate is asked to take


class NoTriangularForm(Exception):
    """The polynomials grew too long."""


def combination_name(j: int) -> str:
    """What the value of the j-th function is called in the coefficients of steps."""
    return f"c[{j}]"


@dataclass(frozen=True)
class Step:
    """An unknown as a root: sum of coefficients[k] * unknown^k = 0, the coefficients in what is known before it."""

    name: str
    coefficients: tuple[Expression, ...]

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1


class Triangular:
    """The solutions of functions(theta) = c in the unknowns, as a chain of steps.

    Parameters
    ----------
    functions
        Independent functions of theta, as many as unknowns.
    names
        All coordinates of theta.
    unknowns
        Those to solve for.

    Raises
    ------
    NoTriangularForm, TooLarge
    """

    prime: int

    LONGEST = 2000  # terms of a polynomial

    def __init__(
        self,
        functions: Sequence[Expression],
        constants: Mapping[str, Fraction],
        names: Sequence[str],
        unknowns: Sequence[str],
        budget: Budget,
        *,
        seed: int = 0,
    ):
        self.names: tuple[str, ...] = tuple(names)
        self.budget = budget
        self.labels: tuple[str, ...] = (*names, *(combination_name(j) for j in range(len(functions))), BOUND)
        context: Any = flint.fmpz_mpoly_ctx  # flint sees v0, v1, ... because names may be in any script
        self.ring: Ring = context.get([f"v{i}" for i in range(len(self.labels))], "degrevlex")
        self.gens: Sequence[Polynomial] = self.ring.gens()
        self.rng: random.Random = random.Random(seed)
        self.point: list[int] = []
        equations = self._equations(functions, constants)
        self.unknowns: list[int] = [self.names.index(name) for name in unknowns]
        self.chain: list[tuple[int, Polynomial]] = self._chain(equations)

    # --- results ---

    @property
    def steps(self) -> tuple[Step, ...]:
        """List the equations in the order of solution."""
        return tuple(
            Step(self.labels[i], tuple(self.expression(c) for c in self._coefficients(p, i))) for i, p in self.chain
        )

    @property
    def degree(self) -> int:
        """How many solutions the steps have, complex ones counted."""
        return prod(p.degrees()[i] for i, p in self.chain)

    def expression(self, polynomial: Polynomial) -> Expression:
        terms = {tuple(map(int, m)): Fraction(int(c)) for m, c in polynomial.to_dict().items()}
        return polynomial_expression(self.labels, terms)

    def events(self, free: str, poles: Sequence[str]) -> tuple[dict[str, list[Polynomial]], list[Polynomial]]:
        """Where the solutions can enter or leave a box while one coordinate, `free`, moves and c stays.

        Returns
        -------
        For each unknown that moves with `free`, polynomials in `free`, c and `BOUND` that vanish where it takes
        the value `BOUND`; and polynomials in `free` and c that vanish where solutions meet, or where one of the
        unknowns `poles` is infinite. They may vanish elsewhere too: an event that is none does no harm.
        """
        i = self.names.index(free)
        crossings = {}
        bound = self.gens[-1]
        values = list(self.point)
        for k in self.unknowns:
            self.point[-1] = values[k]
            norm = self._norm(self.gens[k] - bound)
            kept = self._vanishing(norm) if self._vanishes(norm) else norm
            if kept.degrees()[i]:
                crossings[self.labels[k]] = [kept]
        self.point = values
        others = []
        for k, p in self.chain:
            coefficients = self._coefficients(p, k)
            suspects = [self._discriminant(p, k)] if len(coefficients) > 2 else []
            if self.labels[k] in poles or len(coefficients) > 2:
                suspects.append(coefficients[-1])
            for suspect in suspects:
                others += [f for f, _ in self._norm(suspect).factor()[1] if f.degrees()[i]]
        return crossings, others

    def coefficients_in(self, polynomial: Polynomial, name: str) -> tuple[Expression, ...]:
        return tuple(self.expression(c) for c in self._coefficients(polynomial, self.names.index(name)))

    # --- elimination ---

    def _equations(self, functions: Sequence[Expression], constants: Mapping[str, Fraction]) -> list[Polynomial]:
        one = self.ring.constant(1)

        def number(value: Fraction) -> Ratio:
            return Ratio(self.ring.constant(value.numerator), self.ring.constant(value.denominator))

        table = {name: Ratio(self.gens[i], one) for i, name in enumerate(self.names)}
        table |= {name: number(Fraction(value)) for name, value in constants.items()}
        ratios = [evaluate(function, table, number) for function in functions]
        self.prime = random_prime(self.rng)
        theta = [self.rng.randrange(1, self.prime) for _ in self.names]
        self.point = [*theta, *(0 for _ in functions), 0]
        for j, ratio in enumerate(ratios):
            under = self._value(ratio.under)
            if under == 0:
                raise BadPrime
            self.point[len(self.names) + j] = self._value(ratio.over) * pow(under, -1, self.prime) % self.prime
        return [r.over - self.gens[len(self.names) + j] * r.under for j, r in enumerate(ratios)]

    def _chain(self, equations: Sequence[Polynomial]) -> list[tuple[int, Polynomial]]:
        """Eliminate unknown after unknown; the last one eliminated is the first one solved for."""
        waiting = list(self.unknowns)
        polynomials = _distinct(part for e in equations for part in self._parts(e, waiting))
        found: list[tuple[int, Polynomial]] = []
        while waiting:
            self.budget.spend(20 + len(waiting) * sum(map(terms_steps, polynomials)))
            i = self._next_unknown(polynomials, waiting)
            while True:
                self.budget.spend(20 + sum(map(terms_steps, polynomials)))
                having = [p for p in polynomials if p.degrees()[i]]
                divisor = min(having, key=lambda p: self._cost(p, i, waiting))
                if len(having) == 1:
                    break
                polynomials = [p for p in polynomials if not p.degrees()[i]] + [divisor]
                for p in having:
                    if p is not divisor:
                        polynomials += self._parts(self._remainder(p, divisor, i), waiting)
                polynomials = _distinct(polynomials)
            found.append((i, divisor))
            polynomials = [p for p in polynomials if p is not divisor]
            waiting.remove(i)
        return found[::-1]

    def _next_unknown(self, polynomials: Sequence[Polynomial], waiting: Sequence[int]) -> int:
        """The one that is cheapest to eliminate: of low degree, divided by little, in few other equations."""
        costs = []
        for p in polynomials:
            degrees = p.degrees()
            for i in waiting:
                if degrees[i]:
                    work = len(p) * sum(len(other) for other in polynomials if other is not p and other.degrees()[i])
                    degree, unknown, *rest = self._cost(p, i, waiting)
                    costs.append(((degree, unknown, work, *rest), i))
        if not costs:
            raise NoTriangularForm("the functions do not determine all unknowns")
        return min(costs)[1]

    def _cost(self, polynomial: Polynomial, i: int, waiting: Sequence[int]) -> tuple[int, ...]:
        """Degree in an unknown, other unknowns that it is divided by, whether it is divided at all, length."""
        coefficients = self._coefficients(polynomial, i)
        lead = coefficients[-1].degrees()
        return len(coefficients) - 1, sum(lead[k] > 0 for k in waiting), int(any(lead)), len(polynomial)

    def _parts(self, polynomial: Polynomial, waiting: Sequence[int]) -> list[Polynomial]:
        """Irreducible equations that say the same, none with a leading coefficient that vanishes."""
        found, todo = [], [polynomial]
        while todo:
            p = todo.pop()
            if p.is_zero():
                continue
            p = self._vanishing(p)
            self.budget.spend(len(waiting) * (5 + terms_steps(p)))
            for i in waiting:
                coefficients = self._coefficients(p, i)
                if len(coefficients) > 1 and self._vanishes(coefficients[-1]):
                    todo += [coefficients[-1], p - coefficients[-1] * self.gens[i] ** (len(coefficients) - 1)]
                    break
            else:
                found.append(p)
        return found

    def _remainder(self, dividend: Polynomial, divisor: Polynomial, i: int) -> Polynomial:
        """Pseudo-remainder with respect to one variable, common factors of leading coefficients left out."""
        a, b = self._coefficients(dividend, i), self._coefficients(divisor, i)
        while len(a) >= len(b):
            self.budget.spend(divisor_steps(a[-1], b[-1]))
            common = a[-1].gcd(b[-1])
            left, right = b[-1] / common, a[-1] / common
            shift = len(a) - len(b)
            self.budget.spend(sum(product_steps(left, p) for p in a) + sum(product_steps(right, p) for p in b))
            a = [left * a[j] - (right * b[j - shift] if j >= shift else 0) for j in range(len(a) - 1)]
            if sum(map(len, a)) > 3 * self.LONGEST:
                raise NoTriangularForm("the polynomials grew too long")
            while a and a[-1].is_zero():
                a.pop()
        return sum((c * self.gens[i] ** j for j, c in enumerate(a)), self.ring.constant(0))

    def _norm(self, polynomial: Polynomial) -> Polynomial:
        """A polynomial without unknowns that vanishes wherever this one does at a solution."""
        for i, p in reversed(self.chain):
            if polynomial.degrees()[i]:
                if len(polynomial) * len(p) > 3 * self.LONGEST:
                    raise NoTriangularForm("the polynomials grew too long")
                self.budget.spend(product_steps(polynomial, p) * int(polynomial.degrees()[i]) * int(p.degrees()[i]))
                polynomial = self._radical(p.resultant(polynomial, f"v{i}"))
        return polynomial

    def _discriminant(self, polynomial: Polynomial, i: int) -> Polynomial:
        self.budget.spend(factor_steps(polynomial) * int(polynomial.degrees()[i]) ** 2)
        return polynomial.discriminant(f"v{i}")

    def _radical(self, polynomial: Polynomial) -> Polynomial:
        if len(polynomial) > self.LONGEST:
            raise NoTriangularForm("the polynomials grew too long")
        self.budget.spend(factor_steps(polynomial))
        factors = [f for f, _ in polynomial.factor()[1]]
        if any(self._vanishes(f) for f in factors):
            factors = [f for f in factors if self._vanishes(f)]
        return prod(factors, start=self.ring.constant(1))

    # --- polynomials ---

    def _coefficients(self, polynomial: Polynomial, i: int) -> list[Polynomial]:
        parts: dict[int, dict[tuple[int, ...], Any]] = {}
        for monomial, c in polynomial.to_dict().items():
            parts.setdefault(monomial[i], {})[(*monomial[:i], 0, *monomial[i + 1 :])] = c
        return [self.ring.from_dict(parts.get(k, {})) for k in range(max(parts, default=0) + 1)]

    def _value(self, polynomial: Polynomial) -> int:
        """Evaluate at the random point, modulo the prime."""
        total = 0
        for monomial, c in polynomial.to_dict().items():
            term = int(c) % self.prime
            for exponent, value in zip(monomial, self.point, strict=True):
                if exponent:
                    term = term * pow(value, exponent, self.prime) % self.prime
            total += term
        return total % self.prime

    def _vanishes(self, polynomial: Polynomial) -> bool:
        return self._value(polynomial) == 0

    def _vanishing(self, polynomial: Polynomial) -> Polynomial:
        """The irreducible factor that is zero at the solutions."""
        if len(polynomial) > self.LONGEST:
            raise NoTriangularForm("the polynomials grew too long")
        self.budget.spend(factor_steps(polynomial))
        factors = sorted((f for f, _ in polynomial.factor()[1]), key=len)
        for factor in factors:
            if self._vanishes(factor):
                return factor
        raise NoTriangularForm("an equation does not hold at the random point")


def _distinct(polynomials: Any) -> list[Polynomial]:
    return list({str(p): p for p in polynomials}.values())
