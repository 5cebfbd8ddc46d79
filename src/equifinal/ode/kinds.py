"""Events as the integrators take them: kinds, which are compiled, and numbers, which are data.

Ten thousand doses differ in their times and perhaps in their amounts. Events that are equal but for their numbers are
of one kind and share its code, which reads the numbers from a table. The start of a model with an onset is an event as
well, one that sets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum
from equifinal.language.model import Event, Model
from equifinal.machine import native
from equifinal.machine.functions import Functions
from equifinal.machine.sparse import Sparse


class Kind(NamedTuple):
    """What events have in common that differ in numbers only; numbers are names such as ``number 1``."""

    time: Expression
    sets: tuple[tuple[str, Expression], ...]


class Happening(NamedTuple):
    """All events of a system for the integrators; `equifinal.ode.stepping.layout` says what stands where."""

    table: np.ndarray
    numbers: np.ndarray
    kinds: tuple[np.ndarray, ...]
    codes: tuple[native.Code, ...]  # kept alive with the addresses, as are the arrays
    most: int  # results of one function


class Derivatives(NamedTuple):
    """Of the times and new values of one kind."""

    when: Sparse
    by_states: Sparse
    by_parameters: Sparse


class Events:
    """The events of a model, sorted into kinds; those that come before observations stand first.

    Attributes
    ----------
    onset
        1 if the first of them is the start, 0 if the model starts at time 0.
    """

    onset: int
    kinds: tuple[Kind, ...]

    def __init__(self, model: Model, arrays: Mapping[str, Sequence[str]]):
        onset = [Event(model.start_time, {}, first=True)] if model.onset is not None else []
        self.onset = len(onset)
        self._events = [*onset, *sorted(model.jumps, key=lambda event: not event.first)]
        self._numbers: list[float] = []
        self._places: list[tuple[int, int]] = []  # kind and first number of each event
        kinds: dict[Kind, int] = {}
        most = 0
        for event in self._events:
            numbers: list[Fraction] = []
            sets = tuple((name, _without_numbers(value, numbers)) for name, value in event.sets.items())
            kind = Kind(_without_numbers(event.time, numbers), sets)
            self._places.append((kinds.setdefault(kind, len(kinds)), len(self._numbers)))
            self._numbers.extend(map(_as_double, numbers))
            most = max(most, len(numbers))
        self.kinds = tuple(kinds)
        groups: dict[str, list[Expression]] = {}
        for k, kind in enumerate(self.kinds):
            groups |= {f"when{k}": [kind.time], f"jump{k}": [value for _, value in kind.sets]}
        self._functions = Functions({**arrays, "dx": [_number_name(i) for i in range(most)]}, groups)
        self._targets = {name: i for i, name in enumerate(arrays["x"])}
        self._n_states, self._n_inputs = len(self._targets), len(arrays["u"])

    def __len__(self) -> int:
        return len(self._events)

    def derivatives(self, width: int) -> list[Derivatives]:
        """Of each kind, by the states and by the first ``width`` arguments."""
        graph, nodes = self._functions.graph, self._functions.nodes
        return [
            Derivatives(
                Sparse.gradient(graph, nodes[f"when{k}"], "p", width),
                Sparse.gradient(graph, nodes[f"jump{k}"], "x", self._n_states),
                Sparse.gradient(graph, nodes[f"jump{k}"], "p", width),
            )
            for k in range(len(self.kinds))
        ]

    @cached_property
    def _plain_code(self) -> native.Code:
        return self._functions.compile(self._functions.nodes)

    def tables(self, derivatives: Sequence[Derivatives] = (), places: Mapping[int, int] | None = None) -> Happening:
        """What integrators read; with derivatives if these are given, and the column of each parameter."""
        if not self._events:
            return Happening(np.empty((0, 3), np.int64), np.empty(0), (), (), 0)
        nodes, plain = self._functions.nodes, self._plain_code.addresses
        code, most = self._plain_code, max(len(roots) for roots in nodes.values())
        graph, tangents = self._functions.graph, {}
        speeds = {graph.load("u", i): graph.load("du", i) for i in range(self._n_inputs)}
        for k, found in enumerate(derivatives):
            tangents[f"when{k}"] = nodes[f"when{k}"] + found.when.nodes
            new = nodes[f"jump{k}"]
            tangents[f"jump{k}"] = (
                new + graph.derivatives(new, speeds) + found.by_states.nodes + found.by_parameters.nodes
            )
        if tangents:
            code = self._functions.compile(tangents)
            most = max(len(roots) for roots in tangents.values())
        kinds = []
        for k, kind in enumerate(self.kinds):
            targets = [self._targets[name] for name, _ in kind.sets]
            calls = [plain[f"when{k}"], plain[f"jump{k}"]]
            if not derivatives:
                kinds.append(np.array([len(targets), 0, 0, 0, *calls, 0, 0, *targets], dtype=np.int64))
                continue
            when, by_states, by_parameters = derivatives[k]
            place = places or {}
            sizes = [len(targets), len(when.nodes), len(by_states.nodes), len(by_parameters.nodes)]
            calls += [code.addresses[f"when{k}"], code.addresses[f"jump{k}"]]
            patterns = [*targets, *(place[c] for c in when.columns), *by_states.rows, *by_states.columns]
            patterns += [*by_parameters.rows, *(place[c] for c in by_parameters.columns)]
            kinds.append(np.array([*sizes, *calls, *patterns], dtype=np.int64))
        numbers = np.array([*self._numbers, 0.0])
        at = native.address(numbers)
        table = np.array(
            [
                (native.address(kinds[kind]), at + 8 * first, event.first)
                for event, (kind, first) in zip(self._events, self._places, strict=True)
            ],
            dtype=np.int64,
        )
        return Happening(table, numbers, tuple(kinds), (self._plain_code, code), most)


def _number_name(place: int) -> str:
    return f"number {place}"  # no user can write that


def _as_double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _without_numbers(expression: Expression, numbers: list[Fraction]) -> Expression:
    """The expression with a name in place of each number, which is noted."""
    match expression:
        case Number(value):
            numbers.append(value)
            return Name(_number_name(len(numbers) - 1))
        case Sum(terms):
            return Sum(tuple(_without_numbers(term, numbers) for term in terms))
        case Product(factors):
            return Product(tuple(_without_numbers(factor, numbers) for factor in factors))
        case Power(base, exponent):
            return Power(_without_numbers(base, numbers), exponent)
        case Call(function, arguments):
            return Call(function, tuple(_without_numbers(argument, numbers) for argument in arguments))
    return expression
