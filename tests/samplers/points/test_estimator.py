"""Estimates of p_C(c) against quadrature and closed forms, and how roots are chosen from them."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate

from equifinal.errors import SamplingError
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.problem.prior import Prior
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.points.estimator import Estimator, EstimatorByC
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals.log_sums import choose
from equifinal.studies.paper.si_reference import SI_BOUNDS, si_interval
from tests.support.exact import case, si_draw


def moments_of(fibre: Fibre, n: int) -> Moments:
    theta = fibre.prior_draws
    both = np.concatenate(
        [combination_coordinates(fibre).forward(fibre.xi(theta)), fibre.to_coordinates(theta)], axis=1
    )
    return Moments(np.tile(both.mean(axis=0), (n, 1)), np.tile(np.cov(both.T), (n, 1, 1)))


def estimates(tool: Estimator | EstimatorByC, c: np.ndarray, seed: int = 0):
    rng = np.random.default_rng(seed)
    points = np.stack([tool.uniforms(rng) for _ in c])
    return tool.estimate(c, points, moments_of(tool.fibre, len(c)))


@cache
def hiv() -> Fibre:
    priors = load(example_path("hiv")).priors
    return Fibre(["beta", "rho", "delta", "c", "lambda*N"], priors)


def hiv_log_p(product: np.ndarray) -> np.ndarray:
    """lambda uniform on (1, 100), N on (100, 5000): the density of lambda*N is a length in log lambda."""
    low, high = np.maximum(1.0, product / 5000), np.minimum(100.0, product / 100)
    return np.log(np.log(high / low)) - math.log(99 * 4900)


def circle_p(c: float) -> float:
    """Of x^2 + y^2 = c with x uniform on (-1, 0.7) and y normal(0.2, 0.6) above -0.5, by quadrature in the angle."""
    prior = case("circle").posterior.fibre.priors["y"]
    r = math.sqrt(c)

    def density(angle: float) -> float:
        x, y = r * math.cos(angle), r * math.sin(angle)
        inside = -1 < x < 0.7 and y > -0.5
        return math.exp(prior.log_density(y)) / 1.7 / 2 if inside else 0.0

    breaks = [math.acos(0.7 / r)] if r > 0.7 else []
    breaks += [-b for b in breaks] + ([math.acos(-1 / r), -math.acos(-1 / r)] if r > 1 else [])
    breaks += [math.asin(-0.5 / r), -math.pi - math.asin(-0.5 / r)] if r > 0.5 else []
    edges = sorted({-math.pi, math.pi, *breaks})
    return sum(integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges))


# --- exact cases ---


def test_si_is_exact_with_intervals() -> None:
    """|det| = 1: p_C is the length of the interval of rho times the prior density, whatever the points."""
    fibre = case("si").posterior.fibre
    fibre = fibre.with_partition(["rho"])
    priors = {n: Prior("uniform", lower=low, upper=high) for n, (low, high) in zip(fibre.names, SI_BOUNDS, strict=True)}
    plain = Fibre(fibre.functions, priors | {"rho": Prior("uniform", lower=0.01, upper=1.0, coordinate="identity")})
    plain = plain.with_partition(["rho"])
    theta = si_draw(np.random.default_rng(0), 60)
    low, high = si_interval(theta_c := plain.xi(theta))
    exact = np.log(high - low) - np.log(np.diff(SI_BOUNDS, axis=1)).sum()
    for number, points in ((1, "iid"), (16, "lattice")):
        found = estimates(Estimator(plain, number, points=points), theta_c)
        np.testing.assert_allclose(found.log_p, exact, atol=1e-10)
        np.testing.assert_array_equal(found.empty, 0)
        np.testing.assert_array_equal(found.roots, number)
    # in log coordinates the points are uneven, and the mean is right
    many = estimates(Estimator(fibre, 4096), fibre.xi(theta))
    np.testing.assert_allclose(many.log_p, exact, atol=1e-3)


@pytest.mark.parametrize(("number", "points"), [(1, "iid"), (8, "lattice")])
def test_hiv_is_exact_with_intervals(number: int, points: str) -> None:
    fibre = hiv()
    c = fibre.xi(fibre.prior_draws[:100])
    found = estimates(Estimator(fibre, number, points=points), c)
    singles = sum(fibre.priors[n].log_density(c[:, j]) for j, n in enumerate(("beta", "rho", "delta", "c")))
    np.testing.assert_allclose(found.log_p, singles + hiv_log_p(c[:, 4]), atol=1e-10)


def test_a_circle_against_quadrature() -> None:
    fibre = case("circle").posterior.fibre
    values = np.array([0.1, 0.3, 0.6, 0.9, 1.3])
    exact = np.array([circle_p(c) for c in values])
    for options in ({}, {"law": "prior"}, {"charts": [["x"], ["y"]]}, {"law": "learned", "roots": "one"}):
        tool = Estimator(fibre, 64, points="iid" if "charts" not in options else "lattice", **options)
        found = np.exp(estimates(tool, np.repeat(values, 100)[:, None]).log_p).reshape(5, 100)
        error = found.std(axis=1) / math.sqrt(100) + 1e-9
        assert (np.abs(found.mean(axis=1) - exact) < 5 * error + 1e-6 * exact).all(), options


def test_a_sum_of_normals() -> None:
    """x + y is normal; priors without bounds."""
    priors = {"x": Prior("normal", mean=1, sd=1), "y": Prior("normal", mean=-2, sd=2)}
    values = np.array([[-3.0], [-1.0], [0.0], [2.0]])
    exact = -0.5 * (values[:, 0] + 1) ** 2 / 5 - 0.5 * math.log(2 * math.pi * 5)
    for law in ("auto", "prior", "local", "learned"):
        found = estimates(Estimator(Fibre(["x + y"], priors), 4096, law=law), values)
        np.testing.assert_allclose(found.log_p, exact, atol=0.02)


def test_points_without_a_continuum() -> None:
    """a + b and a*b: two roots, |det| = |a - b|."""
    fibre = case("sum and product").posterior.fibre
    theta = fibre.prior_draws[:50]
    found = estimates(Estimator(fibre, 1), fibre.xi(theta))
    a, b = theta.T
    both = (b < 1) & (a < 1.5)
    exact = np.log(np.where(both, 2.0, 1.0) / 1.5 / np.abs(a - b))
    np.testing.assert_allclose(found.log_p, exact, atol=1e-7)
    np.testing.assert_array_equal(found.roots, np.where(both, 2, 1))


# --- forms with the same mean ---


@pytest.mark.parametrize("name", ["circle", "cubic"])
def test_all_forms_have_the_same_mean(name: str) -> None:
    fibre = case(name).posterior.fibre
    values = np.array([[0.2], [0.5], [0.9]]) if name == "circle" else np.array([[-0.3], [0.0], [0.4]])
    n = 400
    reference = np.exp(estimates(Estimator(fibre, 20_000, law="prior"), values).log_p)
    forms = {
        "sum": Estimator(fibre, 8, points="iid"),
        "lattice": Estimator(fibre, 8),
        "one root": Estimator(fibre, 8, roots="one"),
        "charts": Estimator(fibre, 8, charts=[["x"], ["y"]]),
        "other chart": Estimator(fibre.with_partition(["y"]), 8),
        "by c": EstimatorByC(fibre, 8),
        "by c, one root": EstimatorByC(fibre, 8, roots="one"),
    }
    for form, tool in forms.items():
        few = 60 if isinstance(tool, EstimatorByC) else n
        found = np.exp(estimates(tool, np.repeat(values, few, axis=0)).log_p).reshape(3, few)
        error = found.std(axis=1) / math.sqrt(few)
        assert (np.abs(found.mean(axis=1) - reference) < 5 * error + 0.01 * reference).all(), form


def test_summing_roots_has_less_variance_than_one_of_them() -> None:
    fibre, c = case("cubic").posterior.fibre, np.zeros((1000, 1))
    one, total = (estimates(Estimator(fibre, 4, roots=roots), c).log_p.std() for roots in ("one", "sum"))
    assert total < 0.9 * one


def test_one_root_with_several_charts_is_refused() -> None:
    with pytest.raises(SamplingError, match="sum over the roots"):
        Estimator(case("circle").posterior.fibre, 4, roots="one", charts=[["x"], ["y"]])


# --- around a point ---

AROUND = [
    ("si", {}),
    ("si", {"law": "prior"}),
    ("circle", {}),
    ("circle", {"roots": "one"}),
    ("circle", {"charts": [["x"], ["y"]]}),
    ("cubic", {"roots": "one"}),
    ("product of three", {}),
    ("product of three", {"law": "learned"}),
    ("sum and product", {}),
    ("squares", {"roots": "one"}),
    ("labelled", {}),
]


@pytest.mark.parametrize(("name", "options"), AROUND)
@pytest.mark.parametrize("number", [1, 5])
def test_theta_is_one_of_the_points_around_it(name: str, options: dict, number: int) -> None:
    fibre = case(name).posterior.fibre
    tool = Estimator(fibre, number if fibre.dimension else 1, points="iid", **options)
    theta, rng = fibre.prior_draws[:60], np.random.default_rng(2)
    found = tool.around(theta, np.stack([tool.uniforms(rng) for _ in theta]), moments_of(fibre, 60))
    apart = np.abs(found.theta - theta[:, None]) / fibre.spread
    apart = np.where(np.isfinite(found.log_weight), np.nanmax(np.where(np.isnan(apart), np.inf, apart), axis=2), np.inf)
    assert (apart.min(axis=1) < 1e-6).all()
    assert np.isfinite(found.log_p).all()
    np.testing.assert_allclose(fibre.xi(theta), tool.fibre.xi(theta))


def test_around_has_the_weights_of_its_points() -> None:
    """The first point's weight is p(theta)/(N g |det|), as if it had been drawn."""
    fibre = case("si").posterior.fibre
    tool = Estimator(fibre, 3, law="prior", points="iid")
    theta, rng = fibre.prior_draws[:20], np.random.default_rng(0)
    found = tool.around(theta, np.stack([tool.uniforms(rng) for _ in theta]), moments_of(fibre, 20))
    at = fibre.chart.free
    log_g = tool.laws[0].log_density(fibre.xi(theta), theta[:, None, at], moments_of(fibre, 20))[:, 0]
    columns = fibre.geometry(theta).jacobian[:, :, fibre.chart.dependent]
    expected = fibre.log_prior(theta) - log_g - np.linalg.slogdet(columns)[1] - math.log(3)
    np.testing.assert_allclose(found.log_weight[:, 0], expected, atol=1e-8)


def test_a_start_is_never_without_weight() -> None:
    """Also where the law of the points gives theta no density, by rounding or because it is too narrow."""

    class Elsewhere:
        width = 1

        def __init__(self, fibre):
            pass

        def draw(self, c, uniforms, moments):
            return uniforms * 0 - 5.0, np.zeros(uniforms.shape[:2])

        def log_density(self, c, free, moments):
            return np.where(free[..., 0] == -5.0, 0.0, -np.inf)

    fibre = case("product").posterior.fibre
    tool = Estimator(fibre, 2, law=Elsewhere, points="iid")
    theta = fibre.prior_draws[:5]
    found = tool.around(theta, np.zeros((5, 2, 1)), moments_of(fibre, 5))
    assert np.isfinite(found.log_p).all()
    np.testing.assert_array_equal(found.theta[:, 0], theta)


# --- rows ---

ROWS = [*AROUND, ("circle", {"law": "local"}), ("product of four", {})]


@pytest.mark.parametrize(("name", "options"), ROWS)
def test_an_estimate_does_not_depend_on_its_company(name: str, options: dict) -> None:
    fibre = case(name).posterior.fibre
    tool, n = Estimator(fibre, 7 if fibre.dimension else 1, **options), 17
    theta, rng = fibre.prior_draws[:n], np.random.default_rng(0)
    c, points, moments = fibre.xi(theta), np.stack([tool.uniforms(rng) for _ in theta]), moments_of(fibre, n)
    c[3] += 100.0  # an impossible one among them
    whole, near = tool.estimate(c, points, moments), tool.around(theta, points, moments)
    for i in range(n):
        row, own = slice(i, i + 1), Moments(*(part[i : i + 1] for part in moments))
        for mine, alone in (
            (whole, tool.estimate(c[row], points[row], own)),
            (near, tool.around(theta[row], points[row], own)),
        ):
            for a, b in zip(mine, alone, strict=True):
                np.testing.assert_array_equal(a[row], b)


@pytest.mark.parametrize(("name", "options"), ROWS)
@pytest.mark.parametrize("value", [1e6, -1e6, np.inf, np.nan])
def test_impossible_values_have_no_density(name: str, options: dict, value: float) -> None:
    fibre = case(name).posterior.fibre
    tool = Estimator(fibre, 4 if fibre.dimension else 1, **options)
    found = estimates(tool, np.full((2, fibre.rank), value))
    assert (found.log_p == -np.inf).all()
    assert (found.log_weight == -np.inf).all()
    np.testing.assert_array_equal(found.empty, tool.number)
    np.testing.assert_array_equal(found.roots, 0)


def test_weights_sum_to_the_estimate() -> None:
    for name, options in ROWS:
        fibre = case(name).posterior.fibre
        found = estimates(Estimator(fibre, 4, **options), fibre.xi(fibre.prior_draws[:20]))
        total = np.logaddexp.reduce(found.log_weight, axis=1)
        np.testing.assert_allclose(total, found.log_p, atol=1e-12)
        there = np.isfinite(found.log_weight)
        theta = found.theta[there]
        c = np.repeat(fibre.xi(fibre.prior_draws[:20])[:, None], there.shape[1], axis=1)[there]
        np.testing.assert_allclose(fibre.xi(theta), c, rtol=1e-6, atol=1e-8)
        assert fibre.contains(theta).all()


# --- choosing ---


def test_roots_are_chosen_by_weight() -> None:
    weights = np.array([0.0, 1.0, 3.0, 0.0, 6.0, 0.0])
    with np.errstate(divide="ignore"):
        log_weight = np.log(weights) - 700.0
    n = 10_000
    chosen = choose(np.tile(log_weight, (n, 1)), (np.arange(n) + 0.5) / n)
    np.testing.assert_allclose(np.bincount(chosen, minlength=6) / n, weights / 10, atol=2 / n)


@pytest.mark.parametrize("u", [0.0, 0.5, 1.0 - 2.0**-53, 1.0])
def test_what_has_no_weight_is_never_chosen(u: float) -> None:
    rows = np.array(
        [
            [-np.inf, 0.0, -np.inf, -np.inf],
            [-np.inf, -800.0, -800.0, -np.inf],
            [0.0, -1000.0, -np.inf, -np.inf],
            [-np.inf] * 4,
        ]
    )
    chosen = choose(rows, np.full(4, u))
    assert chosen[0] == 1
    assert chosen[1] in (1, 2)
    assert chosen[2] == 0
    assert chosen[3] == 0


def test_padding_changes_no_choice() -> None:
    rng = np.random.default_rng(0)
    rows, u = rng.standard_normal((50, 6)), rng.random(50)
    padded = np.concatenate([rows, np.full((50, 9), -np.inf)], axis=1)
    np.testing.assert_array_equal(choose(rows, u), choose(padded, u))
