"""A problem in words, for ``equifinal check``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equifinal.errors import DataError
from equifinal.language.expression import number_text, to_text
from equifinal.language.happening import happening_lines
from equifinal.problem.data import Experiment
from equifinal.problem.problem import Problem

if TYPE_CHECKING:
    from equifinal.posterior.nominal import AtNominal


def problem_facts(problem: Problem, nominal: AtNominal | None = None) -> dict[str, Any]:
    """Describe a problem as plain data; `nominal` is what it is like at its nominal values, where that is known."""
    model = problem.model
    evaluated: dict[str, Any] = {"values": dict(problem.nominal)} if problem.nominal else {}
    if nominal is not None:
        evaluated |= {"log_likelihood": nominal.log_likelihood, "log_prior": nominal.log_prior}
        evaluated |= {"chi2": nominal.chi_squared}
        if trouble := _trouble(nominal, problem):
            evaluated |= {"trouble": trouble}
    return {
        "name": problem.name,
        "equations": model.to_text(),
        "states": list(model.states),
        "parameters": {
            name: str(problem.priors[name]) if name in problem.priors else None for name in problem.parameters
        },
        "constants": {name: number_text(value) for name, value in model.constants.items()},
        "inputs": list(model.inputs),
        "outputs": list(model.outputs),
        "quantities": {
            name: to_text(expression, decimals=True)
            for name, expression in {**model.quantities, **model.trajectories}.items()
        },
        "experiments": [_experiment_facts(experiment) for experiment in problem.experiments],
        "nominal": evaluated or None,
        "notes": list(problem.notes),
        "ready_to_fit": not _missing(problem),
        "missing": _missing(problem),
    }


def problem_words(problem: Problem, nominal: AtNominal | None = None) -> str:
    """Describe a problem in words."""
    parts = [f"{problem.name}\n", problem.model.to_text(), "", problem.model.describe()]
    if problem.priors:
        width = max(map(len, problem.priors))
        rows = [
            f"  {name:<{width}}  {prior}; sampled on the {prior.coordinate} scale"
            for name, prior in problem.priors.items()
        ]
        parts += ["", "priors:", *[row.replace("; sampled on the identity scale", "") for row in rows]]
    for experiment in problem.experiments:
        parts += ["", *_experiment_words(experiment)]
    if nominal is not None:
        parts += ["", _nominal_words(nominal, problem)]
    if problem.notes:
        parts += ["", *(f"note: {note}" for note in problem.notes)]
    missing = _missing(problem)
    parts += ["", missing or "ready to fit"]
    return "\n".join(parts)


def _trouble(nominal: AtNominal, problem: Problem) -> list[str]:
    """Why there is no log likelihood, experiment by experiment, and no log prior, parameter by parameter."""
    of = {name: f" in experiment {name!r}" if name else "" for name in [*nominal.unsolved, *nominal.impossible]}
    lines = [f"the model cannot be solved{of[name]}: {status.message}" for name, status in nominal.unsolved.items()]
    lines += [f"the data are impossible{of[name]}: the noise cannot give them" for name in nominal.impossible]
    if not lines and not math.isfinite(nominal.log_likelihood):
        lines = ["the log likelihood is not finite"]
    outside = [f"{name} is {problem.nominal[name]:g}, its prior {problem.priors[name]}" for name in nominal.outside]
    return lines + [f"the prior does not allow them: {line}" for line in outside]


def _nominal_words(nominal: AtNominal, problem: Problem) -> str:
    lines = _trouble(nominal, problem)
    if math.isfinite(nominal.log_likelihood):
        squares = "" if nominal.chi_squared is None else f", chi squared {nominal.chi_squared:.6f}"
        prior = f", log prior {nominal.log_prior:.6f}" if not nominal.outside else ""
        lines = [f"log likelihood {nominal.log_likelihood:.6f}{prior}{squares}", *lines]
    return "\n".join(f"at the nominal values: {line}" for line in lines)


def _experiment_words(experiment: Experiment) -> list[str]:
    lines = [f"experiment '{experiment.name}':" if experiment.name else "data:"]
    if experiment.name and experiment.model.constants:
        constants = ", ".join(f"{k} = {number_text(v)}" for k, v in experiment.model.constants.items())
        lines.append(f"  constants: {constants}")
    if experiment.name:
        lines += [f"  {line}" for line in happening_lines(experiment.model)]
    for name, series in experiment.inputs.items():
        lines.append(f"  input {name}: {series.times.size} values, {series.interpolation}")
    for fact in _experiment_facts(experiment)["observations"]:
        span = f", at times {fact['first']:g} to {fact['last']:g}" if fact["count"] else ""
        kind = f"increments over {_range(fact['intervals'])}" if fact["increment"] else "values"
        lines.append(f"  {fact['output']}: {fact['count']} {kind}{span}{_beyond(fact)}; noise {fact['noise']}")
    return lines if len(lines) > 1 else [lines[0] + " none"]


def _experiment_facts(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "initial": {
            x: to_text(e, decimals=True) for x, e in experiment.model.initial.items() if experiment.model.before is None
        },
        "constants": {name: number_text(value) for name, value in experiment.model.constants.items()},
        "happening": happening_lines(experiment.model),
        "observations": [
            {
                "output": entry.output,
                "count": int(entry.values.size),
                "first": float(entry.times[0]) if entry.values.size else None,
                "last": float(entry.times[-1]) if entry.values.size else None,
                "increment": entry.increment,
                "intervals": [float(d) for d in entry.times - entry.previous] if entry.increment else None,
                "below": int((entry.censored < 0).sum()),
                "above": int((entry.censored > 0).sum()),
                "noise": str(entry.noise),
            }
            for entry in experiment.observations
        ],
    }


def _beyond(fact: dict[str, Any]) -> str:
    """How many are known by a limit only."""
    parts = [f"{fact[key]} {key} a limit" for key in ("below", "above") if fact[key]]
    return f", {' and '.join(parts)}" if parts else ""


def _range(intervals: list[float]) -> str:
    low, high = min(intervals, default=0.0), max(intervals, default=0.0)
    return f"{low:g} time units" if low == high else f"{low:g} to {high:g} time units"


def _missing(problem: Problem) -> str:
    try:
        problem.require_complete()
    except DataError as error:
        return str(error)
    return ""
