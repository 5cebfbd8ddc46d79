r"""Coordinates that are bent, one by one, so that draws look as normal as that allows.

Rates have logarithms as coordinates. There a posterior is curved wherever the data determine sums of rates: a long
elbow, which straightens out in the rates themselves. Between the two lies

    y = g(h - a),    g(z) = log(exp(exp(z)) - 1),

which is h - a far below a, and exp(h) / exp(a) far above it; or the mirror image -g(-h - a). The turn a of each
coordinate, and its side, are chosen so that a normal law describes draws of all coordinates best, that is, so that

    log det cov(y) / 2 + mean of sum_j log |dh_j/dy_j|

is least: coordinate by coordinate, where only the variance of y_j around its regression on the others counts. The idea
is that of Box and Cox (1964, Journal of the Royal Statistical Society B 26) for many dimensions; the coordinate stays
one of all real numbers, so that no proposal falls outside.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]

TURNS = np.arange(-4.0, 5.1, 0.5)  # that are tried, from the median on
FIRST_TURN = -2.0  # of all coordinates together
SWEEPS = 3  # over all coordinates
GAIN = 0.02  # of the mean log density, that a bend must be worth
FAR = 30.0  # where one of two terms is nothing beside the other
FARTHEST = 700.0  # exponents, lest they overflow


class Bend(NamedTuple):
    """On which side coordinates are bent, 1 or -1, or 0 where they are straight, and where they turn."""

    side: Annotated[Array, "m"]
    turn: Annotated[Array, "m"]

    @classmethod
    def straight(cls, number: int) -> Bend:
        return cls(np.zeros(number), np.zeros(number))

    def forward(self, h: Array) -> Array:
        """y (n, m) of h."""
        return _forward(np.ascontiguousarray(h), *self) if self.side.any() else h

    def backward(self, y: Array) -> tuple[Array, Array]:
        """h of y, and log |dh_j/dy_j| (n, m)."""
        if not self.side.any():
            return y, np.zeros(y.shape)
        return _backward(np.ascontiguousarray(y), *self)


def straightening(h: Array, without_unit: NDArray[np.bool_]) -> Bend:
    """The bend that makes draws h (n, m) look most like those of a normal law.

    Only what has no unit is bent, as logarithms: the bend of anything else would depend on its unit.
    """
    n, m = h.shape
    bendable = without_unit & (np.ptp(h, axis=0) > 1e-9 * (1 + np.abs(h).max(axis=0)))  # what does not vary is straight
    if not bendable.any() or n <= 2 * m:  # nothing to bend, or too few to tell
        return Bend.straight(m)
    middle = np.median(h, axis=0)
    # a ridge along several coordinates may be straight only if all of them are bent
    upper = bendable.astype(np.float64)
    together = [Bend(side, side * middle + FIRST_TURN) for side in (upper, -upper)]
    bend = min([Bend.straight(m), *together], key=lambda tried: _misfit(tried, h))
    y = np.array(bend.forward(h))
    for _ in range(SWEEPS):
        before = bend
        for j in np.flatnonzero(bendable):
            own = np.repeat(h[:, j : j + 1], 1 + 2 * len(TURNS), axis=1)
            sides = np.repeat([0.0, 1.0, -1.0], [1, len(TURNS), len(TURNS)])
            tried = Bend(sides, sides * middle[j] + np.concatenate([[0.0], TURNS, TURNS]))
            found = tried.forward(own)
            score = _spread(found, np.delete(y, j, axis=1)) + tried.backward(found)[1].mean(axis=0)
            score[0] -= GAIN
            best = int(np.argmin(np.where(np.isfinite(score), score, np.inf)))
            side, turn = bend.side.copy(), bend.turn.copy()
            side[j], turn[j] = tried.side[best], tried.turn[best]
            bend, y[:, j] = Bend(side, turn), found[:, best]
        if all(np.array_equal(one, other) for one, other in zip(before, bend, strict=True)):
            break
    return bend


def _misfit(bend: Bend, h: Array) -> float:
    """How badly a normal law describes draws: minus the mean of its log density, but for a constant."""
    y = bend.forward(h)
    with np.errstate(over="ignore", invalid="ignore"):
        found = 0.5 * np.linalg.slogdet(np.cov(y.T).reshape(y.shape[1], -1))[1] + bend.backward(y)[1].sum(axis=1).mean()
    return float(found) if np.isfinite(found) else math.inf


def _spread(y: Array, others: Array) -> Array:
    """log of the standard deviation of each column around its regression on others."""
    known = np.column_stack([np.ones(len(y)), (others - others.mean(axis=0)) / (others.std(axis=0) + 1e-300)])
    basis = np.linalg.qr(known)[0]
    size = np.abs(y).max(axis=0)  # lest squares overflow
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = y / size - basis @ (basis.T @ (y / size))
        return np.log(size) + 0.5 * np.log(np.mean(rest**2, axis=0))


# Loops, because what NumPy computes for a row may depend on how many rows there are.


@compiled
def _forward(h, side, turn):
    y = h.copy()
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            if side[j] != 0.0:
                z = side[j] * h[i, j] - turn[j]
                if z > -FAR:
                    u = math.exp(min(z, FARTHEST))
                    z = u if u > FAR else math.log(math.expm1(u))
                y[i, j] = side[j] * z
    return y


@compiled
def _backward(y, side, turn):
    h, log_slope = y.copy(), np.zeros(y.shape)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            if side[j] != 0.0:
                z = side[j] * y[i, j]
                if z > -FAR:
                    soft = max(z, 0.0) + math.log1p(math.exp(-abs(z)))
                    log_slope[i, j] = min(z, 0.0) - math.log1p(math.exp(-abs(z))) - math.log(soft)
                    z = math.log(soft)
                h[i, j] = side[j] * (turn[j] + z)
    return h, log_slope
