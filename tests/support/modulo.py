"""Models, points and functions modulo a prime, as exact algebra sees them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

import flint

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, analyse_locally, slice_coordinates
from equifinal.algebra.arithmetic.residues import residue
from equifinal.algebra.elimination.fibre_points import FibreSlice, slice_fibre
from equifinal.algebra.elimination.quotient import Points
from equifinal.language.expression import Expression, evaluate
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression

PRIME = 2147483629


def plenty() -> Budget:
    """An allowance that no test comes near."""
    return Budget(1800 * SECOND)


def modulo(expression: Expression | str, values: Mapping[str, int], prime: int = PRIME) -> int:
    """The value of an expression, by flint's own arithmetic."""
    tree = parse_expression(expression) if isinstance(expression, str) else expression
    numbers = {name: flint.nmod(value, prime) for name, value in values.items()}
    return int(evaluate(tree, numbers, lambda v: flint.nmod(residue(Fraction(v), prime), prime)))


def local_of(model: Model, seed: int = 0) -> LocalAnalysis:
    return analyse_locally([model], model.parameters, random.Random(seed), plenty())


def slice_of(model: Model, seed: int = 0) -> FibreSlice:
    local, rng = local_of(model, seed), random.Random(seed + 1)
    return slice_fibre([model], local, slice_coordinates(local, list(model.parameters)), rng, plenty())


def points_at(rows: Sequence[Sequence[int]], prime: int = PRIME) -> Points:
    """Given points in the form in which zeros of ideals come: polynomials through them, by Lagrange."""
    places = range(1, len(rows) + 1)
    whole = flint.nmod_poly([1], prime)
    for z in places:
        whole = whole * flint.nmod_poly([-z, 1], prime)
    coordinates = []
    for values in zip(*rows, strict=True):
        total = flint.nmod_poly([], prime)
        for z, value in zip(places, values, strict=True):
            basis = whole // flint.nmod_poly([-z, 1], prime)
            total = total + basis * (flint.nmod(value, prime) / basis(flint.nmod(z, prime)))
        coordinates.append(total)
    return Points(prime, whole, tuple(coordinates))


def values_of(element: flint.nmod_poly, points: Points) -> list[int]:
    """What an element of GF(p)[z]/modulus is at the points, whose modulus must split."""
    roots = [-int(f[0]) * pow(int(f[1]), -1, points.prime) % points.prime for f, _ in points.modulus.factor()[1]]
    assert len(roots) == points.count
    return sorted(int(element(flint.nmod(z, points.prime))) for z in roots)
