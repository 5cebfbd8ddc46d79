"""What tests of functions, events and steady states share: events from text, and sensitivities by differences."""

from __future__ import annotations

import numpy as np

from equifinal.language.model import Event
from equifinal.language.parser import parse_expression as read
from equifinal.ode import Status, simulate


def event(time: str, first: bool = False, **sets: str) -> Event:
    return Event(read(time), {name: read(value) for name, value in sets.items()}, first)


def lane(system, values) -> list[float]:
    return [values[name] if name in values else float(system.model.constants[name]) for name in system.arguments]


def differences(system, p, times, **options):
    """Outputs by parameters, by central differences of accurate solutions: (T, outputs, parameters)."""
    p = np.array(p, float)
    steps = 1e-5 * np.maximum(np.abs(p), 1e-3)
    accurate = {"rtol": 1e-11, "atol": 1e-14, "max_steps": 200_000, "method": "stiff", **options}
    columns = []
    for j in range(system.n_sensitivities):
        ends = np.array([p, p])
        ends[0, j] += steps[j]
        ends[1, j] -= steps[j]
        up, down = simulate(system, ends, times, **accurate).outputs
        columns.append((up - down) / (2 * steps[j]))
    return np.stack(columns, axis=-1)


def assert_sensitivities(system, p, times, bound=1e-5, **options):
    """Agree with finite differences, in units of the largest of each."""
    found = simulate(system, [p], times, sensitivities=True, rtol=1e-9, atol=1e-12, max_steps=10**6, **options)
    assert found.status[0] == Status.ok
    expected = differences(system, p, times, **{name: options[name] for name in options if name != "method"})
    error = np.abs(found.sensitivities[0] - expected).max((0, 1))
    assert (error <= bound * np.maximum(np.abs(expected).max((0, 1)), 1e-12)).all()
    plain = simulate(system, [p], times, rtol=1e-9, atol=1e-12, max_steps=10**6, **options)
    np.testing.assert_array_equal(plain.outputs, found.outputs)
    np.testing.assert_array_equal(plain.states, found.states)
