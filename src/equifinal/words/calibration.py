"""What a calibration found, in a sentence, a table and warnings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from equifinal.studies.calibrate.findings import Calibration

FEW = 50  # replicates: fewer see only gross errors
LEAST_P = 1e-12  # what rounding leaves of a p-value
MOST_NAMED, MOST_FAILURES = 4, 5
SPARKS = "▁▂▃▄▅▆▇█"
DEPARTURES = {
    "low": "posterior too low",
    "high": "posterior too high",
    "narrow": "posterior too narrow",
    "wide": "posterior too wide",
    "other": "departs in another way",
    "": "",
}


def p_text(p: float) -> str:
    return "-" if math.isnan(p) else f"< {LEAST_P:g}" if p < LEAST_P else f"{p:.2g}"


def departure_words(calibration: Calibration, name: str) -> str:
    """How the ranks of a quantity depart from uniform; empty if they do not."""
    return DEPARTURES[calibration.departure(name)] if name in calibration.departing else ""


def verdict_sentence(calibration: Calibration) -> str:
    """The outcome in one sentence."""
    done, failed = len(calibration.ranks), len(calibration.failures)
    if not done:
        return f"nothing can be said: all {failed} replicates failed"
    rest = f"; {failed} of {done + failed} replicates failed" if failed else ""
    if calibration.departing:
        more = len(calibration.departing) - MOST_NAMED
        shown = ", ".join(calibration.departing[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        worst = p_text(calibration.adjusted[calibration.departing[0]])
        return f"NOT calibrated: the ranks of {shown} depart from uniform (adjusted p {worst}, {done} replicates){rest}"
    least = min((p for p in calibration.adjusted.values() if not math.isnan(p)), default=math.nan)
    opening = "no sign of miscalibration in the replicates that finished" if failed else "calibrated"
    return (
        f"{opening}: the ranks of all {len(calibration.names)} quantities are uniform as far as {done} "
        f"replicates can tell (smallest adjusted p {p_text(least)}){rest}"
    )


def warning_sentences(calibration: Calibration) -> list[str]:
    """What limits the verdict."""
    done, lines = len(calibration.ranks), []
    if 0 < done < FEW:
        lines.append(f"{done} replicates reveal gross errors only; 200 or more are usual")
    if calibration.short_of_draws:
        lines.append(
            f"{calibration.short_of_draws} of {done} replicates had fewer than {calibration.most} effective draws, "
            "although they were run longer: their ranks may be too near the ends for that reason alone; use more draws"
        )
    for name, missing in calibration.undefined.items():
        lines.append(f"{name}: not a number in {missing} replicates, which are left out of its test")
    if calibration.passed_over:
        lines.append(
            f"{calibration.passed_over} prior draws were passed over because the model could not be solved there; the "
            "test is of the prior restricted to where it can be"
        )
    lines += [f"replicate {number} failed: {reason}" for number, reason in calibration.failures[:MOST_FAILURES]]
    if len(calibration.failures) > MOST_FAILURES:
        lines.append(f"and {len(calibration.failures) - MOST_FAILURES} more replicates failed")
    return lines


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """The data of a calibration with its sentences."""
    document = calibration.to_json() | {
        "verdict": verdict_sentence(calibration),
        "warnings": warning_sentences(calibration),
    }
    for name, quantity in document["quantities"].items():
        quantity["shape"] = departure_words(calibration, name)
    return document


def calibration_page(calibration: Calibration) -> Any:
    """Lay out a calibration for a terminal: a row for each quantity, what limits the verdict, and the verdict."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = f"Calibration of {calibration.problem}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, style="dim")
    table.add_column("ranks", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("adjusted", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, kind in zip(calibration.names, calibration.kinds, strict=True):
        cells = [
            p_text(calibration.p_values[name]),
            p_text(calibration.adjusted[name]),
            departure_words(calibration, name),
        ]
        style = "red" if name in calibration.departing else None
        table.add_row(name, "" if kind == name else kind, _sparks(calibration, name), *cells, style=style)
    chosen = ", ".join(f"{name} {count}x" for name, count in calibration.samplers.items())
    tested = Text("p: how likely ranks this uneven are if all is right; adjusted: for all quantities together", "dim")
    lines = (
        [tested, Text(f"{chosen}; each true value is ranked among {calibration.most} draws; seed {calibration.seed}")]
        if chosen
        else []
    )
    lines += [Text(calibration.note)] if calibration.note else []
    lines += [Text.assemble(("! ", "yellow"), warning) for warning in warning_sentences(calibration)]
    return Group(table, *lines, Text(verdict_sentence(calibration), style="bold"))


def _sparks(calibration: Calibration, name: str, bins: int = 20) -> str:
    """A histogram in one line; a bar of the expected height is in the middle."""
    ranks = calibration.ranks_of(name)
    if not len(ranks):
        return ""
    counts = np.histogram(ranks, np.linspace(0, calibration.most + 1, bins + 1))[0]
    heights = np.clip(np.rint(counts * bins / len(ranks) * 3.5), 0, len(SPARKS) - 1).astype(int)
    return "".join(SPARKS[h] for h in heights)
