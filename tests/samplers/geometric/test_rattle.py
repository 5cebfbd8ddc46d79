"""Steps along level sets: on them, reversible, preserving volume, and exact as a sampler only with J and the check."""

from __future__ import annotations

import ctypes
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types
from scipy import linalg, stats

from equifinal.errors import DataError, SamplingError
from equifinal.samplers.geometric import rattle_loops as rattle_kernel
from equifinal.samplers.geometric.rattle import Constraint, Move, Settings, Status, log_volume, move, project

DOUBLES, INTEGERS = types.CPointer(types.float64), types.CPointer(types.int64)
constraint_function = numba.cfunc(types.int64(DOUBLES, INTEGERS, DOUBLES, DOUBLES), error_model="numpy")
force_function = numba.cfunc(types.int64(DOUBLES, INTEGERS, DOUBLES), error_model="numpy")


@constraint_function
def quadric(u, data, xi, jacobian):
    """The sum of data[k + 1] u[k]^2 over data[0] coordinates: circles, ellipses, cones, spheres."""
    xi[0] = 0.0
    for k in range(data[0]):
        xi[0] += data[k + 1] * u[k] ** 2
        jacobian[k] = 2 * data[k + 1] * u[k]
    return 0


@constraint_function
def torus(u, data, xi, jacobian):
    radius = math.sqrt(u[0] ** 2 + u[1] ** 2)
    xi[0] = (radius - 2) ** 2 + u[2] ** 2
    jacobian[0] = 2 * (radius - 2) * u[0] / radius
    jacobian[1] = 2 * (radius - 2) * u[1] / radius
    jacobian[2] = 2 * u[2]
    return 0


@constraint_function
def product(u, data, xi, jacobian):
    xi[0], jacobian[0], jacobian[1] = u[0] * u[1], u[1], u[0]
    return 0


@constraint_function
def sine(u, data, xi, jacobian):
    xi[0] = u[1] - math.sin(6 * u[0]) / 2
    jacobian[0], jacobian[1] = -3 * math.cos(6 * u[0]), 1.0
    return 0


@constraint_function
def pair(u, data, xi, jacobian):
    """Two constraints a and b in R^5, times powers of ten; or exp(a/4) and a + b instead."""
    a = b = 0.0
    for k in range(5):
        a += u[k] ** 2
        jacobian[k] = 2 * u[k]
        jacobian[5 + k] = 0.0
    b = u[0] * u[1] + u[2] - math.sin(u[3]) + u[4] * u[0]
    jacobian[5], jacobian[6], jacobian[7], jacobian[8], jacobian[9] = u[1] + u[4], u[0], 1.0, -math.cos(u[3]), u[0]
    if data[2] == 1:
        for k in range(5):
            jacobian[5 + k] += jacobian[k]
            jacobian[k] *= math.exp(a / 4) / 4
        a, b = math.exp(a / 4), a + b
    for i in range(2):
        xi[i] = (a if i == 0 else b) * 10.0 ** data[i]
        for k in range(5):
            jacobian[5 * i + k] *= 10.0 ** data[i]
    return 0


@constraint_function
def epidemic(u, data, xi, jacobian):
    """Three combinations of four parameters in log coordinates: 10^4 exp(u0) - exp(u2), exp(u0 - u1), u1 + u3."""
    growth, recovery, ratio = 1e4 * math.exp(u[0]), math.exp(u[2]), math.exp(u[0] - u[1])
    xi[0], xi[1], xi[2] = growth - recovery, ratio, u[1] + u[3]
    for k in range(12):
        jacobian[k] = 0.0
    jacobian[0], jacobian[2], jacobian[4], jacobian[5] = growth, -recovery, ratio, -ratio
    jacobian[9] = jacobian[11] = 1.0
    return 0


@constraint_function
def coordinates(u, data, xi, jacobian):
    """data[0] coordinates of data[1]."""
    for i in range(data[0]):
        xi[i] = u[i]
        for k in range(data[1]):
            jacobian[data[1] * i + k] = 1.0 if i == k else 0.0
    return 0


@constraint_function
def twice(u, data, xi, jacobian):
    """The same constraint twice, at scales far apart."""
    for i in range(2):
        scale = 1e6 if i == 0 else 1e-6
        xi[i], jacobian[2 * i], jacobian[2 * i + 1] = scale * u[0] * u[1], scale * u[1], scale * u[0]
    return 0


@constraint_function
def refusing(u, data, xi, jacobian):
    """u[0] = 0, which cannot be evaluated where u[1] > 1."""
    xi[0], jacobian[0], jacobian[1] = u[0], 1.0, 0.0
    return 1 if u[1] > 1 else 0


@force_function
def first_coordinate(u, data, gradient):
    """The gradient of 2 u[0] + u[1]; data as of `quadric`."""
    for k in range(data[0]):
        gradient[k] = 0.0
    gradient[0], gradient[1] = 2.0, 1.0
    return 0


@force_function
def undefined(u, data, gradient):
    gradient[0] = np.nan
    return 0


def constraint(function, data: list[int], q: int, d: int, force=None) -> Constraint:
    return Constraint(
        function.address, np.array(data, dtype=np.int64), q, d, force.address if force else 0, (function, force)
    )


def quadratic(*factors: int, force=None) -> Constraint:
    return constraint(quadric, [len(factors), *factors], 1, len(factors), force)


CIRCLE, ELLIPSE, SPHERE = quadratic(1, 1), quadratic(1, 4), quadratic(1, 1, 1)
CONE, FORCED = quadratic(1, -1), quadratic(1, 1, 1, force=first_coordinate)
SINE, PAIR = constraint(sine, [], 1, 2), constraint(pair, [0, 0, 0], 2, 5)
FREE = Constraint(0, np.zeros(0, dtype=np.int64), 0, 3)


class Example(NamedTuple):
    constraint: Constraint
    centre: list[float]
    eps: float


EXAMPLES = {
    "circle": Example(CIRCLE, [1.0, 0.5], 0.2),
    "torus": Example(constraint(torus, [], 1, 3), [2.5, 0.3, 0.4], 0.1),
    "hyperbola": Example(constraint(product, [], 1, 2), [1.5, 0.8], 0.1),
    "sine": Example(SINE, [0.4, 0.2], 0.03),
    "quadric": Example(quadratic(1, 2, 3, 1, 1, -1, -2, 1, 5, 2), [0.5, 1, -1, 0.3, 0.7, 1, -0.4, 0.2, 0.6, 1], 0.05),
    "pair": Example(PAIR, [0.9, -0.5, 0.4, 0.8, -1.1], 0.1),
    "pair, scaled": Example(constraint(pair, [6, -6, 0], 2, 5), [0.9, -0.5, 0.4, 0.8, -1.1], 0.1),
    "epidemic": Example(constraint(epidemic, [], 3, 4), [-8.3, -1.4, -0.5, 3.7], 0.1),
    "sphere with a force": Example(FORCED, [0.6, 0.5, -0.7], 0.1),
    "free": Example(FREE, [0.1, 0.2, 0.3], 0.1),
}
every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())


def evaluate(c: Constraint, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """xi and Dxi at one point, without the kernels under test."""
    xi, jacobian = np.zeros(c.rank), np.zeros((c.rank, c.dimension))
    if c.rank:
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (np.ascontiguousarray(u), c.data, xi, jacobian)]
        assert ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(c.address)(*pointers) == 0
    return xi, jacobian


def starts(example: Example, n: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    d = example.constraint.dimension
    return example.centre + 0.05 * rng.standard_normal((n, d)), rng.standard_normal((n, d))


def one_chain(c: Constraint, u, p, eps: float, steps: int = 1, settings: Settings | None = None) -> Move:
    return Move(*(a[0] for a in move(c, [u], [p], eps, steps, settings)))


# --- deterministic --------------------------------------------------------------------------------------------


@every_example
def test_moves_stay_on_the_level_set_and_momenta_are_tangential(example: Example) -> None:
    u, p = starts(example)
    moved = move(example.constraint, u, p, example.eps, 10)
    assert (moved.status == Status.OK).all()
    assert np.abs(moved.u - u).max() > example.eps
    for before, after, momentum in zip(u, moved.u, moved.p, strict=True):
        (c, _), (xi, jacobian) = evaluate(example.constraint, before), evaluate(example.constraint, after)
        size = np.linalg.norm(jacobian, axis=1)
        assert (np.abs(xi - c) <= 1e-12 * np.maximum(size, np.abs(c))).all()
        assert (np.abs(jacobian @ momentum) <= 1e-12 * size * np.linalg.norm(momentum)).all()


@every_example
def test_the_reverse_of_a_move_leads_back(example: Example) -> None:
    u, p = starts(example)
    p = project(example.constraint, u, p).p
    there = move(example.constraint, u, p, example.eps, 10)
    back = move(example.constraint, there.u, -there.p, example.eps, 10)
    np.testing.assert_allclose(back.u, u, rtol=0, atol=1e-10)
    np.testing.assert_allclose(-back.p, p, rtol=0, atol=1e-9)
    np.testing.assert_allclose(back.kinetic_drop, -there.kinetic_drop, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(there.log_j_end, log_volume(example.constraint, there.u))
    np.testing.assert_array_equal(there.log_j_start, log_volume(example.constraint, u))


def tangent_basis(c: Constraint, u: np.ndarray) -> np.ndarray:
    """Orthonormal columns."""
    return linalg.null_space(evaluate(c, u)[1]) if c.rank else np.eye(c.dimension)


def retract(c: Constraint, u: np.ndarray, level: np.ndarray) -> np.ndarray:
    for _ in range(20):
        xi, jacobian = evaluate(c, u)
        u = u - np.linalg.pinv(jacobian) @ (xi - level)
    return u


@every_example
def test_moves_preserve_volume(example: Example) -> None:
    """The derivative of the move in orthonormal coordinates of the tangent spaces has determinant 1 or -1.

    On the level set a point near u is u + T a, retracted; that is an isometry to first order, as is p + T b, projected,
    for momenta.
    """
    c, h = example.constraint, 1e-4
    u, p = (a[0] for a in starts(example))
    p = project(c, [u], [p]).p[0]
    level, basis = evaluate(c, u)[0], tangent_basis(c, u)
    r = basis.shape[1]
    shifts = h * np.concatenate([np.eye(2 * r), -np.eye(2 * r)])
    near = np.array([retract(c, u + basis @ s[:r], level) for s in shifts])
    momenta = p + shifts[:, r:] @ basis.T
    moved = move(c, near, momenta, example.eps, 3)
    assert (moved.status == Status.OK).all()
    end = tangent_basis(c, one_chain(c, u, p, example.eps, 3).u)
    reached = np.concatenate([moved.u @ end, moved.p @ end], axis=1)
    derivative = (reached[: 2 * r] - reached[2 * r :]) / (2 * h)
    assert abs(abs(np.linalg.det(derivative)) - 1) < 1e-5


def test_energy_error_is_of_second_order() -> None:
    """With the density exp(2 x + y) on a sphere, where J is constant."""
    rng = np.random.default_rng(1)
    u, p = rng.standard_normal((50, 3)), rng.standard_normal((50, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)

    def error(eps: float) -> float:
        moved = move(FORCED, u, p, eps, round(0.8 / eps))
        assert (moved.status == Status.OK).all()
        return np.abs((moved.u - u) @ [2.0, 1.0, 0.0] + moved.kinetic_drop).mean()

    errors = np.array([error(eps) for eps in (0.04, 0.02, 0.01)])
    assert errors[0] < 1e-2
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4, rtol=0.05)
    unforced = move(SPHERE, u, p, 0.04, 20)
    assert np.abs((unforced.u - u) @ [2.0, 1.0, 0.0] + unforced.kinetic_drop).mean() > 0.1


def test_geodesics_of_a_circle_have_constant_speed() -> None:
    moved = one_chain(CIRCLE, [1.0, 0.0], [7.0, 1.0], 0.01, 100)
    assert abs(moved.kinetic_drop) < 1e-12
    np.testing.assert_allclose(moved.u, [math.cos(1), math.sin(1)], atol=1e-4)


def test_log_volume_and_projection_by_linear_algebra() -> None:
    u, p = starts(EXAMPLES["pair"])
    for scaled in (PAIR, constraint(pair, [6, -6, 0], 2, 5), constraint(pair, [-6, 3, 1], 2, 5)):
        found = project(scaled, u, p)
        jacobians = np.array([evaluate(scaled, row)[1] for row in u])
        sizes = np.linalg.norm(jacobians, axis=2, keepdims=True)
        expected = np.log(np.linalg.svd(jacobians / sizes, compute_uv=False)).sum(axis=1) + np.log(sizes).sum(
            axis=(1, 2)
        )
        np.testing.assert_allclose(found.log_j, expected, rtol=1e-10)
        np.testing.assert_array_equal(log_volume(scaled, u), found.log_j)
        for i, jacobian in enumerate(jacobians / sizes):
            np.testing.assert_allclose(found.p[i], p[i] - np.linalg.pinv(jacobian) @ jacobian @ p[i], atol=1e-10)


def test_the_way_xi_is_written_does_not_matter() -> None:
    u, p = starts(EXAMPLES["pair"])
    plain = move(PAIR, u, p, 0.1, 10)
    for data in ([6, 6, 0], [6, -6, 0], [-6, 6, 0], [100, -100, 0], [0, 0, 1], [-6, 6, 1]):
        other = move(constraint(pair, data, 2, 5), u, p, 0.1, 10)
        np.testing.assert_array_equal(other.status, plain.status)
        np.testing.assert_allclose(other.u, plain.u, rtol=0, atol=1e-11)
        np.testing.assert_allclose(other.p, plain.p, rtol=0, atol=1e-10)
        ratio, plain_ratio = (m.log_j_end - m.log_j_start for m in (other, plain))
        np.testing.assert_allclose(ratio, plain_ratio, rtol=0, atol=1e-10)
        if data[2] == 0:
            np.testing.assert_array_equal(other.newton_iterations, plain.newton_iterations)


def test_a_chain_moves_the_same_in_any_company_and_inputs_are_kept() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 200)
    u, p = np.stack([x, np.sin(6 * x) / 2], axis=1), rng.standard_normal((200, 2))
    eps, steps = rng.uniform(0.01, 0.6, 200), rng.integers(0, 8, 200)
    given = [a.copy() for a in (u, p, eps, steps)]
    together = move(SINE, u, p, eps, steps)
    assert all(np.array_equal(a, b) for a, b in zip(given, (u, p, eps, steps), strict=True))
    assert len(np.unique(together.status)) >= 3
    for i in range(200):
        for one, all_of_them in zip(move(SINE, u[i : i + 1], p[i : i + 1], eps[i], steps[i]), together, strict=True):
            np.testing.assert_array_equal(one[0], all_of_them[i])
    with ThreadPoolExecutor(2) as pool:
        for again in pool.map(lambda _: move(SINE, u, p, eps, steps), range(20)):
            for a, b in zip(again, together, strict=True):
                np.testing.assert_array_equal(a, b)


def test_kernels_are_compiled_once_whatever_the_constraint() -> None:
    for example in EXAMPLES.values():
        u, p = starts(example)
        u.flags.writeable = False
        move(example.constraint, u, p[::-1], np.float32(example.eps), np.int8(1), Settings(reversibility=1))
    assert len(rattle_kernel.move_chains.dispatcher.signatures) == 1


def test_linear_systems_of_any_scale_and_order() -> None:
    rng = np.random.default_rng(8)
    for n in (1, 2, 3, 6):
        a, b = rng.permutation(np.triu(rng.uniform(1, 2, (n, n)))), rng.standard_normal(n)
        scales = 10.0 ** rng.integers(-150, 150, n)
        expected, scaled, solution = np.linalg.solve(a, b), a * scales[:, None], b * scales
        assert rattle_kernel.solve(scaled, solution)
        np.testing.assert_allclose(solution, expected, rtol=1e-9)
    assert not rattle_kernel.solve(np.ones((2, 2)), np.ones(2))
    assert not rattle_kernel.solve(np.full((2, 2), np.nan), np.ones(2))


def test_no_step_and_no_chain() -> None:
    still = one_chain(CIRCLE, [1.0, 0.0], [3.0, 2.0], 0.1, 0)
    assert still.status == Status.OK
    assert still.u.tolist() == [1.0, 0.0]
    assert still.p.tolist() == [0.0, 2.0]
    assert (still.log_j_end, still.kinetic_drop) == (still.log_j_start, 0.0)
    nobody = move(CIRCLE, np.zeros((0, 2)), np.zeros((0, 2)), 0.1, 3)
    assert nobody.u.shape == (0, 2)
    assert nobody.status.shape == (0,)


def test_no_constraint_is_a_straight_line() -> None:
    moved = one_chain(FREE, [1.0, 2.0, 3.0], [1.0, 0.0, -1.0], 0.25, 8)
    np.testing.assert_allclose(moved.u, [3.0, 2.0, 1.0])
    assert (moved.log_j_end, moved.newton_iterations, moved.status) == (0.0, 0, Status.OK)


def test_as_many_constraints_as_dimensions_leave_a_point() -> None:
    moved = one_chain(constraint(coordinates, [3, 3], 3, 3), [1.0, 2.0, 3.0], [1.0, 0.0, -1.0], 0.25, 8)
    assert moved.status == Status.OK
    assert moved.u.tolist() == [1.0, 2.0, 3.0]
    assert moved.p.tolist() == [0.0, 0.0, 0.0]


# --- what can go wrong ----------------------------------------------------------------------------------------


def test_a_failed_move_ends_where_it_began() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 500)
    u, p = np.stack([x, np.sin(6 * x) / 2], axis=1), rng.standard_normal((500, 2))
    moved = move(SINE, u, p, 0.6, 3, Settings(iterations=8))
    for status in (Status.NEWTON_FAILED, Status.NOT_REVERSIBLE):
        failed = moved.status == status
        assert failed.sum() > 10
        np.testing.assert_array_equal(moved.u[failed], u[failed])
        np.testing.assert_array_equal(moved.p[failed], p[failed])
        np.testing.assert_array_equal(moved.log_j_end[failed], moved.log_j_start[failed])
        assert (moved.kinetic_drop[failed] == 0).all()
    assert (moved.u[moved.status == Status.OK] != u[moved.status == Status.OK]).all()


def test_what_the_check_lets_through_does_come_back_and_what_it_stops_does_not() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 500)
    u, p = np.stack([x, np.sin(6 * x) / 2], axis=1), rng.standard_normal((500, 2))
    p = project(SINE, u, p).p
    checked, unchecked = move(SINE, u, p, 0.5, 2), move(SINE, u, p, 0.5, 2, Settings(reversibility=np.inf))
    back = move(SINE, unchecked.u, -unchecked.p, 0.5, 2, Settings(reversibility=np.inf))
    distance = np.abs(back.u - u).max(axis=1) + np.abs(back.p + p).max(axis=1)
    comes_back = (unchecked.status == Status.OK) & (back.status == Status.OK) & (distance < 1e-6)
    np.testing.assert_array_equal(checked.status == Status.OK, comes_back)
    stopped = checked.status == Status.NOT_REVERSIBLE
    assert stopped.sum() > 10
    assert distance[stopped & (back.status == Status.OK)].min() > 1e-3


def test_a_step_off_a_circle_finds_no_way_back() -> None:
    assert one_chain(CIRCLE, [1.0, 0.0], [0.0, 1.0], 1.5).status == Status.NEWTON_FAILED


@pytest.mark.parametrize(
    ("c", "u"),
    [(CONE, [0.0, 0.0]), (quadratic(1, 0), [0.0, 1.0]), (constraint(twice, [], 2, 2), [0.7, 1.3])],
    ids=["apex of a cone", "x^2 at 0", "dependent constraints"],
)
def test_deficient_rank(c: Constraint, u: list[float]) -> None:
    moved, projected = one_chain(c, u, [1.0, 2.0], 0.1), project(c, [u], [[1.0, 2.0]])
    assert moved.status == projected.status[0] == Status.RANK_DEFICIENT
    assert moved.log_j_start == log_volume(c, [u])[0] == -np.inf
    assert np.isnan(projected.p).all()
    assert (moved.u.tolist(), moved.p.tolist()) == (u, [1.0, 2.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("where", ["u", "p", "eps"])
@every_example
def test_nothing_infinite_or_undefined_gets_through(example: Example, where: str, bad: float) -> None:
    d = example.constraint.dimension
    u, p, eps = np.array(example.centre), np.ones(d), np.array(example.eps)
    {"u": u, "p": p, "eps": eps}[where][(0,) * (where != "eps")] = bad
    moved = one_chain(example.constraint, u, p, float(eps), 3)
    if math.isfinite(bad):
        assert moved.status != Status.OK or np.isfinite([*moved.u, *moved.p]).all()
    else:
        assert moved.status in (Status.NOT_FINITE, Status.RANK_DEFICIENT)
        np.testing.assert_array_equal(moved.u, u)
    projected = project(example.constraint, [u], [p])
    assert (projected.status[0] == Status.OK) == np.isfinite(projected.p).all()


def test_constraints_and_forces_that_cannot_be_evaluated() -> None:
    c = constraint(refusing, [], 1, 2)
    assert one_chain(c, [0.0, 2.0], [0.0, 1.0], 0.1).status == Status.NOT_FINITE
    assert np.isnan(log_volume(c, [[0.0, 2.0]])[0])
    assert one_chain(c, [0.0, 0.95], [0.0, 1.0], 0.1).status == Status.NEWTON_FAILED
    assert one_chain(c, [0.0, 0.85], [0.0, 1.0], 0.1).status == Status.OK
    assert one_chain(quadratic(1, 1, force=undefined), [1.0, 0.0], [0.0, 1.0], 0.1).status == Status.NOT_FINITE
    assert one_chain(CIRCLE, [1.0, 0.0], [0.0, 1.0], 0.0).status == Status.NOT_FINITE


def test_every_status_has_advice() -> None:
    assert len({status.message for status in Status}) == len(Status)


def test_wrong_arguments() -> None:
    with pytest.raises(SamplingError, match="u must have the shape"):
        move(CIRCLE, [[1.0, 2.0, 3.0]], [[1.0, 2.0]], 0.1, 1)
    with pytest.raises(SamplingError, match="p must have the shape"):
        project(CIRCLE, [[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]])
    for eps, steps in (([0.1, 0.1], 1), (0.1, [1, 1]), (0.1, 2.5), ("far", 1)):
        with pytest.raises(SamplingError, match="one number"):
            move(CIRCLE, [[1.0, 2.0]], [[1.0, 2.0]], eps, steps)
    with pytest.raises(SamplingError, match="negative"):
        move(CIRCLE, [[1.0, 2.0]], [[1.0, 2.0]], 0.1, -1)
    with pytest.raises(SamplingError, match="2 dimensions"):
        replace(CIRCLE, rank=3)
    with pytest.raises(SamplingError, match="address"):
        replace(CIRCLE, address=0)
    with pytest.raises(DataError, match="tolerance"):
        Settings(tolerance=1e-3)
    with pytest.raises(DataError, match="iterations"):
        Settings(iterations=0)
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(CIRCLE)


# --- statistical: n replicates from the exact law must still have it after some moves (level 1e-6 a test) ------

N = 20_000


def after_moves(
    c: Constraint, u: np.ndarray, log_density, eps: float, settings=None, with_j: bool = True, moves: int = 10
) -> np.ndarray:
    """Metropolis moves of 4 steps each, for the conditional of the density given xi."""
    rng = np.random.default_rng(5)
    for _ in range(moves):
        moved = move(c, u, rng.standard_normal(u.shape), eps * rng.uniform(0.8, 1.2, len(u)), 4, settings)
        log_ratio = log_density(moved.u) - log_density(u) + moved.kinetic_drop
        if with_j:
            log_ratio -= moved.log_j_end - moved.log_j_start
        accepted = (moved.status == Status.OK) & (np.log(rng.random(len(u))) < log_ratio)
        u = np.where(accepted[:, None], moved.u, u)
    return u


def von_mises(c: Constraint, scale: float, eps: float, with_j: bool = True) -> float:
    """On x^2 + (y/scale)^2 = 1 with x = cos(t), dH/J is proportional to dt: exp(x) makes t von Mises."""
    t = np.random.default_rng(6).vonmises(0, 1, N)
    u = after_moves(c, np.stack([np.cos(t), scale * np.sin(t)], axis=1), lambda u: u[:, 0], eps, with_j=with_j)
    return stats.kstest(np.arctan2(u[:, 1] / scale, u[:, 0]), stats.vonmises(1).cdf).pvalue


def test_exact_on_a_circle() -> None:
    assert von_mises(CIRCLE, 1.0, 0.5) > 1e-6
    assert von_mises(quadratic(1, 1, force=first_coordinate), 1.0, 0.3) > 1e-6  # any force leaves the law


def test_exact_on_an_ellipse_only_with_j() -> None:
    assert von_mises(ELLIPSE, 0.5, 0.3) > 1e-6
    assert von_mises(ELLIPSE, 0.5, 0.3, with_j=False) < 1e-6


def test_exact_on_the_sine_fibre_only_with_the_check() -> None:
    """There dH/J = dx, so that x is normal if the density is."""
    x = np.random.default_rng(7).standard_normal(N)
    u = np.stack([x, np.sin(6 * x) / 2], axis=1)

    def p_value(settings: Settings) -> float:
        moved = after_moves(SINE, u, lambda u: -(u[:, 0] ** 2) / 2, 0.15, settings, moves=20)
        return stats.kstest(moved[:, 0], "norm").pvalue

    assert p_value(Settings()) > 1e-6
    assert p_value(Settings(reversibility=np.inf)) < 1e-6
