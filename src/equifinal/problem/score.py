"""The slope and the information of the log likelihood, from outputs and their sensitivities.

With m_j the output that observation j sees,

    gradient     sum_j (d log p/d m_j) dm_j/dtheta + what the noise arguments add,
    information  sum_j E[(d log p/d m_j)^2] dm_j/dtheta dm_j/dtheta^T + the squared scores of noise arguments:

what Gauss-Newton steps for least squares become when the noise is not Gaussian (Fisher scoring).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.problem.noise import LOGNORMAL, NORMAL, POISSON, STUDENT, log_density

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Expansion(NamedTuple):
    """log L (n,), its gradient (n, d) and information (n, d, d) by theta, solves and failures (n,)."""

    log_likelihood: Array
    gradient: Array
    information: Array
    solves: Indices
    failures: Indices


@compiled
def slope_and_information(
    code: int, y: float, m: float, additive: float, relative: float, shape: float
) -> tuple[float, float]:
    """d log p/dm, and its mean square, for one observation; zeros where the family is not defined."""
    if not math.isfinite(m):
        return 0.0, 0.0
    if code <= STUDENT:
        variance = additive * additive + relative * relative * m * m
        if not variance > 0.0:
            return 0.0, 0.0
        z2 = (y - m) ** 2 / variance
        growth = relative * relative * m / variance  # d log s/dm
        if code == NORMAL:
            return (y - m) / variance + (z2 - 1.0) * growth, 1.0 / variance + 2.0 * growth * growth
        weight = (shape + 1.0) / (shape + z2)
        slope = weight * (y - m) / variance + (weight * z2 - 1.0) * growth
        return slope, ((shape + 1.0) / variance + 2.0 * shape * growth * growth) / (shape + 3.0)
    if not m > 0.0:
        return 0.0, 0.0
    if code == LOGNORMAL:
        precision = 1.0 / (additive * additive)
        return precision * math.log(y / m) / m, precision / (m * m)
    variance = m if code == POISSON else m * (1.0 + shape * m)
    return (y - m) / variance, 1.0 / variance


STEP = 1e-4  # relative, for slopes by noise arguments


@compiled
def expand(outputs, sensitivities, columns, theta, y, where, codes, slots, fixed, gradient, information):
    """Add what one experiment contributes; ``columns`` says which parameter each sensitivity belongs to."""
    lanes = theta.shape[0]
    p = columns.shape[0]
    arguments, row = np.zeros(3), np.empty(p)
    for i in range(lanes):
        for j in range(y.size):
            m = outputs[i, where[j, 1], where[j, 0]]
            for k in range(p):
                row[k] = sensitivities[i, where[j, 1], where[j, 0], k]
            if where[j, 2] >= 0:
                m -= outputs[i, where[j, 2], where[j, 0]]
                for k in range(p):
                    row[k] -= sensitivities[i, where[j, 2], where[j, 0], k]
            for k in range(3):
                arguments[k] = theta[i, slots[j, k]] if slots[j, k] >= 0 else fixed[j, k]
            slope, weight = slope_and_information(codes[j], y[j], m, arguments[0], arguments[1], arguments[2])
            for k in range(p):
                gradient[i, columns[k]] += slope * row[k]
                for l in range(p):  # noqa: E741
                    information[i, columns[k], columns[l]] += weight * row[k] * row[l]
            for k in range(3):
                at = slots[j, k]
                if at >= 0:
                    own = arguments[k]
                    arguments[k] = own * (1.0 + STEP)
                    above = log_density(codes[j], y[j], m, arguments[0], arguments[1], arguments[2])
                    arguments[k] = own * (1.0 - STEP)
                    below = log_density(codes[j], y[j], m, arguments[0], arguments[1], arguments[2])
                    arguments[k] = own
                    score = (above - below) / (2.0 * STEP * own)
                    if math.isfinite(score):
                        gradient[i, at] += score
                        information[i, at, at] += score * score
