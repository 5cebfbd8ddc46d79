"""What a calibration found: the ranks of every quantity, a test of each, and one sentence over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.studies.calibrate.rank_test import holm, rank_p_value

LEVEL = 0.01  # of the whole family of tests
FEW = 50  # replicates: fewer see only gross errors
LEAST_P = 1e-12  # what rounding leaves of a p-value
LOG_LIKELIHOOD = "log likelihood"


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of the truth among posterior draws, a row a replicate that ended, and what the others failed of.

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
    def verdict(self) -> str:
        """One sentence."""
        done = len(self.ranks)
        if not done:
            return f"nothing can be said: all {len(self.failures)} replicates failed"
        rest = f"; {len(self.failures)} of {done + len(self.failures)} replicates failed" if self.failures else ""
        if self.departing:
            shown = ", ".join(self.departing[:4]) + (f" and {len(self.departing) - 4} more" * (len(self.departing) > 4))
            worst = p_text(self.adjusted[self.departing[0]])
            what = f"adjusted p {worst}, {done} replicates"
            return f"NOT calibrated: the ranks of {shown} depart from uniform ({what}){rest}"
        least = min((p for p in self.adjusted.values() if not np.isnan(p)), default=float("nan"))
        opening = "no sign of miscalibration in those that ended" if self.failures else "calibrated"
        return (
            f"{opening}: the ranks of all {len(self.names)} quantities are uniform as far as {done} "
            f"replicates can tell (least adjusted p {p_text(least)}){rest}"
        )

    @property
    def warnings(self) -> list[str]:
        """What limits the verdict."""
        found = []
        if 0 < len(self.ranks) < FEW:
            found.append(f"{len(self.ranks)} replicates show gross errors only; 200 or more are usual")
        few = sum(entry["least_ess"] < self.most for entry in self.entries)
        if few:
            found.append(
                f"{few} of {len(self.ranks)} replicates had fewer than {self.most} effective draws, although they were "
                "run longer: their ranks may be too near the ends for that reason alone; give more draws"
            )
        for name, column in zip(self.names, self.ranks.T, strict=True):
            if missing := int((column < 0).sum()):
                found.append(f"{name}: not a number in {missing} replicates, which are left out of its test")
        passed = sum(entry["passed_over"] for entry in self.entries)
        if passed:
            found.append(
                f"{passed} prior draws were passed over, for the model could not be solved there; the prior is "
                "tested as restricted to where it can"
            )
        for number, reason in self.failures[:5]:
            found.append(f"replicate {number} failed: {reason}")
        if len(self.failures) > 5:
            found.append(f"and {len(self.failures) - 5} replicates more")
        return found

    @property
    def samplers(self) -> Mapping[str, int]:
        """Which samplers ran, and how often; several only if one was to be chosen."""
        return dict(Counter(entry["sampler"] for entry in self.entries))

    def shape(self, name: str) -> str:
        """How the ranks of a quantity depart, in words: from the mean and the spread of ranks."""
        ranks = self.ranks_of(name)
        n, share = len(ranks), (ranks + 0.5) / (self.most + 1)
        if n < 2:
            return ""
        shift = (share.mean() - 0.5) * np.sqrt(12 * n)
        spread = (np.mean((share - 0.5) ** 2) - 1 / 12) * np.sqrt(180 * n)  # variance of (U - 1/2)^2 is 1/180
        if max(abs(shift), abs(spread)) < 2:
            return "departs otherwise"
        if abs(shift) > abs(spread):
            return "posterior too low" if shift > 0 else "posterior too high"
        return "posterior too narrow" if spread > 0 else "posterior too wide"

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
                    "shape": self.shape(name) if name in self.departing else "",
                    "ranks": [int(r) for r in self.ranks[:, k]],
                }
                for k, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            },
            "level": LEVEL,
            "calibrated": self.calibrated,
            "verdict": self.verdict,
            "warnings": self.warnings,
            "note": self.note,
        }


def p_text(p: float) -> str:
    return "-" if np.isnan(p) else f"< {LEAST_P:g}" if p < LEAST_P else f"{p:.2g}"


SPARKS = "▁▂▃▄▅▆▇█"


def page(found: Calibration) -> Any:
    """The verdict for a terminal: a row a quantity, what limits it, and the sentence."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = f"Calibration of {found.problem}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, style="dim")
    table.add_column("ranks", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("adjusted", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, kind in zip(found.names, found.kinds, strict=True):
        bad = name in found.departing
        cells = [p_text(found.p_values[name]), p_text(found.adjusted[name]), found.shape(name) if bad else ""]
        table.add_row(name, "" if kind == name else kind, _sparks(found, name), *cells, style="red" if bad else None)
    chosen = ", ".join(f"{name} {count}x" for name, count in found.samplers.items())
    lines = [Text(f"{chosen}; each truth ranked among {found.most} draws; seed {found.seed}")] if chosen else []
    lines += [Text(found.note)] if found.note else []
    lines += [Text.assemble(("! ", "yellow"), warning) for warning in found.warnings]
    return Group(table, *lines, Text(found.verdict, style="bold"))


def _sparks(found: Calibration, name: str, bins: int = 20) -> str:
    """A histogram in one line; a bar of the expected height is in the middle."""
    ranks = found.ranks_of(name)
    if not len(ranks):
        return ""
    counts = np.histogram(ranks, np.linspace(0, found.most + 1, bins + 1))[0]
    heights = np.clip(np.rint(counts * bins / len(ranks) * 3.5), 0, len(SPARKS) - 1).astype(int)
    return "".join(SPARKS[h] for h in heights)
