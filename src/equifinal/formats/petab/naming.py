"""Names of ours as identifiers of PEtab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from equifinal.formats.petab.formulas import RESERVED
from equifinal.formats.petab.tables import MISSING
from equifinal.formats.sbml.writing import identifiers_of
from equifinal.language.expression import TIME, Expression, Name, substitute
from equifinal.language.model import Model
from equifinal.problem.problem import Problem


def identifiers(problem: Problem) -> dict[str, str]:
    """An identifier for every name: letters without accents, Greek ones by their names."""
    models = [m for e in problem.experiments for m in (e.model, *((e.model.before,) if e.model.before else ()))]
    every = [*problem.parameters]
    for m in models:
        every += [*m.states, *m.constants, *m.definitions, *m.levels, *m.outputs, *(f"{x}_start" for x in m.states)]
    return {**identifiers_of(every, (*RESERVED, *MISSING)), TIME: "time"}


def renamed_model(model: Model, new: Mapping[str, str]) -> Model:
    """The model with other names."""
    names_only = {name: Name(other) for name, other in new.items() if name != TIME}

    def table(expressions: Mapping[str, Expression]) -> dict[str, Expression]:
        return {new[name]: substitute(e, names_only) for name, e in expressions.items()}

    return replace(
        model,
        states=tuple(new[x] for x in model.states),
        parameters=tuple(new[p] for p in model.parameters),
        constants={new[n]: v for n, v in model.constants.items()},
        equations=table(model.equations),
        initial=table(model.initial),
        definitions=table(model.definitions),
        outputs=tuple(new[y] for y in model.outputs),
    )
