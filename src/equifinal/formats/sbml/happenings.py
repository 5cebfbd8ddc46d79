"""SBML events at known or unknown times to events of a model.

An event is triggered when a condition becomes true. Conditions on time are made of ``t < a`` and ``t <= a``, so that
the moments are among the a's: with one of them the moment is a itself, whatever it is; several must be numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from equifinal.errors import ModelError
from equifinal.formats.sbml.functions import ONE, ZERO
from equifinal.formats.sbml.mathml import MathReader
from equifinal.formats.sbml.network import Happening, Species
from equifinal.formats.sbml.settling import Settling
from equifinal.language.conditions import negated
from equifinal.language.expression import (
    Call,
    Expression,
    Name,
    Number,
    Product,
    Sum,
    calls,
    evaluate,
    reciprocal,
    substitute,
)
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Event


@dataclass(frozen=True)
class Moment:
    """When an event is triggered, whether an observation at that time comes after it, and until when that holds."""

    time: Expression
    first: bool
    until: Fraction | None = None


def read_event(event: Any, at: int, math: MathReader) -> Happening:
    """An event as the file has it; ``at`` is its place among them, for those without a name."""
    name = event.getId() or event.getName() or str(at)
    where = f"event '{name}'"
    trigger = event.getTrigger()
    if trigger is None or trigger.getMath() is None:
        raise ModelError(f"{where} has no trigger")
    delay, priority = event.getDelay(), event.getPriority() if event.isSetPriority() else None
    later = event.getLevel() > 2
    sets: dict[str, Expression] = {}
    for i in range(event.getNumEventAssignments()):
        assignment = event.getEventAssignment(i)
        if assignment.getMath() is not None:
            sets[math.renamed[assignment.getVariable()]] = math.read(assignment.getMath(), where)
    return Happening(
        name=name,
        trigger=math.read(trigger.getMath(), f"{where}, trigger"),
        sets=sets,
        delay=math.read(delay.getMath(), f"{where}, delay") if delay and delay.getMath() else None,
        priority=math.read(priority.getMath(), where) if priority and priority.getMath() else None,
        then=event.isSetUseValuesFromTriggerTime() and not event.getUseValuesFromTriggerTime(),
        at_once=later and trigger.isSetInitialValue() and not trigger.getInitialValue(),
        persistent=not (later and trigger.isSetPersistent() and not trigger.getPersistent()),
    )


def events_of(
    happenings: Sequence[Happening],
    settling: Settling,
    species: Mapping[str, Species],
    start: Fraction | None,
    surely_later: Callable[[Expression], bool],
) -> tuple[dict[str, Expression], tuple[Event, ...]]:
    """The events, and levels that keep values between a trigger and what it delays.

    Parameters
    ----------
    start
        When the model starts, if that is a number.
    surely_later
        Whether a time that is not a number is after the start for all parameters.
    """
    levels: dict[str, Expression] = {}
    found: list[_Timed] = []
    for happening in happenings:
        where = f"event '{happening.name}'"
        triggers = replace(settling, steps=False)  # when a state triggers an event is not known in advance
        trigger = triggers.settle(Call("and", (happening.trigger,)), f"{where}, trigger")
        delay = ZERO if happening.delay is None else settling.settle(happening.delay, f"{where}, delay")
        wait = settling.value(delay)
        sets = _of_states(happening.sets, species)
        sets = {name: settling.settle(value, where) for name, value in sets.items()}
        for moment in _moments(trigger, settling, happening, where, start):
            guard = None
            if settling.value(moment.time) is None and not happening.at_once and not surely_later(moment.time):
                guard = Number(start) if start is not None else None
            when = moment.time if wait == 0 else Sum((moment.time, delay))
            if not happening.persistent and wait != 0 and moment.until is not None:
                triggered = settling.value(when)
                if triggered is None:
                    raise ModelError(f"{where}: whether its trigger still holds when it happens cannot be decided")
                if triggered > moment.until:
                    continue
            own = sets
            if wait != 0 and not happening.then:
                kept = {name: f"{name} at {happening.name} {len(found)}" for name in sets}
                levels |= dict.fromkeys(kept.values(), ZERO)
                found.append(_Timed(Event(moment.time, {kept[n]: v for n, v in sets.items()}, moment.first), 1e300))
                own = {name: Name(kept[name]) for name in sets}
            if guard is not None:
                own = {name: _unless_at(guard, value, Name(name)) for name, value in own.items()}
            found.append(_Timed(Event(when, own, moment.first), _priority(happening, settling), not happening.then))
    return levels, _in_order(found, settling)


@dataclass(frozen=True)
class _Timed:
    event: Event
    priority: float = float("-inf")
    simultaneous: bool = True


def _priority(happening: Happening, settling: Settling) -> float:
    if happening.priority is None:
        return float("-inf")
    value = settling.value(happening.priority)
    if value is None:
        raise ModelError(f"event '{happening.name}': a priority that is not a number is not supported")
    return float(value)


def _of_states(sets: Mapping[str, Expression], species: Mapping[str, Species]) -> dict[str, Expression]:
    """New values of concentrations as those of amounts, by the size that holds afterwards."""
    found: dict[str, Expression] = {}
    for name, value in sets.items():
        kind = species.get(name)
        if kind is None or kind.state in (None, name) or kind.compartment is None:
            found[name] = value
        else:
            assert kind.state is not None
            found[kind.state] = Product((value, sets.get(kind.compartment, Name(kind.compartment))))
    for name, kind in species.items():  # another size leaves amounts as they are
        if kind.state == name and kind.compartment in sets and name not in sets:
            assert kind.compartment is not None
            found[name] = Product((Name(name), Name(kind.compartment), reciprocal(sets[kind.compartment])))
    return found


def _moments(
    trigger: Expression, settling: Settling, happening: Happening, where: str, start: Fraction | None
) -> list[Moment]:
    borders = list(dict.fromkeys(c for c in calls(trigger) if c.function in CONDITIONS))
    if not borders:  # it never changes
        holds = trigger == ONE and happening.at_once
        return [Moment(Number(start or Fraction(0)), True)] if holds else []
    times = [settling.value(border.arguments[0]) for border in borders]
    if any(time is None for time in times):
        if len(borders) > 1:
            raise ModelError(f"{where}: a trigger that depends on several times is supported only if they are numbers")
        time = borders[0].arguments[0]
        if trigger == borders[0]:  # true until then: it never becomes true
            return [Moment(Number(start or Fraction(0)), True)] if happening.at_once else []
        assert trigger == negated(borders[0])
        return [Moment(time, borders[0].function == "before")]
    numbers: dict[str, Expression] = {name: Number(value) for name, value in settling.numbers.items()}
    known = substitute(trigger, numbers)
    return _scanned(known, [t for t in times if t is not None], start or Fraction(0), happening.at_once)


def _scanned(trigger: Expression, times: Sequence[Fraction], start: Fraction, at_once: bool) -> list[Moment]:
    """Moments at which a condition with known borders becomes true, from the start on."""
    points = [start, *sorted({t for t in times if t > start})]
    ends = [*points[1:], points[-1] + 1]
    values: list[tuple[Fraction, bool, bool]] = []  # when, whether at a point, whether it holds
    for point, end in zip(points, ends, strict=True):
        values += [(point, True, _holds(trigger, point)), (point, False, _holds(trigger, (point + end) / 2))]
    found: list[Moment] = []
    before = not at_once
    for at, (time, exactly, holds) in enumerate(values):
        if holds and not before:
            ended = next((t for t, _, still in values[at:] if not still), None)
            found.append(Moment(Number(time), exactly, ended))
        before = holds
    return found


def _holds(condition: Expression, time: Fraction) -> bool:
    def call(function: str, arguments: Sequence[Fraction]) -> Fraction:
        return Fraction(time < arguments[0] if function == "before" else time <= arguments[0])

    return bool(evaluate(condition, {}, Fraction, call))


def _unless_at(start: Expression, value: Expression, old: Expression) -> Expression:
    """The new value, except when the event comes at or before the start, as one that was true already."""
    return Call("piecewise", (old, Call("until", (start,)), value))


def _in_order(found: Sequence[_Timed], settling: Settling) -> tuple[Event, ...]:
    """Events at one time by their priority; new values that were computed at the trigger are so for all of them."""
    groups: dict[object, list[_Timed]] = {}
    for timed in found:
        value = settling.value(timed.event.time)
        groups.setdefault((timed.event.time if value is None else value, timed.event.first), []).append(timed)
    ordered: list[Event] = []
    for group in groups.values():
        group.sort(key=lambda timed: -timed.priority)
        merged: list[Event] = []
        for timed in group:
            event = timed.event
            if merged and timed.simultaneous:
                merged[-1] = Event(event.time, {**merged[-1].sets, **event.sets}, event.first)
            else:
                merged.append(event)
        ordered += merged
    return tuple(ordered)
