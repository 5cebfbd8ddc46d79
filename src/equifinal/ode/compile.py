"""Models to compiled systems.

A system is machine code for the model's functions and the table that hands them to the integrators.
Parameters and constants are arguments at run time, so experiments that differ in the values of constants
share their code, and those that differ in initial values share all code but the initial values'.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from equifinal.errors import SolverError, did_you_mean
from equifinal.language.expression import TIME, Expression, Number
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Model
from equifinal.machine import native
from equifinal.machine.functions import Functions
from equifinal.machine.sparse import Sparse
from equifinal.ode.integrator import integrator
from equifinal.ode.kinds import Events, Happening
from equifinal.ode.stepping import layout

_extending = threading.Lock()  # a graph is extended by one thread at a time


class Table(NamedTuple):
    """What the integrator is told: `equifinal.ode.stepping.layout` says what stands where."""

    entries: np.ndarray
    address: int  # of the entries
    work_size: int
    codes: tuple[native.Code, ...]  # kept alive with the addresses
    happening: Happening


@dataclass(frozen=True, eq=False)
class System:
    """A compiled model, made by `compile_system` and solved by `equifinal.ode.simulate`.

    Attributes
    ----------
    model, parameters
        What it was compiled from.
    arguments
        Names of the columns of ``p`` in `simulate`: the parameters, then the model's constants.
    n_states, n_outputs, n_inputs, n_sensitivities
        Sizes; sensitivities are by each of ``parameters``.
    compile_seconds
        Time spent on making the code of a plain solve.
    """

    model: Model
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    compile_seconds: float
    _integrated: Model = field(repr=False)
    _before: System | None = field(repr=False)
    _dynamics: _Functions = field(repr=False)
    _start: _Functions = field(repr=False)
    _events: Events = field(repr=False)
    _plain: Table = field(repr=False)
    _pace: list[float] = field(repr=False)  # seconds a lane took lately; decides on threads, never on results

    @property
    def n_states(self) -> int:
        return len(self.model.states)

    @property
    def n_outputs(self) -> int:
        return len(self.model.outputs)

    @property
    def n_inputs(self) -> int:
        return len(self.model.inputs)

    @property
    def n_sensitivities(self) -> int:
        return len(self.parameters)

    @cached_property
    def _with_sensitivities(self) -> Table:
        with _extending:
            return _sensitivity_table(self)

    @cached_property
    def _plain_afterwards(self) -> Table:
        return _afterwards(self._plain)

    @cached_property
    def _sensitivities_afterwards(self) -> Table:
        return _afterwards(self._with_sensitivities)

    @cached_property
    def _totals(self) -> tuple[list[int], np.ndarray]:
        """What is conserved; see `conserved_totals`."""
        from equifinal.ode.conserved import conserved_totals  # needs flint, and few models need it

        constants = dict(enumerate(self.model.constants.values(), start=len(self.parameters)))
        return conserved_totals(self._dynamics.graph, self._dynamics.nodes["f"], constants)

    def __reduce__(self) -> tuple[Any, ...]:  # machine code does not travel; equal code is found again or made again
        return compile_system, (self.model, self.parameters)


def compile_system(model: Model, parameters: tuple[str, ...]) -> System:
    """Compile a model.

    Parameters
    ----------
    model
        The model.
    parameters
        Names of the parameters, in the order of the columns of ``p`` in `simulate`: all of the model's, and
        possibly others (noise scales, say), which are ignored and have zero sensitivities.

    Raises
    ------
    SolverError
        If a parameter of the model is missing or a name stands twice.
    """
    began = time.perf_counter()
    parameters = tuple(parameters)
    arguments = parameters + tuple(model.constants)
    for name in model.parameters:
        if name not in parameters:
            raise SolverError(f"parameter '{name}' of the model is missing{did_you_mean(name, parameters)}")
    if len(set(arguments)) < len(arguments):
        twice = next(name for name in arguments if arguments.count(name) > 1)
        raise SolverError(f"'{twice}' appears twice among the parameters and constants")
    integrator()  # load it now, or compile it on a machine's first run, rather than in the first solve
    before = compile_system(model.before, parameters) if model.before is not None else None
    integrated = _with_moving_levels(model)
    still = (Number(Fraction(0)),)
    # a model that was at rest before starts from numbers of each lane
    starts = integrated.start if before is None else still * len(model.states)
    slopes = integrated.rhs + still * len(integrated.levels)
    dynamics = _Functions(integrated, arguments, {"f": slopes, "y": integrated.observed})
    start = _Functions(integrated, arguments, {"x0": starts + integrated.first_levels})
    events = Events(integrated, dynamics.arrays)
    plain = _plain_table(integrated, dynamics, start, events)
    seconds = time.perf_counter() - began
    return System(model, parameters, arguments, seconds, integrated, before, dynamics, start, events, plain, [2e-5])


def _with_moving_levels(model: Model) -> Model:
    """The model as it is integrated: conditions on time are levels, and levels that no event sets are definitions."""
    model = without_conditions(model)
    moving = {name for event in model.events for name in event.sets}
    fixed = {name: value for name, value in model.levels.items() if name not in moving}
    levels = {name: value for name, value in model.levels.items() if name in moving}
    return replace(model, levels=levels, definitions={**fixed, **model.definitions}) if fixed else model


def inputs_of(model: Model) -> tuple[str, ...]:
    """What the integrators take for inputs: the model's own, and time itself where it is named."""
    return (*model.inputs, TIME) if model.uses_time else model.inputs


class _Functions(Functions):
    """Expressions of a model as nodes of one graph, by name."""

    def __init__(self, model: Model, arguments: tuple[str, ...], groups: Mapping[str, Iterable[Expression]]):
        self.arrays = {"x": (*model.states, *model.levels), "p": arguments, "u": inputs_of(model)}
        super().__init__(self.arrays, groups)

    @cached_property
    def jacobian(self) -> Sparse:
        return Sparse.gradient(self.graph, self.nodes["f"], "x", width=len(self.nodes["f"]))


def _plain_table(model: Model, dynamics: _Functions, start: _Functions, events: Events) -> Table:
    graph, f = dynamics.graph, dynamics.nodes["f"]
    n, n_inputs = len(f), len(inputs_of(model))
    velocities = {graph.load("u", i): graph.load("du", i) for i in range(n_inputs)}
    code = dynamics.compile(
        {
            "rhs": f,
            "jacobian": dynamics.jacobian.nodes,
            "drift": graph.derivatives(f, velocities),
            "outputs": dynamics.nodes["y"],
        }
    )
    start_code = start.compile({"start": start.nodes["x0"]})
    nothing = Sparse([], [], [])
    sizes = [n, len(dynamics.nodes["y"]), n_inputs, 0, 0]
    places = {
        layout.START: start_code.addresses["start"],
        layout.RHS: code.addresses["rhs"],
        layout.JACOBIAN: code.addresses["jacobian"],
        layout.DRIFT: code.addresses["drift"],
        layout.OUTPUTS: code.addresses["outputs"],
        layout.N_OWN: len(model.states),
    }
    patterns = [dynamics.jacobian, nothing, nothing, nothing, nothing]
    happening = _announced(places, events, events.tables())
    return _table(sizes, places, patterns, [], _looped(dynamics.jacobian, n), (code, start_code), happening)


def _announced(places: dict[int, int], events: Events, happening: Happening) -> Happening:
    """The events, with the places that tell of them filled in."""
    places |= {
        layout.N_EVENTS: len(events),
        layout.EVENTS: native.address(happening.table) if len(events) else 0,
        layout.ONSET: events.onset,
    }
    return happening


def _sensitivity_table(system: System) -> Table:
    dynamics, start = system._dynamics, system._start
    graph, f, y = dynamics.graph, dynamics.nodes["f"], dynamics.nodes["y"]
    n, width, n_inputs = len(f), system.n_sensitivities, len(inputs_of(system._integrated))
    jacobian = dynamics.jacobian
    forcing = Sparse.gradient(graph, f, "p", width)
    output_x = Sparse.gradient(graph, y, "x", n)
    output_p = Sparse.gradient(graph, y, "p", width)
    start_p = Sparse.gradient(start.graph, start.nodes["x0"], "p", width)
    direction = {graph.load("x", i): graph.load("dx", i) for i in range(n)}
    direction |= {graph.load("u", i): graph.load("du", i) for i in range(n_inputs)}
    code = dynamics.compile(
        {
            "tangent": f + jacobian.nodes + forcing.nodes,
            "curvature": graph.derivatives(jacobian.nodes + forcing.nodes, direction),
            "output_tangent": y + output_x.nodes + output_p.nodes,
        }
    )
    start_code = start.compile({"start_tangent": start.nodes["x0"] + start_p.nodes})
    jumps = system._events.derivatives(width)
    # only parameters that reach the states have columns of their own to integrate
    reaching = {*forcing.columns, *start_p.columns}
    reaching.update(column for jump in jumps for column in (*jump.when.columns, *jump.by_parameters.columns))
    if system._before is not None:
        reaching.update(system.parameters.index(name) for name in system._before.model.parameters)
    columns = sorted(reaching)
    place = {parameter: j for j, parameter in enumerate(columns)}
    places = {
        slot: int(system._plain.entries[slot])
        for slot in (layout.START, layout.RHS, layout.JACOBIAN, layout.DRIFT, layout.OUTPUTS, layout.N_OWN)
    }
    places |= {
        layout.START_TANGENT: start_code.addresses["start_tangent"],
        layout.TANGENT: code.addresses["tangent"],
        layout.CURVATURE: code.addresses["curvature"],
        layout.OUTPUT_TANGENT: code.addresses["output_tangent"],
    }
    patterns = [
        jacobian,
        forcing._replace(columns=[place[c] for c in forcing.columns]),
        output_x,
        output_p,
        start_p._replace(columns=[place[c] for c in start_p.columns]),
    ]
    sizes = [n, len(y), n_inputs, len(columns), width]
    happening = _announced(places, system._events, system._events.tables(jumps, place))
    codes = (code, start_code, *system._plain.codes)
    return _table(sizes, places, patterns, columns, _looped(jacobian, n), codes, happening)


def _afterwards(table: Table) -> Table:
    """The same system when all events are over."""
    entries = table.entries.copy()
    entries[[layout.N_EVENTS, layout.EVENTS, layout.ONSET]] = 0
    entries.setflags(write=False)
    return table._replace(entries=entries, address=native.address(entries))


def _looped(jacobian: Sparse, n: int) -> list[int]:
    """For each state whether it has an influence on a loop of two states or more."""
    reaches = np.zeros((n, n), dtype=np.int64)  # row by column
    reaches[jacobian.rows, jacobian.columns] = 1
    for _ in range(n.bit_length()):
        reaches |= (reaches @ reaches) > 0
    loops = (reaches * reaches.T * (1 - np.eye(n, dtype=np.int64))).any(axis=1)
    return (loops | reaches[loops].any(axis=0)).astype(int).tolist()


def _table(
    sizes: list[int],
    places: Mapping[int, int],
    patterns: list[Sparse],
    columns: list[int],
    looped: list[int],
    codes: tuple[native.Code, ...],
    happening: Happening,
) -> Table:
    counts = [len(pattern.nodes) for pattern in patterns]
    head = np.zeros(layout.PATTERNS, dtype=np.int64)
    head[: len(sizes) + len(counts)] = sizes + counts
    for slot, address in places.items():
        head[slot] = address
    tail = [index for pattern in patterns for index in (*pattern.rows, *pattern.columns)] + columns + looped
    entries = np.concatenate([head, np.array(tail, dtype=np.int64)])
    entries.setflags(write=False)
    n, n_outputs, n_inputs, m, _ = sizes
    jacobian, forcing, output_x, output_p, start = counts
    largest = max(n + jacobian + forcing, n_outputs + output_x + output_p, n + start, happening.most)
    work_size = 17 * n * (1 + m) + 3 * n_inputs + 5 * n + n_outputs + n * n + jacobian + largest
    work_size += 2 * (len(happening.table) + 1) + 2
    return Table(entries, native.address(entries), work_size, codes, happening)
