"""Resultants as determinants of Bezout matrices, expanded along rows with every minor computed once.

For the low degrees and many variables met here this is faster by orders of magnitude than remainder
sequences, and it can be given up at any moment.
"""

from __future__ import annotations

from functools import cache

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, product_steps
from equifinal.algebra.arithmetic.polynomials import Polynomial, coefficients_in

MAX_DEGREE = 6


def resultant(f: Polynomial, g: Polynomial, variable: int, most_terms: int, budget: Budget) -> Polynomial:
    """A multiple of the resultant by a power of a leading coefficient (when the degrees differ).

    Raises
    ------
    TooLarge
        When the budget does not allow it, or when a minor has more than `most_terms` terms.
    """
    a, b = coefficients_in(f, variable), coefficients_in(g, variable)
    n = max(len(a), len(b)) - 1
    if n > MAX_DEGREE:
        raise TooLarge
    zero = f.context().constant(0)
    a, b = ([*c, *[zero] * (n + 1 - len(c))] for c in (a, b))
    for i in range(n + 1):
        budget.spend(sum(product_steps(a[i], b[j]) for j in range(n + 1)))
    matrix = [
        [
            _sum(
                [a[j + 1 + k] * b[i - k] - a[i - k] * b[j + 1 + k] for k in range(min(i, n - 1 - j) + 1)],
                zero,
            )
            for j in range(n)
        ]
        for i in range(n)
    ]

    @cache
    def minor(row: int, columns: tuple[int, ...]) -> Polynomial:
        """Determinant of the rows from `row` on and the given columns."""
        if not columns:
            return f.context().constant(1)
        total = zero
        for position, column in enumerate(columns):
            entry = matrix[row][column]
            if entry.is_zero():
                continue
            rest = minor(row + 1, columns[:position] + columns[position + 1 :])
            if len(entry) * len(rest) > 400 * most_terms:
                raise TooLarge
            budget.spend(product_steps(entry, rest))
            product = entry * rest
            total = total - product if position % 2 else total + product
            if len(total) > most_terms:
                raise TooLarge
        return total

    return minor(0, tuple(range(n)))


def _sum(terms: list[Polynomial], zero: Polynomial) -> Polynomial:
    total = zero
    for term in terms:
        total = total + term
    return total
