"""Exactness of the collapsed sampler.

Stationarity as for the pseudo-marginal sampler, whose kernel it shares, with proposals in batches; SI and HIV end to
end, three seeds each; and the marginal likelihood against exact values.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.formats.load import load
from equifinal.samplers.collapsed import batches as collapsed_block
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.collapsed.plan import Plan
from equifinal.samplers.collapsed.sampler import State
from equifinal.samplers.collapsed.tools import Tools
from equifinal.samplers.coordinates import bending
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.coordinates.unfolding import Unfolding
from equifinal.samplers.marginal import noise_integral
from equifinal.samplers.marginal.noise_integral import NoiseIntegral, apart, nothing
from equifinal.samplers.marginal.target import CountedTarget, Target
from equifinal.samplers.points.law import Moments
from equifinal.samplers.proposals import mixture
from equifinal.samplers.proposals.describing import described
from equifinal.samplers.proposals.evidence import BINS
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.moves import EVERY_LENGTH, FRESH_ONLY
from equifinal.samplers.proposals.quality import NONE
from equifinal.samplers.protocol import Task
from equifinal.samplers.pseudo_marginal.sampler import on_branch
from equifinal.samplers.searching.populations import Particles, Populations
from equifinal.samplers.searching.prior_draws import Draws
from equifinal.studies.paper.si_reference import si_data, si_interval, si_laplace, si_log_likelihood
from equifinal.studies.sample import sample
from tests.support.agreement import agree_with_importance_sampling, agree_with_quadrature
from tests.support.exact import Known, case
from tests.support.marks import slow_but
from tests.support.problems import si
from tests.support.starts import integrated, moments_of, stationary

LEVEL = 1e-8
FIXTURES = ("product", "circle", "sum and product", "labelled", "product of three", "si")
NOISE_POINTS = {"product of four": 1, "two scales": 4, "sum, product and noise": 4, "labelled with noise": 1}


def p_values(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    n: int = 10_000,
    turns: int = 8,
    lanes: int = 1,
    noise_points: int = 2,
    bent: bool = False,
    **options,
) -> list[float]:
    """Of Kolmogorov-Smirnov tests for each parameter and combination, after some turns of all lanes from exact draws.

    With several lanes, moves are steps of every length. Bent coordinates are bent within the posterior, on either side.
    """
    monkeypatch.setattr(collapsed_block, "BATCH", 5)  # two batches, the second in part
    found = case(name)
    known, fibre, rng = found.posterior, found.posterior.fibre, np.random.default_rng(1)
    n -= n % lanes
    start, independent = found.draw(rng, n), found.draw(rng, 3 * n)
    settings = collapsed.Settings(**options)
    tool = Tools(fibre, settings).make(settings.aux, 0)
    moments = moments_of(fibre, independent[:5000], n)
    target = Target(known, fibre, tool, off_the_mark(known, fibre, independent[:5000], noise_points))
    if bent:
        h = target.coordinates.at(known.to_coordinates(independent[:5000]))
        side = np.resize([1.0, -1.0], h.shape[1])
        target = Target(known, fibre, tool, target.integral, Bend(side, side * h.mean(axis=0) + h.std(axis=0)))
    x = target.coordinates.at(known.to_coordinates(independent[:5000]))
    proposal = two_off_the_mark(x)
    x = target.coordinates.relabelled(proposal, target.coordinates.at(known.to_coordinates(start)), rng.random(n))
    # in the coordinates c, the noise parameters that are integrated out are held where the target has them
    held = known.to_coordinates(start)
    held[:, target.integral.columns] = target.integral.start
    whole = stationary(tool, fibre.to_theta(held), moments, rng)
    noise = integrated(target.integral, start, rng)
    log_target = noise.log_mean + whole.log_p + target.coordinates.backward(x)[1] - target.integral.log_prior_at_start

    plan = Plan(
        mixture=proposal,
        quality=NONE,
        shares=FRESH_ONLY if lanes == 1 else EVERY_LENGTH,
        steps=EVERY_LENGTH,
        lanes=lanes,
        number=tool.number,
        way=0,
        unfolded=target.coordinates.replaced,
        bend=target.coordinates.bend,
        held=np.isin(fibre.names, target.integral.parameters),
        noise_start=target.integral.start,
        noise_scale=target.integral.scale,
        noise_points=target.integral.number,
        start=x[None],
        weights=np.full((1, n), 1 / n),
        moments=Moments(*(part[:1] for part in moments)),
        noise=0.0,
        modes=1,
        arrived=True,
        final=True,
        solves=0,
        failures=0,
    )
    chains = n // lanes

    def in_lanes(values: np.ndarray) -> np.ndarray:
        return values.reshape(chains, lanes, *values.shape[1:])

    state = State(
        position=known.to_coordinates(start)[:chains],
        log_prior=known.evaluate(known.to_coordinates(start)).log_prior[:chains],
        log_likelihood=known.log_density(start)[:chains],
        h=in_lanes(x),
        log_ratio=in_lanes(log_target - target.coordinates.log_density(proposal, x)),
        theta=in_lanes(whole.theta),
        log_weight=in_lanes(on_branch(fibre, whole, start)),
        noise=in_lanes(noise.values),
        noise_log_weight=in_lanes(noise.log_weight),
        noise_log_likelihood=in_lanes(noise.log_likelihood),
        key=rng.integers(2**63, size=chains).astype(np.uint64),
        fresh=np.zeros((chains, BINS)),
        visited=np.zeros((chains, BINS)),
        highest=np.full((chains, collapsed_block.HIGHEST), -np.inf),
        stood=np.zeros((chains, lanes, 2), np.int64),
    )
    _, block = collapsed.run_block(Task(known, fibre, settings), plan, state, [], 0, turns * lanes)
    assert 0.05 < block.accepted.mean() < 0.98
    theta = known.to_theta(block.position[:, -lanes:].reshape(n, -1))
    np.testing.assert_allclose(block.log_likelihood[:, -lanes:].ravel(), known.log_density(theta), atol=1e-5)
    columns = zip((*theta.T, *fibre.xi(theta).T), (*independent.T, *fibre.xi(independent).T), strict=True)
    return [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in columns]


def two_off_the_mark(x: np.ndarray) -> Mixture:
    """A proposal that does not fit, on purpose: the sampler must be exact with any."""
    covariance = np.atleast_2d(np.cov(x.T))
    aside = np.linalg.cholesky(covariance).sum(axis=1) / np.sqrt(x.shape[1])
    one = mixture.single(x.mean(axis=0) + 0.3 * aside, 1.3 * covariance, 5.0)
    return one.joined(mixture.single(x.mean(axis=0) - 0.6 * aside, 0.7 * covariance, 3.0), 0.4)


def off_the_mark(known: Known, fibre: Fibre, theta: np.ndarray, number: int) -> NoiseIntegral:
    """Noise parameters integrated out, with Newton steps from elsewhere and a wrong scale."""
    names = apart(known, fibre)
    u = known.to_coordinates(theta)[:, [fibre.names.index(name) for name in names]]
    spread = u.std(axis=0)
    return NoiseIntegral(known, names, u.mean(axis=0) + 0.3 * spread, 0.8 * spread, number)


def p_values_of_populations(monkeypatch: pytest.MonkeyPatch, itself: bool) -> list[float]:
    """The same for 150 pairs of small populations, whose mixtures are fitted again and again; or each to itself."""
    found, number, pairs = case("sum and product"), 12, 150
    known, fibre, rng = found.posterior, found.posterior.fibre, np.random.default_rng(1)
    start, independent = found.draw(rng, 2 * number * pairs), found.draw(rng, 6 * number * pairs)
    tool = Tools(fibre, collapsed.Settings()).make(1, 0)
    moments = moments_of(fibre, independent[:5000], 1)
    counted = CountedTarget(Target(known, fibre, tool, nothing(known)), moments, rng)

    def drawn(theta: np.ndarray) -> Draws:
        x = counted.coordinates.at(known.to_coordinates(theta))
        return Draws(x, *counted.log_prior_and_likelihood(x), len(x))

    def to_itself(self: Populations) -> None:
        x = [self.counted.coordinates.gathered(own) for own in self.x]
        self._take([described(x[j], x[1 - j], self.rng) for j in range(2)])

    if itself:
        monkeypatch.setattr(Populations, "_refit", to_itself)
    pool, moved = drawn(independent[:2000]).halves(), []
    for rows in start.reshape(pairs, 2, number, -1):
        both = Populations(counted, pool, number)
        both.power = 1.0
        both._place([Particles(*drawn(own)[:3]) for own in rows])
        for _ in range(8):
            both._sweeps(2)
        moved.append(both.x.reshape(2 * number, -1))
    c, _ = counted.coordinates.backward(np.concatenate(moved))
    return [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(c.T, fibre.xi(independent).T, strict=True)]


@pytest.mark.slow
def test_populations_that_move_each_other_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values_of_populations(monkeypatch, itself=False)) > LEVEL


@pytest.mark.slow
def test_populations_must_not_learn_from_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal that adapts to the draws that it moves makes them narrower from fit to fit, and that is seen."""
    assert min(p_values_of_populations(monkeypatch, itself=True)) < LEVEL


@pytest.mark.parametrize("points", slow_but("lattice", of=["iid", "lattice"]))
@pytest.mark.parametrize("name", slow_but("sum and product", "labelled", "si", of=FIXTURES))
def test_the_sampler_is_exact(name: str, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, aux=2, points=points)) > LEVEL


@pytest.mark.parametrize("name", slow_but("product of three", of=["circle", "sum and product", "product of three"]))
def test_steps_are_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(p_values(name, monkeypatch, aux=2, lanes=3)) > LEVEL


@pytest.mark.parametrize("name", slow_but("sum and product", of=["circle", "sum and product", "labelled with noise"]))
def test_bent_coordinates_are_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for lanes in (1, 3):
        assert min(p_values(name, monkeypatch, aux=2, lanes=lanes, bent=True)) > LEVEL


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_slope_of_bent_coordinates_must_count(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the sampler is wrong, and that is seen."""
    right = bending._backward
    monkeypatch.setattr(bending, "_backward", lambda *given: (right(*given)[0], np.zeros(given[0].shape)))
    assert min(p_values("circle", monkeypatch, aux=2, lanes=lanes, bent=True)) < LEVEL


@pytest.mark.parametrize("name", slow_but("sum, product and noise", of=NOISE_POINTS))
def test_integrating_noise_parameters_is_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 5000 if name == "sum, product and noise" else 10_000  # roots take time
    for lanes in (1, 3):
        assert min(p_values(name, monkeypatch, n=n, aux=2, noise_points=NOISE_POINTS[name], lanes=lanes)) > LEVEL


@pytest.mark.parametrize("error", ["density", "prior"])
def test_weights_of_noise_parameters_must_be_right(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the density they are drawn from, or without the prior's, the sampler is wrong, and that is seen."""
    if error == "density":
        right = noise_integral._points
        monkeypatch.setattr(noise_integral, "_points", lambda *given: (right(*given)[0], 0 * right(*given)[1]))
    else:
        monkeypatch.setattr(noise_integral, "log_prior", lambda s, table: np.zeros(len(s)))
    assert min(p_values("two scales", monkeypatch, n=4000, aux=2, noise_points=4)) < LEVEL


@pytest.mark.parametrize("lanes", [1, 3])
def test_images_must_count(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal's density without that of its images makes the sampler wrong, and that is seen."""
    monkeypatch.setattr(Unfolding, "log_density", lambda self, mixture, x: mixture.log_density(x))
    assert min(p_values("sum and product", monkeypatch, n=4000, aux=2, lanes=lanes)) < LEVEL


@pytest.mark.parametrize("seed", slow_but(1, of=(1, 2, 3)))
def test_si_agrees_with_quadrature(seed: int) -> None:
    """5.5 standard errors, 3 x 36 comparisons: a false alarm once in 240,000 seeds."""
    agree_with_quadrature(sample(si().problem, sampler="collapsed", seed=seed, progress=False))


@pytest.mark.parametrize("seed", slow_but(1, of=(1, 2, 3)))
def test_hiv_agrees_with_importance_sampling(seed: int) -> None:
    """The same, 3 x 54 comparisons."""
    agree_with_importance_sampling(sample(load(example_path("hiv")), sampler="collapsed", seed=seed, progress=False))


def test_the_marginal_likelihood_of_si() -> None:
    """Against quadrature over c; the fibre's part is exact: a constant density on an interval of rho."""
    mode, covariance = si_laplace()
    line = np.linspace(-8, 8, 81)
    z = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    factor = np.linalg.cholesky(covariance)
    c = mode * np.exp(z @ factor.T)
    low, high = si_interval(c)
    widths = np.prod([1e-3 - 1e-5, 0.99, 0.99, 499.0])  # of the priors
    constant = -0.5 * len(si_data()[0]) * np.log(2 * np.pi * 25)
    density = np.exp(si_log_likelihood(c) + constant) * (high - low) / widths * c.prod(axis=1)
    exact = np.log(density.sum() * (line[1] - line[0]) ** 3 * np.abs(np.diag(factor)).prod())
    data = sample(si().problem, sampler="collapsed", seed=1, progress=False)
    found = json.loads(data.attrs["findings"])
    assert found["log_evidence_error"] < 0.01
    assert abs(found["log_evidence"] - exact) < 5 * found["log_evidence_error"]
