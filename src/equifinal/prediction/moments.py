"""When something happens to a model, and what: additions to states, as doses are, and levels that change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.language.expression import Expression, Name, Sum, evaluate, names
from equifinal.language.functions import call_on_arrays
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Model

Array = NDArray[np.float64]


class Moment(NamedTuple):
    """One thing that happens at a time.

    Attributes
    ----------
    time
        When; the median over the draws.
    adds
        Whether something is added, as by a dose, or else changed to a new value.
    name
        The state or level that this happens to; empty for an onset and for conditions on time.
    value
        How much is added, or the new value; the median over the draws, NaN where it depends on states.
    """

    time: float
    adds: bool
    name: str = ""
    value: float = math.nan


def moments(model: Model, parameters: Sequence[str], theta: Array, grid: Array) -> tuple[Moment, ...]:
    """When events, conditions on time and an onset act, within the times of a grid."""
    lowered = without_conditions(model)
    values: dict[str, Any] = dict(zip(parameters, theta.T, strict=True))
    values |= {name: float(value) for name, value in model.constants.items()}
    known = {*model.states, *model.levels}
    found = set()
    for event in lowered.jumps:
        time = _median(event.time, values)
        for name, value in event.sets.items():
            adds = isinstance(value, Sum) and value.terms[0] == Name(name)
            amount = _median(value, values | {name: 0.0}) if adds else _median(value, values)
            found.add(Moment(time, adds, name if name in known else "", amount))
    if model.onset is not None:
        found.add(Moment(_median(model.start_time, values), False))
    inside = [m for m in found if grid[0] <= m.time <= grid[-1]]
    return tuple(sorted(inside, key=lambda m: (m.time, m.adds, m.name)))


def level_steps(model: Model, parameters: Sequence[str], theta: Array, found: Sequence[Moment]) -> dict[str, Array]:
    """Levels over time as rows (time, value from then on), the first value first; medians over the draws.

    Those that depend on states are left out.
    """
    values: dict[str, Any] = dict(zip(parameters, theta.T, strict=True))
    values |= {name: float(value) for name, value in model.constants.items()}
    steps = {}
    for name, first in zip(model.levels, model.first_levels, strict=True):
        at = _median(first, values)
        rows = [(-math.inf, at)]
        for moment in found:
            if moment.name == name:
                at = at + moment.value if moment.adds else moment.value
                rows.append((moment.time, at))
        if np.isfinite([value for _, value in rows]).all():
            steps[name] = np.array(rows)
    return steps


def _median(expression: Expression, values: dict[str, Any]) -> float:
    if not set(names(expression)) <= set(values):
        return math.nan
    return float(np.median(evaluate(expression, values, float, call_on_arrays)))
