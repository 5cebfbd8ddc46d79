"""What is wrong with a run is found where it was put in, and nothing else is."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from equifinal.results.diagnostics import concerns

CHAINS, DRAWS = 4, 1000
HEALTHY = {
    "solves": 10_000,
    "failed_solves": 10,
    "acceptance": [0.4] * CHAINS,
    "misfit": 0.0,
    "likelihood_gap": 0.0,
    "iterations": CHAINS * DRAWS,
    "settings": json.dumps({"thin": 1}),
}
MEASURED = {"log_estimate_variance": 0.01, "zero_estimates": 0.0, "longest_stay": 5}
COUNTS = {"points": 40_000, "empty_points": 0}


def kinds(values: np.ndarray | None = None, measured: Any = (), counts: Any = (), **attributes: Any) -> list[str]:
    rng = np.random.default_rng(0)
    draws = {"a": rng.standard_normal((CHAINS, DRAWS)), "b": rng.standard_normal((CHAINS, DRAWS))}
    if values is not None:
        draws["a"] = values
    posterior = xr.Dataset({name: (("chain", "draw"), value) for name, value in draws.items()})
    attributes = HEALTHY | attributes
    attributes |= {
        "parameters": json.dumps(["a", "b"]),
        "findings": json.dumps(MEASURED | dict(measured)),
        "counts": json.dumps(COUNTS | dict(counts)),
    }
    found: Any = SimpleNamespace(posterior=posterior, attrs=attributes)
    return [concern.kind for concern in concerns(found)]


def test_a_healthy_run_has_no_concerns() -> None:
    assert kinds() == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"interrupted": True}, "interrupted"),
        ({"failed_solves": 5000}, "failed solves"),
        ({"acceptance": [1e-4] * CHAINS}, "low acceptance"),
        ({"misfit": 1e3}, "misfit"),
        ({"likelihood_gap": 1e3}, "likelihood not constant"),
        ({"measured": {"log_estimate_variance": 10.0}}, "noisy estimates"),
        ({"measured": {"log_estimate_variance": float("inf")}}, "infinitely noisy estimates"),
        ({"measured": {"zero_estimates": 0.5}}, "zero estimates"),
        ({"counts": {"empty_points": 39_000}}, "empty points"),
        ({"measured": {"longest_stay": 900}}, "long stay"),
        ({"measured": {"longest_stay": 900, "log_estimate_variance": 0.5}}, "long stay, noisy estimates"),
        ({"measured": {"lanes": 1, "fresh_draws": 10**5, "k_hat": 1.0, "highest_weight": 1e9}}, "missed tails"),
        ({"counts": {"fibre_accepted": 10, "fibre_newton_failed": 90, "fibre_ok": 10}}, "failed moves"),
    ],
)
def test_each_fault_is_found_alone(changes: dict[str, Any], kind: str) -> None:
    assert kinds(**changes) == [kind]


def test_draws_that_do_not_mix() -> None:
    rng = np.random.default_rng(1)
    apart = rng.standard_normal((CHAINS, DRAWS)) + 5.0 * np.arange(CHAINS)[:, None]
    assert kinds(apart) == ["chains disagree"]
    assert kinds(np.ones((CHAINS, DRAWS))) == ["never moved"]
    slow = np.repeat(rng.standard_normal((CHAINS, DRAWS // 50)), 50, axis=1)
    assert "few effective draws" in kinds(slow)
