"""Uniform laws on fibres that are polytopes: which are, their volumes, and that draws are uniform on them.

Seeds are fixed; a Kolmogorov-Smirnov test fails below p = 1e-6, the rate of false alarms had the seed been random.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import integrate, spatial, stats

from equifinal.errors import SamplingError
from equifinal.fibre.fibre import Fibre
from equifinal.problem.prior import Prior
from equifinal.samplers.points import polytope_loops as polytope_kernel
from equifinal.samplers.points.affine import NotAffine, affine_form
from equifinal.samplers.points.polytope import PolytopeLaw

LEVEL = 1e-6


def uniform(lower: float, upper: float) -> Prior:
    return Prior("uniform", lower=lower, upper=upper)


@cache
def fibre_of(functions: str, bounds: str, **options) -> Fibre:
    """Such as ``("a*b, a + c", "a 0 1, b 0 1, c -1 1")``, with uniform priors."""
    priors = {}
    for entry in bounds.split(","):
        name, lower, upper = entry.split()
        priors[name] = uniform(float(lower), float(upper))
    constants = {"N": 1000, "half": Fraction(1, 2)} if "N" in functions or "half" in functions else None
    free = options.get("free")
    chosen = {"partition": free.split()} if free else {}
    return Fibre([f.strip() for f in functions.split(",")], priors, constants=constants, **chosen)


def cube(names: str, lower: float = 0, upper: float = 1) -> str:
    return ", ".join(f"{name} {lower} {upper}" for name in names)


# --- which fibres are polytopes ---

FLAT = [
    ("2*a + b - c", cube("abc", -1), ""),
    ("3*a*b^2/c", cube("abc"), "abc"),
    ("a*b, c + d", cube("abcd"), "ab"),
    ("a*b, b/c, d", cube("abc") + ", d -1 1", "abc"),
    ("a*b, a, c + d", cube("abcd"), "ab"),
    ("a, a + b + c", cube("abc"), ""),
    ("a^2, a + b + c", cube("abc"), ""),
    ("2*a + 3, a*b*c", cube("abc"), "abc"),
    ("N*a - b", cube("ab"), ""),
    ("half*a/(N*b)", cube("ab"), "ab"),
    ("(a*b)^2/(a*b)", cube("ab"), "ab"),
    ("(a + b)*(a - b)/(a + b)", cube("ab"), ""),  # divides by zero at some points
    ("(a*b + a*c)/(b + c), d - e", cube("abcde"), ""),  # is a
    ("-2*a, b*c", "a -1 1, b 0 1, c 0 1", "bc"),
]


@pytest.mark.parametrize(("functions", "bounds", "logarithmic"), FLAT, ids=[f[0] for f in FLAT])
def test_flat_fibres_are_recognised(functions, bounds, logarithmic):
    fibre = fibre_of(functions, bounds)
    form = affine_form(fibre)
    assert {n for n, is_log in zip(fibre.names, form.logarithmic, strict=True) if is_log} == set(logarithmic)
    theta = fibre.prior_draws
    w = np.where(form.logarithmic, np.log(np.abs(theta)), theta)
    shift, scale, power, takes_log = form.levels.T
    x = (fibre.xi(theta) - shift) / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        b = np.where(takes_log, np.log(x) / power, np.where(power == 1, x, x ** (1 / power)))
    np.testing.assert_allclose(w @ np.array(form.matrix, float).T, b, rtol=1e-9, atol=1e-9)


CURVED = [
    ("a*b, a + c", cube("abc"), "'a' is in a sum and in a product"),
    ("N*a - b, a/c, c*d", cube("abcd"), "'a' is in a sum and in a product"),
    ("a*b + c", cube("abc"), r"a\*b \+ c is neither a sum"),
    ("a^2 + b", cube("ab"), "neither"),
    ("(a + b)/(a + 2*b)", cube("ab"), "neither"),
    ("a*b + half", cube("ab"), "neither"),
    ("a^3/(a + b)^2", cube("ab"), "neither"),
    ("a*b", "a -1 1, b 0 1", "'a' in a\\*b may be negative"),
    ("a^2, b + c", "a -1 1, b 0 1, c 0 1", r"'a' in a\^2 may be negative"),
]


@pytest.mark.parametrize(("functions", "bounds", "reason"), CURVED, ids=[f[0] for f in CURVED])
def test_curved_fibres_are_refused(functions, bounds, reason):
    fibre = fibre_of(functions, bounds)
    with pytest.raises(SamplingError, match=reason):
        PolytopeLaw(fibre)


def test_nearly_a_monomial_is_none():
    """Arithmetic is exact: 1 + 1e-9 and 1 + 1e-30 are not 1."""
    for fibre in (fibre_of("a*(b + 1)/(b + 2)", cube("ab")), fibre_of("a*b*(c + 10^30), c + d", cube("abcd"))):
        with pytest.raises(NotAffine):
            affine_form(fibre)


def test_parameters_in_no_combination_follow_their_prior():
    priors = {"a": uniform(0, 1), "b": Prior("loguniform", lower=0.1, upper=10), "c": uniform(-1, 1)}
    law = PolytopeLaw(Fibre(["a"], priors))
    free, log_density = law.draw(np.array([[0.3]]), np.random.default_rng(0).random((1, 50, 2)))
    expected = law.fibre.log_prior(np.column_stack([np.full(50, 0.3), free[0]]))
    np.testing.assert_allclose(log_density[0], expected, rtol=1e-12)


# --- volumes ---


def irwin_hall(n: int, x: np.ndarray) -> np.ndarray:
    """The density of the sum of n uniforms on (0, 1)."""
    x = np.minimum(x, n - x)  # where the terms do not cancel
    terms = [(-1) ** k * math.comb(n, k) * np.maximum(x - k, 0.0) ** (n - 1) for k in range(n + 1)]
    return np.sum(terms, axis=0) / math.factorial(n - 1)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_cut_cubes(names):
    law = PolytopeLaw(fibre_of(" + ".join(names), cube(names)))
    sums = np.linspace(0, len(names), 41)[1:-1]  # whole numbers too, where half-spaces touch corners
    np.testing.assert_allclose(law.volume(sums[:, None]), irwin_hall(len(names), sums), rtol=1e-12)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_simplices(names):
    """Small sums reach no upper bound, so the fibre is a simplex."""
    r = len(names) - 1
    law = PolytopeLaw(fibre_of(" + ".join(names), cube(names)))
    for s in (1e-12, 1e-3, 0.7):
        assert law.volume(np.array([[s]]))[0] == pytest.approx(s**r / math.factorial(r), rel=1e-12)


def in_w(logarithmic: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.where(logarithmic, np.log(np.where(logarithmic, theta, 1.0)), theta)


def as_half_spaces(law: PolytopeLaw, theta: np.ndarray) -> np.ndarray:
    """The fibre of theta as rows (a, b) of a . w + b <= 0, for SciPy; written apart from the code under test."""
    fibre, form = law.fibre, affine_form(law.fibre)
    matrix = np.array(form.matrix, float)
    free, dependent = fibre.chart.free, fibre.chart.dependent
    slopes = -np.linalg.solve(matrix[:, dependent], matrix[:, free])
    w = in_w(form.logarithmic, theta)
    with np.errstate(divide="ignore"):
        bounds = in_w(form.logarithmic, fibre.bounds.T).T
    rows = []
    for k in range(len(fibre.names)):
        place = list(dependent).index(k) if k in dependent else None
        row = np.eye(law.width)[list(free).index(k)] if place is None else slopes[place]
        offset = w[k] - row @ w[free]
        for sign, bound in ((-1, bounds[k, 0]), (1, bounds[k, 1])):
            if np.isfinite(bound) and np.any(row):
                rows.append([*(sign * row), sign * (offset - bound)])
    return np.array(rows)


MANY = [
    ("a + b + 2*c + d, a - b + 3*c + e, a + b - c + f", cube("abcdef"), "a b c"),
    ("a + b + 2*c + d, a - b + 3*c + e, a + b - c + f", cube("abcdef"), "d e f"),
    ("a*b*c^2*d, a/b*c^3*e, a*b/c*f", cube("abcdef", 0.01, 2), "a b c"),
    ("a*b*c, a/b*d, a^2*b*e", cube("abcde", 0.01, 2), "a b"),
    ("a + b + c, a - 2*b + d", cube("abcd", -1, 1), "c d"),
    ("a*b*c*d", cube("abcd", 0, 3), "a c d"),
    ("a*b, c + d, e", cube("abcde", 0.1, 2), "a d"),
    ("a*b, b/c", cube("abc", 0.1, 2), "b"),
]


@pytest.mark.parametrize(("functions", "bounds", "free"), MANY, ids=[f"{m[0]}; {m[2]}" for m in MANY])
def test_volumes_against_hulls(functions, bounds, free):
    law = PolytopeLaw(fibre_of(functions, bounds, free=free))
    for theta in law.fibre.prior_draws[:25]:
        c = law.fibre.xi(theta)
        half_spaces = as_half_spaces(law, theta)
        inside = in_w(law._cuts.logarithmic, theta[law.fibre.chart.free])
        if law.width == 1:
            ends = -half_spaces[:, 1] / half_spaces[:, 0]
            expected = ends[half_spaces[:, 0] > 0].min() - ends[half_spaces[:, 0] < 0].max()
        else:
            corners = spatial.HalfspaceIntersection(half_spaces, inside).intersections
            expected = spatial.ConvexHull(corners).volume
        assert law.volume(c)[0] == pytest.approx(expected, rel=1e-8)


def test_a_volume_against_counting():
    law = PolytopeLaw(fibre_of(*MANY[0][:2], free=MANY[0][2]))
    c = law.fibre.xi(law.fibre.prior_draws[:1])
    x = np.random.default_rng(1).random((200_000, 3))
    matrix = np.array([[1, 1, 2], [1, -1, 3], [1, 1, -1]])
    others = c - x @ matrix.T
    hits = np.all((others > 0) & (others < 1), axis=1)
    assert abs(hits.mean() - law.volume(c)[0]) < 5 * hits.std() / math.sqrt(len(x))


@pytest.mark.parametrize("free", list(combinations("abcde", 2)))
def test_all_charts_give_the_same_mean_weight(free):
    """p_C does not depend on which coordinates are free: volume / |det A_D| is the same for all partitions."""
    functions = "a*b*c, a/b*d, a^2*b*e"
    exponents = {"a": (1, 1, 2), "b": (1, -1, 1), "c": (1, 0, 0), "d": (0, 1, 0), "e": (0, 0, 1)}
    reference = PolytopeLaw(fibre_of(functions, cube("abcde", 0.01, 2), free="a b"))
    law = PolytopeLaw(fibre_of(functions, cube("abcde", 0.01, 2), free=" ".join(free)))
    c = reference.fibre.xi(reference.fibre.prior_draws[:50])
    others = [n for n in "abcde" if n not in free]
    det = abs(np.linalg.det(np.array([exponents[n] for n in others])))
    np.testing.assert_allclose(law.volume(c) / det, reference.volume(c), rtol=1e-10)


# --- weights ---


def mean_weights(law: PolytopeLaw, c: np.ndarray, points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The mean of p(theta) / (g_c |det|) for each row of c, and its standard error."""
    fibre = law.fibre
    free, log_density = law.draw(c, np.random.default_rng(seed).random((len(c), points, law.width)))
    roots = fibre.roots(free.reshape(-1, law.width), np.repeat(c, points, axis=0))
    assert (roots.found == 1).all()
    log_weight = fibre.log_prior(roots.theta[:, 0]) - log_density.ravel() - roots.log_det[:, 0]
    weights = np.exp(log_weight).reshape(len(c), points)
    return weights.mean(axis=1), weights.std(axis=1) / math.sqrt(points)


def test_density_of_a_product():
    law = PolytopeLaw(fibre_of("x*y", "x 0 1, y 0.5 2"))
    c = np.array([0.01, 0.3, 0.5, 0.7, 1.9])
    found, error = mean_weights(law, c[:, None], 50)
    np.testing.assert_allclose(found, np.log(2 / np.maximum(0.5, c)) / 1.5, rtol=1e-12)
    assert (error < 1e-12).all()  # the weights are constant: uniform in logarithms is the conditional law itself


def test_density_of_a_product_of_three():
    law = PolytopeLaw(fibre_of("a*b*c", cube("abc")))
    c = np.array([1e-6, 0.01, 0.4, 0.99])
    np.testing.assert_allclose(mean_weights(law, c[:, None], 50)[0], np.log(c) ** 2 / 2, rtol=1e-11)


def test_density_of_a_sum():
    for names in ("abc", "abcd"):
        law = PolytopeLaw(fibre_of(" + ".join(names), cube(names)))
        c = np.array([0.1, 0.8, 1.5, 2.0, 2.7])
        np.testing.assert_allclose(mean_weights(law, c[:, None], 50)[0], irwin_hall(len(names), c), rtol=1e-12)


def test_density_of_both_kinds_and_a_single():
    law = PolytopeLaw(fibre_of("2*x*y, a + N*b, z", "x 0 1, y 0.5 2, a 0 1000, b 0 1, z 1 3"))
    assert law.width == 2
    c = np.array([[0.2, 500.0, 1.5], [2.0, 1300.0, 2.5]])
    product = np.log(2 / np.maximum(0.5, c[:, 0] / 2)) / 1.5 / 2
    total = irwin_hall(2, c[:, 1] / 1000) / 1000
    np.testing.assert_allclose(mean_weights(law, c, 50)[0], product * total / 2, rtol=1e-10)


def test_density_under_other_priors():
    """Weights vary: mean by Monte Carlo against quadrature."""
    a, b = Prior("normal", mean=1, sd=0.5, lower=0.2, upper=3), Prior("gamma", shape=2, rate=1, upper=4)
    for functions, determinant in (("a + b", lambda x: 1.0), ("a*b", lambda x: x)):
        law = PolytopeLaw(Fibre([functions], {"a": a, "b": b}))
        for c in (0.9, 2.0):
            other = (lambda x, c=c: c - x) if determinant(2.0) == 1 else (lambda x, c=c: c / x)
            ends = (0.2, min(3.0, c)) if determinant(2.0) == 1 else (max(0.2, c / 4), 3.0)

            def integrand(x, other=other, determinant=determinant):
                return float(np.exp(a.log_density(x) + b.log_density(other(x)))) / determinant(x)

            exact = integrate.quad(integrand, *ends)[0]
            mean, error = mean_weights(law, np.array([[c]]), 20_000)
            assert abs(mean[0] - exact) < 5 * error[0]


# --- draws ---


def by_rejection(law: PolytopeLaw, theta: np.ndarray, count: int) -> np.ndarray:
    """w_I uniform on the fibre of theta, from its bounds alone."""
    rng = np.random.default_rng(7)
    c, half_spaces = law.fibre.xi(theta), as_half_spaces(law, theta)
    room = polytope_kernel.room_for(law._cuts)
    polytope_kernel.set_offset(law._cuts, c[0], room.offset)
    assert polytope_kernel.set_box(law._cuts, room.offset, room.low, room.high)
    low, high = room.low - 0.05, room.high + 0.05  # wider: nothing may be missing at its sides
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < count:
        x = low + (high - low) * rng.random((200_000, law.width))
        kept.append(x[np.all(x @ half_spaces[:, :-1].T + half_spaces[:, -1] <= 0, axis=1)])
    return np.concatenate(kept)[:count]


@pytest.mark.parametrize(("functions", "bounds", "free"), MANY, ids=[f"{m[0]}; {m[2]}" for m in MANY])
def test_draws_are_uniform(functions, bounds, free):
    law = PolytopeLaw(fibre_of(functions, bounds, free=free))
    theta = law.fibre.prior_draws[3]
    c, expected = law.fibre.xi(theta), by_rejection(law, theta, 20_000)
    drawn, log_density = law.draw(c, np.random.default_rng(5).random((1, 20_000, law.width)))
    w = in_w(law._cuts.logarithmic, drawn[0])
    directions = [*np.eye(law.width), *np.random.default_rng(6).standard_normal((3, law.width))]
    for direction in directions:
        assert stats.ks_2samp(w @ direction, expected @ direction).pvalue > LEVEL
    np.testing.assert_allclose(law.log_density(c, drawn), log_density, rtol=1e-9, atol=1e-9)
    # and backwards: points that are uniform come from uniforms
    uniforms = law.inverse(c, np.where(law._cuts.logarithmic, np.exp(expected), expected)[None])[0]
    assert ((uniforms >= 0) & (uniforms <= 1)).all()
    for k in range(law.width):
        assert stats.kstest(uniforms[:, k], "uniform").pvalue > LEVEL
    for j, k in permutations(range(law.width), 2):  # and independent of each other
        assert stats.kstest((uniforms[:, j] + uniforms[:, k]) % 1, "uniform").pvalue > LEVEL


@pytest.mark.parametrize(("functions", "bounds", "free"), MANY, ids=[f"{m[0]}; {m[2]}" for m in MANY])
def test_there_and_back(functions, bounds, free):
    law = PolytopeLaw(fibre_of(functions, bounds, free=free))
    c = law.fibre.xi(law.fibre.prior_draws[:100])
    uniforms = np.random.default_rng(2).random((100, 20, law.width))
    drawn, _ = law.draw(c, uniforms)
    back = law.inverse(c, drawn)
    np.testing.assert_allclose(law.draw(c, back)[0], drawn, rtol=1e-8, atol=1e-10)
    # a fibre near the border of xi(Theta) is so small that rounding of w counts in it
    assert np.quantile(np.abs(back - uniforms), 0.99) < 1e-8


def test_points_lie_on_the_fibre_within_bounds():
    for functions, bounds, free in MANY:
        law = PolytopeLaw(fibre_of(functions, bounds, free=free))
        c = law.fibre.xi(law.fibre.prior_draws)
        drawn, _ = law.draw(c, np.random.default_rng(3).random((len(c), 16, law.width)))
        roots = law.fibre.roots(drawn.reshape(-1, law.width), np.repeat(c, 16, axis=0))
        assert (roots.found == 1).mean() > 0.9999  # but for rounding on the border


def test_every_row_stands_alone_and_travels():
    law = PolytopeLaw(fibre_of(*MANY[0][:2], free=MANY[0][2]))
    c = law.fibre.xi(law.fibre.prior_draws[:40])
    uniforms = np.random.default_rng(4).random((40, 8, 3))
    drawn, log_density = law.draw(c, uniforms)
    again = pickle.loads(pickle.dumps(law))
    for i in range(40):
        one, density = again.draw(c[i : i + 1], uniforms[i : i + 1])
        np.testing.assert_array_equal(one[0], drawn[i])
        np.testing.assert_array_equal(density[0], log_density[i])
    assert law.width == 3


# --- no points, and hardly any ---


@pytest.mark.parametrize(
    ("functions", "bounds", "c"),
    [
        ("a + b", cube("ab"), [2.5]),
        ("a + b", cube("ab"), [0.0]),  # a corner
        ("a + b + c", cube("abc"), [-0.1]),
        ("a + b + c + d", cube("abcd"), [4.0]),
        ("a*b", cube("ab"), [-0.5]),
        ("-a*b", cube("ab"), [0.5]),
        ("a*b", cube("ab"), [0.0]),
        ("a*b*d", cube("abd"), [1.5]),
        ("a + b, z", cube("abz"), [1.0, 1.5]),
        ("a*b, z", cube("abz"), [0.5, -0.5]),
        ("a*b, a", cube("abz"), [0.5, 0.25]),
        ("a*b", cube("ab"), [math.nan]),
        ("a*b", cube("ab"), [math.inf]),
        ("a + b + c, a + b + d", cube("abcd"), [0.5, 1.6]),
    ],
)
def test_no_point(functions, bounds, c):
    law = PolytopeLaw(fibre_of(functions, bounds))
    rows = np.array([c])
    assert law.volume(rows)[0] == 0
    drawn, log_density = law.draw(rows, np.full((1, 3, law.width), 0.5))
    assert np.isnan(drawn).all()
    assert np.isnan(log_density).all()
    somewhere = np.full((1, 1, law.width), 0.5)
    assert law.log_density(rows, somewhere)[0, 0] == -math.inf
    assert np.isnan(law.inverse(rows, somewhere)).all()


def test_outside():
    law = PolytopeLaw(fibre_of("a*b*c", cube("abc"), free="a b"))
    points = np.array([[[0.5, 0.9], [0.5, 0.3], [-0.5, -0.9], [0.0, 1.0], [1.2, 0.9], [math.nan, 0.5]]])
    found = law.log_density(np.array([[0.2]]), points)[0]
    assert found[0] == pytest.approx(-math.log(math.log(0.2) ** 2 / 2) - math.log(0.45))
    assert (found[1:] == -math.inf).all()
    assert np.isfinite(law.inverse(np.array([[0.2]]), points)).all(axis=2).tolist() == [[True] + 5 * [False]]


def test_half_spaces_that_coincide():
    """a + b <= 0.7 twice, and then from both sides."""
    law = PolytopeLaw(fibre_of("a + b + c, a + b + d", cube("abcd"), free="a b"))
    assert law.volume(np.array([[0.7, 0.7]]))[0] == pytest.approx(0.245, rel=1e-14)
    assert law.volume(np.array([[1.7, 0.7]]))[0] < 1e-15
    assert polytope_kernel.sizes(law._cuts, np.array([[0.7, 0.7]]))[0] == 2
    many = PolytopeLaw(
        fibre_of("a + b + c + d, a + b + c + e, a + b + c + f, a + b + c + g", cube("abcdefg"), free="a b c")
    )
    c = np.full((1, 4), 1.1 + 0.3)
    assert many.volume(c)[0] == pytest.approx(irwin_cdf(1.4) - irwin_cdf(0.4), rel=1e-12)
    alone = PolytopeLaw(fibre_of("a + b + c + d", cube("abcd"), free="a b c"))
    assert polytope_kernel.sizes(many._cuts, c)[0] <= 2 * polytope_kernel.sizes(alone._cuts, c[:, :1])[0]


def irwin_cdf(x: float) -> float:
    return sum((-1) ** k * math.comb(3, k) * max(x - k, 0.0) ** 3 for k in range(4)) / 6


def test_thin_fibres():
    """1e-9 wide and far from zero: exact to what rounding of w leaves."""
    law = PolytopeLaw(fibre_of("a - b, a + c + d", cube("acd", 0, 1) + ", b 0 1", free="a c"))
    c = np.array([[1 - 1e-9, 1.5]])
    assert law.volume(c)[0] == pytest.approx(0.5e-9, rel=1e-6)
    drawn, _ = law.draw(c, np.random.default_rng(0).random((1, 100, 2)))
    assert np.isfinite(law.log_density(c, drawn)).all()


def test_more_simplices_than_there_is_room_for_at_first():
    extra = "hijklmnopqrs"
    coefficients = np.random.default_rng(8).integers(-4, 5, (len(extra), 3))
    functions = [f"({x})*a + ({y})*b + ({z})*c + {n}" for n, (x, y, z) in zip(extra, coefficients, strict=True)]
    priors = dict.fromkeys("abc", uniform(0, 1)) | dict.fromkeys(extra, uniform(-1, 1))
    law = PolytopeLaw(Fibre(functions, priors, partition=list("abc")))
    middle = np.array([0.5] * 3 + [0.3] * len(extra))
    c = law.fibre.xi(middle[None])
    assert polytope_kernel.sizes(law._cuts, c)[0] > 100
    corners = spatial.HalfspaceIntersection(as_half_spaces(law, middle), middle[:3]).intersections
    assert law.volume(c)[0] == pytest.approx(spatial.ConvexHull(corners).volume, rel=1e-9)


# --- bounds ---


def test_bounds_of_others_bound_what_has_none():
    """a is bounded by c - b, log x by log c - log y; the box of the prior is infinite in both."""
    normal, gamma = Prior("normal", mean=0, sd=1), Prior("gamma", shape=2, rate=1)
    for free in "ab":
        law = PolytopeLaw(Fibre(["a + b"], {"a": normal, "b": uniform(1, 3)}, partition=[free]))
        assert law.volume(np.array([[0.4]]))[0] == pytest.approx(2)
        law = PolytopeLaw(Fibre(["a*b"], {"a": gamma, "b": uniform(1, 3)}, partition=[free]))
        assert law.volume(np.array([[0.4]]))[0] == pytest.approx(math.log(3))
    law = PolytopeLaw(Fibre(["a*b*c"], {"a": uniform(0, 2), "b": uniform(0, 1), "c": uniform(0, 1)}))
    assert law.volume(np.array([[0.2]]))[0] == pytest.approx(math.log(0.1) ** 2 / 2)


def test_unbounded_fibres_are_refused():
    normal, lognormal = Prior("normal", mean=0, sd=1), Prior("lognormal", meanlog=0, sdlog=1)
    with pytest.raises(SamplingError, match="unbounded in log y"):
        PolytopeLaw(Fibre(["x*y"], {"x": lognormal, "y": lognormal}, partition=["y"]))
    with pytest.raises(SamplingError, match=r"unbounded in a$"):
        PolytopeLaw(Fibre(["a + b"], {"a": normal, "b": normal}, partition=["a"]))
    with pytest.raises(SamplingError, match="unbounded in log x"):  # x/y: both may go to zero together
        PolytopeLaw(Fibre(["x/y"], {"x": uniform(0, 1), "y": uniform(0, 1)}, partition=["x"]))


def test_dimensions_that_are_not_supported():
    with pytest.raises(SamplingError, match="finite set of points"):
        PolytopeLaw(fibre_of("a, b", cube("ab")))
    with pytest.raises(SamplingError, match=r"4 dimensions.*at most 3"):
        PolytopeLaw(fibre_of("a + b + c + d + e", cube("abcde")))


def test_shapes_are_checked():
    law = PolytopeLaw(fibre_of("a + b + c", cube("abc")))
    with pytest.raises(SamplingError, match=r"c must have the shape \(n, 1\)"):
        law.draw(np.zeros((2, 2)), np.zeros((2, 5, 2)))
    with pytest.raises(SamplingError, match=r"uniforms must have the shape \(2, N, 2\)"):
        law.draw(np.zeros((2, 1)), np.zeros((2, 5, 3)))
    with pytest.raises(SamplingError, match=r"theta_I must have the shape \(2, N, 2\)"):
        law.log_density(np.zeros((2, 1)), np.zeros((1, 5, 2)))
