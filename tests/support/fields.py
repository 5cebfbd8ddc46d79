"""Fields of rational functions, compared."""

from __future__ import annotations

from collections.abc import Sequence

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.generators.expressing import express
from equifinal.language.expression import Expression


def same_field(
    left: Sequence[Expression], right: Sequence[Expression], names: Sequence[str], budget: Budget
) -> tuple[list[Expression], list[Expression]]:
    """Functions of each side that the other side does not generate; two empty lists for equal fields."""

    def outside(functions: Sequence[Expression], generators: Sequence[Expression]) -> list[Expression]:
        return [f for f in functions if not express(f, generators, names, {}, budget, with_formula=False).identifiable]

    return outside(left, right), outside(right, left)
