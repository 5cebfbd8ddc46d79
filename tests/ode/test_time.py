"""Models with functions, and with time in their equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from equifinal.language.model import Model
from equifinal.ode import Inputs, Status, compile_system, simulate
from tests.support.happening import differences

METHODS = ["auto", "explicit", "stiff"]


def compiled(equations: str, outputs=("x",), **declared):
    model = Model.parse(equations, outputs, **declared)
    return compile_system(model, model.parameters)


@pytest.mark.parametrize("method", METHODS)
def test_time_in_closed_form(method):
    """x' = a*t - x and y = x + t, from x(0) = b."""
    system = compiled("x' = a*t - x\nx(0) = b\ny = x + t", ["y"])
    times = np.linspace(0, 6, 13)
    found = simulate(system, [[1.7, 0.3]], times, method=method, sensitivities=True, rtol=1e-8)
    np.testing.assert_allclose(
        found.outputs[0, :, 0], 1.7 * (times - 1 + np.exp(-times)) + 0.3 * np.exp(-times) + times, rtol=1e-6
    )
    np.testing.assert_allclose(found.sensitivities[0, :, 0, 0], times - 1 + np.exp(-times), atol=1e-6)
    np.testing.assert_allclose(found.sensitivities[0, :, 0, 1], np.exp(-times), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_seasonal_forcing(method):
    """An epidemic with a seasonal contact rate, against SciPy; sensitivities against differences."""
    system = compiled(
        """
        rate = b*(1 + a*cos(2*pi*(t - phase)))
        S' = m - rate*S*I - m*S
        I' = rate*S*I - (g + m)*I
        S(0) = 0.1
        I(0) = 1e-3
        """,
        ["I"],
        constants={"pi": np.pi, "m": "1/50"},
    )
    value = {"b": 400.0, "a": 0.1, "phase": 0.2, "g": 36.0, "pi": np.pi, "m": 0.02}
    p, times = [value[name] for name in system.arguments], np.linspace(0.1, 2, 20)

    def rhs(t, x):
        rate = value["b"] * (1 + value["a"] * np.cos(2 * np.pi * (t - value["phase"])))
        new = rate * x[0] * x[1]
        return [0.02 - new - 0.02 * x[0], new - (36 + 0.02) * x[1]]

    reference = solve_ivp(rhs, (0, 2), [0.1, 1e-3], "Radau", times, rtol=1e-10, atol=1e-14).y[1]
    found = simulate(system, [p], times, method=method, sensitivities=True)
    assert found.status[0] == Status.ok
    assert np.abs(found.outputs[0, :, 0] - reference).max() < 3e-5 * reference.max()
    found = simulate(system, [p], times, method=method, sensitivities=True, rtol=1e-9, atol=1e-13, max_steps=10**5)
    expected = differences(system, p, times)
    assert (np.abs(found.sensitivities[0] - expected).max((0, 1)) < 1e-5 * np.abs(expected).max((0, 1))).all()


@pytest.mark.parametrize("method", METHODS)
def test_time_beside_inputs(method):
    """Time goes on when inputs stand still, and across their breaks."""
    system = compiled("x' = u + t\nx(0) = 0\ny = x + 0*u", ["y"], inputs=["u"])
    inputs = Inputs.linear([1.0, 2.0, 3.0], [0.0, 4.0, 4.0])
    times = np.array([0.5, 1.5, 2.5, 8.0])
    area = np.interp(times, [0, 1, 2, 8], [0, 0, 2, 26]) - np.where(times == 1.5, 0.5, 0)
    found = simulate(system, np.empty((1, 0)), times, inputs=inputs, method=method)
    np.testing.assert_allclose(found.outputs[0, :, 0], area + times**2 / 2, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("equations", "values"),
    [
        ("x' = s*x^n/(k^n + x^n) - d*x\nx(0) = 0.5", {"s": 2.0, "n": 2.3, "k": 1.1, "d": 0.4}),
        ("x' = -a*sqrt(x) + b*tanh(c*t)\nx(0) = 2", {"a": 0.3, "b": 0.8, "c": 0.5}),
        ("x' = a*exp(-b*t)*sin(c*t) - log(1 + x^2)\nx(0) = 1", {"a": 2.0, "b": 0.1, "c": 3.0}),
        ("x' = min(a, b*x) - max(c, x/4)\nx(0) = 0.3", {"a": 1.0, "b": 3.0, "c": 0.2}),
    ],
)
def test_sensitivities_through_functions(method, equations, values):
    system = compiled(equations)
    p, times = [values[name] for name in system.arguments], np.linspace(0.3, 4, 7)
    found = simulate(system, [p], times, method=method, sensitivities=True, rtol=1e-9, atol=1e-12)
    assert found.status[0] == Status.ok
    expected = differences(system, p, times)
    np.testing.assert_allclose(found.sensitivities[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_powers_of_a_state_that_is_zero(method):
    """A state that is and stays at zero does not spoil a lane, whatever the exponent."""
    system = compiled("x' = -x^n\ny' = 1 - y*sqrt(x)\nx(0) = 0\ny(0) = 0", ["y"])
    found = simulate(system, [[0.5], [1.0], [1.5], [2.0]], [1.0, 2.0], method=method, sensitivities=True)
    assert (found.status == Status.ok).all()
    np.testing.assert_allclose(found.outputs[:, :, 0], [[1.0, 2.0]] * 4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sensitivities", [False, True])
def test_outside_of_a_function_s_domain(method, sensitivities):
    """The log of a negative number, from the start on or on the way, is a status of its lane alone."""
    system = compiled("x' = -a + none*log(x)\nx(0) = b", constants={"none": 0})
    p = [[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.1, 1.0, 0.0], [np.nan, 1.0, 0.0]]
    found = simulate(system, p, [0.5, 2.0], method=method, sensitivities=sensitivities)
    assert found.status.tolist() == [Status.not_finite, Status.not_finite, Status.ok, Status.not_finite]
    assert np.isfinite(found.outputs[1, 0]).all()
    assert np.isnan(found.outputs[[0, 3]]).all()
    assert np.isnan(found.outputs[1, 1]).all()
