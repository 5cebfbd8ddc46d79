"""Doses, lags, infusions, switches, onsets, steady states and functions, from file to draws: against quadrature.

Two unknowns each, and a solution in closed form: the reference shares nothing with the package but the numbers. Nine
quantiles of each unknown are compared at 5.5 standard errors: a false alarm once in 200,000 runs of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import arviz
import numpy as np
import pytest

from equifinal.formats.toml import loads
from equifinal.studies.sample import sample
from tests.support.agreement import SHARES

Curve = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
TIMES = np.array([0.7, 1.3, 2.1, 2.9, 3.6, 4.4, 5.3, 6.2])
SD, GRID = 0.4, 1200


class Case(NamedTuple):
    equations: str
    more: str  # what else the file says
    ranges: dict[str, tuple[float, float]]
    truth: tuple[float, float]
    curve: Curve


def _doses(t: float, k: np.ndarray, lag: np.ndarray) -> np.ndarray:
    waits = [t - time - lag for time in (0.0, 3.0)]
    return sum(np.where(wait > 0, 10 * np.exp(-k * np.maximum(wait, 0)), 0.0) for wait in waits)


def _infusion(t: float, k: np.ndarray, lasting: np.ndarray) -> np.ndarray:
    given = np.minimum(t, lasting)
    return 8 / k * (1 - np.exp(-k * given)) * np.exp(-k * (t - given))


CASES = {
    "doses with a lag": Case(
        "x' = -k*x\nx(0) = 0",
        '[[dose]]\nstate = "x"\namount = 10\ntime = [0, 3]\nlag = "lag"',
        {"k": (0.1, 2), "lag": (0, 2)},
        (0.6, 0.9),
        _doses,
    ),
    "an infusion of unknown duration": Case(
        "x' = -k*x\nx(0) = 0",
        '[[dose]]\nstate = "x"\nrate = 8\nduration = "lasting"\ntime = 0',
        {"k": (0.1, 2), "lasting": (0.2, 6)},
        (0.7, 2.5),
        _infusion,
    ),
    "a switch at an unknown time": Case(
        "x' = -k*f*x\nx(0) = 10",
        '[constants]\nf = 1\n[[change]]\ntime = "s"\nconstants = { f = 4 }',
        {"k": (0.02, 1), "s": (0, 7)},
        (0.2, 2.5),
        lambda t, k, s: 10 * np.exp(-k * (t + 3 * np.maximum(0, t - s))),
    ),
    "an unknown onset": Case(
        "x' = -k*x\nx(0) = 10",
        "",
        {"k": (0.1, 2), "t0": (-2, 5)},
        (0.5, 1.0),
        lambda t, k, t0: 10 * np.exp(-k * np.maximum(0, t - t0)),
    ),
    "a steady state before": Case(
        "x' = a*u - k*x^2",
        "[constants]\nu = 0",
        {"a": (1, 40), "k": (0.02, 1)},
        (9.0, 0.2),
        lambda t, a, k: 1 / (np.sqrt(k / a) + k * t),
    ),
    "functions of time": Case(
        "x' = -k*x*(1 + e*cos(t))\nx(0) = 10",
        "",
        {"k": (0.05, 1), "e": (-1, 3)},
        (0.3, 0.8),
        lambda t, k, e: 10 * np.exp(-k * (t + e * np.sin(t))),
    ),
}
IN_MODEL = {
    "an unknown onset": 'start = "t0"',
    "a steady state before": 'initial = "steady state"\nbefore = { constants = { u = 1 } }',
}


def _values(case: Case) -> np.ndarray:
    exact = np.array([float(case.curve(t, *map(np.array, case.truth))) for t in TIMES])
    return np.round(exact + SD * np.random.default_rng(5).standard_normal(TIMES.size), 3)


def _problem(name: str) -> str:
    case = CASES[name]
    priors = [f'{n} = {{ prior = "uniform", lower = {a}, upper = {b} }}' for n, (a, b) in case.ranges.items()]
    return "\n".join(
        [
            f'[model]\nequations = """\n{case.equations}\n"""\noutputs = ["x"]\n{IN_MODEL.get(name, "")}',
            case.more,
            "[parameters]",
            *priors,
            f'[noise]\nx = {{ family = "normal", sd = {SD} }}',
            f"[data]\ntime = {TIMES.tolist()}\nx = {_values(case).tolist()}",
        ]
    )


def _exact(case: Case) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each unknown, values and the probability below them, by the midpoint rule."""
    (first, a), (second, b) = case.ranges.items()
    axes = [low + (high - low) * (np.arange(GRID) + 0.5) / GRID for low, high in (a, b)]
    points = np.meshgrid(*axes, indexing="ij")
    misfit = sum((y - case.curve(t, *points)) ** 2 for t, y in zip(TIMES, _values(case), strict=True))
    density = np.exp(-0.5 * (misfit - misfit.min()) / SD**2)
    found = {}
    for name, axis, other in ((first, axes[0], 1), (second, axes[1], 0)):
        share = density.sum(axis=other)
        upper = axis + (axis[1] - axis[0]) / 2
        found[name] = upper, np.cumsum(share) / share.sum()
    return found


@pytest.mark.parametrize("name", CASES)
def test_draws_agree_with_quadrature(name: str) -> None:
    data = sample(loads(_problem(name)), draws=2500, seed=11, progress=False)
    for parameter, (values, below) in _exact(CASES[name]).items():
        draws = data.posterior[parameter].values
        assert float(arviz.rhat(draws)) < 1.02
        for level in np.quantile(draws, SHARES):
            seen = (draws <= level).astype(float)
            error = seen.std() / np.sqrt(float(arviz.ess(seen, method="mean")))
            assert abs(seen.mean() - np.interp(level, values, below)) < 5.5 * error + 2 / GRID, (parameter, level)
