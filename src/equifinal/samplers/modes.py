"""The modes of the posterior of the combinations, from prior draws alone.

Prior draws are screened, the best are taken uphill in theta (see `search`), and their ends are looked at as values of
h(c): parameters that the data cannot tell apart end in one and the same c, however far apart they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior import Posterior
from equifinal.samplers.combination_coordinates import combination_coordinates
from equifinal.samplers.search import climb, screen
from equifinal.samplers.search import laplace as laplace_in_u

Array = NDArray[np.float64]

SCREENED, SCREENED_EACH = 500, 40  # prior draws: at least, and for each parameter
STARTS, STARTS_EACH = 10, 2
LEGS = ((30, 60.0), (60, 30.0), (120, 15.0))  # steps, and how far below the best, in log density, a climber goes on
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
    best = np.argsort(-np.where(usable, found.log_density, -np.inf), kind="stable")
    starts = min(max(STARTS, STARTS_EACH * d), int(usable.sum()))
    at, solves, failures = found.position[best[:starts]], found.solves, found.failures
    density = found.log_density[best[:starts]]
    for steps, below in LEGS:
        ends = climb(posterior, at, steps)
        solves, failures = solves + ends.solves, failures + ends.failures
        order = np.argsort(-ends.log_density, kind="stable")
        order = order[ends.log_density[order] > ends.log_density.max() - below]
        at, density = ends.position[order], ends.log_density[order]
    covariance, spent = covariances(posterior, at, fibre)
    solves += spent
    h = combination_coordinates(fibre).forward(fibre.xi(fibre.to_theta(at)))
    chosen = _distinct(h, covariance)
    report(f"{starts} starts, {len(chosen)} mode{'s' * (len(chosen) > 1)}")
    return Modes(h[chosen], covariance[chosen], at[chosen], density[chosen], solves, failures)


def covariances(posterior: Posterior, u: Array, fibre: Fibre) -> tuple[Array, int]:
    """Of h(c) (n, q, q), by linearising h(xi) where the posterior is nearly Gaussian; and the solves it took."""
    found = fibre.geometry_in_coordinates(u)
    rows = np.nan_to_num(combination_coordinates(fibre).jacobian(found.values, found.jacobian))
    covariance, solves = laplace_in_u(posterior, u)
    q = fibre.rank
    made = [r @ s @ r.T for r, s in zip(rows, covariance, strict=True)]
    ridge = [1e-10 * np.trace(s) / max(q, 1) * np.eye(q) + 1e-14 * np.eye(q) for s in made]
    return np.array([s + r for s, r in zip(made, ridge, strict=True)]).reshape(len(u), q, q), solves


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
