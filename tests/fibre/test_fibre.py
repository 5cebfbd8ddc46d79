"""The fibre of small models, against what can be worked out by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from equifinal.errors import IdentifiabilityError
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.identifiability.analysis import analyse
from equifinal.language.model import Model
from equifinal.problem.prior import Prior
from tests.support.charts import SI_TRUTH, box

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


@pytest.mark.parametrize(
    ("combinations", "priors", "words"),
    [
        ("a*b", box(a=(0, 1), b=(0, 1)), r"must be a list of texts, such as \['a\*b', 'b/c'\]"),
        ([], {}, "a fibre needs at least one parameter"),
        (["a"], {"a": (0, 1)}, r"the prior of 'a' must be a Prior, not \(0, 1\)"),
        (["a/(b - b)"], box(a=(0, 1), b=(0, 1)), "divides by zero for all parameters"),
    ],
)
def test_what_makes_no_fibre_is_said(combinations, priors, words):
    with pytest.raises(IdentifiabilityError, match=words):
        Fibre(combinations, priors)


def test_what_has_no_equivalents_is_said(si):
    with pytest.raises(IdentifiabilityError, match="give one parameter vector theta at a time, not 2"):
        si.search([SI_TRUTH, SI_TRUTH], 3)
    with pytest.raises(IdentifiabilityError, match=r"1/\(a - b\) is not a finite number at a = 0.5, b = 0.5"):
        Fibre(["1/(a - b)", "c"], box(a=(0, 1), b=(0, 1), c=(0, 1))).search([0.5, 0.5, 0.5], 3)
    with pytest.raises(IdentifiabilityError, match=r"only fibres of dimension 1 have intervals.*has dimension 2"):
        Fibre(["a + b + c"], box(a=(0, 1), b=(0, 1), c=(0, 1))).support([[1.0]])


def test_noise_parameters_stand_for_themselves():
    result = analyse(Model.parse("x' = -a*b*x", ["x"]))
    fibre = Fibre.of(result, box(a=(0.1, 1), b=(0.1, 1), x_0=(0.1, 1), sigma=(0.1, 1)))
    assert fibre.rank == 3
    same = fibre.equivalents([0.5, 0.5, 0.5, 0.3], 5)
    assert (same[:, 3] == 0.3).all()


def test_a_fibre_travels(si):
    again = pickle.loads(pickle.dumps(si))
    assert again.free == si.free
    assert again.roots(np.array([[0.25]]), si.xi(SI_TRUTH)).theta == pytest.approx(
        si.roots(np.array([[0.25]]), si.xi(SI_TRUTH)).theta
    )
