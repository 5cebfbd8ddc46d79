"""Posteriors whose exact draws are known, for tests of stationarity.

Each has a likelihood in closed form that depends on the combinations only, and a way to draw from the posterior that
shares nothing with the samplers: rejection from the prior, or, for the SI epidemic, rejection of its identifiable
combinations followed by a uniform draw along the fibre.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy import stats

from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Evaluation, Expansion, Likelihood, Outputs
from equifinal.problem.prior import Prior, log_prior, to_theta
from equifinal.studies.paper.si_reference import (
    POPULATION,
    SI_BOUNDS,
    si_combinations,
    si_interval,
    si_laplace,
    si_log_likelihood,
)

Array = np.ndarray


class Known:
    """A posterior with a likelihood in closed form: what samplers need of `equifinal.posterior.posterior.Posterior`."""

    likelihoods = (None,)  # one experiment
    noise_only: tuple[str, ...] = ()

    def __init__(self, fibre: Fibre, log_density: Callable[[Array], Array]):
        self.fibre, self.log_density, self.table = fibre, log_density, fibre.table
        self.problem = SimpleNamespace(priors=fibre.priors)
        self.parameters, self.dimension = fibre.names, len(fibre.names)
        self.to_theta, self.to_coordinates = fibre.to_theta, fibre.to_coordinates
        self.evaluations = 0

    def evaluate(self, u: Array) -> Evaluation:
        theta, log_slope = to_theta(np.ascontiguousarray(u), self.fibre.table)
        prior = log_prior(theta, self.fibre.table) + log_slope
        inside = np.isfinite(prior)
        likelihood = np.full(len(u), -np.inf)
        likelihood[inside] = self.log_likelihood(theta[inside]).values
        return Evaluation(np.where(inside, prior, -np.inf), likelihood, inside.astype(int), np.zeros(len(u), int))

    def log_likelihood(self, theta: Array, least: Array | None = None) -> Likelihood:
        self.evaluations += len(theta)
        return Likelihood(self.log_density(theta), np.ones(len(theta), int), np.zeros(len(theta), int))

    def expand(self, theta: Array) -> Expansion:
        """Without slopes: a first guess of a proposal is as wide as the prior."""
        n, d = theta.shape
        none = np.zeros(n, int)
        return Expansion(self.log_density(theta), np.zeros((n, d)), np.zeros((n, d, d)), none, none)

    def sample_prior(self, rng: np.random.Generator, size: int) -> Array:
        return np.column_stack([prior.sample(rng, size) for prior in self.fibre.priors.values()])


class Sloped(Known):
    """With slopes, and for the information the curvature of log L made positive, by differences in u."""

    def expand(self, theta: Array) -> Expansion:
        self.evaluations += len(theta)
        u, (n, d), step = self.to_coordinates(theta), theta.shape, 1e-3

        def at(*moves: Array) -> Array:
            return self.log_density(self.to_theta(u + step * sum(moves)))

        axes, here = np.eye(d), self.log_density(theta)
        sides = [(at(a), at(-a)) for a in axes]
        gradient = np.column_stack([above - below for above, below in sides]) / (2 * step)
        curvature = np.empty((n, d, d))
        for j, a in enumerate(axes):
            curvature[:, j, j] = (sum(sides[j]) - 2 * here) / step**2
            for k, b in enumerate(axes[:j]):
                mixed = (at(a, b) - at(a, -b) - at(-a, b) + at(-a, -b)) / (4 * step**2)
                curvature[:, j, k] = curvature[:, k, j] = mixed
        sizes, vectors = np.linalg.eigh(curvature)
        information = (vectors * np.abs(sizes)[:, None, :]) @ vectors.transpose(0, 2, 1)
        slopes = (self.to_theta(u + step) - self.to_theta(u - step)) / (2 * step)
        one, none = np.ones(n, int), np.zeros(n, int)
        return Expansion(here, gradient / slopes, information / slopes[:, :, None] / slopes[:, None, :], one, none)


class Noisy(Known):
    """With a likelihood of outputs m(theta) (n, outputs) and of noise parameters, which all observations have."""

    def __init__(
        self,
        fibre: Fibre,
        output: Callable[[Array], Array],
        log_density: Callable[[Array, Array], Array],
        noise_only: tuple[str, ...],
    ):
        super().__init__(fibre, lambda t: log_density(output(t), t))
        self.output, self.log_density_given, self.noise_only = output, log_density, noise_only
        entry = SimpleNamespace(noise=SimpleNamespace(parameters=noise_only))
        self.problem.experiments = (SimpleNamespace(observations=(entry,)),)

    def outputs(self, theta: Array) -> Outputs:
        self.evaluations += len(theta)
        none = np.zeros(len(theta), int)
        return Outputs((self.output(theta)[:, None],), (), none + 1, none)

    def log_likelihood_of(self, found: Outputs, theta: Array) -> Array:
        m = found.values[0][:, 0]
        return self.log_density_given(np.repeat(m, len(theta) // len(m), axis=0), theta)


class Case(NamedTuple):
    posterior: Known
    draw: Callable[[np.random.Generator, int], Array]
    step_size: float = 0.3
    covariance: float = 0.2


def by_rejection(posterior: Known) -> Callable[[np.random.Generator, int], Array]:
    """Draws from a posterior whose likelihood is at most one."""

    def draw(rng: np.random.Generator, size: int) -> Array:
        kept: list[Array] = []
        while sum(map(len, kept)) < size:
            theta = posterior.sample_prior(rng, size)
            kept.append(theta[np.log(rng.random(size)) < posterior.log_density(theta)])
        return np.concatenate(kept)[:size]

    return draw


def uniform(lower: float, upper: float, coordinate: str = "identity") -> Prior:
    return Prior("uniform", lower=lower, upper=upper, coordinate=coordinate)


def bell(value: Array, centre: float, sd: float) -> Array:
    return -0.5 * ((value - centre) / sd) ** 2


@cache
def case(name: str) -> Case:
    return CASES[name]()


def _case(fibre: Fibre, log_likelihood: Callable[[Array], Array], **options: float) -> Case:
    posterior = Known(fibre, log_likelihood)
    return Case(posterior, by_rejection(posterior), **options)


def product() -> Case:
    """x*y in an unequal box."""
    fibre = Fibre(["x*y"], {"x": uniform(0.2, 2.0), "y": uniform(0.5, 4.0, "log")})
    return _case(fibre, lambda t: bell(t[:, 0] * t[:, 1], 2.0, 1.0))


def circle() -> Case:
    """A circle cut by a box: several pieces, and two roots."""
    fibre = Fibre(["x^2 + y^2"], {"x": uniform(-1.0, 0.7), "y": Prior("normal", mean=0.2, sd=0.6, lower=-0.5)})
    return _case(fibre, lambda t: bell(t[:, 0] ** 2 + t[:, 1] ** 2, 0.6, 0.25))


def sum_and_product() -> Case:
    """a + b with a*b: no continuum, two roots, a fold."""
    fibre = Fibre(["a + b", "a*b"], {"a": uniform(0.0, 1.0), "b": uniform(0.0, 1.5, "logit")})
    return _case(fibre, lambda t: bell(t.sum(axis=1), 1.2, 0.5) + bell(t.prod(axis=1), 0.3, 0.2))


def squares() -> Case:
    """a^2, ab, b^2: more functions than their rank; (a, b) and (-a, -b)."""
    fibre = Fibre(["a^2", "a*b", "b^2"], {"a": uniform(-1.0, 1.0), "b": uniform(-1.0, 2.0)})
    return _case(fibre, lambda t: bell(t[:, 0] ** 2, 0.4, 0.4) + bell(t[:, 0] * t[:, 1], 0.2, 0.6))


def labelled() -> Case:
    """(xy)^2 and (xy)^3: either alone leaves branches of another likelihood, which the other one labels."""
    fibre = Fibre(["x^2*y^2", "x^3*y^3"], {"x": uniform(-1.0, 1.5), "y": uniform(-1.5, 1.0)})
    assert fibre.combinations.labels
    return _case(fibre, lambda t: bell(t[:, 0] * t[:, 1], 0.4, 0.5), step_size=0.5)


def wiggle() -> Case:
    """A fibre with bends so sharp that Newton's method may come back elsewhere than it went."""
    bumps = " - ".join(f"1/(1 + 25*(x - {k})^2)" for k in ("1/2", "3/2", "5/2"))
    fibre = Fibre([f"y - {bumps}"], {"x": Prior("normal", mean=0.0, sd=1.0), "y": uniform(-2.0, 3.0)})
    return _case(fibre, lambda t: np.zeros(len(t)), step_size=0.7)


def cubic() -> Case:
    """Up to three roots with different determinants and priors."""
    priors = {"x": uniform(-0.5, 0.5), "y": Prior("normal", mean=0.3, sd=0.7, lower=-1.3, upper=1.4)}
    fibre = Fibre(["x + y^3 - y"], priors, partition=["x"])
    assert fibre.chart.degree == 3
    return _case(fibre, lambda t: bell(t[:, 0] + t[:, 1] ** 3 - t[:, 1], 0.0, 0.3))


def sum_of_three() -> Case:
    """a + b + 2c: fibres are polygons."""
    priors = {"a": uniform(0.0, 1.0), "b": uniform(-0.5, 1.0), "c": Prior("normal", mean=0.3, sd=0.4, lower=0.0)}
    fibre = Fibre(["a + b + 2*c"], priors)
    return _case(fibre, lambda t: bell(t[:, 0] + t[:, 1] + 2 * t[:, 2], 1.5, 0.5))


def product_of_three() -> Case:
    """x*y*z, flat in a box: fibres are polygons in log coordinates."""
    priors = {"x": uniform(0.2, 2.0, "log"), "y": uniform(0.5, 3.0), "z": uniform(0.3, 1.5, "logit")}
    return _case(Fibre(["x*y*z"], priors), lambda t: bell(t.prod(axis=1), 1.0, 0.6))


def product_of_four() -> Case:
    """a*b*c*d and a noise parameter: fibres of dimension 3."""
    priors = {name: uniform(0.3, 1.5, "log") for name in "abcd"} | {"s": Prior("lognormal", meanlog=-0.5, sdlog=0.4)}
    fibre = Fibre(["a*b*c*d", "s"], priors)
    return _noisy(
        fibre, lambda t: t[:, :4].prod(axis=1, keepdims=True), lambda m, s: bell(m[:, 0], 0.7, s) - np.log(1 + s)
    )


def _noisy(fibre: Fibre, output: Callable[[Array], Array], log_density: Callable[[Array, Array], Array]) -> Case:
    """With one noise parameter s, with which the likelihood is at most one."""
    at = fibre.names.index("s")
    posterior = Noisy(fibre, output, lambda m, t: log_density(m, t[:, at]), ("s",))
    return Case(posterior, by_rejection(posterior))


def sum_product_and_noise() -> Case:
    """a + b with a*b, whose roots meet, and a noise parameter between them."""
    priors = {"s": Prior("halfnormal", sd=0.6), "a": uniform(0.0, 1.0), "b": uniform(0.0, 1.5, "logit")}
    return _noisy(
        Fibre(["a + b", "s", "a*b"], priors),
        lambda t: np.column_stack([t[:, 1] + t[:, 2], t[:, 1] * t[:, 2]]),
        lambda m, s: bell(m[:, 0], 1.2, s) + bell(m[:, 1], 0.3, 0.5 * s) - np.log(1 + s),
    )


def labelled_with_noise() -> Case:
    """(xy)^2 and (xy)^3, one of which labels branches, and a noise parameter."""
    priors = {"x": uniform(-1.0, 1.5), "s": Prior("lognormal", meanlog=-0.7, sdlog=0.5), "y": uniform(-1.5, 1.0)}
    fibre = Fibre(["x^2*y^2", "s", "x^3*y^3"], priors)
    assert fibre.combinations.labels
    return _noisy(fibre, lambda t: t[:, :1] * t[:, 2:], lambda m, s: bell(m[:, 0], 0.4, s) - np.log(1 + s))


def two_scales() -> Case:
    """x*y, and noise with a constant and a relative part, the latter up to a bound near its mode."""
    priors = {"s": Prior("halfnormal", sd=0.8), "x": uniform(0.2, 2.0), "y": uniform(0.5, 4.0, "log")}
    fibre = Fibre(["x*y", "s", "w"], priors | {"w": uniform(0.0, 0.6, "identity")})

    def log_density(m: Array, t: Array) -> Array:
        variance = t[:, 0] ** 2 + (t[:, 3] * m[:, 0]) ** 2
        return -0.5 * (m[:, 0] - 2.5) ** 2 / variance - 0.5 * np.log(1 + variance)

    posterior = Noisy(fibre, lambda t: t[:, 1:2] * t[:, 2:3], log_density, ("s", "w"))
    return Case(posterior, by_rejection(posterior))


def two_curves() -> Case:
    """a*b and c + d: the fibre is a product of two curves."""
    priors = {"a": uniform(0.3, 2.0, "log"), "b": uniform(0.5, 3.0), "c": uniform(0.0, 1.0)}
    fibre = Fibre(["a*b", "c + d"], priors | {"d": Prior("normal", mean=0.5, sd=0.5)})
    return _case(fibre, lambda t: bell(t[:, 0] * t[:, 1], 1.5, 0.8) + bell(t[:, 2] + t[:, 3], 1.0, 0.4))


# --- the SI epidemic ---


def si_draw(rng: np.random.Generator, size: int) -> Array:
    mode, covariance = si_laplace()
    proposal = stats.multivariate_t(np.zeros(3), 1.2 * covariance, df=8, seed=rng)
    kept: list[Array] = []
    bound = None
    while sum(map(len, kept)) < size:
        z = proposal.rvs(2 * size)
        c = mode * np.exp(z)
        low, high = si_interval(c)
        with np.errstate(divide="ignore"):
            log_weight = si_log_likelihood(c) + np.log(high - low) + z.sum(axis=1) - proposal.logpdf(z)
        bound = np.nanmax(log_weight) + 0.05 if bound is None else bound
        kept.append(c[np.log(rng.random(len(c))) < log_weight - bound])
    c = np.concatenate(kept)[:size]
    low, high = si_interval(c)
    rho, (k, g, m) = low + (high - low) * rng.random(size), c.T
    return np.column_stack([k * rho, rho, k * rho * POPULATION - g, m / rho])


def si() -> Case:
    names = ("beta", "rho", "gamma", "I0")
    priors = {name: uniform(low, high, "log") for name, (low, high) in zip(names, SI_BOUNDS, strict=True)}
    fibre = Fibre(["beta/rho", "10000*beta - gamma", "rho*I0"], priors)
    posterior = Known(fibre, lambda t: si_log_likelihood(si_combinations(t)))
    return Case(posterior, si_draw, 0.3, 1e-3)


CASES: dict[str, Callable[[], Case]] = {
    "product": product,
    "circle": circle,
    "sum and product": sum_and_product,
    "squares": squares,
    "labelled": labelled,
    "wiggle": wiggle,
    "cubic": cubic,
    "sum of three": sum_of_three,
    "product of three": product_of_three,
    "product of four": product_of_four,
    "two curves": two_curves,
    "two scales": two_scales,
    "sum, product and noise": sum_product_and_noise,
    "labelled with noise": labelled_with_noise,
    "si": si,
}
