r"""Groebner bases modulo a prime by linear algebra (the F4 idea of Faugere, J. Pure Appl. Algebra 139, 1999).

S-polynomials of one degree are reduced together: they, and the multiples of basis elements that reduce them,
become the rows of a matrix over GF(p), whose reduced echelon form flint computes. Fibre ideals are
over-determined and have few zeros, so that two preparations settle most of them before any S-polynomial is
formed: one echelon form of the generators themselves, and the elimination of every variable in which some
generator is linear and constant-free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import add, le, sub

import flint

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, matrix_steps

Monomial = tuple[int, ...]
Terms = dict[Monomial, int]

MAX_ENTRIES = 12_000_000  # of one matrix


@lru_cache(maxsize=1 << 18)
def degrevlex(monomial: Monomial) -> tuple[int, Monomial]:
    return (sum(monomial), tuple(-e for e in reversed(monomial)))


def leading(terms: Terms) -> Monomial:
    """The leading monomial in degrevlex order."""
    return max(terms, key=degrevlex)


def without_monomial(terms: Terms) -> Terms:
    """Divide a polynomial by the largest monomial that divides all terms; return the same object if that is 1."""
    least: Monomial = tuple(map(min, *terms)) if len(terms) > 1 else next(iter(terms))
    if not any(least):
        return terms
    return {tuple(map(sub, m, least)): c for m, c in terms.items()}


def divides(a: Monomial, b: Monomial) -> bool:
    return all(map(le, a, b))


def echelon(rows: Sequence[Terms], prime: int, key: Callable[[Monomial], tuple], budget: Budget) -> list[Terms]:
    """The reduced echelon form of polynomials as rows over their monomials, largest first; zero rows
    dropped.
    """
    columns = sorted({monomial for row in rows for monomial in row}, key=key, reverse=True)
    if len(rows) * len(columns) > MAX_ENTRIES:
        raise TooLarge
    budget.spend(20 + matrix_steps(len(rows), len(columns)) + 5 * len(columns) + sum(map(len, rows)))
    position = {monomial: j for j, monomial in enumerate(columns)}
    matrix = flint.nmod_mat(len(rows), len(columns), prime)
    for i, row in enumerate(rows):
        for monomial, coefficient in row.items():
            matrix[i, position[monomial]] = coefficient
    reduced, rank = matrix.rref()
    width = len(columns)
    entries = reduced.entries()
    found = []
    for i in range(rank):
        values = map(int, entries[i * width : (i + 1) * width])
        found.append({columns[j]: value for j, value in enumerate(values) if value})
    return found


class Basis:
    """A Groebner basis under construction: monic polynomials with their leading monomials, and critical
    pairs.
    """

    def __init__(self, prime: int, key: Callable[[Monomial], tuple[int, Monomial]]):
        self.prime = prime
        self.key = key
        self.polynomials: list[Terms] = []
        self.leads: list[Monomial] = []
        self.alive: list[bool] = []
        self.pairs: list[tuple[Monomial, int, int]] = []

    def insert(self, polynomial: Terms) -> None:
        """Add an element, with the criteria of Gebauer and Moeller."""
        lead = max(polynomial, key=self.key)
        inverse = pow(polynomial[lead], -1, self.prime)
        monic = {m: c * inverse % self.prime for m, c in polynomial.items()}
        n = len(self.leads)
        self.pairs = [
            (joint, i, j)
            for joint, i, j in self.pairs
            if not divides(lead, joint) or joint in (_lcm(self.leads[i], lead), _lcm(self.leads[j], lead))
        ]
        candidates = sorted(
            ((_lcm(self.leads[i], lead), i) for i in range(n) if self.alive[i]), key=lambda c: self.key(c[0])
        )
        chosen: list[tuple[Monomial, int]] = []
        for joint, i in candidates:
            if any(divides(other, joint) for other, _ in chosen):
                continue
            chosen.append((joint, i))
        for joint, i in chosen:
            coprime = not any(map(min, self.leads[i], lead))
            if not coprime and not any(
                not any(map(min, self.leads[k], lead)) and _lcm(self.leads[k], lead) == joint
                for k in range(n)
                if self.alive[k]
            ):
                self.pairs.append((joint, i, n))
        for i in range(n):
            if self.alive[i] and divides(lead, self.leads[i]):
                self.alive[i] = False
        self.polynomials.append(monic)
        self.leads.append(lead)
        self.alive.append(True)

    def reducer(self, monomial: Monomial) -> int | None:
        for i in range(len(self.leads) - 1, -1, -1):
            if self.alive[i] and divides(self.leads[i], monomial):
                return i
        return None

    def shifted(self, i: int, monomial: Monomial) -> Terms:
        """The multiple of element `i` whose leading monomial is `monomial`."""
        factor = tuple(map(sub, monomial, self.leads[i]))
        return {tuple(map(add, m, factor)): c for m, c in self.polynomials[i].items()}

    def add_reducers(self, rows: list[Terms], leads: set[Monomial], budget: Budget) -> set[Monomial]:
        """Add multiples of elements that reduce the monomials of rows, all but `leads`; say which these are."""
        seen, reduced = set(leads), set()
        waiting = [m for row in rows for m in row]
        while waiting:
            monomial = waiting.pop()
            if monomial in seen:
                continue
            seen.add(monomial)
            budget.spend(2 + len(self.leads) / 2)
            i = self.reducer(monomial)
            if i is not None:
                budget.spend(4 * len(self.polynomials[i]))
                row = self.shifted(i, monomial)
                reduced.add(monomial)
                rows.append(row)
                waiting.extend(m for m in row if m not in seen)
                if len(rows) * len(seen) > MAX_ENTRIES:
                    raise TooLarge
        return reduced

    def reduce_together(self, rows: list[Terms], leads: set[Monomial], budget: Budget) -> list[Terms]:
        """Reduce rows by the basis in one matrix; the new leading monomials' rows come back."""
        leads |= self.add_reducers(rows, leads, budget)
        reduced = echelon(rows, self.prime, self.key, budget)
        return [row for row in reduced if max(row, key=self.key) not in leads]


def groebner(
    generators: Iterable[Terms],
    prime: int,
    budget: Budget,
    key: Callable[[Monomial], tuple] = degrevlex,
    *,
    simplify: Callable[[Terms], Terms] | None = None,
) -> list[Terms]:
    """The reduced Groebner basis of the ideal generated, as monic polynomials.

    `simplify` may divide a new element by factors that vanish at none of the zeros looked for (returning the
    same object if there is none): the ideal then grows, but keeps those zeros.

    Raises
    ------
    TooLarge
        When the budget does not allow it, or a matrix would be too large.
    """
    basis = Basis(prime, key)
    waiting: dict[int, list[Terms]] = {}  # generators by degree: low ones often settle the high ones
    for generator in generators:
        if generator:
            waiting.setdefault(max(map(sum, generator)), []).append(dict(generator))
    while waiting or basis.pairs:
        budget.spend(50 + 5 * len(basis.pairs))
        least = min([*waiting, *(sum(joint) for joint, _, _ in basis.pairs)])
        rows = waiting.pop(least, [])
        leads: set[Monomial] = set()
        if not rows:
            for joint, i, j in (pair for pair in basis.pairs if sum(pair[0]) == least):
                rows += [basis.shifted(i, joint), basis.shifted(j, joint)]
                leads.add(joint)
            basis.pairs = [pair for pair in basis.pairs if sum(pair[0]) != least]
        for new in sorted(basis.reduce_together(rows, leads, budget), key=lambda r: key(max(r, key=key))):
            shorter = simplify(new) if simplify else new
            if shorter is not new:
                waiting.setdefault(max(map(sum, shorter)), []).append(shorter)
            else:
                budget.spend(20 + len(new) + 3 * len(basis.pairs) + 10 * len(basis.leads))
                basis.insert(new)
        for lead in basis.leads:
            if not any(lead):
                return [{lead: 1}]
    return _interreduced(basis, budget)


def _interreduced(basis: Basis, budget: Budget) -> list[Terms]:
    alive = [i for i in range(len(basis.leads)) if basis.alive[i]]
    # of elements that were found together, one's lead may divide another's
    kept = [i for i in alive if not any(i != j and divides(basis.leads[j], basis.leads[i]) for j in alive)]
    rows = [basis.polynomials[i] for i in kept]
    leads = {basis.leads[i] for i in kept}
    basis.add_reducers(rows, leads, budget)
    reduced = echelon(rows, basis.prime, basis.key, budget)
    return [row for row in reduced if max(row, key=basis.key) in leads]


def _lcm(a: Monomial, b: Monomial) -> Monomial:
    return tuple(map(max, a, b))
