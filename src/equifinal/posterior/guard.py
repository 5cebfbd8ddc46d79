"""Have points of one fibre the same outputs indeed? A last check before sampling, by solving, whatever algebra says.

Samplers move along fibres without asking the likelihood again, so that a fibre that is too large would make every
number wrong. Prior draws are taken far along their fibres, to free coordinates of other prior draws and to all roots
there, and the outputs of both ends are solved for at a tight tolerance. They may differ by what solver and roots cannot
resolve: the effects of another tolerance, and of a nudge of the parameters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.fibre import Fibre
from equifinal.posterior.likelihood import ExperimentLikelihood
from equifinal.posterior.posterior import Posterior

Array = NDArray[np.float64]

DRAWS, SHIFTS, MOST = 32, 6, 64  # prior draws, others whose free coordinates each of them takes, pairs that are solved
TIGHT, LOOSE = 1e-10, 1e-8  # relative tolerances
NUDGE = 1e-8  # of parameters, relative; roots are better than that by far
RESOLVED = 1e-5  # of an output's largest value: what counts as a difference
DECAYED = 1e-12  # of the largest value at any parameters: where less is left of an output, it is rounding errors
MARGIN = 10.0  # times what cannot be resolved


def largest_difference(posterior: Posterior, fibre: Fibre) -> float:
    """Largest difference of an output between two points of a fibre, relative to its largest value; 0 if unresolved."""
    theta, equivalent = _pairs(fibre)
    if not len(theta):
        return 0.0
    return max(_difference(one, theta, equivalent) for one in posterior.likelihoods)


def _pairs(fibre: Fibre) -> tuple[Array, Array]:
    """Pairs of points on the same fibres, far apart."""
    theta = fibre.prior_draws[:DRAWS]
    others = fibre.prior_draws[DRAWS : DRAWS * (1 + SHIFTS), fibre.chart.free].reshape(SHIFTS, DRAWS, -1)
    if not fibre.dimension:
        others = others[: int(fibre.chart.degree > 1)]  # the same roots everywhere; or none but theta
    found = fibre.weighted(np.swapaxes(others, 0, 1), np.nan_to_num(fibre.xi(theta))).theta
    equivalent = found.reshape(-1, theta.shape[1])
    theta = np.repeat(theta, len(equivalent) // len(theta), axis=0)
    with np.errstate(invalid="ignore"):
        off = [_off(theta, equivalent), *(_off(f(theta), f(equivalent)) for f in (fibre.xi, fibre.labels))]
        kept = np.flatnonzero((off[0] > NUDGE) & (off[1] < NUDGE) & (off[2] < NUDGE))[:MOST]
    return theta[kept], equivalent[kept]


def _off(first: Array, second: Array) -> Array:
    """Largest relative difference in a row."""
    return np.max(np.abs(first - second) / (np.abs(first) + np.abs(second) + 1e-300), axis=1, initial=0.0)


def _difference(one: ExperimentLikelihood, theta: Array, equivalent: Array) -> float:
    nudged = equivalent * (1 + NUDGE * np.where(np.arange(equivalent.shape[1]) % 2, 1, -1))
    here, there = _outputs(one, theta, TIGHT), _outputs(one, equivalent, TIGHT)
    with np.errstate(invalid="ignore", divide="ignore"):
        blur = sum(
            np.abs(tight - other)
            for tight, other in (
                (here, _outputs(one, theta, LOOSE)),
                (there, _outputs(one, equivalent, LOOSE)),
                (there, _outputs(one, nudged, TIGHT)),
            )
        )
        size = np.maximum(np.nanmax(np.abs(here), axis=1), np.nanmax(np.abs(there), axis=1))[:, None]
        size = np.maximum(size, DECAYED * np.nanmax(size, axis=0, initial=0.0))
        beyond = (np.abs(here - there) - MARGIN * blur) / size
    return float(np.nanmax(np.where(beyond > RESOLVED, beyond, 0.0), initial=0.0))


def _outputs(one: ExperimentLikelihood, theta: Array, rtol: float) -> Array:
    """Outputs (lanes, times, outputs), NaN where a solve failed."""
    settings = one.settings | {"rtol": rtol}
    found = ode.simulate(one.system, one.arguments(theta), one.times, inputs=one.inputs, wanted=one.wanted, **settings)
    return np.where((found.status == 0)[:, None, None], found.outputs, np.nan)
