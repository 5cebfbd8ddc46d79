"""Checks that hold for every model, however it was made: names, circles, sizes, divisions by zero, events."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from equifinal.errors import ModelError, did_you_mean
from equifinal.language.expression import (
    TIME,
    Call,
    Expression,
    Name,
    calls,
    children,
    evaluate,
    height,
    initial_name,
    name_nodes,
    names,
    substitute,
    to_text,
    walk,
)
from equifinal.language.functions import CONDITIONS, call_on_arrays

if TYPE_CHECKING:
    from equifinal.language.model import Model

MAX_TERMS = 50_000  # nodes of all equations together, once definitions are put in
MAX_DEPTH = 300


def free_names(model: Model) -> tuple[str, ...]:
    """Names in the equations that nothing declares, in order of first appearance: the parameters."""
    declared = {*model.states, *model.definitions, *model.constants, *model.inputs, *model.levels, TIME}
    declared |= {initial_name(x) for x in model.states}
    happening = [e for event in model.events for e in (event.time, *event.sets.values())]
    expressions = [*model.equations.values(), *model.definitions.values(), *model.initial.values()]
    expressions += [*model.levels.values(), *happening, *((model.onset,) if model.onset else ())]
    free: dict[str, None] = {}
    for expression in expressions:
        for node in name_nodes(expression):
            if node.name in declared:
                continue
            if node.name.endswith("(0)"):
                hint = did_you_mean(node.name[:-3], model.states)
                raise ModelError(
                    f"'{node.name}' is not the initial value of a state{hint}",
                    line=node.line,
                    column=node.column,
                    word=node.name,
                )
            free[node.name] = None
    return tuple(free | dict.fromkeys(model.before.parameters if model.before else ()))


def checked(model: Model) -> Model:
    in_order(model.definitions)
    _check_initial_values(model)
    for name in model.outputs:
        if name not in model.definitions and name not in model.states:
            known = {*model.definitions, *model.states}
            raise ModelError(f"output '{name}' is not defined in the equations{did_you_mean(name, known)}", word=name)
    if not model.outputs:
        raise ModelError("the model has no outputs: declare which definitions or states are observed")
    _check_size(model)  # from here on definitions may be put in
    _check_conditions(model)
    _check_happening(model)
    _check_division(model)
    return model


def in_order(definitions: Mapping[str, Expression]) -> list[str]:
    """Definitions so that each comes after those it uses; a circle among them is an error."""
    order: list[str] = []
    done: set[str] = set()
    for root in definitions:
        path: list[str] = []
        stack = [(root, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                if name not in done:
                    done.add(name)
                    order.append(name)
                continue
            if name in done:
                continue
            if name in path:
                within = path[path.index(name) :]
                circle = " -> ".join([*within[:8], *(["..."] if len(within) > 8 else []), name])
                raise ModelError(f"the definitions are circular: {circle}", word=name)
            path.append(name)
            stack.append((name, True))
            stack.extend((used, False) for used in names(definitions[name]) if used in definitions)
    return order


def _check_initial_values(model: Model) -> None:
    as_definitions = {initial_name(x): model.initial[x] for x in model.states} | dict(model.definitions)
    in_order(as_definitions)  # S(0) = N - I(0), I(0) = N - S(0) is a circle
    reachable: dict[str, set[str]] = {}
    for name in in_order(as_definitions):
        direct = set(names(as_definitions[name]))
        reachable[name] = direct.union(*(reachable[n] for n in direct if n in as_definitions))
    for x in model.states:
        for name in reachable[initial_name(x)]:
            if name in model.states:
                raise ModelError(
                    f"the initial value of '{x}' depends on the state '{name}'; write {name}(0) for its initial value",
                    word=name,
                )
            if name in model.inputs:
                raise ModelError(f"the initial value of '{x}' depends on the input '{name}'", word=name)
            if name == TIME or name in model.levels:
                raise ModelError(f"the initial value of '{x}' depends on '{name}', which changes with time", word=name)


def has_conditions(expression: Expression) -> bool:
    """Whether it changes with time because conditions on time stand in it."""
    return any(call.function in CONDITIONS for call in calls(expression))


def _check_conditions(model: Model) -> None:
    """Refuse conditions where nothing may change with time, and those whose border does."""
    for x in model.states:
        if has_conditions(substitute(model.initial[x], model.closed_definitions)):
            raise ModelError(f"the initial value of '{x}' depends on '{TIME}', which changes with time", word=TIME)
    sets = [value for event in model.events for value in event.sets.values()]
    parts = [*model.equations.values(), *model.definitions.values(), *sets, *model.trajectories.values()]
    changing = {*model.states, *model.inputs, *model.levels, TIME}
    for border in dict.fromkeys(c.arguments[0] for part in parts for c in calls(part) if c.function in CONDITIONS):
        closed = substitute(border, model.closed_definitions)
        for node in name_nodes(closed):
            if node.name in changing:
                raise ModelError(
                    f"a condition compares the time with '{node.name}', which changes with time; compare it with "
                    "numbers, constants and parameters",
                    line=node.line,
                    column=node.column,
                    word=node.name,
                )
        if has_conditions(closed):
            raise ModelError(f"a condition compares the time with {_short(border)}, which depends on a condition")


def _short(expression: Expression) -> str:
    text = to_text(expression)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _check_happening(model: Model) -> None:
    """Refuse events and levels that name what is not there, or what is not known in time."""
    changing = {*model.states, *model.inputs, *model.levels, TIME}
    moments = {f"the time of event {i}": event.time for i, event in enumerate(model.events, start=1)}
    moments |= {f"the level '{name}'": value for name, value in model.levels.items()}
    moments |= {"the onset": model.onset} if model.onset is not None else {}
    for what, expression in moments.items():
        closed = substitute(expression, model.closed_definitions)
        for name in (*names(closed), *([TIME] if has_conditions(closed) else [])):
            if name in changing:
                raise ModelError(f"{what} depends on '{name}', which changes with time", word=name)
    for i, event in enumerate(model.events, start=1):
        for name in event.sets:
            if name not in model.states and name not in model.levels:
                hint = did_you_mean(name, (*model.states, *model.levels))
                raise ModelError(f"event {i} sets '{name}', which is not a state{hint}", word=name)
    for name in model.levels:
        if name in model.states or name in model.definitions or name in model.constants or name in model.inputs:
            raise ModelError(f"the level '{name}' has the same name as something else in the model", word=name)
    if model.before is not None:
        _refuse_initial_names(model)
        if model.before.states != model.states:
            raise ModelError("the model that held before must have the same states")
        if model.before.uses_time or model.before.events or model.before.inputs or model.before.before:
            raise ModelError(
                "a steady state needs equations that do not change with time: no t, no events, and inputs that are "
                "given as numbers"
            )


def _refuse_initial_names(model: Model) -> None:
    """With a steady state, x(0) could be where the model came from or where it came to rest: it is not read."""
    starts = {initial_name(x) for x in model.states}
    sets = [value for event in model.events for value in event.sets.values()]
    parts = [*model.equations.values(), *model.definitions.values(), *sets]
    parts += [*model.quantities.values(), *model.trajectories.values(), *model.levels.values()]
    for part in parts:
        for node in name_nodes(part):
            if node.name in starts:
                raise ModelError(
                    f"'{node.name}' cannot be used where the model starts from a steady state, and nor can a reset to "
                    "it; make the value at rest a state of its own that does not change",
                    line=node.line,
                    column=node.column,
                    word=node.name,
                )


def _check_size(model: Model) -> None:
    """Refuse definitions that grow without bound when put into each other, before doing so."""
    named = dict(model.definitions) | {initial_name(x): model.initial[x] for x in model.states}
    size: dict[str, int] = {}
    depth: dict[str, int] = {}

    def measure(expression: Expression) -> tuple[int, int]:
        inner = [node.name for node in name_nodes(expression) if node.name in size]
        nodes = sum(1 for _ in walk(expression)) + sum(size[name] for name in inner)
        return nodes, height(expression) + max((depth[name] for name in inner), default=0)

    for name in in_order(named):
        size[name], depth[name] = measure(named[name])
    parts = [*model.equations.values(), *(Name(y) for y in model.outputs), *model.quantities.values()]
    measured = [measure(part) for part in parts]
    total = max(sum(nodes for nodes, _ in measured), max(size.values()))
    if total > MAX_TERMS:
        raise ModelError(
            f"with definitions substituted, the equations have {total} terms; at most {MAX_TERMS} are allowed"
        )
    if max(*(deep for _, deep in measured), *depth.values()) > MAX_DEPTH:
        raise ModelError(f"definitions are nested more than {MAX_DEPTH} levels deep")


def _check_division(model: Model) -> None:
    """Division by something that is zero for all parameters, found by evaluating at random points modulo a prime.

    And functions of numbers for which they are not defined, such as log(-1).
    """
    parts = {f"the equation of '{x}'": e for x, e in zip(model.states, model.rhs, strict=True)}
    parts |= {f"the initial value of '{x}'": e for x, e in zip(model.states, model.start, strict=True)}
    parts |= {f"output '{y}'": e for y, e in zip(model.outputs, model.observed, strict=True)}
    parts |= {f"quantity '{q}'": e for q, e in model.interest.items()}
    happening = {e: f"the time of an event, {to_text(e)}," for e in {event.time for event in model.events} if names(e)}
    for event in model.events:
        for x, e in event.sets.items():
            happening.setdefault(e, f"the event at time {to_text(event.time)}, which sets '{x}',")
    parts |= {where: substitute(e, model.closed_definitions) for e, where in happening.items()}
    for where, expression in parts.items():
        if not any(finite_somewhere(expression, model, attempt) for attempt in range(3)):
            raise ModelError(f"{where} divides by zero for all parameters")
        for call in _undefined_calls(expression):
            raise ModelError(f"{where} contains {_short(call)}, which is not a number")


def _undefined_calls(expression: Expression) -> Iterator[Call]:
    """Functions of plain numbers that have no value there; what a condition may leave out is not looked at."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "piecewise":
            continue
        stack.extend(children(node))
        if isinstance(node, Call) and not names(node) and node.function not in CONDITIONS:
            try:
                value = evaluate(node, {}, float, lambda function, given: float(call_on_arrays(function, given)))
            except (ArithmeticError, ValueError):
                continue  # a division by zero, or a condition inside
            if not math.isfinite(value):
                yield node


def finite_somewhere(expression: Expression, model: Model, attempt: int) -> bool:
    rng = random.Random(attempt)
    known = model.constants
    values = {
        name: _Residue.of(known[name]) if name in known else _Residue(rng.randrange(_PRIME))
        for name in names(expression)
    }
    try:
        evaluate(expression, values, _Residue.of, _any_residue)
    except ZeroDivisionError:
        return False
    return True


_PRIME = 2**61 - 1


def _any_residue(function: str, arguments: Sequence[_Residue]) -> _Residue:
    """A value for a function modulo a prime: as good as any other, and the same for the same arguments."""
    text = f"{function}{[argument.value for argument in arguments]}"
    return _Residue(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))


class _Residue:
    """A number modulo a prime, just enough for `evaluate`."""

    __slots__ = ("value",)

    def __init__(self, value: int):
        self.value = value % _PRIME

    @staticmethod
    def of(number: Fraction) -> _Residue:
        return _Residue(number.numerator) / _Residue(number.denominator)

    def __add__(self, other: _Residue) -> _Residue:
        return _Residue(self.value + other.value)

    def __mul__(self, other: _Residue) -> _Residue:
        return _Residue(self.value * other.value)

    def __truediv__(self, other: _Residue) -> _Residue:
        if other.value == 0:
            raise ZeroDivisionError
        return _Residue(self.value * pow(other.value, -1, _PRIME))

    def __pow__(self, exponent: int) -> _Residue:
        return _Residue(pow(self.value, exponent, _PRIME))
