"""Laws of the free coordinates given c: what they draw, its density, and where there is nothing to draw."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from equifinal.errors import SamplingError
from equifinal.fibre import Fibre
from equifinal.language.expression import names
from equifinal.problem.prior import Prior
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.points.block_law import BlockLaw, blocks
from equifinal.samplers.points.gaussian_laws import WIDE, LearnedLaw, LocalLaw
from equifinal.samplers.points.lattice import lattice, shifted
from equifinal.samplers.points.law import Drawn, Moments, PriorLaw
from equifinal.samplers.points.laws import IntervalLaw, NoPoint, UniformLaw, best_law, make_law
from equifinal.samplers.points.polytope import PolytopeLaw
from equifinal.studies.sample import sample
from tests.support.problems import scaled


def uniform(lower: float, upper: float, coordinate: str | None = None) -> Prior:
    return Prior("uniform", lower=lower, upper=upper, coordinate=coordinate)


def normal(mean: float = 0.0, sd: float = 1.0, **bounds: float) -> Prior:
    return Prior("normal", mean=mean, sd=sd, **bounds)


PRODUCT = {
    "identity": uniform(0.2, 2.0, "identity"),
    "log": uniform(0.2, 2.0, "log"),
    "logit": uniform(0.2, 2.0, "logit"),
    "loguniform": Prior("loguniform", lower=0.2, upper=2.0, coordinate="log"),
    "gamma": Prior("gamma", shape=2.0, rate=1.0),
    "lognormal": Prior("lognormal", meanlog=0.0, sdlog=1.0, upper=4.0),
    "halfcauchy": Prior("halfcauchy", scale=0.5),
    "normal": normal(1.0, 1.0, lower=0.0),
}


@cache
def curve(name: str) -> Fibre:
    """Fibres of dimension 1."""
    if name in PRODUCT:
        return Fibre(["x*y"], {"x": PRODUCT[name], "y": uniform(0.5, 4.0, "log")}, partition=["x"])
    ring = {"y": uniform(0.3, 0.9)}
    fibres = {
        "two arcs": (["x^2 + y^2"], {"x": uniform(-1.5, 1.2, "identity")} | ring),
        "two arcs, normal": (["x^2 + y^2"], {"x": normal(0.5, 0.7)} | ring),
        "two arcs, mirrored": (["x^2 + y^2"], {"x": normal(0.5, 0.7, upper=1.1)} | ring),
        "far tail": (["x + y"], {"x": normal(), "y": uniform(0.0, 1.0)}),
        "far tail below": (["x - y"], {"x": normal(), "y": uniform(0.0, 1.0)}),
        "endless": (["x*y"], {"x": normal(), "y": Prior("gamma", shape=2.0, rate=1.0)}),
    }
    functions, priors = fibres[name]
    return Fibre(functions, priors, partition=["x"])


CURVES = (*PRODUCT, "two arcs", "two arcs, normal", "two arcs, mirrored", "far tail", "far tail below", "endless")


@cache
def solid(name: str) -> Fibre:
    """Fibres of more dimensions."""
    if name == "product of three":
        return Fibre(
            ["x*y*z"], {"x": uniform(0.2, 2.0, "log"), "y": uniform(0.5, 3.0), "z": uniform(0.3, 1.5, "logit")}
        )
    if name == "two curves":
        priors = {"x": uniform(0.2, 2.0), "y": uniform(0.5, 4.0), "a": normal(), "b": uniform(0.0, 1.0)}
        return Fibre(["a + n*b", "x*y"], priors | {"w": Prior("gamma", shape=2.0, rate=1.0)}, constants={"n": 2})
    assert name == "curved"
    priors = {"x": normal(0.0, 0.5), "y": uniform(-1.0, 2.0), "z": Prior("gamma", shape=3.0, rate=2.0)}
    return Fibre(["x^2 + y + z*x", "z + y"], priors | {"v": normal(0.3, 1.0, upper=2.0), "s": PRODUCT["lognormal"]})


def some_c(fibre: Fibre, n: int) -> np.ndarray:
    return fibre.xi(fibre.prior_draws[:n])


def moments_of(fibre: Fibre, n: int) -> Moments:
    """As a warm-up under the prior would have learned them, a little different for each row."""
    theta = fibre.prior_draws
    both = np.concatenate(
        [combination_coordinates(fibre).forward(fibre.xi(theta)), fibre.to_coordinates(theta)], axis=1
    )
    mean, covariance = np.tile(both.mean(axis=0), (n, 1)), np.tile(np.cov(both.T), (n, 1, 1))
    return Moments(mean + 0.01 * np.arange(n)[:, None], covariance * (1 + 0.01 * np.arange(n))[:, None, None])


def uniforms(n: int, number: int, width: int) -> np.ndarray:
    return np.random.default_rng(3).random((n, number, width)) * (1 - 2e-12) + 1e-12


ALL = [
    *((name, "interval") for name in CURVES),
    *((name, law) for name in ("log", "gamma") for law in ("prior", "local", "learned")),
    *(("product of three", law) for law in ("prior", "uniform", "local", "learned", "polytope")),
    *(("curved", law) for law in ("prior", "local", "learned")),
    *(("two curves", law) for law in ("auto", "prior", "local", "learned")),
    ("log", "uniform"),
    ("two arcs", "uniform"),
]


def prepared(name: str, law: str):
    fibre = curve(name) if name in CURVES else solid(name)
    return fibre, make_law(fibre, law)


def nodes(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of Gauss-Legendre quadrature, with weights, between every two edges."""
    at, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + at)).ravel(), (half * weights).ravel()


# --- all of them ---


@pytest.mark.parametrize(("name", "choice"), ALL)
def test_what_is_drawn_has_the_density_that_it_says(name: str, choice: str) -> None:
    fibre, law = prepared(name, choice)
    c, n = some_c(fibre, 20), 20
    drawn = law.draw(c, uniforms(n, 30, law.width), moments_of(fibre, n))
    assert drawn.free.shape == (n, 30, fibre.dimension)
    assert np.isfinite(drawn.log_density).all()
    again = law.log_density(c, drawn.free, moments_of(fibre, n))
    np.testing.assert_allclose(again, drawn.log_density, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "choice"), ALL)
def test_a_row_does_not_depend_on_its_company(name: str, choice: str) -> None:
    fibre, law = prepared(name, choice)
    n = 23
    c, u, moments = some_c(fibre, n), uniforms(n, 9, law.width), moments_of(fibre, n)
    drawn = law.draw(c, u, moments)
    density = law.log_density(c, drawn.free, moments)
    for i in range(n):
        row, own = slice(i, i + 1), Moments(*(part[i : i + 1] for part in moments))
        alone = law.draw(c[row], u[row], own)
        np.testing.assert_array_equal(alone.free, drawn.free[row])
        np.testing.assert_array_equal(alone.log_density, drawn.log_density[row])
        np.testing.assert_array_equal(law.log_density(c[row], drawn.free[row], own), density[row])


@pytest.mark.parametrize(("name", "choice"), [pair for pair in ALL if pair[1] not in ("local", "learned")])
def test_density_against_the_volume_that_draws_spread_over(name: str, choice: str) -> None:
    """Where points are a smooth function of their uniforms, g_c = 1/|d theta_I/d uniforms|."""
    fibre, law = prepared(name, choice)
    n, r, step = 12, fibre.dimension, 1e-6
    c, moments = some_c(fibre, n), moments_of(fibre, n)
    u = 0.05 + 0.9 * uniforms(n, 8, law.width)
    found = law.draw(c, u, moments)
    jacobian = np.empty((n, 8, r, r))
    for k in range(r):
        moved = step * (np.arange(r) == k)
        jacobian[..., k] = (law.draw(c, u + moved, moments).free - law.draw(c, u - moved, moments).free) / (2 * step)
    numerical = -np.linalg.slogdet(jacobian)[1]
    agree = np.abs(numerical - found.log_density) < 1e-4
    assert agree.mean() > 0.97  # a difference may straddle two intervals, or two simplices


@pytest.mark.parametrize(
    ("name", "choice"), [pair for pair in ALL if pair[1] in ("local", "learned")] + [("product of three", "polytope")]
)
def test_densities_have_mass_one(name: str, choice: str) -> None:
    """Means of phi/g_c over draws are integrals of phi, of densities phi that g_c covers."""
    fibre, law = prepared(name, choice)
    number, at = 4096, fibre.chart.free
    c, moments = some_c(fibre, 3), moments_of(fibre, 3)
    shifts = np.random.default_rng(0).random((3, 1, law.width))
    drawn = law.draw(c, shifted(lattice(number, law.width), shifts), moments)
    if choice == "polytope":
        inside = law.draw(c, uniforms(3, 4000, law.width), moments).free
        box = np.stack([inside.min(axis=1), inside.max(axis=1)], axis=1)
        rng = np.random.default_rng(1)
        flat = box[:, :1] + (box[:, 1:] - box[:, :1]) * rng.random((3, 40_000, fibre.dimension))
        total = np.exp(law.log_density(c, flat, moments)).mean(axis=1) * np.prod(box[:, 1] - box[:, 0], axis=1)
        np.testing.assert_allclose(total, 1, atol=0.05)
        return
    prior = law.log_prior(drawn.free)
    assert (prior - drawn.log_density <= np.log(1 / WIDE) + 1e-9).all()
    np.testing.assert_allclose(np.exp(prior - drawn.log_density).mean(axis=1), 1, atol=0.03)
    theta = np.repeat(fibre.prior_draws[None], 3, axis=0)[..., at]
    ratio = np.exp(law.log_density(c, theta, moments) - law.log_prior(theta))
    assert np.isfinite(ratio).all()


@pytest.mark.parametrize("choice", ["local", "learned"])
@pytest.mark.parametrize("name", ["log", "gamma", "two arcs, mirrored"])
def test_gaussian_laws_integrate_to_one(name: str, choice: str) -> None:
    fibre, law = prepared(name, choice)
    c, moments = some_c(fibre, 3), moments_of(fibre, 3)
    prior = law.priors[0]
    shares = np.concatenate([[0], np.logspace(-12, -2, 6), np.linspace(0.05, 0.95, 10), 1 - np.logspace(-2, -14, 7)])
    centre, factor = law._shape(c, moments)
    own = fibre.chart.free[0]
    for i in range(3):
        marks = np.tile(fibre.to_coordinates(fibre.prior_draws[:1]), (33, 1))
        marks[:, own] = centre[i, 0] + factor[i, 0, 0] * np.linspace(-8, 8, 33)
        edges = np.concatenate([prior.quantile(shares), fibre.to_theta(marks)[:, own]])
        x, weights = nodes(np.unique(edges[np.isfinite(edges)]))
        one = Moments(*(part[i : i + 1] for part in moments))
        density = np.exp(law.log_density(c[i : i + 1], x[None, :, None], one))[0]
        assert density @ weights == pytest.approx(1, abs=2e-3)


# --- intervals ---


@pytest.mark.parametrize("name", CURVES)
def test_the_interval_law_covers_the_feasible_set(name: str) -> None:
    fibre, law = prepared(name, "interval")
    assert isinstance(law, IntervalLaw)
    n = 40
    c = some_c(fibre, n)
    drawn = law.draw(c, uniforms(n, 50, 1), moments_of(fibre, n))
    roots = fibre.weighted(drawn.free, c)
    assert (roots.found > 0).mean() > 0.9995
    # and where the prior has mass but the law has none, there is no root
    anywhere = np.tile(fibre.priors["x"].quantile(np.linspace(1e-9, 1 - 1e-9, 200))[:, None], (n, 1, 1))
    density = law.log_density(c, anywhere, moments_of(fibre, n))
    there = fibre.weighted(np.ascontiguousarray(anywhere), c).found > 0
    np.testing.assert_array_equal(np.isfinite(density), there)


@pytest.mark.parametrize("name", CURVES)
def test_interval_densities_integrate_to_one(name: str) -> None:
    fibre, law = prepared(name, "interval")
    c = some_c(fibre, 4)
    for row in c:
        found = fibre.support(row[None])
        total = 0.0
        for low, high in found.intervals[0, : found.found[0]]:
            x, weights = nodes(fibre.priors["x"].between(low, high, np.linspace(1e-9, 1 - 1e-9, 30)))
            density = np.exp(law.log_density(row[None], x[None, :, None], moments_of(fibre, 1)))[0]
            total += density @ weights
        assert total == pytest.approx(1, abs=1e-6)


def test_several_intervals_share_points_by_mass() -> None:
    for name in ("two arcs", "two arcs, normal", "two arcs, mirrored"):
        fibre, law = prepared(name, "interval")
        c = np.array([[1.0]])
        low, high = np.sqrt(1 - 0.81), np.sqrt(1 - 0.09)
        prior = fibre.priors["x"]
        mass = prior.mass([-high, low], [-low, min(high, prior.upper)])
        u = (np.arange(10_000) + 0.5)[None, :, None] / 10_000
        x = law.draw(c, u, moments_of(fibre, 1)).free[0, :, 0]
        assert (x < 0).mean() == pytest.approx(mass[0] / mass.sum(), abs=2e-4)
        assert ((np.abs(x) > low - 1e-9) & (np.abs(x) < high + 1e-9)).all()
        assert (np.diff(x) > 0).all()


@pytest.mark.parametrize("far", [10.0, 25.0, 35.0])
def test_feasible_intervals_far_out_in_the_tail(far: float) -> None:
    """x in (far - 1, far) under a standard normal prior: the law is its tail, and the estimate exact."""
    for name, sign in (("far tail", 1.0), ("far tail below", -1.0)):
        fibre, law = prepared(name, "interval")
        c = np.array([[sign * far]])
        u = (np.arange(100) + 0.5)[None, :, None] / 100
        drawn = law.draw(c, u, moments_of(fibre, 1))
        x = sign * drawn.free[0, :, 0]
        assert ((x > far - 1) & (x < far)).all()
        assert len(np.unique(x)) == 100
        found = fibre.weighted(drawn.free, c)
        log_p = found.log_weight[..., 0] - drawn.log_density
        exact = np.log(fibre.priors["x"].mass(far - 1, far))
        np.testing.assert_allclose(log_p, exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "c"),
    [("log", 9.0), ("log", -1.0), ("identity", np.nan), ("logit", np.inf), ("two arcs", 0.05), ("gamma", -2.0)],
)
def test_no_point_where_c_is_impossible(name: str, c: float) -> None:
    fibre, law = prepared(name, "interval")
    drawn = law.draw(np.array([[c]]), uniforms(1, 5, 1), moments_of(fibre, 1))
    log_weight = fibre.weighted(drawn.free, np.array([[c]])).log_weight[..., 0]
    assert not (log_weight - drawn.log_density > -np.inf).any()
    if np.isfinite(c):
        assert not np.isfinite(law.log_density(np.array([[c]]), np.array([[[0.7]]]), moments_of(fibre, 1))).any()


def test_the_law_is_flat_in_bounded_coordinates_and_else_the_prior() -> None:
    flat = {name: prepared(name, "interval")[1].flat for name in ("identity", "log", "logit", "loguniform", "gamma")}
    assert flat == {"identity": True, "log": True, "logit": False, "loguniform": True, "gamma": False}
    zero = Fibre(["x*y"], {"x": uniform(0.0, 1.0, "log"), "y": uniform(0.5, 1.0)}, partition=["x"])
    assert not IntervalLaw(zero).flat


# --- names and errors ---


def test_which_law_is_taken() -> None:
    assert isinstance(make_law(curve("log"), "auto"), IntervalLaw)
    assert isinstance(make_law(solid("product of three"), "auto"), PolytopeLaw)
    assert isinstance(make_law(solid("curved"), "auto"), (LearnedLaw, BlockLaw))
    assert isinstance(make_law(solid("two curves"), "auto"), BlockLaw)
    assert isinstance(make_law(solid("two curves"), PriorLaw), PriorLaw)
    assert isinstance(make_law(solid("curved"), LocalLaw), LocalLaw)
    points = Fibre(["a + b", "a*b"], {"a": uniform(0.0, 1.0), "b": uniform(0.0, 1.5)})
    law = make_law(points, "polytope")
    assert isinstance(law, NoPoint)
    drawn = law.draw(np.zeros((3, 2)), np.empty((3, 1, 0)), moments_of(points, 3))
    assert drawn.free.shape == (3, 1, 0)
    assert (drawn.log_density == 0).all()
    assert (law.log_density(np.zeros((3, 2)), drawn.free, moments_of(points, 3)) == 0).all()


def test_errors_say_what_to_do() -> None:
    with pytest.raises(SamplingError, match="finite bounds, which x does not have: use law 'prior'"):
        UniformLaw(curve("gamma"))
    with pytest.raises(SamplingError, match="dimension 1; these have dimension 2: use law 'prior'"):
        IntervalLaw(solid("product of three"))
    with pytest.raises(SamplingError, match="not polytopes"):
        PolytopeLaw(solid("curved"))
    with pytest.raises(SamplingError, match="unbounded in"):
        PolytopeLaw(Fibre(["x + y + z"], {n: normal() for n in "xyz"}))


# --- products of fibres ---


def test_blocks() -> None:
    fibre = solid("two curves")
    found = {tuple(fibre.names[k] for k in block.parameters): block.combinations for block in blocks(fibre)}
    position = {name: j for j, e in enumerate(fibre.combinations.independent) for name in names(e)}
    assert found == {("x", "y"): (position["x"],), ("a", "b"): (position["a"],), ("w",): ()}


def test_a_chain_of_combinations_is_one_block() -> None:
    priors = {n: uniform(0.1, 1.0) for n in "abcdef"}
    fibre = Fibre(["a*b", "c*d", "b + c", "e"], priors)
    assert {block.parameters for block in blocks(fibre)} == {(0, 1, 2, 3), (4,), (5,)}


def test_a_product_of_fibres_has_the_product_of_laws() -> None:
    fibre = solid("two curves")
    law = make_law(fibre, "auto")
    assert isinstance(law, BlockLaw)
    assert [type(part) for *_, part in law.parts] == [IntervalLaw] * 3
    n = 15
    c = some_c(fibre, n)
    drawn = law.draw(c, uniforms(n, 40, 3), moments_of(fibre, n))
    assert (fibre.weighted(drawn.free, c).found > 0).mean() > 0.999
    expected = np.zeros((n, 40))
    for name, own in (("x", ["x", "y"]), ("a", ["a", "b"])):
        combination = [f for f in fibre.combinations.independent if name in names(f)]
        free = next(k for k in fibre.free if k in own)
        part = Fibre(combination, {k: fibre.priors[k] for k in own}, constants=fibre.constants, partition=[free])
        at, j = fibre.free.index(free), list(fibre.combinations.independent).index(combination[0])
        expected += IntervalLaw(part).log_density(c[:, [j]], drawn.free[..., [at]], moments_of(part, n))
    expected += fibre.priors["w"].log_density(drawn.free[..., fibre.free.index("w")])
    np.testing.assert_allclose(drawn.log_density, expected, rtol=1e-10, atol=1e-10)


def test_blocks_of_learned_laws_take_their_own_moments() -> None:
    fibre = solid("two curves")
    whole, n = BlockLaw(fibre, LearnedLaw), 6
    c, moments = some_c(fibre, n), moments_of(fibre, n)
    drawn = whole.draw(c, uniforms(n, 20, whole.width), moments)
    np.testing.assert_allclose(whole.log_density(c, drawn.free, moments), drawn.log_density, atol=1e-9)
    # of a block that c does not reach, the law is the marginal of the moments with a share of the prior
    own = fibre.names.index("w")
    k = fibre.rank + own
    u = fibre.to_coordinates(np.tile(fibre.prior_draws[:1], (20, 1)))
    u[:, own] = np.log(drawn.free[0, :, fibre.free.index("w")])
    sd = LearnedLaw.inflation * np.sqrt(moments.covariance[0, k, k])
    z = (u[:, own] - moments.mean[0, k]) / sd
    narrow = np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * sd) / np.exp(u[:, own])
    mixture = np.log((1 - WIDE) * narrow + WIDE * np.exp(fibre.priors["w"].log_density(np.exp(u[:, own]))))
    part = next(p for p in whole.parts if not len(p[0]))
    other = Moments(moments.mean[:, part[2]], moments.covariance[:, part[2][:, None], part[2]])
    found = part[3].log_density(c[:, part[0]], drawn.free[..., part[1]], other)[0]
    np.testing.assert_allclose(found, mixture, rtol=1e-3, atol=1e-3)


def test_the_best_law_of_one_piece() -> None:
    assert isinstance(best_law(curve("log")), IntervalLaw)
    assert isinstance(best_law(solid("product of three")), PolytopeLaw)
    flat = {n: uniform(-1.0, 1.0) for n in "xyz"}
    assert isinstance(best_law(Fibre(["x^2 + y + z*x"], flat)), LearnedLaw)


# --- a law of one's own ---


class Tenfold:
    """Log-uniform over ten decades, whatever the fibre."""

    width = 1
    made = 0

    def __init__(self, fibre: Fibre):
        Tenfold.made += 1
        assert fibre.dimension == 1

    def draw(self, c: np.ndarray, uniforms: np.ndarray, moments: Moments) -> Drawn:
        free = 10.0 ** (10 * uniforms - 5)
        return Drawn(free, self.log_density(c, free, moments))

    def log_density(self, c: np.ndarray, free: np.ndarray, moments: Moments) -> np.ndarray:
        inside = (free > 1e-5) & (free < 1e5)
        return np.where(inside, -np.log(free * 10 * np.log(10)), -np.inf)[..., 0]


def test_a_law_of_ones_own() -> None:
    posterior, fibre = scaled()
    options = {"law": Tenfold, "aux": 32}
    settings = {"chains": 4, "warmup": 300, "draws": 600, "seed": 1, "progress": False}
    found = sample(posterior.problem, sampler="pseudo-marginal", fibre=fibre, options=options, **settings)
    assert Tenfold.made == 1
    assert "Tenfold" in json.loads(found.attrs["settings"])["options"]["law"]
    usual = sample(posterior.problem, sampler="pseudo-marginal", fibre=fibre, **settings)
    for name in ("k", "s", "a"):
        one, other = (np.log(data.posterior[name].values) for data in (found, usual))
        assert one.mean() == pytest.approx(other.mean(), abs=0.3 * other.std())
        assert one.std() == pytest.approx(other.std(), rel=0.3)
