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
from equifinal.algebra.arithmetic.schedule import Group, constant_steps, groups_of, needed
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

    Attributes
    ----------
    first
        For every step the order of its first coefficient that is not zero; -1 as long as all are.
    """

    def __init__(self, model: Model, ring: Ring, values: Mapping[str, np.ndarray], inputs: Mapping[str, np.ndarray]):
        self.model, self.ring, self.inputs, self.prime = model, ring, inputs, ring.prime
        self.batch = next((len(v) for v in values.values()), 1)
        self._values = values
        self.program = Program()
        self.rhs = self.program.record(model.rhs, model.constants)
        self.outputs = self.program.record(model.observed, model.constants)
        roots = [*self.rhs, *self.outputs]
        self.steps = needed(self.program, roots)
        self.constant = constant_steps(self.program, {*model.states, *model.inputs})
        self.groups = groups_of(self.program, self.steps, roots, self.constant)
        self.order = 0  # coefficients 0 .. order-1 are known
        count = len(self.program.steps)
        self.first = np.full(count, -1)
        self._now = np.zeros((count, self.batch, ring.width), dtype=np.int64)  # the coefficients of one order
        constants = [i for i in self.steps if self.constant[i]]
        for i, value in self._constants(self.program, constants).items():
            self._now[i] = value
        self._fixed = self._now[constants]
        self._position = {i: k for k, i in enumerate(constants)}
        scaling = [i for i, g in enumerate(self.groups) if g.kind in ("scale", "shrink")]
        self._factors = {i: self._scales(self.groups[i]) for i in scaling}  # and reciprocals of denominators at time 0
        self.start = self.values_of(model.start)
        self._states = self.start
        named = [(i, self.program.steps[i].name) for i in self.steps if self.program.steps[i].kind == "name"]
        self._state_steps = np.array([i for i, n in named if n in model.states], dtype=int)
        self._which_state = [model.states.index(n) for _, n in named if n in model.states]
        self._input_steps = [(i, n) for i, n in named if n in model.inputs]
        # factors of products are needed again
        sides = [(g.right, g.left if g.kind == "mul" else g.target) for g in self.groups if g.kind in ("mul", "div")]
        place = {i: k for k, i in enumerate(sorted({int(i) for side in sides for steps in side for i in steps}))}
        self._place = np.array([place.get(i, -1) for i in range(count)])
        self._kept = [steps[self._place[steps] >= 0] for steps in (g.target for g in self.groups)]
        self._kept_names = np.array([i for i, n in named if i in place], dtype=int)
        self._histories = Histories(len(place), self.batch, 8, ring.width)
        self._found = np.zeros((len(self.outputs), 8, self.batch, ring.width), dtype=np.int64)

    # --- what does not change with time ---

    def values_of(self, expressions: Sequence[Expression]) -> np.ndarray:
        """Values of functions of the parameters, an array (expressions, batch, width)."""
        program = Program()
        roots = program.record(expressions, self.model.constants)
        found = self._constants(program, needed(program, roots))
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

    def _scales(self, group: Group) -> np.ndarray:
        factors = self._fixed[[self._position[int(i)] for i in group.right]]
        return factors if group.kind == "scale" else self.ring.reciprocal(factors)

    # --- one order after the other ---

    def extend(self, order: int, budget: Budget) -> None:
        """Compute coefficients up to (not including) `order`."""
        if order > self._found.shape[1]:
            self._histories.grow(order)
            larger = np.zeros((len(self.outputs), order, *self._found.shape[2:]), dtype=np.int64)
            larger[:, : self.order] = self._found[:, : self.order]
            self._found = larger
        numbers = self.batch * self.ring.width
        products = sum(len(g.target) for g in self.groups if g.kind in ("mul", "div"))
        for k in range(self.order, order):
            steps = len(self.groups) * 20 + len(self._now) * (0.5 + numbers / 100)
            budget.spend(steps + products * (k + 1) * numbers * self._cost / 250)
            self._coefficients(k)
            self._found[:, k] = self._now[self.outputs]
            self.first[(self.first < 0) & self._now[..., 0].any(axis=1)] = k
            self._states = self._now[self.rhs] * pow(k + 1, -1, self.prime) % self.prime
            self.order = k + 1

    @property
    def _cost(self) -> int:
        """How many products of residues one of elements takes, by coordinate."""
        return 1 if isinstance(self.ring, DualNumbers) else self.ring.width

    def _coefficients(self, k: int) -> None:
        now, p = self._now, self.prime
        if k == 1:
            now[[*self._position]] = 0
        now[self._state_steps] = self._states[self._which_state]
        for i, name in self._input_steps:
            now[i, :, 0] = int(self.inputs[name][k])
        self._keep(self._kept_names, k)
        for i, group in enumerate(self.groups):
            match group.kind:
                case "add":
                    now[group.target] = np.add.reduceat(now[group.left], group.right, axis=0) % p
                case "mul":
                    now[group.target] = self._convolved(group.left, group.right, k + 1, k)
                case "div":
                    rest = now[group.left]
                    if k == 0:
                        self._factors[i] = self.ring.reciprocal(now[group.right])
                    else:
                        rest = (rest - self._convolved(group.target, group.right, k, k)) % p
                    now[group.target] = self.ring.product(self._factors[i], rest)
                case _:
                    now[group.target] = self.ring.product(self._factors[i], now[group.left])
            self._keep(self._kept[i], k)

    def _keep(self, steps: np.ndarray, k: int) -> None:
        if len(steps):
            self._histories.put(self._place[steps], k, self._now[steps])

    def _convolved(self, left: np.ndarray, right: np.ndarray, terms: int, order: int) -> np.ndarray:
        return self.ring.convolved(self._histories, self._place[left], self._place[right], terms, order)

    def output_elements(self) -> np.ndarray:
        """Array (outputs, order, batch, width)."""
        return self._found[:, : self.order]


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
