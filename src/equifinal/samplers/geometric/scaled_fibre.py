"""The fibre as the compiled moves of `geometric` need it: scales of its coordinates, addresses, room to work in."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.fibre.constraint import ConstraintCode, constraint_code
from equifinal.problem.prior import from_theta
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.geometric import rattle
from equifinal.samplers.geometric.loops import Space
from equifinal.samplers.geometric.rattle_loops import Place, Rules

Array = NDArray[np.float64]

RATTLE = rattle.Settings()


class ScaledFibre(NamedTuple):
    """A fibre in scaled coordinates."""

    code: ConstraintCode
    scale: Array
    softening: Array
    single: NDArray[np.int64]
    spread: Array  # of h(c) under the prior


_scaled: WeakKeyDictionary[Fibre, dict[bool, ScaledFibre]] = WeakKeyDictionary()


def scaled_fibre(fibre: Fibre, scaled: bool) -> ScaledFibre:
    """Made once for a fibre; ``scaled`` says whether coordinates are divided by the prior's spread."""
    known = _scaled.setdefault(fibre, {})
    if scaled not in known:
        quartiles = np.array([[p.quantile(0.25), p.quantile(0.75)] for p in fibre.priors.values()])
        u = from_theta(np.ascontiguousarray(quartiles.T), fibre.table)
        scale = np.abs(u[1] - u[0]) / 1.349 if scaled else np.ones(len(fibre.names))
        h = combination_coordinates(fibre)
        known[scaled] = ScaledFibre(constraint_code(fibre, scale), scale, h.softening, h.single, h.spread)
    return known[scaled]


def equipment(fibre: Fibre, scaled: bool, force: bool) -> tuple[Rules, Place, Space]:
    """What the kernels need; made for each step, for threads may work at once."""
    place = scaled_fibre(fibre, scaled)
    q, d, labels = fibre.rank, len(fibre.names), len(fibre.combinations.labels)
    tolerances = (float(RATTLE.tolerance), int(RATTLE.iterations), float(RATTLE.reversibility))
    rules = Rules(place.code.function, place.code.force if force else 0, place.code.data, *tolerances)
    shapes = [(q,), (q, d), (q, d), (d,), (q,), (q, q), (q,), (d,), (d,), (d,), (d,)]
    room = [(d,), (d,), (d,), (d,), (q,), (q, q), (1, d), (labels,), (fibre.combinations.size,)]
    numbers = (fibre.table, fibre.combinations.address, labels)
    space = Space(place.scale, place.softening, place.single, *numbers, *(np.empty(shape) for shape in room))
    return rules, Place(*(np.empty(shape) for shape in shapes)), space
