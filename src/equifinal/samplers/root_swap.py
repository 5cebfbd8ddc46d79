r"""Root swaps: where the combinations and theta_I leave finitely many theta_D, choose one of them afresh.

With theta = (theta_I, theta_D) and theta_D = g_k(theta_I, c), k = 1..K, the posterior's law of k given theta_I and c is

    P(k) proportional to p(theta_I, g_k) / |det dxi/dtheta_D|,

as all roots have the same likelihood. Drawing k from it is a Gibbs step, and costs no ODE solve. Roots whose labels
differ from those of the chain have another likelihood and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.problem.prior import log_prior, to_theta

if TYPE_CHECKING:
    from equifinal.fibre import Fibre

Array = NDArray[np.float64]

SAME = 1e-6  # two roots nearer than that, relative to their sizes, are one
GENERAL_EVERY = 20  # iterations between swaps where roots are found by homotopy, which is slow


class Swap(NamedTuple):
    """Where each chain is now; ``swapped`` where it moved, ``unresolved`` where roots could not all be found."""

    position: Array
    log_prior: Array  # in sampling coordinates
    swapped: NDArray[np.bool_]
    unresolved: NDArray[np.bool_]


def due(fibre: Fibre | None, iteration: int) -> bool:
    """Whether there is something to swap in this iteration."""
    if fibre is None or fibre.chart.degree == 1:
        return False
    return fibre.chart.kind != "general" or iteration % GENERAL_EVERY == 0


def log_weights(fibre: Fibre, theta: Array, log_det: Array) -> Array:
    """log p - log |det dxi/dtheta_D| of roots (n, most, d); minus infinity where there is none."""
    n, most, d = theta.shape
    with np.errstate(invalid="ignore"):
        weights = fibre.log_prior(theta.reshape(-1, d)).reshape(n, most) - log_det
    return np.where(np.isnan(weights), -np.inf, weights)


def swap(fibre: Fibre, position: Array, prior: Array, rngs: Sequence[np.random.Generator]) -> Swap:
    """One Gibbs step of every chain, at ``position`` with log density ``prior``.

    A chain whose own point is not among the roots found stays where it is, as do those with unresolved roots: at
    another root of the same theta_I and c it would have stayed as well.
    """
    uniforms = np.array([rng.random() for rng in rngs])
    theta = fibre.to_theta(position)
    roots = fibre.roots(theta[:, fibre.chart.free], fibre.xi(theta), fibre.labels(theta))
    log_weight = log_weights(fibre, roots.theta, roots.log_det)
    largest = log_weight.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        cumulative = np.cumsum(np.exp(log_weight - largest), axis=1)
        chosen = np.sum(cumulative <= (uniforms * cumulative[:, -1])[:, None], axis=1)
    chosen = np.minimum(chosen, roots.theta.shape[1] - 1)
    rows = np.arange(len(theta))
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.abs(roots.theta - theta[:, None, :]) / (np.abs(roots.theta) + np.abs(theta[:, None, :]))
    distance = np.max(np.where(roots.theta == theta[:, None, :], 0.0, gap), axis=2)
    own = np.any(distance < SAME, axis=1)
    usable = (roots.status == 0) & own & np.isfinite(largest[:, 0])
    swapped = usable & ~(distance[rows, chosen] < SAME) & np.isfinite(log_weight[rows, chosen])
    new, prior = np.array(position), np.array(prior)
    if swapped.any():
        new[swapped] = fibre.to_coordinates(roots.theta[rows, chosen][swapped])
        there, log_slope = to_theta(new[swapped], fibre.table)
        prior[swapped] = log_prior(there, fibre.table) + log_slope
    return Swap(new, prior, swapped, ~usable)
