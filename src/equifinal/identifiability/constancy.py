"""Is the output constant wherever given combinations are? The check for combinations that a user supplies.

Samplers move along level sets of the combinations without asking the likelihood again, so that combinations which
are too few would give a wrong posterior. More than needed do no harm.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import SECOND, Budget, OutOfTime, TooLarge
from equifinal.algebra.arithmetic.functions import values_and_gradients
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, analyse_locally
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.errors import IdentifiabilityError, did_you_mean
from equifinal.identifiability.lifting.follow import constant_functions
from equifinal.identifiability.lifting.lift import lift
from equifinal.identifiability.moves import moves_along_fibre
from equifinal.language.expression import Expression, Name, names, to_text
from equifinal.language.model import Model
from equifinal.language.parser import parsed_combination


def require_constant_output(
    models: Model | Sequence[Model],
    combinations: Sequence[str | Expression],
    *,
    time_limit: float = inf,
    seed: int = 0,
) -> Mapping[str, Fraction]:
    """Refuse combinations on whose level sets the outputs of the models change.

    First locally: no direction in parameter space may leave all combinations as they are and change an output. Then
    on all branches: at random values of coordinates that can be chosen freely, every point with the same values of the
    combinations must have the same output, compared as power series modulo a prime. Neither can pass wrongly except
    by an unlucky random choice (about one in a million).

    A model that is not rational is lifted (`lifting`) to one that determines at least as much. Its new parameters are
    constant where everything is that they depend on; so what passes is right, but not everything that is right passes.

    Returns
    -------
    The values of the known constants that the combinations contain.

    Raises
    ------
    IdentifiabilityError
        Naming the parameters along which an output changes; or if that is too large a question, or not decided in time.
    """
    experiments = (models,) if isinstance(models, Model) else tuple(models)
    theta = tuple(dict.fromkeys(name for model in experiments for name in model.parameters))
    functions = [parsed_combination(c) for c in combinations]
    used = constants = _constants(experiments, functions, theta)
    rng, budget = random.Random(seed), Budget(30 * SECOND, time_limit)
    shown: Callable[[str], str] = str
    try:
        if not all(model.is_plain for model in experiments):  # with everything tied to what is constant, as constant
            lifted = lift(experiments)
            experiments, theta, shown = lifted.models, lifted.unknowns, lambda n: to_text(lifted.written(Name(n)))
            functions = constant_functions(lifted, functions, constants)
            used = {n: v for n, v in constants.items() if any(n in names(f) for f in functions)}
        local = analyse_locally(experiments, theta, rng, budget)
        free = coordinates_to_choose(functions, used, theta, local, shown)
        agree = moves_along_fibre(experiments, functions, used, local, free, rng, budget)
    except BadPrime:
        raise IdentifiabilityError("a combination or the model divides by zero for all parameters") from None
    except OutOfTime:
        raise IdentifiabilityError(
            f"could not decide within {time_limit:g} s whether the output is constant wherever the combinations are"
        ) from None
    except TooLarge:
        agree = None
    if agree is None:
        raise IdentifiabilityError(
            "whether the output is constant wherever the combinations are is too hard to decide; give simpler ones"
        )
    if not agree:
        given = ", ".join(to_text(parsed_combination(c)) for c in combinations)
        raise IdentifiabilityError(
            f"the output is not constant wherever the combinations ({given}) are: a level set has several branches, "
            "and they differ; add a combination that tells them apart"
        )
    return constants


def _constants(models: Sequence[Model], functions: Sequence[Expression], theta: Sequence[str]) -> dict[str, Fraction]:
    known = {
        name: Fraction(value)
        for name, value in models[0].constants.items()
        if all(model.constants.get(name) == value for model in models)
    }
    used = {}
    for function in functions:
        for name in names(function):
            if name in theta:
                continue
            if name not in known:
                raise IdentifiabilityError(
                    f"combination {to_text(function)} needs '{name}', which is neither a parameter nor a constant of "
                    f"the model{did_you_mean(name, (*theta, *known))}"
                )
            used[name] = known[name]
    return used


def coordinates_to_choose(
    functions: Sequence[Expression],
    constants: Mapping[str, Fraction],
    theta: Sequence[str],
    local: LocalAnalysis,
    shown: Callable[[str], str] = str,
) -> list[str]:
    """Coordinates to choose freely on a level set; refuses a direction along it that changes an output."""
    return _free(_gradients(functions, constants, local), theta, local, shown)


def _gradients(
    functions: Sequence[Expression], constants: Mapping[str, Fraction], local: LocalAnalysis
) -> list[list[int]]:
    point = np.array([[local.point[n] for n in local.names]], dtype=np.int64).reshape(1, len(local.names))
    slopes = values_and_gradients(functions, constants, local.names, point, local.prime)[1]
    return [[int(v) for v in slope[0]] for slope in slopes]


def _free(
    rows: Sequence[Sequence[int]], theta: Sequence[str], local: LocalAnalysis, shown: Callable[[str], str]
) -> list[str]:
    n = len(theta)
    matrix = flint.nmod_mat(len(rows), n, [v for row in rows for v in row], local.prime)
    reduced, rank = matrix.rref()
    pivots = [next(k for k in range(n) if int(reduced[i, k])) for i in range(rank)]
    free = [k for k in range(n) if k not in pivots]
    allowed = [list(map(int, row)) for row in local.kernel]
    for k in free:
        direction = [0] * n
        direction[k] = 1
        for i, pivot in enumerate(pivots):
            direction[pivot] = -int(reduced[i, k]) % local.prime
        trial = flint.nmod_mat(len(allowed) + 1, n, [v for row in [*allowed, direction] for v in row], local.prime)
        if trial.rank() > len(allowed):
            moved = ", ".join(shown(name) for name, v in zip(theta, direction, strict=True) if v)
            raise IdentifiabilityError(
                f"the output is not constant wherever the combinations are: it changes when {moved} "
                f"{'change' if sum(map(bool, direction)) > 1 else 'changes'} and the combinations do not; add a "
                "combination, or let `equifinal analyse` find them"
            )
    return [theta[k] for k in free]
