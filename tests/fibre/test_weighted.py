"""Weighted roots are what roots, priors and determinants give together, whichever way they are computed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.fibre import Fibre, RootStatus
from equifinal.fibre import direct as direct_module
from equifinal.fibre.homotopy import GeneralChart
from equifinal.fibre.of_problem import fibre_of as problem_fibre
from equifinal.fibre.weighted import OPEN, Weighted, _direct
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.problem.prior import Prior
from tests.support.charts import fibre_of
from tests.support.collection import ENTRIES, analysed_entry, needs_collection
from tests.support.marks import slow_but
from tests.support.zoo import known

ANY = [
    Prior("lognormal", meanlog=0, sdlog=1),
    Prior("uniform", lower=0.1, upper=2),
    Prior("gamma", shape=2, rate=1.5),
    Prior("normal", mean=1, sd=2),
    Prior("loguniform", lower=0.05, upper=5),
    Prior("beta", a=2, b=1.5),
    Prior("student-t", df=3, location=1, scale=0.5),
    Prior("halfcauchy", scale=1),
    Prior("exponential", rate=1, upper=3),
]


def slowly(fibre: Fibre, free: np.ndarray, c: np.ndarray) -> Weighted:
    n, points, r = free.shape
    roots = fibre.roots(free.reshape(n * points, r), np.repeat(c, points, axis=0))
    there = np.arange(roots.theta.shape[1]) < roots.found[:, None]
    log_weight = np.full(there.shape, -np.inf)
    log_weight[there] = fibre.log_prior(roots.theta[there]) - roots.log_det[there]
    found = roots.theta, log_weight, roots.found, roots.status
    return Weighted(*(a.reshape(n, points, *a.shape[1:]) for a in found))


def assert_same(fibre: Fibre, free: np.ndarray, c: np.ndarray) -> Weighted:
    fast, slow = fibre.weighted(free, c), slowly(fibre, free, c)
    for a, b in zip(fast, slow, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_array_equal(fast.found, slow.found)
    np.testing.assert_array_equal(fast.status, slow.status)
    np.testing.assert_allclose(fast.theta, slow.theta, rtol=1e-10)  # NaN in the same places
    np.testing.assert_allclose(fast.log_weight, slow.log_weight, rtol=1e-9, atol=1e-9)
    return fast


def share_decided(fibre: Fibre, free: np.ndarray, c: np.ndarray) -> float:
    """Without the general path."""
    code = fibre.chart.direct
    assert code is not None
    status = _direct(code.addresses["direct"], fibre.chart.free, fibre.chart.dependent, fibre.table, free, c)[3]
    return float((status != OPEN).mean())


def drawn(fibre: Fibre, rng: np.random.Generator, *shape: int) -> np.ndarray:
    uniforms = rng.random((*shape, len(fibre.names)))
    return np.stack([p.quantile(uniforms[..., k]) for k, p in enumerate(fibre.priors.values())], axis=-1)


def points(fibre: Fibre, n: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draws of theta_I and of c, the first point of each row being where c comes from."""
    rng = np.random.default_rng(seed)
    theta, free = drawn(fibre, rng, n), drawn(fibre, rng, n, size)[..., fibre.chart.free]
    free[:, 0] = theta[:, fibre.chart.free]
    return free, fibre.xi(theta)


def at_borders(fibre: Fibre, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points with one coordinate, given or to be found, on a border or from rounding to a millionth away from it."""
    rng = np.random.default_rng(seed)
    off = np.array([0.0, 1e-16, 3e-16, 1e-15, 1e-14, 1e-12, 1e-9, 1e-6])
    rows = []
    for k, bounds in enumerate(fibre.bounds):
        for border in bounds[np.isfinite(bounds)]:
            theta = drawn(fibre, rng, 2 * len(off))
            theta[:, k] = border + np.concatenate([off, -off]) * max(abs(border), 0.1)
            rows.append(theta)
    theta = np.concatenate(rows) if rows else np.empty((0, len(fibre.names)))
    c = fibre.xi(theta)
    fine = np.isfinite(c).all(axis=1)
    return theta[fine][:, None, fibre.chart.free], c[fine]


def at_extremes(fibre: Fibre, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """c so large, small or of such a sign that nothing, or hardly anything, has it."""
    rng = np.random.default_rng(seed)
    factors = np.array([0.0, -1.0, 1e-300, 1e-30, 1e-9, 1e9, 1e30, 1e300, np.inf, -np.inf, np.nan])
    theta = drawn(fibre, rng, 20 * len(factors))
    c = fibre.xi(theta)
    if fibre.rank:
        column = rng.integers(fibre.rank, size=len(c))
        with np.errstate(all="ignore"):
            c[np.arange(len(c)), column] *= np.tile(factors, 20)
    return drawn(fibre, rng, len(c), 3)[..., fibre.chart.free], c


def check(fibre: Fibre, n: int = 40, size: int = 25) -> None:
    free, c = points(fibre, n, size)
    found = assert_same(fibre, free, c)
    assert (found.found[:, 0] > 0).mean() > 0.99
    if fibre.chart.kind == "rational":
        assert share_decided(fibre, free, c) > 0.95
    assert_same(fibre, *at_borders(fibre))
    assert_same(fibre, *at_extremes(fibre))


# --- models ---


@pytest.mark.parametrize("name", ["si", "hiv"])
def test_examples(name):
    fibre = problem_fibre(load(example_path(name)))
    assert fibre.chart.kind == "rational"
    check(fibre, 200, 128)
    assert share_decided(fibre, *points(fibre, 200, 128)) == 1.0


@pytest.mark.parametrize(
    "name",
    [
        "SIR, a share of I observed",
        "SIR without infected",
        "two compartments, both leaking, Bellman and Astrom 1970 type",
        "FitzHugh-Nagumo, voltage observed",
        "large known number",
        "SEIR, I observed",
        "HIV, all initial values unknown",
        "circle",
    ],
)
@pytest.mark.parametrize("priors", ["uniform", "any"])
def test_zoo(name, priors):
    fibre = fibre_of(result := analyse(known(name).model))
    if priors == "any":
        chosen = {n: ANY[k % len(ANY)] for k, n in enumerate(fibre.names)}
        fibre = Fibre.of(result, chosen, partition=fibre.free)
    check(fibre)


# rational ones with many unknowns or long steps, and one with polynomials of higher degree
SHARED_NAMES = ("sijl_idfuncs_42", "sijl_bench_PK1", "sijl_bench_cLV1_(2o)", "sijl_bench_Fujita", "sijl_bench_SLIQR")


@needs_collection
@pytest.mark.parametrize("name", slow_but(*SHARED_NAMES[:3], of=SHARED_NAMES))
def test_shared_models(name):
    entry = next(e for e in ENTRIES if e["name"] == name)
    check(fibre_of(analysed_entry(entry)))


def test_homotopy():
    fibre = fibre_of(analyse(known("sum of exponentials").model))
    fibre.chart = GeneralChart(fibre.combinations, [], fibre.chart.degree, fibre.bounds, fibre.prior_draws)
    free, c = points(fibre, 4, 2)
    found = assert_same(fibre, free, c)
    assert found.theta.shape == (4, 2, 2, 4)


# --- priors and shapes ---


def test_unbounded_priors():
    """x + y = c with normal priors: the weights integrate to the normal density of c."""
    normal = Prior("normal", mean=0, sd=1)
    fibre = Fibre(["x + y"], {"x": normal, "y": normal})
    grid = np.linspace(-9, 9, 2001)
    c = np.array([[-3.0], [0.5], [4.0]])
    found = fibre.weighted(np.tile(grid[None, :, None], (3, 1, 1)), c)
    assert (found.found == 1).all()
    density = np.exp(found.log_weight[..., 0]).sum(axis=1) * (grid[1] - grid[0])
    np.testing.assert_allclose(density, np.exp(-(c[:, 0] ** 2) / 4) / np.sqrt(4 * np.pi), rtol=1e-12)


def test_no_free_coordinate():
    fibre = Fibre(["a*b", "b"], {n: Prior("uniform", lower=0.1, upper=2) for n in "ab"})
    c = np.array([[0.5, 0.5], [1.0, 5.0]])
    found = assert_same(fibre, np.empty((2, 3, 0)), c)
    assert found.found.tolist() == [[1, 1, 1], [0, 0, 0]]
    np.testing.assert_allclose(found.theta[0], np.tile([1.0, 0.5], (3, 1, 1)))
    np.testing.assert_allclose(found.log_weight[0], -2 * np.log(1.9) - np.log(0.5))
    assert (found.log_weight[1] == -np.inf).all()


@pytest.mark.parametrize("texts", [["a*b"], ["a^2 + b"]])
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
def test_nothing_asked(texts, shape):
    fibre = Fibre(texts, {n: Prior("uniform", lower=0.1, upper=2) for n in "ab"}, partition=["b"])
    found = fibre.weighted(np.empty((*shape, 1)), np.empty((shape[0], 1)))
    most = found.theta.shape[2]
    assert [a.shape for a in found] == [(*shape, most, 2), (*shape, most), shape, shape]


def test_wrong_shapes():
    fibre = Fibre(["a*b"], {n: Prior("uniform", lower=0.1, upper=2) for n in "ab"}, partition=["b"])
    free, c = np.full((3, 4, 1), 0.5), np.full((3, 1), 0.5)
    for wrong in (free[0], free[..., 0], np.full((3, 4, 2), 0.5), np.empty((3, 4, 0))):
        with pytest.raises(IdentifiabilityError, match=r"theta_I must hold 1 numbers \(b\) per point"):
            fibre.weighted(wrong, c)
    with pytest.raises(IdentifiabilityError, match=r"c must hold 1 numbers \(a\*b\) per row"):
        fibre.weighted(free, np.full((3, 2), 0.5))
    with pytest.raises(IdentifiabilityError, match="c must have 3 rows, as many as theta_I has, not 1"):
        fibre.weighted(free, c[:1])
    # views are fine
    strided = np.asfortranarray(np.tile(free, (1, 1, 2)))[..., :1]
    assert (fibre.weighted(strided, c).found == 1).all()


# --- what rounding decides ---


def test_cancellation_is_left_to_the_general_path():
    """b = 10^10*a - c is known to five digits at best, and c says nothing of b where it is all rounding."""
    fibre = Fibre(
        ["10^10*a - b", "b*d"],
        {n: Prior("uniform", lower=0.1, upper=2) for n in "abd"},
        partition=["a"],
    )
    free, c = points(fibre, 50, 1)
    assert share_decided(fibre, free, c) < 0.1
    found = assert_same(fibre, free, c)
    assert (found.found == 1).mean() > 0.9
    far = free + 1e-3  # b is certainly outside then
    assert share_decided(fibre, far, c) == 1.0
    assert not assert_same(fibre, far, c).found.any()


def test_poles_are_left_to_the_general_path():
    """With a - b in a denominator."""
    fibre = Fibre(["a", "(a - b)*d"], {n: Prior("uniform", lower=0.1, upper=2) for n in "abd"}, partition=["b"])
    a = np.array([0.5, 0.5, 0.5, 0.5])
    free = np.array([0.5, np.nextafter(0.5, 1), 0.5 - 1e-13, 0.2])[:, None, None]
    c = np.column_stack([a, [0.0, 0.0, 1e-13, 0.3]])
    found = assert_same(fibre, free, c)
    assert found.status[0, 0] == RootStatus.UNRESOLVED
    assert found.found[3, 0] == 1


def test_long_charts_take_the_general_path(monkeypatch):
    texts, priors = ["a*b", "a + d"], {n: Prior("uniform", lower=0.1, upper=2) for n in "abd"}
    short, long = Fibre(texts, priors), Fibre(texts, priors)
    assert short.chart.direct is not None
    monkeypatch.setattr(direct_module, "MOST_NODES", 2)
    assert long.chart.direct is None
    free, c = points(short, 20, 10)
    for a, b in zip(assert_same(short, free, c), assert_same(long, free, c), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_what_is_decided_at_once_is_certain():
    """A sum of 10^30 makes the general path doubt the others; they do not depend on it, and are exact to rounding."""
    names = ("a01", "a21", "a12", "x0", "x1")
    texts = ["a01*a12", "a01 + a21 + a12", "x0", "a12*x0 + a12*x1"]
    fibre = Fibre(texts, {n: Prior("normal", mean=0, sd=1) for n in names}, partition=["x1"])
    free, c = points(fibre, 200, 1)
    c[:, 1] *= 1e30
    found, slow = fibre.weighted(free, c), slowly(fibre, free, c)
    np.testing.assert_array_equal(found.found, slow.found)
    assert (found.status <= slow.status).all()
    certain = (found.status[:, 0] == RootStatus.OK) & (found.found[:, 0] == 1)
    assert certain.sum() > 100
    for x1, row, theta in zip(free[certain, 0, 0], c[certain], found.theta[certain, 0, 0], strict=True):
        c0, c1, c2, c3, x1 = map(Fraction, (*row, x1))
        a12 = c3 / (c2 + x1)
        exact = [c0 / a12, c1 - a12 - c0 / a12, a12, c2, x1]
        assert all(abs(Fraction(t) / e - 1) < Fraction(1, 10**10) for t, e in zip(theta, exact, strict=True))
