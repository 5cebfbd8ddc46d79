r"""The combinations xi(theta), their Jacobian and their volume factor, compiled.

.. math:: J(\theta) = \sqrt{\det D\xi\, D\xi^T}

is what turns volume in theta into volume in c times volume along the fibre (coarea formula). In sampling
coordinates u, with theta = t^{-1}(u), columns of the Jacobian are multiplied by dtheta/du.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.language.expression import Expression, Number, substitute
from equifinal.machine.compiled import compiled
from equifinal.machine.complex_function import ComplexFunction
from equifinal.machine.functions import Functions
from equifinal.machine.pointers import call_on
from equifinal.problem.prior import MIRRORED, from_coordinate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_SINE = 1e-12  # of the angle between a row of the Jacobian and those before, for them to be independent


class PointStatus(IntEnum):
    """What can be said of xi at a point."""

    OK = 0
    RANK_DEFICIENT = 1  # rows of the Jacobian are dependent: no tangent space of the right dimension
    NOT_FINITE = 2  # a combination divides by zero or overflows


class Geometry(NamedTuple):
    """xi at points: values (n, q), Jacobian (n, q, d), log J (n), status (n).

    Where the status is `RANK_DEFICIENT`, log J is minus infinity; where it is `NOT_FINITE`, it is NaN.
    """

    values: Array
    jacobian: Array
    log_volume: Array
    status: Integers


class Projection(NamedTuple):
    """Vectors split into parts along and across the fibre; NaN where the status is not OK."""

    tangent: Array
    normal: Array
    status: Integers


class Combinations:
    """Independent functions of theta, and others that are constant on fibres too.

    Parameters
    ----------
    names
        The coordinates of theta.
    independent
        As many as their rank: c.
    labels
        Further functions, which tell apart branches that `independent` does not.
    """

    names: tuple[str, ...]
    independent: tuple[Expression, ...]
    labels: tuple[Expression, ...]
    rank: int
    dimension: int
    functions: Functions
    jacobian_nodes: list[int]

    def __init__(
        self,
        names: Sequence[str],
        independent: Sequence[Expression],
        labels: Sequence[Expression] = (),
        constants: Mapping[str, Fraction] | None = None,
    ):
        self.names = tuple(names)
        self.independent, self.labels = tuple(independent), tuple(labels)
        self.rank, self.dimension = len(self.independent), len(self.names)
        numbers: dict[str, Expression] = {k: Number(Fraction(v)) for k, v in (constants or {}).items()}
        closed = [substitute(e, numbers) for e in (*self.independent, *self.labels)]
        self.functions = Functions({"x": self.names}, {"values": closed})
        graph = self.functions.graph
        rows = [graph.gradient(node, "x") for node in self.functions.nodes["values"]]
        slopes = [row.get(k, graph.zero) for row in rows for k in range(self.dimension)]
        self.jacobian_nodes = slopes[: self.rank * self.dimension]
        self._label_nodes = slopes[self.rank * self.dimension :]

    @cached_property
    def code(self):
        nodes = {"xi": [*self.functions.nodes["values"], *self.jacobian_nodes, *self._label_nodes]}
        return self.functions.compile(nodes)

    @cached_property
    def _complex(self) -> ComplexFunction:
        return ComplexFunction(self.functions, [*self.functions.nodes["values"][: self.rank], *self.jacobian_nodes])

    def complex_system(self, theta: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """xi (..., q) and Dxi (..., q, d) at complex points (..., d)."""
        found = self._complex(theta)
        jacobian = found[..., self.rank :].reshape(*theta.shape[:-1], self.rank, self.dimension)
        return found[..., : self.rank], jacobian

    @property
    def address(self) -> int:
        return self.code.addresses["xi"]

    @property
    def size(self) -> int:
        """How many numbers the compiled function writes: values, labels, gradients of values, of labels."""
        return (self.rank + len(self.labels)) * (1 + self.dimension)

    def in_theta(self, theta: Array, spread: Array) -> Geometry:
        """`spread` says what a typical change of each coordinate is, so that rank does not depend on units."""
        return self._geometry(theta, np.ones_like(theta), spread)

    def in_coordinates(self, u: Array, table: Array, spread: Array) -> Geometry:
        theta, slope = _with_slopes(u, table)
        return self._geometry(theta, slope, spread)

    def _geometry(self, theta: Array, slope: Array, spread: Array) -> Geometry:
        return Geometry(*_geometry(theta, slope, spread, self.address, self.rank, len(self.labels)))

    def log_determinants(self, theta: Array, columns: Integers) -> Array:
        """log |det dxi/dtheta_D| at points (n, d) for sets D of columns (K, q); NaN where something is not finite."""
        return _log_determinants(theta, columns, self.address, self.rank, len(self.labels))

    def project(self, u: Array, v: Array, table: Array, spread: Array) -> Projection:
        at = self.in_coordinates(u, table, spread)
        tangent, normal = _project(at.jacobian, at.status, v)
        return Projection(tangent, normal, at.status)

    def all_values(self, theta: Array) -> Array:
        """Values of the independent functions, then of the labels."""
        return _all_values(theta, self.address, self.rank, len(self.labels))


@compiled
def log_volume(jacobian: Array, work: Array, least: float) -> float:
    """log sqrt(det A A^T) for a (q, d) matrix by Gram-Schmidt on scaled rows; -inf if rows are dependent.

    They are if the sine of the angle between one and those before is below `least`. Orthonormal rows stay in `work`.
    """
    q, d = jacobian.shape
    total = 0.0
    for i in range(q):
        size = 0.0
        for k in range(d):
            size = max(size, abs(jacobian[i, k]))
        if not math.isfinite(size):
            return np.nan
        if size == 0.0:
            return -np.inf
        before = 0.0
        for k in range(d):
            work[i, k] = jacobian[i, k] / size
            before += work[i, k] ** 2
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for j in range(i):
                along = 0.0
                for k in range(d):
                    along += work[i, k] * work[j, k]
                for k in range(d):
                    work[i, k] -= along * work[j, k]
        after = 0.0
        for k in range(d):
            after += work[i, k] ** 2
        if not after > least**2 * before:
            return -np.inf
        for k in range(d):
            work[i, k] /= math.sqrt(after)
        total += math.log(size) + 0.5 * math.log(after)
    return total


@compiled
def _judged_volume(jacobian, spread, scaled, work):
    """log J; its rank is judged with every column in units of its coordinate's spread."""
    q, d = jacobian.shape
    for j in range(q):
        for k in range(d):
            scaled[j, k] = jacobian[j, k] * spread[k]
    judged = log_volume(scaled, work, LEAST_SINE)
    return log_volume(jacobian, work, 0.0) if math.isfinite(judged) else judged


@compiled
def _state(log_j: float) -> int:
    if math.isnan(log_j):
        return 2
    return 1 if log_j == -np.inf else 0


@compiled
def _with_slopes(u, table):
    """theta, and dtheta/du of each coordinate."""
    n, d = u.shape
    theta, slope = np.empty((n, d)), np.empty((n, d))
    for i in range(n):
        for k in range(d):
            kind = int(table[k, 7])
            theta[i, k], log_slope = from_coordinate(u[i, k], kind, table[k, 8], table[k, 9])
            slope[i, k] = -math.exp(log_slope) if kind == MIRRORED else math.exp(log_slope)
    return theta, slope


@compiled
def _geometry(theta, slope, spread, address, q, labels):
    """Loops rather than slices, here and elsewhere: Numba takes seconds to compile these."""
    n, d = theta.shape
    values, jacobian = np.empty((n, q)), np.empty((n, q, d))
    log_j, status = np.empty(n), np.empty(n, np.int64)
    out, point, work, scaled = np.empty((q + labels) * (1 + d)), np.empty(d), np.empty((q, d)), np.empty((q, d))
    for i in range(n):
        for k in range(d):
            point[k] = theta[i, k]
        call_on(address, point, point, out)
        for j in range(q):
            values[i, j] = out[j]
            for k in range(d):
                jacobian[i, j, k] = out[q + labels + j * d + k] * slope[i, k]
        finite = True
        for k in range(out.shape[0]):
            finite &= math.isfinite(out[k])
        log_j[i] = _judged_volume(jacobian[i], spread, scaled, work) if finite else np.nan
        status[i] = _state(log_j[i])
    return values, jacobian, log_j, status


@compiled
def _log_determinants(theta, columns, address, q, labels):
    n, d = theta.shape
    found = np.full((n, columns.shape[0]), np.nan)
    out, point, work = np.empty((q + labels) * (1 + d)), np.empty(d), np.empty((q, q))
    for i in range(n):
        for k in range(d):
            point[k] = theta[i, k]
        if not math.isfinite(point[0]):  # no point
            continue
        call_on(address, point, point, out)
        for chart in range(columns.shape[0]):
            for j in range(q):
                for k in range(q):
                    work[j, k] = out[q + labels + j * d + columns[chart, k]]
            found[i, chart] = _log_abs_determinant(work)
    return found


@compiled
def _log_abs_determinant(matrix):
    """By elimination with pivots from whole rows, in place; minus infinity if it is singular."""
    q, total = matrix.shape[0], 0.0
    for i in range(q):
        pivot = i
        for j in range(i + 1, q):
            if abs(matrix[j, i]) > abs(matrix[pivot, i]):
                pivot = j
        largest = matrix[pivot, i]
        if not math.isfinite(largest):
            return np.nan
        if largest == 0.0:
            return -np.inf
        total += math.log(abs(largest))
        for k in range(i, q):
            matrix[i, k], matrix[pivot, k] = matrix[pivot, k], matrix[i, k]
        for j in range(i + 1, q):
            if matrix[j, i] != 0.0:
                factor = matrix[j, i] / largest
                for k in range(i + 1, q):
                    matrix[j, k] -= factor * matrix[i, k]
    return total


@compiled
def _all_values(theta, address, q, labels):
    n, d = theta.shape
    values = np.empty((n, q + labels))
    out, point = np.empty((q + labels) * (1 + d)), np.empty(d)
    for i in range(n):
        for k in range(d):
            point[k] = theta[i, k]
        call_on(address, point, point, out)
        for j in range(q + labels):
            values[i, j] = out[j]
    return values


@compiled
def _project(jacobian, status, v):
    n, q, d = jacobian.shape
    tangent, normal = np.full((n, d), np.nan), np.full((n, d), np.nan)
    basis = np.empty((q, d))
    for i in range(n):
        if status[i] != 0:
            continue
        log_volume(jacobian[i], basis, 0.0)  # leaves an orthonormal basis of the normal space
        for k in range(d):
            normal[i, k] = 0.0
        for j in range(q):
            along = 0.0
            for k in range(d):
                along += basis[j, k] * v[i, k]
            for k in range(d):
                normal[i, k] += along * basis[j, k]
        for k in range(d):
            tangent[i, k] = v[i, k] - normal[i, k]
    return tangent, normal
