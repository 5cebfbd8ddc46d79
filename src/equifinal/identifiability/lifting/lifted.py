"""A model as a rational one, and what its new parameters stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.arithmetic.functions import values_and_gradients
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, pivots_of
from equifinal.identifiability.lifting.atoms import Key
from equifinal.language.expression import Expression, Name, names, substitute
from equifinal.language.model import Model

RICH, SEEN, POSITIVE = "rich inputs", "seen moments", "positive bases"
LATE, RESTING, HALVED = "late start", "some rest", "roots"


@dataclass(frozen=True)
class Tie:
    """A parameter that is a function of others: how it changes with them, and how it is written.

    ``argument`` is in coordinates and earlier ties; ``vector`` is that of a power (`atoms`). The differential of an
    ``exp`` w is w d(argument), of a ``log`` d(argument)/argument, of a ``turn``, which is the tangent of half its
    argument, (1 + w^2)/2 d(argument).
    """

    name: str
    kind: str
    argument: Expression
    shown: Expression
    vector: Mapping[Key, Fraction] = field(default_factory=dict)

    @property
    def one_to_one(self) -> bool:
        return self.kind != "turn"


@dataclass(frozen=True)
class Lifted:
    """Rational models whose outputs determine at least what those of the models determine that they come from.

    Attributes
    ----------
    models
        The rational ones, in `coordinates` and `ties`.
    parameters
        Every parameter as a rational function of the coordinates.
    coordinates
        The parameters, but for those that are solved for in favour of others.
    known
        Coordinates that are known numbers.
    hidden
        What each coordinate that is no parameter depends on: functions of the parameters, which may contain ties.
    ties
        Further parameters of the models, functions of the coordinates, in an order in which they can be computed.
    roots
        How coordinates are written that are roots of parameters.
    assumptions
        What the lifting took for granted.
    """

    models: tuple[Model, ...]
    parameters: Mapping[str, Expression]
    coordinates: tuple[str, ...]
    known: tuple[str, ...]
    hidden: Mapping[str, tuple[Expression, ...]]
    ties: tuple[Tie, ...]
    roots: Mapping[str, Expression]
    assumptions: tuple[str, ...]

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The parameters of the rational models together."""
        return tuple(dict.fromkeys(name for model in self.models for name in model.parameters))

    @property
    def is_exact(self) -> bool:
        """Whether the unknowns are the parameters themselves."""
        return not self.ties and not self.hidden and not self.known

    def written(self, expression: Expression) -> Expression:
        """The expression with functions in place of the ties."""
        shown = dict(self.roots)
        for tie in self.ties:
            shown[tie.name] = substitute(tie.shown, shown)
        return substitute(expression, shown)

    def determining(self, expression: Expression) -> tuple[Expression, ...]:
        """Rational functions of the parameters on which the value of an expression in unknowns depends."""
        argument = {tie.name: tie.argument for tie in self.ties}
        found: dict[Expression, None] = {}
        inside = [n for n in names(expression) if n in argument or n in self.hidden or n in self.known]
        if not inside:
            return (expression,)
        for name in names(expression):
            if name in argument:
                found |= dict.fromkeys(self.determining(argument[name]))
            elif name in self.hidden:
                for function in self.hidden[name]:
                    found |= dict.fromkeys(self.determining(function))
            elif name not in self.known:
                found[Name(name)] = None
        return tuple(found)


class TiedKernel:
    """Directions in which coordinates can move without a change of any output, ties moving along.

    At the random point of a local analysis of the rational models. Ties may have any values there: they are independent
    of the coordinates as functions, so that no equation holds between them that does not hold everywhere.

    Attributes
    ----------
    basis
        Of these directions, over the coordinates.
    """

    def __init__(self, lifted: Lifted, local: LocalAnalysis):
        self.lifted = lifted
        self.prime: int = local.prime
        self.order: list[str] = [*lifted.coordinates, *(tie.name for tie in lifted.ties)]
        rng = np.random.default_rng(local.prime)
        point = {name: local.point.get(name, int(rng.integers(1, local.prime))) for name in self.order}
        self.point: NDArray[np.int64] = np.array([[point[name] for name in self.order]], dtype=np.int64)
        self.slopes: dict[str, list[int]] = {}
        for name in lifted.coordinates:
            self.slopes[name] = [int(name == other and name not in lifted.known) for other in lifted.coordinates]
        for tie in lifted.ties:
            self.slopes[tie.name] = self._slope(tie, point[tie.name])
        width, p = len(lifted.coordinates), local.prime
        forms = annihilating(local.kernel, len(local.names), p)
        rows = [self._chained(form, local.names) for form in forms]
        rows += [[int(name == other) for other in lifted.coordinates] for name in lifted.known]
        self.basis: list[list[int]] = annihilating(rows, width, p)

    def _slope(self, tie: Tie, w: int) -> list[int]:
        p = self.prime
        values, gradients = values_and_gradients([tie.argument], {}, self.order, self.point, p)
        value, gradient = int(values[0][0]), [int(v) for v in gradients[0][0]]
        factor = {"exp": w, "log": pow(value, -1, p), "turn": (1 + w * w) * pow(2, -1, p)}[tie.kind]
        return [factor * v % p for v in self._chained(gradient, self.order)]

    def _chained(self, gradient: Sequence[int], order: Sequence[str]) -> list[int]:
        """The gradient by the coordinates of a function with this gradient by names that depend on them."""
        total = [0] * len(self.lifted.coordinates)
        for name, g in zip(order, gradient, strict=True):
            if g:
                total = [(t + g * s) % self.prime for t, s in zip(total, self.slopes[name], strict=True)]
        return total

    def gradient(self, function: Expression, constants: Mapping[str, Fraction]) -> list[int]:
        """The gradient by the coordinates of a function of coordinates and ties."""
        _, gradients = values_and_gradients([function], dict(constants), self.order, self.point, self.prime)
        return self._chained([int(v) for v in gradients[0][0]], self.order)

    def fixes(self, function: Expression, constants: Mapping[str, Fraction]) -> bool:
        """Whether the function stays the same in all these directions."""
        slope = self.gradient(function, constants)
        return all(sum(g * v for g, v in zip(slope, row, strict=True)) % self.prime == 0 for row in self.basis)

    def dimension(self) -> int:
        """In how many directions parameters can move."""
        rows = [self.gradient(e, {}) for e in self.lifted.parameters.values()]
        products = [[sum(g * v for g, v in zip(row, b, strict=True)) % self.prime for b in self.basis] for row in rows]
        if not products or not self.basis:
            return 0
        entries = [v for row in products for v in row]
        return int(flint.nmod_mat(len(rows), len(self.basis), entries, self.prime).rank())


def annihilating(rows: Sequence[Sequence[int]], width: int, p: int) -> list[list[int]]:
    """A basis of the vectors that are orthogonal to all rows."""
    if not rows:
        return [[int(i == j) for j in range(width)] for i in range(width)]
    reduced, rank = flint.nmod_mat(len(rows), width, [v for row in rows for v in row], p).rref()
    pivots = pivots_of(reduced, rank)
    found = []
    for free in (j for j in range(width) if j not in set(pivots)):
        vector = [int(j == free) for j in range(width)]
        for i, pivot in enumerate(pivots):
            vector[pivot] = -int(reduced[i, free]) % p
        found.append(vector)
    return found
