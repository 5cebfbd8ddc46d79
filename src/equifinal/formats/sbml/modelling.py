"""A `Network` under the conditions of an experiment to a `Model`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from equifinal.errors import ModelError, did_you_mean
from equifinal.formats.sbml.functions import ZERO
from equifinal.formats.sbml.happenings import events_of
from equifinal.formats.sbml.network import Network, missing_name
from equifinal.formats.sbml.settling import LOGIC, Settling
from equifinal.language.checks import checked, free_names, in_order
from equifinal.language.expression import (
    TIME,
    Expression,
    Name,
    Number,
    Product,
    Sum,
    calls,
    evaluate,
    initial_name,
    name_nodes,
    names,
    substitute,
)
from equifinal.language.functions import call_on_arrays
from equifinal.language.model import Event, Model


@dataclass(frozen=True)
class Experiment:
    """What an experiment does to a network; every name is the network's, formulas are open.

    Attributes
    ----------
    unknown
        Names that are parameters, to be estimated.
    values
        Other values of constants: numbers or formulas.
    starts
        Other values of species and other states at the start.
    changes
        What changes later: times, and new values by name, all at once.
    onset
        When it starts; None: at time 0.
    before
        The model that was at rest when this one starts.
    surely_later
        Whether a time in parameters is after the start for all of them.
    at_rest
        Whether only its steady state is wanted. Conditions on time must then make no difference.
    """

    unknown: Collection[str] = ()
    values: Mapping[str, Expression] = field(default_factory=dict)
    starts: Mapping[str, Expression] = field(default_factory=dict)
    changes: Sequence[tuple[Expression, Mapping[str, Expression]]] = ()
    onset: Expression | None = None
    before: Model | None = None
    surely_later: Callable[[Expression], bool] = lambda time: False
    at_rest: bool = False


class Made(NamedTuple):
    """A model, and formulas that belong to it, settled, with constants as numbers."""

    model: Model
    formulas: Mapping[str, Expression]


def model_of(
    network: Network,
    experiment: Experiment,
    outputs: Mapping[str, Expression],
    formulas: Mapping[str, Expression] | None = None,
) -> Made:
    """The model, with `outputs` as further definitions (unless each is itself), and `formulas` in terms of it.

    Raises
    ------
    ModelError
        If something has no value, or cannot be represented.
    """
    try:
        if not experiment.at_rest:
            return _Modelling(network, experiment, outputs, formulas or {}).made()
        if network.happenings:
            raise ModelError("events before a steady state are not supported")
        # formulas that had held for ever at the beginning, and those that hold for ever in the end
        was, will_be = (_Modelling(network, experiment, outputs, {}, long_ago).made() for long_ago in (True, False))
        if not _agree(was.model, will_be.model):
            raise ModelError(
                "the model changes with time, so that its steady state before the experiment is not defined"
            )
        return will_be
    except ModelError as error:
        raise error if error.file else error.moved(file=network.file) from None


def _agree(one: Model, other: Model) -> bool:
    """Whether two models with the same names have the same derivatives, at random points."""
    rng = random.Random(0)
    for _ in range(3):
        values = {
            name: rng.uniform(0.5, 1.5) for name in sorted({*one.states, *one.parameters, *other.parameters, TIME})
        }
        values |= {name: float(value) for model in (one, other) for name, value in model.constants.items()}
        pairs = zip(one.rhs, other.rhs, strict=True)
        numbers = [[float(evaluate(e, values, float, call_on_arrays)) for e in pair] for pair in pairs]
        if any(not math.isclose(a, b, rel_tol=1e-12) and not (math.isnan(a) and math.isnan(b)) for a, b in numbers):
            return False
    return True


class _Modelling:
    def __init__(
        self,
        network: Network,
        experiment: Experiment,
        outputs: Mapping[str, Expression],
        formulas: Mapping[str, Expression],
        long_ago: bool | None = None,
    ):
        self.network, self.experiment, self.formulas = network, experiment, formulas
        self.seen = tuple(outputs)
        self.outputs = {name: formula for name, formula in outputs.items() if formula != Name(name)}
        self.long_ago = long_ago
        given = dict(experiment.values)
        self.numbers = {n: v for n, v in network.values.items() if n not in experiment.unknown and n not in given}
        named = {n: e for n, e in network.assigned.items() if n not in given and n not in experiment.unknown}
        for name, value in given.items():
            if isinstance(value, Number):
                self.numbers[name] = value.value
            else:
                named[name] = value
        self.named = named  # constants that are formulas
        self.starts = {**network.starts, **_amounts(network, experiment.starts)}
        self.start_time: Expression = experiment.onset or ZERO
        jumping = {n for h in network.happenings for n in h.sets} | {n for _, sets in experiment.changes for n in sets}
        self.jumping = {n for n in jumping if n in self.numbers or n in named or n in experiment.unknown}
        self.known = {n: v for n, v in self.numbers.items() if n not in self.jumping}
        for name in self.jumping:
            if name in experiment.unknown:
                raise ModelError(f"'{_label(network, name)}' is unknown and changes with time, which is not supported")

    # --- formulas ---

    @cached_property
    def constants(self) -> dict[str, Expression]:
        """Constants that formulas give, in terms of values at the start; what an event changes is not one."""
        formulas = {**self.named, **self.network.definitions, **self.outputs}
        wanted = self.named.keys() | _reached(self.named.values(), formulas)
        first: dict[str, Expression] = {n: Number(v) for n, v in self.numbers.items() if n in self.jumping}
        closed: dict[str, Expression] = {}
        for name in in_order({n: e for n, e in formulas.items() if n in wanted}):
            formula = substitute(formulas[name], closed)
            if name not in self.named:
                closed[name] = formula
            elif name in self.jumping:
                first[name] = self._started(formula, first)
            else:
                closed[name] = self._started(formula, first)
        return {name: closed[name] for name in self.named if name in closed}

    @cached_property
    def closed(self) -> dict[str, Expression]:
        """Definitions and constants in terms of what is neither."""
        definitions = {**self.network.definitions, **self.outputs}
        found = dict(self.constants)
        for name in in_order(definitions):
            found[name] = substitute(definitions[name], found)
        return found

    @cached_property
    def settling(self) -> Settling:
        formulas = [*self.network.rates.values(), *self.network.definitions.values(), *self.outputs.values()]
        formulas += [h.trigger for h in self.network.happenings]
        if not any(_compares(formula) for formula in (*formulas, *self.formulas.values())):
            return Settling(self.known)
        plain = Settling(self.known, self.closed, self.long_ago)
        even: dict[str, Expression] = {}  # states that grow evenly with time
        moving: set[str | None] = {n for h in self.network.happenings for n in h.sets}
        moving |= {n for _, sets in self.experiment.changes for n in sets}
        moving |= {kind.state for n, kind in self.network.species.items() if {n, kind.compartment} & moving}
        for name, rate in self.network.rates.items():
            slope = plain.value(substitute(rate, self.closed))
            if slope is not None and name not in moving and self.experiment.before is None:
                since = Sum((Name(TIME), Product((Number(Fraction(-1)), self.start_time))))
                even[name] = Sum((self.at_start(self.starts[name]), Product((Number(slope), since))))
        meanings = {name: substitute(formula, even) for name, formula in self.closed.items()}
        return Settling(self.known, {**meanings, **even}, self.long_ago)

    def settled(self, formula: Expression, where: str) -> Expression:
        return self.settling.settle(formula, where)

    def at_start(self, formula: Expression) -> Expression:
        """A formula of values at the start, in parameters, constants and other initial values."""
        formula = substitute(formula, {n: self.closed[n] for n in names(formula) if n in self.network.definitions})
        return self._started(formula, {n: self._level(n) for n in names(formula) if n in self.jumping})

    def _started(self, formula: Expression, levels: Mapping[str, Expression]) -> Expression:
        states = {x: Name(initial_name(x)) for x in self.network.rates}
        return substitute(formula, {**states, **levels, TIME: self.start_time})

    def _level(self, name: str) -> Expression:
        """The value of a constant at the start."""
        if name in self.numbers:
            return Number(self.numbers[name])
        return self.at_start(self.named[name]) if name in self.named else Name(name)

    # --- the model ---

    def made(self) -> Made:
        network, experiment = self.network, self.experiment
        compares = any(map(_compares, (*self.starts.values(), *self.named.values())))
        here = Settling(self.known, self.constants if compares else {})
        equations = {x: self.settled(rate, _of(network, x)) for x, rate in network.rates.items()}
        initial = {
            x: here.settle(self.at_start(self.starts[x]), f"the start of '{_label(network, x)}'") for x in network.rates
        }
        definitions = {n: self.settled(e, _of(network, n)) for n, e in network.definitions.items()}
        definitions |= {n: self.settled(e, f"'{n}'") for n, e in self.outputs.items()}
        definitions |= {
            n: here.settle(self.at_start(e), f"the value of '{_label(network, n)}'")
            for n, e in self.named.items()
            if n not in self.jumping
        }
        levels = {n: here.settle(self._level(n), f"the value of '{n}'") for n in sorted(self.jumping)}
        extra, events = self._events()
        if not equations:  # a model needs a state; this one stays where it is
            equations, initial = {"nothing": ZERO}, {"nothing": ZERO}
        draft = Model(
            states=tuple(equations),
            parameters=(),
            constants=self.known,
            inputs=(),
            equations=equations,
            initial=initial,
            definitions=definitions,
            outputs=self.seen,
            levels={**levels, **extra},
            events=events,
            onset=experiment.onset,
            before=experiment.before,
        )
        numbers: dict[str, Expression] = {n: Number(v) for n, v in self.known.items()}
        formulas = {n: substitute(self.settled(e, n), numbers) for n, e in self.formulas.items()}
        draft = _without_unused(draft, formulas.values())
        draft = replace(draft, parameters=free_names(draft))
        self._check_known(draft, formulas.values())
        return Made(checked(draft), formulas)

    def _events(self) -> tuple[dict[str, Expression], tuple[Event, ...]]:
        network, experiment = self.network, self.experiment
        start = self.settling.value(self.start_time)
        levels, own = events_of(network.happenings, self.settling, network.species, start, experiment.surely_later)
        changes = []
        for time, sets in experiment.changes:
            where = "a change of conditions"
            kept = {  # another size leaves concentrations as they are
                n: Name(n)
                for n, kind in network.species.items()
                if kind.state not in (None, n) and kind.compartment in sets and n not in sets
            }
            in_states = {n: self.settled(e, where) for n, e in _amounts(network, {**sets, **kept}).items()}
            changes.append(Event(time, in_states, first=True))
        # a change of conditions comes first, and what the model itself does then sees it
        return levels, (*changes, *own)

    def _check_known(self, model: Model, formulas: Iterable[Expression]) -> None:
        declared = {*model.states, *model.definitions, *model.levels, *model.outputs, TIME}
        free = [*model.parameters, *(n for e in formulas for n in names(e) if n not in declared)]
        without = [name for name in free if name not in self.experiment.unknown]
        for name in without:
            states = {missing_name(x): x for x in model.states}
            if name in states:
                raise ModelError(f"'{_label(self.network, states[name])}' has no value at the start", word=states[name])
            if name in self.network.missing:
                raise ModelError(f"'{_label(self.network, name)}' has no value", word=name)
            known = {*self.network.names, *self.experiment.unknown, *self.numbers}
            raise ModelError(f"unknown name '{name}'{did_you_mean(name, known)}", word=name)


def _amounts(network: Network, values: Mapping[str, Expression]) -> dict[str, Expression]:
    """Values of concentrations whose amount is the state, as amounts."""
    found: dict[str, Expression] = {}
    for name, value in values.items():
        kind = network.species.get(name)
        if kind is None or kind.state in (None, name) or kind.compartment is None:
            found[name] = value
        else:
            assert kind.state is not None
            found[kind.state] = Product((value, values.get(kind.compartment, Name(kind.compartment))))
    return found


def _compares(formula: Expression) -> bool:
    return any(call.function in LOGIC or call.function in ("lt", "le", "eq", "ne") for call in calls(formula))


def _label(network: Network, name: str) -> str:
    return next((identifier for identifier, own in network.names.items() if own == name), name)


def _of(network: Network, name: str) -> str:
    return f"the formula of '{_label(network, name)}'"


def _without_unused(model: Model, also: Iterable[Expression]) -> Model:
    """Leave out definitions and constants that nothing uses, nor the formulas given."""
    happening = [e for event in model.events for e in (event.time, *event.sets.values())]
    first: list[Expression] = [*model.equations.values(), *model.initial.values(), *model.levels.values(), *happening]
    first += [Name(y) for y in model.outputs] + ([model.onset] if model.onset else [])
    used = _reached([*first, *also], model.definitions)
    return replace(
        model,
        definitions={n: e for n, e in model.definitions.items() if n in used},
        constants={n: v for n, v in model.constants.items() if n in used},
    )


def _reached(first: Iterable[Expression], definitions: Mapping[str, Expression]) -> set[str]:
    """Names in formulas, and in the definitions that these lead to."""
    found: set[str] = set()
    stack = [*first]
    while stack:
        for node in name_nodes(stack.pop()):
            if node.name not in found:
                found.add(node.name)
                if node.name in definitions:
                    stack.append(definitions[node.name])
    return found
