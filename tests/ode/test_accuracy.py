"""A solve that says ok is right: every state to its own size, however small, whenever it begins to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from mpmath import expm, mp, mpf
from mpmath import matrix as exact_matrix

from equifinal.language.model import Model
from equifinal.ode import Inputs, Status, compile_system, simulate
from tests.support.random_systems import random_network

METHODS = ["auto", "stiff"]


def solve(equations: str, parameters: dict[str, float], times, inputs=None, **settings):
    model = Model.parse(equations, ["x"], inputs=["u"] if inputs else [])
    system = compile_system(model, tuple(parameters))
    return simulate(system, np.array([[*parameters.values()]]), times, inputs=inputs, **settings)


def own_errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Largest errors over time in units of each column's largest value."""
    return np.abs(found - exact).max(axis=0) / np.abs(exact).max(axis=0)


def linear(rates, start, times) -> np.ndarray:
    """x' = rates x in fifty digits, (T, n)."""
    with mp.workdps(50):
        moved = [expm(exact_matrix(rates) * mpf(float(t))) * exact_matrix(start) for t in times]
        return np.array([[float(x) for x in row] for row in moved])


# --- states that begin at zero ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("e", [1.0, 1e-4, 1e-20, 1e-60])
def test_powers_in_a_cascade(method, e):
    """C follows the square of B, and neither has a slope of its own size at the start."""
    times = np.arange(1.0, 21.0)
    found = solve(
        "A' = -0.05*A\nB' = e*A - B\nC' = B^2 - d*C\nx = C\nA(0) = 1\nB(0) = 0\nC(0) = 0",
        {"e": e, "d": 20.0},
        times,
        method=method,
    )
    assert found.status[0] == Status.ok
    # B = e/0.95 (exp(-0.05 t) - exp(-t)), and C is the integral of exp(-20 (t - s)) B(s)^2
    slow, mixed, fast = (np.exp(-rate * times) for rate in (0.1, 1.05, 2.0))
    c = slow / 19.9 - 2 * mixed / 18.95 + fast / 18 - (1 / 19.9 - 2 / 18.95 + 1 / 18) * np.exp(-20 * times)
    assert own_errors(found.outputs[0], (e / 0.95) ** 2 * c[:, None]).max() < 1e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rate", [1e-4, 1e-12])
def test_errors_of_the_first_moments_are_not_amplified(method, rate):
    """Mutants of mutants: each state feeds itself, and the third is seeded by the second."""
    times = np.linspace(1.0, 30.0, 30)
    found = solve(
        "A' = A\nB' = m*A + B\nC' = m*B + C\nx = C\nA(0) = 1e6\nB(0) = 0\nC(0) = 0", {"m": rate}, times, method=method
    )
    assert found.status[0] == Status.ok
    grown = 1e6 * np.exp(times)
    exact = np.stack([grown, rate * times * grown, (rate * times) ** 2 / 2 * grown], axis=1)
    assert own_errors(found.states[0], exact).max() < 3e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("r", [2.0, 100.0])
@pytest.mark.parametrize("late", [False, True])
def test_loops_seeded_from_almost_nothing(method, r, late):
    """I and V feed each other, at rates that the seed does not show; from the start, or from an input on."""
    span = 60.0 / r
    times = span * np.linspace(0.1, 1.0, 10)
    delay = 0.7 * span if late else 0.0
    source = "m*u" if late else "m*A"
    found = solve(
        f"A' = 0*A\nB' = {source} - 0.1*B\nI' = m*B + r*V - I\nV' = r*I - V\nx = V\n"
        "A(0) = 1\nB(0) = 0\nI(0) = 0\nV(0) = 0",
        {"m": 1e-9, "r": r},
        times + delay,
        Inputs.step([0.0, delay], [0.0, 1.0]) if late else None,
        method=method,
    )
    assert found.status[0] == Status.ok
    rates = [[0, 0, 0, 0], [1e-9, -0.1, 0, 0], [0, 1e-9, -1, r], [0, 0, r, -1]]
    exact = linear(rates, [1, 0, 0, 0], times)
    assert own_errors(found.states[0], exact).max() < 3e-5


@pytest.mark.parametrize("method", METHODS)
def test_states_that_stay_zero_cost_nothing(method):
    equations = "A' = -A\nB' = A - B\nx = B\nA(0) = 1\nB(0) = 0"
    still = "\nD' = C*D - D\nC' = D*A - C\nC(0) = 0\nD(0) = 0"
    times = np.linspace(1.0, 10.0, 10)
    without, found = (solve(text, {}, times, method=method) for text in (equations, equations + still))
    assert found.status[0] == Status.ok
    assert found.steps[0] <= 1.5 * without.steps[0]
    assert (found.states[0, :, 2:] == 0.0).all()


@pytest.mark.parametrize("method", METHODS)
def test_saturation_right_after_the_start(method):
    """B is made at full speed from a time on that no first step sees."""
    times = np.linspace(0.05, 0.4, 8)
    found = solve(
        "A' = k\nB' = q*A/(K + A)\nx = B\nA(0) = 0\nB(0) = 0\nD' = -D\nD(0) = 1",
        {"k": 0.5, "q": 5e-5, "K": 1e-8},
        times,
        method=method,
    )
    assert found.status[0] == Status.ok
    b = 5e-5 * (times - 2e-8 * np.log1p(times / 2e-8))
    assert own_errors(found.outputs[0], b[:, None]).max() < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_states_at_the_end_of_the_range_of_numbers(method):
    """E comes to 1e-297: a guess of its size that cannot be better is not improved again and again."""
    found = solve(
        "A' = -A\nB' = m*A^2 - B\nC' = B^4 - C\nE' = C^3 - E\nx = E\nA(0) = 1\nB(0) = 0\nC(0) = 0\nE(0) = 0",
        {"m": 1e-24},
        np.linspace(0.5, 5.0, 10),
        method=method,
    )
    assert found.status[0] == Status.ok
    assert 1e-299 < found.outputs.max() < 1e-295
    assert found.steps[0] < 2000


def test_what_is_zero_stays_zero_beside_large_slopes():
    """Whatever units a state has that depends on it."""
    found = solve("A' = -A\nB' = s*A - 1000*B + 1\nx = B\nA(0) = 0\nB(0) = 0", {"s": 1e12}, [1.0, 10.0], method="stiff")
    assert found.status[0] == Status.ok
    assert (found.states[0, :, 0] == 0.0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("a", [0.013, 0.1, 0.7, 123.456, 1e5 / 7])
def test_rounding_errors_are_not_followed(method, a):
    """In equilibrium C is zero, but for the rounding errors of slopes that cancel."""
    found = solve(
        "A' = -3*k*A + k*B/g\nB' = 3*k*A - k*B/g\nC' = 3*g*k*A - k*B\nx = C\nA(0) = a\nB(0) = 3*a*g\nC(0) = 0",
        {"k": 0.37, "g": 3.1, "a": a},
        np.arange(1.0, 21.0),
        method=method,
    )
    assert found.status[0] == Status.ok
    assert found.steps[0] < 100
    assert np.abs(found.outputs).max() < 1e-12 * a


# --- sensitivities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, "explicit"])
@pytest.mark.parametrize("rate", [1.0, 300.0])
def test_sensitivities_of_an_equilibrium(method, rate):
    """x does not move, so that it allows any step; its sensitivities do."""
    times = np.linspace(0.01, 10.0, 20)
    settings = {"method": method, "max_steps": 100_000}
    equations, parameters = "x' = a - b*x\nx(0) = 1", {"a": rate, "b": rate}
    found = solve(equations, parameters, times, sensitivities=True, **settings)
    assert found.status[0] == Status.ok
    response = -np.expm1(-rate * times) / rate
    np.testing.assert_allclose(found.sensitivities[0, :, 0], np.stack([response, -response], axis=1), rtol=1e-4)
    assert (found.states == solve(equations, parameters, times, **settings).states).all()


def test_a_sensitivity_of_a_state_that_is_zero():
    """With e = 0 there is no B, but there would be with a little more."""
    times = np.linspace(1.0, 10.0, 10)
    found = solve("A' = -A\nB' = e*A - 2*B\nx = B\nA(0) = 1\nB(0) = 0", {"e": 0.0}, times, sensitivities=True)
    exact = np.exp(-times) - np.exp(-2 * times)
    np.testing.assert_allclose(found.sensitivities[0, :, 0, 0], exact, atol=1e-5 * exact.max())


def test_a_lane_that_runs_out_of_steps_for_its_sensitivities():
    """It has a status, and all of it is NaN from there on."""
    found = solve("x' = a - b*x\nx(0) = 1", {"a": 1e4, "b": 1e4}, [1e-5, 10.0], sensitivities=True, method="explicit")
    assert found.status[0] == Status.too_many_steps
    assert np.isfinite(found.outputs[0, 0, 0])
    for array in (found.outputs, found.states, found.sensitivities, found.state_sensitivities):
        assert np.isnan(array[0, 1]).all()


# --- random models ----------------------------------------------------------------------------------------


def wrong_seeds(seeds: Sequence[int]) -> list[tuple]:
    """Random models whose solution says ok and is wrong, by both references; a lane may fail, but few do."""
    wrong, failed = [], 0
    for seed in seeds:
        network = random_network(seed)
        found = simulate(network.system, network.p, network.times, inputs=network.inputs, sensitivities=True)
        if found.status[0] != Status.ok:
            failed += 1
            continue
        errors = []
        for method in ("LSODA", "Radau"):
            errors.append(network.errors(found, method))
            if errors[-1][0] < 1e-4 and errors[-1][1] < 1e-3:
                break
        else:
            wrong.append((seed, network.family, errors))
    assert failed <= 1 + len(seeds) // 50
    return wrong


def test_random_models():
    assert wrong_seeds(range(25)) == []


def test_random_models_that_switch_at_the_beginning_of_a_step():
    """When an input jumps, and, for sensitivities, when a state leaves zero."""
    assert wrong_seeds([43984, 62896, 63076, 70385]) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_that_switches_at_once(method):
    """After a quiet stretch x runs away, and what z feels of it is over in a ten-thousandth of the steps before."""
    r, K, on, times = 82.0, 2.5e-7, 0.17, np.linspace(0.03, 0.39, 13)
    found = solve(
        "x' = r*u\nz' = x^2/(K + x^2)\nx(0) = 0.001\nz(0) = 0",
        {"r": r, "K": K},
        times,
        Inputs.step([0.0, on], [0.0, 1.0]),
        method=method,
    )
    late, root = np.maximum(times - on, 0.0), np.sqrt(K)
    missed = root / r * (np.arctan((0.001 + r * late) / root) - np.arctan(0.001 / root))
    exact = np.minimum(times, on) * 1e-6 / (K + 1e-6) + late - missed
    assert own_errors(found.states[0][:, 1:], exact[:, None]).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_random_models(first):
    assert wrong_seeds(range(first, first + 100)) == []
