"""Groebner bases modulo a prime."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
import sympy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equifinal.algebra.arithmetic.budget import SECOND, Budget, TooLarge
from equifinal.algebra.arithmetic.residues import residue
from equifinal.algebra.elimination.groebner import groebner, leading
from tests.support.modulo import PRIME, plenty


def test_more_work_than_the_budget_allows():
    """Eight random quadratic equations in eight unknowns have 256 zeros: not in 20,000 steps."""
    rng = random.Random(1)
    monomials = [m for d in (0, 1, 2) for m in combinations_with_replacement(range(8), d)]
    generators = [{tuple(m.count(i) for i in range(8)): rng.randrange(1, PRIME) for m in monomials} for _ in range(8)]
    with pytest.raises(TooLarge):
        groebner(generators, PRIME, Budget(0.02 * SECOND))


monomials = st.tuples(st.integers(0, 2), st.integers(0, 2))
polynomials = st.dictionaries(monomials, st.integers(1, 9), min_size=1, max_size=4)


@example([{(0, 0): 1, (1, 0): 1}, {(1, 0): 1}])  # 1 is found together with x
@example([{(0, 1): 1, (1, 1): 1}, {(1, 1): 1}])  # y is found together with x*y
@settings(max_examples=25)
@given(st.lists(polynomials, min_size=1, max_size=3))
def test_reduced_bases_are_those_of_sympy(generators: list[dict[tuple[int, int], int]]) -> None:
    """Which there is one of, if leading coefficients are 1; over the rationals it is the same, modulo the prime."""
    symbols = sympy.symbols("x y")
    ideal = [sympy.Poly.from_dict(g, *symbols) for g in generators]
    expected = sympy.groebner(ideal, *symbols, order="grevlex", domain=sympy.QQ)
    found = groebner(generators, PRIME, plenty())
    rows = [{m: residue(Fraction(int(c.p), int(c.q)), PRIME) for m, c in p.terms()} for p in expected.polys]
    monic = [{m: c * pow(row[leading(row)], -1, PRIME) % PRIME for m, c in row.items()} for row in found]
    assert sorted(map(sorted, (row.items() for row in monic))) == sorted(map(sorted, (row.items() for row in rows)))
