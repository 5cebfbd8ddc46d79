"""Log likelihood, log prior and chi squared at the nominal values that a problem comes with.

Where the noise has a location m and a scale s, chi squared is the sum of ((y - m)/s)^2, on the scale on which the noise
is symmetric. An observation's log density falls from its peak, y = m, by half of that for normal noise, and by its root
for Laplace noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError
from equifinal.posterior.observed import log_densities_and_peaks
from equifinal.posterior.posterior import Posterior
from equifinal.problem.noise import Noise
from equifinal.problem.problem import Problem, SolverSettings

Array = NDArray[np.float64]

FINE = SolverSettings(rtol=1e-9, atol=1e-13, max_steps=200_000)  # other tools are compared with, not sampled
NORMAL = ("normal", "lognormal", "log2-normal", "log10-normal")
LAPLACE = ("laplace", "log-laplace", "log10-laplace")


class AtNominal(NamedTuple):
    """What a problem is like at its nominal values; chi squared is None where the noise has none."""

    log_likelihood: float
    log_prior: float
    chi_squared: float | None


def at_nominal(problem: Problem) -> AtNominal | None:
    """Evaluate a problem at its nominal values; None if some are missing, or it cannot be fitted anyway."""
    if any(name not in problem.nominal for name in problem.parameters) or not problem.parameters:
        return None
    finer = SolverSettings(
        rtol=min(problem.solver.rtol, FINE.rtol),
        atol=min(problem.solver.atol, FINE.atol),
        max_steps=max(problem.solver.max_steps, FINE.max_steps),
        method=problem.solver.method,
    )
    try:
        posterior = Posterior(replace(problem, solver=finer))
    except DataError:
        return None
    theta = np.array([[problem.nominal[name] for name in posterior.parameters]], dtype=float)
    found = posterior.outputs(theta)
    log_likelihood = float(posterior.log_likelihood_of(found, theta)[0])
    squares: float | None = 0.0
    for likelihood, outputs in zip(posterior.likelihoods, found.values, strict=True):
        drops = np.subtract(*log_densities_and_peaks(outputs, theta, likelihood.observed)[::-1])
        start = 0
        for entry in likelihood.experiment.observations:
            stop = start + entry.values.size
            own = _squares(entry.noise, drops[start:stop])
            squares = None if squares is None or own is None or entry.censored.any() else squares + own
            start = stop
    return AtNominal(log_likelihood, float(posterior.log_prior(theta)[0]), squares)


def _squares(noise: Noise, drops: Array) -> float | None:
    if "relative" in noise.arguments:
        return None
    if noise.family in NORMAL:
        return float(2.0 * drops.sum())
    return float((drops**2).sum()) if noise.family in LAPLACE else None
