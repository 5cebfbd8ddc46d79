"""`analyse`: from a problem, a model or several models to what can be known."""

from __future__ import annotations

from collections.abc import Sequence

from equifinal.identifiability.analysis import analyse as analyse_models
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from equifinal.posterior.design import analysed
from equifinal.problem.problem import Problem


def analyse(
    models: Problem | Model | Sequence[Model], *, time_limit: float = 60.0, effort: float = 3.0, seed: int = 0
) -> Identifiability:
    """What the outputs of a problem, of a model, or of several models that share parameters by name, determine.

    Parameters
    ----------
    models
        A problem, whose experiments are also looked at as they are; or one model, or several: theta is then the union
        of their parameters in order of first appearance.
    time_limit
        Seconds, infinite for none; what is not shown by then is labelled as such, never guessed.
    effort
        How much work may be done before a question is called too large. Work is counted, not timed: without a time
        limit the answer is the same on every machine.
    seed
        Of the random points and primes. The answer does not depend on it (except with `error_probability`).

    Returns
    -------
    Identifiability
        Verdicts, combinations, freedoms and advice; print it to read them.

    Raises
    ------
    IdentifiabilityError
        When a model has no power series at its initial values, when not even the local analysis came to an end, or
        when the arguments are not models.

    Examples
    --------
    >>> import equifinal
    >>> found = equifinal.analyse(equifinal.load("si"))
    >>> found.combinations
    (beta/rho, beta*N - gamma, beta*I0)
    """
    if isinstance(models, Problem):
        return analysed(models, time_limit=time_limit, effort=effort, seed=seed)
    return analyse_models(models, time_limit=time_limit, effort=effort, seed=seed)
