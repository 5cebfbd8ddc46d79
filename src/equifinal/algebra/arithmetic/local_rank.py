r"""Local identifiability: rank and kernel of the Jacobian of the output coefficients at a random point modulo
a prime.

A function f of theta is locally identifiable if and only if its gradient vanishes on the kernel at generic
theta, and the kernel's dimension is that of the fibres. The rank modulo a prime at a point never exceeds the
generic rank, so "identifiable" is proved by one computation, while "not identifiable" holds with high
probability (Schwartz 1980, Zippel 1979; Sedoglavic, J. Symb. Comput. 33, 2002). The order of the series is
doubled until the rank does not change.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, matrix_steps
from equifinal.algebra.arithmetic.residues import BadPrime, random_prime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.language.expression import Expression, Name, Power, Product, children
from equifinal.language.model import Model

MAX_ORDER = 400


@dataclass
class LocalAnalysis:
    """Rank and kernel at one random point.

    Attributes
    ----------
    point
        Residues by name of coordinate.
    inputs
        Taylor coefficients of each model's inputs, long enough for every later use.
    kernel
        Basis of the tangent space of the fibre, r rows in reduced echelon form over the coordinates `names`.
    """

    names: tuple[str, ...]
    prime: int
    point: dict[str, int]
    inputs: list[dict[str, np.ndarray]]
    order: int
    rank: int
    kernel: list[list[int]]


def random_point(names: Sequence[str], prime: int, rng: random.Random) -> dict[str, int]:
    return {name: rng.randrange(1, prime) for name in names}


def random_inputs(models: Sequence[Model], prime: int, rng: random.Random, orders: int) -> list[dict[str, np.ndarray]]:
    generators = [np.random.default_rng(rng.randrange(2**63)) for _ in models]
    return [
        {u: generator.integers(0, prime, orders, dtype=np.int64) for u in model.inputs}
        for model, generator in zip(models, generators, strict=True)
    ]


def least_order(models: Sequence[Model]) -> int:
    """How many coefficients to look at before a rank that no longer grows is believed.

    A parameter may enter late: after n - 1 derivatives at the end of a chain of n states, or where a state that starts
    at zero stands in a power. For models linear in the states, 2n coefficients hold all there is (Cayley-Hamilton, for
    states and tangents together); beyond that it is a rule, not a theorem.
    """
    return max(2 * len(model.states) + 2 * _degree(model) + 2 for model in models)


def _degree(model: Model) -> int:
    """The largest degree in the states of a right-hand side or output."""

    def degree(expression: Expression) -> int:
        match expression:
            case Name(name):
                return int(name in model.states)
            case Power(base, exponent):
                return degree(base) * abs(exponent)
            case Product(factors):
                return sum(degree(factor) for factor in factors)
        return max((degree(child) for child in children(expression)), default=0)

    return min(max(degree(e) for e in (*model.rhs, *model.observed)), 50)


def analyse_locally(
    models: Sequence[Model], names: Sequence[str], rng: random.Random, budget: Budget, least: int = 0
) -> LocalAnalysis:
    """Rank and kernel for all experiments together, from ``least`` coefficients or more; a bad prime is replaced."""
    least = max(least, least_order(models))
    for _ in range(6):
        prime = random_prime(rng)
        point = random_point(names, prime, rng)
        inputs = random_inputs(models, prime, rng, 64)
        try:
            return _at_point(models, names, prime, point, inputs, rng, budget, least)
        except BadPrime:
            continue
    raise BadPrime


def _at_point(
    models: Sequence[Model],
    names: Sequence[str],
    prime: int,
    point: Any,
    inputs: Any,
    rng: random.Random,
    budget: Budget,
    least: int,
) -> LocalAnalysis:
    array = np.array([[point[name] for name in names]], dtype=np.int64).reshape(1, len(names))
    outputs = sum(len(model.outputs) for model in models)
    order = max(8, len(names) // outputs + 4)
    runs = []
    for model, signals in zip(models, inputs, strict=True):
        runs.append(OutputSeries(model, names, array, signals, prime))
    rank, matrix = -1, None
    while True:
        for run, signals in zip(runs, inputs, strict=True):
            lengthen(signals, order, prime, rng)
            run.extend(order, budget)
        rows = np.concatenate([run.output_jacobian()[0] for run in runs])
        budget.spend(200 + matrix_steps(*rows.shape))
        matrix = flint.nmod_mat(len(rows), len(names), [int(v) for v in rows.ravel()], prime)
        reduced, new_rank = matrix.rref()
        stable = new_rank == rank and order >= least
        if stable or new_rank == len(names) or order >= max(MAX_ORDER, 2 * least):
            return LocalAnalysis(
                tuple(names),
                prime,
                point,
                inputs,
                order,
                new_rank,
                _kernel(reduced, new_rank, len(names), prime),
            )
        rank, order = new_rank, order * 2


def lengthen(signals: dict[str, np.ndarray], orders: int, prime: int, rng: random.Random) -> None:
    """Give every input at least that many random Taylor coefficients, keeping those it has."""
    for u, values in signals.items():
        if len(values) < orders:
            generator = np.random.default_rng(rng.randrange(2**63))
            signals[u] = np.concatenate([values, generator.integers(0, prime, orders - len(values), dtype=np.int64)])


def pivots_of(reduced: flint.nmod_mat, rank: int) -> list[int]:
    found, column = [], 0
    for i in range(rank):
        while int(reduced[i, column]) == 0:
            column += 1
        found.append(column)
        column += 1
    return found


def _kernel(reduced: flint.nmod_mat, rank: int, n: int, prime: int) -> list[list[int]]:
    pivots = pivots_of(reduced, rank)
    rows = []
    for free in (j for j in range(n) if j not in set(pivots)):
        row = [0] * n
        row[free] = 1
        for i, pivot in enumerate(pivots):
            row[pivot] = -int(reduced[i, free]) % prime
        rows.append(row)
    return rows


def slice_coordinates(local: LocalAnalysis, preference: Sequence[str]) -> list[str]:
    """r coordinates that may be fixed at any value on a fibre: a nonsingular minor of the kernel, by
    preference.
    """
    if not local.kernel:
        return []
    order = sorted(range(len(local.names)), key=lambda i: preference.index(local.names[i]))
    rows = [[row[i] for i in order] for row in local.kernel]
    matrix = flint.nmod_mat(len(rows), len(order), [v for row in rows for v in row], local.prime)
    reduced, rank = matrix.rref()
    return [local.names[order[j]] for j in pivots_of(reduced, rank)]


def kills_kernel(gradient: Sequence[int], local: LocalAnalysis) -> bool:
    return all(sum(g * v for g, v in zip(gradient, row, strict=True)) % local.prime == 0 for row in local.kernel)


def moving(local: LocalAnalysis) -> set[str]:
    """The coordinates that change along the fibre: those that are not identifiable."""
    return {name for i, name in enumerate(local.names) if any(row[i] for row in local.kernel)}


Point = Mapping[str, int]
