"""Which trajectories ideal data determine: states, and functions of states and parameters that a user has named.

A trajectory g(x(t), theta) is determined if it is the same at all parameters with the same outputs: if observing it as
well would add nothing. Locally that is a question of rank. Globally, all points with the same values of the
identifiable combinations must give the same power series of g, as for combinations that a user supplies (`constancy`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from equifinal.algebra.arithmetic.budget import SECOND, Budget, OutOfTime, TooLarge
from equifinal.algebra.arithmetic.local_rank import analyse_locally
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.identifiability.called import judged
from equifinal.identifiability.constancy import coordinates_to_choose
from equifinal.identifiability.lifting.lift import lift
from equifinal.identifiability.lifting.lifted import HALVED, LATE, RESTING, TiedKernel
from equifinal.identifiability.moves import moves_along_fibre
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT, UNKNOWN, Identifiability
from equifinal.language.expression import Expression, Name, substitute
from equifinal.language.model import Model

WORK = 10 * SECOND  # for each trajectory
SEEN = "the trajectory"  # as an output


def judge_trajectories(
    models: Model | Sequence[Model], analysis: Identifiability, *, time_limit: float = inf, seed: int = 0
) -> tuple[Mapping[str, str], ...]:
    """Judge every state and every named trajectory of each model, given what `analyse` has found of all of them.

    Returns
    -------
    For each model, by name: ``"globally"``, ``"locally"`` or ``"not"`` determined; where that could not be found out in
    the time or with the work allowed, ``"unknown"``. When the combinations are not complete, ``"locally"`` means at
    least locally.

    Examples
    --------
    >>> import equifinal
    >>> problem = equifinal.load("si")
    >>> models = [experiment.model for experiment in problem.experiments]
    >>> equifinal.judge_trajectories(models, equifinal.analyse(models))[0]["S"]
    'not'
    """
    experiments = (models,) if isinstance(models, Model) else tuple(models)
    budget = Budget(inf, time_limit)
    return tuple(dict(_verdicts(experiments, k, analysis, budget, seed)) for k in range(len(experiments)))


def _verdicts(
    models: Sequence[Model], own: int, analysis: Identifiability, budget: Budget, seed: int
) -> Iterator[tuple[str, str]]:
    model = models[own]
    everything = all(word == GLOBALLY for word in analysis.parameters.values())
    for name in (*model.states, *model.trajectories):
        if everything or name in model.outputs:
            yield name, GLOBALLY
            continue
        status = partial(_status, models, own, analysis, budget.part(WORK), seed)
        try:
            whole = substitute(model.trajectories.get(name, Name(name)), model.closed_definitions)
            yield name, judged(whole, status, random.Random(seed))[0]
        except (OutOfTime, TooLarge, BadPrime):
            yield name, UNKNOWN


def _status(
    models: Sequence[Model], own: int, analysis: Identifiability, budget: Budget, seed: int, expression: Expression
) -> tuple[str, int]:
    """The verdict on a rational trajectory of one of the models, and that the number of alternatives is not known."""
    definitions = {**models[own].definitions, SEEN: expression}
    seen = replace(
        models[own], definitions=definitions, outputs=(*models[own].outputs, SEEN), trajectories={}, quantities={}
    )
    more = [seen if k == own else model for k, model in enumerate(models)]
    return _verdict(more, analysis, budget, random.Random(seed)), 0


def _verdict(models: Sequence[Model], analysis: Identifiability, budget: Budget, rng: random.Random) -> str:
    theta = tuple(analysis.parameters)
    if not all(model.is_plain for model in models):
        lifted = lift(models)
        models = lifted.models
        if not lifted.is_exact or analysis.finer:
            known = not {LATE, RESTING, HALVED} & set(lifted.assumptions)
            tied = TiedKernel(lifted, analyse_locally(models, lifted.unknowns, rng, budget))
            return NOT if known and tied.dimension() < analysis.fibre_dimension else UNKNOWN
    local = analyse_locally(models, theta, rng, budget)
    if len(local.kernel) < analysis.fibre_dimension:
        return NOT
    if not analysis.complete:
        return LOCALLY
    free = coordinates_to_choose(analysis.combinations, analysis.constants, theta, local)
    agree = moves_along_fibre(models, analysis.combinations, analysis.constants, local, free, rng, budget)
    return UNKNOWN if agree is None else GLOBALLY if agree else LOCALLY
