r"""Which coordinates to move freely along a fibre (theta_I), and which to solve for (theta_D).

A set D is good where :math:`\det{}_D^2/J^2` is near one: det_D is the determinant of the Jacobian's columns D,
and by Cauchy and Binet the squares of all of them sum to J^2. The ratio does not change when xi is replaced by
h(xi). With an orthonormal basis T of the tangent space it is det(T_I)^2, an r x r determinant, which is how it
is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENUMERATED = 20_000  # sets of coordinates that are all tried
BATCH = 512


def tangent_bases(jacobian: Array) -> Array:
    """Orthonormal bases (n, d, r) of the kernels of matrices (n, q, d) of full rank."""
    n, q, d = jacobian.shape
    if q == 0:
        return np.broadcast_to(np.eye(d), (n, d, d)).copy()
    rows = jacobian / np.abs(jacobian).max(axis=2, keepdims=True)  # first, or squares may overflow
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    q_full = np.linalg.qr(np.swapaxes(rows, 1, 2), mode="complete")[0]
    return q_full[:, :, q:]


def score(tangents: Array, free: tuple[int, ...], weights: Array | None = None) -> float:
    """E[det_D^2/J^2] for D the complement of `free`."""
    squares = np.linalg.det(tangents[:, list(free), :]) ** 2
    return float(np.average(squares, weights=weights))


def ranked(tangents: Array, weights: Array | None = None) -> list[tuple[float, tuple[int, ...]]]:
    """Sets theta_I with their scores, the best first; all of them, or the neighbourhood of the best if too many."""
    _, d, r = tangents.shape
    moving = [k for k in range(d) if np.abs(tangents[:, k, :]).max(initial=0.0) > 1e-9]
    if comb(len(moving), r) <= ENUMERATED:
        sets: Iterator[tuple[int, ...]] = combinations(moving, r)
    else:
        sets = iter(_neighbourhood(tangents, moving, weights))
    found = []
    while batch := list(islice(sets, BATCH)):
        squares = np.linalg.det(np.moveaxis(tangents[:, np.array(batch, int).reshape(len(batch), r), :], 1, 0)) ** 2
        means = np.average(squares, axis=1, weights=weights)
        found += [(float(s), b) for s, b in zip(means, batch, strict=True)]
    return sorted((f for f in found if f[0] > 1e-12), key=lambda f: (-f[0], f[1]))


def _neighbourhood(tangents: Array, moving: list[int], weights: Array | None) -> list[tuple[int, ...]]:
    """Sets met on the way up: from a pivoted QR of the mean projection, exchanging one coordinate at a time."""
    from scipy.linalg import qr

    r = tangents.shape[2]
    projection = np.average(tangents @ np.swapaxes(tangents, 1, 2), axis=0, weights=weights)
    _, order = qr(projection, mode="r", pivoting=True)
    best = tuple(sorted(int(k) for k in order[:r]))
    value, seen = score(tangents, best, weights), {best}
    while True:
        exchanged = [tuple(sorted((*best[:i], k, *best[i + 1 :]))) for i in range(r) for k in moving if k not in best]
        seen.update(exchanged)
        scores = [score(tangents, e, weights) for e in exchanged]
        if not scores or max(scores) <= value * (1 + 1e-12):
            return sorted(seen)
        best, value = exchanged[int(np.argmax(scores))], max(scores)


def rank_revealing(jacobian: Array) -> tuple[int, ...]:
    """Choose theta_I by QR with column pivoting of S = E[Dxi^T Dxi]: what comes after the first q pivots.

    It depends on how xi is written, and may choose D with det_D identically zero: check it.
    """
    from scipy.linalg import qr

    q = jacobian.shape[1]
    _, order = qr(np.mean(np.swapaxes(jacobian, 1, 2) @ jacobian, axis=0), mode="r", pivoting=True)
    return tuple(sorted(int(k) for k in order[q:]))
