"""A rational ODE model: states, unknown parameters, constants, outputs, initial values, quantities of interest.

    x' = f(x, u, theta),   x(0) = x0(theta),   y = h(x, u, theta),   f, x0, h rational with rational coefficients.

`Model.parse` reads it from plain text. What the text leaves open is unknown: a name that is not a state, a
definition, a constant or an input is a parameter, and a state ``x`` without an initial value starts at the parameter
``x_0``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from equifinal.errors import ModelError, did_you_mean
from equifinal.language.expression import (
    Expression,
    Name,
    Number,
    Power,
    evaluate,
    height,
    initial_name,
    name_nodes,
    names,
    number_text,
    substitute,
    to_text,
    walk,
)
from equifinal.language.parser import parse_expression

MAX_TERMS = 50_000  # nodes of all equations together, once definitions are put in
MAX_DEPTH = 300
MAX_CANCELLED = 300  # nodes of an expression whose common factors are looked for


@dataclass(frozen=True)
class Model:
    """A rational ODE model. Build it with `Model.parse`; every expression is exact.

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
    def interest(self) -> Mapping[str, Expression]:
        """Quantities of interest in parameters and constants only."""
        return {name: self._expanded(expression) for name, expression in self.quantities.items()}

    @cached_property
    def closed_definitions(self) -> Mapping[str, Expression]:
        closed: dict[str, Expression] = {}
        for name in _in_order(self.definitions):
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
        if not quotients or sum(1 for _ in walk(expression)) > MAX_CANCELLED:
            return expression
        starts = dict(zip(self.states, self.start, strict=True))
        if any(_finite_somewhere(substitute(expression, starts), self, attempt) for attempt in range(2)):
            return expression
        from equifinal.language.cancelling import cancelled

        return cancelled(substitute(expression, {name: Number(value) for name, value in self.constants.items()}))

    # --- variations ---

    def with_outputs(self, more: Iterable[str]) -> Model:
        """The same model with further outputs: states, definitions or trajectories by name."""
        new = [name for name in dict.fromkeys(more) if name not in self.outputs]
        named = {name: self.trajectories[name] for name in new if name in self.trajectories}
        return replace(self, definitions={**named, **self.definitions}, outputs=(*self.outputs, *new), trajectories={})

    def vary(self, *, constants: Mapping[str, Any] | None = None, initial: Mapping[str, str] | None = None) -> Model:
        """The same model with other constants or initial values, as another experiment would have them."""
        new_constants = dict(self.constants)
        for name, value in (constants or {}).items():
            if name not in self.constants:
                hint = did_you_mean(name, self.constants)
                raise ModelError(f"unknown constant '{name}'{hint}; an exponent cannot be varied", word=name)
            new_constants[name] = exact_number(value, f"constant '{name}'")
        new_initial = dict(self.initial)
        for state, text in (initial or {}).items():
            if state not in self.states:
                hint = did_you_mean(state, self.states)
                raise ModelError(f"initial value of an unknown state '{state}'{hint}", word=state)
            new_initial[state] = read_part(str(text), f"initial value of '{state}'")
        draft = replace(self, constants=new_constants, initial=new_initial)
        kept = free_names(draft)
        unseen = [name for name in self.parameters if name not in kept and name not in free_names(self)]
        return checked(replace(draft, parameters=(*kept, *unseen)))

    # --- words ---

    def __str__(self) -> str:
        return f"{self.to_text()}\n\n{self.describe()}"

    def to_text(self) -> str:
        """The equations in the model language; `Model.parse` reads them back."""
        lines = [f"{x}' = {to_text(self.equations[x], decimals=True)}" for x in self.states]
        lines += [f"{name} = {to_text(expression, decimals=True)}" for name, expression in self.definitions.items()]
        lines += [f"{x}(0) = {to_text(self.initial[x], decimals=True)}" for x in self.states]
        return "\n".join(lines)

    def describe(self) -> str:
        """The model in words, a line for each kind of name."""
        unknown_starts = [p for x in self.states for p in names(self.initial[x]) if p == f"{x}_0"]
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
        return "\n".join(f"{title}: {', '.join(items)}" for title, items in rows if items)


# --- parts of models given as text ---


def exact_number(value: Any, what: str) -> Fraction:
    """An exact rational from an int, a Fraction, a float (as it prints) or text; else a `ModelError`."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ModelError(f"{what} must be a number, not {value!r}")
    try:
        expression = parse_expression(value if isinstance(value, str) else repr(value))
        exact = evaluate(expression, {}, Fraction)
    except (ModelError, KeyError, ArithmeticError):
        raise ModelError(f"{what} must be a finite number, not {value!r}", word=str(value)) from None
    if exact and not 1e-300 < abs(exact) < 1e300:
        raise ModelError(f"{what} is too large or too small a number", word=str(value)[:20])
    return Fraction(exact)


def read_part(text: str, what: str, constants: Mapping[str, Fraction] | None = None) -> Expression:
    """An expression that stands apart from the equations; an error has no line in them."""
    try:
        return parse_expression(text, constants)
    except ModelError as error:
        raise ModelError(f"{what}, column {error.column}: {error.message}", word=error.word) from None


# --- checks that hold for every model, however it was made ---


def free_names(model: Model) -> tuple[str, ...]:
    """Names in the equations that nothing declares, in order of first appearance: the parameters."""
    declared = {*model.states, *model.definitions, *model.constants, *model.inputs}
    declared |= {initial_name(x) for x in model.states}
    expressions = [*model.equations.values(), *model.definitions.values(), *model.initial.values()]
    free: dict[str, None] = {}
    for expression in expressions:
        for node in name_nodes(expression):
            if node.name in declared:
                continue
            where = {"line": node.line, "column": node.column, "word": node.name}
            if node.name == "t":
                raise ModelError(
                    "'t' stands for time, and equations may not depend on it directly; add a state for it: "
                    "clock' = 1, clock(0) = 0",
                    **where,  # type: ignore[arg-type]
                )
            if node.name.endswith("(0)"):
                hint = did_you_mean(node.name[:-3], model.states)
                raise ModelError(f"'{node.name}' is not the initial value of a state{hint}", **where)  # type: ignore[arg-type]
            free[node.name] = None
    return tuple(free)


def checked(model: Model) -> Model:
    _in_order(model.definitions)
    _check_initial_values(model)
    for name in model.outputs:
        if name not in model.definitions and name not in model.states:
            known = {*model.definitions, *model.states}
            raise ModelError(f"output '{name}' is not defined in the equations{did_you_mean(name, known)}", word=name)
    if not model.outputs:
        raise ModelError("the model has no outputs: declare which definitions or states are observed")
    _check_size(model)
    _check_division(model)
    return model


def _in_order(definitions: Mapping[str, Expression]) -> list[str]:
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
                circle = " -> ".join([*path[path.index(name) :], name])
                raise ModelError(f"the definitions are circular: {circle}", word=name)
            path.append(name)
            stack.append((name, True))
            stack.extend((used, False) for used in names(definitions[name]) if used in definitions)
    return order


def _check_initial_values(model: Model) -> None:
    as_definitions = {initial_name(x): model.initial[x] for x in model.states} | dict(model.definitions)
    _in_order(as_definitions)  # S(0) = N - I(0), I(0) = N - S(0) is a circle
    reachable: dict[str, set[str]] = {}
    for name in _in_order(as_definitions):
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


def _check_size(model: Model) -> None:
    """Refuse definitions that grow without bound when put into each other, before doing so."""
    named = dict(model.definitions) | {initial_name(x): model.initial[x] for x in model.states}
    size: dict[str, int] = {}
    depth: dict[str, int] = {}

    def measure(expression: Expression) -> tuple[int, int]:
        inner = [node.name for node in name_nodes(expression) if node.name in size]
        nodes = sum(1 for _ in walk(expression)) + sum(size[name] for name in inner)
        return nodes, height(expression) + max((depth[name] for name in inner), default=0)

    for name in _in_order(named):
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
    """Division by something that is zero for all parameters, found by evaluating at random points modulo a prime."""
    parts = {f"the equation of '{x}'": e for x, e in zip(model.states, model.rhs, strict=True)}
    parts |= {f"the initial value of '{x}'": e for x, e in zip(model.states, model.start, strict=True)}
    parts |= {f"output '{y}'": e for y, e in zip(model.outputs, model.observed, strict=True)}
    parts |= {f"quantity '{q}'": e for q, e in model.interest.items()}
    for where, expression in parts.items():
        if not any(_finite_somewhere(expression, model, attempt) for attempt in range(3)):
            raise ModelError(f"{where} divides by zero for all parameters")


def _finite_somewhere(expression: Expression, model: Model, attempt: int) -> bool:
    rng = random.Random(attempt)
    values = {name: _Residue(rng.randrange(_PRIME)) for name in names(expression)}
    values |= {name: _Residue.of(value) for name, value in model.constants.items()}
    try:
        evaluate(expression, values, _Residue.of)
    except ZeroDivisionError:
        return False
    return True


_PRIME = 2**61 - 1


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
