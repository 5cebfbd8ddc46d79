"""What a calibration found: the ranks of every quantity, and a test of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.showing import Shown
from equifinal.studies.calibrate.rank_test import holm, rank_p_value

LEVEL = 0.01  # of the whole family of tests
LOG_LIKELIHOOD = "log likelihood"


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Shown):
    """Ranks of the truth among posterior draws, a row for each replicate that finished, and why the others failed.

    Attributes
    ----------
    names, kinds
        The quantities that are ranked, and for each whether it is a parameter, a quantity, a combination or the log
        likelihood.
    ranks
        (replicates, quantities), each from 0 to ``most``; -1 where a quantity was not a number.
    failures
        Number of the replicate and what went wrong.
    entries
        What the record says of each replicate that ended.
    """

    problem: str
    sampler: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    ranks: NDArray[np.int64]
    most: int
    seed: int
    failures: tuple[tuple[int, str], ...]
    entries: Sequence[Mapping[str, Any]]
    note: str = ""

    def __repr__(self) -> str:
        departing = f"departing: {', '.join(self.departing)}" if self.departing else "no sign of miscalibration"
        return f"<Calibration of {self.problem}, {len(self.ranks)} replicates: {departing}>"

    def ranks_of(self, name: str) -> NDArray[np.int64]:
        column = self.ranks[:, self.names.index(name)]
        return column[column >= 0]

    @cached_property
    def p_values(self) -> Mapping[str, float]:
        """That the ranks of each quantity are uniform, by `rank_test`."""
        return {name: rank_p_value(self.ranks_of(name), self.most) for name in self.names}

    @cached_property
    def adjusted(self) -> Mapping[str, float]:
        """The same, adjusted for the number of quantities (Holm)."""
        values = holm(np.array([self.p_values[name] for name in self.names]))
        return dict(zip(self.names, map(float, values), strict=True))

    @property
    def departing(self) -> tuple[str, ...]:
        """The quantities whose ranks are not uniform, the worst first."""
        return tuple(sorted((n for n in self.names if self.adjusted[n] < LEVEL), key=lambda n: self.adjusted[n]))

    @property
    def calibrated(self) -> bool:
        """Whether no quantity departs, and every replicate ended."""
        return bool(len(self.ranks)) and not self.departing and not self.failures

    @property
    def short_of_draws(self) -> int:
        """How many replicates had too few effective draws even after they were run longer."""
        return sum(entry["least_ess"] < self.most for entry in self.entries)

    @property
    def undefined(self) -> Mapping[str, int]:
        """Number of replicates in which a quantity was not a number, for those with any."""
        missing = {name: int((column < 0).sum()) for name, column in zip(self.names, self.ranks.T, strict=True)}
        return {name: count for name, count in missing.items() if count}

    @property
    def passed_over(self) -> int:
        """How many prior draws were passed over because the model could not be solved there."""
        return sum(entry["passed_over"] for entry in self.entries)

    @property
    def samplers(self) -> Mapping[str, int]:
        """Which samplers ran, and how often; several only if one was to be chosen."""
        return dict(Counter(entry["sampler"] for entry in self.entries))

    def departure(self, name: str) -> str:
        """How the posterior of a quantity errs, by the mean of its ranks, and their spread around it.

        ``low``, ``high``, ``narrow``, ``wide`` or ``other``; empty if there are too few ranks to tell.
        """
        ranks = self.ranks_of(name)
        n, share = len(ranks), (ranks + 0.5) / (self.most + 1)
        if n < 2:
            return ""
        shift = (share.mean() - 0.5) * np.sqrt(12 * n)
        spread = (share.var() - 1 / 12) * np.sqrt(180 * n)  # variance of (U - 1/2)^2 is 1/180
        if max(abs(shift), abs(spread)) < 2:
            return "other"
        if abs(shift) > abs(spread):
            return "low" if shift > 0 else "high"
        return "narrow" if spread > 0 else "wide"

    def to_json(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "sampler": self.sampler,
            "samplers": self.samplers,
            "seed": self.seed,
            "replicates": len(self.ranks),
            "failed": len(self.failures),
            "failures": [{"number": number, "reason": reason} for number, reason in self.failures],
            "draws_ranked": self.most,
            "solves": sum(entry["solves"] for entry in self.entries),
            "quantities": {
                name: {
                    "kind": kind,
                    "p": self.p_values[name],
                    "p_adjusted": self.adjusted[name],
                    "departs": name in self.departing,
                    "ranks": [int(r) for r in self.ranks[:, k]],
                }
                for k, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            },
            "level": LEVEL,
            "calibrated": self.calibrated,
            "note": self.note,
        }
