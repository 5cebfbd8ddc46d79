"""Bayesian inference for ODE models whose parameters cannot all be identified.

The public names; each is loaded when it is first used, so that ``import equifinal`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equifinal.calibrating import calibrate
    from equifinal.data import Experiment, InputSeries, Observations
    from equifinal.diagnostics import advise, summarise
    from equifinal.errors import EquifinalError
    from equifinal.fibre import Fibre
    from equifinal.identifiability import Identifiability, analyse
    from equifinal.io.toml import load
    from equifinal.meaning import interpret
    from equifinal.model import Model
    from equifinal.noise import Noise
    from equifinal.posterior import Posterior
    from equifinal.predict import simulate
    from equifinal.prior import Prior
    from equifinal.problem import Problem
    from equifinal.result import sample
    from equifinal.same_output import equivalents

__version__ = _version("equifinal")

_HOMES = {
    "Model": "model",
    "Experiment": "data",
    "InputSeries": "data",
    "Observations": "data",
    "Prior": "prior",
    "Noise": "noise",
    "Problem": "problem",
    "load": "io.toml",
    "analyse": "identifiability",
    "Identifiability": "identifiability",
    "Fibre": "fibre",
    "equivalents": "same_output",
    "Posterior": "posterior",
    "sample": "result",
    "simulate": "predict",
    "calibrate": "calibrating",
    "summarise": "diagnostics",
    "interpret": "meaning",
    "advise": "diagnostics",
    "EquifinalError": "errors",
}

__all__ = [
    "EquifinalError",
    "Experiment",
    "Fibre",
    "Identifiability",
    "InputSeries",
    "Model",
    "Noise",
    "Observations",
    "Posterior",
    "Prior",
    "Problem",
    "advise",
    "analyse",
    "calibrate",
    "equivalents",
    "interpret",
    "load",
    "sample",
    "simulate",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equifinal' has no attribute '{name}'")
    return getattr(import_module(f"equifinal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
