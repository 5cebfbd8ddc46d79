"""Level sets of given functions: rank, valid coordinates to fix, number of points, independent choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, islice

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge
from equifinal.algebra.arithmetic.functions import values_and_gradients
from equifinal.algebra.arithmetic.residues import BadPrime, random_prime
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.generators.membership import Constants
from equifinal.algebra.generators.selection import level_set
from equifinal.language.expression import Expression

TRIED = 60  # sets of independent functions


class Levels:
    """Functions of theta at a random point modulo a prime.

    Rank and determinants found here can only be too small, with a probability of about degree / 2^30.
    """

    def __init__(self, functions: Sequence[Expression], constants: Constants, names: Sequence[str], *, seed: int = 0):
        self.functions: tuple[Expression, ...] = tuple(functions)
        self.constants = constants
        self.names: tuple[str, ...] = tuple(names)
        self.rng: random.Random = random.Random(seed)
        for attempt in range(5):
            self.prime: int = random_prime(self.rng)
            self.point: dict[str, int] = {n: self.rng.randrange(1, self.prime) for n in names}
            at = np.array([list(self.point.values())], dtype=np.int64).reshape(1, len(names))
            try:
                _, slopes = values_and_gradients(self.functions, constants, self.names, at, self.prime)
                break
            except BadPrime:
                if attempt == 4:
                    raise
        self.rows: list[list[int]] = [[int(v) for v in slope[0]] for slope in slopes]
        self.rank: int = self._rank(range(len(self.rows)), range(len(self.names)))

    def _rank(self, rows: Sequence[int], columns: Sequence[int]) -> int:
        entries = [self.rows[i][k] for i in rows for k in columns]
        return flint.nmod_mat(len(rows), len(columns), entries, self.prime).rank() if entries else 0

    def is_valid(self, free: Sequence[str]) -> bool:
        """Whether fixing these coordinates leaves finitely many points of a level set."""
        others = [k for k, n in enumerate(self.names) if n not in free]
        return len(others) == self.rank == self._rank(range(len(self.rows)), others)

    def some_free(self) -> tuple[str, ...]:
        """Coordinates that may be fixed, as many as a level set has dimensions."""
        free = list(self.names)
        solved: list[int] = []
        for k in range(len(self.names)):
            if self._rank(range(len(self.rows)), [*solved, k]) > len(solved):
                solved.append(k)
                free.remove(self.names[k])
        return tuple(free)

    def count(self, free: Sequence[str], budget: Budget, chosen: Sequence[int] | None = None) -> int:
        """Count the (complex) points of a level set when these coordinates are fixed; 0 if that is not known."""
        functions = [self.functions[j] for j in chosen] if chosen is not None else self.functions
        fixed = {n: self.point[n] for n in free}
        try:
            _, points = level_set(functions, self.constants, self.point, fixed, self.prime, self.rng, budget)
        except (TooLarge, NotFinite, BadPrime):
            return 0
        return points.count

    def independent(self, budget: Budget) -> tuple[list[tuple[int, ...]], bool]:
        """Choices of as many functions as the rank that tell apart the most, and whether they tell apart all.

        Where they do not, the functions left out distinguish points that the chosen ones do not.
        """
        everything = tuple(range(len(self.functions)))
        if len(everything) == self.rank:
            return [everything], True
        columns = range(len(self.names))
        sets = (s for s in combinations(everything, self.rank) if self._rank(s, columns) == self.rank)
        free = self.some_free()
        least = self.count(free, budget)
        counted = [(self.count(free, budget, s), s) for s in islice(sets, TRIED)]
        known = [c for c, _ in counted if c > 0]
        if not known:
            return [s for _, s in counted], False
        return [s for c, s in counted if c == min(known)], least == min(known)
