"""Equations for the fibre straight from the Taylor coefficients of the outputs: the route that always exists.

The coefficients are rational functions of theta and grow fast with their order, so that they help where there
are few unknowns: above all for degenerate initial values, at which links vanish and input-output equations
say little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, divisor_steps, product_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ratio, Ring, to_ratio
from equifinal.algebra.arithmetic.residues import residue
from equifinal.algebra.arithmetic.schedule import needed
from equifinal.algebra.arithmetic.straight_line import Program, Step
from equifinal.language.model import Model

MOST_TERMS = 600

Coefficient = Ratio | None


def taylor_equations(
    model: Model,
    free: Sequence[str],
    fixed: Mapping[str, int],
    inputs: Mapping[str, np.ndarray],
    target: np.ndarray,
    into: Ring,
    budget: Budget,
) -> tuple[list[Polynomial], list[Polynomial]]:
    """Equations coefficient = its value, as many as are short enough, and denominators, which do not vanish.

    `target` holds the output coefficients at the point, an array (outputs, orders).
    """
    equations: list[Polynomial] = []
    denominators: dict[str, Polynomial] = {}
    try:
        for k, coefficients in enumerate(_Coefficients(model, free, fixed, inputs, into, budget)):
            if k >= target.shape[1]:
                break
            if all(value is None for value in coefficients):
                break
            for value, goal in zip(coefficients, target[:, k], strict=True):
                if value is None:
                    continue
                equation = value.over - value.under * int(goal)
                if not equation.is_zero():
                    equations.append(equation)
                if not value.under.is_constant():
                    denominators[str(value.under)] = value.under
    except TooLarge:
        pass
    return equations, list(denominators.values())


class _Coefficients:
    """Iterates over the orders; each item is the list of the outputs' coefficients as `Ratio`s.

    None stands for a coefficient that is too long. Those of other states and outputs go on: where a state starts at
    zero, its first coefficients are short however long those of others have become.
    """

    def __init__(
        self,
        model: Model,
        free: Sequence[str],
        fixed: Mapping[str, int],
        inputs: Mapping[str, np.ndarray],
        into: Ring,
        budget: Budget,
    ):
        self.model, self.inputs, self.into, self.budget = model, inputs, into, budget
        self.prime = int(into.modulus())
        polynomials = dict(zip(free, into.gens(), strict=True))
        polynomials |= {name: into.constant(value) for name, value in fixed.items()}
        one = into.constant(1)
        self.values = {name: Ratio(p, one, cancelled=True) for name, p in polynomials.items()}
        self.zero = Ratio(into.constant(0), one, cancelled=True)
        self.program = Program()
        self.rhs = self.program.record(model.rhs, model.constants)
        self.outputs = self.program.record(model.observed, model.constants)
        self.steps = needed(self.program, [*self.rhs, *self.outputs])
        self.states: dict[str, list[Coefficient]] = {
            x: [to_ratio(e, polynomials, model.constants, into)] for x, e in zip(model.states, model.start, strict=True)
        }

    def __iter__(self) -> Any:
        series: dict[int, list[Coefficient]] = {i: [] for i in self.steps}
        k = 0
        while True:
            for i in self.steps:
                self.budget.spend(5)
                value = self._coefficient(self.program.steps[i], series, series[i], k)
                too_long = value is not None and max(len(value.over), len(value.under)) > MOST_TERMS
                series[i].append(None if too_long else value)
            yield [series[i][k] for i in self.outputs]
            inverse = self._number(Fraction(1, k + 1))
            for x, i in zip(self.model.states, self.rhs, strict=True):
                slope = series[i][k]
                self.states[x].append(None if slope is None else slope * inverse)
            k += 1

    def _number(self, value: Fraction) -> Ratio:
        return Ratio(self.into.constant(residue(value, self.prime)), self.into.constant(1), cancelled=True)

    def _coefficient(
        self, step: Step, series: dict[int, list[Coefficient]], own: list[Coefficient], k: int
    ) -> Coefficient:
        match step.kind:
            case "number":
                return self._number(step.value) if k == 0 else self.zero
            case "name":
                if step.name in self.states:
                    return self.states[step.name][k]
                if step.name in self.model.inputs:
                    return self._number(Fraction(int(self.inputs[step.name][k])))
                return self.values[step.name] if k == 0 else self.zero
            case "add":
                left, right = series[step.left][k], series[step.right][k]
                return None if left is None or right is None else left + right
            case "mul":
                return self._convolution(series[step.left], series[step.right], k, 0)
        over, under = series[step.left][k], series[step.right][0]
        earlier = self._convolution(own, series[step.right], k, 1)
        if over is None or under is None or earlier is None:
            return None
        rest = over - earlier
        self._announce(rest, under)
        return rest / under

    def _announce(self, a: Ratio, b: Ratio) -> None:
        """A product, quotient or sum of two fractions, cancelled."""
        steps = sum(product_steps(x, y) for x in (a.over, a.under) for y in (b.over, b.under))
        self.budget.spend(steps + divisor_steps(a.over, b.over) + divisor_steps(a.under, b.under))

    def _convolution(self, left: list[Coefficient], right: list[Coefficient], k: int, first: int) -> Coefficient:
        total = self.zero
        for i in range(first, k + 1):
            a, b = left[k - i], right[i]
            if any(c is not None and c.over.is_zero() for c in (a, b)):
                continue
            if a is None or b is None:
                return None
            self._announce(a, b)
            product = a * b
            self._announce(total, product)
            total = total + product
            if len(total.over) > 4 * MOST_TERMS:
                return None
        return total
