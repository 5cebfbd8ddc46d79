"""Which of many identifiable functions generate the field, and the proof that they do.

A candidate that belongs to the field is kept if it increases the rank of the Jacobian, or if it tells apart
points that the functions kept so far do not. When the rank is d - r and the common level set has no more
points in the slice than the fibre, the functions generate the whole field: they are constant on the fibre,
and the fibre is all of their level set.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import flint

from equifinal.algebra.arithmetic.budget import Budget, TooLarge
from equifinal.algebra.arithmetic.polynomials import ring, to_ratio
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.fibre_points import FibreSlice
from equifinal.algebra.elimination.quotient import NotFinite, Points
from equifinal.algebra.elimination.solve import System
from equifinal.algebra.generators.membership import NONE, Constants, gradients, values_at_points
from equifinal.language.expression import Expression, Name


@dataclass
class Generators:
    """Functions kept, their rank, and how many points their common level set has in the slice (0: not
    known).
    """

    functions: list[Expression] = field(default_factory=list)
    rank: int = 0
    points: int = 0
    complete: bool = False


def level_set(
    functions: Sequence[Expression],
    constants: Constants,
    point: Mapping[str, int],
    fixed: Mapping[str, int],
    prime: int,
    rng: random.Random,
    budget: Budget,
) -> tuple[list[str], Points]:
    """All points at which the functions have the values they have at `point`, with the coordinates `fixed` as
    given.

    Returns the names of the other coordinates and the points in them.
    """
    everything = [n for n in point if n not in fixed]
    plain = {f.name: point[f.name] for f in functions if isinstance(f, Name) and f.name not in fixed}
    free = [n for n in everything if n not in plain]
    if not free:
        constant = tuple(flint.nmod_poly([point[n]], prime) for n in everything)
        return everything, Points(prime, flint.nmod_poly([0, 1], prime), constant)
    context = ring(free, prime)
    values = dict(zip(free, context.gens(), strict=True))
    values |= {n: context.constant(v) for n, v in {**fixed, **plain}.items()}
    own = {n: context.constant(point[n]) for n in point}
    equations, nonzero = [], []
    for function in functions:
        if isinstance(function, Name):
            continue
        ratio = to_ratio(function, values, constants, context)
        target = to_ratio(function, own, constants, context)
        equations.append(ratio.over * target.under - ratio.under * target.over)
        nonzero.append(ratio.under)
    points = System(free, equations, nonzero, prime).solve(rng, budget)
    for under in nonzero:  # a point at which a function is 0/0 is none of its level set
        if not under.is_constant():
            points = points.restricted(points.modulus // points.modulus.gcd(points.value(under)))
    if points.count == 0:
        raise BadPrime
    found = dict(zip(free, points.coordinates, strict=True))
    found |= {n: flint.nmod_poly([v], prime) for n, v in plain.items()}
    return everything, Points(prime, points.modulus, tuple(found[n] for n in everything))


class Selection:
    """Keeps candidates that increase the rank or separate points."""

    def __init__(self, fibre: FibreSlice, rng: random.Random, constants: Constants = NONE):
        self.fibre = fibre
        self.rng = rng
        self.constants = constants
        self.kept: list[Expression] = []
        self.rank: int = 0
        self.rows: list[list[int]] = []
        self.pool: list[Expression] = []  # members that did not increase the rank
        self.points: Points | None = None

    def offer(self, candidates: Sequence[Expression]) -> None:
        """Take members in the order given; those of full new rank are kept at once, the others wait."""
        local = self.fibre.local
        for candidate in candidates:
            if self.rank == local.rank:
                self.pool.append(candidate)
                continue
            row = [int(v) for v in gradients([candidate], local, self.constants)[0]]
            trial = [*self.rows, row]
            rank = flint.nmod_mat(len(trial), len(row), [v for r in trial for v in r], local.prime).rank()
            if rank > self.rank:
                self.kept.append(candidate)
                self.rows, self.rank, self.points = trial, rank, None
            else:
                self.pool.append(candidate)

    def separate(self, budget: Budget) -> bool:
        """Once the rank is complete: add waiting members until no more points are left than the fibre has."""
        if self.rank < self.fibre.local.rank:
            return False
        if self.points is None:
            try:
                local = self.fibre.local
                point = {n: local.point[n] for n in local.names}
                _, self.points = level_set(
                    self.kept, self.constants, point, self.fibre.fixed, local.prime, self.rng, budget
                )
            except (NotFinite, TooLarge):
                return False
        while self.pool and self.points.count > self.fibre.degree:
            candidate = self.pool.pop(0)
            try:
                element = values_at_points(candidate, self.points, self.fibre.free, self.fibre.fixed, self.constants)
            except BadPrime:
                continue
            own = values_at_points(candidate, self._own_point(), self.fibre.free, self.fibre.fixed, self.constants)
            common = self.points.modulus.gcd(element - own)
            if 0 < common.degree() < self.points.count:
                self.points = self.points.restricted(common)
                self.kept.append(candidate)
        return self.points.count == self.fibre.degree

    def _own_point(self) -> Points:
        local = self.fibre.local
        coordinates = tuple(flint.nmod_poly([local.point[n]], local.prime) for n in self.fibre.free)
        return Points(local.prime, flint.nmod_poly([0, 1], local.prime), coordinates)
