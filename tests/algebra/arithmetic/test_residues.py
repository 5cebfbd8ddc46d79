"""Rationals modulo a prime, and back."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equifinal.algebra.arithmetic.residues import HIGHEST_PRIME, LOWEST_PRIME, BadPrime, random_prime, rational, residue
from tests.support.modulo import PRIME

rationals = st.fractions(-(10**6), 10**6, max_denominator=10**6)
# |a'| b' <= |a| b <= 1e4 and |a b'| + |a' b| < 2^30: no other such rational has the same residue
simple = st.builds(Fraction, st.integers(-100, 100), st.integers(1, 100))


@given(rationals, rationals)
def test_sums_and_products_are_respected(a: Fraction, b: Fraction) -> None:
    assert residue(a + b, PRIME) == (residue(a, PRIME) + residue(b, PRIME)) % PRIME
    assert residue(a * b, PRIME) == residue(a, PRIME) * residue(b, PRIME) % PRIME


@given(simple, st.integers(0, 20))
def test_simple_rationals_are_recognised_modulo_any_prime(value: Fraction, seed: int) -> None:
    prime = random_prime(random.Random(seed))
    assert LOWEST_PRIME <= prime <= HIGHEST_PRIME
    assert rational(residue(value, prime), prime) == value


def test_what_is_not_simple_is_not_made_up() -> None:
    """A random residue is recognised one time in ten or so."""
    rng = random.Random(0)
    found = [rational(v, PRIME) for v in (rng.randrange(PRIME) for _ in range(2000))]
    recognised = [value for value in found if value is not None]
    assert len(recognised) < 400
    assert all(abs(v.numerator) * v.denominator < PRIME / 128 for v in recognised)


def test_a_denominator_that_vanishes_is_reported() -> None:
    with pytest.raises(BadPrime):
        residue(Fraction(1, PRIME), PRIME)
