"""What samplers take for the covariance of (h(c), u) until their chains know better.

At the end of a search the posterior is nearly Gaussian, and its width there says how to propose h(c): far better than
the width of the prior does, beside which that of the posterior may be a hundredth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.searching.climbing import laplace

Array = NDArray[np.float64]


def first_covariance(posterior: Posterior, positions: Array, fibre: Fibre) -> Array:
    """Covariance of (h(c), u) at each position, by linearising h(xi)."""
    found = fibre.geometry_in_coordinates(positions)
    across = np.nan_to_num(combination_coordinates(fibre).jacobian(found.values, found.jacobian))
    both = np.concatenate([across, np.tile(np.eye(positions.shape[1]), (len(positions), 1, 1))], axis=1)
    covariance, _ = laplace(posterior, positions)
    return np.stack([rows @ s @ rows.T for rows, s in zip(both, covariance, strict=True)])
