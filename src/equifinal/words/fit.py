"""A fit on one screen: what the data determine, what drives each parameter, and whether the draws can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equifinal.identifiability.analysis import GLOBALLY, NOT
from equifinal.results.diagnostics import RHAT_LIMIT, Row
from equifinal.results.meaning import COMBINATION, NOISE, PARAMETER, QUANTITY, WEAK, Finding, Meaning
from equifinal.words.meaning import driven_by, rounded, shrinkage_text, spread, value_text, weakest_sentence

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {"data": "green", "weak": "yellow", "prior": "red"}


def summary_page(meaning: Meaning, rows: Mapping[str, Row], width: int) -> Any:
    """Something to print with rich; narrower terminals get fewer columns, never cut numbers."""
    from rich.console import Console, Group
    from rich.text import Text

    parts: list[Any] = [Text(f"What the data said: {meaning.problem.name}", style="bold"), Text()]
    known = meaning.of_kind(COMBINATION)
    if known:
        parts += [Text("The data determine"), _combinations(known), Text()]
    wide = Console(width=1000)
    tables = [_parameters(meaning, rows, columns) for columns in (WIDE, MIDDLE, NARROW)]
    fitting = [table for table in tables if wide.measure(table).maximum <= width]
    parts += [fitting[0] if fitting else tables[-1]]
    worst = meaning.weakest
    if worst is not None and worst.shrinkage < WEAK:
        parts += [Text(), Text(weakest_sentence(meaning))]
    return Group(*parts)


def _combinations(known: list[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for finding in known:
        words = value_text(finding) + (", barely informed" if finding.weak else "")
        colour = COLOURS["weak" if finding.weak else "data"]
        table.add_row(Text(f"  {finding.name}"), Text(f"= {words}", style=colour))
    return table


WIDE = ("mean", "sd", "5%", "50%", "95%", "shrinkage", "ESS bulk", "R-hat", "identifiable", "driven by")
MIDDLE = ("mean", "sd", "5%", "95%", "ESS bulk", "R-hat", "driven by")
NARROW = ("mean", "sd", "R-hat", "driven by")
WORDS = ("identifiable", "driven by")


def _parameters(meaning: Meaning, rows: Mapping[str, Row], columns: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for title in columns:
        table.add_column(title, justify="left" if title in WORDS else "right", no_wrap=True)
    previous = ""
    for finding in meaning.of_kind(PARAMETER, NOISE, QUANTITY):
        if finding.kind == QUANTITY and previous != QUANTITY:
            table.add_row()
        previous = finding.kind
        cells = _cells(finding, rows.get(finding.name))
        table.add_row(Text(finding.name), *(cells[title] for title in columns))
    return table


def _cells(finding: Finding, row: Row | None) -> dict[str, Any]:
    from rich.text import Text

    rhat = math.nan if row is None else row["rhat"]
    ess = math.nan if row is None else row["ess_bulk"]
    sure = finding.verdict == GLOBALLY and not finding.weak
    colour = COLOURS["prior" if finding.verdict == NOT else "data" if sure else "weak"]
    verdict = {GLOBALLY: "yes", NOT: "no"}.get(finding.verdict, "up to alternatives")
    return {
        "mean": Text(rounded(finding.mean, finding.sd)),
        "sd": Text(spread(finding.sd) if finding.sd > 0 else f"{finding.sd:.2g}"),
        **{f"{q}%": Text(rounded(finding.quantile(q / 100), finding.sd, finding.mean)) for q in (5, 50, 95)},
        "shrinkage": Text(shrinkage_text(finding.shrinkage).replace("over 0.99", ">0.99") or "-"),
        "ESS bulk": Text("-" if math.isnan(ess) else f"{ess:,.0f}"),
        "R-hat": Text("-" if math.isnan(rhat) else f"{rhat:.3f}", style="red" if rhat > RHAT_LIMIT else ""),
        "identifiable": Text("noise" if finding.kind == NOISE else verdict, style=colour),
        "driven by": Text(driven_by(finding), style=colour),
    }
