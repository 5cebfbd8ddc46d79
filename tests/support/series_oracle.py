"""What power series say about a model, computed in another way than the library does: by Picard iteration.

x <- x(0) + integral of f(x) gains one coefficient each time, here with flint's polynomials modulo a large prime and
dual numbers. (`solution_count` has power series of a third kind.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import flint

from equifinal.language.expression import evaluate
from equifinal.language.model import Model

PRIME = 2**31 - 1


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
    identifiable: set[str]  # at least locally
    fixed: list[str]  # coordinates that may be fixed on a fibre


def local_truth(model: Model, order: int) -> LocalTruth:
    """A coordinate is identifiable if leaving it out lowers the rank; one that does not add to it may be fixed."""
    rows = [row for row in jacobian(model, order) if any(row)]
    columns = list(range(len(model.parameters)))
    rank = rank_of(rows, columns)
    identifiable = {n for j, n in enumerate(model.parameters) if rank_of(rows, [i for i in columns if i != j]) < rank}
    kept: list[int] = []
    for j in columns:
        if rank_of(rows, [*kept, j]) > len(kept):
            kept.append(j)
    return LocalTruth(rank, identifiable, [n for j, n in enumerate(model.parameters) if j not in kept])
