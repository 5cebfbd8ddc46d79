"""Tangent spaces of fibres at many points."""

from __future__ import annotations

import random

from equifinal.algebra.generators.null_spaces import KernelField, kernel_at, rank_without
from equifinal.language.model import Model
from tests.support.modulo import local_of, plenty

MODEL = Model.parse("x' = -a*b*x\ny = c*x", ["y"])


def test_kernels_belong_to_their_points() -> None:
    local = local_of(MODEL)
    field = KernelField([MODEL], local, random.Random(1))
    field.at_least(10, plenty())
    assert len(field.points) == len(field.kernels) >= 10
    for point, kernel in zip(field.points, field.kernels, strict=True):
        theta = dict(zip(field.names, point, strict=True))
        for row in kernel:
            k = dict(zip(local.names, row, strict=True))
            assert (k["a"] * theta["b"] + k["b"] * theta["a"]) % local.prime == 0
    before = field.points[:]
    field.at_least(12, plenty())
    assert field.points[: len(before)] == before


def test_the_kernel_at_the_point_itself() -> None:
    local = local_of(MODEL)
    assert kernel_at([MODEL], local, local.point, random.Random(1), plenty()) == local.kernel
    special = local.point | {"c": 0}  # nothing is seen
    assert kernel_at([MODEL], local, special, random.Random(1), plenty()) is None


def test_constants_by_name_are_further_coordinates() -> None:
    model = Model.parse("x' = -a*N*x", ["x"], constants={"N": 7})
    field = KernelField([model], local_of(model), random.Random(1), ["N"])
    field.at_least(3, plenty())
    assert field.names == (*model.parameters, "N")
    assert len({point[field.names.index("N")] for point in field.points}) == len(field.points)


def test_functions_without_some_coordinates() -> None:
    """Of a*b and c*x_0 there is one without x_0."""
    local = local_of(MODEL)
    assert rank_without([MODEL], local, {"x_0"}, random.Random(1), plenty()) == 1
    assert rank_without([MODEL], local, set(), random.Random(1), plenty()) == 2
    assert rank_without([MODEL], local, set(MODEL.parameters), random.Random(1), plenty()) == 0
