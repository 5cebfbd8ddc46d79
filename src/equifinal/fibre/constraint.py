r"""A fibre as compiled functions on bare pointers, in scaled sampling coordinates, for samplers that move along it.

With v = u/s, one scale a coordinate, theta = t^{-1}(s v) and

.. math:: v \mapsto \xi(\theta), \qquad v \mapsto D_v \xi = D\xi(\theta)\, \mathrm{diag}(s\, d\theta/du).

The scales make the coordinates comparable; like t they change how fast a sampler is, never what it draws. The force is
the gradient of the log density on the fibre, :math:`\log p(v) - \log J(v)`, by central differences: a force that is
slightly off costs a little acceptance and nothing else, as long as the same point always gets the same force.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic
from numpy.typing import NDArray

from equifinal.fibre.combinations import LEAST_SINE, log_volume
from equifinal.machine.compiled import compiled
from equifinal.machine.kept import KeptOverloads
from equifinal.machine.pointers import Doubles, Integers, call, doubles_at, shift
from equifinal.problem.prior import MIRRORED, from_coordinate
from equifinal.problem.prior_families import log_kernel

if TYPE_CHECKING:
    from equifinal.fibre.fibre import Fibre

Array = NDArray[np.float64]

ADDRESS, TABLE, SCALE, RANK, LABELS, DIMENSION, WIDTH = range(7)  # entries of the data
DIFFERENCE = 1e-5  # of central differences, in scaled coordinates, which are of order one


class ConstraintCode(NamedTuple):
    """Addresses of ``int64 f(v*, data*, xi*, jacobian*)`` and ``int64 g(v*, data*, gradient*)``, and their data.

    Both return 0 if they could be evaluated; ``keepalive`` must live as long as they are called.
    """

    function: int
    force: int
    data: NDArray[np.int64]
    keepalive: Any


def constraint_code(fibre: Fibre, scale: Array) -> ConstraintCode:
    """xi and the force of a fibre in coordinates v = u/scale."""
    table, scale = np.ascontiguousarray(fibre.table), np.ascontiguousarray(scale, np.float64)
    combinations = fibre.combinations
    counts = (combinations.rank, len(combinations.labels), combinations.dimension, table.shape[1])
    data = np.array([combinations.address, table.ctypes.data, scale.ctypes.data, *counts], np.int64)
    function, force = _functions()
    return ConstraintCode(function.address, force.address, data, (combinations, table, scale, function, force))


@cache
def _functions() -> tuple[Any, Any]:
    return _c_function(_evaluate, [Doubles, Integers, Doubles, Doubles]), _c_function(
        _force, [Doubles, Integers, Doubles]
    )


def _c_function(function: Any, arguments: list[Any]) -> Any:
    made: Any = CFunc(function, (tuple(arguments), types.int64), locals={}, options={"error_model": "numpy"})
    made._cache = KeptOverloads(function)
    made.compile()
    return made


def _room(typing_context, count):
    """Numbers on the stack, until the function returns that asks for them."""

    def generate(context, builder, signature, arguments):
        return builder.alloca(ir.DoubleType(), size=arguments[0])

    return Doubles(types.int64), generate


room: Any = intrinsic(_room)


@compiled
def _fill(v, data, theta, slope, out):
    """theta, dtheta/dv, and xi, labels and their gradients in theta."""
    table, scale = doubles_at(data[TABLE]), doubles_at(data[SCALE])
    for k in range(data[DIMENSION]):
        row = shift(table, k * data[WIDTH])
        kind = int(row[7])
        theta[k], log_slope = from_coordinate(v[k] * scale[k], kind, row[8], row[9])
        slope[k] = math.exp(log_slope) * scale[k]
        if kind == MIRRORED:
            slope[k] = -slope[k]
    call(data[ADDRESS], theta, theta, theta, theta, theta, out)


def _evaluate(v, data, xi, jacobian):  # compiled
    q, labels, d = data[RANK], data[LABELS], data[DIMENSION]
    theta = room(2 * d + (q + labels) * (1 + d))
    slope, out = shift(theta, d), shift(theta, 2 * d)
    _fill(v, data, theta, slope, out)
    for i in range(q):
        xi[i] = out[i]
        for k in range(d):
            jacobian[i * d + k] = out[q + labels + i * d + k] * slope[k]
    return 0


@compiled
def _log_density(v, data, theta, slope, out, jacobian, work):
    """log p(v) - log J(v) but for a constant; the bounds of the support do not enter."""
    q, labels, d = data[RANK], data[LABELS], data[DIMENSION]
    _fill(v, data, theta, slope, out)
    table = doubles_at(data[TABLE])
    total = 0.0
    for k in range(d):
        row = shift(table, k * data[WIDTH])
        total += log_kernel(int(row[0]), row[1], row[2], row[3], theta[k]) + math.log(abs(slope[k]))
        for i in range(q):
            jacobian[i, k] = out[q + labels + i * d + k] * slope[k]
    return total - log_volume(jacobian, work, LEAST_SINE)


def _force(v, data, gradient):  # compiled
    q, labels, d = data[RANK], data[LABELS], data[DIMENSION]
    moved = room(3 * d + (q + labels) * (1 + d))
    theta, slope, out = shift(moved, d), shift(moved, 2 * d), shift(moved, 3 * d)
    jacobian, work = np.empty((q, d)), np.empty((q, d))
    for k in range(d):
        moved[k] = v[k]
    for k in range(d):
        moved[k] = v[k] + DIFFERENCE
        above = _log_density(moved, data, theta, slope, out, jacobian, work)
        moved[k] = v[k] - DIFFERENCE
        below = _log_density(moved, data, theta, slope, out, jacobian, work)
        moved[k] = v[k]
        gradient[k] = (above - below) / (2 * DIFFERENCE)
        if not math.isfinite(gradient[k]):
            return 1
    return 0
