"""The modes of the posterior of the combinations, from prior draws alone.

Prior draws are screened. The best of them, and good ones that are far from these, are taken uphill in theta (see
`search`), and their ends are looked at as values of h(c): parameters that the data cannot tell apart end in one and the
same c, however far apart they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.samplers.combination_coordinates import combination_coordinates
from equifinal.samplers.first_covariance import first_covariance
from equifinal.samplers.search import climb, screen

Array = NDArray[np.float64]

SCREENED, SCREENED_EACH = 500, 40  # prior draws: at least, and for each parameter
STARTS, STARTS_EACH = 10, 2
LEGS = ((30, 60.0), (60, 30.0), (120, 15.0))  # steps, and how far below the best, in log density, a climber goes on
GOOD = 10  # every tenth prior draw is good enough for a start
SAME_MODE = 3.0  # standard deviations, in each direction


class Modes(NamedTuple):
    """Modes, the best first: h(c) (k, q), covariance there (k, q, q), position u (k, d), log density in u (k,)."""

    h: Array
    covariance: Array
    position: Array
    log_density: Array
    solves: int
    failures: int


def find_modes(
    posterior: Posterior, fibre: Fibre, rng: np.random.Generator, report: Callable[[str], None] = lambda text: None
) -> Modes:
    """Every mode that climbers from the best prior draws end in, down to 15 log units below the highest."""
    d = posterior.dimension
    number = max(SCREENED, SCREENED_EACH * d)
    report(f"screening {number} prior draws")
    found = screen(posterior, rng, number)
    usable = np.isfinite(found.log_density)
    best = np.argsort(-np.where(usable, found.log_density, -np.inf), kind="stable")[: int(usable.sum())]
    coordinates = combination_coordinates(fibre)
    h = coordinates.forward(fibre.xi(fibre.to_theta(found.position[best]))) / coordinates.spread
    best = best[_good_and_far_apart(h, min(max(STARTS, STARTS_EACH * d), len(best)))]
    starts = len(best)
    at, solves, failures = found.position[best], found.solves, found.failures
    density = found.log_density[best]
    arrived = np.zeros(len(at), bool)
    for steps, below in LEGS:
        if not arrived.all():
            ends = climb(posterior, at[~arrived], steps)
            solves, failures = solves + ends.solves, failures + ends.failures
            at[~arrived], density[~arrived], arrived[~arrived] = ends.position, ends.log_density, ends.arrived
        order = np.argsort(-density, kind="stable")
        order = order[density[order] > density.max() - below]
        at, density, arrived = at[order], density[order], arrived[order]
    q = fibre.rank
    covariance = first_covariance(posterior, at, fibre)[:, :q, :q]
    covariance += 1e-10 * np.trace(covariance, axis1=1, axis2=2)[:, None, None] * np.eye(q) + 1e-14 * np.eye(q)
    solves += len(at) * len(posterior.arms)
    h = coordinates.forward(fibre.xi(fibre.to_theta(at)))
    chosen = _distinct(h, covariance)
    report(f"{starts} starts, {len(chosen)} mode{'s' * (len(chosen) > 1)}")
    return Modes(h[chosen], covariance[chosen], at[chosen], density[chosen], solves, failures)


def _good_and_far_apart(h: Array, number: int) -> list[int]:
    """Of points in order of density: half of the number from the top; the others far from all before, still good."""
    chosen = list(range((number + 1) // 2))
    pool = np.arange(min(len(h), max(number, len(h) // GOOD)))
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.min(np.linalg.norm(h[pool, None] - h[None, chosen], axis=2), axis=1), posinf=0.0)
    while len(chosen) < number:
        farthest = int(np.argmax(np.where(np.isin(pool, chosen), -1.0, apart)))
        chosen.append(farthest)
        with np.errstate(invalid="ignore"):
            apart = np.minimum(apart, np.nan_to_num(np.linalg.norm(h[pool] - h[farthest], axis=1), posinf=0.0))
    return chosen


def _distinct(h: Array, covariance: Array) -> list[int]:
    """Of ends in order, those that are not near one before."""
    chosen: list[int] = []
    for i in range(len(h)):
        for j in chosen:
            apart = np.linalg.solve(covariance[j], h[i] - h[j]) @ (h[i] - h[j])
            if apart < SAME_MODE**2 * max(1, h.shape[1]):
                break
        else:
            chosen.append(i)
    return chosen
