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


def departure_words(found: Calibration, name: str) -> str:
    """How the ranks of a quantity depart from uniform; empty if they do not."""
    return DEPARTURES[found.departure(name)] if name in found.departing else ""


def verdict_sentence(found: Calibration) -> str:
    """The outcome in one sentence."""
    done, failed = len(found.ranks), len(found.failures)
    if not done:
        return f"nothing can be said: all {failed} replicates failed"
    rest = f"; {failed} of {done + failed} replicates failed" if failed else ""
    if found.departing:
        more = len(found.departing) - MOST_NAMED
        shown = ", ".join(found.departing[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        worst = p_text(found.adjusted[found.departing[0]])
        return f"NOT calibrated: the ranks of {shown} depart from uniform (adjusted p {worst}, {done} replicates){rest}"
    least = min((p for p in found.adjusted.values() if not math.isnan(p)), default=math.nan)
    opening = "no sign of miscalibration in the replicates that finished" if failed else "calibrated"
    return (
        f"{opening}: the ranks of all {len(found.names)} quantities are uniform as far as {done} "
        f"replicates can tell (smallest adjusted p {p_text(least)}){rest}"
    )


def warning_sentences(found: Calibration) -> list[str]:
    """What limits the verdict."""
    done, lines = len(found.ranks), []
    if 0 < done < FEW:
        lines.append(f"{done} replicates reveal gross errors only; 200 or more are usual")
    if found.short_of_draws:
        lines.append(
            f"{found.short_of_draws} of {done} replicates had fewer than {found.most} effective draws, although they "
            "were run longer: their ranks may be too near the ends for that reason alone; use more draws"
        )
    for name, missing in found.undefined.items():
        lines.append(f"{name}: not a number in {missing} replicates, which are left out of its test")
    if found.passed_over:
        lines.append(
            f"{found.passed_over} prior draws were passed over because the model could not be solved there; the test "
            "is of the prior restricted to where it can be"
        )
    lines += [f"replicate {number} failed: {reason}" for number, reason in found.failures[:MOST_FAILURES]]
    if len(found.failures) > MOST_FAILURES:
        lines.append(f"and {len(found.failures) - MOST_FAILURES} more replicates failed")
    return lines


def calibration_json(found: Calibration) -> dict[str, Any]:
    """The data of a calibration with its sentences."""
    document = found.to_json() | {"verdict": verdict_sentence(found), "warnings": warning_sentences(found)}
    for name, quantity in document["quantities"].items():
        quantity["shape"] = departure_words(found, name)
    return document


def calibration_page(found: Calibration) -> Any:
    """Lay out a calibration for a terminal: a row for each quantity, what limits the verdict, and the verdict."""
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
        cells = [p_text(found.p_values[name]), p_text(found.adjusted[name]), departure_words(found, name)]
        style = "red" if name in found.departing else None
        table.add_row(name, "" if kind == name else kind, _sparks(found, name), *cells, style=style)
    chosen = ", ".join(f"{name} {count}x" for name, count in found.samplers.items())
    tested = Text("p: how likely ranks this uneven are if all is right; adjusted: for all quantities together", "dim")
    lines = (
        [tested, Text(f"{chosen}; each true value is ranked among {found.most} draws; seed {found.seed}")]
        if chosen
        else []
    )
    lines += [Text(found.note)] if found.note else []
    lines += [Text.assemble(("! ", "yellow"), warning) for warning in warning_sentences(found)]
    return Group(table, *lines, Text(verdict_sentence(found), style="bold"))


def _sparks(found: Calibration, name: str, bins: int = 20) -> str:
    """A histogram in one line; a bar of the expected height is in the middle."""
    ranks = found.ranks_of(name)
    if not len(ranks):
        return ""
    counts = np.histogram(ranks, np.linspace(0, found.most + 1, bins + 1))[0]
    heights = np.clip(np.rint(counts * bins / len(ranks) * 3.5), 0, len(SPARKS) - 1).astype(int)
    return "".join(SPARKS[h] for h in heights)
