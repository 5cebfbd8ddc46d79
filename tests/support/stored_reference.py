"""Draws against a stored reference: z scores of the probabilities to lie below its quantiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import arviz
import numpy as np

from equifinal.problem.problem import Problem

REFERENCES = Path(__file__).parent / "references.json"
QUANTILES = (0.05, 0.5, 0.95)


def stored(name: str, problem: Problem) -> Mapping[str, Any]:
    """The reference of a target; refused if it was made for other data."""
    found = json.loads(REFERENCES.read_text(encoding="utf-8"))[name]
    data = [entry.values for experiment in problem.experiments for entry in experiment.observations]
    for ours, theirs in zip(data, found["data"], strict=True):
        # simulated data are rounded, and a digit may fall to the other side
        assert np.allclose(ours, theirs, rtol=2e-3), f"{name}: make references.json anew, for the data have changed"
    return found["parameters"]


def z_scores(draws: Mapping[str, np.ndarray], reference: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """For each parameter, draws (chains, draws) at the reference's quantiles; errors of both sides are combined."""
    found = {}
    for name, row in reference.items():
        z = []
        for p, value, error in zip(QUANTILES, row["quantiles"], row["probability_errors"], strict=True):
            below = (draws[name] <= value).astype(float)
            # as if one draw were on either side at least: chains that never cross have no error of their own
            share = np.clip(below.mean(), 1 / below.size, 1 - 1 / below.size)
            effective = float(arviz.ess(below, method="mean")) if below.std() > 0 else 1.0
            z.append((below.mean() - p) / np.hypot(np.sqrt(share * (1 - share) / effective), error))
        found[name] = np.array(z)
    return found
