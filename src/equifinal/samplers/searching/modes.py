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
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.coordinates.unfolding import Unfolding
from equifinal.samplers.protocol import Partly
from equifinal.samplers.searching.climbing import climb, screen
from equifinal.samplers.searching.first_covariance import first_covariance

Array = NDArray[np.float64]

SCREENED, SCREENED_EACH = 500, 40  # prior draws: at least, and for each parameter
STARTS, STARTS_EACH = 10, 2
LEGS = ((30, 60.0), (60, 30.0), (120, 15.0))  # steps, and how far below the best, in log density, a climber goes on
GOOD = 10  # every tenth prior draw is good enough for a start
SAME_MODE = 3.0  # standard deviations, in each direction


class Modes(NamedTuple):
    """Modes, the best first: h(c) (k, q), covariance there (k, q, q), position u (k, d), log density in u (k,).

    ``agreed`` says whether most climbers arrived, and all of these in one mode; ``solves`` and ``failures`` are the
    work that this search took.
    """

    h: Array
    covariance: Array
    position: Array
    log_density: Array
    agreed: bool
    solves: int
    failures: int

    @property
    def in_words(self) -> str:
        return "1 mode" if len(self.h) == 1 else f"{len(self.h)} modes"


class _Ends(NamedTuple):
    """Where climbers ended, the best first, without those far below; and whether they failed."""

    position: Array
    log_density: Array
    failed: bool
    solves: int
    failures: int


def find_modes(
    posterior: Posterior, fibre: Fibre, rng: np.random.Generator, report: Callable[[str], None] = lambda text: None
) -> Modes:
    """Every mode that climbers from the best prior draws end in, down to 15 log units below the highest."""
    number = max(SCREENED, SCREENED_EACH * posterior.dimension)
    report(f"screening {number} prior draws")
    found = screen(posterior, rng, number, lambda done: report(Partly("screening", done)))
    usable = np.isfinite(found.log_density)
    best = np.argsort(-np.where(usable, found.log_density, -np.inf), kind="stable")[: int(usable.sum())]
    h = _coordinates_at(fibre, found.position[best]) / combination_coordinates(fibre).spread
    best = best[_good_and_far_apart(h, _starts(posterior, len(best)), len(best) // GOOD)]
    ends = _climbed(posterior, found.position[best], found.log_density[best], report)
    modes = _modes(posterior, fibre, ends)
    modes = modes._replace(solves=modes.solves + found.solves, failures=modes.failures + found.failures)
    report(f"{len(best)} starts, {modes.in_words}{', but most do not arrive' if ends.failed else ''}")
    return modes


def unfolded(posterior: Posterior, coordinates: Unfolding, modes: Modes) -> Modes:
    """The same in the coordinates x, in which roots that meet do no harm, without what these hold."""
    covariance, moved, solves = modes.covariance, coordinates.moved, modes.solves
    if coordinates.block is not None:
        covariance = _covariance(posterior, coordinates.finer, modes.position)
        solves += len(modes.h) * len(posterior.likelihoods)
    x = coordinates.at(modes.position)
    return modes._replace(h=x, covariance=covariance[:, moved[:, None], moved], solves=solves)


def bent(modes: Modes, bend: Bend) -> Modes:
    """The same in coordinates that are bent."""
    x = bend.forward(modes.h)
    log_slope = bend.backward(x)[1]
    slope = np.exp(-log_slope)
    covariance = slope[:, :, None] * modes.covariance * slope[:, None, :]
    return modes._replace(h=x, covariance=covariance, log_density=modes.log_density + log_slope.sum(axis=1))


def _starts(posterior: Posterior, most: int) -> int:
    return min(max(STARTS, STARTS_EACH * posterior.dimension), most)


def _coordinates_at(fibre: Fibre, u: Array) -> Array:
    """h(c) at positions u."""
    return combination_coordinates(fibre).forward(fibre.xi(fibre.to_theta(u)))


def _climbed(posterior: Posterior, at: Array, density: Array, report: Callable[[str], None]) -> _Ends:
    """Climbs in legs; after each, climbers far below the best are given up."""
    most, before = sum(steps for steps, _ in LEGS), 0
    starts, solves, failures = len(at), 0, 0
    arrived = np.zeros(starts, bool)
    near = starts
    for steps, below in LEGS:
        if not arrived.all():

            def told(step: int, before: int = before) -> None:
                report(Partly("climbing", (before + step) / most))

            ends = climb(posterior, at[~arrived], steps, told)
            solves, failures = solves + ends.solves, failures + ends.failures
            at[~arrived], density[~arrived], arrived[~arrived] = ends.position, ends.log_density, ends.arrived
        before += steps
        # "at least", for beside a density of -1e300 these differences vanish
        near = min(near, int(np.sum(density >= density.max() - LEGS[0][1])))
        order = np.argsort(-density, kind="stable")
        order = order[density[order] >= density.max() - below]
        at, density, arrived = at[order], density[order], arrived[order]
    return _Ends(at, density, 2 * near < starts or not arrived.any(), solves, failures)


def _modes(posterior: Posterior, fibre: Fibre, ends: _Ends) -> Modes:
    """Ends that differ in c, with the covariance at each."""
    at, density = ends.position, ends.log_density
    covariance = _covariance(posterior, fibre, at)
    solves = ends.solves + len(at) * len(posterior.likelihoods)
    h = _coordinates_at(fibre, at)
    order = np.argsort(-density, kind="stable")
    order = order[density[order] >= density.max() - LEGS[-1][1]]
    chosen = order[_distinct(h[order], covariance[order])]
    agreed = len(chosen) == 1 and not ends.failed
    return Modes(h[chosen], covariance[chosen], at[chosen], density[chosen], agreed, solves, ends.failures)


def _covariance(posterior: Posterior, fibre: Fibre, at: Array) -> Array:
    """Covariance of h at positions, surely of full rank."""
    q = fibre.rank
    found = first_covariance(posterior, at, fibre)[:, :q, :q]
    return found + 1e-10 * np.trace(found, axis1=1, axis2=2)[:, None, None] * np.eye(q) + 1e-14 * np.eye(q)


def _good_and_far_apart(h: Array, number: int, good: int) -> list[int]:
    """Choose among points in order of density: half from the top, the others far from all before and still good."""
    chosen = list(range((number + 1) // 2))
    pool = np.arange(min(len(h), max(number, good)))
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.min(np.linalg.norm(h[pool, None] - h[None, chosen], axis=2), axis=1), posinf=0.0)
    while len(chosen) < number:
        farthest = int(np.argmax(np.where(np.isin(pool, chosen), -1.0, apart)))
        chosen.append(farthest)
        with np.errstate(invalid="ignore"):
            apart = np.minimum(apart, np.nan_to_num(np.linalg.norm(h[pool] - h[farthest], axis=1), posinf=0.0))
    return chosen


def _distinct(h: Array, covariance: Array) -> list[int]:
    """Keep, of ends in order, those that are not near an earlier one."""
    chosen: list[int] = []
    for i in range(len(h)):
        for j in chosen:
            apart = np.linalg.solve(covariance[j], h[i] - h[j]) @ (h[i] - h[j])
            if apart < SAME_MODE**2 * max(1, h.shape[1]):
                break
        else:
            chosen.append(i)
    return chosen
