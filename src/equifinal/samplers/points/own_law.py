"""A user's own law of points, tried once before it is trusted: a wrong density would give a wrong posterior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equifinal.errors import EquifinalError, SamplingError
from equifinal.fibre import Fibre
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.points.law import Law, Moments

TRIED, POINTS = 20, 5  # values of c, and points for each


def own_law(fibre: Fibre, make: Callable[[Fibre], Law]) -> Law:
    """Made, and its points drawn at some prior draws of c.

    That densities integrate to one cannot be seen from points; a constant factor changes log Z alone.
    """
    name = getattr(make, "__name__", repr(make))
    try:
        law = make(fibre)
        _try(law, fibre, name)
    except EquifinalError:
        raise
    except Exception as error:
        raise SamplingError(f"law {name} fails: {type(error).__name__}: {error}") from error
    return law


def _try(law: Law, fibre: Fibre, name: str) -> None:
    if isinstance(law.width, bool) or not isinstance(law.width, int) or law.width < 0:
        raise SamplingError(
            f"law {name}: 'width' must be the number of uniforms that each point takes, not {law.width!r}"
        )
    theta = fibre.prior_draws
    c = fibre.xi(theta)
    fine = np.flatnonzero(np.isfinite(c).all(axis=1))[:TRIED]
    theta, c = theta[fine], c[fine]
    both = np.concatenate([combination_coordinates(fibre).forward(c), fibre.to_coordinates(theta)], axis=1)
    moments = Moments(both, np.tile(np.eye(both.shape[1]), (len(both), 1, 1)))
    uniforms = np.random.default_rng(0).random((len(c), POINTS, law.width))
    free, log_density = law.draw(c, uniforms, moments)
    again = law.log_density(c, free, moments)
    wanted = {
        "draw's points": (free, (*uniforms.shape[:2], fibre.dimension)),
        "draw's log densities": (log_density, uniforms.shape[:2]),
        "log_density": (again, uniforms.shape[:2]),
    }
    for what, (found, shape) in wanted.items():
        if np.shape(found) != shape:
            raise SamplingError(f"law {name}: {what} must have the shape {shape}, not {np.shape(found)}")
    usable = np.isfinite(log_density)
    if not usable.any() or np.isposinf(log_density).any():
        raise SamplingError(f"law {name}: draw must return finite log densities for some c at least")
    if not np.allclose(again[usable], log_density[usable], rtol=1e-6, atol=1e-6):
        raise SamplingError(f"law {name}: log_density disagrees with what draw returns for its own points")
