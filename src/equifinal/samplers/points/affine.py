r"""Fibres that are flat: coordinates w_k = theta_k or w_k = log theta_k in which every combination is affine.

A combination that is affine in theta asks for w_k = theta_k. A monomial, k * prod theta^e, asks for logarithms:

    log(xi / k) = sum over k of e_k log theta_k.

One of a single parameter merely says what that parameter is, and fits either. If no parameter is asked for both, the
fibre over c is {w : A w = b(c)}, a flat piece of the box that bounds w.

Which kind a combination is, is read off exact values at random rational points. What is one is always recognised; the
probability that another function is taken for one is below (its degree / 2^31)^3.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.language.expression import Expression, evaluate, names, to_text

if TYPE_CHECKING:
    from equifinal.fibre.fibre import Fibre

Array = NDArray[np.float64]
Matrix = tuple[tuple[Fraction, ...], ...]
Point = Mapping[str, Fraction]

ATTEMPTS = 20  # at points where nothing is divided by zero
CHECKS = 3  # further points at which a function must be what it seems
LARGEST = 2**31  # coordinate of a random point


class NotAffine(Exception):
    """Why no such coordinates exist."""


@dataclass(frozen=True)
class AffineForm:
    """{w : A w = b(c)}.

    Attributes
    ----------
    logarithmic
        (d,): whether w_k is log theta_k.
    matrix
        A, (q, d), exact.
    levels
        (q, 4): shift, scale, power and whether to take logarithms. With x = (c - shift) / scale, b is log(x) / power
        or x^(1 / power).
    """

    logarithmic: NDArray[np.bool_]
    matrix: Matrix
    levels: Array

    def solved(self, free: Sequence[int], dependent: Sequence[int]) -> tuple[Array, Array]:
        """B (q, r) and A_D^-1 (q, q) of w_D = B w_I + A_D^-1 b."""
        inverse = _inverse([[row[k] for k in dependent] for row in self.matrix])
        along = [[row[k] for k in free] for row in self.matrix]
        q = len(inverse)
        slopes = [[-sum(inverse[i][j] * along[j][m] for j in range(q)) for m in range(len(free))] for i in range(q)]
        return np.array(slopes, float).reshape(q, len(free)), np.array(inverse, float).reshape(q, q)


def affine_form(fibre: Fibre) -> AffineForm:
    """Coordinates in which all combinations are affine, each up to a monotone map; or `NotAffine` with the reason."""
    functions = fibre.combinations.independent
    read = [_read(function, fibre) for function in functions]
    straight = {name for r in read if not r.monomial and not r.single for name in r.weights}
    curved = {name for r in read if r.monomial and not r.single for name in r.weights}
    for name in fibre.names:
        if name in straight and name in curved:
            raise NotAffine(f"'{name}' is in a sum and in a product")
    signed = {n for n, (lower, _) in zip(fibre.names, fibre.bounds, strict=True) if lower < 0}
    for function, r in zip(functions, read, strict=True):
        for name in r.weights:
            itself = r.single and r.weights[name] == 1  # times a number: then its sign does no harm
            if r.monomial and name in signed and not itself:
                raise NotAffine(f"'{name}' in {to_text(function)} may be negative, and has no logarithm then")

    def is_logarithmic(name: str) -> bool:
        # where nothing asks for either, what makes the prior flat
        return name in curved or (name not in straight and fibre.priors[name].family == "loguniform")

    rows: list[tuple[Fraction, ...]] = []
    levels: list[tuple[Fraction | int, ...]] = []
    for r in read:
        if r.single:
            ((name, weight),) = r.weights.items()
            rows.append(tuple(Fraction(int(n == name)) for n in fibre.names))
            scale, power = (r.constant, weight) if r.monomial else (weight, Fraction(1))
            levels.append((0 if r.monomial else r.constant, scale, power, is_logarithmic(name)))
        else:
            rows.append(tuple(r.weights.get(n, Fraction(0)) for n in fibre.names))
            levels.append((0, r.constant, 1, True) if r.monomial else (r.constant, 1, 1, False))
    logarithmic = np.array([is_logarithmic(n) for n in fibre.names], bool)
    return AffineForm(logarithmic, tuple(rows), np.array(levels, float).reshape(len(rows), 4))


class _Reading(NamedTuple):
    """constant + sum of weight * parameter, or constant * prod of parameter^weight; no weight is zero."""

    monomial: bool
    constant: Fraction
    weights: dict[str, Fraction]

    @property
    def single(self) -> bool:
        return len(self.weights) == 1


def _read(function: Expression, fibre: Fibre) -> _Reading:
    own = [name for name in names(function) if name in fibre.priors]
    rng = random.Random(0)

    def value(point: Point) -> Fraction:
        return evaluate(function, {**fibre.constants, **point}, Fraction)

    def random_point() -> Point:
        return {name: Fraction(rng.randint(1, LARGEST)) for name in own}

    for kind in (_as_monomial, _as_affine):
        for _ in range(ATTEMPTS):
            try:
                found = kind(value, random_point(), [random_point() for _ in range(CHECKS)])
            except ZeroDivisionError:  # an unlucky point
                continue
            if found is not None:
                return found
            break
    raise NotAffine(f"{to_text(function)} is neither a sum of multiples of parameters nor a product of powers of them")


def _as_affine(value: Callable[[Point], Fraction], base: Point, others: Sequence[Point]) -> _Reading | None:
    at_base = value(base)
    slopes = {name: value({**base, name: base[name] + 1}) - at_base for name in base}
    constant = at_base - sum(slopes[name] * base[name] for name in base)
    for point in others:
        if value(point) != constant + sum(slopes[name] * point[name] for name in point):
            return None
    return _Reading(False, constant, {name: slope for name, slope in slopes.items() if slope})


def _as_monomial(value: Callable[[Point], Fraction], base: Point, others: Sequence[Point]) -> _Reading | None:
    at_base = value(base)
    exponents: dict[str, int] = {}
    for name in base:
        ratio = value({**base, name: 2 * base[name]}) / at_base
        exponents[name] = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        if ratio != Fraction(2) ** exponents[name]:
            return None

    def factor(point: Point) -> Fraction:
        product = value(point)
        for name, exponent in exponents.items():
            product /= point[name] ** exponent
        return product

    constant = factor(base)
    if any(factor(point) != constant for point in others):
        return None
    return _Reading(True, constant, {name: Fraction(e) for name, e in exponents.items() if e})


def _inverse(matrix: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """Solve exactly by elimination; the matrix is regular, because its partition is valid."""
    q = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(q))] for i, row in enumerate(matrix)]
    for k in range(q):
        pivot = next(i for i in range(k, q) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(q):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[q:] for row in rows]
