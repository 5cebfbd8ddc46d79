"""Arithmetic as a graph in which equal subexpressions are one node, and its derivatives.

Right-hand sides, Jacobians and sensitivities of a rational model share most of their terms. Every operation
is looked up before it is made, so a term that occurs in ten places is one node and is computed once. Nodes
are numbered as they are made, operands first: going through them in order is going through them in order of
evaluation, without recursion.

Only exact simplifications are made (0 + a, 1*a, signs pulled outwards, numbers combined as fractions): a
sum or product keeps the order in which the modeller wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_MAX_FOLDED_BITS = 10_000  # powers of numbers beyond this stay unevaluated
_MAX_UNROLLED = 64  # exponents up to which a power is a few multiplications


class Graph:
    """Hash-consed arithmetic: numbers, entries of argument arrays, ``+ - * /``, powers, functions, choices.

    A node is a tuple whose first entry names the operation; a node's number is its place in ``nodes``.
    """

    zero: int
    one: int

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.zero = self.number(Fraction(0))
        self.one = self.number(Fraction(1))

    def _node(self, *node: Any) -> int:
        found = self._numbers.get(node)
        if found is None:
            found = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    def number(self, value: Fraction) -> int:
        return self._node("number", value)

    def load(self, array: str, index: int) -> int:
        """Entry ``index`` of an argument array."""
        return self._node("load", array, index)

    def _value(self, a: int) -> Fraction | None:
        node = self.nodes[a]
        return node[1] if node[0] == "number" else None

    def negative(self, a: int) -> int:
        node = self.nodes[a]
        if node[0] == "number":
            return self.number(-node[1])
        if node[0] == "negative":
            return node[1]
        if node[0] == "subtract":
            return self._node("subtract", node[2], node[1])
        return self._node("negative", a)

    def add(self, a: int, b: int) -> int:
        if a == self.zero:
            return b
        if b == self.zero:
            return a
        left, right = self._value(a), self._value(b)
        if left is not None and right is not None:
            return self.number(left + right)
        if self.nodes[b][0] == "negative":
            return self.subtract(a, self.nodes[b][1])
        if self.nodes[a][0] == "negative":
            return self.subtract(b, self.nodes[a][1])
        return self._node("add", min(a, b), max(a, b))

    def subtract(self, a: int, b: int) -> int:
        if b == self.zero:
            return a
        if a == self.zero:
            return self.negative(b)
        if a == b:
            return self.zero
        left, right = self._value(a), self._value(b)
        if left is not None and right is not None:
            return self.number(left - right)
        if self.nodes[b][0] == "negative":
            return self.add(a, self.nodes[b][1])
        return self._node("subtract", a, b)

    def multiply(self, a: int, b: int) -> int:
        if a == self.zero or b == self.zero:
            return self.zero
        left, right = self._value(a), self._value(b)
        if left is not None and right is not None:
            return self.number(left * right)
        for value, other in ((left, b), (right, a)):
            if value == 1:
                return other
            if value == -1:
                return self.negative(other)
        if self.nodes[a][0] == "negative":
            return self.negative(self.multiply(self.nodes[a][1], b))
        if self.nodes[b][0] == "negative":
            return self.negative(self.multiply(a, self.nodes[b][1]))
        if a == b:
            return self.power(a, 2)
        return self._node("multiply", min(a, b), max(a, b))

    def divide(self, a: int, b: int) -> int:
        value = self._value(b)
        if value is not None and value != 0:
            return self.multiply(a, self.number(1 / value))
        if a == self.zero and value is None:
            return a
        if self.nodes[a][0] == "negative":
            return self.negative(self.divide(self.nodes[a][1], b))
        if self.nodes[b][0] == "negative":
            return self.negative(self.divide(a, self.nodes[b][1]))
        return self._node("divide", a, b)

    def power(self, a: int, exponent: int) -> int:
        if exponent == 0:
            return self.one
        if exponent == 1:
            return a
        if exponent < 0:
            return self.divide(self.one, self.power(a, -exponent))
        node = self.nodes[a]
        if node[0] == "number":
            size = max(node[1].numerator.bit_length(), node[1].denominator.bit_length())
            if size * exponent <= _MAX_FOLDED_BITS:
                return self.number(node[1] ** exponent)
        if node[0] == "power":
            return self.power(node[1], node[2] * exponent)
        if node[0] == "negative":
            positive = self.power(node[1], exponent)
            return positive if exponent % 2 == 0 else self.negative(positive)
        return self._node("power", a, exponent)

    def function(self, name: str, a: int) -> int:
        """A function of one argument: exp, log, sin, cos, tan, tanh, arctan or floor."""
        return self._node("function", name, a)

    def real_power(self, a: int, b: int) -> int:
        """a^b for any exponent; not a number where a is negative, unless b is whole."""
        exponent = self._value(b)
        if exponent is not None and exponent.denominator == 1 and abs(exponent) <= _MAX_UNROLLED:
            return self.power(a, int(exponent))
        return self._node("real_power", a, b)

    def choose(self, a: int, b: int, less: int, otherwise: int) -> int:
        """One value if a < b, and else the other. Neither enters if it is not chosen, even if it is not finite."""
        return less if less == otherwise else self._node("choose", a, b, less, otherwise)

    def call(self, function: str, arguments: Sequence[int]) -> int:
        """A function of `equifinal.language.functions`."""
        match function, arguments:
            case "power", (a, b):
                return self.real_power(a, b)
            case "abs", (a,):
                return self.choose(a, self.zero, self.negative(a), a)
            case "min", (a, *others):
                for b in others:
                    a = self._smaller(a, b, a, b)
                return a
            case "max", (a, *others):
                for b in others:
                    a = self._smaller(a, b, b, a)
                return a
            case "above", (a,):
                return self.choose(self.zero, a, self.one, self.zero)
            case "piecewise", (*pieces, value):
                for at in range(len(pieces) - 2, -1, -2):
                    value = self.choose(self.zero, pieces[at + 1], pieces[at], value)
                return value
            case name, (a,):
                return self.function(name, a)
        raise AssertionError(function)

    def _smaller(self, a: int, b: int, less: int, greater: int) -> int:
        """One value if a < b, the other if b < a, and else their mean: not a number if a or b is not."""
        mean = self.multiply(self.number(Fraction(1, 2)), self.add(less, greater))
        return self.choose(a, b, less, self.choose(b, a, greater, mean))

    def operands(self, a: int) -> tuple[int, ...]:
        node = self.nodes[a]
        match node[0]:
            case "number" | "load":
                return ()
            case "negative" | "power":
                return (node[1],)
            case "function":
                return (node[2],)
        return node[1:]

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """Every node the roots need, operands before what uses them."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            a = stack.pop()
            if a not in seen:
                seen.add(a)
                stack.extend(self.operands(a))
        return sorted(seen)

    def loads(self, roots: Iterable[int], array: str) -> list[int]:
        """Indices of the entries of ``array`` that the roots depend on, ascending."""
        found = [self.nodes[a] for a in self.reachable(roots)]
        return sorted(node[2] for node in found if node[0] == "load" and node[1] == array)

    def derivatives(self, roots: Iterable[int], seeds: Mapping[int, int]) -> list[int]:
        """Directional derivatives of the roots, where ``seeds`` gives the derivative of each varying load.

        Forward differentiation, one sweep in order of evaluation.
        """
        roots = list(roots)
        d: dict[int, int] = {}
        for a in self.reachable(roots):
            d[a] = self._derivative(a, d, seeds)
        return [d[a] for a in roots]

    def _derivative(self, a: int, d: Mapping[int, int], seeds: Mapping[int, int]) -> int:
        node = self.nodes[a]
        match node[0]:
            case "number":
                return self.zero
            case "load":
                return seeds.get(a, self.zero)
            case "negative":
                return self.negative(d[node[1]])
            case "add":
                return self.add(d[node[1]], d[node[2]])
            case "subtract":
                return self.subtract(d[node[1]], d[node[2]])
            case "multiply":
                return self.add(self.multiply(d[node[1]], node[2]), self.multiply(node[1], d[node[2]]))
            case "power":
                base, exponent = node[1], node[2]
                if d[base] == self.zero:
                    return self.zero
                outer = self.multiply(self.number(Fraction(exponent)), self.power(base, exponent - 1))
                return self.multiply(outer, d[base])
            case "divide":
                over, under = d[node[1]], d[node[2]]
                if under == self.zero:
                    return self.divide(over, node[2])
                return self.divide(self.subtract(over, self.multiply(a, under)), node[2])
            case "function":
                return self.multiply(self._slope(node[1], node[2], a), d[node[2]])
            case "real_power":
                return self._power_derivative(a, d)
            case "choose":
                return self.choose(node[1], node[2], d[node[3]], d[node[4]])
        raise AssertionError(node)

    def _slope(self, name: str, a: int, value: int) -> int:
        """The derivative of a function by its argument, where its value is known."""
        match name:
            case "exp":
                return value
            case "log":
                return self.divide(self.one, a)
            case "sin":
                return self.function("cos", a)
            case "cos":
                return self.negative(self.function("sin", a))
            case "tan":
                return self.add(self.one, self.power(value, 2))
            case "tanh":
                return self.subtract(self.one, self.power(value, 2))
            case "arctan":
                return self.divide(self.one, self.add(self.one, self.power(a, 2)))
            case "floor":
                return self.zero
        raise AssertionError(name)

    def _power_derivative(self, a: int, d: Mapping[int, int]) -> int:
        """The derivative of x^n: n x^(n-1) dx + x^n log(x) dn.

        Where x is 0 the second term is 0, and the first as well if n < 1: a state that is and stays at zero has
        derivatives.
        """
        _, x, n = self.nodes[a]
        found = self.zero
        if d[x] != self.zero:
            slope = self.multiply(n, self.real_power(x, self.subtract(n, self.one)))
            exponent = self._value(n)
            if exponent is None or exponent < 1:
                at_zero = self.choose(n, self.one, self.zero, slope)
                slope = self.choose(self.zero, x, slope, self.choose(x, self.zero, slope, at_zero))
            found = self.multiply(slope, d[x])
        if d[n] != self.zero:
            growth = self.choose(self.zero, x, self.multiply(a, self.function("log", x)), self.zero)
            found = self.add(found, self.multiply(growth, d[n]))
        return found

    def gradient(self, root: int, array: str) -> dict[int, int]:
        """Derivatives of one root by every entry of ``array`` it depends on, structural zeros left out."""
        found = {}
        for index in self.loads([root], array):
            (derivative,) = self.derivatives([root], {self.load(array, index): self.one})
            if derivative != self.zero:
                found[index] = derivative
        return found

    def copied(self, source: Graph, roots: Iterable[int], loads: Mapping[tuple[str, int], int]) -> list[int]:
        """Roots of another graph, made here again, with ``loads`` (by array and index) in place of its arguments."""
        roots = list(roots)
        here: dict[int, int] = {}
        for a in source.reachable(roots):
            match source.nodes[a]:
                case ("number", value):
                    here[a] = self.number(value)
                case ("load", array, index):
                    here[a] = loads[array, index]
                case ("negative", b):
                    here[a] = self.negative(here[b])
                case ("power", b, exponent):
                    here[a] = self.power(here[b], exponent)
                case ("function", name, b):
                    here[a] = self.function(name, here[b])
                case (operation, *operands):
                    here[a] = getattr(self, operation)(*(here[b] for b in operands))
        return [here[a] for a in roots]


@dataclass(frozen=True)
class Term:
    """A node with Python's operators, which is what `equifinal.language.expression.evaluate` computes with."""

    graph: Graph
    node: int

    def __add__(self, other: Term) -> Term:
        return Term(self.graph, self.graph.add(self.node, other.node))

    def __mul__(self, other: Term) -> Term:
        return Term(self.graph, self.graph.multiply(self.node, other.node))

    def __truediv__(self, other: Term) -> Term:
        return Term(self.graph, self.graph.divide(self.node, other.node))

    def __pow__(self, exponent: int) -> Term:
        return Term(self.graph, self.graph.power(self.node, exponent))
