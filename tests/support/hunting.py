"""Comparing the analysis with what independent power series say."""

from __future__ import annotations

from math import inf

from equifinal.errors import IdentifiabilityError
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from tests.support.series_oracle import local_truth
from tests.support.solution_count import Counts, solution_counts

ORDER = 80


def objections(model: Model, *, effort: float = 0.05) -> tuple[list[str], str]:
    """What is wrong with the analysis of a model, and how far it got."""
    try:
        truth = local_truth(model, ORDER)
    except ZeroDivisionError:
        truth = None
    try:
        result = analyse(model, time_limit=inf, effort=effort)
    except IdentifiabilityError as error:
        allowed = {
            "divides by zero": truth is None,
            "all outputs are zero": truth is not None and truth.rank == 0,
            "too large even": True,
        }
        right = any(fine for words, fine in allowed.items() if words in str(error))
        return ([] if right else [str(error)]), "refused"
    if truth is None:
        return ["no power series, but an answer"], "answered"
    rank = len(result.parameters) - result.fibre_dimension
    if rank > truth.rank:  # a rank cannot be too large: the other series was too short
        truth = local_truth(model, max(4 * ORDER, result.certificate["series_order"]))
    found = [f"rank {rank}, not {truth.rank}"] if rank != truth.rank else []
    wrong = [n for n, word in result.parameters.items() if (word != "not") != (n in truth.identifiable)]
    found += [f"{name} is called {result.parameters[name]}" for name in wrong]
    if not found and result.scope == "global":
        counts = solution_counts(model, truth.fixed)
        return _miscounted(result, counts), "global, not counted" if counts is None else "global"
    return found, result.scope


def _miscounted(result: Identifiability, counts: Counts | None) -> list[str]:
    """Compare with the numbers of solutions, and of values that each parameter has among them."""
    if counts is None:
        return []
    found = []
    for name, count in counts.values.items():
        said = {"globally": 1, "locally": result.alternatives.get(name, 0), "not": count}[result.parameters[name]]
        if said != count:
            found.append(f"{name} is called {result.parameters[name]}, with {said} values, but has {count}")
    if result.fibre_dimension == 0 and result.fibre_degree != counts.points:
        found.append(f"degree {result.fibre_degree}, not {counts.points}")
    return found
