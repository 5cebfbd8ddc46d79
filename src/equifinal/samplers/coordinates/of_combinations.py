"""Coordinates h(c) in which samplers move the combinations: comparable in size, and defined for every c.

h(c) = asinh(c/c_0) is logarithmic for |c| far above c_0, linear below it, and harmless where c changes its sign. c_0 is
small beside what the prior makes of |c|; for combinations that may have either sign it is as large as most |c|, as
otherwise a posterior around 0 would fall into two halves. Where a combination is a parameter by itself, h is that
parameter's sampling coordinate.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.language.expression import Expression, Name
from equifinal.machine.compiled import compiled
from equifinal.problem.prior import IDENTITY, LOG, MIRRORED, from_coordinate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class CombinationCoordinates(NamedTuple):
    """The coordinates h of combinations, as numbers.

    ``softening`` is c_0; ``single`` the parameter that a combination is, or -1; ``table`` that of the priors; and
    ``spread`` the standard deviation of h(c) under the prior.
    """

    softening: Array
    single: Integers
    table: Array
    spread: Array

    @property
    def without_unit(self) -> NDArray[np.bool_]:
        """Which coordinates are the same in every unit: all but parameters that stand for themselves."""
        return (self.single < 0) | (self.table[self.single, 7] != IDENTITY)

    def forward(self, c: Array) -> Array:
        """h(c); NaN where c is impossible."""
        return _forward(np.ascontiguousarray(c), self.softening, self.single, self.table)

    def jacobian(self, c: Array, by_u: Array) -> Array:
        """dh/du (n, q, d) from c (n, q) and dc/du."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = by_u / np.hypot(c, self.softening)[:, :, None]
        for j, k in enumerate(self.single):
            if k >= 0:
                found[:, j], found[:, j, k] = 0.0, 1.0
        return found

    def backward(self, h: Array) -> tuple[Array, Array]:
        """c, and log |dc/dh|."""
        return _backward(np.ascontiguousarray(h), self.softening, self.single, self.table)


_known: WeakKeyDictionary[Fibre, CombinationCoordinates] = WeakKeyDictionary()


def combination_coordinates(fibre: Fibre) -> CombinationCoordinates:
    """Made once for a fibre."""
    if fibre not in _known:
        c = fibre.xi(fibre.prior_draws)
        c = c[np.isfinite(c).all(axis=1)]
        softening = _softening(c) if len(c) else np.ones(fibre.rank)
        single = np.array([_parameter(fibre, e) for e in fibre.combinations.independent], np.int64)
        made = CombinationCoordinates(softening, single, fibre.table, np.ones(fibre.rank))
        spread = np.std(made.forward(c), axis=0) if len(c) else made.spread
        _known[fibre] = made._replace(spread=np.where(np.isfinite(spread) & (spread > 0), spread, 1.0))
    return _known[fibre]


def _softening(c: Array) -> Array:
    small, middle = np.quantile(np.abs(c), [0.02, 0.5], axis=0)
    either_sign = (c < 0).any(axis=0) & (c > 0).any(axis=0)
    found = np.where(either_sign, middle, small)
    return np.where(found > 0, found, 1.0)


def _parameter(fibre: Fibre, combination: Expression) -> int:
    """Which parameter a combination is; -1 if none."""
    if isinstance(combination, Name) and combination.name in fibre.names:
        return fibre.names.index(combination.name)
    return -1


# Loops, because what NumPy computes for a row may depend on how many rows there are.


@compiled
def _to_coordinate(x, kind, a, b):
    if kind == IDENTITY:
        return x
    if kind == LOG:
        return math.log(x - a) if x > a else np.nan
    if kind == MIRRORED:
        return math.log(b - x) if x < b else np.nan
    return math.log((x - a) / (b - x)) if a < x < b else np.nan


@compiled
def _forward(c, softening, single, table):
    h = np.empty_like(c)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            k = single[j]
            if k >= 0:
                h[i, j] = _to_coordinate(c[i, j], int(table[k, 7]), table[k, 8], table[k, 9])
            else:
                h[i, j] = math.asinh(c[i, j] / softening[j])
    return h


@compiled
def _backward(h, softening, single, table):
    c, log_slope = np.empty_like(h), np.zeros(h.shape[0])
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            k = single[j]
            if k >= 0:
                c[i, j], slope = from_coordinate(h[i, j], int(table[k, 7]), table[k, 8], table[k, 9])
            else:
                c[i, j] = softening[j] * math.sinh(h[i, j])
                # log cosh without overflow
                slope = (
                    math.log(softening[j]) + abs(h[i, j]) + math.log1p(math.exp(-2.0 * abs(h[i, j]))) - math.log(2.0)
                )
            log_slope[i] += slope
    return c, log_slope
