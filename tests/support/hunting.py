"""Comparing the analysis with what independent power series say."""

from __future__ import annotations

from math import inf
from random import Random

from equifinal.errors import IdentifiabilityError
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.model import Model
from tests.support.series_oracle import SHORT, LocalTruth, alternatives, local_truth

ORDER = 80
# by number of unknowns: primes p for which p - 1 has many divisors, so that most roots of unity exist
SMALL_PRIMES = {1: (421, 2521, 241), 2: (241, 181, 211, 127), 3: (61, 73, 71)}
TRIALS = 5


def objections(model: Model, *, counting: bool = True, effort: float = 0.05) -> tuple[list[str], str]:
    """What is wrong with the analysis of a model, and how far it got; `counting` solutions takes most of the time."""
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
    if counting and not found and result.scope == "global":
        found = _global_objections(model, result, truth)
    return found, result.scope


def _global_objections(model: Model, result: Identifiability, truth: LocalTruth) -> list[str]:
    """Compare with the numbers of solutions modulo small primes, where there are few enough vectors to try them all.

    A coordinate with one value has another only at special points, so seldom; one with several values most often has.
    """
    if truth.rank not in SMALL_PRIMES or truth.early < truth.rank or not truth.identifiable:
        return []
    primes, rng = SMALL_PRIMES[truth.rank], Random(0)
    seen = [alternatives(model, truth.fixed, SHORT, primes[k % len(primes)], rng) for k in range(TRIALS)]
    trials = [s for s in seen if s is not None]
    found = []
    for name, word in result.parameters.items():
        share = sum(name in s for s in trials) / max(len(trials), 1)
        if (word == "globally" and share > 0.5) or (word == "locally" and trials and share == 0):
            found.append(f"{name} is called {word}, but has other values at {share:.0%} of the points")
    return found
