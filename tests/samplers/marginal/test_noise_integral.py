"""Noise parameters integrated out: against quadrature; which of them; and through a whole run."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import arviz
import numpy as np
import pytest
from scipy import integrate, stats

from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.marginal import noise_integral
from equifinal.samplers.marginal.noise_integral import NoiseIntegral, apart, fitted, student_4
from equifinal.samplers.protocol import Task
from equifinal.samplers.running import run as running
from equifinal.samplers.running import under_way
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.searching.climbing import laplace
from equifinal.studies.sample import sample
from tests.support.problems import DECAY
from tests.support.running import assert_same_draws, interrupt_after

S = "s = { prior = 'lognormal', meanlog = -1, sdlog = 1 }"
# noise in a problem file, and priors of its parameters
FAMILIES = {
    "normal": ("family = 'normal', sd = 's'", [S]),
    "relative": (
        "family = 'normal', sd = 's', relative = 'w'",
        [S, "w = { prior = 'uniform', lower = 0, upper = 0.5 }"],
    ),
    "student-t": (
        "family = 'student-t', scale = 's', df = 'f'",
        [S, "f = { prior = 'gamma', shape = 2, rate = 0.1 }"],
    ),
    "lognormal": ("family = 'lognormal', sdlog = 's'", [S]),
    "censored": ("family = 'lognormal', sdlog = 's', below = 1, above = 1.7", [S]),
    "laplace": ("family = 'laplace', scale = 's', below = 0.5", [S]),
    "negative-binomial": (
        "family = 'negative-binomial', overdispersion = 's'",
        ["s = { prior = 'exponential', rate = 1 }"],
    ),
    "bounded": (
        "family = 'normal', sd = 's'",
        ["s = { prior = 'uniform', lower = 0.01, upper = 0.16, coordinate = 'identity' }"],
    ),
}

EXPERIMENTS = DECAY[: DECAY.index("[data]")].replace("sd = 0.2", "sd = 's'")
EXPERIMENTS = EXPERIMENTS.replace("[noise]", f"{S}\n{S.replace('s =', 'v =', 1)}\n[noise]")
EXPERIMENTS += """
[[experiment]]
name = 'one'
data = { time = [0, 1, 4], y = [1.9, 1.1, 0.1] }
[[experiment]]
name = 'two'
data = { time = [1, 2], y = [1.0, 0.7] }
noise = { y = { family = 'normal', sd = 'v' } }
"""


@cache
def noisy(family: str) -> Posterior:
    noise, priors = FAMILIES[family]
    text = DECAY.replace('family = "normal", sd = 0.2', noise).replace("[noise]", "\n".join([*priors, "[noise]"]))
    if family == "negative-binomial":
        text = text.replace("y = x", "y = 10*x").replace("[1.9, 1.6, 1.1, 0.8, 0.1]", "[21, 10, 16, 5, 0]")
    return Posterior(loads(text, name=family))


def at_a_trajectory(family: str, number: int, k: float = 0.6, a: float = 2.1) -> tuple[NoiseIntegral, np.ndarray]:
    posterior = noisy(family)
    middle = [posterior.problem.priors[name].quantile(0.5) for name in posterior.noise_only]
    theta = np.array([[k, a, *middle]])
    u = posterior.to_coordinates(theta)
    scale = np.sqrt(np.diagonal(laplace(posterior, u)[0][0]))[2:]
    return NoiseIntegral(posterior, posterior.noise_only, u[0, 2:], scale, number), theta


def exact(made: NoiseIntegral, theta: np.ndarray) -> float:
    """The integral by quadrature in u, in a box that holds nearly all of it."""
    posterior = made.posterior
    found = posterior.outputs(theta)
    low, high = [], []
    for name in made.parameters:
        prior = posterior.problem.priors[name]
        ends = np.array([prior.quantile(1e-9), prior.quantile(1 - 1e-9)])
        at = np.repeat(theta, 2, axis=0)
        at[:, posterior.parameters.index(name)] = ends
        u = posterior.to_coordinates(at)[:, posterior.parameters.index(name)]
        low.append(u[0]), high.append(u[1])

    nodes, weights = np.polynomial.legendre.leggauss(12)

    def composite(a: float, b: float, pieces: int = 60) -> tuple[np.ndarray, np.ndarray]:
        edges = np.linspace(a, b, pieces + 1)
        half = 0.5 * np.diff(edges)[:, None]
        return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()

    grids = [composite(a, b) for a, b in zip(low, high, strict=True)]
    u = np.stack(np.meshgrid(*(g for g, _ in grids), indexing="ij"), axis=-1).reshape(-1, len(grids))
    w = np.prod(np.stack(np.meshgrid(*(w for _, w in grids), indexing="ij"), axis=-1), axis=-1).ravel()
    z = (u - made.start) / made.scale
    log_likelihood, prior = made._evaluated(found, theta, np.ascontiguousarray(z)[None])
    return float(np.sum(w * np.exp(log_likelihood[0] + prior[0])))


@pytest.mark.parametrize("number", [1, 4, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimate_has_no_bias(family: str, number: int) -> None:
    """5 standard errors, 24 comparisons: a false alarm once in 70,000 seeds."""
    made, theta = at_a_trajectory(family, number)
    n = 20_000
    found = made.posterior.outputs(np.repeat(theta, n, axis=0))
    points = made.uniforms(np.random.default_rng(3), n)
    values = np.exp(made.along(found, np.repeat(theta, n, axis=0), points).log_mean) / exact(made, theta)
    assert abs(values.mean() - 1) < 5 * values.std() / np.sqrt(n) + 1e-6
    if number == 16 and family != "bounded":
        assert values.std() < 0.1


def test_weights_choose_the_conditional_law() -> None:
    made, theta = at_a_trajectory("normal", 64)
    n = 4000
    rng = np.random.default_rng(5)
    found = made.along(
        made.posterior.outputs(np.repeat(theta, n, axis=0)), np.repeat(theta, n, axis=0), made.uniforms(rng, n)
    )
    shares = np.exp(found.log_weight[:, 0] - found.log_mean[:, None])
    draws = np.array([rng.choice(v[:, 0], p=p / p.sum()) for v, p in zip(found.values, shares, strict=True)])
    line = np.linspace(0.01, 3, 4000)
    rows = np.repeat(theta, len(line), axis=0)
    rows[:, 2] = line
    density = np.exp(made.posterior.log_likelihood(rows).values + made.posterior.log_prior(rows))
    cumulative = integrate.cumulative_trapezoid(density, line, initial=0)
    assert stats.kstest(draws, lambda s: np.interp(s, line, cumulative / cumulative[-1])).pvalue > 1e-8


def test_quantiles_of_student_t() -> None:
    p = np.array([2.0**-54, 1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose([student_4(x) for x in p], stats.t(4).ppf(p), rtol=1e-6, atol=1e-12)


def test_where_the_law_is() -> None:
    """Far from where the Newton steps begin, as a bad trajectory makes it."""
    made, theta = at_a_trajectory("normal", 8, k=1.5, a=3.5)
    made = NoiseIntegral(made.posterior, made.parameters, made.start, np.array([0.3]), 8)
    found = made.posterior.outputs(theta)
    centre, factor = made.law(found, theta)
    z = np.linspace(-10, 10, 20_001)
    log_likelihood, prior = made._evaluated(found, theta, z[None, :, None])
    value = (log_likelihood + prior)[0]
    best = int(np.argmax(value))
    width = 1 / np.sqrt(-np.gradient(np.gradient(value, z), z)[best])
    assert abs(z[best]) > 1.5
    assert centre[0, 0] == pytest.approx(z[best], abs=0.1 * width)
    assert 1 / factor[0, 0, 0] == pytest.approx(width, rel=0.15)


# --- which ---


def held(text: str, combinations: list[str] | None = None) -> tuple[str, ...]:
    problem = loads(text)
    fibre = Fibre(combinations, problem.priors) if combinations else fibre_of(problem)
    return apart(Posterior(problem), fibre)


def test_which_parameters() -> None:
    text = DECAY.replace("sd = 0.2", "sd = 's'").replace("[noise]", f"{S}\n[noise]")
    assert held(text) == ("s",)
    assert held(text, ["k", "a", "s"]) == ("s",)
    assert held(text, ["k", "a*s", "s"]) == ()  # s is in another combination, too
    assert held(text.replace("y = x", "y = x + s")) == ()  # the model has it
    assert held(DECAY) == ()


def test_each_experiment_may_have_its_own() -> None:
    problem = loads(EXPERIMENTS)
    assert set(Posterior(problem).noise_only) == {"s", "v"}
    study = Study(problem)
    plan = collapsed.prepare(Task(study.posterior, study.coarsest_fibre[0], collapsed.Settings()), 1)
    integral = plan.noise_integral(study.posterior)
    assert set(integral.parameters) == {"s", "v"}
    assert integral._pairs.shape == (0, 2)  # no observation has both
    assert plan.mixture.centre.shape[1] == 2


def test_what_is_too_noisy_is_left_among_the_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = noisy("normal")
    theta = np.array([[0.6, 2.1, 0.2], [0.5, 1.9, 0.2]])
    u, found = posterior.to_coordinates(theta)[0, 2:], posterior.outputs(theta)
    rng = np.random.default_rng(1)
    for good, held in ((0.02, ("s",)), (0.0, ())):
        assert fitted(posterior, ("s",), u, np.array([0.3]), found, theta, good, rng).parameters == held
    monkeypatch.setattr(noise_integral, "POINTS", ())
    plan = collapsed.prepare(Task(posterior, Study(posterior.problem).coarsest_fibre[0], collapsed.Settings()), 1)
    assert plan.noise_integral(posterior).parameters == ()
    assert plan.mixture.centre.shape[1] == 3


def test_many_parameters_in_groups_of_their_own() -> None:
    """Eight outputs, each with its own scale: a few points for each suffice."""
    names = [f"s{i}" for i in range(8)]
    outputs = "\n".join(f"y{i} = x + {i}" for i in range(8))
    rng = np.random.default_rng(2)
    times = np.linspace(0, 3, 9)
    data = "\n".join(
        f"y{i} = {(2 * np.exp(-0.5 * times) + i + 0.1 * rng.standard_normal(9)).round(3).tolist()}" for i in range(8)
    )
    priors = "\n".join(f"{name} = {{ prior = 'lognormal', meanlog = -2, sdlog = 1 }}" for name in names)
    noise = "\n".join(f"y{i} = {{ family = 'normal', sd = '{name}' }}" for i, name in enumerate(names))
    text = f"""
    [model]
    equations = '''
    x' = -k*x
    x(0) = a
    {outputs}
    '''
    outputs = {[f"y{i}" for i in range(8)]}
    [parameters]
    k = {{ prior = "uniform", lower = 0.1, upper = 2 }}
    a = {{ prior = "normal", mean = 2, sd = 1, lower = 0 }}
    {priors}
    [noise]
    {noise}
    [data]
    time = {times.tolist()}
    {data}
    """
    posterior = Posterior(loads(text))
    fibre = Study(posterior.problem).coarsest_fibre[0]
    plan = collapsed.prepare(Task(posterior, fibre, collapsed.Settings()), 1)
    integral = plan.noise_integral(posterior)
    assert integral.parameters == tuple(names)
    assert [len(own) for own in integral.groups] == [1] * 8
    assert integral.number <= 8
    made = run(posterior, RunSettings(sampler="collapsed", draws=500, seed=1), fibre=fibre, plan=plan)
    assert min(float(arviz.ess(made.theta[:, :, j])) for j in range(10)) > 1000
    again = posterior.log_likelihood(made.theta.reshape(-1, 10)).values
    np.testing.assert_allclose(made.chunk.log_likelihood.ravel(), again, atol=1e-8)


# --- away from the highest mode ---

TWO_SCALES = '''
[model]
equations = """
x' = 0*x
x(0) = m
y = x
z = x
"""
outputs = ["y", "z"]
[parameters]
m = { prior = "uniform", lower = 0, upper = 3 }
s = { prior = "lognormal", meanlog = -2, sdlog = 2 }
v = { prior = "lognormal", meanlog = -2, sdlog = 2 }
[noise]
y = { family = "normal", sd = "s" }
z = { family = "normal", sd = "v" }
[data]
time = TIME
y = ONE
z = OTHER
'''


@pytest.mark.slow
def test_two_modes_with_scales_far_apart() -> None:
    """Either y is exact and z far off, or the reverse, as likely by symmetry; log Z by quadrature."""
    n = 15
    apart = (0.02 * np.random.default_rng(1).standard_normal(n)).round(4)
    one, other = 1 + apart, 2 - apart
    text = TWO_SCALES.replace("TIME", str(list(range(n)))).replace("ONE", str(one.tolist()))
    data = sample(loads(text.replace("OTHER", str(other.tolist()))), seed=1, draws=2000, progress=False)
    assert data.attrs["sampler"] == "collapsed"
    below = data.posterior["m"].values < 1.5
    ess = float(arviz.ess(below.astype(float), method="mean"))
    assert abs(below.mean() - 0.5) < 5 * 0.5 / np.sqrt(ess)
    m, u = np.linspace(0, 3, 6001), np.linspace(-9, 4, 1000)

    def integral(y: np.ndarray) -> np.ndarray:
        squares = np.sum((y - m[:, None]) ** 2, axis=1)[:, None]
        log_density = -0.5 * squares * np.exp(-2 * u) - n * u + stats.norm(-2, 2).logpdf(u)
        return np.log(np.exp(log_density).sum(axis=1) * (u[1] - u[0])) - n / 2 * np.log(2 * np.pi)

    exact = np.log(np.exp(integral(one) + integral(other)).sum() * (m[1] - m[0]) / 3)
    found = json.loads(data.attrs["findings"])
    assert abs(found["log_evidence"] - exact) < 5 * found["log_evidence_error"] + 1e-3


def test_a_prior_that_is_flat_in_the_scale() -> None:
    """Newton's method starts far off for many draws; estimates must not be too noisy for a chain to move."""
    text = DECAY.replace("sd = 0.2", "sd = 's'").replace(
        "[noise]", "s = { prior = 'uniform', lower = 0, upper = 3, coordinate = 'identity' }\n[noise]"
    )
    data = sample(loads(text), seed=5, draws=3000, progress=False)
    assert data.attrs["sampler"] == "collapsed"
    assert float(arviz.ess(data.posterior["s"].values)) > 3000
    assert json.loads(data.attrs["findings"])["longest_stay"] < 60


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_but_noise_parameters(seed: int) -> None:
    """No combination is left to propose; means by quadrature."""
    text = DECAY.replace("-k*x", "-0.6*x").replace("x(0) = a", "x(0) = 2.1").replace('half_life = "0.693147/k"', "")
    start, end = text.index("k = {"), text.index("[noise]")
    text = text[:start] + "s = { prior = 'lognormal', meanlog = -3, sdlog = 2 }\n" + text[end:]
    text = text.replace("sd = 0.2", "sd = 's', relative = 'w'").replace(
        "[noise]", "w = { prior = 'lognormal', meanlog = -3, sdlog = 2 }\n[noise]"
    )
    data = sample(loads(text), seed=seed, draws=2000, progress=False)
    (entry,) = loads(text).experiments[0].observations
    m = 2.1 * np.exp(-0.6 * entry.times)
    u = np.linspace(-13, 4, 700)
    variance = np.exp(2 * u)[:, None, None] + np.exp(2 * u)[None, :, None] * m**2
    log_density = np.sum(-0.5 * (entry.values - m) ** 2 / variance - 0.5 * np.log(variance), axis=2)
    density = np.exp(log_density) * stats.norm(-3, 2).pdf(u)[:, None] * stats.norm(-3, 2).pdf(u)
    share = density.sum(axis=1) / density.sum()
    draws = np.log(data.posterior["s"].values)
    mean = float(share @ u)
    spread = np.sqrt(float(share @ u**2) - mean**2)
    assert abs(draws.mean() - mean) < 5 * spread / np.sqrt(float(arviz.ess(draws, method="mean")))


# --- whole runs ---

SETTINGS = RunSettings(sampler="collapsed", chains=3, draws=300, seed=7)


def noisy_run(settings: RunSettings = SETTINGS, **options) -> running.Draws:
    posterior = noisy("relative")
    return run(posterior, settings, fibre=Study(posterior.problem).coarsest_fibre[0], **options)


@pytest.fixture(scope="module")
def plain() -> running.Draws:
    return noisy_run()


def test_processes_give_the_same_draws(plain: running.Draws) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert_same_draws(noisy_run(executor=executor), plain)


def test_a_run_is_taken_up_where_it_stopped(
    plain: running.Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way, "SEGMENT_SECONDS", 1e-6)
    file = tmp_path / "checkpoint.npz"
    assert noisy_run(progress=interrupt_after(4), checkpoint=file).interrupted
    whole = noisy_run(checkpoint=file)
    assert whole.resumed_at is not None
    assert_same_draws(whole, plain)
    assert whole.findings == plain.findings


def test_noise_parameters_take_no_solves(plain: running.Draws) -> None:
    """They are redrawn at every iteration, also where the rest stands still; and the likelihood is that of the draw."""
    assert ((plain.tally.solves - plain.tally.warmup_solves) <= 300).all()
    k, s = plain.theta[:, :, 0], plain.theta[:, :, 2]
    still = k[:, 1:] == k[:, :-1]
    assert still.mean() > 0.05
    assert (s[:, 1:] != s[:, :-1])[still].mean() > 0.5
    again = noisy("relative").log_likelihood(plain.theta.reshape(-1, 4)).values
    np.testing.assert_allclose(plain.chunk.log_likelihood.ravel(), again, atol=1e-9)


def test_the_posterior_and_the_marginal_likelihood() -> None:
    """Three parameters on a grid; means and deviations at 5 standard errors."""
    posterior = noisy("normal")
    data = sample(posterior.problem, seed=2, draws=5000, progress=False)
    assert data.attrs["sampler"] == "collapsed"
    (entry,) = posterior.problem.experiments[0].observations
    k, a, u = np.linspace(0.1, 2, 151)[1:-1], np.linspace(0, 5, 152)[1:-1], np.linspace(-4.5, 2, 150)
    outputs = a[None, :, None] * np.exp(-k[:, None, None] * entry.times)
    squares = np.sum((entry.values - outputs) ** 2, axis=2)[..., None]
    log_density = -0.5 * squares / np.exp(2 * u) - 5 * u - 2.5 * np.log(2 * np.pi)
    log_density = log_density + stats.norm(2, 1).logpdf(a)[None, :, None] - stats.norm.logsf(-2)
    density = np.exp(log_density + stats.norm(-1, 1).logpdf(u)) / 1.9
    cell = (k[1] - k[0]) * (a[1] - a[0]) * (u[1] - u[0])
    mass = density.sum()
    for axis, (name, line) in enumerate((("k", k), ("a", a), ("s", np.exp(u)))):
        share = density.sum(axis=tuple({0, 1, 2} - {axis})) / mass
        for power in (1, 2):
            mean = float(share @ line**power)
            spread = np.sqrt(float(share @ line ** (2 * power)) - mean**2)
            draws = data.posterior[name].values ** power
            ess = float(arviz.ess(draws, method="mean"))
            assert abs(draws.mean() - mean) < 5 * spread / np.sqrt(ess), name
    found = json.loads(data.attrs["findings"])
    assert found["log_evidence_error"] < 0.02
    assert abs(found["log_evidence"] - np.log(mass * cell)) < 5 * found["log_evidence_error"] + 1e-3
