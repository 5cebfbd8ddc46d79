r"""Truncated power series of a model's outputs, and of their derivatives in the parameters, modulo a prime.

With :math:`x(t) = \sum_k x_k t^k` the equation :math:`x' = f` reads :math:`(k+1)\,x_{k+1} = f_k`, where
:math:`f_k` needs :math:`x_0, \dots, x_k` only: one coefficient after the other, for all steps of a
straight-line program. Products are Cauchy products; :math:`q = a/b` gives :math:`q_k = (a_k -
\sum_{i\ge1} b_i q_{k-i})/b_0`. Coefficients are elements of a ring: with dual numbers the derivatives of every
coefficient are carried along (forward mode). Steps that do not need each other, and a batch of points, share arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.residues import residue
from equifinal.algebra.arithmetic.rings import DualNumbers, Histories, Ring
from equifinal.algebra.arithmetic.schedule import Group, recorded, schedule_of
from equifinal.algebra.arithmetic.straight_line import Program
from equifinal.language.expression import Expression
from equifinal.language.model import Model


class RingSeries:
    """Series of all outputs of one model, with coefficients in a ring.

    Parameters
    ----------
    values
        For every parameter an array (batch, width) of elements of the ring.
    inputs
        For every input its Taylor coefficients, an array (orders,), the same for all points.
    """

    program: Program
    rhs: list[int]
    outputs: list[int]
    steps: list[int]
    constant: dict[int, bool]

    def __init__(self, model: Model, ring: Ring, values: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]):
        self.model = model
        self.ring = ring
        self.inputs = inputs
        self.prime: int = ring.prime
        self.batch: int = next((len(v) for v in values.values()), 1)
        self._values = values
        self.program, self.rhs, self.outputs, self.steps, self.constant, groups = schedule_of(model)
        self.order: int = 0  # coefficients 0 .. order-1 are known
        self.start: np.ndarray = self.values_of(model.start)
        self._lay_out(groups)

    def _lay_out(self, groups: Sequence[Group]) -> None:
        """Steps that are computed together stand beside each other, those first that are factors of products."""
        program, states = self.program, self.model.states
        factors = {int(i) for g in groups if g.kind == "mul" for i in (*g.left, *g.right)}
        factors |= {int(i) for g in groups if g.kind == "div" for i in (*g.target, *g.right)}
        constants = [i for i in self.steps if self.constant[i]]
        named = [i for i in self.steps if program.steps[i].kind == "name" and not self.constant[i]]
        blocks = [
            _Block("start", [i for i in named if program.steps[i].name in states]),
            *(_Block("input", [i]) for i in named if program.steps[i].name not in states),
            *(_Block(g.kind, list(map(int, g.target)), g) for g in groups),
        ]
        self._slot = np.zeros(len(program.steps), dtype=int)
        self._slot[constants] = range(len(constants))
        taken, kept = len(constants), 0
        place = np.zeros(len(program.steps), dtype=int)  # among the factors
        for block in blocks:
            block.sort(factors)
            block.slots = slice(taken, taken + len(block.steps))
            block.factors = slice(taken, taken + sum(i in factors for i in block.steps))
            block.places = slice(kept, kept + sum(i in factors for i in block.steps))
            self._slot[block.steps] = range(taken, block.slots.stop)
            place[block.steps] = range(kept, kept + len(block.steps))
            taken, kept = block.slots.stop, block.places.stop
        self._now = np.zeros((taken, self.batch, self.ring.width), dtype=np.int64)  # the coefficients of one order
        self._first = np.full(taken, -1)  # order of the first coefficient that is not zero
        self._fixed = len(constants)
        for i, value in self._constants(program, constants).items():
            self._now[self._slot[i]] = value
        for block in blocks:
            block.prepare(self, place)
        self._blocks = blocks
        self._rhs, self._outputs = self._slot[self.rhs], self._slot[self.outputs]
        self._states = self.start
        self._histories = Histories(kept, self.batch, 8, self.ring.width)
        self._found = np.zeros((len(self.outputs), 8, self.batch, self.ring.width), dtype=np.int64)

    # --- what does not change with time ---

    def values_of(self, expressions: Sequence[Expression]) -> np.ndarray:
        """Values of functions of the parameters, an array (expressions, batch, width)."""
        program, roots, steps = recorded(expressions, self.model.constants)
        found = self._constants(program, steps)
        shape = (len(roots), self.batch, self.ring.width)
        return np.array([found[i] for i in roots], dtype=np.int64).reshape(shape)

    def _constants(self, program: Program, steps: Sequence[int]) -> dict[int, np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for i in steps:
            step = program.steps[i]
            if step.kind == "number":
                found[i] = np.zeros((self.batch, self.ring.width), dtype=np.int64)
                found[i][:, 0] = residue(step.value, self.prime)
            elif step.kind == "name":
                found[i] = self._values[step.name]
            else:
                a, b = found[step.left], found[step.right]
                if step.kind == "add":
                    found[i] = (a + b) % self.prime
                else:
                    found[i] = self.ring.product(a, b if step.kind == "mul" else self.ring.reciprocal(b))
        return found

    # --- one order after the other ---

    def extend(self, order: int, budget: Budget) -> None:
        """Compute coefficients up to (not including) `order`."""
        if order > self._found.shape[1]:
            self._histories.grow(order)
            larger = np.zeros((len(self.outputs), order, *self._found.shape[2:]), dtype=np.int64)
            larger[:, : self.order] = self._found[:, : self.order]
            self._found = larger
        numbers = self.batch * self.ring.width
        products = sum(len(b.steps) for b in self._blocks if b.kind in ("mul", "div"))
        cost = 1 if isinstance(self.ring, DualNumbers) else self.ring.width  # of a product, by coordinate
        for k in range(self.order, order):
            steps = 20 * len(self._blocks) + len(self._now) * (0.5 + numbers / 100)
            budget.spend(steps + products * (k + 1) * numbers * cost / 250)
            self._coefficients(k)
            self._found[:, k] = self._now[self._outputs]
            silent = self._first < 0
            if silent.any():
                self._first[silent & self._now[..., 0].any(axis=1)] = k
            self._states = self._now[self._rhs] * pow(k + 1, -1, self.prime) % self.prime
            self.order = k + 1

    def _coefficients(self, k: int) -> None:
        now, p, ring = self._now, self.prime, self.ring
        if k == 1:
            now[: self._fixed] = 0
        for block in self._blocks:
            match block.kind:
                case "start":
                    rows = self._states[block.left]
                case "input":
                    rows = np.zeros((1, self.batch, ring.width), dtype=np.int64)
                    rows[..., 0] = int(self.inputs[self.program.steps[block.steps[0]].name][k])
                case "add":
                    rows = np.add.reduceat(now[block.left], block.right, axis=0) % p
                case "mul":
                    rows = ring.convolved(self._histories, block.left, block.right, k + 1, k)
                case "div":
                    rows = now[block.left]
                    if k == 0:
                        block.scale = ring.reciprocal(now[block.under])
                    else:
                        rows = (rows - ring.convolved(self._histories, block.own, block.right, k, k)) % p
                    rows = ring.product(block.scale, rows)
                case _:
                    rows = ring.product(block.scale, now[block.left])
            now[block.slots] = rows
            if block.places.start < block.places.stop:
                self._histories.put(block.places, k, now[block.factors])

    # --- results ---

    def begins(self, step: int) -> int | None:
        """The order of a step's first coefficient that is not zero; None as long as all are."""
        first = int(self._first[self._slot[step]])
        return first if first >= 0 else None

    def output_elements(self) -> np.ndarray:
        """Array (outputs, order, batch, width)."""
        return self._found[:, : self.order]


class _Block:
    """Steps that are computed together, where they stand, and what they are computed from."""

    slots: slice
    factors: slice  # those that are needed again, and where they are kept
    places: slice
    left: np.ndarray
    right: np.ndarray
    own: np.ndarray  # of quotients
    under: np.ndarray
    scale: np.ndarray

    def __init__(self, kind: str, steps: list[int], group: Group | None = None):
        self.kind, self.steps, self.group = kind, steps, group

    def sort(self, factors: set[int]) -> None:
        self.order = sorted(range(len(self.steps)), key=lambda k: self.steps[k] not in factors)
        self.steps = [self.steps[k] for k in self.order]

    def prepare(self, series: RingSeries, place: np.ndarray) -> None:
        slot, states = series._slot, series.model.states
        if self.group is None:
            names = [series.program.steps[i].name for i in self.steps]
            self.left = np.array([states.index(n) for n in names if n in states], dtype=int)
            return
        if self.kind == "add":
            terms = np.split(self.group.left, self.group.right[1:])
            self.left = slot[np.concatenate([terms[k] for k in self.order])]
            self.right = np.cumsum([0, *(len(terms[k]) for k in self.order)])[:-1]
            return
        left, right = self.group.left[self.order], self.group.right[self.order]
        if self.kind == "mul":
            self.left, self.right = place[left], place[right]
        elif self.kind == "div":
            self.left, self.under = slot[left], slot[right]
            self.own, self.right = place[self.steps], place[right]
        else:
            self.left, self.scale = slot[left], series._now[slot[right]]
            if self.kind == "shrink":
                self.scale = series.ring.reciprocal(self.scale)


class OutputSeries(RingSeries):
    """Series of all outputs of one model at a batch of parameter points, with derivatives.

    Parameters
    ----------
    names
        The coordinates of theta; all of the model's parameters are among them.
    points
        Array (batch, len(names)) of residues.
    tangents
        Whether to differentiate by all coordinates or by none, or an array (coordinates, directions) of directions to
        differentiate along.
    """

    def __init__(
        self,
        model: Model,
        names: Sequence[str],
        points: np.ndarray,
        inputs: Mapping[str, np.ndarray],
        prime: int,
        *,
        tangents: bool | np.ndarray = True,
    ):
        if isinstance(tangents, bool):
            tangents = np.eye(len(names), len(names) if tangents else 0, dtype=np.int64)
        values = {}
        for j, name in enumerate(names):
            rows = np.repeat(tangents[None, j], len(points), axis=0)
            values[name] = np.concatenate([points[:, j : j + 1].astype(np.int64), rows], axis=1)
        super().__init__(model, DualNumbers(prime, tangents.shape[1]), values, inputs)

    def output_coefficients(self) -> np.ndarray:
        """Array (outputs, order, batch)."""
        return self.output_elements()[..., 0]

    def output_jacobian(self) -> np.ndarray:
        """Array (batch, outputs * order, coordinates) of the derivatives of all output coefficients."""
        slopes = self.output_elements()[..., 1:]
        return slopes.reshape(len(self.outputs) * self.order, *slopes.shape[2:]).transpose(1, 0, 2)
