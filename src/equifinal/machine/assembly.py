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


def assemble(graph: Graph, functions: Mapping[str, Sequence[int]], *, typed_pointers: bool) -> str:
    """An LLVM module with a function for each entry of ``functions``: its name, the nodes it stores in order.

    LLVM before version 17 writes pointers with the type they point to (``typed_pointers``).
    """
    pointer = "double*" if typed_pointers else "ptr"
    return "\n".join(_function(graph, name, roots, pointer) for name, roots in functions.items())


def _function(graph: Graph, name: str, roots: Sequence[int], pointer: str) -> str:
    signature = ", ".join(f"{pointer} noalias %{array}" for array in (*ARRAYS, "out"))
    lines = [f"define void @{name}({signature}) nounwind {{"]
    values: dict[int, str] = {}
    powers: dict[tuple[str, int], str] = {}

    def operation(register: str, code: str, *operands: str) -> str:
        lines.append(f"  {register} = {code} double {', '.join(operands)}")
        return register

    def power(base: str, exponent: int) -> str:
        """By repeated squaring; intermediate powers are shared with other powers of the same base."""
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
                values[a] = _double(node[1])
            case "load":
                lines.append(f"  %a{a} = getelementptr inbounds double, {pointer} %{node[1]}, i64 {node[2]}")
                lines.append(f"  {register} = load double, {pointer} %a{a}")
                values[a] = register
            case "negative":
                values[a] = operation(register, "fneg", values[node[1]])
            case "power":
                values[a] = power(values[node[1]], node[2])
            case code:
                instruction = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}[code]
                values[a] = operation(register, instruction, values[node[1]], values[node[2]])
    lines.extend(_stores((values[root] for root in roots), pointer))
    return "\n".join([*lines, "  ret void", "}", ""])


def _stores(results: Iterable[str], pointer: str) -> Iterable[str]:
    for i, value in enumerate(results):
        yield f"  %o{i} = getelementptr inbounds double, {pointer} %out, i64 {i}"
        yield f"  store double {value}, {pointer} %o{i}"


def _double(value: Fraction) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    return "0x" + struct.pack(">d", number).hex().upper()
