"""What happens to a model, in words: when it starts, from where, and what its events do."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from equifinal.language.expression import Expression, Name, Number, Product, Sum, negative, number_text, to_text

if TYPE_CHECKING:
    from equifinal.language.model import Event, Model

MANY = 5  # times that are written out


def happening_lines(model: Model) -> list[str]:
    """A line each for the start, the steady state before it, and every group of events that do the same."""
    lines = []
    if model.onset is not None:
        lines.append(f"starts at t = {_written(model.onset)}; until then everything is as at the start")
    if model.before is not None:
        lines.append(f"starts from rest{_conditions(model, model.before)}")
    if switched := [name for name in model.levels if model.levels[name] != Number(Fraction(0))]:
        lines.append("at first: " + ", ".join(f"{name} = {_written(model.levels[name])}" for name in switched))
    groups: dict[tuple[object, ...], list[Event]] = {}
    for event in model.events:
        groups.setdefault((*event.sets.items(), event.first), []).append(event)
    for events in groups.values():
        effects = ", ".join(_effect(name, value, name in model.levels) for name, value in events[0].sets.items())
        before = ", before an observation at that time" if events[0].first else ""
        lines.append(f"at t = {_times([event.time for event in events])}: {effects}{before}")
    return lines


def _written(expression: Expression) -> str:
    return to_text(expression, decimals=True)


def _times(times: list[Expression]) -> str:
    texts = [_written(time) for time in times]
    if len(texts) <= MANY:
        return ", ".join(texts)
    return f"{texts[0]}, {texts[1]}, ..., {texts[-1]} ({len(texts)} times)"


def _effect(name: str, value: Expression, is_level: bool) -> str:
    """What happens to a state, or to a level, such as the rate of an infusion."""
    if not (isinstance(value, Sum) and value.terms[0] == Name(name)):
        return f"{name} becomes {_written(value)}"
    rest = value.terms[1] if len(value.terms) == 2 else Sum(value.terms[1:])
    if isinstance(rest, Number) and rest.value < 0:
        change, falls = number_text(-rest.value), True
    elif isinstance(rest, Product) and isinstance(rest.factors[0], Number) and rest.factors[0].value < 0:
        change, falls = _written(_positive(rest)), True
    else:
        change, falls = _written(rest), False
    if is_level:
        return f"{name} {'falls' if falls else 'rises'} by {change}"
    return f"{change} is {'taken from' if falls else 'added to'} {name}"


def _positive(product: Product) -> Expression:
    match negative(product):
        case Product((Number(value), factor)) if value == 1:
            return factor
        case Product((Number(value), *rest)) if value == 1:
            return Product(tuple(rest))
        case other:
            return other


def _conditions(model: Model, before: Model) -> str:
    """The constants and inputs that were others before."""
    given: dict[str, str] = {}
    for name, value in before.constants.items():
        if model.constants.get(name) != value and model.levels.get(name) != Number(value):
            given[name] = number_text(value)
    own: Mapping[str, Expression] = {**model.definitions, **model.levels}
    for name, expression in before.definitions.items():
        if own.get(name) != expression and (name in model.inputs or name in model.constants or name in model.levels):
            given[name] = _written(expression)
    return f", with {', '.join(f'{name} = {value}' for name, value in given.items())}" if given else ""
