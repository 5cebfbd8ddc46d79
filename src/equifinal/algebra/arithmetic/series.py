r"""Truncated power series of a model's outputs, and of their derivatives in the parameters, modulo a prime.

With :math:`x(t) = \sum_k x_k t^k` the equation :math:`x' = f` reads :math:`(k+1)\,x_{k+1} = f_k`, where
:math:`f_k` needs :math:`x_0, \dots, x_k` only: one coefficient after the other, for all steps of a
straight-line program at once. Products are Cauchy products; :math:`q = a/b` gives :math:`q_k = (a_k -
\sum_{i\ge1} b_i q_{k-i})/b_0`. The derivative of every coefficient with respect to every parameter is carried
along (forward mode), and a batch of points shares the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.residues import BadPrime, residue
from equifinal.algebra.arithmetic.straight_line import Program
from equifinal.language.model import Model


class OutputSeries:
    """Series of all outputs of one model at a batch of parameter points.

    Parameters
    ----------
    model
        The model.
    names
        The coordinates of theta; all of the model's parameters are among them.
    points
        Array (batch, len(names)) of residues.
    inputs
        For every input its Taylor coefficients, an array (orders,), the same for all points.
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
        self.model, self.names, self.points, self.inputs, self.prime = (
            model,
            tuple(names),
            points,
            inputs,
            prime,
        )
        self.batch = points.shape[0]
        if isinstance(tangents, bool):
            tangents = np.eye(len(names), len(names) if tangents else 0, dtype=np.int64)
        self.seeds, self.directions = tangents, tangents.shape[1]
        self.program = Program()
        self.rhs = self.program.record(model.rhs, model.constants)
        self.outputs = self.program.record(model.observed, model.constants)
        self.steps = _needed(self.program, [*self.rhs, *self.outputs])
        self.constant = self._constant_steps()
        self.order = 0  # coefficients 0 .. order-1 are known
        self._allocate(8)
        self._start()

    # --- storage ---

    def _allocate(self, orders: int) -> None:
        self.values = {i: np.zeros((1 if self.constant[i] else orders, self.batch), dtype=np.int64) for i in self.steps}
        self.tangents = {
            i: np.zeros((1 if self.constant[i] else orders, self.batch, self.directions), dtype=np.int64)
            for i in self.steps
        }
        self.states = np.zeros((orders + 1, len(self.model.states), self.batch), dtype=np.int64)
        self.state_tangents = np.zeros(
            (orders + 1, len(self.model.states), self.batch, self.directions), dtype=np.int64
        )
        self.capacity = orders

    def _grow(self, orders: int) -> None:
        old_values, old_tangents, old_states, old_state_tangents = (
            self.values,
            self.tangents,
            self.states,
            self.state_tangents,
        )
        self._allocate(orders)
        for i in self.steps:
            self.values[i][: len(old_values[i])] = old_values[i]
            self.tangents[i][: len(old_tangents[i])] = old_tangents[i]
        self.states[: len(old_states)] = old_states
        self.state_tangents[: len(old_state_tangents)] = old_state_tangents

    def _constant_steps(self) -> dict[int, bool]:
        """Which steps do not change with time."""
        moving = {*self.model.states, *self.model.inputs}
        constant: dict[int, bool] = {}
        for i, step in enumerate(self.program.steps):
            match step.kind:
                case "number":
                    constant[i] = True
                case "name":
                    constant[i] = step.name not in moving
                case _:
                    constant[i] = constant[step.left] and constant[step.right]
        return constant

    def _start(self) -> None:
        program = Program()
        starts = program.record(self.model.start, self.model.constants)
        values: dict[int, np.ndarray] = {}
        tangents: dict[int, np.ndarray] = {}
        for i in _needed(program, starts):
            step = program.steps[i]
            if step.kind in ("number", "name"):
                values[i], tangents[i] = self._leaf(step.kind, step.name, step.value)
            else:
                a, b = step.left, step.right
                values[i], tangents[i] = self._combine(step.kind, values[a], tangents[a], values[b], tangents[b])
        for k, i in enumerate(starts):
            self.states[0, k], self.state_tangents[0, k] = values[i], tangents[i]

    def _leaf(self, kind: str, name: str, value: Fraction) -> tuple[np.ndarray, np.ndarray]:
        tangent = np.zeros((self.batch, self.directions), dtype=np.int64)
        if kind == "number":
            return np.full(self.batch, residue(value, self.prime), dtype=np.int64), tangent
        position = self.names.index(name)
        tangent[:] = self.seeds[position]
        return self.points[:, position].astype(np.int64), tangent

    def _combine(
        self, kind: str, a: np.ndarray, da: np.ndarray, b: np.ndarray, db: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        p = self.prime
        if kind == "add":
            return (a + b) % p, (da + db) % p
        if kind == "mul":
            return a * b % p, (a[:, None] * db % p + b[:, None] * da % p) % p
        inverse = inverses(b, p)
        quotient = a * inverse % p
        return quotient, (da - quotient[:, None] * db % p) % p * inverse[:, None] % p

    # --- one order after the other ---

    def extend(self, order: int, budget: Budget) -> None:
        """Compute coefficients up to (not including) `order`."""
        if order > self.capacity:
            self._grow(order)
        changing = sum(not fixed for fixed in (self.constant[i] for i in self.steps)) + len(self.rhs)
        numbers = self.batch * (1 + 2 * self.directions)
        for k in range(self.order, order):
            budget.spend(changing * (12 + (k + 1) * numbers / 120))
            for i in self.steps:
                if k == 0 or not self.constant[i]:
                    self._coefficient(i, k)
            inverse = pow(k + 1, -1, self.prime)
            for n, i in enumerate(self.rhs):
                if self.constant[i] and k > 0:
                    continue
                self.states[k + 1, n] = self.values[i][k] * inverse % self.prime
                self.state_tangents[k + 1, n] = self.tangents[i][k] * inverse % self.prime
            self.order = k + 1

    def _coefficient(self, i: int, k: int) -> None:
        step, p = self.program.steps[i], self.prime
        value, tangent = self.values[i], self.tangents[i]
        if step.kind == "name" and step.name in self.model.states:
            n = self.model.states.index(step.name)
            value[k], tangent[k] = self.states[k, n], self.state_tangents[k, n]
            return
        if step.kind == "name" and step.name in self.model.inputs:
            value[k] = int(self.inputs[step.name][k])
            return
        if step.kind in ("number", "name"):
            value[0], tangent[0] = self._leaf(step.kind, step.name, step.value)
            return
        a, da, b, db = (
            self.values[step.left],
            self.tangents[step.left],
            self.values[step.right],
            self.tangents[step.right],
        )
        if self.constant[i]:
            value[0], tangent[0] = self._combine(step.kind, a[0], da[0], b[0], db[0])
            return
        a_fixed, b_fixed = self.constant[step.left], self.constant[step.right]
        if step.kind == "add":
            for fixed, v, dv in ((a_fixed, a, da), (b_fixed, b, db)):
                if not fixed or k == 0:
                    value[k] += v[k]
                    tangent[k] += dv[k]
            value[k] %= p
            tangent[k] %= p
        elif step.kind == "mul":
            if a_fixed or b_fixed:
                low, high = (0, k) if a_fixed else (k, 0)
                value[k], tangent[k] = self._combine("mul", a[low], da[low], b[high], db[high])
                return
            value[k] = _convolved(a[: k + 1], b[: k + 1], p)
            if self.directions:
                tangent[k] = (
                    _convolved(a[: k + 1, :, None], db[: k + 1], p) + _convolved(b[: k + 1, :, None], da[: k + 1], p)
                ) % p
        else:
            self._divide(i, k, a, da, a_fixed, b, db, b_fixed)

    def _divide(self, i: int, k: int, a: Any, da: Any, a_fixed: Any, b: Any, db: Any, b_fixed: Any) -> None:
        # a = b q:  b_0 q_k = a_k - sum_{j<k} q_j b_{k-j}, and the same with one factor differentiated
        p, q, dq = self.prime, self.values[i], self.tangents[i]
        inverse = inverses(b[0], p)
        top = np.zeros_like(q[0]) if a_fixed and k else a[k]
        dtop = np.zeros_like(dq[0]) if a_fixed and k else da[k]
        if k and not b_fixed:
            top = (top - _convolved(q[:k], b[1 : k + 1], p)) % p
            if self.directions:
                dtop = (
                    dtop - _convolved(b[1 : k + 1, :, None], dq[:k], p) - _convolved(q[:k, :, None], db[1 : k + 1], p)
                )
        q[k] = top * inverse % p
        dq[k] = (dtop - q[k][:, None] * db[0] % p) % p * inverse[:, None] % p

    # --- results ---

    def output_coefficients(self) -> np.ndarray:
        """Array (outputs, order, batch)."""
        return np.stack([self._full(self.values[i]) for i in self.outputs])

    def output_jacobian(self) -> np.ndarray:
        """Array (batch, outputs * order, coordinates) of the derivatives of all output coefficients."""
        stacked = np.stack([self._full(self.tangents[i]) for i in self.outputs])
        return stacked.reshape(len(self.outputs) * self.order, self.batch, self.directions).transpose(1, 0, 2)

    def _full(self, array: np.ndarray) -> np.ndarray:
        if len(array) >= self.order:
            return array[: self.order]
        padded = np.zeros((self.order, *array.shape[1:]), dtype=np.int64)
        padded[: len(array)] = array
        return padded


def inverses(values: np.ndarray, prime: int) -> np.ndarray:
    if np.any(values == 0):
        raise BadPrime
    return np.array([pow(int(v), -1, prime) for v in values], dtype=np.int64)


def _convolved(left: np.ndarray, right: np.ndarray, prime: int) -> np.ndarray:
    """sum_i left_i right_{n-i} modulo the prime."""
    return (left * right[::-1] % prime).sum(axis=0) % prime


def _needed(program: Program, roots: Sequence[int]) -> list[int]:
    needed: set[int] = set()
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i in needed:
            continue
        needed.add(i)
        step = program.steps[i]
        stack.extend(j for j in (step.left, step.right) if j >= 0)
    return sorted(needed)
