"""Mixtures of t laws, and the tail of importance weights."""

from __future__ import annotations

import arviz
import numpy as np
import pytest
from scipy import integrate, stats

from equifinal.samplers.proposals import mixture
from equifinal.samplers.proposals.mixture import Mixture
from equifinal.samplers.proposals.pareto import k_hat

ONE = mixture.single(np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]]), 5.0)
TWO = mixture.single(np.array([-3.0, 1.0]), np.array([[0.3, 0.0], [0.0, 0.9]]), 12.0)


def test_densities_are_those_of_scipy() -> None:
    both = ONE.joined(TWO, 0.3)
    x = np.random.default_rng(0).normal(0, 3, (50, 2))
    parts = [
        share * stats.multivariate_t(m.centre[0], m.factor[0] @ m.factor[0].T, df=m.df[0]).pdf(x)
        for share, m in ((0.7, ONE), (0.3, TWO))
    ]
    np.testing.assert_allclose(both.log_density(x), np.log(sum(parts)), rtol=1e-10)


def test_draws_have_the_density() -> None:
    """Of each coordinate, Kolmogorov-Smirnov against numerical integration, at level 1e-6."""
    both = ONE.joined(TWO, 0.3)
    x = both.sample(np.random.default_rng(1), 100_000)
    for j in range(2):
        marginals = [
            (share, stats.t(m.df[0], m.centre[0, j], np.sqrt((m.factor[0] @ m.factor[0].T)[j, j])))
            for share, m in ((0.7, ONE), (0.3, TWO))
        ]
        p = stats.kstest(x[:, j], lambda v, laws=marginals: sum(share * law.cdf(v) for share, law in laws)).pvalue
        assert p > 1e-6
    near = np.abs(x - [1.0, -2.0]).max(axis=1) < 0.5
    inside = integrate.dblquad(
        lambda b, a: float(np.exp(both.log_density(np.array([[a, b]])))[0]), 0.5, 1.5, -2.5, -1.5, epsabs=1e-5
    )[0]
    assert abs(near.mean() - inside) < 5 * np.sqrt(inside / len(x))


def test_a_draw_does_not_depend_on_the_others() -> None:
    both = ONE.joined(TWO, 0.3)
    numbers = both.numbers(np.random.default_rng(2), 20)
    whole = both.from_numbers(*numbers)
    part = both.from_numbers(*(n[7:9] for n in numbers))
    np.testing.assert_array_equal(whole[7:9], part)
    np.testing.assert_array_equal(both.log_density(whole)[7:9], both.log_density(part))


def test_two_groups_are_found() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal([0, 0], [1.0, 0.2], (3000, 2)), rng.normal([6, 3], [0.3, 0.3], (1000, 2))])
    start = Mixture(np.full(2, 0.5), x[[0, -1]], np.repeat(2 * np.eye(2)[None], 2, axis=0), np.full(2, 20.0))
    found = mixture.fit(x, np.ones(len(x)), start, 1e-6 * np.eye(2))
    order = np.argsort(found.centre[:, 0])
    np.testing.assert_allclose(found.share[order], [0.75, 0.25], atol=0.01)
    np.testing.assert_allclose(found.centre[order], [[0, 0], [6, 3]], atol=0.1)


def test_weights_count() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(0, 2, (20_000, 1))
    weights = stats.norm(1, 0.5).pdf(x[:, 0]) / stats.norm(0, 2).pdf(x[:, 0])
    start = mixture.single(np.zeros(1), np.eye(1), 50.0)
    found = mixture.fit(x, weights, start, 1e-6 * np.eye(1))
    assert found.centre[0, 0] == pytest.approx(1.0, abs=0.03)
    assert found.factor[0, 0, 0] == pytest.approx(0.5, rel=0.05)


def test_a_belief_counts_as_draws() -> None:
    """For a normal law the scale is that of draws and belief, each by its weight."""
    x = np.random.default_rng(5).normal(0, [1.0, 3.0], (40, 2))
    start, usual = mixture.single(np.zeros(2), np.eye(2), 1e9), np.diag([4.0, 0.5])
    found = mixture.fit(x, np.ones(len(x)), start, np.zeros((2, 2)), belief=(0.25, usual))
    expected = (np.cov(x.T, bias=True) + 0.25 * usual) / 1.25
    np.testing.assert_allclose(found.factor[0] @ found.factor[0].T, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [1.2, 2.0, 4.0, 20.0])
def test_k_hat_is_that_of_arviz(shape: float) -> None:
    log_weights = np.log(np.random.default_rng(5).pareto(shape, 3000) + 1)
    assert k_hat(log_weights) == pytest.approx(float(arviz.psislw(log_weights)[1]), abs=1e-8)


def test_k_hat_of_degenerate_weights() -> None:
    assert k_hat(np.zeros(1000)) == -np.inf
    assert k_hat(np.full(1000, -np.inf)) == np.inf
    assert k_hat(np.zeros(3)) == np.inf
    one = np.full(1000, -np.inf)
    one[0] = 0.0
    assert k_hat(one) == np.inf


# --- steps ---

FAR_APART = mixture.single(np.array([0.0, 0.0]), np.array([[1.0, 0.6], [0.6, 1.0]]), 3.0).joined(
    mixture.single(np.array([2.0, -1.0]), 0.2 * np.eye(2), 30.0), 0.3
)


def p_values_of_steps(rho: float, n: int = 100_000) -> list[float]:
    """Of Kolmogorov-Smirnov tests of where steps lead from draws of a mixture, beside other draws of it."""
    rng = np.random.default_rng(1)
    x, other = FAR_APART.sample(rng, n), FAR_APART.sample(rng, n)
    moved = FAR_APART.stepped(x, np.full(n, rho), *FAR_APART.numbers(rng, n))
    functions = (lambda y: y[:, 0], lambda y: y[:, 1], lambda y: y[:, 0] + y[:, 1], lambda y: np.abs(y).max(axis=1))
    return [stats.ks_2samp(f(moved), f(other), method="asymp").pvalue for f in functions]


@pytest.mark.parametrize("rho", [1.0, 0.6, 0.1])
def test_steps_leave_a_mixture_as_it_is(rho: float) -> None:
    """A false alarm once in ten million seeds."""
    assert min(p_values_of_steps(rho)) > 1e-8


@pytest.mark.parametrize("error", ["component", "scale"])
def test_steps_must_know_where_they_come_from(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component chosen by its share alone, or a scale drawn as if nothing were known of x: both are seen."""
    right = mixture._steps

    def wrong(x, rho, uniforms, chi_squares, normals, log_parts, squares, *rest):
        if error == "component":
            log_parts = np.tile(np.log(FAR_APART.share), (len(x), 1))
        else:
            squares = np.zeros_like(squares)
            chi_squares = np.column_stack([chi_squares[:, :-1], np.zeros(len(x))])
        return right(x, rho, uniforms, chi_squares, normals, log_parts, squares, *rest)

    monkeypatch.setattr(mixture, "_steps", wrong)
    assert min(p_values_of_steps(0.6)) < 1e-8


def test_steps_are_as_long_as_they_say() -> None:
    rng = np.random.default_rng(2)
    x = FAR_APART.sample(rng, 2000)
    lengths = [
        np.abs(FAR_APART.stepped(x, np.full(2000, r), *FAR_APART.numbers(rng, 2000)) - x).mean() for r in (0.6, 0.06)
    ]
    assert 5 < lengths[0] / lengths[1] < 20
