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
from equifinal.algebra.arithmetic.rings import Quotient, Undefined
from equifinal.algebra.arithmetic.schedule import recorded
from equifinal.algebra.arithmetic.series import RingSeries
from equifinal.algebra.arithmetic.straight_line import Step
from equifinal.algebra.elimination.quotient import Points
from equifinal.language.expression import Expression
from equifinal.language.model import Model

FIRST = 8  # coefficients, after which most of those that disagree have fallen out


class Field:
    """Arithmetic in GF(p)[z]/mu, in which division may discover that mu splits."""

    def __init__(self, prime: int, modulus: flint.nmod_poly):
        self.prime = prime
        self.modulus = modulus

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
) -> list[flint.nmod_poly]:
    """Values of expressions at all points."""
    program, roots, steps = recorded(expressions, constants)
    known: dict[int, flint.nmod_poly] = {}
    for i in steps:
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
    enough: int = 1,
) -> Points:
    """The points whose output series equals `target`, an array (outputs, orders).

    The comparison ends when no more than `enough` points are left, since so many there are.
    """
    while True:
        try:
            return _agreeing(points, names, fixed, model, inputs, target, budget, enough)
        except Undefined as undefined:
            modulus = points.modulus // points.modulus.gcd(undefined.divisor)
            if modulus.degree() < 1:
                raise BadPrime from None
            points = points.restricted(modulus)


def _agreeing(
    points: Points,
    names: Sequence[str],
    fixed: Mapping[str, int],
    model: Model,
    inputs: Mapping[str, np.ndarray],
    target: np.ndarray,
    budget: Budget,
    enough: int,
) -> Points:
    ring, orders = Quotient(points.modulus), target.shape[1]
    values = {name: [ring.row(c % points.modulus)] for name, c in zip(names, points.coordinates, strict=True)}
    values |= {name: [[value] + [0] * (ring.width - 1)] for name, value in fixed.items()}
    rows = {name: np.array(row, dtype=np.int64) for name, row in values.items()}
    series, left, known = RingSeries(model, ring, rows, inputs), points.modulus, 0
    while known < orders and left.degree() > enough:
        series.extend(min(max(FIRST, 2 * known), orders), budget)
        found = series.output_elements()[:, known:, 0]
        for k in range(found.shape[1]):
            for element, goal in zip(found[:, k], target[:, known + k], strict=True):
                if int(element[0]) != int(goal) or element[1:].any():
                    left = left.gcd(ring.polynomial(element) - int(goal))
                    if left.degree() < 1:
                        raise BadPrime
        known = series.order
        if known < orders and left.degree() < ring.width:  # fewer are left, so that it is less to go on with those
            return _agreeing(points.restricted(left), names, fixed, model, inputs, target, budget, enough)
    return points.restricted(left)
