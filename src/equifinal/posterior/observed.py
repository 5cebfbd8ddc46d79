"""The observations of one experiment as an array, and the loops over it: log likelihood, its bound, its expansion.

With m_j the output that observation j sees,

    gradient     sum_j (d log p/d m_j) dm_j/dtheta + what the noise arguments add,
    information  sum_j E[(d log p/d m_j)^2] dm_j/dtheta dm_j/dtheta^T + the squared scores of noise arguments:

what Gauss-Newton steps for least squares become when the noise is not Gaussian (Fisher scoring).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.problem.data import Experiment
from equifinal.problem.noise_families import (
    bound,
    log_density,
    of_output,
    slope_and_information,
    sum_log_density,
    sum_term,
)

Array = NDArray[np.float64]
Observed = NDArray[np.void]

ARGUMENTS = 3  # of a noise family, at the most
OBSERVATION = np.dtype(
    [
        ("y", np.float64),
        ("log_y", np.float64),  # what densities need of y alone
        ("output", np.int64),
        ("time", np.int64),
        ("previous", np.int64),  # time since when an increment counts; -1: not an increment
        ("family", np.int64),  # of the noise, by its code
        ("slots", np.int64, ARGUMENTS),  # for each noise argument the parameter that it is, or -1 ...
        ("fixed", np.float64, ARGUMENTS),  # ... and the number that it is
        ("end", np.int64),  # of the stretch of observations with the same noise
        ("summed", np.bool_),  # whether their density needs only a sum
    ],
    align=True,
)
STEP = 1e-4  # relative, for slopes by noise arguments


def observed(experiment: Experiment, parameters: Sequence[str], times: Array) -> Observed:
    """Everything that was observed, in the order of the experiment, with outputs at these times."""
    found = np.zeros(experiment.size, OBSERVATION)
    outputs, start = experiment.model.outputs, 0
    for entry in experiment.observations:
        own, noise = slice(start, start + entry.values.size), entry.noise
        rows = found[own]
        rows["y"], rows["log_y"] = entry.values, [noise.record.of_data(y) for y in entry.values]
        rows["output"], rows["time"] = outputs.index(entry.output), np.searchsorted(times, entry.times)
        rows["previous"] = np.where(np.isnan(entry.previous), -1, np.searchsorted(times, entry.previous))
        rows["family"], rows["slots"], rows["summed"] = noise.code, -1, noise.sums
        for k, value in enumerate(noise.values):
            if isinstance(value, str):
                rows["slots"][:, k] = parameters.index(value)
            else:
                rows["fixed"][:, k] = value
        start = own.stop
    laws = np.column_stack([found["family"], found["slots"], found["fixed"]])
    borders = np.flatnonzero((laws[1:] != laws[:-1]).any(axis=1)) + 1
    for start, end in pairwise([0, *borders, len(found)]):
        found["end"][start:end] = end
        found["summed"][start:end] &= end > start + 1
    return found


@compiled
def _output(outputs, lane, seen):
    """The output that an observation sees, or its increment."""
    m = outputs[lane, seen.time, seen.output]
    return m - outputs[lane, seen.previous, seen.output] if seen.previous >= 0 else m


@compiled
def _argument(slot, number, theta, row):
    return theta[row, slot] if slot >= 0 else number


@compiled
def _arguments(seen, theta, row):
    slots, fixed = seen.slots, seen.fixed
    return (
        _argument(slots[0], fixed[0], theta, row),
        _argument(slots[1], fixed[1], theta, row),
        _argument(slots[2], fixed[2], theta, row),
    )


@compiled
def log_likelihood(outputs: Array, theta: Array, observed: Observed, pointwise: Array) -> Array:
    """The log likelihood of each row of theta.

    Parameters
    ----------
    outputs
        (lanes, times, outputs), from the solver.
    theta
        (rows, parameters): one row for each lane, or several that have its outputs in common.
    pointwise
        (rows, observations) to be filled, or of size zero.
    """
    rows = theta.shape[0]
    each = rows // max(1, outputs.shape[0])
    total, m, log_m = np.zeros(rows), np.empty(observed.size), np.empty(observed.size)
    keep = pointwise.size > 0
    for lane in range(outputs.shape[0]):
        start = 0
        while start < observed.size:
            first = observed[start]
            summed = first.summed and not keep
            terms, log_y = 0.0, 0.0
            for j in range(start, first.end):
                seen = observed[j]
                m[j] = _output(outputs, lane, seen)
                if summed:
                    terms += sum_term(first.family, seen.y, seen.log_y, m[j])
                    log_y += seen.log_y
                else:
                    log_m[j] = of_output(first.family, m[j])
            if summed:
                for i in range(lane * each, (lane + 1) * each):
                    a = _arguments(first, theta, i)
                    total[i] += sum_log_density(first.family, terms, log_y, first.end - start, a)
            else:
                for i in range(lane * each, (lane + 1) * each):
                    a = _arguments(first, theta, i)
                    for j in range(start, first.end):
                        seen = observed[j]
                        value = log_density(first.family, seen.y, seen.log_y, m[j], log_m[j], a)
                        total[i] += value
                        if keep:
                            pointwise[i, j] = value
            start = first.end
    return total


@compiled
def log_likelihood_bound(theta: Array, observed: Observed) -> Array:
    """What the log likelihood of each row cannot exceed, whatever the outputs are."""
    total = np.zeros(theta.shape[0])
    for i in range(theta.shape[0]):
        for j in range(observed.size):
            seen = observed[j]
            total[i] += bound(seen.family, seen.y, seen.log_y, _arguments(seen, theta, i))
    return total


@compiled
def expand(outputs, sensitivities, columns, theta, observed, gradient, information):
    """Add what one experiment contributes; ``columns`` says which parameter each sensitivity belongs to."""
    p = columns.shape[0]
    row, own = np.empty(p), np.empty((p, p))  # half of the information is enough, and in one piece is quicker
    for i in range(theta.shape[0]):
        own[:] = 0.0
        for j in range(observed.size):
            seen = observed[j]
            m, a = _output(outputs, i, seen), _arguments(seen, theta, i)
            log_m = of_output(seen.family, m)
            for k in range(p):
                row[k] = sensitivities[i, seen.time, seen.output, k]
                if seen.previous >= 0:
                    row[k] -= sensitivities[i, seen.previous, seen.output, k]
            slope, weight = slope_and_information(seen.family, seen.y, m, a)
            for k in range(p):
                gradient[i, columns[k]] += slope * row[k]
                weighted = weight * row[k]
                for l in range(k + 1):  # noqa: E741
                    own[k, l] += weighted * row[l]
            for k in range(ARGUMENTS):
                at = seen.slots[k]
                if at >= 0:
                    above = log_density(seen.family, seen.y, seen.log_y, m, log_m, _moved(a, k, 1.0 + STEP))
                    below = log_density(seen.family, seen.y, seen.log_y, m, log_m, _moved(a, k, 1.0 - STEP))
                    score = (above - below) / (2.0 * STEP * a[k])
                    if math.isfinite(score):
                        gradient[i, at] += score
                        information[i, at, at] += score * score
        for k in range(p):
            for l in range(p):  # noqa: E741
                information[i, columns[k], columns[l]] += own[max(k, l), min(k, l)]


@compiled
def _moved(a, k, factor):
    """The arguments, one of them by a factor."""
    return (
        a[0] * factor if k == 0 else a[0],
        a[1] * factor if k == 1 else a[1],
        a[2] * factor if k == 2 else a[2],
    )
