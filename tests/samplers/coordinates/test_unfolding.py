"""Coordinates in which roots that meet do no harm: what they are, and the density of proposals made in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from equifinal.fibre import Fibre
from equifinal.language.expression import to_text
from equifinal.problem.prior import Prior
from equifinal.samplers.coordinates.bending import Bend
from equifinal.samplers.coordinates.unfolding import Unfolding, unfolding
from equifinal.samplers.proposals import mixture
from tests.support.clocks import hurry

POSITIVE = Prior("lognormal", meanlog=0.0, sdlog=1.0)


def fibre(*combinations: str, **priors: Prior) -> Fibre:
    names = dict.fromkeys(sorted({letter for c in combinations for letter in c if letter.isalpha()}), POSITIVE)
    return Fibre(combinations, names | priors)


def finer(*combinations: str) -> list[str]:
    return [to_text(e) for e in unfolding(fibre(*combinations)).finer.combinations.independent]


def test_what_is_replaced() -> None:
    assert finer("a + b", "a*b") == ["a", "b"]
    assert finer("a + b", "a*b", "k*s") == ["a", "b", "k*s"]
    assert finer("a + b", "a*b", "x + y", "x*y", "k*s*a") == ["a", "b", "x", "y", "k*s*a"]
    assert finer("a^2") == ["a"]
    assert finer("a*b", "b") == ["a*b", "b"]  # one root
    assert finer("a*b") == ["a*b"]
    assert finer("a + b + c", "a*b + b*c + a*c", "a*b*c") == ["a", "b", "c"]


@pytest.mark.parametrize("combinations", [("a + b", "a*b", "k*s"), ("a + b + c", "a*b + b*c + a*c", "a*b*c")])
def test_no_clock_decides_on_what_is_replaced(combinations: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = unfolding(fibre(*combinations))
    hurry(monkeypatch.setattr, 1e6)
    found = unfolding(fibre(*combinations))
    assert found.finer.identity() == expected.finer.identity()
    assert found.replaced.tolist() == expected.replaced.tolist()
    assert found.replaced.any()


def proposal(dimension: int) -> mixture.Mixture:
    return mixture.single(np.full(dimension, 0.2), 0.5 * np.eye(dimension) + 0.1, 5.0)


def bent(made: Unfolding) -> Unfolding:
    """Each coordinate within what `proposal` makes of it, and on one side or the other."""
    side = np.resize([1.0, -1.0], len(made.moved))
    return made.bent(Bend(side, 0.2 * side))


@pytest.mark.parametrize("how", [lambda made: made, bent])
@pytest.mark.parametrize("combinations", [("a + b", "a*b", "k*s"), ("a + b + c", "a*b + b*c + a*c", "a*b*c")])
def test_images_have_one_c(combinations: tuple[str, ...], how: Callable[[Unfolding], Unfolding]) -> None:
    made = how(unfolding(fibre(*combinations)))
    q = len(combinations)
    x = proposal(q).sample(np.random.default_rng(1), 200)
    images = made.images(x)
    c, log_slope = made.backward(x)
    assert np.isfinite(images.log_slope).sum(axis=1).tolist() == [images.x.shape[1]] * 200
    for k in range(images.x.shape[1]):
        same, own_slope = made.backward(np.ascontiguousarray(images.x[:, k]))
        np.testing.assert_allclose(same, c, rtol=1e-6)
        np.testing.assert_allclose(images.log_slope[:, k], log_slope - own_slope, atol=1e-4)
    assert np.abs(images.x - x[:, None]).max(axis=2).min(axis=1).max() < 1e-5


@pytest.mark.parametrize("how", [lambda made: made, bent])
def test_the_slope_is_that_of_differences(how: Callable[[Unfolding], Unfolding]) -> None:
    made = how(unfolding(fibre("a + b", "a*b", "k*s")))
    x = np.array([[0.3, -0.4, 0.1]])
    columns = [(made.backward(x + step)[0] - made.backward(x - step)[0])[0] / 2e-6 for step in 1e-6 * np.eye(3)]
    assert made.backward(x)[1][0] == pytest.approx(np.log(abs(np.linalg.det(np.array(columns)))), abs=1e-6)


@pytest.mark.parametrize("how", [lambda made: made, bent])
@pytest.mark.parametrize("upper", [np.inf, 1.5])
def test_the_density_of_a_proposal(upper: float, how: Callable[[Unfolding], Unfolding]) -> None:
    """E[1(c in B)/q_C(c)] is the area of a set B of values (a + b, a*b) that have roots inside the support."""
    priors = {} if upper == np.inf else {"a": Prior("uniform", lower=0.0, upper=upper)}
    made = how(unfolding(fibre("a + b", "a*b", **priors)))
    q = proposal(2)
    x = q.sample(np.random.default_rng(2), 200_000)
    c, log_slope = made.backward(x)
    log_q = made.log_density(q, x)
    # with a < 1.5 there is one root in a part of B, and two in the rest: near a = b all the more
    inside = (c[:, 0] > 1.2) & (c[:, 0] < 2.2) & (c[:, 1] > 0.2) & (c[:, 1] < c[:, 0] ** 2 / 4) & np.isfinite(log_slope)
    terms = np.zeros(len(x))
    terms[inside] = np.exp(log_slope[inside] - log_q[inside])
    area = (2.2**3 - 1.2**3) / 12 - 0.2
    error = terms.std() / np.sqrt(len(terms))
    assert error < 0.02 * area
    assert terms.mean() == pytest.approx(area, abs=5 * error)  # a false alarm in two million


def test_weights_stay_finite_where_roots_meet() -> None:
    made = unfolding(fibre("a + b", "a*b"))
    apart = 10.0 ** -np.arange(1, 7)
    x = np.stack([0.2 + apart, 0.2 - apart], axis=1)
    _, log_slope = made.backward(x)
    difference = log_slope - made.log_density(proposal(2), x)
    assert np.ptp(log_slope) > 10  # |dc/dx| goes to zero
    assert np.ptp(made.log_density(proposal(2), x)) < 0.5
    assert np.isfinite(difference).all()


def test_labels_are_drawn_by_their_share() -> None:
    made = unfolding(fibre("a + b", "a*b"))
    q = proposal(2)._replace(centre=np.array([[0.5, 0.0]]))
    x = np.repeat([[0.6, -0.3]], 20_000, axis=0)
    found = made.relabelled(q, x, np.random.default_rng(3).random(len(x)))
    images = made.images(x[:1])
    shares = np.exp(q.log_density(images.x[0]) + images.log_slope[0])
    stays = shares[np.abs(images.x[0] - x[0]).max(axis=1) < 1e-9][0] / shares.sum()
    assert 0.1 < stays < 0.9
    stayed = np.isclose(found, x).all(axis=1).mean()
    assert stayed == pytest.approx(stays, abs=5 * np.sqrt(stays * (1 - stays) / len(x)))


def test_images_are_gathered_in_one_place() -> None:
    made = unfolding(fibre("a + b", "a*b"))
    x = np.random.default_rng(4).normal(size=(200, 2))
    _, log_slope = made.backward(x)
    x = x[np.isfinite(log_slope)]
    found = made.gathered(x)
    swapped = x[:, ::-1]
    mirrored = np.isfinite(made.backward(swapped)[1])
    np.testing.assert_allclose(made.backward(found)[0], made.backward(x)[0], rtol=1e-9)
    assert (found[mirrored, 0] <= found[mirrored, 1] + 1e-9).all()
    assert (x[mirrored, 0] > x[mirrored, 1]).any()
    alone = unfolding(fibre("a", "b"))
    assert alone.gathered(x) is x


def test_what_is_held_is_not_bent() -> None:
    whole = unfolding(fibre("a", "b", "k*s"))
    held = whole.holding(["b"], np.array([0.7]))
    made = bent(held)
    assert made.moved.tolist() == [0, 2]
    c, log_slope = made.backward(np.array([[0.3, 0.1]]))
    assert c[0, 1] == pytest.approx(np.exp(0.7))
    straight, of_straight = held.backward(made.bend.backward(np.array([[0.3, 0.1]]))[0])
    np.testing.assert_allclose(c, straight)
    assert log_slope[0] - of_straight[0] == pytest.approx(made.bend.backward(np.array([[0.3, 0.1]]))[1].sum())


def test_parameters_that_stand_for_themselves_stay_straight() -> None:
    """Their bend would depend on their unit."""
    made = unfolding(fibre("a", "b", a=Prior("normal", mean=0.0, sd=1.0)))
    x = np.log(np.random.default_rng(5).normal(4, 1, (4000, 2)).clip(0.05))
    assert made.straightened(x).bend.side.tolist() == [0, 1]
