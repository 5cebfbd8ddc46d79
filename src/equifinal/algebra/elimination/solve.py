"""Zeros of an over-determined polynomial system modulo a prime: linear steps first, then a Groebner basis."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import flint

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, factor_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ring, mapped, ring
from equifinal.algebra.arithmetic.residues import BadPrime, rational
from equifinal.algebra.elimination.groebner import Terms, degrevlex, echelon, groebner, leading, without_monomial
from equifinal.algebra.elimination.quotient import NotFinite, Points, points_of

SPLITS = 3  # how often an equation that is a product may be split into its factors


class System:
    """Equations in named unknowns for the points of a generic fibre.

    Such a point is generic itself: no polynomial with fixed rational coefficients vanishes there, in
    particular no coordinate. Factors of that kind are divided out wherever they are met (see `Stripper`).

    Parameters
    ----------
    equations
        Polynomials that vanish at every point looked for.
    nonzero
        Polynomials that vanish at none of them: denominators, leading coefficients.
    taken
        Values of fixed coordinates, which no other coordinate has at a generic point.
    """

    def __init__(
        self,
        names: Sequence[str],
        equations: Sequence[Polynomial],
        nonzero: Sequence[Polynomial],
        prime: int,
        taken: Iterable[int] = (),
    ):
        self.names: tuple[str, ...] = tuple(names)
        self.prime = prime
        self.ring: Ring = ring(names, prime)
        self.equations: list[Polynomial] = list(equations)
        self.nonzero: list[Polynomial] = list(nonzero)
        self.taken: set[int] = set(taken)

    def solve(self, rng: random.Random, budget: Budget) -> Points:
        """All points, as `Points` over the unknowns; raises `NotFinite` if there are infinitely many."""
        strip = Stripper(len(self.names), self.prime, budget)
        rows = [strip(_terms(e)) for e in self.equations if not e.is_zero()]
        return self._solved([None] * len(self.names), rows, SPLITS, strip, rng, budget)

    def _solved(
        self,
        images: list[Terms | None],
        rows: list[Terms],
        splits: int,
        strip: Stripper,
        rng: random.Random,
        budget: Budget,
    ) -> Points:
        """The points, where some unknowns are known as functions of the others, and the others satisfy `rows`."""
        images, rows = self._linear_steps(images, rows, strip, budget)
        if any(sum(leading(row)) == 0 for row in rows) or self._is_special(images, budget):
            raise BadPrime  # no points, or none that is generic
        if branches := self._branches(rows, budget) if splits else []:
            union: Points | None = None
            for k, branch in enumerate(branches):
                try:
                    points = self._solved(images, [*rows, _terms(branch)], splits - 1, strip, rng, budget)
                except BadPrime:  # no points at all
                    continue
                for earlier in branches[:k]:  # points on several branches count once
                    points = points.restricted(points.modulus // points.modulus.gcd(points.value(earlier)))
                if points.count:
                    union = points if union is None else union.joined(points, rng)
            if union is None:
                raise BadPrime
            return union
        free = sorted({i for row in rows for monomial in row for i, e in enumerate(monomial) if e})
        if any(image is None and i not in free for i, image in enumerate(images)):
            raise NotFinite
        if not free:
            points = Points(self.prime, flint.nmod_poly([0, 1], self.prime), ())
        else:
            points = self._finite(rows, free, images, rng, budget)
        values = dict(zip(free, points.coordinates, strict=True))
        coordinates = []
        for i, image in enumerate(images):
            if image is None:
                coordinates.append(values[i])
            else:
                total = flint.nmod_poly([], self.prime)
                for monomial, c in image.items():
                    term = flint.nmod_poly([c], self.prime)
                    for j, e in enumerate(monomial):
                        if e:
                            term = term * values[j]
                    total = total + term
                coordinates.append(total % points.modulus)
        return Points(self.prime, points.modulus, tuple(coordinates))

    def _linear_steps(
        self, images: Sequence[Terms | None], rows: list[Terms], strip: Stripper, budget: Budget
    ) -> tuple[list[Terms | None], list[Terms]]:
        """Solve for every unknown that an equation gives linearly in the others, again and again."""
        images = list(images)
        while True:
            rows = echelon(rows, self.prime, degrevlex, budget) if rows else []
            linear = [row for row in rows if sum(leading(row)) == 1]
            if not linear:
                return images, rows
            new: dict[int, Terms] = {}
            for row in linear:
                lead = leading(row)
                new[lead.index(1)] = {m: -c % self.prime for m, c in row.items() if m != lead}
            for i, image in enumerate(images):
                if image is not None:
                    images[i] = self._put(image, new, budget)
            for i, image in new.items():
                images[i] = image
            rest = [row for row in rows if sum(leading(row)) != 1]
            rows = [strip(r) for r in (self._put(row, new, budget) for row in rest) if r]

    def _is_special(self, images: Sequence[Terms | None], budget: Budget) -> bool:
        """Whether something that vanishes at no generic point vanishes at all solutions."""
        gens = self.ring.gens()
        put = [self.ring.from_dict(image) if image is not None else gens[i] for i, image in enumerate(images)]
        if len({str(p) for p in put}) < len(put):
            return True  # two coordinates are equal
        if any(p.is_constant() and (p.is_zero() or int(p.coeffs()[0]) in self.taken) for p in put):
            return True  # a coordinate is zero, or equal to one that is fixed
        short = [p for p in self.nonzero if 0 < len(p) <= 200]
        return any(mapped(p, put, self.ring, budget).is_zero() for p in short)

    def _branches(self, rows: Sequence[Terms], budget: Budget) -> list[Polynomial]:
        """The factors of a short equation that is a product: each of them gives a smaller system."""
        if len(rows) < 2:
            return []
        for row in sorted(rows, key=len):
            if len(row) > Stripper.LONGEST:
                break
            if max(map(sum, row)) > 1:
                budget.spend(factor_steps(row))
                factors = [factor for factor, _ in self.ring.from_dict(row).factor()[1]]
                if len(factors) > 1:
                    return factors
        return []

    def _put(self, terms: Terms, new: dict[int, Terms], budget: Budget) -> Terms:
        if not any(monomial[i] for monomial in terms for i in new):
            return terms
        gens = self.ring.gens()
        images = [self.ring.from_dict(new[i]) if i in new else gens[i] for i in range(len(self.names))]
        return _terms(mapped(self.ring.from_dict(terms), images, self.ring, budget))

    def _finite(self, rows: Any, free: Sequence[int], images: Any, rng: random.Random, budget: Budget) -> Points:
        short = [_picked(row, free) for row in rows]
        basis = groebner(short, self.prime, budget, simplify=Stripper(len(free), self.prime, budget))
        try:
            return points_of(basis, len(free), self.prime, rng, budget)
        except NotFinite:
            pass
        gens = self.ring.gens()
        put = [self.ring.from_dict(image) if image is not None else gens[i] for i, image in enumerate(images)]
        product = self.ring.constant(1)
        for i in free:
            product = product * gens[i]
        factors = [product]
        for polynomial in self.nonzero:
            image = _terms(mapped(polynomial, put, self.ring, budget))
            image_polynomial = self.ring.from_dict(image)
            if image_polynomial.is_constant() or len(image_polynomial) > 500:
                continue
            budget.spend(factor_steps(image))
            factors += [factor for factor, _ in image_polynomial.factor()[1]]
        unique = list({str(factor): factor for factor in factors}.values())
        for chosen in ([product], unique):
            extended = [{(*m, *(0,) * len(chosen)): c for m, c in row.items()} for row in basis]
            for k, factor in enumerate(chosen):
                inverse = tuple(int(j == k) for j in range(len(chosen)))
                row = {(*m, *inverse): c for m, c in _picked(_terms(factor), free).items()}
                row[(0,) * (len(free) + len(chosen))] = self.prime - 1
                extended.append(row)
            try:
                strip = Stripper(len(free) + len(chosen), self.prime, budget)
                saturated = groebner(extended, self.prime, budget, simplify=strip)
                points = points_of(saturated, len(free) + len(chosen), self.prime, rng, budget)
                return Points(self.prime, points.modulus, points.coordinates[: len(free)])
            except NotFinite:
                continue
        raise NotFinite


def determined(equations: Sequence[Polynomial], names: Sequence[str], prime: int, budget: Budget) -> dict[str, int]:
    """Unknowns that have only one value at all common zeros, with that value."""
    system = System(names, equations, [], prime)
    try:
        strip = Stripper(len(names), prime, budget)
        rows = [strip(_terms(e)) for e in equations if not e.is_zero()]
        images, rows = system._linear_steps([None] * len(names), rows, strip, budget)
        basis = groebner(rows, prime, budget, simplify=Stripper(len(names), prime, budget))
    except TooLarge:
        return {}
    found = {}
    for row in basis:
        lead = leading(row)
        if sum(lead) == 1 and all(sum(m) == 0 or m == lead for m in row):
            found[names[lead.index(1)]] = -row.get((0,) * len(names), 0) % prime
    solved = {names.index(name): value for name, value in found.items()}
    for i, image in enumerate(images):
        if image is not None and all(sum(m) == 0 or solved.keys() >= {j for j, e in enumerate(m) if e} for m in image):
            total = 0
            for m, c in image.items():
                for j, e in enumerate(m):
                    c = c * pow(solved[j], e, prime) % prime if e else c
                total += c
            found[names[i]] = total % prime
    return found


class Stripper:
    """Divides by factors that cannot vanish on a generic fibre: those that do not depend on the fibre.

    Coefficients that come from the random point are random residues; a factor all of whose coefficients are
    fractions with numerator and denominator up to `HEIGHT` is taken to be fixed. A factor with one random
    coefficient looks like that with probability `MISTAKE`, about 2 HEIGHT^2 / p.
    """

    HEIGHT = 12
    MISTAKE = 3e-7
    LONGEST = 40  # terms; factoring long polynomials costs more than it gains

    def __init__(self, variables: int, prime: int, budget: Budget):
        self.ring: Ring = ring([""] * variables, prime)
        self.prime = prime
        self.budget = budget
        self._as_it_is = set[frozenset]()  # asked about before

    def __call__(self, terms: Terms) -> Terms:
        self.budget.spend(5 + 3 * len(terms))
        shorter = without_monomial(terms)
        if not 2 <= len(shorter) <= self.LONGEST or max(map(sum, shorter)) < 2:
            return shorter
        known = frozenset(shorter.items())
        if known in self._as_it_is:
            return shorter
        self.budget.spend(factor_steps(shorter))
        factors = self.ring.from_dict(shorter).factor()[1]
        kept = [(f, e) for f, e in factors if not self._is_fixed(f)]
        if not kept or (len(kept) == len(factors) and all(e == 1 for _, e in kept)):
            self._as_it_is.add(known)
            return shorter
        product = self.ring.constant(1)
        for factor, _ in kept:
            product = product * factor
        return _terms(product)

    def _is_fixed(self, polynomial: Polynomial) -> bool:
        coefficients = [int(c) for c in polynomial.coeffs()]
        if len(coefficients) < 2:
            return True
        inverse = pow(coefficients[0], -1, self.prime)
        for c in coefficients[1:]:
            value = rational(c * inverse % self.prime, self.prime)
            if value is None or max(abs(value.numerator), value.denominator) > self.HEIGHT:
                return False
        return True


def _terms(polynomial: Polynomial) -> Terms:
    return {m: int(c) for m, c in polynomial.to_dict().items()}


def _picked(terms: Terms, free: Sequence[int]) -> Terms:
    return {tuple(monomial[i] for i in free): c for monomial, c in terms.items()}
