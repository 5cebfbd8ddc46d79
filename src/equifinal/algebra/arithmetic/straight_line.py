"""Expression trees to straight-line programs: every common subexpression is computed once.

`evaluate` walks a tree with whatever values it is given; handed `Node`s it records what is done to them, and
equal steps become the same node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from equifinal.language.expression import Expression, evaluate


class Step(NamedTuple):
    """One operation: ``number``, ``name``, ``add``, ``mul`` or ``div``; `left` and `right` are earlier
    steps.
    """

    kind: str
    left: int = -1
    right: int = -1
    name: str = ""
    value: Fraction = Fraction(0)  # of a number


class Program:
    """Steps in an order in which each uses only earlier ones."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._known: dict[tuple, int] = {}

    def add(self, step: Step) -> Node:
        # not by the hash of a step itself: that of a fraction takes longer than everything else here
        *rest, value = step
        key = value.as_integer_ratio() if step.kind == "number" else tuple(rest)
        index = self._known.setdefault(key, len(self.steps))
        if index == len(self.steps):
            self.steps.append(step)
        return Node(self, index)

    def number(self, value: Fraction) -> Node:
        return self.add(Step("number", value=Fraction(value)))

    def name(self, name: str) -> Node:
        return self.add(Step("name", name=name))

    def record(self, expressions: Iterable[Expression], constants: Mapping[str, Fraction]) -> list[int]:
        """Record expressions; the positions of their values are returned."""
        table = _Names(self, constants)
        return [evaluate(expression, table, self.number).index for expression in expressions]


class _Names(dict):
    def __init__(self, program: Program, constants: Mapping[str, Fraction]):
        super().__init__()
        self.program, self.constants = program, constants

    def __missing__(self, name: str) -> Node:
        if name in self.constants:
            return self.program.number(self.constants[name])
        return self.program.name(name)


class Node:
    """A value of the program that remembers how it was made."""

    __slots__ = ("index", "program")

    def __init__(self, program: Program, index: int):
        self.program: Program = program
        self.index: int = index

    def _value(self) -> Fraction | None:
        step = self.program.steps[self.index]
        return step.value if step.kind == "number" else None

    def __add__(self, other: Node) -> Node:
        a, b = self._value(), other._value()
        if a is not None and b is not None:
            return self.program.number(a + b)
        if a == 0:
            return other
        if b == 0:
            return self
        left, right = sorted((self.index, other.index))
        return self.program.add(Step("add", left, right))

    def __mul__(self, other: Node) -> Node:
        a, b = self._value(), other._value()
        if a is not None and b is not None:
            return self.program.number(a * b)
        if a == 0 or b == 1:
            return self
        if b == 0 or a == 1:
            return other
        left, right = sorted((self.index, other.index))
        return self.program.add(Step("mul", left, right))

    def __truediv__(self, other: Node) -> Node:
        a, b = self._value(), other._value()
        if b is not None and b != 0:
            return self * self.program.number(1 / b)
        if a == 0 and b is None:
            return self
        return self.program.add(Step("div", self.index, other.index))

    def __pow__(self, exponent: int) -> Node:
        result: Node | None = None
        square = self
        while exponent:
            if exponent & 1:
                result = square if result is None else result * square
            exponent >>= 1
            if exponent:
                square = square * square
        return self.program.number(Fraction(1)) if result is None else result
