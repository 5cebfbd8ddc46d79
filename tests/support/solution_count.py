"""How many parameter vectors have the output of a random one, counted by SymPy's Groebner bases.

Taylor coefficients of the outputs are polynomials in the parameters and in reciprocals w of denominators, each with its
equation w*b = 1. They are set equal to their values at a random point modulo a large prime. The ideal of the short ones
among the first of them has finitely many zeros, or it is given up. At these zeros, which are numbers in an extension of
the prime field, the series are computed much further, and those kept at which they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import flint
from sympy import GF
from sympy.polys.groebnertools import groebner
from sympy.polys.orderings import grevlex
from sympy.polys.rings import PolyElement, ring

from equifinal.language.expression import evaluate
from equifinal.language.model import Model

PRIME = 2**31 - 1
ORDERS = 30  # coefficients that are written out
FURTHER = 60  # coefficients that must agree
SPARE = 3  # equations beyond as many as there are unknowns
TERMS, DEGREE = 80, 24  # of an equation that is used
LONGEST = 20_000  # products of terms, for one product of polynomials
UNKNOWNS, RECIPROCALS = 4, 3
ZEROS = 30  # counted with multiplicities


class TooMuch(Exception):
    """Longer or more than is counted here."""


# --- power series whose coefficients are found when they are asked for, in any ring ---


class Series:
    """Coefficients in a ring, each computed once; `inverse` says what 1/b is there."""

    def __init__(self, coefficient: Callable[[int], Any], inverse: Callable[[Any], Any]):
        self._known: list[Any] = []
        self._coefficient, self._inverse = coefficient, inverse

    def __getitem__(self, k: int) -> Any:
        while len(self._known) <= k:
            self._known.append(self._coefficient(len(self._known)))
        return self._known[k]

    def _new(self, coefficient: Callable[[int], Any]) -> Series:
        return Series(coefficient, self._inverse)

    def __add__(self, other: Series) -> Series:
        return self._new(lambda k: self[k] + other[k])

    def __mul__(self, other: Series) -> Series:
        return self._new(lambda k: _sum(_product(self[i], other[k - i]) for i in range(k + 1)))

    def __truediv__(self, other: Series) -> Series:
        first: list[Any] = []  # the reciprocal of the denominator's first coefficient

        def coefficient(k: int) -> Any:
            if not first:
                first.append(self._inverse(other[0]))
            earlier = [_product(quotient[i], other[k - i]) for i in range(k)]
            return _product(first[0], self[k] - _sum(earlier) if earlier else self[k])

        quotient = self._new(coefficient)
        return quotient

    def __pow__(self, exponent: int) -> Series:
        power = self
        for _ in range(exponent - 1):
            power = power * self
        return power


def _product(a: Any, b: Any) -> Any:
    if isinstance(a, PolyElement) and len(a) * len(b) > LONGEST:
        raise TooMuch
    return a * b


def _sum(terms: Any) -> Any:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def output_series(
    model: Model, values: dict[str, Any], number: Callable[[int], Any], inverse: Callable[[Any], Any]
) -> list[Series]:
    """The outputs at given parameters, which are elements of a ring, as integers become by `number`."""

    def constant(value: Any) -> Series:
        return Series(lambda k: value if k == 0 else number(0), inverse)

    def rational(value: Fraction) -> Series:
        return constant(number(value.numerator * pow(value.denominator, -1, PRIME) % PRIME))

    table = {n: rational(v) for n, v in model.constants.items()} | {n: constant(v) for n, v in values.items()}
    slopes: dict[str, Series] = {}

    def state(name: str, start: Series) -> Series:
        return Series(
            lambda k: slopes[name][k - 1] * number(pow(k, -1, PRIME)) if k else start[0],
            inverse,
        )

    starts = [evaluate(e, table, rational) for e in model.start]
    table |= {x: state(x, start) for x, start in zip(model.states, starts, strict=True)}
    slopes |= {x: evaluate(e, table, rational) for x, e in zip(model.states, model.rhs, strict=True)}
    return [evaluate(e, table, rational) for e in model.observed]


# --- equations for all parameter vectors with the same output ---


@dataclass
class Equations:
    """Taylor coefficients minus their values at a point, in the ring of the unknowns and of reciprocals."""

    ring: Any
    unknowns: list[str]
    short: list[PolyElement] = field(default_factory=list)
    reciprocals: dict[PolyElement, PolyElement] = field(default_factory=dict)  # of what, w

    @property
    def ideal(self) -> list[PolyElement]:
        unused = self.ring.gens[len(self.unknowns) + len(self.reciprocals) :]
        return [*self.short, *(w * b - 1 for b, w in self.reciprocals.items()), *unused]


def equations(model: Model, point: dict[str, int], fixed: Sequence[str]) -> Equations:
    unknowns = [name for name in model.parameters if name not in fixed]
    symbols = [f"q{i}" for i in range(len(unknowns))] + [f"w{i}" for i in range(RECIPROCALS)]
    base, *gens = ring(symbols, GF(PRIME, symmetric=False), grevlex)
    found, spare = Equations(base, unknowns), gens[len(unknowns) :]

    def inverse(polynomial: PolyElement) -> PolyElement:
        if polynomial.is_ground:
            if not polynomial:
                raise ZeroDivisionError
            return base(pow(int(polynomial.coeff(1)), -1, PRIME))
        if polynomial not in found.reciprocals:
            if len(found.reciprocals) == RECIPROCALS:
                raise TooMuch
            found.reciprocals[polynomial] = spare[len(found.reciprocals)]
        return found.reciprocals[polynomial]

    def measured(polynomial: PolyElement) -> PolyElement:
        if len(polynomial) > TERMS or (polynomial and max(map(sum, polynomial)) > DEGREE):
            raise TooMuch
        return polynomial

    values = dict(zip(unknowns, gens, strict=False)) | {name: base(point[name]) for name in fixed}
    symbolic = output_series(model, values, lambda v: base(v), inverse)
    goal = output_series(model, point, lambda v: v, lambda v: pow(v, -1, PRIME))
    for k in range(ORDERS):
        try:
            new = [measured(y[k]) - goal_y[k] % PRIME for y, goal_y in zip(symbolic, goal, strict=True)]
        except TooMuch:
            break
        found.short += [e for e in new if e]
        if len(found.short) >= len(unknowns) + SPARE:
            break
    return found


# --- finitely many zeros ---


@dataclass
class Zeros:
    """Points whose coordinates are polynomials in z, at the roots of a polynomial in z without double roots."""

    modulus: flint.nmod_poly
    coordinates: list[flint.nmod_poly]

    def values_of(self, i: int) -> int:
        """How many different values a coordinate has."""
        images = [self.coordinates[i] * _z(k) % self.modulus for k in range(self.modulus.degree())]
        return _squarefree(_matrix(images, self.modulus.degree()).charpoly()).degree()


def _z(power: int) -> flint.nmod_poly:
    return flint.nmod_poly([0] * power + [1], PRIME)


def _matrix(rows: Sequence[flint.nmod_poly], width: int) -> flint.nmod_mat:
    return flint.nmod_mat(len(rows), width, [int(row[j]) for row in rows for j in range(width)], PRIME)


def _squarefree(polynomial: flint.nmod_poly) -> flint.nmod_poly:
    return polynomial // polynomial.gcd(polynomial.derivative())


def zeros(ideal: Sequence[PolyElement], base: Any, rng: Random) -> Zeros:
    basis = groebner(ideal, base)
    for _ in range(2):
        monomials = _standard_monomials(basis, base)
        tables = [_multiplication(g, basis, monomials, base) for g in base.gens]
        points = [_squarefree(table.charpoly()) for table in tables]
        mix = [rng.randrange(1, PRIME) for _ in tables]
        mixed = _sum(table * c for table, c in zip(tables, mix, strict=True))
        whole = mixed.charpoly()
        if _squarefree(whole).degree() == whole.degree():
            break
        # the radical: what vanishes at all values of each coordinate (Seidenberg)
        more = [
            _sum(base(int(c)) * g**k for k, c in enumerate(p.coeffs())) for g, p in zip(base.gens, points, strict=True)
        ]
        basis = groebner([*basis, *more], base)
    else:
        raise TooMuch
    size = len(monomials)
    one = flint.nmod_mat(1, size, [int(not any(m)) for m in monomials], PRIME)
    krylov = [one]
    for _ in range(size - 1):
        krylov.append(krylov[-1] * mixed)
    powers = flint.nmod_mat(size, size, [v for row in krylov for v in row.entries()], PRIME)
    solved = [powers.transpose().solve((one * table).transpose()) for table in tables]
    return Zeros(whole, [flint.nmod_poly([int(v) for v in column.entries()], PRIME) for column in solved])


def _standard_monomials(basis: Sequence[PolyElement], base: Any) -> list[tuple[int, ...]]:
    leading = [g.LM for g in basis]
    ends = [[m[i] for m in leading if sum(m) == m[i]] for i in range(base.ngens)]
    if not all(ends):
        raise TooMuch  # infinitely many zeros
    bounds = [min(end) for end in ends]
    found = []
    for monomial in product(*map(range, bounds)):
        if not any(all(a >= b for a, b in zip(monomial, lead, strict=True)) for lead in leading):
            found.append(monomial)
            if len(found) > ZEROS:
                raise TooMuch
    return sorted(found, key=sum)


def _multiplication(generator: PolyElement, basis: Any, monomials: Any, base: Any) -> flint.nmod_mat:
    """Row by row what becomes of a monomial that is multiplied by a generator."""
    index = {m: i for i, m in enumerate(monomials)}
    table = flint.nmod_mat(len(monomials), len(monomials), PRIME)
    for i, monomial in enumerate(monomials):
        for m, c in (base({monomial: base.domain.one}) * generator).rem(basis).items():
            table[i, index[m]] = int(c)
    return table


class Residue:
    """A number of GF(p)[z]/modulus."""

    def __init__(self, value: flint.nmod_poly, modulus: flint.nmod_poly):
        self.value, self.modulus = value % modulus, modulus

    def __add__(self, other: Residue) -> Residue:
        return Residue(self.value + other.value, self.modulus)

    def __sub__(self, other: Residue) -> Residue:
        return Residue(self.value - other.value, self.modulus)

    def __mul__(self, other: Residue) -> Residue:
        return Residue(self.value * other.value, self.modulus)

    def inverse(self) -> Residue:
        common, inverse, _ = self.value.xgcd(self.modulus)
        assert common.degree() == 0  # w*b = 1 is among the equations
        return Residue(inverse, self.modulus)


@dataclass
class Counts:
    points: int
    values: dict[str, int]  # of each unknown


def solution_counts(model: Model, fixed: Sequence[str], seed: int = 0) -> Counts | None:
    """Parameter vectors with the output of a random one and with the same values of `fixed`; None if that is long."""
    if len(model.parameters) - len(fixed) > UNKNOWNS:
        return None
    rng = Random(seed)
    point = {name: rng.randrange(1, PRIME) for name in model.parameters}
    try:
        system = equations(model, point, fixed)
        found = zeros(system.ideal, system.ring, rng)
    except TooMuch:
        return None
    found = _agreeing(found, model, point, fixed, system.unknowns)
    return Counts(found.modulus.degree(), {n: found.values_of(i) for i, n in enumerate(system.unknowns)})


def _agreeing(
    found: Zeros, model: Model, point: dict[str, int], fixed: Sequence[str], unknowns: Sequence[str]
) -> Zeros:
    """The zeros at which the series agree much further."""
    modulus = found.modulus

    def number(value: int) -> Residue:
        return Residue(flint.nmod_poly([value], PRIME), modulus)

    values = {n: Residue(c, modulus) for n, c in zip(unknowns, found.coordinates, strict=False)}
    values |= {name: number(point[name]) for name in fixed}
    here = output_series(model, values, number, lambda b: b.inverse())
    goal = output_series(model, point, lambda v: v, lambda v: pow(v, -1, PRIME))
    common = modulus
    for k in range(FURTHER):
        for y, goal_y in zip(here, goal, strict=True):
            common = common.gcd(y[k].value - goal_y[k] % PRIME)
        if common.degree() == 1:
            break
    return Zeros(common, [c % common for c in found.coordinates])
