"""An ODE model: states, unknown parameters, constants, outputs, initial values, quantities of interest, and events.

    x' = f(x, u, t, theta),   x(0) = x0(theta),   y = h(x, u, t, theta),

f, x0 and h being rational with rational coefficients, or calling functions such as exp. At events states jump; levels
are what is constant between them.

`Model.parse` reads it from plain text. What the text leaves open is unknown: a name that is not a state, a
definition, a constant or an input is a parameter, and a state ``x`` without an initial value starts at the parameter
``x_0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from equifinal.errors import ModelError, did_you_mean
from equifinal.language.checks import checked, finite_somewhere, free_names, in_order
from equifinal.language.expression import (
    TIME,
    Expression,
    Name,
    Number,
    Power,
    evaluate,
    initial_name,
    is_rational,
    name_nodes,
    names,
    number_text,
    substitute,
    to_text,
    walk,
)
from equifinal.language.functions import call_on_arrays
from equifinal.language.happening import happening_lines
from equifinal.language.parser import parse_expression

MAX_CANCELLED = 300  # nodes of an expression whose common factors are looked for


@dataclass(frozen=True)
class Event:
    """A moment at which states and levels take new values.

    Attributes
    ----------
    time
        When, in parameters and constants. An event at or before the start happens at the start.
    sets
        The new values by name, in states, levels, parameters, constants and time, as they are just before, and inputs,
        as they are from then on. Events at one time happen one after another, in the order in which the model has them,
        those that come before observations first.
    first
        Whether it comes before an observation at the same time, rather than after it.
    """

    time: Expression
    sets: Mapping[str, Expression]
    first: bool = False


@dataclass(frozen=True)
class Model:
    """An ODE model. Build it with `Model.parse`; every expression is exact.

    Attributes
    ----------
    states
        Names of the state variables, in the order of their equations.
    parameters
        Names of everything unknown, in order of first appearance: rate constants, observation parameters, unknown
        initial values.
    constants
        Known numbers by name, exact.
    inputs
        Names of known functions of time.
    equations, initial
        Right-hand side and initial value of each state, as written (definitions by name).
    definitions
        Intermediate names and output maps, as written.
    outputs
        The definitions or states that are observed.
    quantities
        Quantities of interest: functions of parameters and constants.
    trajectories
        Those that change with time: functions of states and inputs too.
    levels
        What is constant between events, each with its value from the start on: in parameters and constants.
    events
        When states and levels jump, and where to.
    onset
        When the model starts, in parameters and constants; until then everything is as at the start. None: at time 0.
    before
        The model as it held before, with the same states: it was at rest when this one starts, and its initial values
        say from where it came to rest. This model's own initial values then have no meaning. None: there is none.
    """

    states: tuple[str, ...]
    parameters: tuple[str, ...]
    constants: Mapping[str, Fraction]
    inputs: tuple[str, ...]
    equations: Mapping[str, Expression]
    initial: Mapping[str, Expression]
    definitions: Mapping[str, Expression]
    outputs: tuple[str, ...]
    quantities: Mapping[str, Expression] = field(default_factory=dict)
    trajectories: Mapping[str, Expression] = field(default_factory=dict)
    levels: Mapping[str, Expression] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    onset: Expression | None = None
    before: Model | None = None

    @staticmethod
    def parse(
        equations: str,
        outputs: Iterable[str],
        *,
        inputs: Iterable[str] = (),
        constants: Mapping[str, Any] | None = None,
        quantities: Mapping[str, str] | None = None,
        parameters: Iterable[str] | None = None,
    ) -> Model:
        """Read a model from text.

        Parameters
        ----------
        equations
            One equation on a line: ``x' = ...`` or ``dx/dt = ...``, ``x(0) = ...``, ``name = ...``; ``#`` comments.
        outputs
            Names of the definitions or states that are observed.
        inputs
            Names of known functions of time.
        constants
            Known numbers by name: int, Fraction, text such as ``"1e-5"``, or float (read as it prints, so that
            ``0.1`` is 1/10). One that stands in an exponent, ``x^n``, is put in for good.
        quantities
            Quantities of interest, such as ``{"R0": "beta*N/gamma"}``; those of states, such as
            ``{"incidence": "beta*S*I"}``, are trajectories.
        parameters
            If given, the only names that may be unknown (besides ``x_0`` for initial values left out), so that a
            misspelt name is an error; those that no equation contains are parameters as well. If not, every free name
            is a parameter.

        Raises
        ------
        ModelError
            With line, column, the offending word, and a suggestion where there is one.
        """
        from equifinal.language.reader import read_model

        return read_model(equations, outputs, inputs, constants or {}, quantities or {}, parameters)

    # --- what solvers and algebra use: definitions put in ---

    @cached_property
    def rhs(self) -> tuple[Expression, ...]:
        """Right-hand sides in states, inputs, parameters and constants only."""
        return tuple(self._regular(self._expanded(self.equations[x])) for x in self.states)

    @cached_property
    def start(self) -> tuple[Expression, ...]:
        """Initial values in parameters and constants only."""
        return tuple(self._expanded(self.initial[x]) for x in self.states)

    @cached_property
    def observed(self) -> tuple[Expression, ...]:
        """Output maps in states, inputs, parameters and constants only."""
        return tuple(self._regular(self._expanded(Name(y))) for y in self.outputs)

    @cached_property
    def first_levels(self) -> tuple[Expression, ...]:
        """Levels at the start, in parameters and constants only."""
        return tuple(self._expanded(value) for value in self.levels.values())

    @cached_property
    def jumps(self) -> tuple[Event, ...]:
        """Events with definitions put in."""
        return tuple(
            Event(self._expanded(e.time), {x: self._expanded(v) for x, v in e.sets.items()}, e.first)
            for e in self.events
        )

    @cached_property
    def start_time(self) -> Expression:
        """When the model starts, in parameters and constants only."""
        return Number(Fraction(0)) if self.onset is None else self._expanded(self.onset)

    @cached_property
    def uses_time(self) -> bool:
        """Whether time itself stands in an equation, an output or the new value of an event."""
        jumps = [value for event in self.jumps for value in event.sets.values()]
        return any(TIME in names(e) for e in (*self.rhs, *self.observed, *jumps))

    @property
    def is_plain(self) -> bool:
        """Whether the model is rational, does not name time, and nothing ever happens to it but its known inputs."""
        happens = self.levels or self.events or self.onset is not None or self.before is not None
        parts = (*self.rhs, *self.start, *self.observed)
        return not happens and not self.uses_time and all(map(is_rational, parts))

    @cached_property
    def interest(self) -> Mapping[str, Expression]:
        """Quantities of interest in parameters and constants only."""
        return {name: self._expanded(expression) for name, expression in self.quantities.items()}

    @cached_property
    def closed_definitions(self) -> Mapping[str, Expression]:
        closed: dict[str, Expression] = {}
        for name in in_order(self.definitions):
            closed[name] = substitute(self.definitions[name], closed)
        return closed

    def _expanded(self, expression: Expression) -> Expression:
        # initial values may be named anywhere, and may name each other; that there is no circle was checked
        starts = {initial_name(x): self.initial[x] for x in self.states}
        expression = substitute(expression, self.closed_definitions)
        while any(node.name in starts for node in name_nodes(expression)):
            expression = substitute(substitute(expression, starts), self.closed_definitions)
        return expression

    def _regular(self, expression: Expression) -> Expression:
        """The expression without what it divides by in vain: ``a*x^2/x`` is ``a*x`` where x starts at zero."""
        quotients = any(isinstance(node, Power) and node.exponent < 0 for node in walk(expression))
        if not quotients or not is_rational(expression) or sum(1 for _ in walk(expression)) > MAX_CANCELLED:
            return expression
        starts = dict(zip(self.states, self.start, strict=True))
        if any(finite_somewhere(substitute(expression, starts), self, attempt) for attempt in range(2)):
            return expression
        from equifinal.language.cancelling import cancelled

        return cancelled(substitute(expression, {name: Number(value) for name, value in self.constants.items()}))

    # --- variations ---

    def with_outputs(self, more: Iterable[str]) -> Model:
        """The same model with further outputs: states, definitions or trajectories by name."""
        new = [name for name in dict.fromkeys(more) if name not in self.outputs]
        named = {name: self.trajectories[name] for name in new if name in self.trajectories}
        return replace(self, definitions={**named, **self.definitions}, outputs=(*self.outputs, *new), trajectories={})

    def vary(
        self,
        *,
        constants: Mapping[str, Any] | None = None,
        initial: Mapping[str, str] | None = None,
        events: Iterable[Event] | None = None,
        levels: Mapping[str, Expression] | None = None,
        onset: str | Expression | None = None,
        before: Model | None = None,
    ) -> Model:
        """The same model as another experiment has it.

        Parameters
        ----------
        constants
            Other values: numbers, or expressions in parameters and other constants, such as the name of a parameter.
        initial
            Other initial values.
        events, levels, onset, before
            What happens in this experiment; see `Model`. Events and levels are added to those that there are.
        """
        new_constants, named = dict(self.constants), dict(self.definitions)
        for name, value in (constants or {}).items():
            if name not in self.constants:
                hint = did_you_mean(name, self.constants)
                raise ModelError(f"unknown constant '{name}'{hint}; an exponent cannot be varied", word=name)
            expression = read_part(value, f"constant '{name}'") if isinstance(value, str) else None
            if expression is not None and names(expression):  # no longer a number, but a name for something else
                del new_constants[name]
                named = {name: expression, **named}
            else:
                new_constants[name] = exact_number(value, f"constant '{name}'")
        new_initial = dict(self.initial)
        for state, text in (initial or {}).items():
            if state not in self.states:
                hint = did_you_mean(state, self.states)
                raise ModelError(f"initial value of an unknown state '{state}'{hint}", word=state)
            new_initial[state] = read_part(str(text), f"initial value of '{state}'")
        draft = replace(
            self,
            constants=new_constants,
            definitions=named,
            initial=new_initial,
            levels={**self.levels, **(levels or {})},
            events=(*self.events, *(events or ())),
            onset=read_part(onset, "the onset") if isinstance(onset, str) else onset or self.onset,
            before=before or self.before,
        )
        kept = free_names(draft)
        unseen = [name for name in self.parameters if name not in kept and name not in free_names(self)]
        return checked(replace(draft, parameters=(*kept, *unseen)))

    # --- words ---

    def __str__(self) -> str:
        return f"{self.to_text()}\n\n{self.describe()}"

    def to_text(self) -> str:
        """The equations in the model language; `Model.parse` reads them back.

        What happens to the model is not part of them, see `describe`; one that starts from rest has no initial values.
        """
        lines = [f"{x}' = {to_text(self.equations[x], decimals=True)}" for x in self.states]
        lines += [f"{name} = {to_text(expression, decimals=True)}" for name, expression in self.definitions.items()]
        if self.before is None:
            lines += [f"{x}(0) = {to_text(self.initial[x], decimals=True)}" for x in self.states]
        return "\n".join(lines)

    def describe(self) -> str:
        """The model in words, a line for each kind of name."""
        starts = self.initial if self.before is None else {}
        unknown_starts = [p for x in starts for p in names(self.initial[x]) if p == f"{x}_0" and p in self.parameters]
        rows = [
            ("states", self.states),
            ("parameters", [p for p in self.parameters if p not in unknown_starts]),
            ("unknown initial values", unknown_starts),
            ("constants", [f"{k} = {number_text(v)}" for k, v in self.constants.items()]),
            ("known inputs", self.inputs),
            ("outputs", [f"{y} = {to_text(self.definitions.get(y, Name(y)), decimals=True)}" for y in self.outputs]),
            (
                "quantities of interest",
                [f"{k} = {to_text(v, decimals=True)}" for k, v in {**self.quantities, **self.trajectories}.items()],
            ),
        ]
        lines = [f"{title}: {', '.join(items)}" for title, items in rows if items]
        return "\n".join([*lines, *happening_lines(self)])


# --- parts of models given as text ---


def exact_number(value: Any, what: str) -> Fraction:
    """An exact rational from an int, a Fraction, a float (as it prints) or text; else a `ModelError`."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ModelError(f"{what} must be a number, not {value!r}")
    try:
        expression = parse_expression(value if isinstance(value, str) else repr(value))
        exact = evaluate(expression, {}, Fraction, _nearest_number)
    except (ModelError, KeyError, ArithmeticError, ValueError, OverflowError):
        raise ModelError(f"{what} must be a finite number, not {value!r}", word=str(value)) from None
    if exact and not 1e-300 < abs(exact) < 1e300:
        raise ModelError(f"{what} is too large or too small a number", word=str(value)[:20])
    return Fraction(exact)


def _nearest_number(function: str, arguments: Sequence[Fraction]) -> Fraction:
    """The value of a function as it prints: a constant such as log(2) is a number."""
    return Fraction(repr(float(call_on_arrays(function, [float(value) for value in arguments]))))


def read_part(text: str, what: str, constants: Mapping[str, Fraction] | None = None) -> Expression:
    """An expression that stands apart from the equations; an error has no line in them."""
    try:
        return parse_expression(text, constants)
    except ModelError as error:
        raise ModelError(f"{what}, column {error.column}: {error.message}", word=error.word) from None
