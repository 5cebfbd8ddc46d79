r"""Functions that bound their own errors.

Beside every number goes a bound on how far it is from the exact one, from what rounding and the arguments
contribute (running error analysis). With :math:`\hat z` as computed, u the unit roundoff and e the bounds of the
operands,

.. math::
    e_{a \pm b} = e_a + e_b + u|\hat z|, \quad
    e_{ab} = e_a|b| + e_b|a| + e_a e_b + u|\hat z|, \quad
    e_{a/b} = (e_a + |\hat z| e_b) / (|b| - e_b) + u|\hat z|.

Arguments are taken to be off by a few units in the last place, so that a bound also says how ill-conditioned the
result is. A denominator that may be zero makes the bound infinite. Bounds are themselves rounded: allow for it, a few
parts in 10^13.

Reference: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from equifinal.machine.assembly import as_double, header, stores
from equifinal.machine.graph import Graph

ARGUMENT_ERROR = 4 * 2.0**-52  # relative
UNIT = as_double(Fraction(1, 2**53))
TINY = as_double(Fraction(1, 10**290))  # more than underflow can take away, and still far from slow numbers
ZERO = as_double(Fraction(0))
_FABS = "declare double @llvm.fabs.f64(double)\n"


def assemble_bounded(graph: Graph, name: str, roots: Sequence[int], *, typed_pointers: bool) -> str:
    """An LLVM module with one function: it stores the roots, then a bound for each."""
    pointer = "double*" if typed_pointers else "ptr"
    writer = _Writer()
    values: dict[int, tuple[str, str]] = {}
    for a in graph.reachable(roots):
        match graph.nodes[a]:
            case ("number", number):
                values[a] = as_double(number), as_double(_representation_error(number))
            case ("load", array, index):
                values[a] = writer.load(pointer, array, index)
            case ("negative", b):
                values[a] = writer.operation("fneg", values[b][0]), values[b][1]
            case ("power", b, exponent):
                values[a] = writer.power(values[b], exponent)
            case ("multiply", b, c):
                values[a] = writer.multiply(values[b], values[c])
            case ("divide", b, c):
                values[a] = writer.divide(values[b], values[c])
            case (code, b, c):
                values[a] = writer.sum("fadd" if code == "add" else "fsub", values[b], values[c])
    found = [values[root] for root in roots]
    results = [*(value for value, _ in found), *(bound for _, bound in found)]
    body = [header(name, pointer), *writer.lines, *stores(results, pointer), "  ret void", "}", ""]
    return _FABS + "\n".join(body)


def _representation_error(number: Fraction) -> Fraction:
    try:
        nearest = float(number)
    except OverflowError:
        return Fraction(10) ** 400  # infinite, as the number itself will be
    return Fraction(math.ulp(nearest)) if Fraction(nearest) != number else Fraction(0)


class _Writer:
    """Instructions on pairs of registers, a value and its bound."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._made: dict[str, str] = {}

    def _line(self, instruction: str) -> str:
        """The register with its result, the same for the same instruction."""
        if instruction not in self._made:
            register = self._made[instruction] = f"%t{len(self.lines)}"
            self.lines.append(f"  {register} = {instruction}")
        return self._made[instruction]

    def operation(self, code: str, *operands: str) -> str:
        return self._line(f"{code} double {', '.join(operands)}")

    def _size(self, a: str) -> str:
        return self._line(f"call double @llvm.fabs.f64(double {a})")

    def _plus(self, *terms: str) -> str:
        """Sum bounds, leaving out those that are zero."""
        total = ZERO
        for term in terms:
            if term != ZERO:
                total = term if total == ZERO else self.operation("fadd", total, term)
        return total

    def _times(self, bound: str, size: str) -> str:
        return ZERO if ZERO in (bound, size) else self.operation("fmul", bound, size)

    def _rounding(self, z: str) -> str:
        return self.operation("fmul", self._size(z), UNIT)

    def load(self, pointer: str, array: str, index: int) -> tuple[str, str]:
        place = self._line(f"getelementptr inbounds double, {pointer} %{array}, i64 {index}")
        value = self._line(f"load double, {pointer} {place}")
        return value, self.operation("fmul", self._size(value), as_double(Fraction(ARGUMENT_ERROR)))

    def sum(self, code: str, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        z = self.operation(code, a[0], b[0])
        return z, self._plus(a[1], b[1], self._rounding(z))

    def multiply(self, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        z = self.operation("fmul", a[0], b[0])
        either = self._times(a[1], self._plus(self._size(b[0]), b[1]))
        return z, self._plus(either, self._times(b[1], self._size(a[0])), self._rounding(z), TINY)

    def divide(self, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        z = self.operation("fdiv", a[0], b[0])
        over = self._plus(a[1], self._times(b[1], self._size(z)))
        least = self._size(b[0])
        if b[1] != ZERO:
            least = self.operation("fsub", least, b[1])
            positive = self._line(f"fcmp ogt double {least}, {ZERO}")
            least = self._line(f"select i1 {positive}, double {least}, double {ZERO}")
        carried = self.operation("fdiv", over, least) if over != ZERO else ZERO
        return z, self._plus(carried, self._rounding(z), TINY)

    def power(self, base: tuple[str, str], exponent: int) -> tuple[str, str]:
        if exponent == 1:
            return base
        half = self.power(base, exponent // 2 if exponent % 2 == 0 else exponent - 1)
        return self.multiply(half, half if exponent % 2 == 0 else base)
