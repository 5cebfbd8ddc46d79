"""Whether data, model and priors conform: what sound draws do not tell.

Draws can be right and the posterior useless: data in other units, a prior that excludes the truth, a model that misses
something. After a fit these are looked at:

- the median of a posterior is where its prior has less than a ten-thousandth of its probability;
- a posterior presses against a bound of its prior (other than zero);
- residuals are larger than the noise allows, or those next to each other in time agree (posterior predictive p-values
  below 0.005);
- a noise scale is far above the scatter of the data's own replicates.

Before a fit, the data are set beside what the priors predict: at least half of the observations of an output above (or
below) all but 0.5% of the predictions at their times. Were the priors right, that would happen in at most 1% of all
data sets (Markov's inequality: the expected share of such observations is 0.5%).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from equifinal.errors import SolverError
from equifinal.prediction.predict import Check, check, prior_rows
from equifinal.problem.data import Observations
from equifinal.problem.problem import Problem
from equifinal.results.meaning import NOISE, PARAMETER, Finding, Meaning

LEVEL = 0.005  # of p-values
LEAST_REPLICATES, ABOVE_REPLICATES = 5, 3.0
PRIOR_DRAWS, EXTREME, MOST_OF_THEM = 1000, 0.005, 0.5  # of prior predictions, and the share of data beyond them

Kind = Literal["in a tail", "at the lower bound", "at the upper bound", "large residuals", "trend", "above replicates"]
Foreseen = Literal["above predictions", "below predictions", "prior not solved"]


@dataclass(frozen=True)
class Discord:
    """Something that does not conform; `words.conformity` says it.

    Attributes
    ----------
    kind, name
        What it is, and of which parameter or output.
    numbers
        The measurements that show it.
    """

    kind: Kind | Foreseen
    name: str
    numbers: Mapping[str, float] = field(default_factory=dict)


def discords(meaning: Meaning, checks: Iterable[Check]) -> list[Discord]:
    """Everything that does not conform."""
    found = [d for finding in meaning.of_kind(PARAMETER, NOISE) for d in _with_prior(meaning, finding)]
    for one in checks:
        name = _place(one)
        if one.p_size < LEVEL:
            spread = float(np.sqrt(np.nanmean(one.residuals**2)))
            found.append(Discord("large residuals", name, {"sd": spread, "largest": one.largest}))
        if one.p_trend < LEVEL:
            found.append(Discord("trend", name))
    return found + list(_above_replicates(meaning))


def foreseen(problem: Problem, checks: Iterable[Check] | None = None) -> list[Discord]:
    """What does not conform between data and priors before any fit; ``checks`` of prior draws, if they were made."""
    if checks is None:
        try:
            checks = check(problem, prior_rows(problem, PRIOR_DRAWS))
        except SolverError:
            return [Discord("prior not solved", "", {"draws": PRIOR_DRAWS})]
    return [discord for one in checks for discord in _beyond_predictions(one)]


def _beyond_predictions(one: Check) -> Iterator[Discord]:
    kinds: dict[Foreseen, np.ndarray] = {
        "above predictions": one.ranks > 1 - EXTREME,
        "below predictions": one.ranks < EXTREME,
    }
    for kind, beyond in kinds.items():
        if beyond.mean() >= MOST_OF_THEM:
            numbers: dict[str, float] = {"count": int(beyond.sum()), "of": int(beyond.size)}
            numbers |= {"data": float(np.median(one.values)), "predicted": float(np.median(one.replicated[2]))}
            yield Discord(kind, _place(one), numbers)


def _place(one: Check) -> str:
    return f"{one.output} [{one.experiment}]" if one.experiment else one.output


def _with_prior(meaning: Meaning, finding: Finding) -> Iterator[Discord]:
    told, prior = finding.information, meaning.problem.priors[finding.name]
    bounds = {"lower": prior.lower, "upper": prior.upper}
    if told.presses_below and math.isfinite(prior.lower) and prior.lower != 0:
        yield Discord("at the lower bound", finding.name, bounds)
    elif told.presses_above and math.isfinite(prior.upper) and prior.upper != 0:
        yield Discord("at the upper bound", finding.name, bounds)
    elif told.in_tail:
        yield Discord("in a tail", finding.name, {"below": float(told.middle > 0.5)})


def _above_replicates(meaning: Meaning) -> Iterator[Discord]:
    scales = {f.name: f.quantile(0.5) for f in meaning.of_kind(NOISE, PARAMETER)}
    for experiment in meaning.problem.experiments:
        for entry in experiment.observations:
            name = {"normal": entry.noise.arguments.get("sd"), "lognormal": entry.noise.arguments.get("sdlog")}.get(
                entry.noise.family
            )
            if not isinstance(name, str) or name not in scales or "relative" in entry.noise.arguments:
                continue
            scatter = replicate_scatter(entry)
            if scales[name] > ABOVE_REPLICATES * scatter:
                yield Discord("above replicates", name, {"scale": scales[name], "scatter": scatter})


def replicate_scatter(entry: Observations) -> float:
    """The standard deviation of values at the same time, on the scale of the noise; infinite if there are too few."""
    values = np.log(entry.values) if entry.noise.family == "lognormal" else entry.values
    total, freedom = 0.0, 0
    for time in np.unique(entry.times):
        own = values[entry.times == time]
        total += float(((own - own.mean()) ** 2).sum())
        freedom += own.size - 1
    return math.sqrt(total / freedom) if freedom >= LEAST_REPLICATES and total > 0 else math.inf
