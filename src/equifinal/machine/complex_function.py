"""Nodes of a graph as a function of complex arrays, compiled. Apart from the others because it needs Numba."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equifinal.machine.compiled import compiled
from equifinal.machine.functions import Functions
from equifinal.machine.pointers import call_on


class ComplexFunction:
    """Nodes of a graph as one compiled function of complex arrays x and p, for batches."""

    def __init__(self, functions: Functions, roots: Sequence[int]):
        self.size: int = len(roots)
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
