"""Ratios recovered from values."""

from __future__ import annotations

import random

import numpy as np
import pytest

from equifinal.algebra.arithmetic.polynomials import ring, value_at
from equifinal.algebra.elimination.ratios import Ratios
from tests.support.modulo import PRIME, modulo, plenty

FREE = ["a", "b", "c"]
COEFFICIENTS = ["1", "a", "a*b + b^2", "c^3/(1 + a)"]  # of an equation that nobody has written out


def sampled(points: list[dict[str, int]]) -> np.ndarray:
    return np.array([[modulo(text, point) for text in COEFFICIENTS] for point in points], dtype=np.int64)


@pytest.fixture
def ratios() -> Ratios:
    keys = [(k,) for k in range(len(COEFFICIENTS))]
    return Ratios(keys, FREE, PRIME, ring(FREE, PRIME))


def at_random(count: int) -> list[dict[str, int]]:
    rng = random.Random(0)
    return [{name: rng.randrange(1, PRIME) for name in FREE} for _ in range(count)]


def test_what_a_ratio_depends_on(ratios: Ratios) -> None:
    base, *others = at_random(4)
    moved = [base | {name: other[name]} for name, other in zip(FREE, others, strict=True)]
    labels = ratios.dependence(sampled([base])[0], sampled(moved))
    pairs = ratios.simple_pairs(labels)
    assert list(pairs) == sorted(pairs, key=lambda which: (len(which), which))
    assert {(1, 0), (0, 1)} & set(pairs[0,])  # a to 1: a alone
    assert {(2, 0), (0, 2)} & set(pairs[0, 1])
    assert not [which for which in pairs if which == (2,)]


def test_a_planted_quotient_is_found(ratios: Ratios) -> None:
    points = at_random(60)
    values = [modulo("(a + 2*b)/(3*a*b - 1)", point) for point in points]
    over, under = ratios.fitted([0, 1], values, points, (1, 2), plenty())  # type: ignore[misc]
    for point in at_random(70)[60:]:
        at = [point[name] for name in FREE]
        expected = modulo("(a + 2*b)/(3*a*b - 1)", point)
        assert value_at(over, at) == expected * value_at(under, at) % PRIME
    assert ratios.fitted([0, 1], values, points, (1, 1), plenty()) is None  # of too low a degree
    assert ratios.fitted([0], values, points, (2, 2), plenty()) is None  # without one of its parameters
    assert ratios.fitted([0, 1], values, points[:8], (1, 2), plenty()) is None  # with too few points


@pytest.mark.parametrize(
    ("text", "degree"), [("s", 1), ("(s + 1)/(s - 70)", 1), ("1/(s^3 + 2)", 3), ("s^2/(s + 5)", 2)]
)
def test_degrees_along_a_line(ratios: Ratios, text: str, degree: int) -> None:
    line = list(range(1, 25))
    assert ratios.line_degree([modulo(text, {"s": s}) for s in line], line) == degree


def test_a_degree_that_is_too_high_is_not_found(ratios: Ratios) -> None:
    line = list(range(1, 25))
    assert ratios.line_degree([modulo("s^12 + s", {"s": s}) for s in line], line) is None


def test_pairs_of_low_degree_come_first(ratios: Ratios) -> None:
    base, direction = at_random(2)
    moved = [base | {name: base[name] + 1} for name in FREE]
    labels = ratios.dependence(sampled([base])[0], sampled(moved))
    line = list(range(1, 25))
    on_line = [{n: (base[n] + s * direction[n]) % PRIME for n in FREE} for s in line]
    found = ratios.low_degree_pairs(labels, sampled(on_line), line, random.Random(0), plenty())
    degrees = {(j, i): degree for degree, _, j, i in found}
    assert degrees[1, 0] == 1
    assert degrees[2, 0] == 2
    assert degrees[2, 1] == 2
    assert degrees[3, 0] == 3
    assert [degree for degree, *_ in found] == sorted(degrees.values())
