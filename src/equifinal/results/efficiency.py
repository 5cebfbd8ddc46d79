"""What a run's effective draws cost: per solve of the equations, and per second of sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equifinal.results.diagnostics import RHAT_LIMIT, Row, summarise

if TYPE_CHECKING:
    from arviz import InferenceData


@dataclass(frozen=True)
class Efficiency:
    """The worst of all parameters and quantities: its effective draws, and what they cost after warm-up.

    Where R-hat is above its limit the chains disagree, and effective draws mean nothing.
    """

    ess: float
    worst: str
    rhat: float
    solves: int
    seconds: float

    @property
    def per_solve(self) -> float:
        return self.ess / self.solves if self.solves else math.nan

    @property
    def per_second(self) -> float:
        return self.ess / self.seconds if self.seconds > 0 else math.nan

    @property
    def trusted(self) -> bool:
        return not self.rhat > RHAT_LIMIT


def efficiency(data: InferenceData, summary: Mapping[str, Row] | None = None) -> Efficiency:
    """Measure what the sampling phase of a run achieved; ``summary`` spares another call of `summarise`."""
    rows = summarise(data) if summary is None else summary
    known = {name: min(r["ess_bulk"], r["ess_tail"]) for name, r in rows.items() if not math.isnan(r["ess_bulk"])}
    worst = min(known, key=lambda name: known[name]) if known else ""
    rhat = max((r["rhat"] for r in rows.values() if not math.isnan(r["rhat"])), default=math.nan)
    solves = int(data.attrs["solves"]) - int(data.attrs["warmup_solves"])
    return Efficiency(known.get(worst, math.nan), worst, rhat, solves, float(data.attrs["sampling_seconds"]))
