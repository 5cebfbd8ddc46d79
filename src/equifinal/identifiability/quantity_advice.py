"""What would make one quantity identifiable: each single addition is tried, and the model analysed anew with it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from equifinal.errors import IdentifiabilityError
from equifinal.identifiability.advice import Advice
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import GLOBALLY, UNKNOWN
from equifinal.language.expression import Name, Number, is_rational, substitute
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression


def advise_on(
    models: Model | Sequence[Model], quantity: str, *, time_limit: float = 60.0, effort: float = 3.0, seed: int = 0
) -> list[Advice]:
    """Single additions that would make one function of the parameters identifiable.

    Every parameter is tried as known and every state as measured, and the model analysed anew with it.

    Parameters
    ----------
    quantity
        A quantity of interest by its name, a parameter, or an expression in them.
    time_limit
        Seconds for all analyses together.
    effort
        Of each of them, as in `analyse`.

    Raises
    ------
    IdentifiabilityError
        When the time limit passes, or one of the analyses is too large.
    """
    several = (models,) if isinstance(models, Model) else tuple(models)
    end = time.monotonic() + time_limit
    function = next((m.interest[quantity] for m in several if quantity in m.interest), None)
    if function is None:
        function = parse_expression(quantity)
    rng = random.Random(seed)
    advice: list[Advice] = []

    def verdict(varied: Sequence[Model]) -> str:
        limit = end - time.monotonic()
        if limit <= 0:
            raise IdentifiabilityError(f"could not find within the time limit what would make {quantity} identifiable")
        constants = {name: Number(value) for name, value in varied[0].constants.items()}
        asked = substitute(function, constants)
        found = analyse(varied, time_limit=limit, effort=effort, seed=seed)
        if (found.finer or not is_rational(asked)) and found.quantities.get(quantity, UNKNOWN) != UNKNOWN:
            return found.quantities[quantity]
        return found.expresses(asked, time_limit=limit).status

    if verdict(several) == GLOBALLY:
        return []
    for name in dict.fromkeys(n for m in several for n in m.parameters):
        known = Fraction(rng.randrange(2, 10**6), rng.randrange(2, 10**6))  # as good as any other value
        varied = [_knowing(m, name, known) for m in several]
        if function != Name(name) and verdict(varied) == GLOBALLY:
            advice.append(Advice("know", (name,), GLOBALLY, quantity))
    for state in (*several[0].states, *several[0].definitions):
        if state not in several[0].outputs:
            varied = [replace(several[0], outputs=(*several[0].outputs, state)), *several[1:]]
            if verdict(varied) == GLOBALLY:
                advice.append(Advice("measure", (state,), GLOBALLY, quantity))
    return advice


def _knowing(model: Model, name: str, value: Fraction) -> Model:
    """The model with a number for a parameter."""
    if name not in model.parameters:
        return model
    before = None if model.before is None else _knowing(model.before, name, value)
    others = tuple(n for n in model.parameters if n != name)
    return replace(model, parameters=others, constants={**model.constants, name: value}, before=before)
