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
from equifinal.language.conditions import holds, negated
from equifinal.language.expression import (
    Call,
    Expression,
    Name,
    Number,
    Product,
    Sum,
    calls,
    reciprocal,
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
        if wait is not None and wait < 0:
            raise ModelError(f"{where}: its delay is negative")
        sets = {name: settling.settle(value, where) for name, value in happening.sets.items()}
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
            timed = _Timed(
                happening.name, moment.time, moment.first, sets, _priority(happening, settling), happening.then
            )
            if wait != 0 and not happening.then:
                aside, timed = timed.in_two(levels)
                found.append(aside)
            if guard is not None:
                own = {name: _unless_at(guard, value, Name(name)) for name, value in timed.sets.items()}
                timed = replace(timed, sets=own)
            found.append(replace(timed, time=when))
    groups = _at_one_time(found, settling)
    return levels, tuple(event for group in groups for event in _merged(_untangled(group, levels), species))


@dataclass(frozen=True)
class _Timed:
    """An event at a time; ``then``: its new values are computed when it happens, after others at that time."""

    name: str
    time: Expression
    first: bool
    sets: Mapping[str, Expression]
    priority: float
    then: bool

    def in_two(self, levels: dict[str, Expression]) -> tuple[_Timed, _Timed]:
        """What puts the new values aside, in further levels, and what brings them back."""
        names = {name: f"{name} at {self.name} {len(levels)}" for name in self.sets}
        levels.update(dict.fromkeys(names.values(), ZERO))
        aside = replace(self, sets={names[n]: v for n, v in self.sets.items()}, priority=float("inf"), then=False)
        return aside, replace(self, sets={name: Name(level) for name, level in names.items()})


def _priority(happening: Happening, settling: Settling) -> float:
    if happening.priority is None:
        return float("-inf")
    value = settling.value(happening.priority)
    if value is None:
        raise ModelError(f"event '{happening.name}': a priority that is not a number is not supported")
    return float(value)


def _of_states(
    sets: Mapping[str, Expression], species: Mapping[str, Species], now: Callable[[str], Expression]
) -> dict[str, Expression]:
    """New values of what the file names as those of states; ``now`` are the values that hold just before.

    A new concentration is an amount by the size before; a new size leaves amounts as they are.
    """
    found: dict[str, Expression] = {}
    for name, value in sets.items():
        kind = species.get(name)
        if kind is None or kind.state in (None, name) or kind.compartment is None:
            found[name] = value
        else:
            assert kind.state is not None
            found[kind.state] = Product((value, now(kind.compartment)))
    for name, kind in species.items():
        if kind.state == name and kind.compartment in sets:
            assert kind.compartment is not None
            value = found.get(name, now(name))
            found[name] = Product((value, now(kind.compartment), reciprocal(sets[kind.compartment])))
    return found


def _moments(
    trigger: Expression, settling: Settling, happening: Happening, where: str, start: Fraction | None
) -> list[Moment]:
    borders = list(dict.fromkeys(c for c in calls(trigger) if c.function in CONDITIONS))
    if not borders:  # it never changes
        return [Moment(Number(start or Fraction(0)), True)] if trigger == ONE and happening.at_once else []
    times = [settling.value(border.arguments[0]) for border in borders]
    if any(time is None for time in times):
        if len(borders) > 1:
            raise ModelError(f"{where}: a trigger that depends on several times is supported only if they are numbers")
        time = borders[0].arguments[0]
        if trigger == borders[0]:  # true until then: it never becomes true
            return [Moment(Number(start or Fraction(0)), True)] if happening.at_once else []
        assert trigger == negated(borders[0])
        return [Moment(time, borders[0].function == "before")]
    known = {border: time for border, time in zip(borders, times, strict=True) if time is not None}
    return _scanned(trigger, known, start or Fraction(0), happening.at_once)


def _scanned(trigger: Expression, borders: Mapping[Call, Fraction], start: Fraction, at_once: bool) -> list[Moment]:
    """Moments at which a condition with known borders becomes true, from the start on."""

    def holds_at(time: Fraction) -> bool:
        return holds(trigger, lambda c: time < borders[c] if c.function == "before" else time <= borders[c])

    points = [start, *sorted({time for time in borders.values() if time > start})]
    ends = [*points[1:], points[-1] + 1]
    values: list[tuple[Fraction, bool, bool]] = []  # when, whether at a point, whether it holds
    for point, end in zip(points, ends, strict=True):
        values += [(point, True, holds_at(point)), (point, False, holds_at((point + end) / 2))]
    found: list[Moment] = []
    before = not at_once
    for at, (time, exactly, true) in enumerate(values):
        if true and not before:
            ended = next((t for t, _, still in values[at:] if not still), None)
            found.append(Moment(Number(time), exactly, ended))
        before = true
    return found


def _unless_at(start: Expression, value: Expression, old: Expression) -> Expression:
    """The new value, except when the event comes at or before the start, as one that was true already."""
    return Call("piecewise", (old, Call("until", (start,)), value))


def _at_one_time(found: Sequence[_Timed], settling: Settling) -> list[list[_Timed]]:
    """Events by when they happen, those at one time by their priority."""
    groups: dict[object, list[_Timed]] = {}
    for timed in found:
        value = settling.value(timed.time)
        groups.setdefault((timed.time if value is None else value, timed.first), []).append(timed)
    return [sorted(group, key=lambda timed: -timed.priority) for group in groups.values()]


def _untangled(group: list[_Timed], levels: dict[str, Expression]) -> list[_Timed]:
    """The same events, where none that was computed at its trigger could see what one before it computes late."""
    late = next((at for at, timed in enumerate(group) if timed.then), len(group))
    asides, rest = [], []
    for timed in group[late:]:
        if not timed.then:
            aside, timed = timed.in_two(levels)
            asides.append(aside)
        rest.append(timed)
    return [*asides, *group[:late], *rest]


def _merged(group: Sequence[_Timed], species: Mapping[str, Species]) -> list[Event]:
    """One event of several at one time, as far as their new values were computed before all of them."""
    merged: list[Event] = []
    for timed in group:
        before = merged.pop() if merged and not timed.then else Event(timed.time, {}, timed.first)
        so_far = dict(before.sets)

        def now(name: str, so_far: Mapping[str, Expression] = so_far) -> Expression:
            return so_far.get(name, Name(name))

        merged.append(Event(before.time, {**so_far, **_of_states(timed.sets, species, now)}, before.first))
    return merged
