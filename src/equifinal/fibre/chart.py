r"""Charts: theta_D as a function of theta_I and c, all real roots inside the prior's support.

A chart follows the steps of `equifinal.algebra.triangular`: unknowns given rationally are computed in one
straight-line function, the others are roots of polynomials in one variable. Roots outside the bounds are
dropped as soon as they are met. What remains is refined by Newton's method on xi = c itself, which also
gives :math:`\log|\det \partial\xi/\partial\theta_D|`, the weight that volume along the fibre has in this chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.triangular import Step, combination_name
from equifinal.compiled import compiled
from equifinal.fibre.combinations import Combinations
from equifinal.fibre.polynomial import real_roots
from equifinal.machine.arrays import uncounted
from equifinal.machine.complex_function import ComplexFunction
from equifinal.machine.functions import Functions
from equifinal.machine.graph import Term
from equifinal.machine.pointers import call_on

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

RATIONAL, POLYNOMIAL = 0, 1
ACCURACY = 1e-9  # of xi = c, relative, that every root must reach
CERTAIN = 1e-4  # relative uncertainty of a root, from rounding in c, beyond which the status says so
_EPS = 2.220446049250313e-16


class RootStatus(IntEnum):
    """How the search for roots at one point ended."""

    OK = 0
    UNRESOLVED = 1
    INCOMPLETE = 2

    @property
    def message(self) -> str:
        return (
            "all roots were found",
            "a root is uncertain or may be lost: roots nearly meet there, or numbers are too large or small",
            "fewer complex roots were found than there are",
        )[self]


class Roots(NamedTuple):
    """Roots of a chart at n points.

    ``theta`` is (n, most, d) and ``log_det`` (n, most), of which the first ``found`` entries are roots and the
    rest NaN; ``status`` is a `RootStatus` for each point.
    """

    theta: Array
    log_det: Array
    found: Integers
    status: Integers


class Chart(Protocol):
    """theta_D = g_k(theta_I, c) for a partition of the coordinates.

    Attributes
    ----------
    free, dependent
        Positions of theta_I and theta_D.
    degree
        How many complex roots there are at a generic point.
    kind
        ``"rational"``, ``"quadratic"``, ``"univariate"`` or ``"general"``.
    """

    free: Integers
    dependent: Integers
    degree: int
    kind: str

    def roots(self, free: Array, c: Array, labels: Array | None = None) -> Roots: ...

    def complex_roots(self, free: Array, c: Array) -> NDArray[np.complex128]: ...


class TriangularChart:
    """A chart solved step by step.

    Parameters
    ----------
    steps
        Of a `Triangular` for the dependent coordinates.
    degree
        How many complex roots there are; the steps may have more, which do not satisfy xi = c.
    bounds
        (d, 2): the support of each coordinate.
    """

    def __init__(
        self, combinations: Combinations, free: Sequence[str], steps: Sequence[Step], degree: int, bounds: Array
    ):
        self.combinations, self.steps, self.degree = combinations, tuple(steps), degree
        names = combinations.names
        self.free = np.array([names.index(n) for n in free], np.int64)
        self.dependent = np.array([k for k in range(len(names)) if k not in self.free], np.int64)
        self.bounds = np.ascontiguousarray(bounds)
        self.most = math.prod(step.degree for step in self.steps)
        largest = max([1, *(step.degree for step in self.steps)])
        self.kind = "rational" if largest == 1 else "quadratic" if largest == 2 else "univariate"
        self._compile()

    def _compile(self) -> None:
        names = self.combinations.names
        c = [combination_name(j) for j in range(self.combinations.rank)]
        self.functions = Functions({"x": names, "p": c}, {})
        graph = self.functions.graph
        loads = dict(self.functions.names)
        blocks: list[tuple[int, list[int], list[int]]] = []  # kind, nodes, targets
        self.coefficient_nodes: list[list[int]] = []
        for step in self.steps:
            k = names.index(step.name)
            nodes = self.functions.record(step.coefficients)
            if step.degree == 1:
                node = graph.negative(graph.divide(nodes[0], nodes[1]))
                self.functions.names[step.name] = Term(graph, node)
                if not blocks or blocks[-1][0] != RATIONAL:
                    blocks.append((RATIONAL, [], []))
                blocks[-1][1].append(node)
                blocks[-1][2].append(k)
            else:
                blocks.append((POLYNOMIAL, nodes, [k]))
                # what was computed before is in theta by now
                self.functions.names.update(loads)
        self.functions.names.update(loads)
        self.coefficient_nodes = [self.functions.record(step.coefficients) for step in self.steps]
        code = self.functions.compile({f"block{i}": nodes for i, (_, nodes, _) in enumerate(blocks)})
        table: list[tuple[int, ...]] = []
        targets: list[int] = []
        for i, (kind, nodes, where) in enumerate(blocks):
            table.append((code.addresses[f"block{i}"], kind, len(nodes), len(targets)))
            targets += where
        self._code = code
        self._blocks = np.array(table, np.int64).reshape(-1, 4)
        self._targets = np.array(targets, np.int64)

    def roots(self, free: Array, c: Array, labels: Array | None = None) -> Roots:
        """All real roots in the support.

        Parameters
        ----------
        free
            (n, r): theta_I.
        c
            (q,) or (n, q).
        labels
            (l,) or (n, l): values that the labels must have; roots with others are left out. None keeps all.
        """
        free = np.ascontiguousarray(np.atleast_2d(free), float)
        c = np.ascontiguousarray(np.atleast_2d(c), float)
        wanted = np.zeros((1, 0)) if labels is None else np.ascontiguousarray(np.atleast_2d(labels), float)
        most = max(self.most, 1)
        return Roots(
            *_solve(
                self._blocks,
                self._targets,
                self.free,
                self.dependent,
                self.bounds,
                self.combinations.address,
                self.combinations.size,
                self.combinations.rank,
                len(self.combinations.labels),
                free,
                c,
                wanted,
                most,
                self.most == self.degree,
            )
        )

    def complex_roots(self, free: Array, c: Array) -> NDArray[np.complex128]:
        """Every complex root, (n, degree, d), without regard to the support; NaN where a root is at infinity."""
        free, c = np.atleast_2d(free), np.atleast_2d(c)
        n, d = len(free), self.combinations.dimension
        c = np.broadcast_to(c, (n, c.shape[1]))
        theta = np.zeros((n, 1, d), complex)
        theta[:, 0, self.free] = free
        for step, nodes in zip(self.steps, self.coefficient_nodes, strict=True):
            k = self.combinations.names.index(step.name)
            values = np.broadcast_to(c[:, None, :], (n, theta.shape[1], c.shape[1])).astype(complex)
            found = _complex_roots(ComplexFunction(self.functions, nodes)(theta, values))
            theta = np.repeat(theta, step.degree, axis=1)
            theta[:, :, k] = found.reshape(n, -1)
        if theta.shape[1] > self.degree:
            theta = self._satisfying(theta, c)
        return theta

    def _satisfying(self, theta: NDArray[np.complex128], c: Array) -> NDArray[np.complex128]:
        """The roots of the steps that are roots of xi = c, first the best."""
        values = self.combinations.complex_system(theta)[0]
        error = np.max(np.abs(values - c[:, None, :]) / (np.abs(c[:, None, :]) + 1e-300), axis=2)
        order = np.argsort(np.where(np.isnan(error), np.inf, error), axis=1)[:, : self.degree]
        return np.take_along_axis(theta, order[:, :, None], axis=1)


def _complex_roots(a: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Roots of polynomials, coefficients from power 0 up along the last axis."""
    degree = a.shape[-1] - 1
    with np.errstate(all="ignore"):
        monic = a[..., :-1] / a[..., -1:]
    if degree == 1:
        return -monic
    companion = np.zeros((*a.shape[:-1], degree, degree), complex)
    companion[..., np.arange(1, degree), np.arange(degree - 1)] = 1
    companion[..., :, -1] = -monic
    bad = ~np.isfinite(companion).all(axis=(-2, -1))
    companion[bad] = 0
    found = np.linalg.eigvals(companion).astype(complex)
    found[bad] = np.nan
    return found


# --- compiled ---


@compiled
def factorise(a: Array, pivots: Integers) -> float:
    """LU with row scaling and pivoting, in place; returns log |det|, minus infinity if singular."""
    n = a.shape[0]
    total = 0.0
    for i in range(n):
        largest, row = 0.0, i
        for j in range(i, n):
            size = 0.0
            for k in range(i, n):
                size = max(size, abs(a[j, k]))
            share = abs(a[j, i]) / size if size > 0.0 else 0.0
            if share > largest:
                largest, row = share, j
        if not largest > 0.0:
            return -np.inf
        pivots[i] = row
        if row != i:
            for k in range(n):
                a[i, k], a[row, k] = a[row, k], a[i, k]
        total += math.log(abs(a[i, i]))
        for j in range(i + 1, n):
            if a[j, i] != 0.0:
                a[j, i] /= a[i, i]
                for k in range(i + 1, n):
                    a[j, k] -= a[j, i] * a[i, k]
    return total


@compiled
def back_substitute(a: Array, pivots: Integers, b: Array) -> None:
    n = a.shape[0]
    for i in range(n):
        row = pivots[i]
        if row != i:
            b[i], b[row] = b[row], b[i]
    for i in range(n):
        for j in range(i):
            b[i] -= a[i, j] * b[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]


@compiled
def transposed_substitute(a: Array, pivots: Integers, b: Array) -> None:
    """Solve A^T x = b, given the factors of A."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            b[i] -= a[j, i] * b[j]
        b[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[j, i] * b[j]
    for i in range(n - 1, -1, -1):
        row = pivots[i]
        if row != i:
            b[i], b[row] = b[row], b[i]


@compiled
def mismatch(out, c, q, labels, theta, scale):
    """The largest |xi - c|, each relative to the terms that xi consists of, which are left in `scale`."""
    d = theta.shape[0]
    worst = 0.0
    for j in range(q):
        scale[j] = abs(c[j])
        for k in range(d):
            scale[j] += abs(out[q + labels + j * d + k] * theta[k])
        error = abs(out[j] - c[j])
        if not math.isfinite(error):
            return np.inf
        if error > 0.0:
            worst = max(worst, error / scale[j])
    return worst


@compiled
def refine(theta, trial, c, address, q, labels, dependent, out, matrix, pivots, delta, scale):
    """Newton's method on xi = c in theta_D, in place.

    Returns the mismatch, log |det dxi/dtheta_D|, and by how much rounding in c may move theta_D, relatively. What is
    left in `matrix` and `pivots` are the factors at the end, in `scale` the terms of xi.
    """
    call_on(address, theta, theta, out)
    error = mismatch(out, c, q, labels, theta, scale)
    log_det = _factorise_at(out, matrix, pivots, q, labels, dependent, theta.shape[0])
    for _ in range(20):
        if log_det == -np.inf or not error > 1e-15:
            break
        for j in range(q):
            delta[j] = c[j] - out[j]
        back_substitute(matrix, pivots, delta)
        trial[:] = theta
        for k in range(q):
            trial[dependent[k]] += delta[k]
        call_on(address, trial, trial, out)
        better = mismatch(out, c, q, labels, trial, scale)
        if not better < 0.5 * error:
            call_on(address, theta, theta, out)
            mismatch(out, c, q, labels, theta, scale)
            break
        theta[:] = trial
        error = better
        log_det = _factorise_at(out, matrix, pivots, q, labels, dependent, theta.shape[0])
    unsure = 0.0
    if log_det > -np.inf:
        for sign in (1.0, -1.0):  # two patterns of rounding errors
            for j in range(q):
                delta[j] = _EPS * scale[j] * (sign if j % 2 else 1.0)
            back_substitute(matrix, pivots, delta)
            for k in range(q):
                size = abs(theta[dependent[k]])
                if size > 0.0:
                    unsure = max(unsure, abs(delta[k]) / size)
    return error, log_det, unsure


@compiled
def _factorise_at(out, matrix, pivots, q, labels, dependent, d):
    for j in range(q):
        for k in range(q):
            matrix[j, k] = out[q + labels + j * d + dependent[k]]
    return factorise(matrix, pivots)


@compiled
def matches(out, wanted, q, labels, theta, dependent, error, matrix, pivots, delta, scale):
    """Whether the labels have the values wanted, as closely as rounding in c allows to say.

    A label's value is uncertain by |g D^-1| times the uncertainty of c, with g its gradient in theta_D, besides the
    rounding in its own terms.
    """
    if wanted.shape[0] == 0:
        return True
    d = theta.shape[0]
    for i in range(labels):
        first = q + labels + (q + i) * d
        own = abs(out[q + i]) + abs(wanted[i])
        for k in range(d):
            own += abs(out[first + k] * theta[k])
        for k in range(q):
            delta[k] = out[first + dependent[k]]
        transposed_substitute(matrix, pivots, delta)
        for j in range(q):
            own += abs(delta[j]) * scale[j]
        if not abs(out[q + i] - wanted[i]) <= (4.0 * error + 64.0 * _EPS) * own:
            return False
    return True


@compiled
def inside(theta, bounds, dependent):
    for k in dependent:  # noqa: SIM110 (compiled)
        if not bounds[k, 0] < theta[k] < bounds[k, 1]:
            return False
    return True


@compiled
def _is_new(theta, found, point, dependent):
    """Whether no root found before is the same to rounding."""
    for i in range(found):
        same = True
        for k in dependent:
            same = same and abs(theta[i, k] - point[k]) <= 1e-9 * (abs(theta[i, k]) + abs(point[k]))
        if same:
            return False
    return True


@compiled
def _nudged_call(address, point, shift, c, out, nudged, nudged_c):
    """A step's function at arguments moved by what they may be off: how far that moves it is its uncertainty."""
    for k in range(point.shape[0]):
        size = max(shift[k], 4.0 * _EPS * abs(point[k]))
        nudged[k] = point[k] + (size if k % 3 else -size)
    for j in range(c.shape[0]):
        nudged_c[j] = c[j] * (1.0 + (4.0 * _EPS if j % 2 else -4.0 * _EPS))
    call_on(address, nudged, nudged_c, out)


@compiled
def _solve(blocks, targets, free_at, dependent, bounds, address, size, q, labels, free, c, wanted, most, exact):
    """Depth first through the steps; what rounding leaves undecided is tried, refined, and judged at the end."""
    n, r = free.shape
    d = bounds.shape[0]
    levels = blocks.shape[0]
    widest = 1
    for b in range(levels):
        widest = max(widest, blocks[b, 2])
    theta = np.full((n, most, d), np.nan)
    log_det = np.full((n, most), np.nan)
    count, status = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # counting references would cost more than the arithmetic; these tuples keep the arrays alive
    given = blocks, targets, free_at, dependent, bounds, free, c, wanted, theta, log_det, count, status
    vectors = np.zeros(d), np.empty(d), np.empty(d), np.zeros(d), np.empty(d)
    terms = np.empty(widest + 1), np.empty(widest + 1), np.zeros(widest + 1), np.empty(size), np.empty(q)
    roots = np.empty((levels, widest + 2)), np.empty((levels, widest + 2)), np.empty((2, widest + 3))
    places = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    system = np.empty((q, q)), np.empty(q, np.int64), np.empty(q), np.empty(q)
    blocks, targets, free_at, dependent, bounds, free, c, wanted, theta, log_det, count, status = uncounted(given)
    point, start, trial, shift, nudged = uncounted(vectors)
    coefficients, others, noise, out, nudged_c = uncounted(terms)
    found, slopes, work = uncounted(roots)
    numbers, position = uncounted(places)
    matrix, pivots, delta, scale = uncounted(system)
    for i in range(n):
        own = c[min(i, c.shape[0] - 1)]
        labelled = wanted[min(i, wanted.shape[0] - 1)]
        for k in range(r):
            point[free_at[k]] = free[i, k]
        if not inside(point, bounds, free_at):
            continue
        level, entering = 0, True
        while level >= 0:
            if level == levels:
                start[:] = point
                error, log, unsure = refine(
                    point, trial, own, address, q, labels, dependent, out, matrix, pivots, delta, scale
                )
                if error <= ACCURACY and log > -np.inf:
                    fits = inside(point, bounds, dependent) and matches(
                        out, labelled, q, labels, point, dependent, error, matrix, pivots, delta, scale
                    )
                    if fits and _is_new(theta[i], count[i], point, dependent):
                        theta[i, count[i]] = point
                        log_det[i, count[i]] = log
                        count[i] += 1
                        if unsure > CERTAIN:
                            status[i] = 1
                    elif fits and exact:
                        status[i] = 1  # two became one: another may have been lost
                elif exact and _near(start, shift, bounds, dependent):
                    status[i] = 1
                point[:] = start
                level, entering = level - 1, False
                continue
            kind, number, first = blocks[level, 1], blocks[level, 2], blocks[level, 3]
            if kind == RATIONAL:
                if entering:
                    call_on(blocks[level, 0], point, own, coefficients)
                    within = True
                    for k in range(number):
                        at = targets[first + k]
                        within = within and bounds[at, 0] < coefficients[k] < bounds[at, 1]
                    if not within or level + 1 < levels:  # else refining says more
                        _nudged_call(blocks[level, 0], point, shift, own, others, nudged, nudged_c)
                        within = True
                        for k in range(number):
                            at = targets[first + k]
                            shift[at] = 8.0 * abs(others[k] - coefficients[k])
                            if not math.isfinite(coefficients[k]):
                                status[i] = 1
                            within = within and (
                                bounds[at, 0] - shift[at] < coefficients[k] < bounds[at, 1] + shift[at]
                            )
                    for k in range(number):
                        point[targets[first + k]] = coefficients[k]
                    level, entering = (level + 1, True) if within else (level - 1, False)
                else:
                    level -= 1
                continue
            at = targets[first]
            if entering:
                call_on(blocks[level, 0], point, own, coefficients)
                _nudged_call(blocks[level, 0], point, shift, own, others, nudged, nudged_c)
                for k in range(number):
                    noise[k] = 8.0 * abs(others[k] - coefficients[k]) if math.isfinite(others[k]) else np.inf
                # roots a little outside the bounds may be inside once refined
                numbers[level], doubtful = real_roots(
                    coefficients, noise, number - 1, -np.inf, np.inf, found[level], work
                )
                if doubtful and exact:
                    status[i] = 1
                for k in range(numbers[level]):
                    slopes[level, k] = _root_shift(coefficients, noise, number - 1, found[level, k])
                position[level] = 0
            if position[level] < numbers[level]:
                point[at] = found[level, position[level]]
                shift[at] = slopes[level, position[level]]
                position[level] += 1
                if bounds[at, 0] - shift[at] < point[at] < bounds[at, 1] + shift[at]:
                    level, entering = level + 1, True
                else:
                    entering = False
            else:
                level, entering = level - 1, False
    assert len(vectors) + len(terms) + len(roots) + len(places) + len(system) > 0  # alive until here
    return given[8], given[9], given[10], given[11]


@compiled
def _root_shift(a, noise, n, x):
    """How far a root may be off when its polynomial's coefficients are."""
    total, slope, power = 0.0, 0.0, 1.0
    for k in range(n + 1):
        total += (noise[k] + 4.0 * _EPS * abs(a[k])) * power
        if k < n:
            slope += (k + 1) * a[k + 1] * x**k
        power *= abs(x)
    first = total / abs(slope) if slope != 0.0 else np.inf
    curvature = 0.0
    for k in range(2, n + 1):
        curvature += k * (k - 1) * a[k] * x ** (k - 2)
    second = math.sqrt(2.0 * total / abs(curvature)) if curvature != 0.0 else np.inf
    return min(first, second)  # near a double root the second order decides


@compiled
def _near(point, shift, bounds, dependent):
    """Whether a point may be inside, for all that is known of it."""
    for k in dependent:  # noqa: SIM110 (compiled)
        if not bounds[k, 0] - shift[k] < point[k] < bounds[k, 1] + shift[k]:
            return False
    return True
