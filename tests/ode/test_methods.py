"""The two integration methods: order, dense output, accuracy, sensitivities, stiffness."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from equifinal.language.model import Model
from equifinal.ode import Inputs, compile_system, simulate
from equifinal.ode.stepping.explicit import DENSE, ERROR, STAGES
from tests.support.ode_problems import CASCADE, HIRES, HIV, ROBERTSON, SI, VAN_DER_POL, relative_error

METHODS = ["explicit", "stiff"]


def logistic(p: np.ndarray, times: np.ndarray) -> np.ndarray:
    """SI in closed form: I is logistic."""
    beta, rho, gamma, i0, n = p
    rate = beta * n - gamma
    top = rate / beta
    return rho * top / (1 + (top / i0 - 1) * np.exp(-rate * times))


# --- order ------------------------------------------------------------------------------------------------


def test_dormand_prince_satisfies_the_order_conditions():
    """All 17 conditions of order 5 for the solution, the 8 of order 4 for the embedded one, exactly."""
    a = [[Fraction(0)] * 7 for _ in range(7)]
    for i, row in enumerate(STAGES, start=1):
        a[i][: len(row)] = row
    weights = [*STAGES[-1], Fraction(0)]
    embedded = [w - e for w, e in zip(weights, ERROR, strict=True)]
    c = [sum(row) for row in a]

    def times(v):
        return [sum(a[i][j] * v[j] for j in range(7)) for i in range(7)]

    def product(*vs):
        return [np.prod([v[i] for v in vs]) for i in range(7)]

    one = [Fraction(1)] * 7
    c2, c3, c4 = product(c, c), product(c, c, c), product(c, c, c, c)
    ac, ac2, ac3 = times(c), times(c2), times(c3)
    trees = {
        1: [(one, 1)],
        2: [(c, 2)],
        3: [(c2, 3), (ac, 6)],
        4: [(c3, 4), (product(c, ac), 8), (ac2, 12), (times(ac), 24)],
        5: [
            (c4, 5),
            (product(c2, ac), 10),
            (product(ac, ac), 20),
            (product(c, ac2), 15),
            (ac3, 20),
            (product(c, times(ac)), 30),
            (times(product(c, ac)), 40),
            (times(ac2), 60),
            (times(times(ac)), 120),
        ],
    }
    for order, conditions in trees.items():
        for vector, denominator in conditions:
            assert sum(w * v for w, v in zip(weights, vector, strict=True)) == Fraction(1, denominator)
            if order <= 4:
                assert sum(w * v for w, v in zip(embedded, vector, strict=True)) == Fraction(1, denominator)
    assert sum(e * v for e, v in zip(ERROR, c4, strict=True)) != 0  # the estimate sees the fifth order


def test_dense_output_bump_vanishes_at_low_order():
    """The extra term of the continuous extension must not disturb moments below the fourth."""
    c = [Fraction(0), *(sum(row) for row in STAGES)]
    for power in range(3):
        assert float(sum(d * x**power for d, x in zip(DENSE, c, strict=True))) == pytest.approx(0, abs=1e-9)


FORCED = Model.parse(
    """
    x' = -k*x*y + u/(1 + y)
    y' = k*x*y - y^2/(2 + x) + u
    x(0) = 1
    y(0) = a
    """,
    ["x", "y"],
    inputs=["u"],
)
FORCED_SYSTEM = compile_system(FORCED, ("k", "a"))
FORCED_P = [[1.3, 0.5]]


def fixed_steps(method: str, count: int, *, sensitivities: bool = False, inside: bool = False):
    """Steps of equal length, by input breaks at every step and tolerances so loose that each is accepted.

    With ``inside``, output in the middle of the steps rather than at their ends.
    """
    grid = np.linspace(0, 1, count + 1)
    inputs = Inputs.linear(grid, 1 + 2 * grid)  # in truth one straight line
    times = (grid[:-1] + grid[1:]) / 2 if inside else grid[1:]
    times = np.append(times, 1.0) if inside else times
    options = {"rtol": 1e6, "atol": 1e6, "method": method, "sensitivities": sensitivities}
    found = simulate(FORCED_SYSTEM, FORCED_P, times, inputs=inputs, **options)
    assert count <= found.steps[0] <= count + 6  # the first stretch is begun with small steps
    exactly = {"rtol": 1e-13, "atol": 1e-14, "method": "stiff", "max_steps": 10**6}
    line = Inputs.linear([0, 1], [1, 3])
    exact = simulate(FORCED_SYSTEM, FORCED_P, times, inputs=line, sensitivities=sensitivities, **exactly)
    return found, exact


@pytest.mark.parametrize("method", METHODS)
def test_convergence_order_five(method):
    errors = []
    for count in (8, 16, 32):
        found, exact = fixed_steps(method, count)
        errors.append(np.abs(found.states - exact.states).max())
    orders = [np.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 4.6, (orders, errors)


@pytest.mark.parametrize("method", METHODS)
def test_dense_output_order_four(method):
    """Error in the middle of steps falls with the fourth power at least (the fifth locally)."""
    errors = []
    for count in (8, 16, 32):
        found, exact = fixed_steps(method, count, inside=True)
        errors.append(np.abs(found.states - exact.states)[:, :-1].max())
    orders = [np.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 3.7, (orders, errors)


@pytest.mark.parametrize("method", METHODS)
def test_sensitivities_converge_with_the_solution(method):
    errors = []
    for count in (8, 16, 32):
        found, exact = fixed_steps(method, count, sensitivities=True)
        errors.append(np.abs(found.state_sensitivities - exact.state_sensitivities).max())
    orders = [np.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 4.5, (orders, errors)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sensitivities", [False, True])
def test_fifth_order_is_exact_for_quintics(method, sensitivities):
    """x' a polynomial of degree 4 in time, through a chain of states; a single step is exact."""
    model = Model.parse("a' = 1\nb' = a\nc' = b\nd' = c\ne' = d\na(0)=q\nb(0)=0\nc(0)=0\nd(0)=0\ne(0)=0", ["e"])
    system = compile_system(model, ("q",))
    found = simulate(system, [[1.0]], [2.0], method=method, rtol=1e3, atol=1e3, sensitivities=sensitivities)
    assert found.outputs[0, 0, 0] == pytest.approx(2**5 / 120 + 2**4 / 24, rel=1e-12)
    if sensitivities:
        assert found.sensitivities[0, 0, 0, 0] == pytest.approx(2**4 / 24, rel=1e-12)


# --- accuracy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_closed_form(method):
    times = np.linspace(0, 12, 97)
    p = SI.lanes(8, 0.2)
    found = simulate(SI.system, p, times, method=method)
    assert (found.status == 0).all()
    for lane, outputs in zip(p, found.outputs, strict=True):
        assert relative_error(outputs, logistic(lane, times)[:, None]) < 1e-5


@pytest.mark.parametrize("problem", [SI, HIV, HIRES, ROBERTSON, CASCADE], ids=lambda p: p.name)
def test_accuracy_against_scipy(problem):
    """At rtol 1e-6, and at a tight tolerance, against SciPy's Radau at a tight tolerance."""
    p = problem.lanes(1, 0.1, seed=3)
    reference = problem.scipy(p[0], "Radau", rtol=1e-10, atol=1e-13)
    found = simulate(problem.system, p, problem.times)
    assert found.status[0] == 0
    outputs = problem.outputs(p[0], reference)
    assert relative_error(found.outputs[0], outputs) < 1e-5
    assert relative_error(found.states[0], reference) < 3e-5
    tight = simulate(problem.system, p, problem.times, rtol=1e-10, atol=1e-13, max_steps=10**6)
    assert relative_error(tight.outputs[0], outputs) < 3e-8


@pytest.mark.parametrize("problem", [HIRES, ROBERTSON], ids=lambda p: p.name)
def test_many_output_times_inside_stiff_steps(problem):
    times = np.linspace(0, problem.times[-1], 401)
    found = simulate(problem.system, problem.p, times)
    exact = simulate(problem.system, problem.p, times, method="stiff", rtol=1e-11, atol=1e-14, max_steps=10**6)
    assert relative_error(found.outputs[0], exact.outputs[0]) < 1e-5


def test_output_does_not_depend_on_the_other_times_beyond_the_tolerance():
    coarse = simulate(HIV.system, HIV.p, [5.0, 30.0])
    fine = simulate(HIV.system, HIV.p, np.linspace(0, 30, 61))
    np.testing.assert_allclose(coarse.outputs[0], fine.outputs[0, [10, 60]], rtol=1e-5)


# --- stiffness --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [VAN_DER_POL, HIRES, ROBERTSON, CASCADE], ids=lambda p: p.name)
def test_stiff_problems_switch_by_themselves(problem):
    """The automatic choice takes about as many steps as the stiff method; the explicit one alone gives up."""
    auto = simulate(problem.system, problem.p, problem.times)
    stiff = simulate(problem.system, problem.p, problem.times, method="stiff")
    limit = int(stiff.steps[0]) * 4
    explicit = simulate(problem.system, problem.p, problem.times, method="explicit", max_steps=limit)
    assert auto.status[0] == stiff.status[0] == 0
    assert explicit.status[0] == 1
    assert auto.steps[0] < 2 * stiff.steps[0] + 200


def test_van_der_pol_period():
    """mu = 1000: the first jump, from x = 1 to x = -2, comes at t = 807, as the literature has it."""
    times = np.linspace(800, 815, 301)
    x = simulate(VAN_DER_POL.system, VAN_DER_POL.p, times).outputs[0, :, 0]
    jump = times[np.argmax(x < 0)]
    assert 806 < jump < 808.5


@pytest.mark.parametrize("rate", [1e10, 1e60, 1e160, 1e280, 1e295])
def test_the_stiff_method_takes_over_however_stiff_it_is(rate):
    """Up to rates so fast that no explicit step is small enough."""
    model = Model.parse("x' = k*(y - x)\ny' = -y\nx(0) = 0\ny(0) = 1", ["x"])
    system = compile_system(model, ("k",))
    explicit = simulate(system, [[rate]], [1.0], method="explicit")
    auto = simulate(system, [[rate]], [1.0])
    assert explicit.status[0] != 0
    assert auto.status[0] == 0
    assert auto.steps[0] < 1000
    assert auto.outputs[0, 0, 0] == pytest.approx(np.exp(-1), rel=1e-5)


def test_stiffness_of_a_small_state_beside_large_ones():
    """HIV with an explosive burst: target cells are few and fast, virus particles a hundred million."""
    p = np.array([[4.86e-4, 1.57e-4, 1.11, 0.901, 36.7, 5.66e4, 0.95]])
    auto = simulate(HIV.system, p, HIV.times)
    stiff = simulate(HIV.system, p, HIV.times, method="stiff")
    assert simulate(HIV.system, p, HIV.times, method="explicit").status[0] == 1
    assert auto.status[0] == 0
    assert auto.steps[0] < 2 * stiff.steps[0] + 200
    assert relative_error(auto.outputs[0], stiff.outputs[0]) < 1e-5


def test_smooth_problems_stay_explicit():
    auto = simulate(SI.system, SI.p, SI.times)
    explicit = simulate(SI.system, SI.p, SI.times, method="explicit")
    assert (auto.outputs == explicit.outputs).all()


# --- sensitivities ----------------------------------------------------------------------------------------


def differences(problem, p, relative=1e-5):
    """Central differences of outputs and states at a tight tolerance, (T, n, parameters)."""
    n = len(problem.parameters)
    lanes = np.repeat(p, 2 * n, axis=0)
    steps = relative * np.abs(p[0, :n])
    for j in range(n):
        lanes[2 * j, j] += steps[j]
        lanes[2 * j + 1, j] -= steps[j]
    found = simulate(problem.system, lanes, problem.times, method="stiff", rtol=1e-12, atol=1e-15, max_steps=10**6)
    return [np.stack([(a[2 * j] - a[2 * j + 1]) / (2 * steps[j]) for j in range(n)], axis=-1)
            for a in (found.outputs, found.states)]  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "stiff"])
@pytest.mark.parametrize("problem", [SI, HIV, HIRES, CASCADE], ids=lambda p: p.name)
def test_sensitivities_against_differences(problem, method):
    p = problem.lanes(1, 0.1, seed=5)
    found = simulate(problem.system, p, problem.times, sensitivities=True, method=method)
    assert found.status[0] == 0
    by_output, by_state = differences(problem, p)
    scale = np.abs(by_output).max(axis=0) + 1e-12
    assert (np.abs(found.sensitivities[0] - by_output) / scale).max() < 1e-3 * (problem is HIRES) + 1e-4
    scale = np.abs(by_state).max(axis=0) + 1e-12
    assert (np.abs(found.state_sensitivities[0] - by_state) / scale).max() < 1e-3 * (problem is HIRES) + 1e-4


@pytest.mark.parametrize("method", ["explicit", "stiff"])
def test_solution_is_the_same_with_sensitivities(method):
    plain = simulate(HIV.system, HIV.lanes(8, 0.3), HIV.times, method=method)
    with_them = simulate(HIV.system, HIV.lanes(8, 0.3), HIV.times, method=method, sensitivities=True)
    assert (plain.states == with_them.states).all()
    assert (plain.outputs == with_them.outputs).all()


def test_sensitivity_through_initial_values_only():
    model = Model.parse("x' = -x\ny = s*x\nx(0) = a*b^2/(1 + b)", ["y"])
    system = compile_system(model, ("unused", "b", "a", "s"))
    p = np.array([[7.0, 2.0, 3.0, 0.5]])
    times = np.array([0.0, 1.0, 2.0])
    found = simulate(system, p, times, sensitivities=True, rtol=1e-9)
    decay = np.exp(-times)
    start, by_b, by_a = 3 * 4 / 3, 3 * (4 * 3 - 4) / 9, 4 / 3
    expected = np.stack([0 * decay, 0.5 * by_b * decay, 0.5 * by_a * decay, start * decay], axis=1)
    np.testing.assert_allclose(found.sensitivities[0, :, 0], expected, rtol=1e-7, atol=1e-12)


def test_sensitivities_of_a_model_without_dynamic_parameters():
    model = Model.parse("x' = -x\ny = s*x^2\nx(0) = 1", ["y"])
    found = simulate(compile_system(model, ("s",)), [[2.0]], [1.0], sensitivities=True, rtol=1e-9)
    assert found.sensitivities[0, 0, 0, 0] == pytest.approx(np.exp(-2), rel=1e-7)
    assert found.state_sensitivities[0, 0].tolist() == [[0.0]]


@pytest.mark.parametrize("dose", [1e6, 1.0, 1e-9, 1e-100])
def test_accuracy_does_not_depend_on_units(dose: float) -> None:
    model = Model.parse("A' = -k*A\nB' = k*A - c*B\nA(0) = dose\nB(0) = 0", ["B"])
    times = np.linspace(0.5, 10, 20)
    found = simulate(compile_system(model, ("k", "c", "dose")), np.array([[1.0, 0.3, dose]]), times)
    exact = dose / 0.7 * (np.exp(-0.3 * times) - np.exp(-times))
    np.testing.assert_allclose(found.outputs[0, :, 0], exact, rtol=1e-6)


def test_states_that_all_start_at_zero() -> None:
    model = Model.parse("A' = feed - k*A\nA(0) = 0", ["A"])
    times = np.linspace(0.5, 10, 20)
    found = simulate(compile_system(model, ("feed", "k")), np.array([[1e-12, 1.0]]), times)
    np.testing.assert_allclose(found.outputs[0, :, 0], 1e-12 * (1 - np.exp(-times)), rtol=1e-6)
