"""Rings over GF(p) whose elements are rows of residues: dual numbers, and residues modulo a polynomial.

Arrays have the row in their last axis. Sums of products are exact in floating point, and so can be left to matrix
products: a residue below 2^31 times 16 or 15 bits of another one is below 2^47, and 64 of those are below 2^53.
"""

from __future__ import annotations

import flint
import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.arithmetic.residues import BadPrime

BITS = 16
CHUNK = 64  # products that may be added before anything is rounded


class Undefined(Exception):
    """A denominator vanishes at some of the points; `divisor` is the polynomial of those."""

    def __init__(self, divisor: flint.nmod_poly):
        super().__init__()
        self.divisor = divisor


class Histories:
    """Coefficients of some power series, kept for sums of products: as they are, and as two pieces of fewer bits."""

    def __init__(self, series: int, batch: int, orders: int, width: int):
        self.whole: NDArray[np.float64] = np.zeros((series, batch, orders, width))
        self.pieces: NDArray[np.float64] = np.zeros((series, batch, orders, 2 * width))

    def grow(self, orders: int) -> None:
        series, batch, old, width = self.whole.shape
        larger = Histories(series, batch, orders, width)
        larger.whole[:, :, :old], larger.pieces[:, :, :old] = self.whole, self.pieces
        self.whole, self.pieces = larger.whole, larger.pieces

    def put(self, series: slice, k: int, rows: np.ndarray) -> None:
        width = rows.shape[-1]
        self.whole[series, :, k] = rows
        self.pieces[series, :, k, :width] = rows & ((1 << BITS) - 1)
        self.pieces[series, :, k, width:] = rows >> BITS


class DualNumbers:
    """Rows (a, da_1, ..., da_n): values with their derivatives along n directions."""

    def __init__(self, prime: int, directions: int):
        self.prime = prime
        self.width: int = 1 + directions

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = a[..., :1] * b % self.prime
        if self.width > 1:
            found[..., 1:] += b[..., :1] * a[..., 1:] % self.prime
            found[..., 1:] %= self.prime
        return found

    def reciprocal(self, b: np.ndarray) -> np.ndarray:
        first = inverses(b[..., 0], self.prime)
        found = -b % self.prime * (first * first % self.prime)[..., None] % self.prime
        found[..., 0] = first
        return found

    def convolved(
        self, histories: Histories, left: np.ndarray, right: np.ndarray, terms: int, order: int
    ) -> np.ndarray:
        """The sum of left_i right_{order - i} for i < terms, for pairs of series."""
        whole, pieces = histories.whole[:, :, :, 0], histories.pieces
        early, late = slice(0, terms), slice(order - terms + 1, order + 1)
        if self.width == 1:
            return self._dot(whole[:, :, early][left], pieces[:, :, late][right])
        if early == late:
            one, other = np.concatenate([left, right]), np.concatenate([right, left])
            both = self._dot(whole[:, :, early][one], pieces[:, :, late][other])
            found, slopes = both[: len(left)], both[len(left) :]
        else:
            found = self._dot(whole[:, :, early][left], pieces[:, :, late][right])
            slopes = self._dot(whole[:, :, late][right], pieces[:, :, early][left])
        found[..., 1:] += slopes[..., 1:]
        found[..., 1:] %= self.prime
        return found

    def _dot(self, numbers: np.ndarray, pieces: np.ndarray) -> np.ndarray:
        """Sums of numbers, from the last one back, times rows."""
        terms, backwards = numbers.shape[-1], numbers[..., None, ::-1]
        total = _joined(np.matmul(backwards[..., :CHUNK], pieces[..., :CHUNK, :])[..., 0, :], self.prime)
        for begin in range(CHUNK, terms, CHUNK):
            chunk = slice(begin, begin + CHUNK)
            total += _joined(np.matmul(backwards[..., chunk], pieces[..., chunk, :])[..., 0, :], self.prime)
        return total % self.prime


class Quotient:
    """Polynomials in z modulo another one: the numbers at all its roots at once."""

    width: int

    def __init__(self, modulus: flint.nmod_poly):
        self.prime: int = int(modulus.modulus())
        self.modulus = modulus
        self.width = w = modulus.degree()
        powers = [flint.nmod_poly([0] * k + [1], self.prime) % modulus for k in range(w, 2 * w - 1)]
        table = np.array([[int(power[j]) for j in range(w)] for power in powers], dtype=np.int64).reshape(w - 1, w)
        self._high_powers = np.concatenate([table & ((1 << BITS) - 1), table >> BITS], axis=1)

    def row(self, polynomial: flint.nmod_poly) -> list[int]:
        return [int(polynomial[j]) for j in range(self.width)]

    def polynomial(self, row: np.ndarray) -> flint.nmod_poly:
        return flint.nmod_poly([int(v) for v in row], self.prime)

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._folded(a[..., :, None] * b[..., None, :] % self.prime)

    def reciprocal(self, b: np.ndarray) -> np.ndarray:
        found = np.zeros_like(b)
        for place in np.ndindex(b.shape[:-1]):
            element = self.polynomial(b[place])
            if element.is_zero():
                raise Undefined(self.modulus)
            common, inverse, _ = element.xgcd(self.modulus)
            if common.degree() > 0:
                raise Undefined(common)
            found[place] = self.row(inverse % self.modulus)
        return found

    def convolved(
        self, histories: Histories, left: np.ndarray, right: np.ndarray, terms: int, order: int
    ) -> np.ndarray:
        """The sum of left_i right_{order - i} for i < terms, for pairs of series."""
        early = histories.whole[:, :, :terms][left][..., ::-1, :].swapaxes(-1, -2)
        late = histories.pieces[:, :, order - terms + 1 : order + 1][right]
        total = np.zeros((*early.shape[:-1], self.width), dtype=np.int64)
        for begin in range(0, terms, CHUNK):
            chunk = slice(begin, begin + CHUNK)
            total += _joined(np.matmul(early[..., chunk], late[..., chunk, :]), self.prime)
        return self._folded(total % self.prime)

    def _folded(self, products: np.ndarray) -> np.ndarray:
        """Products of powers z^i z^j, reduced."""
        w = self.width
        total = np.zeros((*products.shape[:-2], 2 * w - 1), dtype=np.int64)
        for i in range(w):
            total[..., i : i + w] += products[..., i, :]
        total %= self.prime
        low, high = total[..., :w], total[..., w:]
        return (low + _joined(high @ self._high_powers, self.prime)) % self.prime


def _joined(pieces: np.ndarray, prime: int) -> np.ndarray:
    """The numbers whose lower and higher bits stand beside each other."""
    whole = pieces.astype(np.int64)
    width = whole.shape[-1] // 2
    return whole[..., :width] + (whole[..., width:] % prime << BITS)


def inverses(values: np.ndarray, prime: int) -> np.ndarray:
    if np.any(values == 0):
        raise BadPrime
    return np.array([pow(int(v), -1, prime) for v in values.ravel()], dtype=np.int64).reshape(values.shape)


Ring = DualNumbers | Quotient
