"""Determinants in a graph of arithmetic, by minors: worth it for the sparse Jacobians that models have."""

from __future__ import annotations

from collections.abc import Sequence

from equifinal.machine.graph import Graph


class TooLong(Exception):
    """The expansion has more terms than are of use."""


def determinant(graph: Graph, matrix: Sequence[Sequence[int]], most: int) -> int:
    """A node for the determinant of a matrix of nodes.

    Every minor is expanded along its sparsest row or column, and made once however often it is needed.

    Raises
    ------
    TooLong
        If more than `most` minors are needed.
    """
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}

    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> int:
        if not rows:
            return graph.one
        if (rows, columns) in known:
            return known[rows, columns]
        if len(known) >= most:
            raise TooLong
        lines = [[(i, k) for k in columns if matrix[i][k] != graph.zero] for i in rows]
        lines += [[(i, k) for i in rows if matrix[i][k] != graph.zero] for k in columns]
        total = graph.zero
        for i, k in min(lines, key=len):
            rest = minor(tuple(j for j in rows if j != i), tuple(j for j in columns if j != k))
            term = graph.multiply(matrix[i][k], rest)
            odd = (rows.index(i) + columns.index(k)) % 2
            total = graph.subtract(total, term) if odd else graph.add(total, term)
        known[rows, columns] = total
        return total

    everything = tuple(range(len(matrix)))
    return minor(everything, everything)
