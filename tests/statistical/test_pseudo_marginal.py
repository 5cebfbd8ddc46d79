"""Exactness of the pseudo-marginal sampler and of its estimator.

Stationarity: n chains start from the exact law of (c, U): theta from the posterior, U given that theta is one of its
points. After some steps every parameter and every combination must have the law it started with, by Kolmogorov-
Smirnov against independent exact draws, at level 1e-8 a test. Unbiasedness: means of hat p_C(c) phi(c)/q(c) under q
against means of phi(xi(theta)) under the prior, five functions phi each, 5.5 standard errors (a false alarm once in
26 million comparisons). Each error that the method is known to be prone to must make the first test fail at 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.samplers.coordinates.of_combinations import combination_coordinates
from equifinal.samplers.points.estimator import Estimator
from equifinal.samplers.points.lattice import shifted
from equifinal.samplers.points.law import PriorLaw
from equifinal.samplers.proposals.log_sums import choose
from equifinal.samplers.protocol import Task
from equifinal.samplers.pseudo_marginal import gradient as gradient_proposal
from equifinal.samplers.pseudo_marginal import sampler
from equifinal.studies.sample import sample
from tests.support.agreement import agree_with_importance_sampling, agree_with_quadrature
from tests.support.exact import Case, Sloped, case
from tests.support.marks import slow_but
from tests.support.problems import si
from tests.support.starts import moments_of, stationary

LEVEL, RARE = 1e-6, 1e-8  # what a planted error must fall below, and what an exact sampler must stay above
POINTS = ("iid", "lattice")
FIXTURES = (
    *("product", "circle", "sum and product", "squares", "labelled", "cubic"),
    *("sum of three", "product of three", "product of four", "two curves", "si"),
)
CURVES = ("product", "circle", "labelled", "cubic", "si")
REPLICATES = {"product": 100_000, "si": 100_000}


# --- chains ---


def all_at_once(monkeypatch: pytest.MonkeyPatch) -> np.random.Generator:
    """Chains take their numbers from one stream, in one stroke: with 100,000 chains a loop would take minutes."""
    one = np.random.default_rng(2)

    def numbers(rngs, q, tool):
        n = len(rngs)
        if getattr(tool, "base", None) is None:
            points = one.random((n, tool.number, tool.width))
        else:
            points = shifted(tool.base, one.random((n, 1, tool.width)))
        return one.standard_normal((n, q)), one.random((n, 3)), points

    monkeypatch.setattr(sampler, "_numbers", numbers)
    return one


def p_values(
    name: str, monkeypatch, n: int = 40_000, steps: int = 8, before=None, after=None, **options
) -> list[float]:
    found: Case = case(name)
    known, fibre, rng = found.posterior, found.posterior.fibre, np.random.default_rng(1)
    start, independent = found.draw(rng, n), found.draw(rng, 3 * n)
    settings = sampler.Settings(**options)
    uphill = settings.proposal == "gradient"
    if uphill:
        known = Sloped(fibre, known.log_density)
    all_at_once(monkeypatch)
    tool = sampler.estimator(fibre, settings)
    moments = moments_of(fibre, independent[:5000], n)
    h = combination_coordinates(fibre).forward(fibre.xi(start))
    state = sampler.begin(Task(known, fibre, settings), known.to_coordinates(start[:2])).state
    q = fibre.rank
    factor = np.tile(np.linalg.cholesky(moments.covariance[0, :q, :q]), (n, 1, 1))
    slope, scale = np.empty((n, 0)), 1.5 / np.sqrt(q)
    if uphill:
        _, slope, factor, _, _ = gradient_proposal.aim(known, fibre, start)
        scale = 1.0
    whole = stationary(tool, start, moments, rng)
    evaluated = known.evaluate(known.to_coordinates(start))
    state = sampler.State(
        position=known.to_coordinates(start),
        log_prior=evaluated.log_prior,
        log_likelihood=evaluated.log_likelihood,
        h=h,
        log_estimate=whole.log_p + combination_coordinates(fibre).backward(h)[1],
        theta=whole.theta,
        log_weight=sampler.on_branch(fibre, whole, start),
        factor=factor,
        slope=slope,
        log_scale=np.full(n, np.log(scale)),
        mean=moments.mean,
        covariance=moments.covariance,
    )
    assert np.isfinite(state.log_estimate).all()
    rngs, accepted, spent = [rng] * n, 0.0, 0
    evaluations = known.evaluations
    for _ in range(steps):
        if before is not None:
            state = before(state, tool, fibre, rng)
        state, info = sampler.step(Task(known, fibre, settings, 0), state, rngs, 1)
        accepted += info.accepted.mean() / steps
        spent += int(info.solves.sum())
    assert 0.02 < accepted < 0.95
    assert known.evaluations - evaluations == spent <= n * steps  # one solve an iteration, at the most
    theta = known.to_theta(state.position)
    if before is None:
        np.testing.assert_allclose(state.log_likelihood, known.log_density(theta), atol=1e-5)
    if after is not None:
        theta = after(state, tool, fibre, rng)
    columns = zip((*theta.T, *fibre.xi(theta).T), (*independent.T, *fibre.xi(independent).T), strict=True)
    return [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in columns]


# --- stationarity ---


@pytest.mark.parametrize("points", slow_but("lattice", of=POINTS))
@pytest.mark.parametrize("name", slow_but("product", "circle", "two curves", "sum and product", of=FIXTURES))
def test_the_sampler_is_exact(name: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, REPLICATES.get(name, 40_000), aux=2, points=points)) > RARE


@pytest.mark.parametrize("points", slow_but("iid", of=POINTS))
@pytest.mark.parametrize("aux", [1, 4])
@pytest.mark.parametrize(
    "name", slow_but("product", "product of three", of=["product", "circle", "product of three", "si"])
)
def test_whatever_the_number_of_points(name: str, aux: int, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, REPLICATES.get(name, 40_000), aux=aux, points=points)) > RARE


@pytest.mark.parametrize("points", slow_but("lattice", of=POINTS))
@pytest.mark.parametrize("law", ["prior", "uniform", "local", "learned"])
@pytest.mark.parametrize("name", slow_but("product", of=["product", "cubic", "product of three", "si"]))
def test_whatever_the_law_of_the_points(name: str, law: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, 20_000, law=law, aux=2, points=points)) > RARE


@pytest.mark.parametrize("points", slow_but("iid", of=POINTS))
@pytest.mark.parametrize(
    "name", slow_but("sum of three", of=["product", "sum of three", "product of three", "product of four"])
)
def test_on_polytopes(name: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, law="polytope", aux=2, points=points)) > RARE


@pytest.mark.parametrize("points", slow_but("iid", of=POINTS))
@pytest.mark.parametrize(
    "name", slow_but("sum and product", "squares", of=["circle", "cubic", "sum and product", "squares"])
)
def test_with_one_root_of_each_point(name: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, roots="one", aux=2, points=points)) > RARE


@pytest.mark.parametrize("points", slow_but("lattice", of=POINTS))
@pytest.mark.parametrize(
    ("name", "charts", "law"),
    [
        ("circle", [["x"], ["y"]], "auto"),
        ("circle", [["x"], ["y"]], "prior"),
        pytest.param("cubic", [["x"], ["y"]], "auto", marks=pytest.mark.slow),
        ("product of three", [["x", "y"], ["y", "z"], ["x", "z"]], "prior"),
        pytest.param("labelled", [["x"], ["y"]], "auto", marks=pytest.mark.slow),
    ],
)
def test_with_several_charts(name: str, charts, law: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, 20_000, charts=charts, law=law, aux=2, points=points)) > RARE


@pytest.mark.slow
def test_with_a_partition_for_each_c(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = sampler.estimator(case("circle").posterior.fibre, sampler.Settings(partition="by c", points="iid", aux=2))
    assert min(p_values("circle", monkeypatch, 2000, 4, partition="by c", points="iid", aux=2)) > RARE
    assert len(tool._made) > 1


@pytest.mark.parametrize("name", slow_but("product", "circle", of=["product", "circle", "product of three", "si"]))
def test_uphill(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, 10_000, aux=2, proposal="gradient")) > RARE


# --- end to end, with the usual number of points ---


@pytest.mark.slow
def test_si_from_prior_draws_agrees_with_quadrature() -> None:
    """5.5 standard errors, 36 comparisons: a false alarm once in 700,000 seeds."""
    agree_with_quadrature(sample(si().problem, sampler="pseudo-marginal", seed=3, progress=False))


@pytest.mark.slow
def test_hiv_from_prior_draws_agrees_with_importance_sampling() -> None:
    """The same, 54 comparisons."""
    problem = load(example_path("hiv"))
    agree_with_importance_sampling(sample(problem, sampler="pseudo-marginal", seed=3, draws=20_000, progress=False))


# --- unbiasedness ---


def z_values(name: str, n: int = 20_000, **options) -> list[float]:
    """Of means over q against means over the prior, in units of their standard errors."""
    found = case(name)
    fibre, rng = found.posterior.fibre, np.random.default_rng(5)
    coordinates = combination_coordinates(fibre)
    tool = sampler.estimator(fibre, sampler.Settings(**options))
    theta = found.posterior.sample_prior(rng, 10 * n)
    h = coordinates.forward(fibre.xi(theta))
    centre, covariance = h.mean(axis=0), np.cov(h.T).reshape(fibre.rank, fibre.rank)
    proposal = stats.multivariate_t(centre, 1.5 * covariance, df=5, seed=rng)
    drawn = proposal.rvs(n).reshape(n, fibre.rank)
    c, log_slope = coordinates.backward(drawn)
    points = np.stack([tool.uniforms(rng) for _ in range(n)])
    log_p = tool.estimate(c, points, moments_of(fibre, found.draw(rng, 5000), n)).log_p
    weight = np.exp(log_p + log_slope - proposal.logpdf(drawn))
    sd = np.sqrt(np.diag(covariance))
    functions = [
        lambda z: np.ones(len(z)),
        lambda z: np.tanh(z[:, 0]),
        lambda z: np.cos(2 * z.sum(axis=1)),
        lambda z: (z[:, -1] > 0.3).astype(float),
        lambda z: np.exp(-0.5 * (z**2).sum(axis=1)),
    ]
    found_z = []
    for phi in functions:
        estimate, exact = weight * phi((drawn - centre) / sd), phi((h - centre) / sd)
        error = np.sqrt(estimate.var() / n + exact.var() / len(exact))
        found_z.append(float(abs(estimate.mean() - exact.mean()) / error))
    return found_z


@pytest.mark.parametrize("points", slow_but("lattice", of=POINTS))
@pytest.mark.parametrize("name", FIXTURES)
def test_the_estimate_is_unbiased(name: str, points: str) -> None:
    assert max(z_values(name, aux=2, points=points)) < 5.5


@pytest.mark.parametrize("law", ["interval", "polytope", "prior", "uniform", "local", "learned"])
@pytest.mark.parametrize("aux", slow_but(4, of=[1, 4]))
def test_the_estimate_is_unbiased_with_every_law(law: str, aux: int) -> None:
    if law != "polytope":
        assert max(z_values("si", law=law, aux=aux)) < 5.5
    if law != "interval":
        assert max(z_values("product of three", law=law, aux=aux)) < 5.5


@pytest.mark.parametrize("options", [{"charts": [["x"], ["y"]]}, {"roots": "one"}, {"partition": ["y"]}])
def test_the_estimate_is_unbiased_in_every_form(options) -> None:
    assert max(z_values("circle", aux=2, **options)) < 5.5
    assert max(z_values("cubic", aux=2, **options)) < 5.5


# --- every error makes the first test fail ---


def refreshed(state, tool, fibre, rng):
    """The estimate of the state made anew, without asking whether to accept it."""
    coordinates = combination_coordinates(fibre)
    c, log_slope = coordinates.backward(state.h)
    found = tool.estimate(c, rng.random((len(c), tool.number, tool.width)), state.moments)
    new = np.isfinite(found.log_p)
    return state._replace(
        log_estimate=np.where(new, found.log_p + log_slope, state.log_estimate),
        theta=np.where(new[:, None, None], found.theta, state.theta),
        log_weight=np.where(new[:, None], found.log_weight, state.log_weight),
    )


def reconstructed_afresh(state, tool, fibre, rng):
    """theta from an importance sample of its own, rather than from the points of the state."""
    found = refreshed(state, tool, fibre, rng)
    return found.theta[np.arange(len(found.h)), choose(found.log_weight, rng.random(len(found.h)))]


def centred_on_the_chain(state, tool, fibre, rng):
    """The local law around where the chain is."""
    return state._replace(mean=np.concatenate([state.h, state.position], axis=1))


@pytest.mark.parametrize("aux", [1, 2, 4])
def test_the_estimate_must_be_kept(aux: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values("product", monkeypatch, before=refreshed, law="prior", aux=aux, points="iid")) < LEVEL


def test_every_proposal_needs_new_points(monkeypatch: pytest.MonkeyPatch) -> None:
    class FixedLattice(PriorLaw):
        def draw(self, c, uniforms, moments):
            lattice = np.broadcast_to(
                (np.arange(uniforms.shape[1]) + 0.5)[None, :, None] / uniforms.shape[1], uniforms.shape
            )
            return super().draw(c, lattice, moments)

    assert min(p_values("product", monkeypatch, law=FixedLattice, aux=4, points="iid")) < LEVEL


def test_theta_must_come_from_the_points_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values("product", monkeypatch, after=reconstructed_afresh, law="prior", aux=2, points="iid")) < LEVEL


@pytest.mark.slow
def test_the_local_law_must_not_follow_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values("product", monkeypatch, before=centred_on_the_chain, law="local", aux=1)) < LEVEL


def mutated(monkeypatch: pytest.MonkeyPatch, change) -> None:
    """Change what roots and weights a chart gives."""
    whole = Fibre.weighted

    def weighted(self, free, c):
        return change(self, whole(self, free, c))

    monkeypatch.setattr(Fibre, "weighted", weighted)


@pytest.mark.parametrize("name", slow_but("product", of=["product", "si"]))
def test_weights_must_not_lack_the_volume(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def times_volume(fibre, found):
        n, number, most, d = found.theta.shape
        log_j = fibre.geometry(found.theta.reshape(-1, d)).log_volume.reshape(n, number, most)
        return found._replace(log_weight=np.where(np.isfinite(log_j), found.log_weight + log_j, -np.inf))

    mutated(monkeypatch, times_volume)
    assert min(p_values(name, monkeypatch, 100_000, aux=2)) < LEVEL


@pytest.mark.parametrize(
    "name", slow_but("sum and product", "squares", of=["circle", "cubic", "sum and product", "squares"])
)
def test_every_root_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_only(fibre, found):
        lost = np.arange(found.theta.shape[2]) > 0
        return found._replace(
            log_weight=np.where(lost, -np.inf, found.log_weight), theta=np.where(lost[:, None], np.nan, found.theta)
        )

    mutated(monkeypatch, first_only)
    assert min(p_values(name, monkeypatch, aux=2, points="iid")) < LEVEL


@pytest.mark.parametrize("name", slow_but("circle", of=["circle", "cubic"]))
def test_one_root_needs_their_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutNumber(Estimator):
        def _simple(self, c, uniforms, moments, through):
            theta, log_weight, log_density, unresolved = super()._simple(c, uniforms, moments, through)
            found = self.charts[0].weighted(self._draw(0, c, uniforms, moments, through).free, c).found
            with np.errstate(divide="ignore", invalid="ignore"):
                return theta, log_weight - np.log(found)[..., None], log_density, unresolved

    monkeypatch.setattr(sampler, "Estimator", WithoutNumber)
    monkeypatch.setattr(sampler, "_made", {})
    assert min(p_values(name, monkeypatch, roots="one", aux=2, points="iid")) < LEVEL


def test_branches_of_another_likelihood_must_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "on_branch", lambda fibre, found, theta: found.log_weight)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        p_values("labelled", monkeypatch, 20_000, aux=2)


# --- errors that proposals uphill are prone to ---


def test_proposals_uphill_need_their_determinant(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gradient_proposal.log_density

    def without(new, h, slope, factor, log_scale):
        return whole(new, h, slope, factor, log_scale) + np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)

    monkeypatch.setattr(gradient_proposal, "log_density", without)
    assert min(p_values("product", monkeypatch, 10_000, aux=2, proposal="gradient")) < LEVEL


def test_proposals_uphill_are_not_symmetric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_proposal, "log_odds", lambda h, *rest: np.zeros(len(h)))
    assert min(p_values("product", monkeypatch, 10_000, aux=2, proposal="gradient")) < LEVEL


def test_proposals_uphill_have_the_shape_of_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way back with the shape of the way there."""
    whole = gradient_proposal.log_odds
    monkeypatch.setattr(
        gradient_proposal, "log_odds", lambda h, new, here, there, scale: whole(h, new, here, here, scale)
    )
    assert min(p_values("product", monkeypatch, 10_000, aux=2, proposal="gradient")) < LEVEL
