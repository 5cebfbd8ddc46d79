r"""From input-output equations and links to equations for the parameters that give the same output.

Let :math:`P = \sum_j c_j(\theta)\, m_j(y, y', \dots, u, u', \dots)` be an input-output equation and
:math:`y^*` the output at :math:`\theta^*`. A parameter with the same output satisfies :math:`\sum_j
c_j(\theta)\, m_j^*(t) = 0` at all times. The rows of the echelon form of the matrix of Taylor coefficients of
the :math:`m_j^*` therefore give equations for :math:`\theta` which hold on the whole fibre, *whatever the
rank of that matrix*. When only one relation is left among the :math:`m_j^*` (the Wronskian test) they say
that the ratios of the :math:`c_j` are identifiable; when more are left, as for degenerate initial values,
they say exactly as much as this one experiment does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, divisor_steps, matrix_steps, product_steps, terms_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ratio, Ring, grouped, ring, to_ratio
from equifinal.algebra.elimination.groebner import Terms, degrevlex
from equifinal.algebra.elimination.state_elimination import Elimination
from equifinal.language.model import Model

LONG = 2000  # terms of an equation from which on it pays to cancel common factors of its coefficients
PARTNERS = 8
SPARE = 4  # coefficients of series, or equations, beyond those that should be enough


class Signals:
    """Taylor series of inputs and outputs along one solution, and of all their derivatives."""

    def __init__(self, coefficients: Mapping[str, np.ndarray], prime: int):
        self.prime = prime
        self.series: dict[tuple[str, int], flint.nmod_poly] = {
            (s, 0): flint.nmod_poly([int(c) for c in values], prime) for s, values in coefficients.items()
        }
        self.length: int = min(len(values) for values in coefficients.values())

    def jet(self, signal: str, order: int) -> flint.nmod_poly:
        """The series of a derivative; its highest `order` coefficients are missing."""
        if (signal, order) not in self.series:
            self.series[signal, order] = self.jet(signal, order - 1).derivative()
        return self.series[signal, order]

    def at_zero(self, signal: str, order: int) -> int:
        return int(self.jet(signal, order)[0])


def monomial_series(
    elimination: Elimination, keys: Sequence[tuple[int, ...]], signals: Signals, orders: int
) -> list[flint.nmod_poly]:
    """Series of products of jets; a key lists exponents of all variables except the parameters."""
    jets = {variable: jet for jet, variable in elimination.jets.items()}
    parameters = set(elimination.parameters)
    outside = [i for i in range(len(elimination.names)) if i not in parameters]
    prime = signals.prime
    known: dict[tuple[tuple[int, int], ...], flint.nmod_poly] = {(): flint.nmod_poly([1], prime)}

    def product(exponents: tuple[tuple[int, int], ...]) -> flint.nmod_poly:
        if exponents not in known:
            (variable, exponent), rest = exponents[-1], exponents[:-1]
            if not rest and exponent > 1:  # by halves, so that large exponents are few steps
                half, more = (((variable, e),) for e in (exponent // 2, exponent - exponent // 2))
                known[exponents] = product(half).mul_low(product(more), orders)
            elif rest:
                known[exponents] = product(rest).mul_low(product(exponents[-1:]), orders)
            else:
                known[exponents] = known[()].mul_low(signals.jet(*jets[variable]), orders)
        return known[exponents]

    return [product(tuple((outside[i], e) for i, e in enumerate(key) if e)) for key in keys]


def taylor_matrix(
    elimination: Elimination, keys: Sequence[tuple[int, ...]], signals: Signals, orders: int, budget: Budget
) -> flint.nmod_mat:
    """Coefficients of the series of products of jets, a row for each product."""
    budget.spend(len(keys) * (5 + orders / 3))
    entries: list[int] = []
    for series in monomial_series(elimination, keys, signals, orders):
        found = series.coeffs()[:orders]
        entries += map(int, found)
        entries += [0] * (orders - len(found))
    return flint.nmod_mat(len(keys), orders, entries, signals.prime)


def orders_needed(elimination: Elimination, equation: Polynomial) -> int:
    """So many coefficients of the series hold all that an equation says, most often."""
    jets, parameters = set(), set()
    for monomial in equation.monoms():
        jets.add(tuple(monomial[i] for i in elimination.jets.values()))
        parameters.add(tuple(monomial[i] for i in elimination.parameters))
    return min(len(jets), 2 * len(parameters) + SPARE) + SPARE


def relation_rows(
    elimination: Elimination, equation: Polynomial, signals: Signals, orders: int, budget: Budget
) -> tuple[list[Terms], int, int]:
    """Equations for the parameters from one input-output equation, as dictionaries of terms in the
    parameters.

    Returns the rows, the number of monomials and the rank of their Taylor matrix.
    """
    budget.spend(terms_steps(equation))
    groups = grouped(equation, elimination.parameters)
    monomials = {monomial for group in groups.values() for monomial in group}
    if not any(map(any, monomials)):
        return [], len(groups), 0  # no parameter in it
    if len(monomials) + SPARE < min(len(groups), orders):
        few = sorted(monomials, key=degrevlex, reverse=True)
        rows = _combined(elimination, groups, few, signals, min(2 * len(few) + SPARE, orders), budget)
        return rows, len(groups), len(rows)
    keys = sorted(groups, key=lambda k: (-len(groups[k]), -max(map(sum, groups[k]), default=0), k))
    prime = signals.prime
    matrix = taylor_matrix(elimination, keys, signals, orders, budget).transpose()
    budget.spend(matrix_steps(orders, len(keys)))
    reduced, rank = matrix.rref()
    if rank == len(keys) - 1 and len(equation) > LONG and all(int(reduced[i, i]) for i in range(rank)):
        values = [*(-int(reduced[i, rank]) % prime for i in range(rank)), 1]
        return reduced_ratios([groups[key] for key in keys], values, prime, budget), len(keys), rank
    rows = []
    for i in range(rank):
        budget.spend(len(keys))
        factors = {key: factor for j, key in enumerate(keys) if (factor := int(reduced[i, j]))}
        budget.spend(sum(len(groups[key]) for key in factors))
        row: dict[tuple[int, ...], int] = {}
        for key, factor in factors.items():
            for monomial, c in groups[key].items():
                row[monomial] = (row.get(monomial, 0) + factor * c) % prime
        rows.append({m: c for m, c in row.items() if c})
    return [row for row in rows if row], len(keys), rank


def _combined(
    elimination: Elimination,
    groups: Mapping[tuple[int, ...], Mapping[tuple[int, ...], int]],
    monomials: Sequence[tuple[int, ...]],
    signals: Signals,
    orders: int,
    budget: Budget,
) -> list[Terms]:
    """The same equations where few monomials in the parameters meet many in the jets: independent combinations."""
    keys, position = list(groups), {m: j for j, m in enumerate(monomials)}
    budget.spend(matrix_steps(len(keys), len(monomials)) + orders * len(keys) * len(monomials) / 2000)
    coefficients = flint.nmod_mat(len(keys), len(monomials), signals.prime)
    for i, key in enumerate(keys):
        for monomial, c in groups[key].items():
            coefficients[i, position[monomial]] = c
    taylor = taylor_matrix(elimination, keys, signals, orders, budget)
    reduced, rank = (taylor.transpose() * coefficients).rref()
    rows = []
    for i in range(rank):
        values = ((monomial, int(reduced[i, j])) for j, monomial in enumerate(monomials))
        rows.append({monomial: value for monomial, value in values if value})
    return rows


def reduced_ratios(coefficients: Sequence[Terms], values: Sequence[int], prime: int, budget: Budget) -> list[Terms]:
    """c_i/c_j = v_i/v_j with common factors of c_i and c_j cancelled: for every i the partner that leaves
    least.

    The factors cancelled do not depend on the fibre, so they vanish at none of its points.
    """
    width = len(next(iter(coefficients[0])))
    context = ring([""] * width, prime)
    polynomials = [context.from_dict(c) for c in coefficients]
    order = sorted(range(len(polynomials)), key=lambda i: len(polynomials[i]))
    partners = order[:PARTNERS]
    found = []
    for i in order[1:]:
        best = None
        for j in partners:
            if i == j:
                continue
            budget.spend(divisor_steps(polynomials[i], polynomials[j]))
            common = polynomials[i].gcd(polynomials[j])
            pair = (polynomials[i] / common, polynomials[j] / common)
            if best is None or len(pair[0]) + len(pair[1]) < len(best[0]) + len(best[1]):
                best = (*pair, j)
        if best is not None:
            relation = best[0] * values[best[2]] - best[1] * values[i]
            found.append({m: int(c) for m, c in relation.to_dict().items()})
    return sorted((row for row in found if row), key=len)


class StartValues:
    """The links at time 0, where states are known expressions in the parameters and jets are numbers."""

    def __init__(
        self,
        model: Model,
        elimination: Elimination,
        signals: Signals,
        values: Mapping[str, Polynomial],
        into: Ring,
    ):
        self.into = into
        self.start: list[Ratio] = [to_ratio(e, values, model.constants, into) for e in model.start]
        self.elimination = elimination
        self.signals = signals
        jets = {variable: jet for jet, variable in elimination.jets.items()}
        gens = into.gens()
        self.images: list[Ratio] = []
        one = into.constant(1)
        for i in range(len(elimination.names)):
            if i in jets:
                self.images.append(Ratio(into.constant(signals.at_zero(*jets[i])), one, cancelled=True))
            elif i in elimination.parameters:
                self.images.append(Ratio(gens[elimination.parameters.index(i)], one, cancelled=True))
            else:
                self.images.append(self.start[i])

    def image(self, polynomial: Polynomial, budget: Budget) -> Polynomial:
        """Numerator of the polynomial with everything put in."""
        total = self.into.constant(0)
        degrees = [int(d) for d in polynomial.degrees()]
        denominators = {
            i: self.images[i].under for i, d in enumerate(degrees) if d and not self.images[i].under.is_constant()
        }
        for monomial, coefficient in polynomial.to_dict().items():
            budget.spend(10 + len(total) / 20)
            term = self.into.constant(int(coefficient))
            for i, e in enumerate(monomial):
                image = self.images[i]
                if e:
                    over = image.over if i in denominators else image.over / image.under
                    budget.spend(product_steps(term, over))
                    term = term * over**e
                if i in denominators:
                    budget.spend(product_steps(term, denominators[i]))
                    term = term * denominators[i] ** (degrees[i] - e)
            total = total + term
        return total

    def denominators(self) -> list[Polynomial]:
        return [ratio.under for ratio in self.start if not ratio.under.is_constant()]
