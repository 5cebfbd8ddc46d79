"""The fibre of small models, against what can be worked out by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.combinations import PointStatus
from equifinal.fibre.partition import ranked, tangent_bases
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.constancy import require_constant_output
from equifinal.language.model import Model
from equifinal.problem.prior import Prior

SI_TRUTH = np.array([2.5e-4, 0.25, 0.6, 40.0])


def box(**bounds: tuple[float, float]) -> dict[str, Prior]:
    return {name: Prior("uniform", lower=low, upper=high) for name, (low, high) in bounds.items()}


@pytest.fixture(scope="module")
def si() -> Fibre:
    problem = load(example_path("si"))
    return Fibre(["beta*N - gamma", "beta/rho", "rho*I0"], problem.priors, constants={"N": 10_000}, partition=["rho"])


# --- SI ---


def test_si_chart_is_the_one_of_the_paper(si):
    c = si.xi(SI_TRUTH)
    np.testing.assert_allclose(c, [[1.9, 1e-3, 10.0]])
    rho = np.linspace(0.192, 0.289, 50)
    roots = si.roots(rho[:, None], c)
    assert (roots.found == 1).all()
    expected = np.column_stack([1e-3 * rho, rho, 1e-3 * rho * 1e4 - 1.9, 10.0 / rho])
    np.testing.assert_allclose(roots.theta[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(roots.log_det[:, 0], 0.0, atol=1e-12)  # |det| = 1
    assert (si.roots(np.array([[0.18], [0.3], [2.0]]), c).found == 0).all()


def test_si_support(si):
    """The interval that the four boxes leave, by hand, for many c at once."""
    rng = np.random.default_rng(0)
    theta = np.column_stack([p.quantile(rng.random(500)) for p in si.priors.values()])
    c = si.xi(theta)
    low = np.max([np.full(500, 0.01), 1e-5 / c[:, 1], (c[:, 0] + 0.01) / (1e4 * c[:, 1]), c[:, 2] / 500], axis=0)
    high = np.min([np.full(500, 1.0), 1e-3 / c[:, 1], (c[:, 0] + 1) / (1e4 * c[:, 1]), c[:, 2] / 1], axis=0)
    support = si.support(c)
    assert support.exact.all()
    assert (support.found == 1).all()
    np.testing.assert_allclose(support.intervals[:, 0], np.column_stack([low, high]), rtol=1e-9)


def test_si_by_analysis():
    problem = load(example_path("si"))
    fibre = Fibre.of(analyse(problem.model), problem.priors)
    assert (fibre.dimension, fibre.rank, fibre.chart.kind, fibre.chart.degree) == (1, 3, "rational", 1)
    same = fibre.equivalents(SI_TRUTH, 20)
    assert len(same) == 20
    assert (same[0] == SI_TRUTH).all()
    np.testing.assert_allclose(fibre.xi(same), np.tile(fibre.xi(SI_TRUTH), (20, 1)), rtol=1e-9)
    assert same[:, 2].min() < 0.02  # gamma runs through its whole prior
    assert same[:, 2].max() > 0.98


# --- branches ---


def test_both_orderings_of_sum_and_product():
    fibre = Fibre(["x + y", "x*y"], box(x=(0, 2), y=(0, 2)))
    roots = fibre.roots(np.empty((1, 0)), fibre.xi([0.5, 1.2]))
    assert roots.found[0] == 2
    np.testing.assert_allclose(sorted(roots.theta[0].tolist()), [[0.5, 1.2], [1.2, 0.5]])
    np.testing.assert_allclose(roots.log_det[0], np.log(0.7))
    np.testing.assert_allclose(fibre.equivalents([0.5, 1.2], 9), [[0.5, 1.2], [1.2, 0.5]])
    # one ordering only where the box allows one
    narrow = Fibre(["x + y", "x*y"], box(x=(0, 1), y=(1, 2)))
    np.testing.assert_allclose(narrow.equivalents([0.5, 1.2], 9), [[0.5, 1.2]])


def test_hiv_swap_has_both_branches():
    model = Model.parse("T' = lam - rho*T - beta*T*V\nU' = beta*T*V - delta*U\nV' = N*delta*U - c*V", ["V"])
    result = analyse(model)
    fibre = Fibre.of(result, box(**dict.fromkeys(result.parameters, (0.1, 5.0))))
    at = {"lam": 1.0, "rho": 0.5, "beta": 0.7, "delta": 1.1, "N": 2.0, "c": 1.6, "T_0": 1.2, "U_0": 1.5, "V_0": 0.8}
    same = fibre.equivalents([at[n] for n in fibre.names], 30)
    delta, c = fibre.names.index("delta"), fibre.names.index("c")
    kept = np.isclose(same[:, delta], 1.1) & np.isclose(same[:, c], 1.6)
    exchanged = np.isclose(same[:, delta], 1.6) & np.isclose(same[:, c], 1.1)
    assert (kept | exchanged).all()
    assert kept.sum() >= 8
    assert exchanged.sum() >= 8


@pytest.mark.parametrize("functions", [["a^2", "a*b", "b^2"], ["a^2", "a*b"]])
def test_more_generators_than_rank(functions):
    fibre = Fibre(functions, {n: Prior("normal", mean=0, sd=1) for n in "ab"})
    assert fibre.rank == 2
    assert not fibre.combinations.labels  # two of them determine the third
    np.testing.assert_allclose(fibre.equivalents([0.3, -0.8]), [[0.3, -0.8], [-0.3, 0.8]])


def test_labels_tell_branches_apart():
    """(a*b)^2 leaves the sign of a*b open and (a*b)^3 two complex factors; both together determine a*b."""
    fibre = Fibre(["a^3*b^3", "a^2*b^2", "b"], {n: Prior("normal", mean=0, sd=2) for n in "ab"})
    assert fibre.rank == 2
    theta = np.array([[1.5, -0.7]])
    c = fibre.xi(theta)
    everything = fibre.roots(np.empty((1, 0)), c)
    labelled = fibre.roots(np.empty((1, 0)), c, fibre.labels(theta))
    np.testing.assert_allclose(labelled.theta[0, : labelled.found[0]], theta)
    assert everything.found[0] >= labelled.found[0]
    np.testing.assert_allclose(fibre.equivalents(theta[0]), theta)


def test_circle_support_with_a_fold_and_cuts():
    fibre = Fibre(["x^2 + y^2"], box(x=(-2, 1), y=(-1, 2)), partition=["y"])
    support = fibre.support(np.array([[0.5], [1.69], [6.0]]))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(support.intervals[0, 0], [-half, half])
    np.testing.assert_allclose(support.intervals[1, 0], [-1.0, 1.3])  # the fold at 1.3, the box at -1
    np.testing.assert_allclose(support.intervals[2, 0], [np.sqrt(2), 2.0])
    assert support.found.tolist() == [1, 1, 1]


def test_support_of_two_intervals():
    fibre = Fibre(["y - x^2"], box(x=(-3, 3), y=(0.5, 2)), partition=["x"])
    support = fibre.support(np.array([[0.0]]))
    assert support.found[0] == 2
    expected = [[-np.sqrt(2), -np.sqrt(0.5)], [np.sqrt(0.5), np.sqrt(2)]]
    np.testing.assert_allclose(support.intervals[0, :2], expected)


def test_support_through_infinity():
    """p*V = c with half-lines: the pole at 0 is an end though no bound is met."""
    fibre = Fibre(["p*V"], {"p": Prior("gamma", shape=2, rate=1), "V": Prior("normal", mean=0, sd=3)}, partition=["V"])
    support = fibre.support(np.array([[1.5], [-2.0]]))
    np.testing.assert_allclose(support.intervals[:, 0], [[0.0, np.inf], [-np.inf, 0.0]])


@pytest.mark.parametrize(
    ("functions", "free"),
    [
        (["a*b + c", "a - c^2"], "b"),
        (["a*b + c", "a - c^2"], "c"),
        (["a^2*b - c", "b*c"], "a"),
        (["a + b + c", "a*b + b*c + c*a"], "a"),
        (["a^3 + b*c", "b - c"], "c"),
    ],
)
def test_support_against_a_scan(functions, free):
    fibre = Fibre(functions, box(a=(-1, 2), b=(-2, 1.5), c=(-1.5, 2)), partition=[free])
    rng = np.random.default_rng(3)
    theta = rng.uniform([-1, -2, -1.5], [2, 1.5, 2], (20, 3))
    c = fibre.xi(theta)
    support = fibre.support(c)
    assert support.exact.all()
    grid = np.linspace(*fibre.bounds[fibre.chart.free[0]], 4003)[1:-1]
    for i in range(20):
        inside = fibre.roots(grid[:, None], c[i]).found > 0
        intervals = support.intervals[i, : support.found[i]]
        claimed = ((grid[:, None] > intervals[:, 0]) & (grid[:, None] < intervals[:, 1])).any(axis=1)
        near = np.abs(grid[:, None] - intervals.ravel()).min(axis=1) < 1e-9
        assert (inside == claimed)[~near].all()


# --- geometry ---


def test_geometry_in_coordinates_against_differences(si):
    rng = np.random.default_rng(5)
    u = rng.normal(size=(6, 4))
    found = si.geometry_in_coordinates(u)
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-6
        slope = (si.xi(si.to_theta(u + step)) - si.xi(si.to_theta(u - step))) / 2e-6
        np.testing.assert_allclose(found.jacobian[:, :, k], slope, rtol=1e-5, atol=1e-9)
    gram = found.jacobian @ np.swapaxes(found.jacobian, 1, 2)
    np.testing.assert_allclose(found.log_volume, 0.5 * np.linalg.slogdet(gram)[1], rtol=1e-9)


def test_mirrored_coordinates_have_negative_slopes():
    fibre = Fibre(["a*b"], {"a": Prior("normal", mean=0, sd=1, upper=2), "b": Prior("uniform", lower=1, upper=3)})
    u = np.array([[0.3, -0.2]])
    slope = (fibre.xi(fibre.to_theta(u + [[1e-6, 0]])) - fibre.xi(fibre.to_theta(u - [[1e-6, 0]]))) / 2e-6
    np.testing.assert_allclose(fibre.geometry_in_coordinates(u).jacobian[:, :, 0], slope, rtol=1e-6)


def test_projections(si):
    rng = np.random.default_rng(6)
    u, v = rng.normal(size=(2, 7, 4))
    parts = si.project(u, v)
    jacobian = si.geometry_in_coordinates(u).jacobian
    rows = jacobian / np.linalg.norm(jacobian, axis=2, keepdims=True)
    np.testing.assert_allclose(np.einsum("nqd,nd->nq", rows, parts.tangent), 0.0, atol=1e-10)
    np.testing.assert_allclose(parts.tangent + parts.normal, v)
    np.testing.assert_allclose(np.einsum("nd,nd->n", parts.tangent, parts.normal), 0.0, atol=1e-10)


def test_rank_deficient_points_have_a_status():
    fibre = Fibre(["x^2 + y^2", "x/z"], {n: Prior("normal", mean=0, sd=1) for n in "xyz"})
    points = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
    found = fibre.geometry(points)
    assert found.status.tolist() == [PointStatus.RANK_DEFICIENT, PointStatus.NOT_FINITE, PointStatus.OK]
    assert found.log_volume[0] == -np.inf
    assert np.isnan(found.log_volume[1])
    assert np.isnan(fibre.project(points, points).tangent[:2]).all()


def test_ratios_of_volume_on_a_fibre_do_not_depend_on_how_it_is_written():
    priors = {n: Prior("lognormal", meanlog=0, sdlog=1) for n in "abc"}
    one, other = Fibre(["a*b", "b/c"], priors), Fibre(["(a*b)^3 + a*b", "a*c + b/c"], priors)
    same = one.equivalents([1.2, 0.7, 2.0], 5)
    first, second = one.geometry(same).log_volume, other.geometry(same).log_volume
    np.testing.assert_allclose(first - first[0], second - second[0], rtol=1e-9, atol=1e-9)


# --- roots that are easy to lose ---

SYMMETRIC = ["a + b + c", "a*b + b*c + a*c", "a*b*c"]


def loguniform(lower: float, upper: float) -> Prior:
    return Prior("loguniform", lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("functions", "priors"),
    [
        # elimination cancels nine digits between exchangeable parameters of different size
        ([*SYMMETRIC, "d*e"], {"a": (1e-5, 1e-3), "b": (0.1, 10), "c": (1e3, 1e5), "d": (0.5, 2), "e": (0.5, 2)}),
        (["a + b", "a*b"], {"a": (1e5, 1e7), "b": (1e-7, 1e-5)}),
        # squares of coefficients overflow
        (["a^2*b^20 + a*b^3", "b"], {"a": (0.1, 10), "b": (1e8, 1e10)}),
        # denominators vanish at a point that solves the equations without them
        (["v*x^2/(k^2 + x^2)", "v*x/(k + x)", "v + k"], {"v": (0.5, 2), "k": (0.5, 2), "x": (0.5, 2)}),
        (["a^5/b^7", "b^3/c^4"], {"a": (1e-8, 1e-4), "b": (1e4, 1e8), "c": (0.1, 10)}),
    ],
)
def test_every_point_is_found_again_on_any_scale(functions, priors):
    fibre = Fibre(functions, {name: loguniform(*bounds) for name, bounds in priors.items()})
    assert fibre.chart.most == fibre.chart.degree
    rng = np.random.default_rng(0)
    theta = np.column_stack([p.quantile(rng.random(3000)) for p in fibre.priors.values()])
    roots = fibre.roots(theta[:, fibre.chart.free], fibre.xi(theta))
    away = np.where(np.isnan(roots.theta), np.inf, np.abs(roots.theta / theta[:, None] - 1)).max(axis=2).min(axis=1)
    assert (roots.status == 0).mean() > 0.999
    assert away[roots.status == 0].max() < 1e-5


def test_what_is_lost_is_said():
    """Ten orders of magnitude between exchangeable parameters are too many; no root may vanish without a status."""
    fibre = Fibre(
        SYMMETRIC, {n: Prior("lognormal", meanlog=m, sdlog=1) for n, m in zip("abc", (-14, 0, 14), strict=True)}
    )
    rng = np.random.default_rng(0)
    theta = np.column_stack([p.quantile(rng.random(5000)) for p in fibre.priors.values()])
    roots = fibre.roots(np.empty((5000, 0)), fibre.xi(theta))
    away = np.where(np.isnan(roots.theta), np.inf, np.abs(roots.theta / theta[:, None] - 1)).max(axis=2).min(axis=1)
    assert (away[roots.status == 0] < 1e-3).all()
    assert (roots.status != 0).any()


@pytest.mark.parametrize(
    ("functions", "theta", "expected"),
    [
        (["a^2", "b", "a^3 + 1000000000*b"], [1.3, 1.1], [[1.3, 1.1]]),  # a small part of a large label
        (["a^2", "b^2", "c", "a*b*(a - b*c)"], [0.3, 0.1, 3.0], [[0.3, 0.1, 3.0], [-0.3, -0.1, 3.0]]),  # a label of 0
    ],
)
def test_labels_are_compared_as_closely_as_rounding_allows(functions, theta, expected):
    fibre = Fibre(functions, box(**dict.fromkeys("abc"[: len(theta)], (-4.0, 4.0))))
    np.testing.assert_allclose(fibre.equivalents(theta), expected)


def test_rank_does_not_depend_on_units():
    priors = {"b": Prior("normal", mean=1e-9, sd=1e-10), "N": Prior("normal", mean=1e6, sd=1e4)}
    fibre = Fibre(["b*N", "b*(N - 100000)"], priors)
    theta = np.array([[1.1e-9, 1.01e6]])
    assert fibre.geometry(theta).status[0] == PointStatus.OK
    assert fibre.geometry_in_coordinates(fibre.to_coordinates(theta)).status[0] == PointStatus.OK


def test_special_points_are_said_to_be_special():
    fibre = Fibre(["x + y", "x*y"], box(x=(0, 2), y=(0, 2)))
    with pytest.warns(UserWarning, match="special point"):
        fibre.equivalents([1.0, 1.0])


def test_wrong_shapes_are_refused(si):
    for call in (si.xi, si.geometry, si.log_prior, si.to_theta, si.geometry_in_coordinates, si.labels):
        with pytest.raises(IdentifiabilityError, match="must hold 4 numbers"):
            call([1.0, 2.0, 3.0])
    c = si.xi(SI_TRUTH)
    with pytest.raises(IdentifiabilityError, match="theta_I must hold 1 numbers"):
        si.roots(np.ones((2, 2)), c)
    with pytest.raises(IdentifiabilityError, match="c must hold 3 numbers"):
        si.roots(np.ones((2, 1)), np.ones(1))
    with pytest.raises(IdentifiabilityError, match="one row, or 3"):
        si.roots(np.ones((3, 1)), np.ones((2, 3)))


def test_a_name_is_a_parameter_or_a_constant():
    with pytest.raises(IdentifiabilityError, match="both as a constant and as a parameter"):
        Fibre(["a*b"], box(a=(0, 1), b=(0, 1)), constants={"a": 3})


# --- partitions ---


def test_scores_sum_to_one_and_do_not_depend_on_how_xi_is_written():
    priors = {n: Prior("lognormal", meanlog=0, sdlog=1) for n in "abcd"}
    one, other = Fibre(["a*b", "b/c"], priors), Fibre(["100*(a*b)^3", "a*c"], priors)
    scores, others = ({free: v for v, free in ranked(tangent_bases(f._jacobians()))} for f in (one, other))
    assert sum(scores.values()) == pytest.approx(1.0)
    assert scores == pytest.approx(others)


def test_rank_revealing_partition_can_fail_and_is_checked():
    """Large gradients that all lie in one combination: the first two pivots are a and b."""
    priors = box(a=(0.5, 2), b=(0.5, 2), s=(0.5, 2), z=(0.5, 2))
    with pytest.raises(IdentifiabilityError, match="not valid"):
        Fibre(["100*a*b", "s*z"], priors, partition="qr")
    fibre = Fibre(["100*a*b", "s*z"], priors)
    assert len({*fibre.free} & {"a", "b"}) == 1
    assert set(Fibre(["a*b", "s*z"], priors).free) == set(fibre.free)


def test_rank_revealing_partition_where_it_works(si):
    assert len(si.with_partition("qr").free) == 1


def test_few_roots_are_preferred():
    """Fixing a gives one root, fixing b two; their scores are alike."""
    fibre = Fibre(["a^2*b + b"], box(a=(0.5, 1.5), b=(0.5, 1.5)))
    assert fibre.free == ("a",)
    assert fibre.chart.degree == 1


def test_named_partition_is_checked(si):
    assert si.with_partition(["I0"]).free == ("I0",)
    with pytest.raises(IdentifiabilityError, match="cannot be the free coordinates"):
        si.with_partition(["rho", "I0"])
    with pytest.raises(IdentifiabilityError, match="did you mean 'rho'"):
        si.with_partition(["roh"])
    with pytest.raises(IdentifiabilityError, match="must be 'volume', 'qr'"):
        si.with_partition("qrr")


def test_partition_at_one_c_depends_on_c_alone():
    fibre = Fibre(["x*y"], box(x=(0.01, 10), y=(0.01, 1)))
    assert fibre.partition_at([[0.5]]) == fibre.partition_at([[0.5]])
    circle = Fibre(["x^2 + y^2"], box(x=(0.01, 1), y=(0.01, 5)), partition=["x"])
    assert circle.partition_at([[20.0]]) == ("x",)  # a small arc near the top
    assert circle.with_partition(["y"]).partition_at([[20.0]]) == ("x",)


# --- what may go wrong ---


@pytest.mark.parametrize(("unfinished", "missing"), [("out of time", "more time"), ("too large", "more effort")])
def test_incomplete_analysis_is_refused(unfinished, missing):
    from dataclasses import replace

    result = replace(analyse(Model.parse("x' = -a*b*x", ["x"])), complete=False, unfinished=unfinished)
    with pytest.raises(IdentifiabilityError, match=f"allow {missing}"):
        Fibre.of(result, box(a=(0, 1), b=(0, 1), x_0=(0, 1)))


def test_missing_priors_and_names():
    result = analyse(Model.parse("x' = -a*b*x", ["x"]))
    with pytest.raises(IdentifiabilityError, match="'b' has no prior"):
        Fibre.of(result, box(a=(0, 1), x_0=(0, 1)))
    with pytest.raises(IdentifiabilityError, match="did you mean 'a'"):
        Fibre(["A*b"], box(a=(0, 1), b=(0, 1)))


def test_noise_parameters_stand_for_themselves():
    result = analyse(Model.parse("x' = -a*b*x", ["x"]))
    fibre = Fibre.of(result, box(a=(0.1, 1), b=(0.1, 1), x_0=(0.1, 1), sigma=(0.1, 1)))
    assert fibre.rank == 3
    same = fibre.equivalents([0.5, 0.5, 0.5, 0.3], 5)
    assert (same[:, 3] == 0.3).all()


@pytest.mark.parametrize(
    ("theta", "n", "message"),
    [
        ([0.5], 3, "2 numbers .a, b. a row"),
        ([0.5, 2.0], 3, "outside its prior"),
        ([0.5, np.nan], 3, "outside its prior"),
        ([0.5, 0.5], 0, "positive whole number"),
    ],
)
def test_equivalents_refuses(theta, n, message):
    with pytest.raises(IdentifiabilityError, match=message):
        Fibre(["a*b"], box(a=(0, 1), b=(0, 1))).equivalents(theta, n)


def test_equivalents_on_surfaces_spread_far():
    fibre = Fibre(["a*b*c*d"], {n: Prior("lognormal", meanlog=0, sdlog=1) for n in "abcd"})
    same = fibre.equivalents([1, 1, 1, 1], 12)
    np.testing.assert_allclose(np.prod(same, axis=1), 1.0, rtol=1e-9)
    assert (same.max(axis=0) / same.min(axis=0) > 20).all()


def test_equivalents_where_random_points_rarely_hit():
    """Eight parameters with a fixed sum near the largest: a random choice of seven of them hardly ever fits."""
    names = "abcdefgh"
    fibre = Fibre(["+".join(names)], box(**dict.fromkeys(names, (0, 1))))
    same = fibre.equivalents([0.95] * 8, 10)
    assert len(same) == 10
    np.testing.assert_allclose(same.sum(axis=1), 7.6, rtol=1e-9)
    assert same.min() < 0.8


def test_a_fibre_travels(si):
    again = pickle.loads(pickle.dumps(si))
    assert again.free == si.free
    assert again.roots(np.array([[0.25]]), si.xi(SI_TRUTH)).theta == pytest.approx(
        si.roots(np.array([[0.25]]), si.xi(SI_TRUTH)).theta
    )


# --- combinations supplied by hand ---

SI = Model.parse(
    "S' = -beta*S*I + gamma*I\nI' = beta*S*I - gamma*I\nS(0) = N - I0\nI(0) = I0\ny = rho*I",
    ["y"],
    constants={"N": 10_000},
)
TWO_EXPONENTIALS = Model.parse("x' = -a*x\nz' = -b*z\ny = x + z", ["y"])


@pytest.mark.parametrize(
    ("model", "combinations"),
    [
        (SI, ["beta*N - gamma", "beta/rho", "rho*I0"]),
        (SI, ["beta*N - gamma", "beta/rho", "rho*I0", "gamma"]),  # finer than needed is allowed
        (SI, ["beta", "rho", "gamma", "I0"]),
        (TWO_EXPONENTIALS, ["a + b", "a*b", "x_0 + z_0", "b*x_0 + a*z_0"]),
    ],
)
def test_good_combinations_are_accepted(model, combinations):
    require_constant_output(model, combinations)


@pytest.mark.parametrize(
    ("model", "combinations", "message"),
    [
        (SI, ["beta/rho", "rho*I0"], "changes when gamma changes"),
        (SI, ["beta*N - gamma", "beta/rho", "rho^2*I0^2"], "several branches"),
        (TWO_EXPONENTIALS, ["a + b", "a*b", "x_0 + z_0", "x_0*z_0"], "several branches"),
        (SI, ["beta*M - gamma"], "'M', which is neither"),
        (SI, [], "not constant"),
    ],
)
def test_bad_combinations_are_refused(model, combinations, message):
    with pytest.raises(IdentifiabilityError, match=message):
        require_constant_output(model, combinations)
