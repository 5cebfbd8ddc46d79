"""The bundled problems are solved as an independent solver does it: SciPy, started anew where something happens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.prediction.simulate import simulate


def restarted(
    rates: Callable, start: list[float], times: np.ndarray, stops: list[tuple[float, Callable]], first: float = 0.0
) -> np.ndarray:
    """States at the times; at each stop a function changes state and conditions, after an observation there."""
    found, x, at, conditions = np.full((len(times), len(start)), np.nan), np.array(start, float), first, {}
    found[times <= first] = x
    for stop, jump in [*stops, (np.inf, None)]:
        inside = (times > at) & (times <= stop)
        end = min(stop, times[-1])
        if end > at:
            solved = solve_ivp(rates, (at, end), x, "LSODA", times[inside], args=(conditions,), rtol=1e-11, atol=1e-13)
            found[inside] = solved.y.T[: inside.sum()]
            last = solve_ivp(rates, (at, end), x, "LSODA", args=(conditions,), rtol=1e-11, atol=1e-13)
            x, at = last.y[:, -1], end
        if jump is not None:
            x, conditions = jump(x, conditions)
    return found


def oral(t: float, x: np.ndarray, given: dict) -> list[float]:
    return [-1.1 * x[0], 1.1 * x[0] - 0.15 * x[1] + given.get("infusion", 0.0)]


def add(amount: float) -> Callable:
    return lambda x, given: (x + [amount, 0.0], given)


def now(**new: float) -> Callable:
    return lambda x, given: (x, given | new)


def test_doses() -> None:
    problem = load(example_path("doses"))
    times = problem.experiments[0].times()
    doses = [(0.0, add(0.7 * 200)), *((12.0 * i, add(0.7 * 100)) for i in range(1, 6))]
    infusion = [(84.0, now(infusion=50.0)), (86.0, now(infusion=0.0))]
    expected = restarted(oral, [0.0, 0.0], times, doses + infusion)[:, 1] / 25
    (found,) = simulate(problem, {"ka": 1.1, "ke": 0.15, "V": 25, "F": 0.7})
    np.testing.assert_allclose(found.outputs["concentration"], expected, rtol=2e-5, atol=1e-8)


def test_theophylline() -> None:
    problem = load(example_path("theophylline"))
    times, dose = problem.experiments[0].times(), 4.4 * 72.4 * 0.8
    later = np.maximum(times - 0.3, 0.0)
    expected = dose / 30 * 1.5 / (1.5 - 0.1) * (np.exp(-0.1 * later) - np.exp(-1.5 * later))
    (found,) = simulate(problem, {"ka": 1.5, "ke": 0.1, "V": 30, "F": 0.8, "tlag": 0.3, "sigma": 1})
    np.testing.assert_allclose(found.outputs["concentration"], expected, rtol=2e-5, atol=1e-8)


def test_mrna() -> None:
    problem = load(example_path("mrna"))
    later = np.maximum(problem.experiments[0].times() - 2.2, 0.0)
    expected = 6 * 3 / (0.9 - 0.2) * (np.exp(-0.2 * later) - np.exp(-0.9 * later))
    (found,) = simulate(problem, {"t0": 2.2, "k": 6, "m0": 3, "beta": 0.2, "delta": 0.9, "sigma": 1})
    np.testing.assert_allclose(found.outputs["protein"], expected, rtol=2e-5, atol=1e-8)


def test_treatment() -> None:
    problem = load(example_path("treatment"))
    times = problem.experiments[0].times()

    def rates(t: float, x: np.ndarray, given: dict) -> list[float]:
        infected = 2.4e-5 * x[0] * x[2]
        return [10 - 0.01 * x[0] - infected, infected - 0.5 * x[1], (1 - given.get("eff", 0)) * 500 * x[1] - 3 * x[2]]

    expected = restarted(rates, [1000.0, 0.0, 50.0], times, [(8.0, now(eff=0.7))])[:, 2]
    at = {"beta": 2.4e-5, "delta": 0.5, "c": 3, "lambda": 10, "N": 1000, "eta": 0.7}
    (found,) = simulate(problem, at)
    np.testing.assert_allclose(found.outputs["V"], expected, rtol=1e-4)


def test_seasonal() -> None:
    problem = load(example_path("seasonal"))
    times = problem.experiments[0].times()

    def rates(t: float, x: np.ndarray, given: dict) -> list[float]:
        new = 60 * (1 + 0.15 * np.cos(2 * np.pi * t)) * x[0] * x[1] / 1e5
        return [-new + 0.8 * (1e5 - x[0] - x[1]), new - 26 * x[1]]

    expected = 0.3 * restarted(rates, [45000.0, 1000.0], times, [])[:, 1]
    at = {"beta": 60, "a": 0.15, "gamma": 26, "xi": 0.8, "rho": 0.3, "S0": 0.45, "I0": 0.01, "phi": 0.02}
    (found,) = simulate(problem, at)
    np.testing.assert_allclose(found.outputs["cases"], expected, rtol=1e-3)


@pytest.mark.parametrize(("experiment", "strength"), [(0, 1.0), (1, 0.2)])
def test_signalling(experiment: int, strength: float) -> None:
    problem = load(example_path("signalling"))
    times = problem.experiments[experiment].times()

    def rates(t: float, x: np.ndarray, given: dict) -> list[float]:
        on = 0.02 + 0.2 * given.get("stimulus", strength)
        return [on * (1 - x[0]) - 0.1 * x[0], x[0] - 0.05 * x[1]]

    at_rest = 0.02 / (0.02 + 0.1)
    states = restarted(rates, [at_rest, at_rest / 0.05], times, [(30.0, now(stimulus=0.0))])
    at = {"basal": 0.02, "on": 0.2, "off": 0.1, "synthesis": 1, "decay": 0.05, "s1": 1.5, "b1": 0.2, "s2": 0.8, "b2": 2}
    found = simulate(problem, at)[experiment]
    np.testing.assert_allclose(found.outputs["blot"], 1.5 * states[:, 0] + 0.2, rtol=2e-5)
    np.testing.assert_allclose(found.outputs["glow"], 0.8 * states[:, 1] + 2, rtol=2e-5)
