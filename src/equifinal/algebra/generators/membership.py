"""Is a function identifiable? Its gradient on the kernel, and its values at the points of the fibre, tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import flint
import numpy as np

from equifinal.algebra.arithmetic.functions import values_and_gradients
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.conjugates import Field, Undefined, evaluate_at
from equifinal.algebra.elimination.fibre_points import FibreSlice
from equifinal.algebra.elimination.quotient import Points, distinct_values
from equifinal.language.expression import Expression

Constants = Mapping[str, Fraction]
NONE: Constants = {}


def gradients(expressions: Sequence[Expression], local: LocalAnalysis, constants: Constants = NONE) -> np.ndarray:
    """Array (expressions, coordinates) at the local analysis' point."""
    point = np.array([[local.point[n] for n in local.names]], dtype=np.int64).reshape(1, len(local.names))
    return values_and_gradients(expressions, constants, local.names, point, local.prime)[1][:, 0, :]


def is_invariant(expression: Expression, local: LocalAnalysis, constants: Constants = NONE) -> bool:
    """Whether the gradient vanishes on the tangent space of the fibre: local identifiability."""
    gradient = [int(v) for v in gradients([expression], local, constants)[0]]
    return all(sum(g * k for g, k in zip(gradient, row, strict=True)) % local.prime == 0 for row in local.kernel)


def values_at_points(
    expression: Expression,
    points: Points,
    free: Sequence[str],
    fixed: Mapping[str, int],
    constants: Constants = NONE,
) -> flint.nmod_poly:
    """The function's values at all points, an element of GF(p)[z]/modulus."""
    values = dict(zip(free, points.coordinates, strict=True))
    values |= {name: flint.nmod_poly([v], points.prime) for name, v in fixed.items()}
    try:
        return evaluate_at([expression], constants, values, Field(points.prime, points.modulus))[0] % points.modulus
    except Undefined:
        raise BadPrime from None


def alternatives(expression: Expression, fibre: FibreSlice, constants: Constants = NONE) -> int:
    """How many values a locally identifiable function takes on the fibre: 1 means globally identifiable."""
    element = values_at_points(expression, fibre.points, fibre.free, fibre.fixed, constants)
    return distinct_values(element, fibre.points.modulus)


def is_member(expression: Expression, fibre: FibreSlice, constants: Constants = NONE) -> bool:
    """Whether the function belongs to the field of globally identifiable functions."""
    try:
        return is_invariant(expression, fibre.local, constants) and alternatives(expression, fibre, constants) == 1
    except BadPrime:
        return False
