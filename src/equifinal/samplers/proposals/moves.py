"""Moves of a frozen mixture q: fresh draws of it, and steps of several lengths rho; how often each is made.

All of them are reversible for q and accepted by the ratio of w = pi / q. Fresh draws are best where q fits. Where it
does not, they are refused nearly always, and shorter steps get farther.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equifinal.samplers.proposals.mixture import Mixture

Array = NDArray[np.float64]

FRESH = 2.0  # in place of a length: a draw that does not depend on where the chain is
LENGTHS = np.array([FRESH, 1.0, 0.6, 0.3, 0.15, 0.08, 0.03])
FRESH_ONLY = (LENGTHS == FRESH).astype(float)
UNKNOWN = np.zeros(len(LENGTHS))
EVERY_LENGTH = np.full(len(LENGTHS), 1 / len(LENGTHS))
LEAST_SHARE = 0.03  # of each: no length is best everywhere, and fresh draws give the marginal likelihood


def lengths(shares: Array, uniforms: Array) -> Array:
    """Choose lengths by their shares."""
    return LENGTHS[np.minimum(np.searchsorted(np.cumsum(shares), uniforms, side="right"), len(LENGTHS) - 1)]


def proposed(mixture: Mixture, x: Array, rho: Array, numbers: Sequence[Array]) -> Array:
    """Where moves of these lengths lead from x (n, q)."""
    fresh = rho == FRESH
    steps = mixture.stepped(x, np.where(fresh, 1.0, rho), *numbers)
    return np.where(fresh[:, None], mixture.from_numbers(*numbers), steps)


def shares_by_gain(gain: Array) -> Array:
    """Shares proportional to what a move of each length gains."""
    if not gain.sum() > 0:
        return EVERY_LENGTH
    return LEAST_SHARE + (1 - LEAST_SHARE * len(gain)) * gain / gain.sum()
