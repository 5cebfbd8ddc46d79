"""Loops over observations: densities by family, slopes against differences, information against squared slopes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from equifinal.formats.toml import loads
from equifinal.language.expression import evaluate
from equifinal.posterior.posterior import Posterior
from equifinal.problem.noise import Noise
from equifinal.problem.noise_families import FAMILIES
from tests.support.noise import log_density

MODEL = '''
[model]
equations = """
x' = s - k*x
y = b*x + 1
z = x
x(0) = a
"""
outputs = ["y", "z"]
[parameters]
k = { prior = "uniform", lower = 0.1, upper = 2 }
a = { prior = "gamma", shape = 4, rate = 1 }
s = { prior = "uniform", lower = 0.5, upper = 2 }
b = { prior = "lognormal", meanlog = 1, sdlog = 0.5 }
@parameters
[solver]
rtol = 1e-10
atol = 1e-12
[noise]
@noise
'''
ONE = """
[data]
time = [0.5, 1, 2, 4]
y = [4, 3, 7, 2]
z = [2, 1, 3, 1]
"""
INCREMENTS = ONE + 'increments = ["y"]\n'
TWO = """
[[experiment]]
name = 'one'
data = { time = [0.5, 2], y = [3, 6], z = [1, 2] }
[[experiment]]
name = 'two'
data = { time = [1, 3, 4], y = [5, 2, 2], z = [2, 3, 1] }
"""

NOISES = {
    "normal": ('family = "normal", sd = 0.7', ""),
    "normal, relative": ('family = "normal", sd = 0.3, relative = 0.4', ""),
    "normal, only relative": ('family = "normal", relative = 0.4', ""),
    "normal, estimated": ('family = "normal", sd = "e", relative = "r"', "er"),
    "student": ('family = "student-t", df = 4, scale = 0.5', ""),
    "student, relative": ('family = "student-t", df = 3, scale = 0.2, relative = 0.3', ""),
    "student, estimated": ('family = "student-t", df = "r", scale = "e"', "er"),
    "laplace": ('family = "laplace", scale = 0.6', ""),
    "laplace, estimated": ('family = "laplace", scale = "e", relative = "r"', "er"),
    "log-laplace": ('family = "log-laplace", scale = "e"', "e"),
    "log10-laplace": ('family = "log10-laplace", scale = 0.3', ""),
    "log2-normal": ('family = "log2-normal", sd = "e"', "e"),
    "log10-normal": ('family = "log10-normal", sd = "e"', "e"),
    "lognormal": ('family = "lognormal", sdlog = 0.6', ""),
    "lognormal, estimated": ('family = "lognormal", sdlog = "e"', "e"),
    "poisson": ('family = "poisson"', ""),
    "negative binomial": ('family = "negative-binomial", overdispersion = 0.3', ""),
    "negative binomial, estimated": ('family = "negative-binomial", overdispersion = "e"', "e"),
    "normal, by row": ('family = "normal", sd = [0.3, 0.4, 0.9, 0.6]', ""),
    "normal, by row and estimated": ('family = "normal", sd = [0.3, 0.4, 0.9, 0.6], relative = "r"', "r"),
    "normal, an expression": ('family = "normal", sd = "e + r*m"', "er"),
    "normal, two expressions": ('family = "normal", sd = "e*x + 1/10", relative = "r*k"', "er"),
    "normal, growing with time": ('family = "normal", sd = "e + r*t^2 + m/10"', "er"),
    "student, expressions": ('family = "student-t", df = "2 + e", scale = "r*m"', "er"),
    "log10-normal, an expression": ('family = "log10-normal", sd = "e + 1/m"', "e"),
    "negative binomial, an expression": ('family = "negative-binomial", overdispersion = "e/m"', "e"),
    "normal, limits": ('family = "normal", sd = "e", below = 3, above = 5', "e"),
    "student, limits": ('family = "student-t", df = "r", scale = "e", below = 3, above = 5', "er"),
    "laplace, limits": ('family = "laplace", scale = "e + r*m", below = 3, above = 5', "er"),
    "lognormal, limits": ('family = "lognormal", sdlog = "e", below = 3, above = 5', "e"),
    "log10-laplace, limits": ('family = "log10-laplace", scale = "e", below = 3, above = 5', "e"),
    "poisson, limits": ('family = "poisson", below = 3, above = 5', ""),
    "negative binomial, limits": ('family = "negative-binomial", overdispersion = "e", below = 3, above = 5', "e"),
    "normal, limits by row": ('family = "normal", sd = 1, below = [1, 3.5, 2, 1.5]', ""),
}
PRIORS = {
    "e": 'e = { prior = "lognormal", meanlog = -0.5, sdlog = 0.5 }',
    "r": 'r = { prior = "gamma", shape = 5, rate = 8 }',
}


def posterior_of(noise: str, data: str = ONE) -> Posterior:
    words, estimated = NOISES[noise]
    lines = "\n".join(PRIORS[name] for name in estimated)
    both = f"y = {{ {words} }}\nz = {{ {words} }}"
    return Posterior(loads(MODEL.replace("@parameters", lines).replace("@noise", both) + data))


def numerical(posterior: Posterior, theta: np.ndarray) -> np.ndarray:
    found = np.empty_like(theta)
    for k in range(theta.shape[1]):
        step = 1e-5 * theta[:, k : k + 1] * (np.arange(theta.shape[1]) == k)
        above, below = (posterior.log_likelihood(theta + sign * step).values for sign in (1, -1))
        found[:, k] = (above - below) / (2e-5 * theta[:, k])
    return found


CASES = [*((name, ONE) for name in NOISES), ("normal, estimated", TWO), ("poisson", TWO)]
CASES += [("normal, relative", INCREMENTS), ("student, estimated", INCREMENTS), ("normal, limits", INCREMENTS)]
NAMES = [
    f"{noise}, {'several' if data == TWO else 'increments' if data == INCREMENTS else 'one'}" for noise, data in CASES
]


def test_every_family_is_covered() -> None:
    named = {name.split(",")[0].replace("student", "student-t").replace(" ", "-") for name in NOISES}
    assert named == set(FAMILIES)


def argument(given, row: int, values: dict[str, float]) -> float:
    """A noise argument in a row, with parameters, outputs and states as they are there."""
    if isinstance(given, (float, tuple)):
        return given if isinstance(given, float) else given[row]
    return values[given] if isinstance(given, str) else float(evaluate(given, values, float))


@pytest.mark.parametrize("noise", NOISES)
def test_each_observation_has_the_density_of_its_family(noise: str) -> None:
    """In stretches or alone, with one row of parameters for a trajectory or several."""
    posterior = posterior_of(noise)
    theta = posterior.sample_prior(np.random.default_rng(3), 6)
    found = posterior.outputs(theta[::2])
    rows = np.repeat(found.values[0], 2, axis=0)
    total = np.zeros(6)
    pointwise = posterior.pointwise(theta[::2])
    for k, entry in enumerate(posterior.problem.experiments[0].observations):
        for i, row in enumerate(theta):
            values = dict(zip(posterior.parameters, row, strict=True))
            each = []
            for j, y in enumerate(entry.values):
                here = {**values, "y": rows[i, j, 0], "z": rows[i, j, 1], "x": rows[i, j, 1], "t": entry.times[j]}
                given = {name: argument(v, j, here) for name, v in entry.noise.arguments.items()}
                each.append(log_density(entry.noise.family, y, rows[i, j, k], entry.censored[j], **given))
            total[i] += sum(each)
            if i % 2 == 0:
                np.testing.assert_allclose(pointwise["", entry.output][i // 2], each, rtol=1e-12)
    if all(name in posterior.noise_only for name in NOISES[noise][1]):  # then trajectories need not be solved again
        np.testing.assert_allclose(posterior.log_likelihood_of(found, theta), total, rtol=1e-12)
    np.testing.assert_allclose(posterior.log_likelihood(theta[::2]).values, total[::2], rtol=1e-9)


@pytest.mark.parametrize(("noise", "data"), CASES, ids=NAMES)
def test_the_gradient_by_differences(noise: str, data: str) -> None:
    posterior = posterior_of(noise, data)
    theta = posterior.sample_prior(np.random.default_rng(1), 12)
    found = posterior.expand(theta)
    np.testing.assert_allclose(found.log_likelihood, posterior.log_likelihood(theta).values, rtol=1e-6, atol=1e-6)
    expected = numerical(posterior, theta)
    scale = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(found.gradient / scale, expected / scale, rtol=2e-4, atol=2e-5)
    assert found.solves.tolist() == [len(posterior.likelihoods)] * 12
    assert (found.failures == 0).all()


@pytest.mark.parametrize(("noise", "data"), CASES, ids=NAMES)
def test_the_information_is_symmetric_and_not_negative(noise: str, data: str) -> None:
    posterior = posterior_of(noise, data)
    found = posterior.expand(posterior.sample_prior(np.random.default_rng(2), 20))
    np.testing.assert_allclose(found.information, np.swapaxes(found.information, 1, 2), rtol=1e-12)
    size = np.sqrt(np.maximum(np.diagonal(found.information, axis1=1, axis2=2), 1e-300))
    scaled = found.information / (size[:, :, None] * size[:, None, :])
    assert np.linalg.eigvalsh(scaled).min() > -1e-10
    assert (size[:, :2] > 0).all()


def test_the_information_of_a_posterior_is_the_mean_square_of_its_gradient() -> None:
    """Over data simulated at theta, with the solver in between."""
    posterior = posterior_of("normal, relative")
    theta = np.array([[0.6, 3.0, 1.2, 2.0]])
    (likelihood,) = posterior.likelihoods
    outputs, _ = likelihood.outputs(theta)
    seen, rng, total = likelihood.observed, np.random.default_rng(0), []
    m, noise = outputs[0, seen["time"], seen["output"]], Noise("normal", sd=0.3, relative=0.4)
    for _ in range(4000):
        seen["y"] = noise.simulate(m, {}, rng)
        gradient, information = np.zeros((1, 4)), np.zeros((1, 4, 4))
        likelihood.expand(theta, gradient, information)
        total.append(gradient[0])
    squares = np.einsum("ij,ik->ijk", total, total)
    error = squares.std(axis=0) / np.sqrt(len(total))
    assert (np.abs(squares.mean(axis=0) - information[0]) < 5 * error).all()


@pytest.mark.parametrize("noise", NOISES)
def test_the_bound_holds(noise: str) -> None:
    posterior = posterior_of(noise)
    theta = posterior.sample_prior(np.random.default_rng(4), 200)
    (likelihood,) = posterior.likelihoods
    values = posterior.log_likelihood(theta).values
    assert (values <= likelihood.log_likelihood_bound(theta) + 1e-9).all()
    outputs = posterior.outputs(theta).values[0]
    assert (values <= likelihood.log_likelihood_bound(theta, outputs) + 1e-9).all()


def test_a_negative_scale_is_no_crash() -> None:
    both = 'y = { family = "normal", sd = "k - m" }\nz = { family = "normal", sd = 1 }'
    posterior = Posterior(loads(MODEL.replace("@parameters", "").replace("@noise", both) + ONE))
    theta = np.array([[0.5, 3.0, 1.0, 2.0]])
    assert posterior.log_likelihood(theta).values.tolist() == [-np.inf]
    found = posterior.expand(theta)
    assert found.log_likelihood.tolist() == [-np.inf]
    assert np.isfinite(found.gradient).all()
    assert posterior.noise_only == ()


def test_a_parameter_of_model_and_noise() -> None:
    text = MODEL.replace("@parameters", "").replace(
        "@noise", 'y = { family = "normal", sd = "s" }\nz = { family = "poisson" }'
    )
    posterior = Posterior(loads(text + ONE))
    theta = posterior.sample_prior(np.random.default_rng(1), 8)
    found, expected = posterior.expand(theta).gradient, numerical(posterior, theta)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_failed_solves_have_no_expansion() -> None:
    text = MODEL.replace("s - k*x", "s*k*x*x").replace("@parameters", "")
    text = text.replace("@noise", 'y = { family = "normal", sd = 1 }\nz = { family = "normal", sd = 1 }')
    posterior = Posterior(loads(text.replace("upper = 2 }", "upper = 20 }", 1) + ONE))
    theta = np.array([[15.0, 2.0, 1.0, 2.0], [0.1, 0.5, 1.0, 2.0]])
    found = posterior.expand(theta)
    assert found.failures.tolist() == [1, 0]
    assert found.log_likelihood[0] == -np.inf
    alone = posterior.expand(theta[1:])
    for both, one in zip(found, alone, strict=True):
        np.testing.assert_array_equal(both[1:], one)


SHARE = """
[model]
equations = \"\"\"
x' = s - k*x
z' = s - 2*k*z
x(0) = 0
z(0) = 0
y = x + 1
share = x/(x + z)
\"\"\"
outputs = ["y", "share"]
[parameters]
k = { prior = "uniform", lower = 0, upper = 2 }
s = { prior = "uniform", lower = 0, upper = 5 }
[noise]
y = { family = "normal", sd = 0.5 }
share = { family = "normal", sd = 0.1 }
[data]
time = [0, 1, 2]
y = [1.2, 2, 3]
share = [@, 0.55, 0.6]
"""


def test_an_output_may_be_undefined_where_nobody_looks() -> None:
    """A share of nothing is 0/0; that matters only if it is said to have been observed."""
    theta = np.array([[0.7, 2.0]])
    unseen = Posterior(loads(SHARE.replace("@", "nan")))
    t = np.array([0.0, 1.0, 2.0])
    x, z = (2 / k * (1 - np.exp(-k * t)) for k in (0.7, 1.4))
    expected = norm.logpdf([1.2, 2, 3], x + 1, 0.5).sum()
    expected += norm.logpdf([0.55, 0.6], (x[1:] / (x[1:] + z[1:])), 0.1).sum()
    np.testing.assert_allclose(unseen.log_likelihood(theta).values, expected, rtol=1e-6)
    found = unseen.expand(theta)
    np.testing.assert_allclose(found.gradient, numerical(unseen, theta), rtol=1e-4)
    assert found.failures.tolist() == [0]
    seen = Posterior(loads(SHARE.replace("@", "0.5")))
    assert seen.log_likelihood(theta).values.tolist() == [-np.inf]
    assert seen.expand(theta).failures.tolist() == [1]


def test_outputs_with_one_parameter_and_logarithms_of_different_bases_are_kept_apart() -> None:
    """A standard deviation of 0.4 of log10 z is one of 0.92 of log z."""
    noise = 'y = { family = "lognormal", sdlog = "e" }\nz = { family = "log10-normal", sd = "e" }'
    parameters = 'e = { prior = "halfnormal", sd = 1 }'
    posterior = Posterior(loads(MODEL.replace("@parameters", parameters).replace("@noise", noise) + ONE))
    theta = np.array([[{"k": 0.7, "a": 3.0, "s": 1.0, "b": 2.0, "e": 0.4}[name] for name in posterior.parameters]])
    t = np.array([0.5, 1, 2, 4])
    x = 1 / 0.7 + (3 - 1 / 0.7) * np.exp(-0.7 * t)
    z = np.array([2.0, 1, 3, 1])
    expected = norm(np.log(2 * x + 1), 0.4).logpdf(np.log([4, 3, 7, 2])).sum() - np.log([4, 3, 7, 2]).sum()
    expected += (norm(np.log10(x), 0.4).logpdf(np.log10(z)) - np.log(z * np.log(10))).sum()
    np.testing.assert_allclose(posterior.log_likelihood(theta).values, expected, rtol=1e-8)
    np.testing.assert_allclose(sum(part.sum() for part in posterior.pointwise(theta).values()), expected, rtol=1e-8)
