"""What a user of `simulate` relies on: statuses, independent lanes, inputs, shapes, threads."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.errors import SolverError
from equifinal.language.model import Model
from equifinal.ode import Inputs, Status, compile_system, simulate
from tests.support.ode_problems import CASCADE, HIRES, HIV, ROBERTSON, SI, VAN_DER_POL

METHODS = ["auto", "explicit", "stiff"]


def compiled(equations: str, outputs=("x",), parameters=None, **declared):
    model = Model.parse(equations, outputs, **declared)
    return compile_system(model, tuple(parameters or model.parameters))


# --- failures ---------------------------------------------------------------------------------------------

SQUARE = compiled("x' = a*x^2\nx(0) = b", parameters=["a", "b"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sensitivities", [False, True])
def test_blow_up_in_finite_time(method, sensitivities):
    """x = 1/(1 - t): right before t = 1, NaN after, with a status."""
    times = np.array([0.0, 0.5, 0.9, 1.5, 2.0])
    found = simulate(SQUARE, [[1.0, 1.0]], times, method=method, sensitivities=sensitivities)
    assert found.status[0] in (Status.step_too_small, Status.not_finite)
    np.testing.assert_allclose(found.outputs[0, :3, 0], [1.0, 2.0, 10.0], rtol=1e-4)
    assert np.isnan(found.outputs[0, 3:]).all()
    assert np.isnan(found.states[0, 3:]).all()
    if sensitivities:
        assert np.isnan(found.sensitivities[0, 3:]).all()
        assert np.isfinite(found.sensitivities[0, :3]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_parameters_that_are_not_numbers(method, bad):
    found = simulate(SQUARE, [[bad, 1.0], [1.0, bad], [-1.0, 1.0]], [1.0], method=method)
    assert found.status.tolist() == [Status.not_finite, Status.not_finite, Status.ok]
    assert np.isnan(found.outputs[:2]).all()
    assert found.outputs[2, 0, 0] == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_huge_parameters(method):
    p = [[1e300, 1e300], [-1e300, 1.0], [1e300, 1e-300], [1e-300, 1e-300], [-1e10, 1e10]]
    found = simulate(SQUARE, p, [1.0], method=method)
    assert found.status[0] != Status.ok
    assert found.status[3] == Status.ok
    for status, output in zip(found.status, found.outputs[:, 0, 0], strict=True):
        assert (status == Status.ok) == np.isfinite(output)


@pytest.mark.parametrize("method", METHODS)
def test_division_by_zero(method):
    system = compiled("x' = 1/a\ny = x/b\nx(0) = 1/c", ["y"], ["a", "b", "c"])
    p = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    found = simulate(system, p, [1.0], method=method)
    assert found.status.tolist() == [Status.not_finite] * 3 + [Status.ok]
    assert np.isnan(found.outputs[:3]).all()


def test_unused_parameters_may_be_anything():
    system = compiled("x' = -x\nx(0) = 1", parameters=["noise"])
    found = simulate(system, [[np.nan]], [1.0])
    assert found.status[0] == Status.ok


@pytest.mark.parametrize("method", METHODS)
def test_step_limit(method):
    found = simulate(HIRES.system, HIRES.p, HIRES.times, max_steps=20, method=method)
    assert found.status[0] == Status.too_many_steps
    assert found.steps[0] == 20
    assert np.isnan(found.outputs[0, -1]).all()


def test_many_times_and_breaks_do_not_use_up_the_steps():
    """A step that ends where it must is no sign of trouble."""
    dense = np.linspace(0, HIRES.times[-1], 3001)
    assert simulate(HIRES.system, HIRES.p, dense, max_steps=1000).status[0] == Status.ok
    system = compiled("x' = u - x\nx(0) = 0", inputs=["u"])
    breaks = np.arange(3000) / 100
    inputs = Inputs.step(breaks, np.arange(3000) % 2)
    for method in METHODS:
        found = simulate(system, np.empty((1, 0)), [30.0], inputs=inputs, max_steps=100, method=method)
        assert found.status[0] == Status.ok
        assert found.outputs[0, 0, 0] == pytest.approx(0.5, abs=0.01)


def test_every_status_has_advice():
    for status in Status:
        assert status.message
    assert "max_steps" in Status.too_many_steps.message


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([SI, HIV, HIRES, ROBERTSON, VAN_DER_POL, CASCADE]),
    st.integers(0, 2**32 - 1),
    st.sampled_from(METHODS),
    st.booleans(),
)
def test_any_parameters_give_a_status(problem, seed, method, sensitivities):
    """Magnitudes from 1e-30 to 1e30, either sign, some zero: finite numbers or a status, always an end."""
    rng = np.random.default_rng(seed)
    p = 10 ** rng.uniform(-30, 30, size=(4, problem.p.shape[1])) * rng.choice([-1, 1], size=(4, problem.p.shape[1]))
    p[rng.random(p.shape) < 0.1] = 0.0
    found = simulate(problem.system, p, problem.times, method=method, sensitivities=sensitivities, max_steps=500)
    assert (found.steps <= 500 + len(problem.times)).all()
    for lane in range(4):
        assert found.status[lane] in list(Status)
        solved = np.isfinite(found.outputs[lane]).all() and np.isfinite(found.states[lane]).all()
        assert solved == (found.status[lane] == Status.ok)
        reached = np.isfinite(found.outputs[lane]).all(axis=1)
        assert (np.diff(reached.astype(int)) <= 0).all()  # once NaN, NaN to the end


# --- lanes ------------------------------------------------------------------------------------------------


def same(a, b) -> bool:
    return all(
        (x is None and y is None) or np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("problem", [SI, HIV, HIRES, VAN_DER_POL], ids=lambda p: p.name)
@pytest.mark.parametrize("sensitivities", [False, True])
def test_lanes_are_bitwise_independent(problem, sensitivities):
    """Alone, in a batch, in another order, beside failing lanes, with any number of threads: same bits."""
    p = problem.lanes(24, 0.5, seed=1)
    p[3], p[11] = np.nan, 1e200

    def solve(lanes, threads=1):
        return simulate(problem.system, lanes, problem.times, sensitivities=sensitivities, threads=threads)

    together = solve(p)
    assert together.status[3] == Status.not_finite
    assert same(together, solve(p, threads=2))
    assert same(together, solve(p, threads=7))
    order = np.random.default_rng(2).permutation(24)
    shuffled = solve(p[order], threads=3)
    assert same([None if a is None else a[order] for a in together], shuffled)
    for lane in range(24):
        alone = solve(p[lane : lane + 1])
        assert same([None if a is None else a[lane : lane + 1] for a in together], alone)


def test_many_callers_at_once():
    p = HIV.lanes(64, 0.3)
    expected = simulate(HIV.system, p, HIV.times, threads=1)
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(simulate, HIV.system, p, HIV.times, threads=3) for _ in range(24)]
        assert all(same(expected, call.result()) for call in calls)


def test_first_sensitivities_from_several_threads():
    """Lazily compiled code is asked for by all at the same moment."""
    system = compiled("x' = -k*x*x/(1 + x)\nx(0) = s", parameters=["k", "s"])
    barrier, results = threading.Barrier(4), []

    def work():
        barrier.wait()
        results.append(simulate(system, [[1.0, 2.0]], [1.0], sensitivities=True))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(same(results[0], result) for result in results)


def test_interpreter_runs_on_during_a_solve():
    """The interpreter lock is released: another thread counts while this one solves."""
    count, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            count[0] += 1

    thread = threading.Thread(target=tick)
    lanes = HIRES.lanes(3000, 0.1)
    simulate(HIRES.system, lanes[:1], HIRES.times)
    thread.start()
    try:
        before = count[0]
        simulate(HIRES.system, lanes, HIRES.times, threads=1)
        during = count[0] - before
    finally:
        stop.set()
        thread.join()
    assert during > 1000


# --- processes --------------------------------------------------------------------------------------------


def test_pickling():
    copy = pickle.loads(pickle.dumps(HIV.system))
    assert copy.arguments == HIV.system.arguments
    assert same(simulate(copy, HIV.p, HIV.times), simulate(HIV.system, HIV.p, HIV.times))


def _solve_elsewhere(system):
    return simulate(system, HIV.lanes(3, 0.2), HIV.times, sensitivities=True)


def test_spawned_process():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(_solve_elsewhere, HIV.system).result()
    assert same(there, _solve_elsewhere(HIV.system))


# --- times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_time_zero(method):
    found = simulate(SI.system, SI.p, [0.0], method=method)
    assert found.outputs[0, 0, 0] == 0.25 * 40
    assert found.states[0, 0].tolist() == [9960.0, 40.0]
    assert found.steps[0] == 0


@pytest.mark.parametrize("sensitivities", [False, True])
def test_no_times_and_no_lanes(sensitivities):
    found = simulate(SI.system, SI.p, [], sensitivities=sensitivities)
    assert found.outputs.shape == (1, 0, 1)
    assert found.status.tolist() == [0]
    found = simulate(SI.system, np.empty((0, 5)), SI.times, sensitivities=sensitivities)
    assert found.outputs.shape == (0, 10, 1)
    assert found.states.shape == (0, 10, 2)
    assert (found.sensitivities is not None) == sensitivities


def test_repeated_and_crowded_times():
    times = np.array([0.0, 0.0, 1.0, 1.0, np.nextafter(1.0, 2.0), 5.0, 5.0])
    for method in METHODS:
        found = simulate(SI.system, SI.p, times, method=method)
        assert found.status[0] == Status.ok
        x = found.outputs[0, :, 0]
        assert x[0] == x[1]
        assert x[2] == x[3] == pytest.approx(x[4], rel=1e-12)
        assert x[5] == x[6]


def test_very_long_and_very_short_spans():
    system = compiled("x' = -k*x\nx(0) = 1", parameters=["k"])
    for scale in (1e-200, 1e-12, 1.0, 1e12, 1e200):
        for method in METHODS:
            found = simulate(system, [[1 / scale]], [scale], method=method)
            assert found.status[0] == Status.ok
            assert found.outputs[0, 0, 0] == pytest.approx(np.exp(-1), rel=1e-5)


def test_wrong_arguments_are_refused():
    good = {"p": SI.p, "times": SI.times}
    for change in (
        {"times": [2.0, 1.0]},
        {"times": [-1.0]},
        {"times": [np.nan]},
        {"times": [1.0, np.nan, 2.0]},
        {"times": [np.inf, np.inf]},
        {"times": [-np.inf, 1.0]},
        {"times": [[1.0]]},
        {"p": [1.0] * 5},
        {"p": [[1.0] * 4]},
        {"rtol": 0.0},
        {"atol": -1.0},
        {"rtol": np.nan},
        {"method": "fast"},
    ):
        with pytest.raises(SolverError):
            simulate(SI.system, **(good | change))


def test_missing_and_repeated_parameters_are_refused():
    with pytest.raises(SolverError, match="'gamma' of the model is missing; did you mean 'gama'"):
        compile_system(SI.model, ("beta", "rho", "gama", "I0"))
    with pytest.raises(SolverError, match="'N' appears twice"):
        compile_system(SI.model, ("beta", "rho", "gamma", "I0", "N"))


# --- inputs -----------------------------------------------------------------------------------------------

TANK = compiled("x' = u - k*x\nuse = u*x\nx(0) = 0", ["x", "use"], ["k"], inputs=["u"])


def tank(times, breaks, values, k):
    """x' = u - k x with u constant between breaks, in closed form; right-continuous u."""
    found = []
    for t in times:
        x, here = 0.0, 0.0
        for start, end, u in zip(breaks, [*breaks[1:], np.inf], values, strict=True):
            lower, upper = max(start, here), min(end, t)
            if upper > lower:
                x = u / k + (x - u / k) * np.exp(-k * (upper - lower))
                here = upper
        found.append(x)
    return np.array(found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [0.7, 500.0])
def test_steps_in_inputs(method, k):
    """A short pulse between output times is seen; outputs at a jump take the value from the right."""
    breaks, values = [0.0, 3.0, 3.001, 6.0], [0.0, 1000.0, 0.0, 2.0]
    times = np.array([1.0, 2.9, 3.0, 3.1, 4.0, 6.0, 8.0])
    found = simulate(TANK, [[k]], times, inputs=Inputs.step(breaks, values), method=method, max_steps=100_000)
    assert found.status[0] == Status.ok
    x = tank(times, breaks, values, k)
    np.testing.assert_allclose(found.states[0, :, 0], x, rtol=1e-5, atol=1e-8)
    u = np.array(values)[np.searchsorted(breaks, times, side="right") - 1]
    np.testing.assert_allclose(found.outputs[0, :, 1], u * x, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("breaks", "values", "slopes", "words"),
    [
        ([0.0, 0.0], np.ones((2, 1)), np.ones((2, 1)), "finite, ascending times"),
        ([1.0], np.ones((1, 1)), np.ones((1, 1)), "from time 0 on; the first break is at 1.0"),
        ([0.0], np.ones((2, 1)), np.ones((2, 1)), "a row for each break and a column for each input"),
        ([0.0], np.ones((1, 1)), [[np.nan]], "values and slopes of inputs must be finite"),
    ],
)
def test_inputs_that_make_no_sense(breaks, values, slopes, words):
    with pytest.raises(SolverError, match=words):
        Inputs(breaks, values, slopes)


@pytest.mark.parametrize("method", METHODS)
def test_kinks_in_inputs(method):
    """x' = u(t) for a polygon: x is its integral."""
    system = compiled("x' = u\nx(0) = 0", inputs=["u"])
    knots, levels = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, -1.0])
    times = np.linspace(0, 6, 25)
    found = simulate(system, np.empty((1, 0)), times, inputs=Inputs.linear(knots, levels), method=method)
    fine = np.linspace(0, 6, 6001)
    u = np.interp(fine, knots, levels)
    integral = np.concatenate([[0], np.cumsum((u[1:] + u[:-1]) / 2 * np.diff(fine))])
    np.testing.assert_allclose(found.outputs[0, :, 0], np.interp(times, fine, integral), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_sensitivities_with_inputs(method):
    inputs = Inputs.linear([0, 1, 2, 5], [[0.0], [5.0], [1.0], [1.0]])
    times = np.array([0.5, 1.0, 3.0, 5.0])
    k = 1.3
    found = simulate(TANK, [[k]], times, inputs=inputs, method=method, sensitivities=True, rtol=1e-8)
    ends = simulate(TANK, [[k * (1 + 1e-5)], [k * (1 - 1e-5)]], times, inputs=inputs, rtol=1e-12, atol=1e-14)
    difference = (ends.outputs[0] - ends.outputs[1]) / (2e-5 * k)
    np.testing.assert_allclose(found.sensitivities[0, :, :, 0], difference, rtol=1e-5, atol=1e-7)


def test_inputs_before_zero_and_after_the_end():
    system = compiled("x' = u\nx(0) = 0", inputs=["u"])
    inputs = Inputs(np.array([-2.0, 1.0]), np.array([[0.0], [3.0]]), np.array([[1.0], [100.0]]))
    found = simulate(system, np.empty((1, 0)), [1.0, 3.0], inputs=inputs)
    np.testing.assert_allclose(found.outputs[0, :, 0], [2.5, 8.5], rtol=1e-6)


def test_wrong_inputs_are_refused():
    with pytest.raises(SolverError, match="must be given"):
        simulate(TANK, [[1.0]], [1.0])
    with pytest.raises(SolverError, match="2 are given"):
        simulate(TANK, [[1.0]], [1.0], inputs=Inputs.step([0.0], [[1.0, 2.0]]))
    with pytest.raises(SolverError, match="from time 0"):
        Inputs(np.array([1.0]), np.zeros((1, 1)), np.zeros((1, 1)))
    for times, values in (([0, 0], [1, 2]), ([1, 0], [1, 2]), ([0, 1], [1]), ([0, np.nan], [1, 2]), ([], [])):
        with pytest.raises(SolverError):
            Inputs.linear(times, values)
        with pytest.raises(SolverError):
            Inputs.step(times, values)


# --- code -------------------------------------------------------------------------------------------------


def test_names_that_mean_something_in_python_are_harmless():
    system = compiled(
        "λ' = -in*λ + is*lambda\nlambda' = is - def^2*lambda\nλ(0) = None\nlambda(0) = S/N", ["λ", "lambda"]
    )
    p = dict(zip(system.arguments, [[0.5, 2.0, 1.5, 0.3, 0.2, 4.0]] * 6, strict=False))
    assert len(system.arguments) == len(p) == 6
    found = simulate(system, np.full((1, 6), 0.5), [1.0])
    assert found.status[0] == Status.ok


def test_experiments_share_code():
    other = compile_system(SI.model.vary(constants={"N": 500}), tuple(SI.parameters))
    elsewhere = compile_system(SI.model.vary(initial={"S": "N - 2*I0"}), tuple(SI.parameters))
    mine = SI.system
    assert [a is b for a, b in zip(mine._plain.codes, other._plain.codes, strict=True)] == [True, True]
    assert [a is b for a, b in zip(mine._plain.codes, elsewhere._plain.codes, strict=True)] == [True, False]
    assert elsewhere._dynamics is not None
    first = simulate(elsewhere, SI.p, [0.0]).states[0, 0]
    assert first.tolist() == [9920.0, 40.0]
