"""Slices of fibres: as many points as there are, each with the same output."""

from __future__ import annotations

import pytest

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.elimination.fibre_points import isolated, substituted
from equifinal.language.model import Model
from tests.support.modulo import PRIME, slice_of, values_of

MODELS = {
    "identifiable": ("x' = -k*x", ["x"], 1),
    "product": ("x' = -a*b*x", ["x"], 1),
    "square": ("x' = -a^2*x", ["x"], 2),
    "exchange": ("x' = -k*x\nz' = -m*z\nx(0) = 1\nz(0) = 1\ny = x + z", ["y"], 2),
    "degenerate start": ("x' = a*x^2 + b\nx(0) = 0", ["x"], 1),
}


@pytest.mark.parametrize(("text", "outputs", "degree"), MODELS.values(), ids=MODELS)
def test_the_number_of_points(text: str, outputs: list[str], degree: int) -> None:
    model = Model.parse(text, outputs)
    for seed in (0, 5):
        found = slice_of(model, seed)
        assert found.degree == degree <= found.candidates
        assert {*found.free, *found.fixed} == set(model.parameters)
        assert len(found.fixed) == len(found.local.kernel)


def test_the_point_itself_and_its_twin() -> None:
    found = slice_of(Model.parse(*MODELS["exchange"][:2]))
    k, m = found.local.point["k"], found.local.point["m"]
    by_name = dict(zip(found.free, found.points.coordinates, strict=True))
    total = (by_name["k"] + by_name["m"]) % found.points.modulus
    product = by_name["k"] * by_name["m"] % found.points.modulus
    assert (int(total[0]), total.degree()) == ((k + m) % found.local.prime, 0)
    assert (int(product[0]), product.degree()) == (k * m % found.local.prime, 0)
    assert values_of(by_name["k"], found.points) == sorted((k, m))


def test_isolated_points() -> None:
    x, y = ring("xy", PRIME).gens()
    assert isolated([x * y - 6, x + y - 5], [2, 3], PRIME)
    assert not isolated([x * y - 6], [2, 3], PRIME)
    assert not isolated([(x - 2) ** 2, y - 3], [2, 3], PRIME)  # a double root: the slopes say nothing
    assert isolated([], [], PRIME)


def test_what_became_known_is_put_in() -> None:
    a, b, c = ring("abc", PRIME).gens()
    into = ring("ac", PRIME)
    u, w = into.gens()
    assert substituted(a * b + c, "abc", {"b": 5}, into, "ac", Budget(1e9)) == 5 * u + w
