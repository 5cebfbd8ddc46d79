"""A problem, or the results of a fit, as files of other tools: the problem itself, or its identifiable model."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any
from warnings import warn

import numpy as np

from equifinal.errors import DataError, IdentifiabilityError
from equifinal.fibre.of_problem import fibre_of
from equifinal.fibre.reparametrised import Reparametrised, reparametrised
from equifinal.identifiability.analysis import analyse
from equifinal.language.lookalikes import names_in, numbered
from equifinal.problem.problem import Problem
from equifinal.results.store import identifiability_of


def most_probable(data: Any, problem: Problem) -> dict[str, float]:
    """The draw with the largest posterior density."""
    density = np.asarray(data.sample_stats["lp"])
    chain, draw = np.unravel_index(int(np.nanargmax(density)), density.shape)
    return {name: float(data.posterior[name].values[chain, draw]) for name in problem.parameters}


def exported(
    problem: Problem, values: Mapping[str, float], to: str, *, reduced: bool = False, data: Any = None
) -> dict[str, str]:
    """The files of an export by name.

    Parameters
    ----------
    values
        Of all parameters.
    to
        ``petab``, ``sbml``, ``stan``, ``pymc`` or ``latex``.
    reduced
        Whether the model is written in its identifiable combinations; only for ``sbml`` and ``latex``, since priors of
        the old parameters are none of the new ones.
    data
        Results, which may contain the analysis.
    """
    if reduced and to not in ("sbml", "latex"):
        raise DataError(f"`reduced=True` goes with sbml and latex: {to} needs priors, which combinations do not have")
    missing = [name for name in problem.parameters if name not in values]
    if missing and to != "latex":
        raise DataError(f"no value is known for {', '.join(missing)}")
    if to == "petab":
        from equifinal.formats.petab.writing import problem_to_petab

        return problem_to_petab(problem, values)
    if to == "stan":
        from equifinal.formats.export.stan import problem_to_stan

        return {"problem.stan": problem_to_stan(problem)}
    if to == "pymc":
        from equifinal.formats.export.pymc import problem_to_pymc

        return {"problem.py": problem_to_pymc(problem, values)}
    if to == "sbml":
        return {"model.xml": _sbml(problem, values, _reduced(problem, values, data) if reduced else None)}
    return {"problem.tex": _latex(problem, values, reduced, data)}


def _sbml(problem: Problem, values: Mapping[str, float], new: Reparametrised | None) -> str:
    from equifinal.formats.export.inputs import with_inputs_written
    from equifinal.formats.sbml.writing import model_to_sbml

    first, *others = (with_inputs_written(experiment) for experiment in problem.experiments)
    if any(other != first for other in others):
        warn(
            f"SBML has one model: it is that of experiment '{problem.experiments[0].name}', from which others differ; "
            "`to` petab has all of them",
            stacklevel=2,
        )
    if new is None:
        return model_to_sbml(first, values, name=problem.name)
    return model_to_sbml(new.model(first), new.values(values), name=f"{problem.name}_identifiable")


def _reduced(problem: Problem, values: Mapping[str, float], data: Any) -> Reparametrised:
    found_before = None if data is None else identifiability_of(data)
    analysis = found_before or analyse([e.model for e in problem.experiments], time_limit=inf, effort=1.0)
    if analysis.finer:
        raise DataError(
            "the identifiable model is not known in closed form: the combinations that the analysis found are finer "
            "than what data determine"
        )
    fibre = fibre_of(problem, outputs_only=True, analysis=analysis)
    found = reparametrised(fibre, values, names_in([problem.model]))
    if found is None:
        if not fibre.dimension:
            raise DataError("the data can determine all parameters: the model is its own identifiable model")
        raise DataError("the identifiable model has no closed form, because the chart of the fibre is not rational")
    return found


def _latex(problem: Problem, values: Mapping[str, float], reduced: bool, data: Any) -> str:
    from equifinal.formats.export.latex import problem_to_latex

    if reduced:
        new = _reduced(problem, values, data)
        return problem_to_latex(problem, values, new.combinations, new.model(problem.model))
    if data is None:
        return problem_to_latex(problem, values)
    try:
        combinations = identifiability_of(data).determined
    except IdentifiabilityError:
        combinations = ()
    names = numbered("c", len(combinations), names_in([problem.model]))
    return problem_to_latex(problem, values, dict(zip(names, combinations, strict=True)))
