r"""Charts: theta_D as a function of theta_I and c, all real roots inside the prior's support.

A chart follows the steps of `equifinal.algebra.elimination.triangular`: unknowns given rationally are computed in one
straight-line function, the others are roots of polynomials in one variable. Roots outside the bounds are
dropped as soon as they are met. What remains is refined by Newton's method on xi = c itself, which also
gives :math:`\log|\det \partial\xi/\partial\theta_D|`, the weight that volume along the fibre has in this chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.elimination.triangular import Step, combination_name
from equifinal.fibre.chart_loops import POLYNOMIAL, RATIONAL, solve_points
from equifinal.fibre.combinations import Combinations
from equifinal.fibre.direct import direct_code
from equifinal.machine.complex_function import ComplexFunction
from equifinal.machine.functions import Functions
from equifinal.machine.graph import Term
from equifinal.machine.native import Code

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    combinations: Combinations
    steps: tuple[Step, ...]
    degree: int
    free: NDArray[np.int64]
    dependent: NDArray[np.int64]
    bounds: Array
    most: int
    functions: Functions

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

    @cached_property
    def direct(self) -> Code | None:
        """All of a rational chart in one function; None for others, and where that would be too long."""
        return direct_code(self.combinations, self.free.tolist(), self.steps) if self.kind == "rational" else None

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
            *solve_points(
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
