"""Conditions on time as levels: what solvers and analysis are handed has no conditions in it.

``t < a`` is 1 until an event at time a makes it 0, and ``piecewise`` chooses by such levels. The event comes before an
observation at the same time, that of ``t <= a`` after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, calls
from equifinal.language.functions import CONDITIONS
from equifinal.language.model import Event, Model

ON, OFF = Number(Fraction(1)), Number(Fraction(0))


def conditions(model: Model) -> tuple[Call, ...]:
    """The distinct conditions on time of a model, in order of first appearance."""
    sets = [value for event in model.events for value in event.sets.values()]
    parts = [*model.equations.values(), *model.definitions.values(), *sets, *model.trajectories.values()]
    found = (node for part in parts for node in calls(part) if node.function in CONDITIONS)
    return tuple(dict.fromkeys(found))


def without_conditions(model: Model) -> Model:
    """The same model with a level and an event in place of every condition on time."""
    found = conditions(model)
    if not found:
        return model
    levels = {condition: f"condition {i}" for i, condition in enumerate(found, start=1)}  # no user can write that

    def replaced(expressions: Mapping[str, Expression]) -> dict[str, Expression]:
        return {name: _replaced(expression, levels) for name, expression in expressions.items()}

    switches = tuple(
        Event(condition.arguments[0], {level: OFF}, first=condition.function == "before")
        for condition, level in levels.items()
    )
    return replace(
        model,
        equations=replaced(model.equations),
        definitions=replaced(model.definitions),
        trajectories=replaced(model.trajectories),
        levels={**dict.fromkeys(levels.values(), ON), **model.levels},
        events=(*switches, *(replace(event, sets=replaced(event.sets)) for event in model.events)),
    )


def _replaced(expression: Expression, levels: Mapping[Call, str]) -> Expression:
    match expression:
        case Sum(terms):
            return Sum(tuple(_replaced(term, levels) for term in terms))
        case Product(factors):
            return Product(tuple(_replaced(factor, levels) for factor in factors))
        case Power(base, exponent):
            return Power(_replaced(base, levels), exponent)
        case Call(function, arguments):
            if expression in levels:
                return Name(levels[expression])
            return Call(function, tuple(_replaced(argument, levels) for argument in arguments))
    return expression
