"""Models to compiled systems.

A system is machine code for the model's functions and the table that hands them to the integrators.
Parameters and constants are arguments at run time, so experiments that differ in the values of constants
share their code, and those that differ in initial values share all code but the initial values'.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from equifinal.errors import SolverError, did_you_mean
from equifinal.language.expression import TIME, Expression
from equifinal.language.model import Model
from equifinal.machine import native
from equifinal.machine.functions import Functions
from equifinal.machine.graph import Graph
from equifinal.ode import layout
from equifinal.ode.integrator import integrator

_extending = threading.Lock()  # a graph is extended by one thread at a time


class Sparse(NamedTuple):
    """A matrix of nodes by its entries that are not zero by structure."""

    rows: list[int]
    columns: list[int]
    nodes: list[int]

    @staticmethod
    def gradient(graph: Graph, roots: Sequence[int], array: str, width: int) -> Sparse:
        """Derivatives of the roots by the first ``width`` entries of an argument array."""
        found = Sparse([], [], [])
        for row, root in enumerate(roots):
            for column, node in graph.gradient(root, array).items():
                if column < width:
                    found.rows.append(row)
                    found.columns.append(column)
                    found.nodes.append(node)
        return found


class Table(NamedTuple):
    """What the integrator is told: `equifinal.ode.layout` says what stands where."""

    entries: np.ndarray
    address: int  # of the entries
    work_size: int
    codes: tuple[native.Code, ...]  # kept alive with the addresses


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
    _dynamics: _Functions = field(repr=False)
    _start: _Functions = field(repr=False)
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

    def __reduce__(self):  # machine code does not travel; equal code is found again or made again
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
    dynamics = _Functions(model, arguments, {"f": model.rhs, "y": model.observed})
    start = _Functions(model, arguments, {"x0": model.start})
    plain = _plain_table(model, dynamics, start)
    seconds = time.perf_counter() - began
    return System(model, parameters, arguments, seconds, dynamics, start, plain, [2e-5])


def inputs_of(model: Model) -> tuple[str, ...]:
    """What the integrators take for inputs: the model's own, and time itself where it is named."""
    return (*model.inputs, TIME) if model.uses_time else model.inputs


class _Functions(Functions):
    """Expressions of a model as nodes of one graph, by name."""

    def __init__(self, model: Model, arguments: tuple[str, ...], groups: Mapping[str, Iterable[Expression]]):
        super().__init__({"x": model.states, "p": arguments, "u": inputs_of(model)}, groups)

    @cached_property
    def jacobian(self) -> Sparse:
        return Sparse.gradient(self.graph, self.nodes["f"], "x", width=len(self.nodes["f"]))


def _plain_table(model: Model, dynamics: _Functions, start: _Functions) -> Table:
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
    }
    patterns = [dynamics.jacobian, nothing, nothing, nothing, nothing]
    return _table(sizes, places, patterns, [], _looped(dynamics.jacobian, n), (code, start_code))


def _sensitivity_table(system: System) -> Table:
    dynamics, start = system._dynamics, system._start
    graph, f, y = dynamics.graph, dynamics.nodes["f"], dynamics.nodes["y"]
    n, width, n_inputs = system.n_states, system.n_sensitivities, len(inputs_of(system.model))
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
    # only parameters that reach the states have columns of their own to integrate
    columns = sorted({*forcing.columns, *start_p.columns})
    place = {parameter: j for j, parameter in enumerate(columns)}
    places = {
        slot: int(system._plain.entries[slot])
        for slot in (layout.START, layout.RHS, layout.JACOBIAN, layout.DRIFT, layout.OUTPUTS)
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
    return _table(sizes, places, patterns, columns, _looped(jacobian, n), (code, start_code, *system._plain.codes))


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
    largest = max(n + jacobian + forcing, n_outputs + output_x + output_p, n + start)
    work_size = 17 * n * (1 + m) + 3 * n_inputs + 3 * n + n_outputs + n * n + jacobian + largest
    return Table(entries, native.address(entries), work_size, codes)
