"""The fibre of a problem: of its outputs, or of its likelihood, which noise parameters enter as well."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from equifinal.errors import DataError, IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.constancy import require_constant_output
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import Name, to_text
from equifinal.problem.problem import Problem


def require_priors(problem: Problem) -> None:
    missing = [name for name in problem.parameters if name not in problem.priors]
    if missing:
        raise DataError(
            f"a prior is needed for {', '.join(missing)}: equivalents are looked for inside the priors' support"
        )


def fibre_of(
    problem: Problem,
    combinations: Sequence[str] = (),
    *,
    outputs_only: bool = False,
    analysis: Identifiability | None = None,
    time_limit: float = inf,
    effort: float = 1.0,
    seed: int = 0,
) -> Fibre:
    """Find the fibre of a problem by analysis, or from combinations that a user gives, once these are checked.

    A parameter that the noise has is seen by the likelihood even where the outputs do not determine it, so it stands
    for itself, whether the model has it too or not; unless `outputs_only`, for which the noise does not matter.
    An `analysis` that was made before spares another. `time_limit` and `effort` are those of `analyse`; without a time
    limit no clock is looked at, and the fibre is the same on every machine.
    """
    require_priors(problem)
    models = [e.model if outputs_only else e.analysed for e in problem.experiments]
    priors = {name: problem.priors[name] for name in problem.parameters}
    known = {name for model in models for name in model.parameters}
    noise = {name for e in problem.experiments for name in e.noise_parameters}
    kept = [name for name in priors if name not in known or (name in noise and not outputs_only)]
    if not combinations:
        found = analyse(models, time_limit=time_limit, effort=effort, seed=seed) if analysis is None else analysis
        if found.complete or not (found.fibre_dimension and found.combinations):
            return Fibre.of(found, priors, kept=kept)
        combinations = [to_text(c) for c in found.combinations]
        try:  # they may be enough, though that is not known
            constants = require_constant_output(models, combinations, time_limit=time_limit, seed=seed)
        except IdentifiabilityError:
            return Fibre.of(found, priors, kept=kept)  # which says what is missing
    else:
        constants = require_constant_output(models, combinations, time_limit=time_limit, seed=seed)
    given = {c.strip() for c in combinations}
    return Fibre([*combinations, *(Name(n) for n in kept if n not in given)], priors, constants=constants)


def itself(problem: Problem) -> Fibre:
    """Every parameter a combination of its own: the finest fibre, which is always right."""
    require_priors(problem)
    priors = {name: problem.priors[name] for name in problem.parameters}
    return Fibre([Name(name) for name in priors], priors)
