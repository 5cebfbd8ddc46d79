"""Laws for fibres that are products: combinations of different parameters have fibres of their own.

Where no combination joins two sets of parameters, M_c is a product of fibres of smaller dimension, and theta_I is drawn
in each of them by the law that suits it best. Two curves, for example, have a feasible interval each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.language.expression import names
from equifinal.samplers.points.law import Drawn, Law, Moments

Array = NDArray[np.float64]


class Block(NamedTuple):
    """Parameters that combinations join, by position, and these combinations."""

    parameters: tuple[int, ...]
    combinations: tuple[int, ...]


def blocks(fibre: Fibre) -> list[Block]:
    """The finest division of the parameters that no independent combination crosses."""
    at = {name: k for k, name in enumerate(fibre.names)}
    found = [Block((k,), ()) for k in range(len(fibre.names))]
    for j, combination in enumerate(fibre.combinations.independent):
        used = {at[name] for name in names(combination) if name in at}
        joined = [block for block in found if used & set(block.parameters)]
        found = [block for block in found if block not in joined]
        parameters, combinations = (sum((block[i] for block in joined), ()) for i in range(2))
        found.append(Block(tuple(sorted(parameters)), tuple(sorted((*combinations, j)))))
    return found


class BlockLaw:
    """Law that draws the theta_I of each block by a law of its own.

    Parameters
    ----------
    make_law
        Says which law for the fibre of a block.
    """

    def __init__(self, fibre: Fibre, make_law: Callable[[Fibre], Law]):
        self.parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Law]] = []
        self.dimension: int = fibre.dimension
        self.rank: int = fibre.rank
        free = [int(k) for k in fibre.chart.free]
        for block in blocks(fibre):
            own = [k for k in free if k in block.parameters]
            if not own:
                continue
            part = Fibre(
                [fibre.combinations.independent[j] for j in block.combinations],
                {fibre.names[k]: fibre.priors[fibre.names[k]] for k in block.parameters},
                constants={n: v for n, v in fibre.constants.items() if n not in fibre.names},
                partition=[fibre.names[k] for k in own],
            )
            order = [int(k) for k in part.chart.free]
            at = [free.index(block.parameters[k]) for k in order]
            moments = [*block.combinations, *(self.rank + k for k in block.parameters)]
            rows = np.array(block.combinations, np.int64), np.array(at, np.int64), np.array(moments, np.int64)
            self.parts.append((*rows, make_law(part)))
        self.width: int = sum(law.width for *_, law in self.parts)

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        free, total, start = np.empty((*uniforms.shape[:2], self.dimension)), np.zeros(uniforms.shape[:2]), 0
        for combinations, at, columns, law in self.parts:
            own = np.ascontiguousarray(uniforms[..., start : start + law.width])
            found = law.draw(c[:, combinations], own, _selected(moments, columns))
            free[..., at] = found.free
            total += found.log_density
            start += law.width
        return Drawn(free, total)

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        total = np.zeros(free.shape[:2])
        for combinations, at, columns, law in self.parts:
            total += law.log_density(c[:, combinations], free[..., at], _selected(moments, columns))
        return total


def _selected(moments: Moments, columns: NDArray[np.int64]) -> Moments:
    return Moments(moments.mean[:, columns], moments.covariance[:, columns[:, None], columns])
