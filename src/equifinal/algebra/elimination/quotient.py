r"""Finite fibres: from a zero-dimensional ideal to its points, all at once.

If the ideal has n zeros over the algebraic closure, a random linear form z separates them, and every
coordinate is a polynomial in z modulo the polynomial mu of degree n whose roots are the values of z (a
rational univariate representation). Computing in GF(p)[z]/mu is computing at all zeros simultaneously,
without leaving the exact.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import flint

from equifinal.algebra.arithmetic.budget import Budget, TooLarge
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.groebner import Basis, Monomial, Terms, degrevlex, divides, echelon, groebner

MAX_POINTS = 400


class NotFinite(Exception):
    """The ideal has infinitely many zeros."""


@dataclass(frozen=True)
class Points:
    """All zeros of an ideal: coordinates as polynomials in z modulo `modulus`."""

    prime: int
    modulus: flint.nmod_poly
    coordinates: tuple[flint.nmod_poly, ...]

    @property
    def count(self) -> int:
        return self.modulus.degree()

    def restricted(self, modulus: flint.nmod_poly) -> Points:
        """Only the points at which `modulus`, a divisor of the present one, vanishes."""
        return Points(self.prime, modulus, tuple(c % modulus for c in self.coordinates))

    def value(self, polynomial: Any) -> flint.nmod_poly:
        """A polynomial in the coordinates at all points."""
        total = flint.nmod_poly([], self.prime)
        for monomial, c in polynomial.to_dict().items():
            term = flint.nmod_poly([int(c)], self.prime)
            for i, e in enumerate(monomial):
                for _ in range(int(e)):
                    term = term * self.coordinates[i] % self.modulus
            total = total + term
        return total % self.modulus

    def joined(self, other: Points, rng: random.Random) -> Points:
        """These points and others, by the Chinese remainder theorem; the others' z is shifted out of the
        way.
        """
        shift = flint.nmod_poly([rng.randrange(1, self.prime), 1], self.prime)
        modulus = other.modulus(shift)
        common, left, right = self.modulus.xgcd(modulus)  # left*m1 + right*m2 = 1
        if common.degree() > 0:
            raise BadPrime
        scale = flint.nmod_poly([pow(int(common[0]), -1, self.prime)], self.prime)
        whole = self.modulus * modulus
        coordinates = tuple(
            (a * right * modulus + b(shift) * left * self.modulus) * scale % whole
            for a, b in zip(self.coordinates, other.coordinates, strict=True)
        )
        return Points(self.prime, whole, coordinates)


def is_single_valued(element: flint.nmod_poly, modulus: flint.nmod_poly) -> bool:
    """Whether an element of GF(p)[z]/modulus has the same value at all roots of the (squarefree) modulus."""
    return (element % modulus).degree() <= 0


def distinct_values(element: flint.nmod_poly, modulus: flint.nmod_poly) -> int:
    """How many values an element of GF(p)[z]/modulus takes at the roots of the (squarefree) modulus."""
    element = element % modulus
    n = modulus.degree()
    if element.degree() <= 0 or n == 1:
        return 1
    p = int(modulus.modulus())
    power, rows = flint.nmod_poly([1], p), []
    for _ in range(n):  # the powers of the element span an algebra of that dimension
        rows.append([int(power[i]) for i in range(n)])
        power = power * element % modulus
    return flint.nmod_mat(n, n, [c for row in rows for c in row], p).rank()


def standard_monomials(leads: Sequence[Monomial], variables: int) -> list[Monomial]:
    """The monomials outside the leading ideal; `NotFinite` if there is no end to them."""
    for i in range(variables):
        if not any(all(e == 0 for j, e in enumerate(lead) if j != i) for lead in leads):
            raise NotFinite
    found: list[Monomial] = []
    layer = [(0,) * variables]
    if any(sum(lead) == 0 for lead in leads):
        return []
    while layer:
        found += layer
        if len(found) > MAX_POINTS:
            raise TooLarge
        following = {
            tuple(e + (j == i) for j, e in enumerate(monomial)) for monomial in layer for i in range(variables)
        }
        layer = sorted(m for m in following if not any(divides(lead, m) for lead in leads))
    return found


def points_of(basis: Sequence[Terms], variables: int, prime: int, rng: random.Random, budget: Budget) -> Points:
    """All zeros of a zero-dimensional ideal given by its reduced Groebner basis (degrevlex).

    Raises
    ------
    NotFinite
        When the ideal is not zero-dimensional.
    """
    generators = list(basis)
    for _ in range(4):
        leads = [max(g, key=degrevlex) for g in generators]
        monomials = standard_monomials(leads, variables)
        if not monomials:
            raise BadPrime  # the generic point itself must be a zero
        size = len(monomials)
        budget.spend(size * variables * (5 + len(leads)) + size**2 * (2 + variables + size / 100))
        tables = _multiplication(generators, leads, monomials, variables, prime, budget)
        points = _separated(tables, monomials, prime, rng)
        if points is not None:
            return points
        generators = groebner([*generators, *_squarefree_parts(tables, len(monomials), prime)], prime, budget)
    raise TooLarge


def _multiplication(
    generators: Any, leads: Any, monomials: Any, variables: Any, prime: int, budget: Budget
) -> list[flint.nmod_mat]:
    """Matrices of multiplication by each variable in the basis of standard monomials (columns are images)."""
    position = {m: k for k, m in enumerate(monomials)}
    border = {
        tuple(map(add, m, unit))
        for m in monomials
        for unit in (tuple(int(i == j) for j in range(variables)) for i in range(variables))
    } - set(position)
    reducers = Basis(prime, degrevlex)
    reducers.polynomials, reducers.leads, reducers.alive = list(generators), list(leads), [True] * len(leads)
    rows, seen, waiting = [], set(), list(border)
    while waiting:
        monomial = waiting.pop()
        if monomial in seen or monomial in position:
            continue
        seen.add(monomial)
        i = reducers.reducer(monomial)
        assert i is not None
        budget.spend(5 + len(leads) / 2 + 2 * len(reducers.polynomials[i]))
        row = reducers.shifted(i, monomial)
        rows.append(row)
        waiting.extend(row)
    normal: dict[Monomial, Terms] = {}
    for row in echelon(rows, prime, degrevlex, budget):
        lead = max(row, key=degrevlex)
        normal[lead] = {m: -c % prime for m, c in row.items() if m != lead}
    tables = []
    for i in range(variables):
        matrix = flint.nmod_mat(len(monomials), len(monomials), prime)
        for k, monomial in enumerate(monomials):
            image = tuple(e + (j == i) for j, e in enumerate(monomial))
            if image in position:
                matrix[position[image], k] = 1
            else:
                for m, c in normal[image].items():
                    matrix[position[m], k] = c
        tables.append(matrix)
    return tables


def _krylov(matrix: flint.nmod_mat, n: int, prime: int) -> flint.nmod_mat:
    """Columns 1, z, z^2, ... as vectors."""
    vector = flint.nmod_mat(n, 1, [1] + [0] * (n - 1), prime)
    columns = []
    for _ in range(n + 1):
        columns.append([int(c) for c in vector.entries()])
        vector = matrix * vector
    return flint.nmod_mat(n, n + 1, [columns[j][i] for i in range(n) for j in range(n + 1)], prime)


def _minimal_polynomial(krylov: flint.nmod_mat, n: int, prime: int) -> flint.nmod_poly:
    reduced, rank = krylov.rref()
    return flint.nmod_poly([-int(reduced[i, rank]) for i in range(rank)] + [1], prime)


def _separated(tables: Any, monomials: Any, prime: int, rng: random.Random) -> Points | None:
    n = len(monomials)
    form = flint.nmod_mat(n, n, prime)
    for table in tables:
        form = form + table * rng.randrange(1, prime)
    krylov = _krylov(form, n, prime)
    modulus = _minimal_polynomial(krylov, n, prime)
    if modulus.degree() < n or modulus.gcd(modulus.derivative()).degree() > 0:
        return None
    square = flint.nmod_mat(n, n, [int(krylov[i, j]) for i in range(n) for j in range(n)], prime)
    coordinates = []
    for table in tables:
        image = flint.nmod_mat(n, 1, [int(table[i, 0]) for i in range(n)], prime)  # the variable times 1
        solution = square.solve(image)
        coordinates.append(flint.nmod_poly([int(c) for c in solution.entries()], prime))
    return Points(prime, modulus, tuple(coordinates))


def _squarefree_parts(tables: Any, n: int, prime: int) -> list[Terms]:
    """Squarefree minimal polynomials of the variables: with them the ideal becomes radical (Seidenberg)."""
    found = []
    for i, table in enumerate(tables):
        polynomial = _minimal_polynomial(_krylov(table, n, prime), n, prime)
        squarefree = polynomial // polynomial.gcd(polynomial.derivative())
        unit = [0] * len(tables)
        terms: Terms = {}
        for k in range(squarefree.degree() + 1):
            unit[i] = k
            if int(squarefree[k]):
                terms[tuple(unit)] = int(squarefree[k])
        found.append(terms)
    return found
