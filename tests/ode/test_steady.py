"""Steady states, before a model starts and at the end of time: values, derivatives, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import SolverError
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression as read
from equifinal.ode import Inputs, Status, compile_system, simulate
from tests.support.happening import assert_sensitivities, event, lane

FOREVER = [np.inf]


def compiled(equations: str, outputs=("x",), parameters=None, **declared):
    model = Model.parse(equations, outputs, **declared)
    return compile_system(model, tuple(parameters or model.parameters))


def steady(system, p, **options):
    return simulate(system, p, FOREVER, sensitivities=True, **options)


@pytest.mark.parametrize("k", [1e-6, 0.3, 1e5])
def test_production_and_decay(k):
    found = steady(compiled("x' = s - k*x\nx(0) = 0", parameters=["s", "k"]), [[2.0, k]])
    assert found.status[0] == Status.ok
    np.testing.assert_allclose(found.outputs[0, 0, 0], 2 / k, rtol=1e-10)
    np.testing.assert_allclose(found.sensitivities[0, 0, 0], [1 / k, -2 / k**2], rtol=1e-10)


def test_conserved_totals():
    """Enzyme and substrate binding: both totals depend on parameters through the initial values."""
    system = compiled(
        "e' = -a*e*s + d*c\ns' = -a*e*s + d*c\nc' = a*e*s - d*c\ne(0) = E\ns(0) = S\nc(0) = c0", ["e", "s", "c"]
    )
    values = {"a": 0.7, "d": 1.3, "E": 2.0, "S": 5.0, "c0": 0.5}
    found = steady(system, [lane(system, values)])
    K, e, s = 1.3 / 0.7, 2.5, 5.5
    c = (e + s + K - np.sqrt((e + s + K) ** 2 - 4 * e * s)) / 2
    np.testing.assert_allclose(found.outputs[0, 0], [e - c, s - c, c], rtol=1e-10)
    by = {name: found.sensitivities[0, 0, 2, j] for j, name in enumerate(system.parameters)}
    root = np.sqrt((e + s + K) ** 2 - 4 * e * s)
    by_E, by_S = (1 - (e + s + K - 2 * s) / root) / 2, (1 - (e + s + K - 2 * e) / root) / 2
    by_K = (1 - (e + s + K) / root) / 2
    expected = {"E": by_E, "S": by_S, "c0": by_E + by_S, "d": by_K / 0.7, "a": -by_K * K / 0.7}
    assert by == pytest.approx(expected, rel=1e-9)


def test_weights_of_totals_are_found():
    """Dimers, and amounts in compartments of different volume: x + 2*y, V1*a + V2*b."""
    system = compiled(
        """
        x' = -2*k*x^2 + 2*l*y
        y' = k*x^2 - l*y
        a' = (b - a)*q/V1
        b' = (a - b)*q/V2
        x(0) = 3*k
        y(0) = 1/2
        a(0) = a0
        b(0) = 0
        """,
        ["x", "y", "a", "b"],
        constants={"V1": "0.15", "V2": "1.3"},
    )
    assert len(system._totals[0]) == 2
    values = {"k": 0.8, "l": 0.5, "q": 2.0, "a0": 4.0}
    found = steady(system, [lane(system, values)])
    x, y, a, b = found.outputs[0, 0]
    assert x + 2 * y == pytest.approx(3 * 0.8 + 1, rel=1e-12)
    assert 0.8 * x**2 == pytest.approx(0.5 * y, rel=1e-10)
    assert a == pytest.approx(b, rel=1e-10) == pytest.approx(4 * 0.15 / 1.45, rel=1e-10)


def test_unknown_weights_are_refused():
    system = compiled("a' = (b - a)/V\nb' = (a - b)/W\na(0) = 1\nb(0) = 0", ["a"])
    with pytest.raises(SolverError, match="weights"):
        steady(system, [[1.0, 2.0]])


@pytest.mark.parametrize(("start", "end"), [(0.9, 0.0), (1.1, 3.0)])
def test_the_state_that_is_reached(start, end):
    """x' = -x*(x - 1)*(x - 3) rests at 0 and at 3."""
    system = compiled("x' = -k*x*(x - 1)*(x - 3)\nx(0) = start", parameters=["k", "start"])
    found = steady(system, [[0.6, start]])
    assert found.status[0] == Status.ok
    assert found.outputs[0, 0, 0] == pytest.approx(end, abs=1e-10)


def test_an_unstable_state_that_is_never_left():
    """Without a first case there is no epidemic; with one, however few, there is."""
    system = compiled("S' = m - m*S - b*S*I\nI' = b*S*I - (g + m)*I\nS(0) = 1\nI(0) = i0", ["S", "I"])
    values = {"m": 0.1, "b": 2.0, "g": 0.5}
    p = [lane(system, values | {"i0": i0}) for i0 in (0.0, 1e-6)]
    found = simulate(system, p, FOREVER)
    assert found.status.tolist() == [Status.ok, Status.ok]
    np.testing.assert_allclose(found.outputs[0, 0], [1.0, 0.0])
    np.testing.assert_allclose(found.outputs[1, 0], [0.3, 0.1 * 0.7 / (2 * 0.3)], rtol=1e-10)


@pytest.mark.parametrize(
    "equations",
    [
        "x' = a\nx(0) = 1",
        "x' = a*x\nx(0) = 1",
        "x' = a*x^2\nx(0) = 1",
        "x' = a*v\nv' = -x\nx(0) = 1\nv(0) = 0",
        "x' = v\nv' = a*(1 - x^2)*v - x\nx(0) = 1\nv(0) = 0",
        "x' = x*(a - y)\ny' = y*(x - 1)\nx(0) = 2\ny(0) = 1",
        "x' = log(-a)\nx(0) = 1",
    ],
    ids=["drift", "growth", "blow-up", "oscillator", "limit cycle", "predator and prey", "nan"],
)
def test_there_is_none(equations):
    """A status for lanes without a steady state, and what came before remains."""
    system = compiled(equations)
    found = simulate(system, [[0.7]], [0.0, 0.5, np.inf], sensitivities=True)
    expected = Status.not_finite if "log" in equations else Status.no_steady_state
    assert found.status[0] == expected
    assert np.isnan(found.outputs[0, -1]).all()
    assert np.isfinite(found.outputs[0, :2]).all() == (expected == Status.no_steady_state)


def test_a_state_that_is_approached_ever_more_slowly():
    """x' = -a*x^2 is like 1/t."""
    found = steady(compiled("x' = -a*x^2\nx(0) = 1"), [[0.7]])
    assert found.status[0] == Status.ok
    assert abs(found.outputs[0, 0, 0]) < 1e-9
    assert abs(found.sensitivities[0, 0, 0, 0]) < 1e-9


SIGNALLING = Model.parse(
    """
    R' = -on*L*R + off*B
    B' = on*L*R - off*B - in*B
    P' = kin*B*(T - P)/(K + T - P) - phos*P + leak
    R(0) = Rtot
    B(0) = 0
    P(0) = T/10
    """,
    ["P", "B"],
    constants={"L": 5, "in": 0},
)
SIGNALLING_AT = {
    **{"on": 0.4, "off": 0.8, "Rtot": 3.0, "kin": 1.1, "T": 4.0, "K": 0.6, "phos": 0.9, "leak": 0.05},
}


@pytest.mark.parametrize("method", ["explicit", "stiff"])
def test_steady_before_stimulation(method):
    """The receptor's total depends on a parameter, the rest state is not rational; derivatives against differences."""
    model = SIGNALLING.vary(before=SIGNALLING.vary(constants={"L": "1/10"}))
    system = compile_system(model, model.parameters)
    p, times = lane(system, SIGNALLING_AT), np.array([0.0, 0.5, 2.0, 6.0])
    found = simulate(system, [p], times, method=method)
    long = simulate(compile_system(SIGNALLING, model.parameters), [[*p[:-2], 0.1, 0.0]], [1e5], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.outputs[0, 0], long.outputs[0, 0], rtol=1e-7)
    assert_sensitivities(system, p, times, method=method)


def test_events_and_onset_after_a_steady_state():
    model = SIGNALLING.vary(
        before=SIGNALLING.vary(constants={"L": 0}),
        onset="t0",
        levels={"extra": read("leak/2")},
        events=[
            event("t0 + 1", P="P + Rtot/5"),
            event("tau", B="B + extra", extra="extra + kin"),
            event("9", P="extra"),
        ],
    )
    system = compile_system(model, model.parameters)
    p = lane(system, SIGNALLING_AT | {"t0": -0.5, "tau": 2.1})
    assert_sensitivities(system, p, np.array([-1.0, 0.0, 1.0, 3.0, 10.0]))
    assert_sensitivities(system, p, np.array([-1.0, 3.0, np.inf]))


def test_rest_after_events_and_inputs():
    """Events later than the last finite time, and inputs, have all happened at infinity."""
    model = Model.parse("x' = u*rate - k*x\nx(0) = 1\ny = 2*x + 0*t", ["y"], inputs=["u"], constants={"rate": 1})
    model = Model(**{**{f: getattr(model, f) for f in model.__dataclass_fields__}, "constants": {}})
    model = model.vary(levels={"rate": read("0")}, events=[Event(read("100 + k"), {"rate": read("r")})])
    system = compile_system(model, ("k", "r"))
    inputs = Inputs.step([0.0, 500.0], [1.0, 3.0])
    found = simulate(system, [[0.5, 2.0]], [0.0, 1.0, np.inf], inputs=inputs, sensitivities=True)
    assert found.status[0] == Status.ok
    np.testing.assert_allclose(found.outputs[0, :, 0], [2.0, 2 * np.exp(-0.5), 2 * 12.0], rtol=1e-6)
    np.testing.assert_allclose(found.sensitivities[0, -1, 0], [-48.0, 12.0], rtol=1e-9)
    with pytest.raises(SolverError, match="time"):
        simulate(compiled("x' = sin(t) - x\nx(0) = 0"), np.empty((1, 0)), FOREVER)
    with pytest.raises(SolverError, match="last"):
        simulate(system, [[0.5, 2.0]], [np.inf, np.inf], inputs=inputs)


def test_a_lane_s_steady_state_is_its_own():
    model = SIGNALLING.vary(before=SIGNALLING.vary(constants={"L": "1/10"}))
    system = compile_system(model, model.parameters)
    rng = np.random.default_rng(3)
    p = np.array(lane(system, SIGNALLING_AT)) * np.exp(rng.normal(size=(30, len(system.arguments))))
    p[4, 0] = np.nan
    p[9, 0] = 0.0
    whole = simulate(system, p, [0.0, 1.0, np.inf], sensitivities=True, threads=1)
    assert (whole.status == Status.ok).sum() >= 28
    order = rng.permutation(30)
    shuffled = simulate(system, p[order], [0.0, 1.0, np.inf], sensitivities=True, threads=2)
    for a, b in zip(whole, shuffled, strict=True):
        np.testing.assert_array_equal(a[order], b)
    for i in (0, 4, 9, 29):
        for a, b in zip(whole, simulate(system, p[[i]], [0.0, 1.0, np.inf], sensitivities=True), strict=True):
            np.testing.assert_array_equal(a[[i]], b)


def test_states_that_are_not_there():
    """A drug that is not given: its states are zero, and so is what they bind, to the last bit."""
    model = Model.parse(
        """
        A' = s - d*A - kf*A*D + kr*C
        D' = ki*(given - D) - kf*A*D + kr*C
        C' = kf*A*D - kr*C - kq*C*B + kr*E
        B' = 0.3 - 0.7*B - kq*C*B + kr*E
        E' = kq*C*B - kr*E - kd*E
        A(0) = 1
        D(0) = 0
        C(0) = 0
        B(0) = 2
        E(0) = 0
        """,
        outputs=["A"],
        constants={"given": 0},
        parameters=["s", "d", "kf", "kr", "ki", "kq", "kd"],
    )
    system = compile_system(model, model.parameters)
    p = np.hstack([np.exp(2 * np.random.default_rng(0).normal(size=(50, 7))), np.zeros((50, 1))])
    found = simulate(system, p, [np.inf], sensitivities=True)
    assert (found.status == Status.ok).all()
    np.testing.assert_allclose(found.outputs[:, 0, 0], p[:, 0] / p[:, 1], rtol=1e-12)
    assert not found.states[:, 0, [1, 2, 4]].any()


def test_an_absent_state_that_nothing_would_take_away():
    model = Model.parse(
        "A' = s - d*A\nD' = -k*D\nC' = k*D*A - q*C\nA(0) = 0\nD(0) = 0\nC(0) = 0",
        outputs=["A"],
        parameters=["s", "d", "k", "q"],
    )
    found = simulate(compile_system(model, model.parameters), [[3.0, 2.0, 1.0, 0.0]], [np.inf])
    assert found.status[0] == Status.ok
    np.testing.assert_allclose(found.states[0, 0], [1.5, 0.0, 0.0], rtol=1e-12)
