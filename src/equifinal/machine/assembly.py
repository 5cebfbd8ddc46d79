"""Graphs to LLVM assembly: one straight-line function for each list of nodes.

Every function has the same signature, six pointers to doubles::

    void f(x, p, u, dx, du, out)

states, arguments, inputs, a direction in states and one in inputs, and where the results go. Names of the
model never get into the text: an argument is a letter and a position. Integer powers become
multiplications.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from equifinal.machine.graph import Graph

ARRAYS = ("x", "p", "u", "dx", "du")


def assemble(
    graph: Graph, functions: Mapping[str, Sequence[int]], *, typed_pointers: bool, complex_numbers: bool = False
) -> str:
    """An LLVM module with a function for each entry of ``functions``: its name, the nodes it stores in order.

    LLVM before version 17 writes pointers with the type they point to (``typed_pointers``). With
    ``complex_numbers`` every entry of every array is two doubles, real and imaginary part.
    """
    pointer = "double*" if typed_pointers else "ptr"
    write = _complex_function if complex_numbers else _function
    return "\n".join([*_declarations(graph, functions), *(write(graph, *f, pointer) for f in functions.items())])


# functions that LLVM knows, and those that come from the C library
_FUNCTIONS = {name: f"llvm.{name}.f64" for name in ("exp", "log", "sin", "cos", "floor")}
_FUNCTIONS |= {"tan": "tan", "tanh": "tanh", "arctan": "atan"}
_POWER = "llvm.pow.f64"


def _declarations(graph: Graph, functions: Mapping[str, Sequence[int]]) -> Iterable[str]:
    nodes = [graph.nodes[a] for a in graph.reachable(root for roots in functions.values() for root in roots)]
    for name in sorted({node[1] for node in nodes if node[0] == "function"}):
        yield f"declare double @{_FUNCTIONS[name]}(double)"
    if any(node[0] == "real_power" for node in nodes):
        yield f"declare double @{_POWER}(double, double)"


def header(name: str, pointer: str) -> str:
    signature = ", ".join(f"{pointer} noalias %{array}" for array in (*ARRAYS, "out"))
    return f"define void @{name}({signature}) nounwind {{"


def _function(graph: Graph, name: str, roots: Sequence[int], pointer: str) -> str:
    lines = [header(name, pointer)]
    values: dict[int, str] = {}
    powers: dict[tuple[str, int], str] = {}

    def operation(register: str, code: str, *operands: str) -> str:
        lines.append(f"  {register} = {code} double {', '.join(operands)}")
        return register

    def power(base: str, exponent: int) -> str:
        """Raise to a power by repeated squaring; intermediate powers are shared with other powers of the same base."""
        if exponent == 1:
            return base
        if (base, exponent) not in powers:
            half = power(base, exponent // 2 if exponent % 2 == 0 else exponent - 1)
            other = half if exponent % 2 == 0 else base
            powers[base, exponent] = operation(f"%w{len(powers)}", "fmul", half, other)
        return powers[base, exponent]

    for a in graph.reachable(roots):
        node, register = graph.nodes[a], f"%v{a}"
        match node[0]:
            case "number":
                values[a] = as_double(node[1])
            case "load":
                lines.append(f"  %a{a} = getelementptr inbounds double, {pointer} %{node[1]}, i64 {node[2]}")
                lines.append(f"  {register} = load double, {pointer} %a{a}")
                values[a] = register
            case "negative":
                values[a] = operation(register, "fneg", values[node[1]])
            case "power":
                values[a] = power(values[node[1]], node[2])
            case "function":
                lines.append(f"  {register} = call double @{_FUNCTIONS[node[1]]}(double {values[node[2]]})")
                values[a] = register
            case "real_power":
                base, exponent = values[node[1]], values[node[2]]
                lines.append(f"  {register} = call double @{_POWER}(double {base}, double {exponent})")
                values[a] = register
            case "choose":
                left, right, less, otherwise = (values[b] for b in node[1:])
                lines.append(f"  %c{a} = fcmp olt double {left}, {right}")
                lines.append(f"  {register} = select i1 %c{a}, double {less}, double {otherwise}")
                values[a] = register
            case code:
                instruction = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}[code]
                values[a] = operation(register, instruction, values[node[1]], values[node[2]])
    lines.extend(stores((values[root] for root in roots), pointer))
    return "\n".join([*lines, "  ret void", "}", ""])


def _complex_function(graph: Graph, name: str, roots: Sequence[int], pointer: str) -> str:
    lines = [header(name, pointer)]
    values: dict[int, tuple[str, str]] = {}
    made = 0

    def operation(code: str, *operands: str) -> str:
        nonlocal made
        made += 1
        lines.append(f"  %t{made} = {code} double {', '.join(operands)}")
        return f"%t{made}"

    def load(array: str, index: int) -> str:
        nonlocal made
        made += 1
        lines.append(f"  %p{made} = getelementptr inbounds double, {pointer} %{array}, i64 {index}")
        lines.append(f"  %t{made} = load double, {pointer} %p{made}")
        return f"%t{made}"

    def multiply(a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        real = operation("fsub", operation("fmul", a[0], b[0]), operation("fmul", a[1], b[1]))
        return real, operation("fadd", operation("fmul", a[0], b[1]), operation("fmul", a[1], b[0]))

    def divide(a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        size = operation("fadd", operation("fmul", b[0], b[0]), operation("fmul", b[1], b[1]))
        over = multiply(a, (b[0], operation("fneg", b[1])))
        return operation("fdiv", over[0], size), operation("fdiv", over[1], size)

    def power(base: tuple[str, str], exponent: int) -> tuple[str, str]:
        if exponent == 1:
            return base
        half = power(base, exponent // 2 if exponent % 2 == 0 else exponent - 1)
        return multiply(half, half if exponent % 2 == 0 else base)

    for a in graph.reachable(roots):
        match graph.nodes[a]:
            case ("number", value):
                values[a] = as_double(value), as_double(Fraction(0))
            case ("load", array, index):
                values[a] = load(array, 2 * index), load(array, 2 * index + 1)
            case ("negative", b):
                values[a] = operation("fneg", values[b][0]), operation("fneg", values[b][1])
            case ("power", b, exponent):
                values[a] = power(values[b], exponent)
            case ("add" | "subtract" as code, b, c):
                instruction = "fadd" if code == "add" else "fsub"
                (x, y), (v, w) = values[b], values[c]
                values[a] = operation(instruction, x, v), operation(instruction, y, w)
            case (code, b, c):
                values[a] = (multiply if code == "multiply" else divide)(values[b], values[c])
    lines.extend(stores((part for root in roots for part in values[root]), pointer))
    return "\n".join([*lines, "  ret void", "}", ""])


def stores(results: Iterable[str], pointer: str) -> Iterable[str]:
    for i, value in enumerate(results):
        yield f"  %o{i} = getelementptr inbounds double, {pointer} %out, i64 {i}"
        yield f"  store double {value}, {pointer} %o{i}"


def as_double(value: Fraction) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    return "0x" + struct.pack(">d", number).hex().upper()
