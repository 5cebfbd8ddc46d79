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
    """The simplest rational a/b with this residue, if one is simple enough to be no accident: |a| b < p /
    128.

    Among the convergents of Euclid's algorithm the one with the least |a| b is taken, so that large whole
    numbers and small fractions are both recognised. A random residue passes with probability of about one in
    ten: what is built on the answer has to be verified at another point.
    """
    r0, r1, s0, s1 = prime, value % prime, 0, 1
    best: Fraction | None = Fraction(0) if r1 == 0 else None
    least = prime // 128
    while r1:
        if r1 * abs(s1) < least:
            least, best = r1 * abs(s1), Fraction(r1, s1)
        quotient = r0 // r1
        r0, r1, s0, s1 = r1, r0 - quotient * r1, s1, s0 - quotient * s1
    return best
