"""Rank and kernel modulo a prime, for models whose fibres are known."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from equifinal.algebra.arithmetic.local_rank import (
    analyse_locally,
    moving,
    slice_coordinates,
    stays_along_kernel,
)
from equifinal.language.model import Model
from tests.support.modulo import local_of, plenty

PRODUCT = Model.parse("x' = -a*b*x\ny = c*x", ["y"])


def test_the_kernel_is_tangent_to_the_fibre() -> None:
    """Along it a*b and c*x_0 stay as they are: the logarithms of a and b, of c and x_0, move against each other."""
    local = local_of(PRODUCT)
    assert (local.rank, len(local.kernel)) == (2, 2)
    theta = local.point
    for row in local.kernel:
        k = dict(zip(local.names, row, strict=True))
        assert (k["a"] * theta["b"] + k["b"] * theta["a"]) % local.prime == 0
        assert (k["c"] * theta["x_0"] + k["x_0"] * theta["c"]) % local.prime == 0
    assert moving(local) == {"a", "b", "c", "x_0"}


def test_coordinates_to_fix_are_taken_by_preference() -> None:
    local = local_of(PRODUCT)
    assert slice_coordinates(local, ["b", "a", "x_0", "c"]) == ["b", "x_0"]
    assert slice_coordinates(local, ["c", "x_0", "a", "b"]) == ["c", "a"]


def test_nothing_is_fixed_where_everything_is_identifiable() -> None:
    local = local_of(Model.parse("x' = -k*x", ["x"]))
    assert local.rank == 2
    assert moving(local) == set()
    assert slice_coordinates(local, ["k", "x_0"]) == []


@pytest.mark.parametrize(
    ("text", "outputs", "least"),
    [("x' = -k*x", ["x"], 8), ("x' = k*x^3\nz' = x*z", ["z"], 16), ("x' = k/(1 + x^2)", ["x"], 10)],
)
def test_how_many_coefficients_are_looked_at(text: str, outputs: list[str], least: int) -> None:
    """Twice the number of states, the largest degree, the order at which the last term shows, and one."""
    assert local_of(Model.parse(text, outputs)).least == least


def test_moving_along_the_kernel_shows_what_comes_later() -> None:
    model = Model.parse("x' = 1\nx(0) = 0\nz' = b + a*x^15\nz(0) = 0", ["z"])
    local = local_of(model)
    assert local.rank == 2
    early = replace(local, rank=1, kernel=[[int(name == "a") for name in local.names]])
    assert stays_along_kernel([model], early, 16, Random(0), plenty())
    assert not stays_along_kernel([model], early, 17, Random(0), plenty())


def test_experiments_are_taken_together() -> None:
    model = Model.parse("x' = -(a*N + b)*x", ["x"], constants={"N": 1})
    both = [model, model.vary(constants={"N": 2})]
    assert local_of(model).rank == 2
    assert analyse_locally(both, model.parameters, Random(0), plenty()).rank == 3
