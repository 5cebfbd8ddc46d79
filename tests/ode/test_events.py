"""Doses, switches, lags, infusions, onsets: values against closed forms and SciPy, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.errors import SolverError
from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression as read
from equifinal.ode import Inputs, Status, compile_system, simulate
from tests.support.happening import assert_sensitivities, event, lane
from tests.support.restarts import solve_with_restarts

METHODS = ["auto", "explicit", "stiff"]
ACCURATE = {"rtol": 1e-10, "atol": 1e-13, "max_steps": 10**6}

ORAL = Model.parse(
    """
    depot' = -ka*depot
    central' = ka*depot - k*central
    depot(0) = 0
    central(0) = 0
    c = central/V
    """,
    ["c"],
    parameters=["ka", "k", "V", "lag", "F"],
)
ORAL_AT = {"ka": 1.2, "k": 0.15, "V": 10.0, "lag": 0.7, "F": 0.8}
GROWTH = Model.parse("x' = r*x\nx(0) = x0", ["x"], parameters=["r", "x0", "a"])


def happening(model: Model, *events: Event, **more):
    model = model.vary(events=events, **more)
    return compile_system(model, model.parameters)


def bateman(values, doses, times):
    """One compartment with absorption, doses given as (time, amount)."""
    ka, k, V, lag, F = (values[name] for name in ("ka", "k", "V", "lag", "F"))
    since = np.asarray(times)[:, None] - np.array([time + lag for time, _ in doses])
    amounts = F * np.array([amount for _, amount in doses])
    curve = ka / (ka - k) * (np.exp(-k * np.maximum(since, 0)) - np.exp(-ka * np.maximum(since, 0)))
    return (np.where(since > 0, curve, 0) * amounts).sum(axis=1) / V


# --- closed forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_repeated_oral_doses_with_lag(method):
    doses = [(12.0 * i, 100.0 + 10 * i) for i in range(6)]
    system = happening(ORAL, *(event(f"{t} + lag", depot=f"depot + F*{amount}") for t, amount in doses))
    assert len(system._plain.happening.kinds) == 1  # doses that differ in numbers share their code
    times = np.linspace(0, 80, 41)
    p = lane(system, ORAL_AT)
    found = simulate(system, [p], times, method=method, sensitivities=True)
    exact = bateman(ORAL_AT, doses, times)
    np.testing.assert_allclose(found.outputs[0, :, 0], exact, rtol=1e-5, atol=1e-6)
    for j, name in enumerate(system.parameters):
        h = 1e-5 * ORAL_AT[name]
        ends = [bateman(ORAL_AT | {name: ORAL_AT[name] + move}, doses, times) for move in (h, -h)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert np.abs(found.sensitivities[0, :, 0, j] - slope).max() < 1e-5 * np.abs(slope).max()


def test_unsorted_doses():
    """The order in which a model lists its events is not the order of their times."""
    doses = [(float(t), 10.0 + t) for t in (30, 0, 50, 10, 70, 20, 40, 60)]
    system = happening(ORAL, *(event(f"{t} + lag", depot=f"depot + F*{amount}") for t, amount in doses))
    times = np.linspace(0, 80, 41)
    found = simulate(system, [lane(system, ORAL_AT)], times)
    np.testing.assert_allclose(found.outputs[0, :, 0], bateman(ORAL_AT, doses, times), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_infusion(method):
    """A level that goes up and down: x' = rate - k*x for `duration`."""
    model = Model.parse("x' = inflow - k*x\nx(0) = 0", ["x"], constants={"inflow": 0})
    model = Model(
        **{
            **{name: getattr(model, name) for name in ("states", "inputs", "equations", "initial", "definitions")},
            "parameters": (),
            "constants": {},
            "outputs": ("x",),
        }
    ).vary(
        levels={"inflow": read("0")},
        events=[event("start", inflow="inflow + rate"), event("start + duration", inflow="inflow - rate")],
    )
    system = compile_system(model, model.parameters)
    values = {"k": 0.4, "rate": 3.0, "start": 1.0, "duration": 2.5}
    times = np.linspace(0, 8, 33)
    on, off = np.maximum(times - 1.0, 0), np.maximum(times - 3.5, 0)
    exact = 3 / 0.4 * ((1 - np.exp(-0.4 * on)) - (1 - np.exp(-0.4 * off)))
    p = lane(system, values)
    found = simulate(system, [p], times, method=method)
    assert found.states.shape == (1, 33, 1)  # levels do not show
    np.testing.assert_allclose(found.outputs[0, :, 0], exact, rtol=1e-5, atol=1e-7)
    assert_sensitivities(system, p, times + 0.013, method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t0", [-1.3, 0.0, 0.8])
def test_onset(method, t0):
    """mRNA transfection: nothing until t0, then a difference of exponentials."""
    model = Model.parse("m' = -delta*m\ng' = kappa*m - beta*g\nm(0) = m0\ng(0) = g0", ["g"], parameters=None).vary(
        onset="t0"
    )
    system = compile_system(model, model.parameters)
    values = {"delta": 0.3, "kappa": 2.0, "beta": 0.7, "m0": 1.5, "g0": 0.2, "t0": t0}
    times = np.array([-2.0, -1.0, -0.5, 0.3, 0.9, 2.0, 5.0])
    since = np.maximum(times - t0, 0)
    exact = 2.0 * 1.5 / (0.7 - 0.3) * (np.exp(-0.3 * since) - np.exp(-0.7 * since)) + 0.2 * np.exp(-0.7 * since)
    p = lane(system, values)
    found = simulate(system, [p], times, method=method)
    np.testing.assert_allclose(found.outputs[0, :, 0], exact, rtol=1e-5)
    assert (found.outputs[0, times < t0, 0] == 0.2).all()
    assert_sensitivities(system, p, times, method=method)


def test_rows_before_the_onset_see_their_own_time_and_inputs():
    model = Model.parse("x' = u\nx(0) = 5\ny = x + 100*u + t", ["y"], inputs=["u"]).vary(onset="t0")
    system = compile_system(model, ("t0",))
    inputs = Inputs.linear([0.0, 2.0], [1.0, 3.0])
    found = simulate(system, [[1.0]], [-4.0, 0.0, 0.5, 1.0, 2.0, 3.0], inputs=inputs)
    expected = [5 + 100 - 4, 105, 5 + 150 + 0.5, 5 + 200 + 1, 5 + 2.5 + 300 + 2, 5 + 5.5 + 300 + 3]
    np.testing.assert_allclose(found.outputs[0, :, 0], expected)
    early = simulate(system, [[-3.0]], [-4.0, 0.0], inputs=inputs)
    np.testing.assert_allclose(early.outputs[0, :, 0], [101, 5 + 3 + 100])
    with pytest.raises(SolverError, match="negative"):
        simulate(compile_system(GROWTH, GROWTH.parameters), [[1.0, 1.0, 1.0]], [-1.0])


# --- order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_events_at_one_time(method, sensitivities):
    """One after another, each seeing what the one before has done; all that an event sets, it reads before."""
    system = happening(
        GROWTH, event("1", x="2*x"), event("1", x="x + 1"), event("1", x="x^2"), event("3/2", first=True, x="x - a")
    )
    found = simulate(system, [[0.0, 3.0, 5.0]], [1.0, 1.25, 2.0], method=method, sensitivities=sensitivities)
    assert found.outputs[0, :, 0].tolist() == [3.0, 49.0, 44.0]
    swap = Model.parse("x' = 0*a\ny' = 0\nx(0) = 1\ny(0) = 2", ["x", "y"], parameters=["a"])
    found = simulate(happening(swap, event("1", x="y", y="x")), [[0.0]], [2.0], sensitivities=sensitivities)
    assert found.outputs[0, 0].tolist() == [2.0, 1.0]


@pytest.mark.parametrize("method", METHODS)
def test_at_an_observation(method):
    """What is first comes before an observation at its time, and before what is not."""
    late, early = event("1", x="2*x"), event("1", first=True, x="x + 1")
    times = [0.5, 1.0, 1.0, 2.0]
    for events, expected in (
        ([late], [3, 3, 3, 6]),
        ([early], [3, 4, 4, 4]),
        ([late, early], [3, 4, 4, 8]),
        ([early, late], [3, 4, 4, 8]),
    ):
        found = simulate(happening(GROWTH, *events), [[0.0, 3.0, 0.0]], times, method=method)
        assert found.outputs[0, :, 0].tolist() == expected
        unobserved = simulate(happening(GROWTH, *events), [[0.0, 3.0, 0.0]], [2.0], method=method)
        assert unobserved.outputs[0, 0, 0] == expected[-1]


def test_conditions_on_time():
    """``t < a`` and ``t <= a`` differ at a alone."""
    for sign, at in (("<", 2.0), ("<=", 1.0)):
        model = Model.parse(f"x' = 0*b\nx(0) = 0\ny = piecewise(1, t {sign} b, 2)", ["y"])
        system = compile_system(model, model.parameters)
        found = simulate(system, [[1.5]], [0.0, 1.5, 2.0])
        assert found.outputs[0, :, 0].tolist() == [1.0, at, 2.0]
    model = Model.parse("x' = piecewise(a, t < b, -a*x)\nx(0) = 0", ["x"])
    system = compile_system(model, model.parameters)
    assert_sensitivities(system, lane(system, {"a": 1.3, "b": 2.1}), np.array([1.0, 2.0, 2.5, 4.0]))


# --- edges ------------------------------------------------------------------------------------------------


def test_events_at_and_before_the_start():
    """They happen at the start, in the order of their own times, after an observation there unless they are first."""
    system = happening(GROWTH, event("-1", x="x + 1"), event("-2", x="3*x"), event("-1/2", first=True, x="x + 7"))
    found = simulate(system, [[0.0, 3.0, 0.0]], [0.0, 1.0])
    assert found.outputs[0, :, 0].tolist() == [10.0, 31.0]


@pytest.mark.parametrize("method", METHODS)
def test_a_negative_lag(method):
    """An event that would have been before the start happens at the start; its time has no influence any more."""
    system = happening(ORAL, event("lag", depot="depot + F*100"), event("12 + lag", depot="depot + F*100"))
    values, times = ORAL_AT | {"lag": -0.5}, np.array([0.0, 1.0, 11.0, 11.5, 13.0, 20.0])
    exact = bateman(values | {"lag": 0.0}, [(0.0, 100.0), (11.5, 100.0)], times)
    p = lane(system, values)
    np.testing.assert_allclose(simulate(system, [p], times).outputs[0, :, 0], exact, rtol=1e-5, atol=1e-7)
    assert_sensitivities(system, p, times[[0, 1, 2, 4, 5]], method=method)


def test_events_before_the_onset_move_with_it():
    system = happening(ORAL, event("lag", depot="depot + F*100"), onset="t0")
    values = ORAL_AT | {"lag": 0.5, "t0": 2.0}
    times = np.array([0.0, 1.0, 2.5, 4.0, 9.0])
    exact = bateman(values | {"lag": 0.0}, [(2.0, 100.0)], times)
    p = lane(system, values)
    np.testing.assert_allclose(simulate(system, [p], times).outputs[0, :, 0], exact, rtol=1e-5, atol=1e-7)
    assert_sensitivities(system, p, times)
    assert_sensitivities(system, lane(system, values | {"t0": -3.0}), times)


def test_an_event_at_the_start_exactly():
    """A lag that is zero: its derivative is that of a small positive lag."""
    system = happening(ORAL, event("lag", depot="depot + F*100"))
    p, times = lane(system, ORAL_AT | {"lag": 0.0}), np.array([1.0, 5.0])
    found = simulate(system, [p], times, sensitivities=True, rtol=1e-9)
    later = [bateman(ORAL_AT | {"lag": lag}, [(0.0, 100.0)], times) for lag in (1e-6, 0.0)]
    column = system.parameters.index("lag")
    np.testing.assert_allclose(found.sensitivities[0, :, 0, column], (later[0] - later[1]) / 1e-6, rtol=1e-4)


@pytest.mark.parametrize("time", ["100", "lag", "10 + lag"])
def test_an_event_after_the_last_observation(time):
    system = happening(ORAL, event("0", depot="100"), event(time, depot="log(-F)"))
    p, times = lane(system, ORAL_AT | {"lag": 50.0}), [1.0, 10.0]
    found = simulate(system, [p], times, sensitivities=True)
    assert found.status[0] == Status.ok
    np.testing.assert_allclose(
        found.outputs[0, :, 0], bateman(ORAL_AT | {"lag": 0.0, "F": 1.0}, [(0.0, 100.0)], times), rtol=1e-5
    )
    assert not found.sensitivities[0, :, 0, system.parameters.index("lag")].any()


def test_times_that_are_not_numbers():
    """A status of their lane alone; an event at infinity never happens."""
    system = happening(GROWTH, event("log(a)", x="x + 1"))
    p = [[0.0, 3.0, a] for a in (-1.0, 1.0, np.inf, 0.0, np.e)]
    found = simulate(system, p, [0.5, 2.0], sensitivities=True)
    assert found.status.tolist() == [Status.not_finite, *[Status.ok] * 4]
    plain = simulate(system, p, [0.5, 2.0])
    assert plain.status.tolist() == [Status.not_finite, *[Status.ok] * 4]
    assert np.isnan(plain.outputs[0]).all()
    assert plain.outputs[1:, :, 0].tolist() == [[4, 4], [3, 3], [4, 4], [3, 4]]
    started = compile_system(GROWTH.vary(onset="log(a)"), GROWTH.parameters)
    found = simulate(started, p, [0.5, 2.0])
    assert found.status.tolist() == [Status.not_finite, 0, Status.not_finite, Status.not_finite, 0]


@pytest.mark.parametrize("sensitivities", [False, True])
def test_division_by_zero_at_an_event(sensitivities):
    system = happening(GROWTH, event("1", x="x/a"))
    found = simulate(system, [[0.0, 3.0, 0.0], [0.0, 3.0, 2.0]], [0.5, 2.0], sensitivities=sensitivities)
    assert found.status.tolist() == [Status.not_finite, Status.ok]
    assert found.outputs[0, 0, 0] == 3.0
    assert np.isnan(found.outputs[0, 1]).all()
    assert found.outputs[1, :, 0].tolist() == [3.0, 1.5]


def test_ten_thousand_doses():
    """In no order, of ten thousand amounts; max_steps is not used up by them."""
    rng = np.random.default_rng(1)
    model = Model.parse("x' = -k*x\nx(0) = 0", ["x"], parameters=["k", "F"])
    when, amounts = rng.permutation(10_000) / 4 + 0.1, rng.integers(1, 1000, 10_000)
    events = [event(f"{t}", x=f"x + F*{amount}") for t, amount in zip(when, amounts, strict=True)]
    system = happening(model, *events)
    assert len(system._plain.happening.kinds) == 1
    times, k = np.array([100.0, 1000.0, 2501.0]), 0.3
    found = simulate(system, [[k, 0.5]], times, sensitivities=True)
    assert found.status[0] == Status.ok
    since = times[:, None] - when
    decay = np.where(since > 0, np.exp(-k * np.maximum(since, 0)), 0) * amounts
    np.testing.assert_allclose(found.outputs[0, :, 0], 0.5 * decay.sum(1), rtol=1e-5)
    np.testing.assert_allclose(found.sensitivities[0, :, 0, 0], -0.5 * (decay * since).sum(1), rtol=1e-4)


# --- random models ----------------------------------------------------------------------------------------


def random_model(rng) -> Model:
    """Two or three states with all sorts of terms, and events at unknown and known times, some at the same time."""
    states = ("x", "y", "z")[: rng.integers(2, 4)]
    terms = ["a*{0}/(1 + {0}^2)", "b*{1}", "c*{0}*{1}/(1 + {1}^2)", "level*{1}", "sin(t)*a", "exp(-{0}^2)"]
    lines = []
    for x in states:
        chosen = rng.choice(len(terms), 2, replace=False)
        pieces = [terms[i].format(*rng.permutation(states)[:2]) for i in chosen]
        lines += [f"{x}' = {pieces[0]} - {pieces[1]} - {x}", f"{x}(0) = {rng.choice(['a', 'b + 1', '1/2'])}"]
    model = Model.parse("\n".join([*lines, "p = level", "o = " + " + ".join(states)]), ["o", *states])
    model = Model(**{**vars_of(model), "parameters": ()})
    times = ["tau", "tau + 1/3", "2*tau", "2", "tau + c", "3 - tau/2", "1/2"]
    values = ["{0} + a", "b*{1}", "level + t/5", "{0}*{1} + c", "2", "-{0}/2 + tau"]
    events = []
    for _ in range(rng.integers(2, 7)):
        sets = rng.choice([*states, "level"], rng.integers(1, 3), replace=False)
        moment = rng.choice(times)
        new = {str(x): str(rng.choice(values)).format(*rng.permutation(states)[:2]) for x in sets}
        events.append(event(str(moment), bool(rng.integers(2)), **new))
    onset = read(str(rng.choice(["tau/4", "1/10", "-tau/3"]))) if rng.integers(2) else None
    return model.vary(levels={"level": read("a/2")}, events=events, onset=onset)


def vars_of(model: Model) -> dict:
    return {name: getattr(model, name) for name in model.__dataclass_fields__}


@pytest.mark.parametrize("seed", range(9))
def test_random_models_against_restarts(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    system = compile_system(model, model.parameters)
    values = {"a": 0.8, "b": 0.6, "c": 0.45, "tau": 0.93}
    times = np.sort(np.concatenate([[0.0, 0.5, 2.0], rng.uniform(0, 4, 9)]))
    found = simulate(system, [lane(system, values)], times, **ACCURATE, method=METHODS[seed % 3])
    assert found.status[0] == Status.ok
    np.testing.assert_allclose(found.outputs[0], solve_with_restarts(model, values, times), rtol=1e-6, atol=1e-7)
    off = times[(times != 0.5) & (times != 2.0) & (times != 0.0)]
    assert_sensitivities(system, lane(system, values), off, method=METHODS[seed % 3])


# --- lanes ------------------------------------------------------------------------------------------------


def test_a_lane_s_result_is_its_own():
    """Alone, among others, in another order, with several threads: the same to the last bit."""
    model = random_model(np.random.default_rng(5))
    system = compile_system(model, model.parameters)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 1.5, (40, len(system.arguments)))
    p[7] = np.nan
    times = np.linspace(0, 4, 9)
    whole = simulate(system, p, times, sensitivities=True, threads=1)
    order = rng.permutation(40)
    shuffled = simulate(system, p[order], times, sensitivities=True, threads=2)
    for a, b in zip(whole, shuffled, strict=True):
        np.testing.assert_array_equal(a[order], b)
    for i in (0, 7, 39):
        for a, b in zip(whole, simulate(system, p[[i]], times, sensitivities=True), strict=True):
            np.testing.assert_array_equal(a[[i]], b)
    np.testing.assert_array_equal(
        simulate(system, p, times).outputs, np.where(whole.status[:, None, None] == 0, whole.outputs, np.nan)
    )
