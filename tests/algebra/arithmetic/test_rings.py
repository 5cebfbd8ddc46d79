"""Rows of residues, added and multiplied exactly although in floating point."""

from __future__ import annotations

import random

import flint
import numpy as np
import pytest

from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.rings import CHUNK, DualNumbers, Histories, Quotient, Undefined
from tests.support.modulo import PRIME


def filled(rng: random.Random, width: int, orders: int, largest: bool) -> tuple[Histories, np.ndarray]:
    """Two series at two points; `largest` residues come closest to being rounded."""
    histories = Histories(2, 2, orders, width)
    kept = np.zeros((2, 2, orders, width), dtype=np.int64)
    for k in range(orders):
        rows = [[[PRIME - 1 if largest else rng.randrange(PRIME) for _ in range(width)] for _ in "ab"] for _ in "xy"]
        kept[:, :, k] = rows
        histories.put(slice(0, 2), k, kept[:, :, k])
    return histories, kept


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("terms", "order"), [(1, 0), (9, 8), (8, 8), (CHUNK + 1, CHUNK), (3 * CHUNK, 3 * CHUNK)])
def test_sums_of_products_of_dual_numbers(terms: int, order: int, largest: bool) -> None:
    histories, kept = filled(random.Random(terms), 3, order + 1, largest)
    found = DualNumbers(PRIME, 2).convolved(histories, np.array([0]), np.array([1]), terms, order)
    for point in range(2):
        a, b = ([[int(v) for v in row] for row in kept[side, point]] for side in (0, 1))
        pairs = [(a[i], b[order - i]) for i in range(terms)]
        value = sum(x[0] * y[0] for x, y in pairs) % PRIME
        slopes = [sum(x[0] * y[j] + x[j] * y[0] for x, y in pairs) % PRIME for j in (1, 2)]
        assert found[0, point].tolist() == [value, *slopes]


@pytest.mark.parametrize("degree", [1, 2, 7])
@pytest.mark.parametrize(("terms", "order"), [(1, 0), (8, 8), (CHUNK + 5, CHUNK + 4)])
def test_sums_of_products_modulo_a_polynomial(terms: int, order: int, degree: int) -> None:
    rng = random.Random(degree)
    modulus = flint.nmod_poly([rng.randrange(PRIME) for _ in range(degree)] + [1], PRIME)
    ring = Quotient(modulus)
    histories, kept = filled(rng, degree, order + 1, largest=False)
    found = ring.convolved(histories, np.array([0]), np.array([1]), terms, order)
    for point in range(2):
        a, b = ([ring.polynomial(row) for row in kept[side, point]] for side in (0, 1))
        total = sum((a[i] * b[order - i] for i in range(terms)), flint.nmod_poly([], PRIME)) % modulus
        assert found[0, point].tolist() == ring.row(total)


def test_reciprocals() -> None:
    dual = DualNumbers(PRIME, 1)
    b = np.array([[5, 7], [PRIME - 1, 0]])
    assert dual.product(b, dual.reciprocal(b)).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(BadPrime):
        dual.reciprocal(np.array([[0, 1]]))
    ring = Quotient(flint.nmod_poly([-1, 1], PRIME) * flint.nmod_poly([-2, 1], PRIME))  # at z = 1 and z = 2
    assert ring.product(np.array([[3, 1]]), ring.reciprocal(np.array([[3, 1]]))).tolist() == [[1, 0]]
    with pytest.raises(Undefined) as undefined:
        ring.reciprocal(np.array([[PRIME - 1, 1]]))  # z - 1
    assert undefined.value.divisor == flint.nmod_poly([-1, 1], PRIME)
