"""What happens in an experiment as periods of PEtab: when each begins, and what is set then.

What is set at one time is computed from what held just before, all of it at once: at the end of a rest from the values
that constants had in it. When the first period begins, formulas may name nothing but parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from equifinal.errors import DataError
from equifinal.formats.common_model import CommonModel, came_from
from equifinal.language.expression import (
    TIME,
    Expression,
    Number,
    calls,
    evaluate,
    initial_name,
    names,
    substitute,
    to_text,
)
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Model
from equifinal.problem.data import Experiment

Sets = dict[str, Expression]


def periods_of(experiment: Experiment, common: CommonModel) -> list[tuple[float, Sets]]:
    """When something is set, from the beginning on, and what.

    Raises
    ------
    DataError
        If something happens at a time that is not known, or after an observation at its time.
    """
    model = experiment.model
    start = _time(model.start_time, model)
    jumps = _jumps(model, start, {float(t) for entry in experiment.observations for t in entry.times})
    at_start = jumps.pop(start, {})
    now = _closed({n: v for n, v in common.values(model).items() if n in common.constants}, model)
    known = {**now, **{n: Number(v) for n, v in model.constants.items()}}
    if model.before is None:
        states = dict(zip(model.states, (substitute(e, known) for e in model.start), strict=True))
        known |= {**states, TIME: Number(Fraction(repr(start)))}
        sets = {n: substitute(value, known) for n, value in at_start.items()}
        # initial values that follow from what is set are those from before
        moved = {x: states[x] for x in model.states if {*names(common.initial(x))} & sets.keys()} if sets else {}
        found = [(start, {**_other(now, common.constants), **moved, **sets})]
    else:
        rest = now | _at_rest(model, model.before, common)
        sets = {n: substitute(value, known) for n, value in at_start.items()}
        found = [(-math.inf, _other(rest, common.constants)), (start, {**_other(now, rest, common.starts), **sets})]
    own = {n: v for n, v in known.items() if n not in {*common.constants, *model.states, TIME}}
    return found + [(time, {n: substitute(v, own) for n, v in jumps[time].items()}) for time in sorted(jumps)]


def _at_rest(model: Model, before: Model, common: CommonModel) -> Sets:
    """Constants as they were before, and where states came to rest from."""
    given = {n: v for n, v in common.held_values(model).items() if n in common.constants}
    return _closed({**given, **{name: came_from(model, x) for x, name in common.starts.items()}}, before)


def _other(values: Sets, than: Mapping[str, Expression], without: Mapping[str, str] | None = None) -> Sets:
    """Values that are others, but not those of initial values, which only hold once."""
    once = {*(without or {}).values()}
    return {n: value for n, value in values.items() if value != than.get(n) and n not in once}


def _closed(values: Mapping[str, Expression], model: Model) -> Sets:
    """Values in parameters only."""
    starts = dict(zip(map(initial_name, model.states), model.start, strict=True))
    levels = dict(zip(model.levels, model.first_levels, strict=True))
    numbers = {n: Number(v) for n, v in model.constants.items()}
    found = dict(values)
    for known in (model.closed_definitions, starts, levels, numbers):
        found = {n: substitute(value, known) for n, value in found.items()}
    for name, value in found.items():
        if {*names(value)} & {*model.states, TIME} or any(call.function in CONDITIONS for call in calls(value)):
            raise DataError(
                f"'{name}' changes with time by a formula that does not hold in all experiments, or not before they "
                "start; PEtab has one model for all"
            )
    return found


def _time(time: Expression, model: Model) -> float:
    try:
        return float(evaluate(time, model.constants, Fraction))
    except (KeyError, TypeError):
        raise DataError(
            f"something happens at time {to_text(time)}, which is not a number: PEtab cannot express it"
        ) from None


def _jumps(model: Model, start: float, observed: set[float]) -> dict[float, Sets]:
    """What is set at each time; what comes after an observation must not meet one."""
    found: dict[float, Sets] = {}
    for event in sorted(model.jumps, key=lambda event: not event.first):
        time = max(_time(event.time, model), start)
        if not event.first and time in observed:
            raise DataError(
                f"'{next(iter(event.sets), '')}' changes at time {time:g}, after an observation at that time; in PEtab "
                "what happens comes before observations, as with first = true"
            )
        earlier = found.setdefault(time, {})
        # a later event sees what an earlier one at the same time has done
        earlier |= {name: substitute(value, earlier) for name, value in event.sets.items()}
    return found
