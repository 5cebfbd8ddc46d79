"""Groups of expressions as nodes of one graph, compiled for real or complex numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from equifinal.language.expression import Expression, evaluate
from equifinal.machine import native
from equifinal.machine.assembly import assemble
from equifinal.machine.bounded import assemble_bounded
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

    graph: Graph
    names: dict[str, Term]
    nodes: dict[str, list[int]]

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

        def call(function: str, arguments: Sequence[Term]) -> Term:
            return Term(self.graph, self.graph.call(function, [argument.node for argument in arguments]))

        return [evaluate(expression, self.names, number, call).node for expression in expressions]

    def compile(self, functions: Mapping[str, Sequence[int]], *, complex_numbers: bool = False) -> native.Code:
        assembly = assemble(
            self.graph, functions, typed_pointers=native.typed_pointers(), complex_numbers=complex_numbers
        )
        return native.compile_assembly(assembly, functions)

    def compile_bounded(self, name: str, nodes: Sequence[int]) -> native.Code:
        """One function that writes the nodes' values and then as many bounds on their errors."""
        assembly = assemble_bounded(self.graph, name, nodes, typed_pointers=native.typed_pointers())
        return native.compile_assembly(assembly, [name])
