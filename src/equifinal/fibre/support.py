r"""Where a one-dimensional fibre is inside the prior's support, as intervals of its free coordinate.

While theta_I moves and c stays, the roots of a chart move continuously. They can enter or leave the box only where
a coordinate takes the value of one of its bounds, where two roots meet and turn complex, or through infinity. Each of
these is a polynomial in theta_I, found symbolically once by eliminating all other unknowns; its real roots are the
only candidates for ends of intervals. Between two neighbouring candidates nothing changes, and one point decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.arithmetic.budget import TooLarge
from equifinal.algebra.elimination.triangular import BOUND, NoTriangularForm, Triangular, combination_name
from equifinal.fibre.chart import Chart
from equifinal.fibre.polynomial import real_roots
from equifinal.fibre.weighted import points
from equifinal.machine.compiled import compiled
from equifinal.machine.functions import Functions
from equifinal.machine.pointers import call_on
from equifinal.problem.prior import from_theta, to_theta

Array = NDArray[np.float64]


class Support(NamedTuple):
    """Intervals of theta_I for each of n values of c.

    ``intervals`` is (n, most, 2), of which the first ``found`` are intervals, ascending, and the rest NaN. Where
    ``exact`` is false they may be too wide, never too narrow.
    """

    intervals: Array
    found: NDArray[np.int64]
    exact: NDArray[np.bool_]


class Events:
    """The polynomials whose roots may end an interval, compiled.

    Parameters
    ----------
    form
        The chart's symbolic solution.
    free
        The one free coordinate.
    bounds
        (d, 2): the prior's support.
    """

    def __init__(self, form: Triangular, free: str, bounds: Array):
        names = form.names
        unbounded = [n for n, b in zip(names, bounds, strict=True) if not np.isfinite(b).all()]
        crossings, others = form.events(free, unbounded)
        c = [combination_name(j) for j in range(len(form.labels) - len(names) - 1)]
        functions = Functions({"p": [*c, BOUND]}, {})
        roots: dict[str, list[int]] = {}
        rows: list[tuple[int, int, float]] = []
        for name, polynomials in crossings.items():
            for polynomial in polynomials:
                nodes = functions.record(form.coefficients_in(polynomial, free))
                roots[f"event{len(roots)}"] = nodes
                rows += [(len(roots) - 1, len(nodes), b) for b in bounds[names.index(name)] if np.isfinite(b)]
        for polynomial in others:
            nodes = functions.record(form.coefficients_in(polynomial, free))
            roots[f"event{len(roots)}"] = nodes
            rows.append((len(roots) - 1, len(nodes), 0.0))
        self._code = functions.compile(roots)
        self._addresses = np.array([self._code.addresses[f"event{i}"] for i, _, _ in rows], np.int64)
        self._sizes = np.array([size for _, size, _ in rows], np.int64)
        self._bounds = np.array([b for _, _, b in rows], float)

    def positions(self, c: Array, lower: float, upper: float) -> tuple[Array, NDArray[np.int64], NDArray[np.bool_]]:
        """Candidates for ends of intervals in (lower, upper), ascending: (n, most), how many, and any doubt."""
        return _positions(self._addresses, self._sizes, self._bounds, c, lower, upper)


def support(
    chart: Chart, events: Events | None, table: Array, c: Array, labels: Array | None, bounds: Sequence[float]
) -> Support:
    """The support of theta_I for each row of c; `table` is that of the priors, `bounds` are the free coordinate's."""
    n = len(c)
    lower, upper = bounds
    if events is None:
        whole = np.tile(np.array([[lower, upper]], float), (n, 1, 1))
        return Support(whole, np.ones(n, np.int64), np.zeros(n, bool))
    inner, count, doubtful = events.positions(c, lower, upper)
    ends = np.full((n, inner.shape[1] + 2), upper)
    ends[:, 0] = lower
    ends[:, 1:-1] = np.where(np.isnan(inner), upper, inner)
    pieces = inner.shape[1] + 1
    middle = _between(ends[:, :-1], ends[:, 1:], table[chart.free])
    real = np.arange(pieces) <= count[:, None]
    inside = np.zeros((n, pieces), bool)
    at = np.nonzero(real & (ends[:, :-1] < ends[:, 1:]))
    wanted = None if labels is None else labels[at[0]] if len(labels) == n else labels
    roots = points(chart, table, middle[at][:, None], c[at[0]], wanted)
    inside[at] = (roots.found > 0) | (roots.status != 0)  # in doubt, inside
    exact = ~doubtful
    exact[at[0][roots.status != 0]] = False
    intervals, found = _merged(ends, inside)
    return Support(intervals, found, exact)


def _between(left: Array, right: Array, table: Array) -> Array:
    """A point of each interval, the middle in sampling coordinates where these are finite."""
    with np.errstate(all="ignore"):
        a, b = (from_theta(np.ascontiguousarray(x.reshape(-1, 1)), table)[:, 0] for x in (left, right))
    low, high = np.minimum(a, b), np.maximum(a, b)  # a mirrored coordinate runs backwards
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (low + high)
    middle = np.where(np.isinf(low) & np.isfinite(high), high - 1.0, middle)
    middle = np.where(np.isfinite(low) & np.isinf(high), low + 1.0, middle)
    middle = np.where(np.isinf(low) & np.isinf(high), 0.0, middle)
    return to_theta(middle[:, None], table)[0].reshape(left.shape)


@compiled
def _merged(ends, inside):
    """Neighbouring pieces that are inside become one interval."""
    n, pieces = inside.shape
    intervals = np.full((n, pieces, 2), np.nan)
    found = np.zeros(n, np.int64)
    for i in range(n):
        open_ = False
        for k in range(pieces):
            if inside[i, k]:
                if not open_:
                    intervals[i, found[i], 0] = ends[i, k]
                    found[i] += 1
                intervals[i, found[i] - 1, 1] = ends[i, k + 1]
                open_ = True
            elif ends[i, k] < ends[i, k + 1]:
                open_ = False
    return intervals, found


@compiled
def _positions(addresses, sizes, bounds, c, lower, upper):
    n, q = c.shape
    widest = 1
    total = 0
    for e in range(sizes.shape[0]):
        widest = max(widest, sizes[e])
        total += sizes[e] - 1
    positions, count, doubtful = np.full((n, total), np.nan), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    none = np.zeros(widest + 1)
    arguments, coefficients = np.empty(q + 1), np.empty(widest + 1)
    roots, work = np.empty(widest + 2), np.empty((2, widest + 3))
    for i in range(n):
        for j in range(q):
            arguments[j] = c[i, j]
        for e in range(addresses.shape[0]):
            arguments[q] = bounds[e]
            call_on(addresses[e], arguments, arguments, coefficients)
            number, unclear = real_roots(coefficients, none, sizes[e] - 1, lower, upper, roots, work)
            doubtful[i] = doubtful[i] or unclear
            for k in range(number):
                at = count[i]
                while at > 0 and positions[i, at - 1] > roots[k]:  # kept in order
                    positions[i, at] = positions[i, at - 1]
                    at -= 1
                positions[i, at] = roots[k] + 0.0  # no -0
                count[i] += 1
    return positions, count, doubtful


def events_of(form: Triangular | None, free: str, bounds: Array) -> Events | None:
    """None where the polynomials cannot be found, or grow too long."""
    if form is None:
        return None
    try:
        return Events(form, free, bounds)
    except (NoTriangularForm, TooLarge):
        return None
