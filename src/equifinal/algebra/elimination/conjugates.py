r"""Which of finitely many candidate points really give the same output: the series at all of them at once.

Candidates are `Points`, coordinates in GF(p)[z]/mu. The output series is computed with coefficients in that
ring; the difference to the output at theta* is a polynomial in z that vanishes exactly at those candidates
which agree, so mu is replaced by its greatest common divisor with each difference in turn. What is left is
the fibre, to the order of the series; candidates at which the model is undefined at time 0 fall out as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.residues import BadPrime, residue
from equifinal.algebra.arithmetic.series import _needed
from equifinal.algebra.arithmetic.straight_line import Program, Step
from equifinal.algebra.elimination.quotient import Points
from equifinal.language.expression import Expression
from equifinal.language.model import Model


class Undefined(Exception):
    """A denominator vanishes at some of the points; `divisor` is the polynomial of those."""

    def __init__(self, divisor: flint.nmod_poly):
        super().__init__()
        self.divisor = divisor


class Field:
    """Arithmetic in GF(p)[z]/mu, in which division may discover that mu splits."""

    def __init__(self, prime: int, modulus: flint.nmod_poly):
        self.prime, self.modulus = prime, modulus
        self.zero = flint.nmod_poly([], prime)

    def number(self, value: Fraction) -> flint.nmod_poly:
        return flint.nmod_poly([residue(value, self.prime)], self.prime)

    def inverse(self, element: flint.nmod_poly) -> flint.nmod_poly:
        common, inverse, _ = element.xgcd(self.modulus)
        if common.degree() > 0 or element.is_zero():
            raise Undefined(self.modulus if element.is_zero() else common)
        return inverse % self.modulus


def evaluate_at(
    expressions: Sequence[Expression],
    constants: Mapping[str, Fraction],
    values: Mapping[str, flint.nmod_poly],
    field: Field,
) -> list:
    """Values of expressions at all points."""
    program = Program()
    roots = program.record(expressions, constants)
    known: dict[int, flint.nmod_poly] = {}
    for i in _needed(program, roots):
        known[i] = _apply(program.steps[i], known, values, field)
    return [known[i] for i in roots]


def _apply(step: Step, known: Any, values: Any, field: Field) -> flint.nmod_poly:
    match step.kind:
        case "number":
            return field.number(step.value)
        case "name":
            return values[step.name]
        case "add":
            return known[step.left] + known[step.right]
        case "mul":
            return known[step.left] * known[step.right] % field.modulus
    return known[step.left] * field.inverse(known[step.right]) % field.modulus


def agreeing(
    points: Points,
    names: Sequence[str],
    fixed: Mapping[str, int],
    model: Model,
    inputs: Mapping[str, np.ndarray],
    target: np.ndarray,
    budget: Budget,
    *,
    all_must: bool = False,
) -> Points:
    """The points whose output series equals `target`, an array (outputs, orders).

    With `all_must` the comparison goes on to the last order even when one point only is left.
    """
    while True:
        try:
            return _agreeing(points, names, fixed, model, inputs, target, budget, all_must)
        except Undefined as undefined:
            modulus = points.modulus // points.modulus.gcd(undefined.divisor)
            if modulus.degree() < 1:
                raise BadPrime from None
            points = points.restricted(modulus)


def _agreeing(
    points: Any,
    names: Sequence[str],
    fixed: Any,
    model: Model,
    inputs: Any,
    target: Any,
    budget: Budget,
    all_must: bool,
) -> Points:
    prime = points.prime
    field = Field(prime, points.modulus)
    values = {name: c % points.modulus for name, c in zip(names, points.coordinates, strict=True)}
    values |= {name: flint.nmod_poly([v], prime) for name, v in fixed.items()}
    program = Program()
    rhs = program.record(model.rhs, model.constants)
    outputs = program.record(model.observed, model.constants)
    steps = _needed(program, [*rhs, *outputs])
    states = {
        x: [v] for x, v in zip(model.states, evaluate_at(model.start, model.constants, values, field), strict=True)
    }
    series: dict[int, list] = {i: [] for i in steps}
    for k in range(target.shape[1]):
        budget.spend(len(steps) * (3 + (k + 1) * (0.2 + points.count**2 / 500)))
        for i in steps:
            series[i].append(_coefficient(program.steps[i], series, series[i], states, model, values, inputs, k, field))
        for output, i in enumerate(outputs):
            difference = (series[i][k] - int(target[output, k])) % field.modulus
            if not difference.is_zero():
                field.modulus = field.modulus.gcd(difference)
                if field.modulus.degree() < 1:
                    raise BadPrime
        if field.modulus.degree() == 1 and not all_must:
            break
        inverse = pow(k + 1, -1, prime)
        for x, i in zip(model.states, rhs, strict=True):
            states[x].append(series[i][k] * inverse)
    return points.restricted(field.modulus)


def _coefficient(
    step: Step,
    series: Any,
    own: Any,
    states: Any,
    model: Model,
    values: Any,
    inputs: Any,
    k: int,
    field: Field,
) -> flint.nmod_poly:
    """The k-th coefficient of a step, from earlier ones."""
    modulus = field.modulus
    match step.kind:
        case "number":
            return field.number(step.value) if k == 0 else field.zero
        case "name":
            if step.name in states:
                return states[step.name][k]
            if step.name in model.inputs:
                return flint.nmod_poly([int(inputs[step.name][k])], field.prime)
            return values[step.name] if k == 0 else field.zero
        case "add":
            return series[step.left][k] + series[step.right][k]
        case "mul":
            return _convolution(series[step.left], series[step.right], k, 0, field.zero) % modulus
    rest = series[step.left][k] - _convolution(own, series[step.right], k, 1, field.zero)
    return rest % modulus * field.inverse(series[step.right][0] % modulus) % modulus


def _convolution(left: list, right: list, k: int, first: int, zero: flint.nmod_poly) -> flint.nmod_poly:
    """sum of left[k-i] * right[i] for i = first .. k."""
    total = zero
    for i in range(first, k + 1):
        a, b = left[k - i], right[i]
        if not a.is_zero() and not b.is_zero():
            total = total + a * b
    return total
