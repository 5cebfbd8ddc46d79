"""Groups of expressions as nodes of one graph: compiled, or evaluated on arrays of any number type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from equifinal.expression import Expression, evaluate
from equifinal.machine import native
from equifinal.machine.assembly import assemble
from equifinal.machine.graph import Graph, Term


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

    def compile(self, functions: Mapping[str, Sequence[int]]) -> native.Code:
        assembly = assemble(self.graph, functions, typed_pointers=native.typed_pointers())
        return native.compile_assembly(assembly, functions)

    def interpret(self, roots: Sequence[int], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Values of the roots, (..., roots), where the last axis of each array holds its entries.

        For complex numbers, which the compiled functions do not know, and where speed does not matter.
        """
        values: dict[int, Any] = {}
        some = next(iter(arrays.values()))
        with np.errstate(all="ignore"):
            for a in self.graph.reachable(roots):
                match self.graph.nodes[a]:
                    case ("number", value):
                        values[a] = float(value)
                    case ("load", array, index):
                        values[a] = arrays[array][..., index]
                    case ("negative", b):
                        values[a] = -values[b]
                    case ("power", b, exponent):
                        values[a] = values[b] ** exponent
                    case ("add", b, c):
                        values[a] = values[b] + values[c]
                    case ("subtract", b, c):
                        values[a] = values[b] - values[c]
                    case ("multiply", b, c):
                        values[a] = values[b] * values[c]
                    case ("divide", b, c):
                        values[a] = values[b] / values[c]
        result = np.empty((*some.shape[:-1], len(roots)), np.result_type(*arrays.values(), float))
        for i, root in enumerate(roots):
            result[..., i] = values[root]
        return result
