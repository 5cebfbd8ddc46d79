"""One function that computes roots, combinations and determinant at once."""

from __future__ import annotations

import numpy as np

from equifinal.fibre import Fibre
from equifinal.fibre.direct import direct_code
from equifinal.machine.compiled import compiled
from equifinal.machine.pointers import call_on
from tests.support.charts import SI_TRUTH


@compiled
def _call(address: int, x: np.ndarray, p: np.ndarray, out: np.ndarray) -> None:
    call_on(address, x, p, out)


def test_si_by_hand(si: Fibre) -> None:
    """beta = c2 rho, gamma = N beta - c1, I0 = c3/rho; the determinant is 1, up to sign."""
    code = si.chart.direct
    assert code is not None
    q = dependent = 3
    out, rho, c = np.empty(2 * (dependent + q + 1)), 0.25, si.xi(SI_TRUTH)[0]
    _call(code.addresses["direct"], np.array([rho]), c, out)
    np.testing.assert_allclose(out[:dependent], [c[1] * rho, 1e4 * c[1] * rho - c[0], c[2] / rho], rtol=1e-14)
    np.testing.assert_allclose(out[dependent : dependent + q], c, rtol=1e-12)
    assert abs(out[dependent + q]) == 1.0
    bounds = out[dependent + q + 1 :]
    assert (bounds >= 0).all()
    assert (bounds[:dependent] < 1e-10).all()


def test_a_chart_that_would_be_too_long_has_none(si: Fibre, monkeypatch) -> None:
    monkeypatch.setattr("equifinal.fibre.direct.MOST_NODES", 5)
    assert direct_code(si.combinations, [1], si.chart.steps) is None
