"""Which charts to mix on fibres that no single chart describes well.

Where the data determine a sum a + b of rates with wide log-uniform priors, points that are even in log a crowd where b
is next to nothing: nearly all decades of b lie within one point. In the chart of log b it is the other way round, and
the mixture of both has nearly even weights (the balance heuristic of `estimator`). Where the fibre is a product, each
factor needs its own charts, and all their products are mixed.
"""

from __future__ import annotations

from itertools import product
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.fibre.partition import ranked, tangent_bases
from equifinal.problem.prior import log_prior, to_theta
from equifinal.samplers.points.block_law import blocks

Array = NDArray[np.float64]

MOST = 8  # charts: each costs about as much as a chart alone
TOLD_APART = 1e-6  # spread of the log ratio of two charts' densities of points; below it, they are the same
_known: WeakKeyDictionary[Fibre, tuple[tuple[str, ...], ...]] = WeakKeyDictionary()


def charts_to_mix(fibre: Fibre) -> tuple[tuple[str, ...], ...]:
    """Sets of free coordinates, the chart's own first; nothing if there is no other that differs."""
    if fibre not in _known:
        _known[fibre] = _to_mix(fibre)
    return _known[fibre]


def _to_mix(fibre: Fibre) -> tuple[tuple[str, ...], ...]:
    u = fibre.to_coordinates(fibre.prior_draws)
    found = fibre.geometry_in_coordinates(u)
    fine = found.status == 0
    log_priors = np.column_stack([_log_prior(fibre, u[fine], k) for k in range(len(fibre.names))])
    factors = []
    for block in blocks(fibre):
        own = tuple(k for k in block.parameters if k in fibre.chart.free)
        if own:
            columns = np.array(block.parameters, int)
            jacobian = found.jacobian[fine][:, np.array(block.combinations, int)[:, None], columns]
            first = tuple(block.parameters.index(k) for k in own)
            chosen = _different(jacobian, log_priors[:, columns], first)
            factors.append([tuple(fibre.names[columns[k]] for k in free) for free in chosen])
    while (number := int(np.prod([len(sets) for sets in factors]))) > MOST:
        max(factors, key=len).pop()
    return tuple(sum(chosen, ()) for chosen in product(*factors)) if number > 1 else ()


def _log_prior(fibre: Fibre, u: Array, k: int) -> Array:
    """In the coordinate u_k."""
    theta, log_slope = to_theta(np.ascontiguousarray(u[:, k : k + 1]), fibre.table[k : k + 1])
    return log_prior(theta, fibre.table[k : k + 1]) + log_slope


def _different(jacobian: Array, log_priors: Array, first: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Sets of free coordinates of a block, a given one first, in which points of the prior crowd elsewhere."""
    tangents = tangent_bases(jacobian)
    kept: list[tuple[int, ...]] = []
    densities: list[Array] = []
    for free in [first, *(free for _, free in ranked(tangents))]:
        volume = np.linalg.slogdet(tangents[:, list(free), :])[1]
        density = volume + log_priors[:, list(free)].sum(axis=1)  # along the fibre
        if all(np.std(density - other) > TOLD_APART for other in densities):
            kept.append(free)
            densities.append(density)
        if len(kept) == MOST:
            break
    return kept
