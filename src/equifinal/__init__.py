"""Bayesian inference for ODE models whose parameters cannot all be identified.

From a problem to what the data said:

>>> import equifinal
>>> problem = equifinal.load("si")  # a problem file, or a bundled example
>>> equifinal.analyse(problem).combinations  # what data of this kind can determine
(beta/rho, beta*N - gamma, beta*I0)
>>> data = equifinal.sample(problem, draws=100, progress=False)  # results that ArviZ knows
>>> table = equifinal.summarise(data)  # moments, quantiles and diagnostics
>>> figure = equifinal.plot_fit(data)  # every figure is a function plot_...

`load`, `Problem`, `Model` and what they are made of state a problem; `analyse`, `equivalents` and `simulate` look at it
before any data; `sample`, `compare` and `calibrate` run samplers; `summarise`, `advise`, `interpret`, `predict`,
`write_report` and the figures tell what came out. The names are loaded when they are first used, so that ``import
equifinal`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equifinal.errors import (
        DataError,
        EquifinalError,
        IdentifiabilityError,
        InterruptedRunError,
        ModelError,
        SamplingError,
        SolverError,
    )
    from equifinal.fibre import Fibre
    from equifinal.formats.load import load
    from equifinal.identifiability.trajectories import judge_trajectories
    from equifinal.identifiability.verdicts import Identifiability
    from equifinal.language.model import Event, Model
    from equifinal.plots.agreement import plot_agreement
    from equifinal.plots.calibration import plot_calibration
    from equifinal.plots.chains import plot_autocorrelation, plot_ranks, plot_traces
    from equifinal.plots.efficiency import plot_efficiency
    from equifinal.plots.equivalents import plot_equivalents
    from equifinal.plots.identifiability import plot_identifiability
    from equifinal.plots.marginals import plot_marginals
    from equifinal.plots.pairs import plot_pairs
    from equifinal.plots.trajectories import plot_fit, plot_residuals, plot_states
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
    from equifinal.report.page import write_report
    from equifinal.results.diagnostics import Summary, summarise
    from equifinal.results.meaning import Meaning, interpret
    from equifinal.results.store import load as load_results
    from equifinal.studies.analysis import analyse
    from equifinal.studies.calibrate.replicates import calibrate
    from equifinal.studies.comparison import compare
    from equifinal.studies.sample import sample
    from equifinal.words.diagnostics import advise
    from equifinal.words.meaning import sentence as explain
    from equifinal.words.predictions import predict

__version__: str

# where a public name lives, and how it is called there if it has another name
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
    "load_results": "results.store:load",
    "analyse": "studies.analysis",
    "judge_trajectories": "identifiability.trajectories",
    "Identifiability": "identifiability.verdicts",
    "Fibre": "fibre",
    "equivalents": "prediction.equivalents",
    "Posterior": "posterior.posterior",
    "Study": "posterior.study",
    "sample": "studies.sample",
    "simulate": "prediction.simulate",
    "predict": "words.predictions",
    "calibrate": "studies.calibrate.replicates",
    "compare": "studies.comparison",
    "summarise": "results.diagnostics",
    "Summary": "results.diagnostics",
    "interpret": "results.meaning",
    "Meaning": "results.meaning",
    "explain": "words.meaning:sentence",
    "advise": "words.diagnostics",
    "write_report": "report.page",
    "plot_fit": "plots.trajectories",
    "plot_states": "plots.trajectories",
    "plot_residuals": "plots.trajectories",
    "plot_marginals": "plots.marginals",
    "plot_pairs": "plots.pairs",
    "plot_traces": "plots.chains",
    "plot_ranks": "plots.chains",
    "plot_autocorrelation": "plots.chains",
    "plot_identifiability": "plots.identifiability",
    "plot_equivalents": "plots.equivalents",
    "plot_calibration": "plots.calibration",
    "plot_agreement": "plots.agreement",
    "plot_efficiency": "plots.efficiency",
    "EquifinalError": "errors",
    "ModelError": "errors",
    "DataError": "errors",
    "IdentifiabilityError": "errors",
    "SolverError": "errors",
    "SamplingError": "errors",
    "InterruptedRunError": "errors",
}

__all__ = [
    "Change",
    "DataError",
    "Dose",
    "EquifinalError",
    "Event",
    "Experiment",
    "Fibre",
    "Identifiability",
    "IdentifiabilityError",
    "InputSeries",
    "InterruptedRunError",
    "Label",
    "Meaning",
    "Model",
    "ModelError",
    "Noise",
    "Observations",
    "Posterior",
    "Prior",
    "Problem",
    "SamplingError",
    "SolverError",
    "Study",
    "Summary",
    "advise",
    "analyse",
    "calibrate",
    "changed",
    "compare",
    "dosed",
    "equivalents",
    "explain",
    "interpret",
    "judge_trajectories",
    "load",
    "load_results",
    "plot_agreement",
    "plot_autocorrelation",
    "plot_calibration",
    "plot_efficiency",
    "plot_equivalents",
    "plot_fit",
    "plot_identifiability",
    "plot_marginals",
    "plot_pairs",
    "plot_ranks",
    "plot_residuals",
    "plot_states",
    "plot_traces",
    "predict",
    "resting",
    "sample",
    "simulate",
    "summarise",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # not there yet while the package is built
        from importlib.metadata import version

        return version("equifinal")
    if name not in _HOMES:
        raise AttributeError(f"module 'equifinal' has no attribute '{name}'")
    home, _, own = _HOMES[name].partition(":")
    return getattr(import_module(f"equifinal.{home}"), own or name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
