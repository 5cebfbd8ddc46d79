"""Changes: moments at which constants take new values, and states are set or added to.

A constant that changes becomes a level. What it was at first stands wherever a value at the start is asked for, and a
quantity of interest that contains it is a trajectory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from equifinal.errors import DataError, did_you_mean
from equifinal.language.checks import in_order
from equifinal.language.expression import Expression, Name, Number, names, substitute
from equifinal.language.model import Event, Model
from equifinal.problem.parts import Part, added, changing_name, number, part


@dataclass(frozen=True, init=False)
class Change:
    """A moment at which something is different from then on.

    Parameters
    ----------
    time
        When: a number, or text in constants and parameters.
    constants
        New values of constants, or of definitions that are numbers; numbers or expressions.
    set, add
        New values of states, and what is added to states; numbers or expressions in everything there is, as it is just
        before.
    first
        Whether it comes before an observation at the same time, rather than after it.
    """

    time: Expression
    constants: Mapping[str, Expression]
    set: Mapping[str, Expression]
    add: Mapping[str, Expression]
    first: bool

    def __init__(
        self,
        time: Part,
        *,
        constants: Mapping[str, Part] | None = None,
        set: Mapping[str, Part] | None = None,
        add: Mapping[str, Part] | None = None,
        first: bool = False,
    ):
        if not isinstance(first, bool):
            raise DataError(f"first must be true or false, not {first!r}")
        given = {"constants": constants or {}, "set": set or {}, "add": add or {}}
        if not any(given.values()):
            raise DataError("says nothing that changes: give constants, set or add")
        for name in given["add"]:
            if name in given["set"]:
                raise DataError(f"'{name}' is both set and added to; write one expression under set")
        object.__setattr__(self, "time", part(time, "time"))
        for key, table in given.items():
            read = {name: part(value, f"{key}, {name}") for name, value in table.items()}
            object.__setattr__(self, key, read)
        object.__setattr__(self, "first", first)


def changed(model: Model, changes: Iterable[Change]) -> Model:
    """The model with changes as events.

    Examples
    --------
    >>> import equifinal
    >>> model = equifinal.Model.parse("x' = -k*x; x(0) = 1", outputs=["x"])
    >>> later = equifinal.changed(model, [equifinal.Change(time=2, set={"x": 5})])
    >>> len(later.events)
    1
    """
    given = list(changes)
    if not given:
        return model
    for change in given:
        check_change(change, model)
    switched = tuple(dict.fromkeys(name for change in given for name in change.constants))
    draft, first_values = _with_levels(model, switched)
    events = [
        Event(
            change.time,
            {**change.constants, **change.set, **{x: added(Name(x), value) for x, value in change.add.items()}},
            change.first,
        )
        for change in given
    ]
    return draft.vary(events=events, levels=first_values)


def check_change(change: Change, model: Model) -> None:
    """Refuse a change of what is not there, or not a constant."""
    for name in change.constants:
        if name in model.constants or name in model.levels:
            continue
        if name not in model.definitions:
            known = [*model.constants, *model.definitions]
            hint = did_you_mean(name, known) or f" (constants: {', '.join(model.constants) or 'none'})"
            raise DataError(f"'{name}' is not a constant that can change{hint}")
        if other := changing_name(model.definitions[name], model):
            raise DataError(f"'{name}' is not a constant: it depends on '{other}', which changes with time")
    for name in (*change.set, *change.add):
        if name not in model.states:
            hint = did_you_mean(name, model.states) or f" (states: {', '.join(model.states)})"
            raise DataError(f"'{name}' is not a state{hint}")
    value = number(change.time)
    if value is not None and value < 0 and model.onset is None:
        raise DataError(f"time {float(value):g} is negative; the model starts at time 0")
    if name := changing_name(change.time, model) or next((n for n in names(change.time) if n in change.constants), ""):
        raise DataError(f"time depends on '{name}', which changes with time")


def _with_levels(model: Model, switched: tuple[str, ...]) -> tuple[Model, dict[str, Expression]]:
    """The model without the constants that become levels, and their first values."""
    new = [name for name in switched if name not in model.levels]
    first: dict[str, Expression] = {
        name: Number(model.constants[name]) if name in model.constants else model.definitions[name] for name in new
    }
    definitions = {name: value for name, value in model.definitions.items() if name not in first}
    closed: dict[str, Expression] = {}
    for name in in_order(definitions):
        closed[name] = substitute(definitions[name], closed)
    moving = {name: value for name, value in closed.items() if set(names(value)) & set(first)}

    def at_start(expression: Expression) -> Expression:
        return substitute(substitute(expression, moving), first)

    def moves(expression: Expression) -> bool:
        return bool(set(names(substitute(expression, closed))) & set(first))

    draft = replace(
        model,
        constants={name: value for name, value in model.constants.items() if name not in first},
        definitions=definitions,
        initial={x: at_start(value) for x, value in model.initial.items()},
        quantities={name: value for name, value in model.quantities.items() if not moves(value)},
        trajectories={**model.trajectories, **{n: v for n, v in model.quantities.items() if moves(v)}},
    )
    return draft, first
