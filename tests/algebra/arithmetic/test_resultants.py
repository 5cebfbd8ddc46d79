"""Resultants vanish where they must, and only there."""

from __future__ import annotations

import pytest

from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.arithmetic.resultants import resultant
from tests.support.modulo import PRIME, plenty


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (2, 3), (3, 3), (4, 2)])
def test_resultant_vanishes_exactly_at_common_roots(m, n):
    context = ring(["x", "a", "b"], PRIME)
    x, a, b = context.gens()
    f, g = x - a, x - b
    for k in range(1, m):
        f = f * (x - a - 17 * k)
    for k in range(1, n):
        g = g * (x - b - 1009 * k)
    found = resultant(f, g, 0, 10_000, plenty())
    assert found.degrees()[0] == 0
    for i in range(m):
        for j in range(n):
            assert int(found(0, 5 - 17 * i, 5 - 1009 * j)) == 0
    assert int(found(0, 5, 6)) != 0
