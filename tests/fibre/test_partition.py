"""Which coordinates are free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equifinal.errors import IdentifiabilityError
from equifinal.fibre import Fibre, partition
from equifinal.fibre.partition import ranked, score, tangent_bases
from equifinal.problem.prior import Prior
from tests.support.charts import box


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


@settings(max_examples=30)
@given(st.integers(0, 3), st.integers(0, 10**6))
def test_tangent_bases_are_orthonormal_kernels(q: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(5, q, 4)) * 10.0 ** rng.uniform(-150, 150, (5, q, 1))
    bases = tangent_bases(jacobian)
    np.testing.assert_allclose(np.swapaxes(bases, 1, 2) @ bases, np.tile(np.eye(4 - q), (5, 1, 1)), atol=1e-12)
    rows = jacobian / np.abs(jacobian).max(axis=2, keepdims=True)
    np.testing.assert_allclose(rows @ bases, 0.0, atol=1e-12)


def test_a_neighbourhood_holds_the_best(monkeypatch):
    """Where there are too many sets to try them all, exchanges lead to the best one of them."""
    tangents = tangent_bases(np.random.default_rng(1).normal(size=(20, 3, 9)))
    (best, free), *_ = ranked(tangents)
    monkeypatch.setattr(partition, "ENUMERATED", 10)
    some = ranked(tangents)
    assert some[0] == (pytest.approx(best), free)
    assert len(some) < 84  # of 9 choose 6


def test_scores_may_be_weighted():
    tangents = tangent_bases(np.array([[[1.0, 0.1]], [[0.1, 1.0]]]))
    weights = np.array([3.0, 1.0])
    assert score(tangents, (1,), weights) == pytest.approx((3 * 1.0 + 0.01) / 1.01 / 4)
