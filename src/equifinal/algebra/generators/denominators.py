"""What long functions are divided by: a hint at what short ones are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import flint

from equifinal.language.expression import Expression, Power, evaluate, names, walk

Exponents = tuple[int, ...]
Terms = dict[Exponents, int]

MOST = 12  # denominators
LONGEST = 8  # terms of a denominator


def denominators(functions: Iterable[Expression], variables: Sequence[str], allowed: set[str]) -> list[Terms]:
    """Short irreducible factors of denominators, and products of two of them, simplest first."""
    context = flint.fmpq_mpoly_ctx.get([f"v{i}" for i in range(len(variables))], "degrevlex")
    values = dict(zip(variables, context.gens(), strict=True))
    factors = {}
    for function in functions:
        for node in walk(function):
            if isinstance(node, Power) and node.exponent < 0 and set(names(node)) <= allowed:
                if any(isinstance(part, Power) and part.exponent < 0 for part in walk(node.base)):
                    continue
                bottom = evaluate(node.base, values, lambda v: context.constant(flint.fmpq(v.numerator, v.denominator)))
                for factor, _ in bottom.factor()[1]:
                    if len(factor) <= LONGEST:
                        factors[str(factor)] = factor
    simple = sorted(factors.values(), key=_size)
    products = [a * b for a, b in combinations(simple, 2)]
    chosen = [f for f in [*simple, *sorted(products, key=_size)] if len(f) <= LONGEST]
    return [_terms(f) for f in chosen[:MOST]]


def _size(polynomial: Any) -> tuple[int, int, str]:
    return int(polynomial.total_degree()), len(polynomial), str(polynomial)


def _terms(polynomial: Any) -> Terms:
    scaled = {tuple(map(int, m)): c for m, c in polynomial.to_dict().items()}
    common = 1
    for c in scaled.values():
        common = common * int(c.q) // flint.fmpz(common).gcd(c.q)
    return {m: int(c * int(common)) for m, c in scaled.items()}
