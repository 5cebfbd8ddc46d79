"""The observations of one experiment as an array, and the loops over it: log likelihood, its bound, its expansion.

With m_j the output that observation j sees,

and v_j = (m_j, a_j) it and the arguments of its noise, each of them a number, a parameter or computed by the solver,

    gradient     sum_j dv_j/dtheta^T d log p/dv_j,
    information  sum_j dv_j/dtheta^T E[d log p/dv_j d log p/dv_j^T] dv_j/dtheta:

what Gauss-Newton steps for least squares become when the noise is not Gaussian (Fisher scoring).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.problem.data import Experiment
from equifinal.problem.noise import text_of
from equifinal.problem.noise_families import (
    bound,
    expansion,
    log_beyond,
    log_density,
    of_output,
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
        ("side", np.int64),  # 0, or -1 and 1 where y is a limit below or above which the observation lies
        ("output", np.int64),
        ("time", np.int64),
        ("previous", np.int64),  # time since when an increment counts; -1: not an increment
        ("family", np.int64),  # of the noise, by its code
        ("slots", np.int64, ARGUMENTS),  # for each noise argument the parameter that it is, or -1,
        ("sources", np.int64, ARGUMENTS),  # the column of the solver's outputs that it is, or -1,
        ("fixed", np.float64, ARGUMENTS),  # or else the number that it is,
        ("units", np.float64, ARGUMENTS),  # and what parameters and columns are multiplied by
        ("varies", np.bool_),  # whether some argument is no number
        ("end", np.int64),  # of the stretch of observations with the same noise
        ("sum", np.int64),  # which, if one sum is all that their density needs, or -1
    ],
    align=True,
)


def observed(experiment: Experiment, parameters: Sequence[str], times: Array) -> Observed:
    """Everything that was observed, in the order of the experiment, with outputs at these times."""
    found = np.zeros(experiment.size, OBSERVATION)
    outputs, start = experiment.solved.outputs, 0
    for entry in experiment.observations:
        own, noise = slice(start, start + entry.values.size), entry.noise
        rows = found[own]
        rows["y"], rows["log_y"] = entry.values, [noise.record.of_data(y) for y in entry.values]
        rows["output"], rows["time"] = outputs.index(entry.output), np.searchsorted(times, entry.times)
        rows["previous"] = np.where(np.isnan(entry.previous), -1, np.searchsorted(times, entry.previous))
        rows["side"], rows["family"] = entry.censored, noise.code
        rows["sum"] = np.where(entry.censored == 0, noise.sum, -1)
        rows["slots"], rows["sources"], rows["units"] = -1, -1, 1.0
        for k, (value, rule) in enumerate(zip(noise.values, noise.record.arguments, strict=True)):
            rows["units"][:, k] = rule.unit
            if isinstance(value, str):
                rows["slots"][:, k] = parameters.index(value)
            elif isinstance(value, (float, tuple)):
                rows["fixed"][:, k] = np.multiply(value, rule.unit)
            else:
                rows["sources"][:, k] = outputs.index(text_of(value))
        start = own.stop
    found["varies"] = (found["slots"] >= 0).any(axis=1) | (found["sources"] >= 0).any(axis=1)
    solved = np.where((found["sources"] >= 0).any(axis=1), np.arange(len(found)), -1)  # in every row another number
    laws = np.column_stack([found["family"], found["side"], found["slots"], found["fixed"], found["units"], solved])
    borders = np.flatnonzero((laws[1:] != laws[:-1]).any(axis=1)) + 1
    for start, end in pairwise([0, *borders, len(found)]):
        found["end"][start:end] = end
        if end == start + 1:
            found["sum"][start] = -1
    return found


@compiled
def _output(outputs, lane, seen):
    """The output that an observation sees, or its increment."""
    m = outputs[lane, seen.time, seen.output]
    return m - outputs[lane, seen.previous, seen.output] if seen.previous >= 0 else m


@compiled
def _numbers(seen):
    """The noise arguments, if all of them are numbers."""
    fixed = seen.fixed
    return fixed[0], fixed[1], fixed[2]


@compiled
def _arguments(seen, outputs, lane, theta, row):
    """The noise arguments, of which some are parameters or computed by the solver."""
    slots, sources, fixed, units = seen.slots, seen.sources, seen.fixed, seen.units
    return (
        _argument(0, slots, sources, fixed, units, seen.time, outputs, lane, theta, row),
        _argument(1, slots, sources, fixed, units, seen.time, outputs, lane, theta, row),
        _argument(2, slots, sources, fixed, units, seen.time, outputs, lane, theta, row),
    )


@compiled
def _argument(k, slots, sources, fixed, units, time, outputs, lane, theta, row):
    if slots[k] >= 0:
        return units[k] * theta[row, slots[k]]
    return units[k] * outputs[lane, time, sources[k]] if sources[k] >= 0 else fixed[k]


@compiled
def sums(outputs: Array, observed: Observed) -> Array:
    """What stretches need of the outputs and of the data, where that is a sum of each: (lanes, stretches, 2)."""
    stretches, start = 0, 0
    while start < observed.size:
        stretches, start = stretches + 1, observed[start].end
    found = np.zeros((outputs.shape[0], stretches, 2))
    for lane in range(outputs.shape[0]):
        start = 0
        for k in range(stretches):
            first = observed[start]
            if first.sum >= 0:
                terms, log_y = 0.0, 0.0
                for j in range(start, first.end):
                    seen = observed[j]
                    terms += sum_term(first.sum, seen.y, seen.log_y, _output(outputs, lane, seen))
                    log_y += seen.log_y
                found[lane, k, 0], found[lane, k, 1] = terms, log_y
            start = first.end
    return found


@compiled
def log_likelihood(outputs: Array, summed: Array, theta: Array, observed: Observed, pointwise: Array) -> Array:
    """The log likelihood of each row of theta.

    Parameters
    ----------
    outputs
        (lanes, times, outputs), from the solver.
    summed
        Their `sums`.
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
        for k in range(summed.shape[1]):
            first = observed[start]
            if first.sum >= 0 and not keep:
                terms, log_y = summed[lane, k, 0], summed[lane, k, 1]
                for i in range(lane * each, (lane + 1) * each):
                    a = _arguments(first, outputs, lane, theta, i) if first.varies else _numbers(first)
                    total[i] += sum_log_density(first.sum, terms, log_y, first.end - start, a)
            else:
                for j in range(start, first.end):
                    m[j] = _output(outputs, lane, observed[j])
                    log_m[j] = of_output(first.family, m[j])
                for i in range(lane * each, (lane + 1) * each):
                    a = _arguments(first, outputs, lane, theta, i) if first.varies else _numbers(first)
                    for j in range(start, first.end):
                        seen = observed[j]
                        if first.side == 0:
                            value = log_density(first.family, seen.y, seen.log_y, m[j], log_m[j], a)
                        else:
                            value = log_beyond(first.family, seen.y, seen.log_y, first.side, m[j], log_m[j], a)
                        total[i] += value
                        if keep:
                            pointwise[i, j] = value
            start = first.end
    return total


@compiled
def log_densities_and_peaks(outputs: Array, theta: Array, observed: Observed) -> tuple[Array, Array]:
    """The log density of each observation at the first row of theta, and what it would be if the output hit it."""
    found, peaks = np.empty(observed.size), np.empty(observed.size)
    for j in range(observed.size):
        seen = observed[j]
        m = _output(outputs, 0, seen)
        a = _arguments(seen, outputs, 0, theta, 0) if seen.varies else _numbers(seen)
        found[j] = log_density(seen.family, seen.y, seen.log_y, m, of_output(seen.family, m), a)
        peaks[j] = log_density(seen.family, seen.y, seen.log_y, seen.y, of_output(seen.family, seen.y), a)
    return found, peaks


@compiled
def log_likelihood_bound(outputs: Array, theta: Array, observed: Observed) -> Array:
    """What the log likelihood of each row cannot exceed, whatever the model's outputs are.

    ``outputs`` are those that noise arguments come from; with none (no lanes), these arguments could be anything.
    """
    total = np.zeros(theta.shape[0])
    known = outputs.shape[0] > 0
    for i in range(theta.shape[0]):
        for j in range(observed.size):
            seen = observed[j]
            if seen.side != 0:  # a probability
                continue
            if seen.varies and not known and max(seen.sources[0], seen.sources[1], seen.sources[2]) >= 0:
                total[i] = np.inf
            else:
                a = _arguments(seen, outputs, i, theta, i) if seen.varies else _numbers(seen)
                total[i] += bound(seen.family, seen.y, seen.log_y, a)
    return total


@compiled
def expand(
    outputs: Array,
    sensitivities: Array,
    columns: NDArray[np.int64],
    theta: Array,
    observed: Observed,
    gradient: Array,
    information: Array,
) -> None:
    """Add what one experiment contributes; ``columns`` says which parameter each sensitivity belongs to."""
    p = columns.shape[0]
    row, own = np.empty(p), np.empty((p, p))  # half of the information is enough, and in one piece is quicker
    score, inner = np.empty(1 + ARGUMENTS), np.empty((1 + ARGUMENTS, 1 + ARGUMENTS))
    slopes = np.zeros((1 + ARGUMENTS, theta.shape[1]))  # of an output and the arguments, by theta
    for i in range(theta.shape[0]):
        own[:] = 0.0
        for j in range(observed.size):
            seen = observed[j]
            m = _output(outputs, i, seen)
            a = _arguments(seen, outputs, i, theta, i) if seen.varies else _numbers(seen)
            log_m = of_output(seen.family, m)
            width = 1 + ARGUMENTS if seen.varies else 1
            if not expansion(seen.family, seen.y, seen.log_y, seen.side, m, log_m, a, width, score, inner):
                continue
            for k in range(p):
                row[k] = sensitivities[i, seen.time, seen.output, k]
                if seen.previous >= 0:
                    row[k] -= sensitivities[i, seen.previous, seen.output, k]
            slope, weight = score[0], inner[0, 0]
            for k in range(p):
                gradient[i, columns[k]] += slope * row[k]
                weighted = weight * row[k]
                for l in range(k + 1):  # noqa: E741
                    own[k, l] += weighted * row[l]
            if seen.varies:
                _add_arguments(i, seen, sensitivities, columns, row, score, inner, slopes, gradient, information)
        for k in range(p):
            for l in range(p):  # noqa: E741
                information[i, columns[k], columns[l]] += own[max(k, l), min(k, l)]


@compiled
def _add_arguments(i, seen, sensitivities, columns, row, score, inner, slopes, gradient, information):
    """What the arguments of one observation add; ``row`` is the slope of its output."""
    slopes[:] = 0.0
    for k in range(columns.shape[0]):
        slopes[0, columns[k]] = row[k]
    for a in range(ARGUMENTS):
        if seen.slots[a] >= 0:
            slopes[1 + a, seen.slots[a]] = seen.units[a]
        elif seen.sources[a] >= 0:
            for k in range(columns.shape[0]):
                slopes[1 + a, columns[k]] = seen.units[a] * sensitivities[i, seen.time, seen.sources[a], k]
    d = slopes.shape[1]
    for a in range(1 + ARGUMENTS):
        for b in range(1 + ARGUMENTS):
            if a + b == 0 or inner[a, b] == 0.0:
                continue
            for k in range(d):
                weighted = inner[a, b] * slopes[a, k]
                if weighted != 0.0:
                    for l in range(d):  # noqa: E741
                        information[i, k, l] += weighted * slopes[b, l]
    for a in range(1, 1 + ARGUMENTS):
        for k in range(d):
            gradient[i, k] += score[a] * slopes[a, k]
