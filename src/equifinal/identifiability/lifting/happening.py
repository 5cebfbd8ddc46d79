r"""What happens to a model, as known inputs: doses, switches, resets, conditions on time, and when it starts.

Equations with inputs that may be anything determine at least as much as with the inputs that were really given, so that
combinations found that way are fine enough for any of them. Inputs may be as short and strong as one likes:

- x jumps by c where x' = ... + c u and u is an impulse;
- x becomes v where x' = ... + (v - x) u and u is an impulse without bound;
- x becomes G(x) where m' = (x - m) u first, which keeps the old value, then x' = ... + (G(m) - x) v;
- a level that takes the values v_1, v_2, ... is v_1 u_1 + v_2 u_2 + ..., each u being 1 while its value holds.

What happens at or before the start only changes initial values. Moments that depend on parameters are taken to be seen,
as if they were outputs: whatever happens then is a known input only if they are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

from equifinal.language.expression import (
    TIME,
    Call,
    Expression,
    Name,
    Number,
    Power,
    Product,
    Sum,
    is_rational,
    names,
    negative,
    substitute,
)
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Event, Model
from equifinal.language.rational import ONE, ZERO, added, multiplied, simplified, value_of


@dataclass
class System:
    """Equations with inputs in place of everything that happens; functions may still be called.

    Attributes
    ----------
    rates, starts
        Right-hand side and initial value of each state.
    outputs
        Of the model by their names, and what else is taken to be seen.
    inputs
        Known functions of time.
    added_inputs
        How many of them stand for what happens.
    moments
        Times at which something happens that depend on parameters.
    """

    rates: dict[str, Expression]
    starts: dict[str, Expression]
    outputs: dict[str, Expression]
    inputs: list[str]
    constants: Mapping[str, Fraction]
    added_inputs: int = 0
    moments: list[Expression] = field(default_factory=list)

    def new_input(self) -> Name:
        self.added_inputs += 1
        name = f"happening {self.added_inputs}"
        self.inputs.append(name)
        return Name(name)

    def numeric(self, expression: Expression) -> Expression:
        """The expression with numbers in place of constants."""
        return substitute(expression, {name: Number(value) for name, value in self.constants.items()})


def with_inputs(model: Model) -> System:
    """The model with inputs for all that happens."""
    model = without_conditions(model)
    system = System(
        rates=dict(zip(model.states, model.rhs, strict=True)),
        starts=dict(zip(model.states, model.start, strict=True)),
        outputs=dict(zip(model.outputs, model.observed, strict=True)),
        inputs=list(model.inputs),
        constants=model.constants,
    )
    visible = _visible(model)
    levels = dict(zip(model.levels, model.first_levels, strict=True))
    later = _start(model, system, levels)
    states = _levels_that_are_states(later, levels, system)
    _jump(later, levels, states, system)
    values = _values(later, levels, system)
    for parts in (system.rates, system.outputs):
        parts |= {name: pieces(substitute(e, values)) for name, e in parts.items()}
    moments = [event.time for event in later if visible & set(event.sets)]
    moments += [model.start_time] if model.onset is not None and visible & set(model.states) else []
    unknown = [time for time in map(system.numeric, moments) if names(time)]
    system.moments = list(dict.fromkeys(simplified(time) if is_rational(time) else time for time in unknown))
    return system


def _visible(model: Model) -> set[str]:
    """States and levels on which an output may depend."""
    uses = {x: set(names(rate)) for x, rate in zip(model.states, model.rhs, strict=True)}
    for event in model.jumps:
        for name, value in event.sets.items():
            uses.setdefault(name, set()).update(names(value))
    found = {n for e in model.observed for n in names(e)}
    while more := {n for x in found for n in uses.get(x, ())} - found:
        found |= more
    return found


def pieces(expression: Expression) -> Expression:
    """The expression with sums in place of ``piecewise``, whose conditions are 0 or 1."""
    match expression:
        case Sum(terms):
            return Sum(tuple(map(pieces, terms)))
        case Product(factors):
            return Product(tuple(map(pieces, factors)))
        case Power(base, exponent):
            return Power(pieces(base), exponent)
        case Call("piecewise", arguments):
            *parts, value = map(pieces, arguments)
            for at in range(len(parts) - 2, -1, -2):
                holds = parts[at + 1]
                fails = Sum((ONE, negative(holds)))
                value = added([multiplied(holds, parts[at]), multiplied(fails, value)])
            return value
        case Call(function, arguments):
            return Call(function, tuple(map(pieces, arguments)))
    return expression


def _start(model: Model, system: System, levels: dict[str, Expression]) -> list[Event]:
    """Let happen what happens at the start or before; the events that are left.

    Outputs at the start are seen before and after each of these events.
    """
    later: list[Event] = []
    happened = blocked = False
    for event in model.jumps:
        wait = system.numeric(Sum((event.time, negative(model.start_time))))
        known = value_of(wait) if is_rational(wait) else None
        now = {**system.starts, **levels, TIME: model.start_time}
        sets = {name: pieces(substitute(value, now)) for name, value in event.sets.items()}
        in_time = known is not None and known <= 0
        blocked |= in_time and any(n in system.inputs for value in sets.values() for n in names(value))
        if blocked or not in_time:
            later.append(event)
            continue
        _see_start(model, system, levels, f"{len(system.outputs)}")
        happened = True
        for name, value in sets.items():
            (levels if name in levels else system.starts)[name] = value
    if not happened and model.onset is not None and any(TIME in names(e) for e in model.observed):
        _see_start(model, system, levels, "before")  # as at the start, but for time
    return later


def _see_start(model: Model, system: System, levels: Mapping[str, Expression], label: str) -> None:
    """Observe the start itself, but for outputs that are not defined there, such as a share of nothing."""
    for name, observed in zip(model.outputs, model.observed, strict=True):
        seen = pieces(substitute(observed, {**system.starts, **levels}))
        numeric = system.numeric(seen)
        with suppress(ZeroDivisionError):
            if names(simplified(numeric) if is_rational(numeric) else numeric):
                system.outputs[f"{name} at the start {label}"] = seen


def _levels_that_are_states(later: list[Event], levels: dict[str, Expression], system: System) -> set[str]:
    """Levels whose new values are neither given in parameters nor steps from the old ones become states at rest."""
    changing = {*system.rates, *levels, *system.inputs, TIME}
    for event in later:
        for name, value in event.sets.items():
            if name in levels and not changing & set(names(value)):
                continue
            step = _step(name, value)
            if name in levels and (step is None or changing & set(names(step))):
                system.rates[name], system.starts[name] = ZERO, levels.pop(name)
                return _levels_that_are_states(later, levels, system)  # others may depend on it
    return set(system.rates)


def _step(name: str, value: Expression) -> Expression | None:
    """What is added to a quantity that becomes `value`; None if its own value matters otherwise."""
    if is_rational(value):
        try:
            step = simplified(Sum((value, negative(Name(name)))))
        except ZeroDivisionError:
            return None
        return None if name in names(step) else step
    match value:
        case Sum(terms) if Name(name) in terms:
            rest = added(term for term in terms if term != Name(name))
            return None if name in names(rest) else rest
    return None


def _jump(later: list[Event], levels: Mapping[str, Expression], states: set[str], system: System) -> None:
    """Add to the rates of change of states what makes them jump."""
    more: dict[str, list[Expression]] = {name: [] for name in states}
    memories: dict[str, str] = {}
    known: dict[tuple[str, str, Expression], None] = {}
    for event in later:
        for name, value in event.sets.items():
            if name in levels:
                continue
            step = _step(name, value)
            if step is not None and not states & set(names(step)):
                _, part = _number_and_rest(system, step)
                if ("step", name, part) not in known and step != ZERO:
                    more[name].append(multiplied(part, system.new_input()))
                known["step", name, part] = None
                continue
            for used in states & set(names(value)):
                if used not in memories:
                    memories[used] = f"{used} as it was"
                    kept = Sum((Name(used), negative(Name(memories[used]))))
                    system.rates[memories[used]] = multiplied(kept, system.new_input())
                    system.starts[memories[used]] = ZERO
            new = substitute(value, {used: Name(memory) for used, memory in memories.items()})
            if ("value", name, new) not in known:
                more[name].append(multiplied(Sum((new, negative(Name(name)))), system.new_input()))
            known["value", name, new] = None
    for name, terms in more.items():
        system.rates[name] = added([system.rates[name], *terms])


def _number_and_rest(system: System, value: Expression) -> tuple[Fraction, Expression]:
    """A number and what it multiplies: inputs make up for numbers, so that only the rest matters."""
    numeric = system.numeric(value)
    if not is_rational(numeric):
        return Fraction(1), numeric
    rest = simplified(numeric)
    match rest:
        case Number(amount):
            return amount, ONE
        case Product((Number(amount), *factors)):
            return amount, multiplied(*factors)
    return Fraction(1), rest


def _values(later: list[Event], levels: Mapping[str, Expression], system: System) -> dict[str, Expression]:
    """Each level as its constant value, or as a combination of inputs."""
    found: dict[str, Expression] = {}
    for name, first in levels.items():
        new = [event.sets[name] for event in later if name in event.sets]
        if not new:
            found[name] = first
            continue
        values = [first, *(value if (step := _step(name, value)) is None else step for value in new)]
        parts = dict.fromkeys(part for n, part in (_number_and_rest(system, v) for v in values) if n)
        found[name] = added(multiplied(part, system.new_input()) for part in parts)
    return found
