"""Random primes and the image of exact rationals modulo a prime."""

from __future__ import annotations

import random
from fractions import Fraction

import flint

LOWEST_PRIME = 2**30  # products of two residues below 2**31 fit a 64-bit integer, which NumPy needs
HIGHEST_PRIME = 2**31 - 1


class BadPrime(Exception):
    """The prime, or the point chosen modulo it, is unlucky: something was divided by zero. Choose again."""


def random_prime(rng: random.Random) -> int:
    """A prime between 2^30 and 2^31, about 5e7 of which there are."""
    while True:
        candidate = rng.randrange(LOWEST_PRIME, HIGHEST_PRIME) | 1
        if flint.fmpz(candidate).is_prime():
            return candidate


def residue(value: Fraction, prime: int) -> int:
    """The image of a rational number modulo the prime."""
    if value.denominator % prime == 0:
        raise BadPrime
    return value.numerator % prime * pow(value.denominator, -1, prime) % prime


def rational(value: int, prime: int) -> Fraction | None:
    """The rational a/b with a^2, b^2 < p/2 that has this residue, if there is one (Wang's algorithm)."""
    bound = int((prime // 2) ** 0.5)
    r0, r1, s0, s1 = prime, value % prime, 0, 1
    while r1 > bound:
        quotient = r0 // r1
        r0, r1, s0, s1 = r1, r0 - quotient * r1, s1, s0 - quotient * s1
    if s1 == 0 or abs(s1) > bound:
        return None
    return Fraction(r1, s1)
