"""Doses: amounts that enter a state at once, or over a while, once or many times.

A bolus of amount D, of which a fraction F arrives, sets the state to its value plus F*D. An infusion adds a rate to the
state's equation for as long as it lasts: a level that jumps up when it begins and down when it ends, so that infusions
that overlap add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import Expression, Name, Number, negative, reciprocal, to_text
from equifinal.language.model import Event, Model
from equifinal.problem.parts import Part, added, changing_name, multiplied, number, part, taken_names, unused_name

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))
MAX_COUNT = 100_000


@dataclass(frozen=True, init=False)
class Dose:
    """An amount given to a state, once or many times.

    Amount, time, every, duration, rate, lag and fraction are numbers, or text in constants and parameters, such as
    ``"D"`` or ``"D*weight"``.

    Parameters
    ----------
    state
        Where it enters.
    amount
        How much each time. For an infusion, two of amount, duration and rate say the third.
    time
        When: one time, or several in order.
    every, count
        How often from that time on: ``every=12, count=6`` is at 0, 12, ..., 60 hours after it.
    duration, rate
        Of an infusion; a dose with neither enters at once.
    lag
        How much later than given it enters.
    fraction
        How much of it enters (bioavailability); that of an infusion arrives at a rate smaller by this factor.
    first
        Whether it comes before an observation at the same time, rather than after it.

    Attributes
    ----------
    times
        When it is given, without the lag.
    """

    state: str
    amount: Expression
    times: tuple[Expression, ...]
    duration: Expression | None
    rate: Expression | None
    lag: Expression
    fraction: Expression
    first: bool

    def __init__(
        self,
        state: str,
        amount: Part | None = None,
        time: Part | Sequence[Part] = 0,
        *,
        every: Part | None = None,
        count: int | None = None,
        duration: Part | None = None,
        rate: Part | None = None,
        lag: Part = 0,
        fraction: Part = 1,
        first: bool = False,
    ):
        if not isinstance(state, str):
            raise DataError(f"state must be the name of a state, not {state!r}")
        if not isinstance(first, bool):
            raise DataError(f"first must be true or false, not {first!r}")
        lasts = None if duration is None else _positive(part(duration, "duration"), "duration")
        speed = None if rate is None else _positive(part(rate, "rate"), "rate")
        total = None if amount is None else part(amount, "amount")
        if total is None:
            if lasts is None or speed is None:
                raise DataError("needs an amount, or for an infusion both rate and duration")
            total = multiplied(speed, lasts)
        elif (value := number(total)) is not None and value < 0:
            raise DataError(f"amount must not be negative, but is {to_text(total, decimals=True)}")
        elif lasts is not None and speed is not None:
            _check_three(total, lasts, speed)
        elif speed is not None:
            lasts = multiplied(total, reciprocal(speed)) if number(speed) is None else _divided(total, speed)
        elif lasts is not None:
            speed = multiplied(total, reciprocal(lasts)) if number(lasts) is None else _divided(total, lasts)
        share = part(fraction, "fraction")
        if (value := number(share)) is not None and value < 0:
            raise DataError(f"fraction must not be negative, but is {to_text(share, decimals=True)}")
        fields: dict[str, Any] = {
            "state": state,
            "amount": total,
            "times": _times(time, every, count),
            "duration": lasts,
        }
        fields |= {"rate": speed, "lag": part(lag, "lag"), "fraction": share, "first": first}
        for name, field in fields.items():
            object.__setattr__(self, name, field)


def _positive(value: Expression, what: str) -> Expression:
    if (known := number(value)) is not None and known <= 0:
        raise DataError(f"{what} must be positive, but is {to_text(value, decimals=True)}")
    return value


def _divided(value: Expression, by: Expression) -> Expression:
    return multiplied(value, Number(1 / (number(by) or Fraction(1))))


def _check_three(amount: Expression, duration: Expression, rate: Expression) -> None:
    total, lasts, speed = number(amount), number(duration), number(rate)
    if total is None or lasts is None or speed is None:
        raise DataError("amount, duration and rate are given; two of them say the third, so leave one out")
    if abs(speed * lasts - total) > Fraction(1, 10**9) * total:
        raise DataError(
            f"rate times duration is {float(speed * lasts):g}, but the amount is {float(total):g}; leave one out"
        )


def _times(time: Part | Sequence[Part], every: Part | None, count: int | None) -> tuple[Expression, ...]:
    several = isinstance(time, (list, tuple, np.ndarray))
    listed: list[Any] = np.asarray(time).tolist() if isinstance(time, np.ndarray) else list(time) if several else [time]  # type: ignore[arg-type]
    if not listed:
        raise DataError("time is an empty list; give at least one time")
    times = [part(value, f"time, entry {i}" if several else "time") for i, value in enumerate(listed, start=1)]
    for i, (before, after) in enumerate(pairwise(times), start=2):
        earlier, later = number(before), number(after)
        if earlier is not None and later is not None and later < earlier:
            raise DataError(f"time, entry {i}: {float(later):g} comes after {float(earlier):g}; give times in order")
    if every is None:
        if count is not None:
            raise DataError(f"count = {count!r} needs every = ..., the time from one dose to the next")
        return tuple(times)
    if count is None:
        raise DataError("every needs count = ..., how many doses there are")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        raise DataError(f"count must be a whole number from 1 to {MAX_COUNT}, not {count!r}")
    if len(times) > 1:
        raise DataError("every and count go with one time, that of the first dose, not with a list of times")
    step = _positive(part(every, "every"), "every")
    return tuple(added(times[0], multiplied(Number(Fraction(i)), step) if i else ZERO) for i in range(count))


def dosed(model: Model, doses: Iterable[Dose]) -> Model:
    """The model with doses as events, and a level for each state that infusions enter.

    Examples
    --------
    >>> import equifinal
    >>> model = equifinal.Model.parse("x' = -k*x; x(0) = 0", outputs=["x"])
    >>> given = equifinal.dosed(model, [equifinal.Dose("x", 100, every=12, count=3)])
    >>> len(given.events)
    3
    """
    given = list(doses)
    if not given:
        return model
    taken = taken_names(model)
    levels: dict[str, str] = {}
    events: list[Event] = []
    for dose in given:
        check_dose(dose, model)
        if dose.rate is not None and dose.state not in levels:
            levels[dose.state] = unused_name(f"infusion_{dose.state}", taken)
        events += _events(dose, levels.get(dose.state, ""))
    equations = {
        x: added(expression, Name(levels[x])) if x in levels else expression
        for x, expression in model.equations.items()
    }
    return replace(model, equations=equations).vary(events=events, levels=dict.fromkeys(levels.values(), ZERO))


def check_dose(dose: Dose, model: Model) -> None:
    """Refuse a dose that the model has no place for."""
    if dose.state not in model.states:
        hint = did_you_mean(dose.state, model.states) or f" (states: {', '.join(model.states)})"
        raise DataError(f"'{dose.state}' is not a state{hint}")
    for time in dose.times:
        value = number(time)
        if value is not None and value < 0 and model.onset is None:
            raise DataError(f"time {float(value):g} is negative; the model starts at time 0")
    still = {"lag": dose.lag} | {f"time, entry {i}": time for i, time in enumerate(dose.times, start=1)}
    if dose.rate is not None and dose.duration is not None:
        still |= {"rate": dose.rate, "duration": dose.duration, "fraction": dose.fraction}
    for what, expression in still.items():
        if name := changing_name(expression, model):
            raise DataError(f"{what} depends on '{name}', which changes with time")


def _events(dose: Dose, level: str) -> Iterator[Event]:
    for time in dose.times:
        begins = added(time, dose.lag)
        if dose.rate is None or dose.duration is None:
            amount = multiplied(dose.fraction, dose.amount)
            yield Event(begins, {dose.state: added(Name(dose.state), amount)}, dose.first)
            continue
        rate = multiplied(dose.fraction, dose.rate)
        yield Event(begins, {level: added(Name(level), rate)}, dose.first)
        yield Event(added(begins, dose.duration), {level: added(Name(level), negative(rate))}, dose.first)
