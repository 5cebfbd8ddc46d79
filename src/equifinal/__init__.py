"""Bayesian inference for ODE models whose parameters cannot all be identified.

The public names; each is loaded when it is first used, so that ``import equifinal`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equifinal.errors import EquifinalError
    from equifinal.fibre import Fibre
    from equifinal.formats.load import load
    from equifinal.identifiability.analysis import analyse
    from equifinal.identifiability.verdicts import Identifiability
    from equifinal.language.model import Event, Model
    from equifinal.posterior.posterior import Posterior
    from equifinal.posterior.study import Study
    from equifinal.prediction.equivalents import equivalents
    from equifinal.prediction.simulate import simulate
    from equifinal.problem.changes import Change, changed
    from equifinal.problem.data import Experiment, InputSeries, Observations
    from equifinal.problem.doses import Dose, dosed
    from equifinal.problem.labels import Label
    from equifinal.problem.noise import Noise
    from equifinal.problem.prior import Prior
    from equifinal.problem.problem import Problem
    from equifinal.problem.steady import resting
    from equifinal.results.diagnostics import summarise
    from equifinal.results.meaning import interpret
    from equifinal.studies.calibrate.replicates import calibrate
    from equifinal.studies.sample import sample
    from equifinal.words.diagnostics import advise

__version__: str

_HOMES = {
    "Model": "language.model",
    "Event": "language.model",
    "Dose": "problem.doses",
    "dosed": "problem.doses",
    "Change": "problem.changes",
    "changed": "problem.changes",
    "resting": "problem.steady",
    "Label": "problem.labels",
    "Experiment": "problem.data",
    "InputSeries": "problem.data",
    "Observations": "problem.data",
    "Prior": "problem.prior",
    "Noise": "problem.noise",
    "Problem": "problem.problem",
    "load": "formats.load",
    "analyse": "identifiability.analysis",
    "Identifiability": "identifiability.verdicts",
    "Fibre": "fibre",
    "equivalents": "prediction.equivalents",
    "Posterior": "posterior.posterior",
    "Study": "posterior.study",
    "sample": "studies.sample",
    "simulate": "prediction.simulate",
    "calibrate": "studies.calibrate.replicates",
    "summarise": "results.diagnostics",
    "interpret": "results.meaning",
    "advise": "words.diagnostics",
    "EquifinalError": "errors",
}

__all__ = [
    "Change",
    "Dose",
    "EquifinalError",
    "Event",
    "Experiment",
    "Fibre",
    "Identifiability",
    "InputSeries",
    "Label",
    "Model",
    "Noise",
    "Observations",
    "Posterior",
    "Prior",
    "Problem",
    "Study",
    "advise",
    "analyse",
    "calibrate",
    "changed",
    "dosed",
    "equivalents",
    "interpret",
    "load",
    "resting",
    "sample",
    "simulate",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("equifinal")
    if name not in _HOMES:
        raise AttributeError(f"module 'equifinal' has no attribute '{name}'")
    return getattr(import_module(f"equifinal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
