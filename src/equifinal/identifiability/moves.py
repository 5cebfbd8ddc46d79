"""Moving along the fibre: a check of the answer that does not use how it was found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, islice

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.elimination.conjugates import agreeing
from equifinal.algebra.elimination.fibre_points import FibreSlice, output_series
from equifinal.algebra.elimination.quotient import NotFinite
from equifinal.algebra.generators.membership import Constants
from equifinal.algebra.generators.selection import level_set
from equifinal.language.expression import Expression
from equifinal.language.model import Model


def moves_along_fibre(
    models: Sequence[Model],
    functions: Sequence[Expression],
    constants: Constants,
    local: LocalAnalysis,
    free: Sequence[str],
    rng: random.Random,
    budget: Budget,
) -> bool | None:
    """Whether points far away on the common level set of the functions give the same output series, to double
    order.

    The coordinates `free`, which may be fixed, get new random values, the functions keep theirs; all points found
    that way are compared with the original. None when that is too large.
    """
    point = {n: local.point[n] for n in local.names}
    fixed = {name: rng.randrange(1, local.prime) for name in free}
    try:
        free, points = level_set(functions, constants, point, fixed, local.prime, rng, budget)
        for model, signals in zip(models, local.inputs, strict=True):
            target: np.ndarray = output_series(model, local, signals, 2 * local.order, rng, budget)
            if (
                points.count > 0
                and agreeing(points, free, fixed, model, signals, target, budget, enough=0).count != points.count
            ):
                return False
    except (TooLarge, NotFinite):
        return None
    except BadPrime:
        return False
    return True


def smallest_degree(
    functions: Sequence[Expression],
    constants: Constants,
    fibre: FibreSlice,
    rng: random.Random,
    budget: Budget,
) -> int:
    """The least number of points over all choices of r coordinates to fix, as far as the budget allows."""
    local = fibre.local
    r, p = len(local.kernel), local.prime
    point = {n: local.point[n] for n in local.names}
    best = fibre.degree
    columns = [i for i in range(len(local.names)) if any(row[i] for row in local.kernel)]
    for chosen in islice(combinations(columns, r), 60):
        if best == 1:
            break
        minor = flint.nmod_mat(r, r, [row[i] for row in local.kernel for i in chosen], p)
        if int(minor.det()) == 0:
            continue
        fixed = {local.names[i]: local.point[local.names[i]] for i in chosen}
        try:
            _, points = level_set(functions, constants, point, fixed, p, rng, budget)
        except (TooLarge, NotFinite, BadPrime):
            continue
        best = min(best, points.count)
    return best
