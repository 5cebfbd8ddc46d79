"""Groups of expressions as nodes of one graph, compiled for real or complex numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from equifinal.compiled import compiled
from equifinal.expression import Expression, evaluate
from equifinal.machine import native
from equifinal.machine.assembly import assemble
from equifinal.machine.graph import Graph, Term
from equifinal.machine.pointers import call_on


class Functions:
    """Expressions by group, their names being entries of argument arrays.

    Parameters
    ----------
    arrays
        For each argument array (see `equifinal.machine.assembly.ARRAYS`) the names of its entries, in order.
    groups
        The expressions; ``nodes`` has the same keys.
    """

    def __init__(self, arrays: Mapping[str, Sequence[str]], groups: Mapping[str, Iterable[Expression]]):
        self.graph = graph = Graph()
        self.names = {
            name: Term(graph, graph.load(array, i))
            for array, declared in arrays.items()
            for i, name in enumerate(declared)
        }
        self.nodes = {group: self.record(expressions) for group, expressions in groups.items()}

    def record(self, expressions: Iterable[Expression]) -> list[int]:
        def number(value: Fraction) -> Term:
            return Term(self.graph, self.graph.number(value))

        return [evaluate(expression, self.names, number).node for expression in expressions]

    def compile(self, functions: Mapping[str, Sequence[int]], *, complex_numbers: bool = False) -> native.Code:
        assembly = assemble(
            self.graph, functions, typed_pointers=native.typed_pointers(), complex_numbers=complex_numbers
        )
        return native.compile_assembly(assembly, functions)


class ComplexFunction:
    """Nodes of a graph as one compiled function of complex arrays x and p, for batches."""

    def __init__(self, functions: Functions, roots: Sequence[int]):
        self.size = len(roots)
        self._code = functions.compile({"f": roots}, complex_numbers=True)

    def __call__(self, x: np.ndarray, p: np.ndarray | None = None) -> np.ndarray:
        """Values (..., size), where the last axis of x and p holds the entries."""
        x = np.ascontiguousarray(x, complex)
        p = np.zeros((*x.shape[:-1], 1), complex) if p is None else np.ascontiguousarray(p, complex)
        rows = int(np.prod(x.shape[:-1]))
        x_rows, p_rows = x.reshape(rows, x.shape[-1]), p.reshape(rows, p.shape[-1])
        out = np.empty((rows, max(self.size, 1)), complex)
        _evaluate(self._code.addresses["f"], x_rows.view(float), p_rows.view(float), out.view(float))
        return out[:, : self.size].reshape(*x.shape[:-1], self.size)


@compiled
def _evaluate(address, x, p, out):
    for i in range(x.shape[0]):
        call_on(address, x[i], p[i], out[i])
