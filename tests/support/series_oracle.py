"""What power series say about a model, computed in another way than the library does: by Picard iteration.

x <- x(0) + integral of f(x) gains one coefficient each time. `ranks` does that with flint's polynomials modulo a large
prime and dual numbers; `alternatives` with arrays modulo a small prime at all parameter vectors there are, and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import flint
import numpy as np

from equifinal.language.expression import evaluate
from equifinal.language.model import Model

PRIME = 2**31 - 1
SHORT = 60  # coefficients, for small primes
MOST_WORK = 1e7  # points times the cube of the order


# --- dual numbers over truncated polynomials ---


@dataclass
class Dual:
    """A truncated series and its derivatives in all parameters."""

    value: flint.nmod_poly
    slopes: list[flint.nmod_poly]
    order: int

    def _cut(self, series: flint.nmod_poly) -> flint.nmod_poly:
        return series if series.degree() < self.order else flint.nmod_poly(series.coeffs()[: self.order], PRIME)

    def __add__(self, other: Dual) -> Dual:
        return Dual(
            self.value + other.value, [a + b for a, b in zip(self.slopes, other.slopes, strict=True)], self.order
        )

    def __mul__(self, other: Dual) -> Dual:
        slopes = [self._cut(self.value * b + a * other.value) for a, b in zip(self.slopes, other.slopes, strict=True)]
        return Dual(self._cut(self.value * other.value), slopes, self.order)

    def __truediv__(self, other: Dual) -> Dual:
        if int(other.value[0]) == 0:
            raise ZeroDivisionError
        inverse = flint.nmod_poly([pow(int(other.value[0]), -1, PRIME)], PRIME)
        known = 1
        while known < self.order:  # Newton
            known *= 2
            inverse = self._cut(inverse * (2 - self._cut(other.value * inverse)))
        quotient = self._cut(self.value * inverse)
        slopes = [
            self._cut(self._cut(a - quotient * b) * inverse) for a, b in zip(self.slopes, other.slopes, strict=True)
        ]
        return Dual(quotient, slopes, self.order)

    def __pow__(self, exponent: int) -> Dual:
        power = self
        for _ in range(exponent - 1):
            power = power * self
        return power

    def integral(self, start: Dual, order: int) -> Dual:
        def of(series: flint.nmod_poly, constant: flint.nmod_poly) -> flint.nmod_poly:
            shifted = [int(c) * pow(k + 1, -1, PRIME) for k, c in enumerate(series.coeffs()[: order - 1])]
            return flint.nmod_poly([int(constant[0]), *shifted], PRIME)

        slopes = [of(a, b) for a, b in zip(self.slopes, start.slopes, strict=True)]
        return Dual(of(self.value, start.value), slopes, order)


def jacobian(model: Model, order: int, seed: int = 0) -> list[list[int]]:
    """Derivatives of the output coefficients at a random point modulo the prime: a row for each coefficient."""
    rng, count = Random(seed), len(model.parameters)
    zero = flint.nmod_poly([], PRIME)

    def number(value: Fraction, length: int) -> Dual:
        residue = value.numerator * pow(value.denominator, -1, PRIME) % PRIME
        return Dual(flint.nmod_poly([residue], PRIME), [zero] * count, length)

    def table(length: int) -> dict[str, Dual]:
        names = {name: number(value, length) for name, value in model.constants.items()}
        for j, name in enumerate(model.parameters):
            slopes = [flint.nmod_poly([int(i == j)], PRIME) for i in range(count)]
            names[name] = Dual(flint.nmod_poly([point[j]], PRIME), slopes, length)
        return names

    point = [rng.randrange(1, PRIME) for _ in model.parameters]
    start = [evaluate(e, table(1), lambda v: number(v, 1)) for e in model.start]
    states = start
    for length in range(1, order):
        values = table(length) | dict(zip(model.states, states, strict=True))
        for dual in values.values():
            dual.order = length
        slopes = [evaluate(e, values, lambda v, n=length: number(v, n)) for e in model.rhs]
        states = [f.integral(x, length + 1) for f, x in zip(slopes, start, strict=True)]
    values = table(order) | dict(zip(model.states, states, strict=True))
    outputs = [evaluate(e, values, lambda v: number(v, order)) for e in model.observed]
    return [[int(s[k]) for s in y.slopes] for y in outputs for k in range(order)]


def rank_of(rows: Sequence[Sequence[int]], columns: Sequence[int]) -> int:
    if not rows or not columns:
        return 0
    return flint.nmod_mat(len(rows), len(columns), [row[j] for row in rows for j in columns], PRIME).rank()


@dataclass
class LocalTruth:
    rank: int
    early: int  # the rank of the first coefficients, as many as `SHORT`
    identifiable: set[str]  # at least locally
    fixed: list[str]  # coordinates that may be fixed on a fibre


def local_truth(model: Model, order: int) -> LocalTruth:
    """A coordinate is identifiable if leaving it out lowers the rank; one that does not add to it may be fixed."""
    everything = jacobian(model, order)
    rows = [row for row in everything if any(row)]
    columns = list(range(len(model.parameters)))
    rank = rank_of(rows, columns)
    early = rank_of([row for k, row in enumerate(everything) if k % order < SHORT], columns)
    identifiable = {n for j, n in enumerate(model.parameters) if rank_of(rows, [i for i in columns if i != j]) < rank}
    kept: list[int] = []
    for j in columns:
        if rank_of(rows, [*kept, j]) > len(kept):
            kept.append(j)
    return LocalTruth(rank, early, identifiable, [n for j, n in enumerate(model.parameters) if j not in kept])


# --- all parameter vectors modulo a small prime ---


class Undefined(Exception):
    """All vectors that are left divide by zero."""


class Batch:
    """Truncated series at many points, an array (points, order) modulo a small prime; `fine` where they exist."""

    def __init__(self, values: np.ndarray, prime: int, fine: np.ndarray):
        self.values, self.prime, self.fine = values % prime, prime, fine

    def _new(self, values: np.ndarray) -> Batch:
        return Batch(values, self.prime, self.fine)

    def __add__(self, other: Batch) -> Batch:
        return self._new(self.values + other.values)

    def __mul__(self, other: Batch) -> Batch:
        a, b = self.values, other.values
        total = np.zeros_like(a)
        for k in range(a.shape[1]):
            total[:, k:] += a[:, k : k + 1] * b[:, : a.shape[1] - k]
        return self._new(total)

    def __truediv__(self, other: Batch) -> Batch:
        a, b, p = self.values, other.values, self.prime
        self.fine &= b[:, 0] != 0
        inverses = np.array([0, *(pow(k, -1, p) for k in range(1, p))])[b[:, 0]]
        quotient = np.zeros_like(a)
        for k in range(a.shape[1]):
            rest = a[:, k] - (quotient[:, :k] * b[:, k:0:-1]).sum(axis=1)
            quotient[:, k] = rest % p * inverses % p
        return self._new(quotient)

    def __pow__(self, exponent: int) -> Batch:
        power = self
        for _ in range(exponent - 1):
            power = power * self
        return power


def outputs_modulo(model: Model, points: np.ndarray, order: int, prime: int) -> tuple[np.ndarray, np.ndarray]:
    """Output coefficients (points, outputs * order) at each row of parameters, and where they exist."""
    count, fine = len(points), np.ones(len(points), dtype=bool)

    def constant(column: Any) -> Batch:
        values = np.zeros((count, order), dtype=np.int64)
        values[:, 0] = column
        return Batch(values, prime, fine)

    def number(value: Fraction) -> Batch:
        if value.denominator % prime == 0:
            raise Undefined
        return constant(value.numerator * pow(value.denominator, -1, prime) % prime)

    table = {name: number(value) for name, value in model.constants.items()}
    table |= {name: constant(points[:, j]) for j, name in enumerate(model.parameters)}
    start = [evaluate(e, table, number).values for e in model.start]
    inverses = np.array([pow(k, -1, prime) for k in range(1, order)], dtype=np.int64)
    states = start
    for _ in range(order - 1):
        values = table | {x: Batch(v, prime, fine) for x, v in zip(model.states, states, strict=True)}
        slopes = [evaluate(e, values, number).values for e in model.rhs]
        states = [
            np.hstack([x[:, :1], f[:, : order - 1] * inverses % prime]) for x, f in zip(start, slopes, strict=True)
        ]
    values = table | {x: Batch(v, prime, fine) for x, v in zip(model.states, states, strict=True)}
    return np.hstack([evaluate(e, values, number).values for e in model.observed]), fine


def alternatives(model: Model, fixed: Sequence[str], order: int, prime: int, rng: Random) -> set[str] | None:
    """Which parameters have another value, modulo the prime, somewhere on the fibre of a random point.

    All vectors with the coordinates `fixed` as they are at the point are tried, and those that give the same output
    kept. None if the point has no series, or if too many vectors agree for too long.
    """
    point = [rng.randrange(1, prime) for _ in model.parameters]
    free = [j for j, name in enumerate(model.parameters) if name not in fixed]
    points = np.tile(np.array(point, dtype=np.int64), (prime ** len(free), 1))
    for position, j in enumerate(free):
        points[:, j] = np.arange(len(points)) // prime**position % prime
    for length in (1, 2, 3, 5, 9, 17, order):
        if len(points) * length**3 > MOST_WORK:
            return None
        goal, exists = outputs_modulo(model, np.array([point]), length, prime)
        if not exists[0]:
            return None
        values, fine = outputs_modulo(model, points, length, prime)
        points = points[fine & (values == goal).all(axis=1)]
    return {name for j, name in enumerate(model.parameters) if (points[:, j] != point[j]).any()}
