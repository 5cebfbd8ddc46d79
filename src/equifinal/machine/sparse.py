"""Matrices of nodes: Jacobians and gradients without the entries that are zero by structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equifinal.machine.graph import Graph


class Sparse(NamedTuple):
    """A matrix of nodes by its entries that are not zero by structure."""

    rows: list[int]
    columns: list[int]
    nodes: list[int]

    @staticmethod
    def gradient(graph: Graph, roots: Sequence[int], array: str, width: int) -> Sparse:
        """Derivatives of the roots by the first ``width`` entries of an argument array."""
        found = Sparse([], [], [])
        for row, root in enumerate(roots):
            for column, node in graph.gradient(root, array).items():
                if column < width:
                    found.rows.append(row)
                    found.columns.append(column)
                    found.nodes.append(node)
        return found
