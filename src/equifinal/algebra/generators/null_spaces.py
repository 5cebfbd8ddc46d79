"""Kernels at many random points modulo one prime, for linear conditions on invariants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, _kernel, lengthen
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.language.model import Model

BATCH = 24


class KernelField:
    """The tangent spaces of the fibres at random points; more points are added when asked for.

    Parameters
    ----------
    constants
        Named constants to be drawn at random as well, as further coordinates of the points along which
        nothing moves: invariants are then found with the constants by name. (That they are invariants at the
        constants' actual values has to be checked.)
    """

    def __init__(
        self, models: Sequence[Model], local: LocalAnalysis, rng: random.Random, constants: Sequence[str] = ()
    ):
        self.models: list[Model] = [_opened(m, constants) for m in models]
        self.local = local
        self.rng = rng
        self.names: tuple[str, ...] = (*local.names, *constants)
        self.points: list[list[int]] = []
        self.kernels: list[list[list[int]]] = []
        self.failures: int = 0

    def at_least(self, count: int, budget: Budget) -> None:
        while len(self.points) < count:
            self._add(min(BATCH, max(count - len(self.points), 4)), budget)

    def _add(self, batch: int, budget: Budget) -> None:
        prime = self.local.prime
        points = np.array([[self.rng.randrange(1, prime) for _ in self.names] for _ in range(batch)], dtype=np.int64)
        try:
            kernels = _kernels(self.models, self.local, self.names, points, self.rng, budget)
        except BadPrime:
            kernels = [None]
        if all(kernel is None for kernel in kernels):
            self.failures += 1
            if self.failures > 3:
                raise TooLarge  # constants are special, or the model is undefined at most points
            return
        for point, kernel in zip(points, kernels, strict=True):
            if kernel is not None:
                self.points.append([int(v) for v in point])
                self.kernels.append(kernel)


def _opened(model: Model, constants: Sequence[str]) -> Model:
    """The model with some constants turned into parameters."""
    if not constants:
        return model
    kept = {name: value for name, value in model.constants.items() if name not in constants}
    return replace(model, constants=kept, parameters=(*model.parameters, *constants))


def _kernels(
    models: Sequence[Model],
    local: LocalAnalysis,
    names: Sequence[str],
    points: np.ndarray,
    rng: random.Random,
    budget: Budget,
) -> list[list[list[int]] | None]:
    """Kernels at a batch of points; None where the rank is less than generic."""
    n, order = len(local.names), local.reached
    blocks = []
    for model, signals in zip(models, local.inputs, strict=True):
        lengthen(signals, order, local.prime, rng)
        run = OutputSeries(model, names, points, signals, local.prime)
        run.extend(order, budget)
        blocks.append(run.output_jacobian()[:, :, :n])
    found: list[list[list[int]] | None] = []
    for jacobian in np.concatenate(blocks, axis=1):
        budget.spend(100 + matrix_steps(*jacobian.shape))
        matrix = flint.nmod_mat(len(jacobian), n, [int(v) for v in jacobian.ravel()], local.prime)
        reduced, rank = matrix.rref()
        found.append(_kernel(reduced, rank, n, local.prime) if rank == local.rank else None)
    return found


def kernel_at(
    models: Sequence[Model],
    local: LocalAnalysis,
    point: dict[str, int],
    rng: random.Random,
    budget: Budget,
) -> Any:
    """The kernel at one point, or None if the point is special."""
    array = np.array([[point[name] for name in local.names]], dtype=np.int64).reshape(1, len(local.names))
    return _kernels(models, local, local.names, array, rng, budget)[0]


def rank_without(
    models: Sequence[Model], local: LocalAnalysis, excluded: set[str], rng: random.Random, budget: Budget
) -> int:
    """Bound the number of independent identifiable functions that do not contain the excluded coordinates.

    The gradient of such a function has to vanish on the kernels for all values of the excluded coordinates at
    once.
    """
    columns = [i for i, n in enumerate(local.names) if n not in excluded]
    if not excluded or not columns:
        return local.rank if columns else 0
    points = np.array(
        [[rng.randrange(1, local.prime) if n in excluded else local.point[n] for n in local.names] for _ in range(6)],
        dtype=np.int64,
    )
    try:
        kernels = [k for k in _kernels(models, local, local.names, points, rng, budget) if k]
    except BadPrime:
        return len(columns)
    rows = [[row[i] for i in columns] for kernel in kernels for row in kernel]
    if not rows:
        return len(columns)
    return len(columns) - flint.nmod_mat(len(rows), len(columns), [v for row in rows for v in row], local.prime).rank()
