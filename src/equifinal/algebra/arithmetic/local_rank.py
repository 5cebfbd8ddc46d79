r"""Local identifiability: rank and kernel of the Jacobian of the output coefficients at a random point modulo
a prime.

A function f of theta is locally identifiable if and only if its gradient vanishes on the kernel at generic
theta, and the kernel's dimension is that of the fibres. The rank modulo a prime at a point never exceeds the
generic rank, so "identifiable" is proved by one computation, while "not identifiable" holds with high
probability (Schwartz 1980, Zippel 1979; Sedoglavic, J. Symb. Comput. 33, 2002). The order of the series is
doubled until the rank does not change, every term of the model has had time to show, and moving along the kernel
changes no output to four times that order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.lateness import is_silent, latest_arrival
from equifinal.algebra.arithmetic.residues import BadPrime, random_prime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.errors import IdentifiabilityError
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
    order
        How many coefficients were looked at.
    reached
        How many of them were enough for the rank.
    least
        How many a term of the model may need to show.
    kernel
        Basis of the tangent space of the fibre, r rows in reduced echelon form over the coordinates `names`.
    """

    names: tuple[str, ...]
    prime: int
    point: dict[str, int]
    inputs: list[dict[str, np.ndarray]]
    order: int
    reached: int
    least: int
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


def least_order(runs: Sequence[OutputSeries]) -> int:
    """How many coefficients to look at before a rank that no longer grows is believed.

    A parameter may enter late: after n - 1 derivatives at the end of a chain of n states, or where a state that starts
    at zero stands in a power. For models linear in the states, 2n coefficients hold all there is (Cayley-Hamilton, for
    states and tangents together); beyond that it is a rule, not a theorem.
    """
    return max(2 * (len(run.model.states) + _degree(run.model) + latest_arrival(run) + 1) for run in runs)


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
    rank, reached = -1, 0
    while True:
        _extend(runs, inputs, order, prime, rng, budget)
        rows = np.concatenate([run.output_jacobian()[0] for run in runs])
        budget.spend(200 + matrix_steps(*rows.shape))
        matrix = flint.nmod_mat(len(rows), len(names), [int(v) for v in rows.ravel()], prime)
        reduced, new_rank = matrix.rref()
        if new_rank > rank:
            rank, reached = new_rank, order
        least = max(least, least_order(runs))
        kernel = _kernel(reduced, rank, len(names), prime)
        found = LocalAnalysis(tuple(names), prime, point, inputs, order, reached, least, rank, kernel)
        if not kernel:
            return found
        end = max(MAX_ORDER, 2 * least, 4 * len(names))
        silent = all(map(is_silent, runs))
        if order >= (end if silent else least) and reached < order:
            if silent:
                raise IdentifiabilityError(
                    f"all outputs are zero in the first {order} coefficients of their power series at time 0, so "
                    "nothing can be said; start from other initial values"
                )
            if stays_along_kernel(models, found, 4 * order, rng, budget):
                return found
        elif order >= end:
            raise TooLarge
        order *= 2


def enough_experiments(models: Sequence[Model], local: LocalAnalysis, budget: Budget) -> int:
    """How many experiments, in their order, have the same rank as all of them: fibres of the same dimension."""
    array = np.array([[local.point[name] for name in local.names]], dtype=np.int64).reshape(1, len(local.names))
    rows = np.zeros((0, len(local.names)), dtype=np.int64)
    for count, (model, signals) in enumerate(zip(models[:-1], local.inputs, strict=False), 1):
        run = OutputSeries(model, local.names, array, signals, local.prime)
        run.extend(local.order, budget)
        rows = np.concatenate([rows, run.output_jacobian()[0]])
        budget.spend(200 + matrix_steps(*rows.shape))
        if flint.nmod_mat(*rows.shape, [int(v) for v in rows.ravel()], local.prime).rank() == local.rank:
            return count
    return len(models)


def _extend(
    runs: Sequence[OutputSeries], inputs: Any, order: int, prime: int, rng: random.Random, budget: Budget
) -> None:
    for run, signals in zip(runs, inputs, strict=True):
        lengthen(signals, order, prime, rng)
        run.extend(order, budget)


def stays_along_kernel(
    models: Sequence[Model], local: LocalAnalysis, order: int, rng: random.Random, budget: Budget
) -> bool:
    """Whether the outputs do not change, to that order, along a random direction in the kernel."""
    p = local.prime
    weights = [rng.randrange(1, p) for _ in local.kernel]
    direction = [
        sum(w * v for w, v in zip(weights, column, strict=True)) % p for column in zip(*local.kernel, strict=True)
    ]
    point = np.array([[local.point[name] for name in local.names]], dtype=np.int64)
    along = np.array(direction, dtype=np.int64)[:, None]
    for model, signals in zip(models, local.inputs, strict=True):
        lengthen(signals, order, p, rng)
        run = OutputSeries(model, local.names, point, signals, p, tangents=along)
        run.extend(order, budget)
        if run.output_jacobian().any():
            return False
    return True


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


def moving(local: LocalAnalysis) -> set[str]:
    """The coordinates that change along the fibre: those that are not identifiable."""
    return {name for i, name in enumerate(local.names) if any(row[i] for row in local.kernel)}


Point = Mapping[str, int]
