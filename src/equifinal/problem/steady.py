"""Steady states: a model that was at rest under other conditions before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.checks import checked, free_names
from equifinal.language.expression import Call, Expression, Name, Number, Power, Product, Sum, evaluate, names
from equifinal.language.functions import CONDITIONS, call_on_arrays
from equifinal.language.model import Model
from equifinal.problem.parts import Part, part

ONE = Number(Fraction(1))


def resting(
    model: Model,
    *,
    constants: Mapping[str, Part] | None = None,
    inputs: Mapping[str, Part] | None = None,
) -> Model:
    """The model as it starts from rest.

    A state whose initial value is left open comes to rest from 1, so that nothing that grows is caught at zero. Where a
    sum of states is conserved, the steady state depends on it, and leaving it open is an error. Conditions on time hold
    as they did long ago.

    Parameters
    ----------
    constants
        Their values before the start, where these are others.
    inputs
        The values of all inputs before the start.

    Examples
    --------
    >>> import equifinal
    >>> model = equifinal.Model.parse("x' = a - k*x", outputs=["x"])
    >>> equifinal.resting(model).before is not None
    True
    """
    values = {name: part(value, f"input '{name}'") for name, value in (inputs or {}).items()}
    for name in values:
        if name not in model.inputs:
            raise DataError(f"'{name}' is not an input{did_you_mean(name, model.inputs)}")
    missing = [name for name in model.inputs if name not in values]
    if missing:
        raise DataError(f"the value of the input '{missing[0]}' before the start is not known")
    for name in constants or {}:
        if name not in model.constants:
            hint = did_you_mean(name, model.constants) or f" (constants: {', '.join(model.constants) or 'none'})"
            raise DataError(f"'{name}' is not a constant{hint}")
    varied = model.vary(constants=constants) if constants else model
    open_states = [x for x in model.states if model.initial[x] == Name(f"{x}_0")]
    initial = {x: ONE if x in open_states else value for x, value in varied.initial.items()}
    definitions = {**values, **varied.definitions}
    draft = replace(
        varied,
        inputs=(),
        outputs=varied.states[:1],
        equations={x: _long_ago(value) for x, value in varied.equations.items()},
        definitions={name: _long_ago(value) for name, value in definitions.items()},
        initial=initial,
        quantities={},
        trajectories={},
        onset=None,
        before=None,
    )
    draft = replace(draft, definitions=_needed(draft))
    before = checked(replace(draft, parameters=free_names(draft)))
    if before.uses_time:
        raise DataError("there is no steady state, because the equations contain t")
    _check_totals(before, open_states)
    start = {x: ONE if x in open_states else value for x, value in model.initial.items()}
    kept = tuple(name for name in model.parameters if name not in {f"{x}_0" for x in open_states})
    return replace(model, initial=start, parameters=kept).vary(before=before)


def _long_ago(expression: Expression) -> Expression:
    """The expression where every condition that the time be below something holds."""
    match expression:
        case Sum(terms):
            return Sum(tuple(map(_long_ago, terms)))
        case Product(factors):
            return Product(tuple(map(_long_ago, factors)))
        case Power(base, exponent):
            return Power(_long_ago(base), exponent)
        case Call(function, arguments):
            return ONE if function in CONDITIONS else Call(function, tuple(map(_long_ago, arguments)))
    return expression


def _needed(model: Model) -> dict[str, Expression]:
    """The definitions that the equations and initial values use."""
    wanted: set[str] = set()
    queue = [name for part in (*model.equations.values(), *model.initial.values()) for name in names(part)]
    while queue:
        name = queue.pop()
        if name in model.definitions and name not in wanted:
            wanted.add(name)
            queue += names(model.definitions[name])
    return {name: value for name, value in model.definitions.items() if name in wanted}


def _check_totals(model: Model, open_states: list[str]) -> None:
    """Refuse open initial values of states in a conserved sum: combinations c with c.f(x) = 0 for all x."""
    rng, n = np.random.default_rng(0), len(model.states)
    count = 4 * n
    values = {name: rng.uniform(0.5, 2.0, count) for name in (*model.states, *model.parameters)}
    values |= {name: np.full(count, float(value)) for name, value in model.constants.items()}
    rates = np.column_stack(
        [np.broadcast_to(evaluate(e, values, float, call_on_arrays), (count,)) for e in model.rhs]
    ).astype(float)
    rates = rates[np.isfinite(rates).all(axis=1)]
    scales = np.abs(rates).max(axis=0, initial=0.0)
    scales[scales == 0] = 1.0
    if len(rates) < n:
        return
    _, sizes, rows = np.linalg.svd(rates / scales)
    conserved = rows[sizes < 1e-9 * max(sizes[0], 1e-300)]
    touched = [x for j, x in enumerate(model.states) if (np.abs(conserved[:, j]) > 1e-6).any()]
    unknown = [x for x in touched if x in open_states]
    if unknown:
        total = " and ".join(touched)
        raise DataError(
            f"the steady state depends on where it came from: a sum of {total} is conserved, so the equations must say "
            f"{unknown[0]}(0) = ..., a number or a parameter"
        )
