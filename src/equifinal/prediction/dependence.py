"""Which trajectories the data determine: those that are the same at all parameters with the same likelihood.

The analysis knows (`identifiability.trajectories`), except where a trajectory is one of several, which may lie outside
the prior's support, or where the answer takes too much work. Then at a few posterior draws other points of the same
fibre are solved to high accuracy and compared. An output agrees, which is the control; a state that differs is one
about which no data of this kind can say more than the prior does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre
from equifinal.identifiability.trajectories import judge_trajectories
from equifinal.identifiability.verdicts import GLOBALLY, NOT, Identifiability
from equifinal.language.model import Model
from equifinal.prediction.predict import prediction_times, solve
from equifinal.problem.problem import Problem, SolverSettings

Array = NDArray[np.float64]

POINTS, OTHERS = 3, 4  # draws, and vectors of each fibre
RTOL, ATOL, MAX_STEPS = 1e-9, 1e-12, 200_000
CLEAR = 1e-5  # of the largest value: far above what the solver gets wrong
MOST_JUDGED = 1000  # trajectories times experiments that the analysis is asked about: its work grows with both
MOST_STATES = 2500  # trajectories times states of all experiments, likewise
HOPELESS = 1e-3  # outputs that differ by so much were not solved well enough to judge by


def determined_trajectories(
    problem: Problem, fibre: Fibre | None, theta: Array, analysis: Identifiability | None = None
) -> Mapping[tuple[str, str], bool | None]:
    """Decide for every (experiment, output or state): True if the data determine it, False if it depends on the prior.

    None where that is not known: the analysis did not come to an end, or nothing could be solved.

    Parameters
    ----------
    fibre
        Of the likelihood, from `fibre_of`; None if it is not known.
    theta
        Posterior draws, a row each; a few of them are used.
    analysis
        What `analyse` has found of the models.
    """
    known = _known(problem, analysis) if analysis is not None else {}
    missing = [key for key in _keys(problem) if key not in known]
    if not missing:
        return known
    compared = _compared(problem, fibre, theta)
    if analysis is not None and analysis.finer and {*analysis.parameters.values()} != {GLOBALLY}:
        # the fibre holds more still than the data do: what agrees along it may differ along the whole one
        outputs = {(e.name, name) for e in problem.experiments for name in e.model.outputs}
        compared = {key: found if key in outputs or not found else None for key, found in compared.items()}
    return {**compared, **known}


def _keys(problem: Problem) -> list[tuple[str, str]]:
    return [(e.name, name) for e in problem.experiments for _, name in _trajectories(e.model)]


def _known(problem: Problem, analysis: Identifiability) -> dict[tuple[str, str], bool | None]:
    """What the analysis decides."""
    states = sum(len(experiment.model.states) for experiment in problem.experiments)
    asked = len(_keys(problem))
    if asked * len(problem.experiments) > MOST_JUDGED or asked * states > MOST_STATES:
        return {}
    verdicts = judge_trajectories([e.analysed for e in problem.experiments], analysis)
    decided = {GLOBALLY: True, NOT: False}
    known: dict[tuple[str, str], bool | None] = {}
    for experiment, words in zip(problem.experiments, verdicts, strict=True):
        known |= {(experiment.name, name): True for name in experiment.model.outputs}
        known |= {(experiment.name, name): decided[word] for name, word in words.items() if word in decided}
    return known


def _compared(problem: Problem, fibre: Fibre | None, theta: Array) -> Mapping[tuple[str, str], bool | None]:
    """What solving at points of the same fibres shows."""
    every = [(e, name, kind) for e in problem.experiments for kind, name in _trajectories(e.model)]
    if fibre is None:
        return {(e.name, name): True if kind == "output" else None for e, name, kind in every}
    if fibre.dimension == 0 and fibre.chart.degree == 1:
        return {(e.name, name): True for e, name, _ in every}
    solver = SolverSettings(rtol=RTOL, atol=ATOL, max_steps=MAX_STEPS, method=problem.solver.method)
    order = [list(problem.parameters).index(name) for name in fibre.names]
    back = [fibre.names.index(name) for name in problem.parameters]
    largest: dict[tuple[str, str], float] = {}
    for row in np.linspace(0, len(theta) - 1, POINTS).round().astype(int):
        try:
            found = fibre.search(theta[row, order], OTHERS, seed=0).theta
        except IdentifiabilityError:
            continue
        if len(found) < 2:
            continue
        for experiment in problem.experiments:
            times = prediction_times(experiment, None, None if experiment.size else 1.0)
            model = experiment.solved.with_outputs(experiment.model.trajectories)
            solved = solve(experiment, problem.parameters, found[:, back], times, solver, experiment.model.trajectories)
            fine = np.flatnonzero(solved.status == 0)
            if len(fine) < 2 or fine[0] != 0:
                continue
            columns = {name: solved.states[fine, :, j] for j, name in enumerate(model.states)}
            columns |= {name: solved.outputs[fine, :, j] for j, name in enumerate(model.outputs)}
            for name, curves in columns.items():
                size = max(float(np.nanmax(np.abs(curves[0]))), 1e-300)  # an output may be undefined at first
                difference = float(np.nanmax(np.abs(curves - curves[0]))) / size
                key = experiment.name, name
                largest[key] = max(largest.get(key, 0.0), difference)
    if fibre.dimension == 0 and not largest:  # the other solutions lie outside the prior's support
        return {(e.name, name): True for e, name, _ in every}
    outputs = [largest[e.name, name] for e, name, kind in every if kind == "output" and (e.name, name) in largest]
    control = max(outputs, default=0.0)
    limit = max(CLEAR, 10 * control)
    verdicts: dict[tuple[str, str], bool | None] = {}
    for experiment, name, kind in every:
        key = experiment.name, name
        judged = key in largest and control < HOPELESS
        verdicts[key] = True if kind == "output" else largest[key] <= limit if judged else None
    return verdicts


def _trajectories(model: Model) -> list[tuple[str, str]]:
    states = [("state", name) for name in (*model.states, *model.trajectories) if name not in model.outputs]
    return [*(("output", name) for name in model.outputs), *states]
