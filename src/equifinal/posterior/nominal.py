"""Log likelihood, log prior and chi squared at the nominal values that a problem comes with.

Where the noise has a location m and a scale s, chi squared is the sum of ((y - m)/s)^2, on the scale on which the noise
is symmetric. An observation's log density falls from its peak, y = m, by half of that for normal noise, and by its root
for Laplace noise.

Equations are solved much more exactly than for sampling, since other tools are compared with. In models of hundreds of
states that are nothing at first, steps may become too small for that; these are solved as exactly as they can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError
from equifinal.ode import Status
from equifinal.posterior.likelihood import ExperimentLikelihood
from equifinal.posterior.observed import log_densities_and_peaks
from equifinal.posterior.posterior import Posterior
from equifinal.problem.noise import Noise
from equifinal.problem.problem import Problem, SolverSettings

Array = NDArray[np.float64]

FINEST, FLOOR, MOST_STEPS = 1e-9, 1e-4, 200_000  # relative tolerance; absolute one, in terms of it; steps
NORMAL = ("normal", "lognormal", "log2-normal", "log10-normal")
LAPLACE = ("laplace", "log-laplace", "log10-laplace")


class AtNominal(NamedTuple):
    """What a problem is like at its nominal values; chi squared is None where the noise has none.

    Attributes
    ----------
    unsolved
        How the solver ended in the experiments in which it failed.
    impossible
        Experiments that were solved, and have data that the noise cannot give.
    outside
        Parameters that the prior does not allow to be what they are.
    """

    log_likelihood: float
    log_prior: float
    chi_squared: float | None
    unsolved: Mapping[str, Status]
    impossible: tuple[str, ...]
    outside: tuple[str, ...]


def at_nominal(problem: Problem) -> AtNominal | None:
    """Evaluate a problem at its nominal values; None if some are missing, or it cannot be fitted anyway."""
    if any(name not in problem.nominal for name in problem.parameters) or not problem.parameters:
        return None
    try:
        posterior = Posterior(problem)
    except DataError:
        return None
    theta = np.array([[problem.nominal[name] for name in posterior.parameters]], dtype=float)
    total = 0.0
    squares: float | None = 0.0
    unsolved: dict[str, Status] = {}
    impossible: list[str] = []
    for likelihood in posterior.likelihoods:
        name = likelihood.experiment.name
        outputs, status = _solved(likelihood, theta, problem.solver)
        own = float(likelihood.log_likelihood(outputs, likelihood.sums(outputs), theta)[0])
        if status[0]:
            unsolved[name] = Status(int(status[0]))
        elif not own > -math.inf:
            impossible.append(name)
        total += own
        drops = np.subtract(*log_densities_and_peaks(outputs, theta, likelihood.observed)[::-1])
        start = 0
        for entry in likelihood.experiment.observations:
            stop = start + entry.values.size
            part = _squares(entry.noise, drops[start:stop])
            squares = None if squares is None or part is None or entry.censored.any() else squares + part
            start = stop
    if unsolved or impossible or not total < math.inf:
        total = -math.inf
    priors = {name: float(prior.log_density(problem.nominal[name])) for name, prior in problem.priors.items()}
    outside = tuple(name for name, density in priors.items() if density == -math.inf)
    return AtNominal(total, float(posterior.log_prior(theta)[0]), squares, unsolved, tuple(impossible), outside)


def _solved(likelihood: ExperimentLikelihood, theta: Array, own: SolverSettings) -> tuple[Array, NDArray[np.int64]]:
    """Outputs and status, with the finest tolerances at which there is a solution; at last with the problem's own."""
    rtol, most = FINEST, max(own.max_steps, MOST_STEPS)
    while rtol < own.rtol / 2:  # not the same once more
        likelihood.settings = vars(SolverSettings(rtol, min(own.atol, FLOOR * rtol), most, own.method))
        outputs, status = likelihood.outputs(theta)
        if not status[0]:
            return outputs, status
        rtol *= 10
    likelihood.settings = vars(replace(own, max_steps=most))
    return likelihood.outputs(theta)


def _squares(noise: Noise, drops: Array) -> float | None:
    if "relative" in noise.arguments:
        return None
    if noise.family in NORMAL:
        return float(2.0 * drops.sum())
    return float((drops**2).sum()) if noise.family in LAPLACE else None
