"""What the experiments as they really are determine: the rank of their sensitivities at random parameters.

An analysis assumes inputs, doses and switches that are rich enough, and that moments are seen at which something
happens. The real ones may be poorer; if they are richer, analysis and solver contradict each other, which is told.
Here all experiments are solved with sensitivities, at a tight tolerance and at dense times, and the singular values of
the whole are counted, all columns having the same size. Parameters come from the middle of the prior, at several random
points, and the largest rank counts: randomness can only make it too small.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.errors import EquifinalError, IdentifiabilityError
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.child import Ended, in_child
from equifinal.identifiability.verdicts import (
    LOCALLY,
    NOT,
    NOTHING,
    NUMBERS,
    OUT_OF_TIME,
    UNKNOWN,
    Design,
    Identifiability,
    NoExactAnalysis,
)
from equifinal.language.expression import Expression, Name, evaluate, names, to_text
from equifinal.language.functions import call_on_arrays
from equifinal.language.lowering import without_conditions
from equifinal.posterior.likelihood import known_inputs
from equifinal.problem.data import Experiment
from equifinal.problem.problem import Problem

Array = NDArray[np.float64]

POINTS, TIMES = 8, 150
MIDDLE = 0.15, 0.85  # of the prior: extreme parameters have extreme sensitivities
TIGHT, LOOSE = 1e-12, 1e-11  # relative tolerances; the difference tells how exact the sensitivities are
MARGIN = 30.0  # times what cannot be resolved
LEAST = 1e-11  # error of singular values of equal columns, at least
STEEPER = 2.0  # by this power the step to singular values that do not count must be longer than all before
FIXED = 1e-3  # of a direction in which nothing changes: less does not count as moving
CERTAIN = 1e300  # gap where no singular value is left out, or none counts
STEP = 1e-6  # of parameters, relative, for slopes of given functions
NEXT_TO = 1e-7  # of the time: just before and just after


@dataclass(frozen=True)
class _Rank:
    rank: int
    gap: float
    theta: Array
    scale: Array  # of the columns, by parameters relative to their values
    directions: Array  # in which no output changes, in parameters so scaled, a row each
    sizes: Array  # singular values, in units of what cannot be resolved

    def moves(self, slope: Array) -> bool:
        """Whether a function with this gradient changes in one of these directions."""
        scaled = slope * self.theta / self.scale
        size = float(np.linalg.norm(scaled))
        return size > 0 and float(np.linalg.norm(self.directions @ scaled)) > FIXED * size


def analysed(
    problem: Problem, *, time_limit: float = 60.0, effort: float = 3.0, seed: int = 0, examine: bool = True
) -> Identifiability:
    """What the models of a problem determine, and whether its experiments as they are determine as much.

    Models that call functions without derivatives, such as ``max(x, 0)``, or that are 0/0 where they start, have no
    exact analysis. Each of their parameters is then a combination of its own, and verdicts come from numbers alone.
    """
    models = [experiment.analysed for experiment in problem.experiments]
    end = time.monotonic() + time_limit
    try:
        found = analyse(models, time_limit=time_limit, effort=effort, seed=seed)
    except NoExactAnalysis as error:
        return _from_numbers(problem, error, seed, end)
    return examined(problem, found, seed=seed, end=end) if examine else found


def examined(problem: Problem, analysis: Identifiability, *, seed: int = 0, end: float = inf) -> Identifiability:
    """The analysis with what the experiments really determine, where that may be less, and verdicts it left open.

    If there is no time for that before `end`, by the monotonic clock, the analysis says so.
    """
    models = [experiment.analysed for experiment in problem.experiments]
    if all(model.is_plain and not model.inputs for model in models):
        return analysis
    best, in_time = _rank_until(end, problem, seed)
    if not in_time:
        return replace(analysis, unfinished=OUT_OF_TIME)
    if best is None:
        return analysis
    theta = tuple(analysis.parameters)
    values = {name: float(v) for name, v in zip(theta, best.theta, strict=True)}
    constants = {n: float(v) for n, v in {**models[0].constants, **analysis.constants}.items()}

    def moves(function: Expression) -> bool:
        return best.moves(_slope(function, theta, values, constants))

    verdicts = dict(analysis.parameters)
    if best.gap > MARGIN:
        for name, word in verdicts.items():
            if word == UNKNOWN:
                verdicts[name] = NOT if moves(Name(name)) else LOCALLY
    open_ones = any(word == UNKNOWN for word in analysis.parameters.values())
    functions: dict[str, Expression] = {n: Name(n) for n, word in verdicts.items() if word != NOT}
    functions |= {q: e for q, e in problem.quantities.items() if analysis.quantities.get(q) not in (None, NOT, UNKNOWN)}
    unseen = tuple(name for name, function in functions.items() if moves(function)) if best.gap > MARGIN else ()
    given = () if analysis.finer else tuple(c for c in analysis.combinations if not isinstance(c, Name))
    combinations = tuple(to_text(c) for c in given if moves(c)) if best.gap > MARGIN else ()
    expected = len(theta) - analysis.fibre_dimension
    excess = 0.0 if open_ones or best.rank <= expected else float(best.sizes[expected])
    design = Design(best.rank, best.rank if open_ones else expected, unseen, combinations, best.gap, POINTS, excess)
    dimension = len(theta) - best.rank if open_ones and best.gap > MARGIN else analysis.fibre_dimension
    return replace(analysis, parameters=verdicts, design=design, fibre_dimension=dimension)


def undecided(problem: Problem, reason: Exception) -> Identifiability:
    """What is said of a problem of which no analysis can be made: each parameter is a combination of its own."""
    theta = _parameters(problem)
    return Identifiability(
        parameters=dict.fromkeys(theta, UNKNOWN),
        quantities=dict.fromkeys(problem.quantities, UNKNOWN),
        alternatives={},
        combinations=tuple(map(Name, theta)),
        constants={},
        fibre_dimension=0,
        fibre_degree=0,
        scope="local",
        complete=True,
        freedoms=(),
        advice=(),
        error_probability=0.0,
        seconds=0.0,
        certificate={"method": "nothing", "reason": str(reason)},
        finer=True,
        assumptions=(NOTHING,),
    )


def _from_numbers(problem: Problem, reason: NoExactAnalysis, seed: int, end: float) -> Identifiability:
    """Verdicts from the rank alone; every parameter is a combination of its own."""
    best, in_time = _rank_until(end, problem, seed)
    if not in_time:
        raise IdentifiabilityError(f"{reason}; and its sensitivities were not computed within the time limit") from None
    if best is None:
        raise IdentifiabilityError(f"{reason}; and its sensitivities could not be computed either") from None
    theta = _parameters(problem)
    moving = np.linalg.norm(best.directions, axis=0) > FIXED
    clear = best.gap > MARGIN
    words = {n: UNKNOWN if not clear else NOT if m else LOCALLY for n, m in zip(theta, moving, strict=True)}
    return replace(
        undecided(problem, reason),
        parameters=words,
        fibre_dimension=len(theta) - best.rank,
        certificate={"method": "the rank of sensitivities, in numbers alone", "reason": str(reason)},
        assumptions=(NUMBERS,),
        design=Design(best.rank, best.rank, (), (), best.gap, POINTS),
    )


def _parameters(problem: Problem) -> tuple[str, ...]:
    """Of the models, in the order in which they appear."""
    return tuple(dict.fromkeys(n for e in problem.experiments for n in e.analysed.parameters))


# --- the rank ---


def _rank_until(end: float, problem: Problem, seed: int) -> tuple[_Rank | None, bool]:
    """The rank, and whether it was found in time; solves of any length can be ended in a process of their own."""
    if end == inf:
        return _rank(problem, seed), True
    left = end - time.monotonic()
    try:
        return in_child(lambda _: _rank(problem, seed), left) if left > 0 else (None, False)
    except Ended:  # from outside, perhaps for want of memory
        return None, True


def _rank(problem: Problem, seed: int) -> _Rank | None:
    """The largest rank at random parameters; None where nothing can be solved, or nobody says until when to look."""
    theta = _parameters(problem)
    if not theta or any(name not in problem.priors for name in theta):
        return None
    spans = [_span(experiment) for experiment in problem.experiments]
    if any(span is None or any(u not in e.inputs for u in e.model.inputs) for span, e in _pairs(problem, spans)):
        return None
    rng = np.random.default_rng(seed)
    draws = np.column_stack([problem.priors[n].quantile(rng.uniform(*MIDDLE, POINTS)) for n in theta])
    try:
        tight = [_sensitivities(e, theta, draws, span, TIGHT) for span, e in _pairs(problem, spans)]
        loose = [_sensitivities(e, theta, draws, span, LOOSE) for span, e in _pairs(problem, spans)]
    except EquifinalError:
        return None
    best: _Rank | None = None
    for k, point in enumerate(draws):
        rows, others = (np.concatenate([s[k] for s in found]) for found in (tight, loose))
        if not (np.isfinite(rows).all() and np.isfinite(others).all()):
            continue
        jumps = [row for e in problem.experiments for row in _shown_moments(e, theta, point)]
        size = np.linalg.norm(rows, axis=0)
        unseen = size <= LEAST * size.max(initial=0.0)
        scale = np.where(unseen, 1.0, size)
        scaled = np.where(unseen, 0.0, rows / scale)
        blur = float(np.linalg.norm(np.where(unseen, 0.0, (rows - others) / scale), 2))
        shown = [row / scale / np.linalg.norm(row / scale) for row in jumps if row.any()]
        found = _counted(np.concatenate([scaled, *(row[None] for row in shown)]), blur, scale, point)
        if best is None or (found.rank, found.gap) > (best.rank, best.gap):
            best = found
    return best


def _pairs(problem: Problem, spans: Sequence[Any]) -> list[tuple[Any, Experiment]]:
    return list(zip(spans, problem.experiments, strict=True))


def _counted(scaled: Array, blur: float, scale: Array, point: Array) -> _Rank:
    width = scaled.shape[1]
    _, w, v = np.linalg.svd(scaled, full_matrices=True)
    w = np.concatenate([w, np.zeros(max(0, width - w.size))])[:width] / max(w[0], 1e-300)
    noise = max(LEAST, blur)
    rank = int((w > MARGIN * noise).sum())
    if rank in (0, width):
        return _Rank(rank, CERTAIN, point, scale, v[rank:], w / noise)
    # singular values may well fall by such steps: the last one must be far longer
    step = max((w[i] / w[i + 1] for i in range(rank - 1)), default=1.0)
    gap = MARGIN * w[rank - 1] / max(w[rank], noise) / max(MARGIN, step**STEEPER)
    return _Rank(rank, float(gap), point, scale, v[rank:], w / noise)


def _span(experiment: Experiment) -> tuple[float, float] | None:
    """From when until when to look at an experiment: over its data, or as long as something happens."""
    times = [float(t) for t in experiment.times()]
    if not times:
        model = without_conditions(experiment.model)
        constants = {n: float(v) for n, v in model.constants.items()}
        fixed = [event.time for event in model.jumps if set(names(event.time)) <= set(constants)]
        times = [1.5 * float(evaluate(time, constants, float, call_on_arrays)) for time in fixed]
        times += [float(t) for series in experiment.inputs.values() for t in series.times]
    last = max(times, default=0.0)
    first = min(0.0, *times) if experiment.model.onset is not None and times else 0.0
    return (first, last) if last > first else None


def _sensitivities(
    experiment: Experiment, theta: tuple[str, ...], draws: Array, span: tuple[float, float], rtol: float
) -> Array:
    """Of every output, each output of the same size, by parameters relative to their values: (points, rows, theta)."""
    model = experiment.analysed
    used = [n for n in theta if n in model.parameters]
    columns = [theta.index(n) for n in used]
    system = ode.compile_system(model, tuple(used))
    constants = np.tile([float(v) for v in model.constants.values()], (len(draws), 1))
    arguments = np.concatenate([draws[:, columns], constants], axis=1)
    times = np.unique(np.concatenate([np.linspace(*span, TIMES), experiment.times()]))
    found = ode.simulate(
        system,
        arguments,
        times,
        inputs=known_inputs(experiment),
        rtol=rtol,
        atol=1e-3 * rtol,
        max_steps=200_000,
        sensitivities=True,
        wanted=np.zeros((len(times), len(model.outputs)), dtype=bool),
    )
    assert found.sensitivities is not None
    told = np.where(np.isfinite(found.sensitivities), found.sensitivities, 0.0)  # where it is undefined: nothing
    slopes = np.where((found.status == 0)[:, None, None, None], told, np.nan)
    slopes = slopes * draws[:, None, None, columns]
    size = np.abs(slopes).max(axis=(1, 3), keepdims=True)
    rows = (slopes / np.where(size > 0, size, 1.0)).reshape(len(draws), -1, len(used))
    whole = np.zeros((*rows.shape[:2], len(theta)))
    whole[:, :, columns] = rows
    return whole


def _shown_moments(experiment: Experiment, theta: tuple[str, ...], point: Array) -> list[Array]:
    """Slopes of moments at which an output jumps: no sensitivity shows them, but a jump does."""
    model = without_conditions(experiment.model)
    values = dict(zip(theta, point.tolist(), strict=True))
    constants = {n: float(v) for n, v in model.constants.items()}
    span = _span(experiment)
    assert span is not None
    rows = []
    for event in model.jumps:
        if not set(names(event.time)) & set(theta):
            continue
        time = float(evaluate(event.time, {**constants, **values}, float, call_on_arrays))
        near = NEXT_TO * max(abs(time), span[1] - span[0])
        if span[0] < time - near and time + near < span[1] and _jumps(experiment, values, time, near):
            rows.append(_slope(event.time, theta, values, constants) * point)
    return rows


def _jumps(experiment: Experiment, values: Mapping[str, float], time: float, near: float) -> bool:
    model = experiment.analysed
    system = ode.compile_system(model, model.parameters)
    arguments = [values[n] for n in model.parameters] + [float(v) for v in model.constants.values()]
    times = np.array([time - 2 * near, time - near, time + near])
    inputs = known_inputs(experiment)
    found = ode.simulate(system, np.array([arguments]), times, inputs=inputs, rtol=TIGHT, atol=1e-3 * TIGHT)
    before, at, after = found.outputs[0]
    change = np.abs(after - at) - 10 * np.abs(at - before)
    return bool(found.status[0] == 0 and (change > 1e-5 * np.abs(found.outputs[0]).max(axis=0)).any())


def _slope(
    function: Expression, theta: tuple[str, ...], values: Mapping[str, float], constants: Mapping[str, float]
) -> Array:
    """The gradient of a function of parameters, by differences."""

    def value(at: Mapping[str, float]) -> float:
        return float(evaluate(function, {**constants, **at}, float, call_on_arrays))

    slope = np.zeros(len(theta))
    for i, name in enumerate(theta):
        if name in names(function):
            step = STEP * max(abs(values[name]), 1e-8)
            high, low = ({**values, name: values[name] + s} for s in (step, -step))
            slope[i] = (value(high) - value(low)) / (2 * step)
    return slope
