r"""Writing an identifiable function in terms of generators, where that is easy.

A Laurent monomial in the generators is found from logarithmic gradients, :math:`\nabla\log f = \sum_j e_j
\nabla\log\xi_j`; a polynomial of degree at most two from values at random points. Both are linear systems
modulo a prime, lifted to rationals and checked at a fresh point modulo another prime.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.functions import monomial_expression, polynomial_expression, values_and_gradients
from equifinal.algebra.arithmetic.residues import BadPrime, random_prime, rational, residue
from equifinal.algebra.elimination.quotient import is_single_valued
from equifinal.algebra.generators.membership import Constants, values_at_points
from equifinal.algebra.generators.monomials import rational_nullspace
from equifinal.algebra.generators.selection import level_set
from equifinal.language.expression import Expression, Number, Product, evaluate


@dataclass(frozen=True)
class Expressed:
    """Whether a function is identifiable, and how it is written in the combinations xi1, xi2, ... if that is
    easy.
    """

    status: str
    formula: Expression | None = None

    @property
    def identifiable(self) -> bool:
        return self.status == "globally"


def express(
    function: Expression,
    generators: Sequence[Expression],
    names: Sequence[str],
    constants: Constants,
    budget: Budget,
    *,
    with_formula: bool = True,
) -> Expressed:
    """Status of a function with respect to the field of the generators, and a formula in them."""
    rng = random.Random(1)
    prime = random_prime(rng)
    point = {n: rng.randrange(1, prime) for n in names}
    array = np.array([list(point.values())], dtype=np.int64).reshape(1, len(names))
    _, slopes = values_and_gradients([*generators, function], constants, names, array, prime)
    rows = [[int(v) for v in slope[0]] for slope in slopes]
    columns = len(names)
    generic = flint.nmod_mat(len(generators), columns, [v for row in rows[:-1] for v in row], prime)
    reduced, rank = generic.rref()
    if flint.nmod_mat(len(rows), columns, [v for row in rows for v in row], prime).rank() > rank:
        return Expressed("not")
    free_to_fix = _complement(reduced, rank, columns)
    fixed = {names[i]: point[names[i]] for i in free_to_fix}
    free, points = level_set(generators, constants, point, fixed, prime, rng, budget)
    if not is_single_valued(values_at_points(function, points, free, fixed, constants), points.modulus):
        return Expressed("locally")
    formula = _formula(function, generators, names, constants, rng) if with_formula and generators else None
    return Expressed("globally", formula)


def _complement(reduced: flint.nmod_mat, rank: int, columns: int) -> list[int]:
    pivots, column = set(), 0
    for i in range(rank):
        while int(reduced[i, column]) == 0:
            column += 1
        pivots.add(column)
        column += 1
    return [i for i in range(columns) if i not in pivots]


def _formula(
    function: Any, generators: Any, names: Sequence[str], constants: Constants, rng: random.Random
) -> Expression | None:
    labels = [f"xi{j + 1}" for j in range(len(generators))]
    prime = random_prime(rng)
    monomials = [
        c for d in range(3 if len(labels) <= 12 else 2) for c in combinations_with_replacement(range(len(labels)), d)
    ]
    count = len(monomials) + 6
    points = np.array([[rng.randrange(1, prime) for _ in names] for _ in range(count)], dtype=np.int64)
    try:
        values, slopes = values_and_gradients([*generators, function], constants, names, points, prime)
    except BadPrime:
        return None
    rows = []
    for b in range(6):
        for i in range(len(names)):
            scaled = [
                int(slopes[j, b, i]) * pow(int(values[j, b]), -1, prime) % prime
                for j in range(len(values))
                if values[j, b]
            ]
            if len(scaled) == len(values):
                rows.append(scaled)
    candidates: list[Expression] = []
    for solution in rational_nullspace(rows, len(values), prime) if rows else []:
        last = solution[-1]
        exponents = {label: -e / last for label, e in zip(labels, solution, strict=False) if e and last}
        if last and all(e.denominator == 1 and abs(e) < 20 for e in exponents.values()):
            candidates.append(monomial_expression({k: int(e) for k, e in exponents.items()}))
    table = []
    for b in range(count):
        row = []
        for combination in monomials:
            product = 1
            for j in combination:
                product = product * int(values[j, b]) % prime
            row.append(product)
        table.append([*row, int(values[-1, b])])
    for solution in rational_nullspace(table, len(monomials) + 1, prime):
        if solution[-1]:
            terms = {}
            for combination, c in zip(monomials, solution, strict=False):
                if c:
                    exponents_ = [0] * len(labels)
                    for j in combination:
                        exponents_[j] += 1
                    terms[tuple(exponents_)] = -c / solution[-1]
            candidates.append(polynomial_expression(labels, terms))
    for candidate in candidates:
        formula = _checked(candidate, function, generators, labels, names, constants, rng)
        if formula is not None:
            return formula
    return None


def _checked(
    candidate: Any,
    function: Any,
    generators: Any,
    labels: Any,
    names: Sequence[str],
    constants: Constants,
    rng: random.Random,
) -> Expression | None:
    """The candidate, times a constant if needed, if it agrees with the function at fresh points modulo a new
    prime.
    """
    prime = random_prime(rng)
    points = np.array([[rng.randrange(1, prime) for _ in names] for _ in range(3)], dtype=np.int64)
    try:
        values, _ = values_and_gradients([*generators, function], constants, names, points, prime)
        ratios = []
        for b in range(3):
            table = {label: flint.nmod(int(values[j, b]), prime) for j, label in enumerate(labels)}
            own = evaluate(candidate, table, lambda v: flint.nmod(residue(Fraction(v), prime), prime))
            ratios.append(int(flint.nmod(int(values[-1, b]), prime) / own))
    except (BadPrime, ZeroDivisionError):
        return None
    if len(set(ratios)) > 1:
        return None
    if ratios[0] == 1:
        return candidate
    factor = rational(ratios[0], prime)
    return None if factor is None else Product((Number(factor), candidate))
