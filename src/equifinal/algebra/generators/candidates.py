r"""Simple generators of the field of identifiable functions: candidates from simple to long.

Coordinates that are identifiable themselves, Laurent monomials, polynomials of low degree, raw generators.
Each candidate is tested for membership at every fibre at hand; `Selection` decides which are kept and when
they suffice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import gcd, lcm

import flint

from equifinal.algebra.arithmetic.budget import SECOND, Budget, OutOfTime, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.functions import (
    complexity,
    monomial_expression,
    polynomial_expression,
    quotient_expression,
    sum_expression,
)
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, moving
from equifinal.algebra.arithmetic.residues import BadPrime, rational
from equifinal.algebra.elimination.fibre_points import FibreSlice, slice_fibre
from equifinal.algebra.elimination.quotient import NotFinite, is_single_valued
from equifinal.algebra.generators.ansatz import invariants, monomials_of, monomials_up_to
from equifinal.algebra.generators.denominators import denominators
from equifinal.algebra.generators.membership import Constants, is_member, values_at_points
from equifinal.algebra.generators.monomials import (
    rational_nullspace,
    short_lattice_basis,
    short_solutions,
    weighted_rows,
)
from equifinal.algebra.generators.null_spaces import KernelField, kernel_at, rank_without
from equifinal.algebra.generators.raw_generators import coefficient_ratios, lie_derivatives
from equifinal.algebra.generators.selection import Generators, Selection
from equifinal.language.expression import Expression, Name, Number, names, walk
from equifinal.language.model import Model


class Search:
    """Looks for simple generators of the field of a fibre.

    Parameters
    ----------
    fibres
        The fibre to work with, and others (at other primes) at which every generator must be a member as
        well.
    constants
        Named constants with the same value in all models; generators may contain them by name.
    """

    fibre: FibreSlice
    witnesses: list[FibreSlice]
    local: LocalAnalysis

    def __init__(self, models: Sequence[Model], fibres: Sequence[FibreSlice], constants: Constants, rng: random.Random):
        self.models: list[Model] = list(models)
        self.rng = rng
        self.constants = constants
        self.fibre, *self.witnesses = fibres
        self.local = fibre_local = self.fibre.local
        self.kernels: KernelField = KernelField(models, fibre_local, rng, list(constants))
        self.names: tuple[str, ...] = self.kernels.names
        fibre = self.fibre
        names_in_motion = {n for m in models for e in (*m.rhs, *m.observed) for n in names(e)}
        # initial values and the like
        self.starting: set[str] = {n for n in self.local.names if n not in names_in_motion}
        travelling = moving(self.local)
        self.moving: list[str] = [n for n in self.local.names if n in travelling]
        self.single: list[str] = [
            n for n, c in self._coordinates() if n not in travelling and is_single_valued(c, fibre.points.modulus)
        ]
        self.swapped: list[str] = [n for n in self.local.names if n not in travelling and n not in self.single]
        self.other_fibres: list[FibreSlice] = []
        self.more_fibres: bool = True  # whether it is worth asking for more of them
        self.raw: list[Expression] | None = None

    def _coordinates(self) -> list[tuple[str, flint.nmod_poly]]:
        fixed = [(n, flint.nmod_poly([v], self.local.prime)) for n, v in self.fibre.fixed.items()]
        return [*zip(self.fibre.free, self.fibre.points.coordinates, strict=True), *fixed]

    def run(self, budget: Budget) -> Generators:
        """Functions without initial values first, as many as there can be, then the others."""
        selection = Selection(self.fibre, self.rng, self.constants)
        selection.offer([Name(n) for n in self.single])
        complete = selection.rank == self.local.rank and self.fibre.degree == 1 and not self.moving
        seen: set[Expression] = set()
        try:
            if not complete:
                attainable = rank_without(self.models, self.local, self.starting, self.rng, budget)
                for batch in self._batches_of_rates(budget):
                    self._offer(batch, seen, selection, budget)
                    complete = selection.separate(budget)
                    if complete or self._rank_of_rates(selection) >= attainable:
                        break
            if not complete:
                for batch in self._batches(budget):
                    self._offer(batch, seen, selection, budget)
                    complete = selection.separate(budget)
                    if complete:
                        break
        except (TooLarge, OutOfTime):
            pass
        count = selection.points.count if selection.points is not None else int(complete)
        return Generators(sorted(selection.kept, key=self._order), selection.rank, count, complete)

    def at_least_locally(self, budget: Budget) -> Generators:
        """The cheapest functions alone, for fibres of which nothing but the point itself is known."""
        selection = Selection(self.fibre, self.rng, self.constants)
        selection.offer([Name(n) for n in self.single])
        with suppress(TooLarge, OutOfTime):
            for batch in (
                lambda: self._monomials(self.moving, [], budget),
                lambda: self._polynomials(self.moving, 1, list(self.constants), budget),
                lambda: self._polynomials(self.moving, 2, [], budget),
            ):
                if selection.rank == self.local.rank:
                    break
                self._offer(batch(), set(), selection, budget)
        return Generators(sorted(selection.kept, key=self._order), selection.rank)

    def _offer(self, batch: Sequence[Expression], seen: set[Expression], selection: Selection, budget: Budget) -> None:
        fresh = [c for c in dict.fromkeys(batch) if c not in seen]
        seen.update(fresh)
        budget.spend(sum(map(self._membership_steps, fresh)))
        selection.offer(sorted((c for c in fresh if self._is_member(c)), key=self._order))

    def _rank_of_rates(self, selection: Selection) -> int:
        rows = [
            row for f, row in zip(selection.kept, selection.rows, strict=False) if not set(names(f)) & self.starting
        ]
        if not rows:
            return 0
        return flint.nmod_mat(len(rows), len(rows[0]), [v for row in rows for v in row], self.local.prime).rank()

    def _membership_steps(self, expression: Expression) -> float:
        return (1 + len(self.witnesses)) * 30 * sum(1 for _ in walk(expression))

    def _is_member(self, expression: Expression) -> bool:
        return all(is_member(expression, fibre, self.constants) for fibre in (self.fibre, *self.witnesses))

    def _order(self, expression: Expression) -> tuple:
        used = set(names(expression))
        positions = sorted(self.names.index(n) for n in used)
        return (len(used & self.starting) > 0, *complexity(expression), positions)

    # --- candidates ---

    def _batches(self, budget: Budget) -> Iterator[list[Expression]]:
        everything = [*self.moving, *self.swapped]
        known = list(self.constants)
        yield self._monomials(self.moving, self.swapped, budget)
        yield self._two_terms(self.moving, self.swapped, self.single, budget)
        yield self._polynomials(everything, 1, known, budget)
        yield self._polynomials(everything, 2, [], budget)
        yield self._polynomials(everything, 2, [*known, *self.single], budget)
        yield self._quotients(everything, budget)
        yield self._raw(budget)
        yield self._polynomials(everything, 3, [], budget)

    def _batches_of_rates(self, budget: Budget) -> Iterator[list[Expression]]:
        """Candidates without initial values."""
        moving, swapped = ([n for n in group if n not in self.starting] for group in (self.moving, self.swapped))
        single = [n for n in self.single if n not in self.starting]
        known = list(self.constants)
        rates = [*moving, *swapped]
        yield self._monomials(moving, swapped, budget)
        yield self._two_terms(moving, swapped, single, budget)
        yield self._polynomials(rates, 1, known, budget)
        yield self._polynomials(rates, 2, [], budget)
        yield self._polynomials(rates, 2, [*known, *single], budget)
        yield self._polynomials(rates, 3, [], budget)
        yield self._quotients(rates, budget)
        yield [c for c in self._raw(budget) if not set(names(c)) & self.starting]
        yield self._polynomials(rates, 4, [], budget)

    def _monomials(self, moving: Sequence[str], swapped: Sequence[str], budget: Budget) -> list[Expression]:
        found: list[dict[str, int]] = []
        rates = [n for n in moving if n not in self.starting]
        starts = [n for n in moving if n in self.starting]
        if moving:
            self.kernels.at_least(len(moving) + 4, budget)
            for group in [rates, *([*rates, s] for s in starts), moving]:
                found += self._monomial_invariants(group)
        unique = list({tuple(sorted(f.items())): f for f in found}.values())
        if swapped and len(swapped) <= 8:
            unique += self._with_swapped(unique, swapped, budget)
        return [monomial_expression(f) for f in unique]

    def _monomial_invariants(self, group: Sequence[str]) -> list[dict[str, int]]:
        columns = [self.local.names.index(n) for n in group]
        rows = weighted_rows(self.kernels.kernels, self.kernels.points, columns, self.local.prime)
        vectors = rational_nullspace(rows, len(columns), self.local.prime)
        return [{n: e for n, e in zip(group, vector, strict=True) if e} for vector in short_lattice_basis(vectors)]

    def _with_swapped(
        self, invariant: Sequence[dict[str, int]], swapped: Sequence[str], budget: Budget
    ) -> list[dict[str, int]]:
        """Monomials that become identifiable only together with coordinates that have several values."""
        found = []
        powers = (-2, -1, 0, 1, 2) if len(swapped) <= 3 else (-1, 0, 1) if len(swapped) <= 5 else (0, 1)
        for base in [{}, *invariant]:
            if base and self._is_member(monomial_expression(base)):
                continue
            for exponents in product(powers, repeat=len(swapped)):
                if not any(exponents) or sum(map(abs, exponents)) > 3:
                    continue
                candidate = {**base, **{n: e for n, e in zip(swapped, exponents, strict=True) if e}}
                budget.spend(self._membership_steps(monomial_expression(candidate)))
                if self._is_member(monomial_expression(candidate)):
                    found.append(candidate)
        return found

    def _two_terms(
        self, moving: Sequence[str], swapped: Sequence[str], single: Sequence[str], budget: Budget
    ) -> list[Expression]:
        """Sums m1 + c*m2 of two monomials that have one value on all branches, though neither monomial has.

        In GF(p)[z]/mu the parts of m1 and m2 without their constants must be proportional, and the factor is
        a simple rational. With two branches all are proportional, and some factors look simple: only a second fibre
        tells.
        """
        if not swapped or self.fibre.degree == 1:
            return []
        if not self.witnesses:
            self._more_fibres(1, budget)
            if not self.other_fibres:
                return []
        units = [{n: 1} for n in swapped]
        for unit in self._monomial_invariants(moving) if moving else []:
            units += [unit, {n: -e for n, e in unit.items()}]
        products = [*units, *(_multiplied(a, b) for a, b in combinations_with_replacement(units, 2))]
        products += [_multiplied(a, {n: 1}) for a in units[: len(swapped)] for n in single]
        unique = list({tuple(sorted(m.items())): m for m in products if m}.values())[:400]
        p = self.local.prime
        groups: dict[tuple[int, ...], list[tuple[dict[str, int], int]]] = {}
        for exponents in unique:
            budget.spend(200)
            try:
                element = values_at_points(
                    monomial_expression(exponents), self.fibre.points, self.fibre.free, self.fibre.fixed
                )
            except BadPrime:
                continue
            vector = [int(element[k]) for k in range(1, self.fibre.points.count)]
            lead = next((v for v in vector if v), 0)
            if lead:
                inverse = pow(lead, -1, p)
                groups.setdefault(tuple(v * inverse % p for v in vector), []).append((exponents, lead))
        found = []
        for group in groups.values():
            for i, (first, a) in enumerate(group):
                for second, b in group[:i]:
                    factor = rational(-a * pow(b, -1, p) % p, p)
                    if factor is not None and max(abs(factor.numerator), factor.denominator) <= 1000:
                        found.append(sum_expression(first, second, factor))
        found = found[:500]
        if self.witnesses:
            return found
        budget.spend(sum(map(self._membership_steps, found)))
        return [f for f in found if is_member(f, self.other_fibres[0], self.constants)]

    def _polynomials(
        self, variables: Sequence[str], degree: int, multipliers: Sequence[str], budget: Budget
    ) -> list[Expression]:
        n = len(self.names)
        indices = [self.names.index(v) for v in variables]
        monomials = monomials_up_to(indices, degree, n)
        for multiplier in multipliers:
            i = self.names.index(multiplier)
            monomials += [tuple(e + (j == i) for j, e in enumerate(m)) for m in monomials_up_to(indices, degree, n)]
        monomials.sort(key=lambda m: (sum(m), max(m), tuple(-e for e in m)))
        r = len(self.local.kernel)
        if not monomials or len(monomials) > 350:
            return []
        if r:
            self.kernels.at_least(len(monomials) // r + 4, budget)
        budget.spend(self._invariants_steps(len(monomials)))
        found = invariants(monomials, self.kernels)
        if not found:
            return []
        if self.fibre.degree > 1:
            found = self._constant(found, budget)
        short = sorted((terms for terms in found if len(terms) <= 12), key=len)
        return [polynomial_expression(self.names, terms) for terms in _shortened(short)]

    def _invariants_steps(self, monomials: int) -> float:
        rows = len(self.kernels.points) * len(self.local.kernel)
        return 2 * (len(self.kernels.points) + rows) * monomials + matrix_steps(rows, monomials)

    def _quotients(self, variables: Sequence[str], budget: Budget) -> list[Expression]:
        """Short numerators over the denominators that long generators have."""
        r = len(self.local.kernel)
        indices = [self.names.index(v) for v in variables]
        found: list[Expression] = []
        raw = self._raw(budget)
        limit = budget.part(min(8 * SECOND, budget.left / 4))
        with suppress(TooLarge):
            for under in denominators(raw, self.names, set(variables)):
                degree = min(max(map(sum, under)) + 1, 3)
                monomials = [m for d in range(degree + 1) for m in monomials_of(indices, d, len(self.names))]
                if r == 0 or len(monomials) > 250:
                    continue
                self.kernels.at_least(len(monomials) // r + 4, limit)
                limit.spend(self._invariants_steps(len(monomials)))
                over = [t for t in invariants(monomials, self.kernels, under) if not _proportional(t, under)]
                if over and self.fibre.degree > 1:
                    over = self._constant(over, limit, under)
                bottom = polynomial_expression(self.names, {m: Fraction(c) for m, c in under.items()})
                short = sorted((terms for terms in over if len(terms) <= 12), key=len)
                found += [quotient_expression(polynomial_expression(self.names, t), bottom) for t in _shortened(short)]
        return found

    def _constant(self, polynomials: list, budget: Budget, under: Mapping | None = None) -> list:
        """The combinations of invariant polynomials that have one value only on whole fibres, branches
        included.

        One fibre gives D - 1 linear conditions modulo p. Small integer solutions of a few such conditions are
        found by LLL; each is checked for membership by the caller and at one more fibre here. With `under`,
        the same for the polynomials divided by it.
        """
        bottom = polynomial_expression(self.names, under) if under else Number(Fraction(1))

        def expression(terms: Mapping) -> Expression:
            return quotient_expression(polynomial_expression(self.names, terms), bottom)

        bits = self.local.prime.bit_length() - 1
        needed = (8 * len(polynomials)) // (bits * (self.fibre.degree - 1)) + 1
        missing = needed + 1 - len(self.other_fibres)
        if missing * self.fibre.steps > min(10 * SECOND, budget.left / 4):
            return polynomials  # too much; some may be constant by themselves
        self._more_fibres(needed + 1, budget)
        if len(self.other_fibres) < needed:
            return polynomials
        rows = []
        expressions = [expression(terms) for terms in polynomials]
        for fibre in [self.fibre, *self.other_fibres[:needed]]:
            columns = []
            budget.spend(60 * len(expressions))
            for candidate in expressions:
                element = values_at_points(candidate, fibre.points, fibre.free, fibre.fixed, self.constants)
                columns.append([int(element[k]) for k in range(1, fibre.points.count)])
            rows += [list(row) for row in zip(*columns, strict=True)]
        budget.spend(len(polynomials) ** 3)
        found = []
        for vector in short_solutions(rows, len(polynomials), self.local.prime):
            total: dict = {}
            for c, terms in zip(vector, polynomials, strict=True):
                if c:
                    for m, value in terms.items():
                        total[m] = total.get(m, 0) + c * value
            terms = {m: c for m, c in total.items() if c}
            if terms and is_member(expression(terms), self.other_fibres[-1], self.constants):
                found.append(terms)
        return found

    def _more_fibres(self, count: int, budget: Budget) -> None:
        """Slices of fibres through other points modulo the same prime, the same coordinates fixed."""
        limit = budget.part(min(6 * SECOND, budget.left / 4))
        while self.more_fibres and len(self.other_fibres) < count:
            self.more_fibres = limit.left > 0
            point = {n: self.rng.randrange(1, self.local.prime) for n in self.local.names} | self.fibre.fixed
            local = replace(self.local, point=point)
            try:
                kernel = kernel_at(self.models, local, point, self.rng, limit)
                if kernel is None:
                    continue
                fibre = slice_fibre(
                    self.models,
                    replace(local, kernel=kernel),
                    list(self.fibre.fixed),
                    self.rng,
                    limit,
                    self.fibre.eliminations,
                    self.fibre.degree,
                )
            except (TooLarge, NotFinite, BadPrime):
                self.more_fibres = False
                return
            if fibre.degree == self.fibre.degree:
                self.other_fibres.append(fibre)

    def _raw(self, budget: Budget) -> list[Expression]:
        if self.raw is not None:
            return self.raw
        self.raw = found = []
        for i, model in enumerate(self.models):
            limit = budget.part(min(10 * SECOND, budget.left / 2))
            with suppress(TooLarge, BadPrime):
                found += coefficient_ratios(model, i, self.local, self.rng, limit)
            found += lie_derivatives(model, self.local, limit)
        return found


def _proportional(left: Mapping, right: Mapping) -> bool:
    return left.keys() == right.keys() and len({left[m] / right[m] for m in left}) == 1


def _multiplied(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    total = {n: left.get(n, 0) + right.get(n, 0) for n in (*left, *right)}
    return {n: e for n, e in total.items() if e}


def _shortened(polynomials: list) -> list:
    """Subtract small multiples of shorter polynomials where that leaves fewer or smaller terms."""

    def size(terms: dict) -> tuple:
        return (len(terms), sum(abs(c.numerator) + c.denominator for c in terms.values()))

    found: list = []
    for terms in polynomials:
        best = {m: Fraction(c) for m, c in terms.items()}
        improved = True
        while improved:
            improved = False
            for other in found:
                for m in set(other) & set(best):
                    factor = best[m] / other[m]
                    trial = dict(best)
                    for k, c in other.items():
                        trial[k] = trial.get(k, Fraction(0)) - factor * c
                    trial = {k: c for k, c in trial.items() if c}
                    if trial and size(trial) < size(best):
                        best, improved = trial, True
                        break
        scale = lcm(*(c.denominator for c in best.values()))
        common = gcd(*(int(c * scale) for c in best.values()))
        found.append({m: c * scale / common for m, c in best.items()})
    return found
