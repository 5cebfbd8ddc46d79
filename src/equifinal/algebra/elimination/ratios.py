"""Ratios of coefficients known by their values only: what they depend on, their degrees, their formulas."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, matrix_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ring

Key = tuple[int, ...]


class Ratios:
    """Simple ratios of coefficients of one input-output equation, recovered from values."""

    def __init__(self, keys: Sequence[Key], free: Sequence[str], prime: int, into: Ring):
        self.keys: list[Key] = list(keys)
        self.free: list[str] = list(free)
        self.prime = prime
        self.into = into

    def dependence(self, base: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Array (free, keys) of labels: a ratio depends on a parameter unless both coefficients have equal
        labels.
        """
        inverse = np.array([pow(int(v), -1, self.prime) for v in base], dtype=np.int64)
        return np.stack([row * inverse % self.prime for row in moved])

    def simple_pairs(self, labels: np.ndarray) -> dict[tuple[int, ...], list[tuple[int, int]]]:
        """Pairs (coefficient, divisor) by the parameters their ratio depends on, fewest parameters first."""
        nearest: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        weights = np.left_shift(1, np.arange(len(labels), dtype=np.int64))[:, None]
        for j in range(len(self.keys)):
            codes = (weights * (labels != labels[:, j : j + 1])).sum(axis=0)  # a bit for every parameter
            different, partners = np.unique(codes, return_index=True)
            choices = sorted(
                (int(c).bit_count(), int(c), int(i)) for c, i in zip(different, partners, strict=True) if c
            )
            for _, code, i in choices[:4]:
                which = tuple(k for k in range(len(labels)) if code >> k & 1)
                nearest.setdefault(which, []).append((j, i))
        return {which: nearest[which] for which in sorted(nearest, key=lambda w: (len(w), w))}

    def line_degree(self, values: Sequence[int], abscissae: Sequence[int]) -> int | None:
        """Degree of a function along a line, as a quotient of two polynomials of that degree; None if too
        high.
        """
        p = self.prime
        powers: list[list[int]] = [[1] for _ in values]  # of the abscissae
        times: list[list[int]] = [[-value % p] for value in values]  # minus the value
        for degree in range(1, (len(values) - 3) // 2 + 1):
            count = 2 * degree + 4
            if count > len(values):
                return None
            rows: list[int] = []
            for s, power, row in zip(abscissae, powers, times, strict=False):
                power.append(power[-1] * s % p)
                row.append(row[-1] * s % p)
            for power, row in zip(powers[:count], times, strict=False):
                rows += power + row
            if flint.nmod_mat(count, 2 * degree + 2, rows, p).rank() < 2 * degree + 2:
                return degree
        return None

    def low_degree_pairs(
        self,
        labels: np.ndarray,
        line: np.ndarray,
        abscissae: Sequence[int],
        rng: random.Random,
        budget: Budget,
    ) -> list[tuple[int, tuple[int, ...], int, int]]:
        """Pairs by the degree of their ratio along a line: (degree, parameters, coefficient, divisor)."""
        pairs = [(j, i) for j in range(len(self.keys)) for i in range(j)]
        if len(pairs) > 1500:
            pairs = rng.sample(pairs, 1500)
        found = []
        for j, i in pairs:
            budget.spend(1000)
            which = tuple(np.flatnonzero(labels[:, j] != labels[:, i]).tolist())
            values = [
                int(a) * pow(int(b), -1, self.prime) % self.prime for a, b in zip(line[:, j], line[:, i], strict=True)
            ]
            degree = self.line_degree(values, abscissae) if which else None
            if degree is not None:
                found.append((degree, which, j, i))
        return sorted(found, key=lambda f: (f[0], len(f[1]), f[1:]))

    def fitted(
        self,
        which: Sequence[int],
        values: Sequence[int],
        points: Sequence[Mapping[str, int]],
        degrees: tuple[int, int],
        budget: Budget,
        caps: Mapping[int, int] | None = None,
    ) -> tuple[Polynomial, Polynomial] | None:
        """Numerator and denominator of at most these total degrees through the values, with points to spare.

        `caps` bounds the degree in each variable.
        """
        top, bottom = (
            [c for d in range(degree + 1) for c in combinations_with_replacement(which, d) if _within(c, caps)]
            for degree in degrees
        )
        width, p = len(top) + len(bottom), self.prime
        if width + 3 > len(points):
            return None
        budget.spend(2 * matrix_steps(width + 3, width))
        rows: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        for point, value in zip(points[: width + 3], values, strict=False):
            known.clear()
            known[()] = 1
            for combination in max(top, bottom, key=len)[1:]:
                known[combination] = known[combination[:-1]] * point[self.free[combination[-1]]] % p
            rows += [known[c] for c in top]
            rows += [-value * known[c] % p for c in bottom]
        reduced, rank = flint.nmod_mat(width + 3, width, rows, p).rref()
        if rank != width - 1:
            return None
        loose = next((j for j in range(rank) if int(reduced[j, j]) == 0), rank)
        column = [-int(reduced[i, loose]) % p for i in range(rank)]
        solution = [*column[:loose], 1, *column[loose:]]
        return self._polynomial(top, solution[: len(top)]), self._polynomial(bottom, solution[len(top) :])

    def _polynomial(self, monomials: Sequence[tuple[int, ...]], coefficients: Sequence[int]) -> Polynomial:
        terms: dict[Key, int] = {}
        for combination, c in zip(monomials, coefficients, strict=True):
            if c:
                exponents = [0] * len(self.free)
                for i in combination:
                    exponents[i] += 1
                terms[tuple(exponents)] = c
        return self.into.from_dict(terms)


def _within(combination: Sequence[int], caps: Mapping[int, int] | None) -> bool:
    return caps is None or all(combination.count(i) <= caps[i] for i in set(combination))
