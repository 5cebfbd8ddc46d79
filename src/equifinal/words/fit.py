"""A fit on one screen: what the data determine, what drives each parameter, and whether the draws can be trusted."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equifinal.identifiability.verdicts import GLOBALLY, NOT
from equifinal.results import diagnostics
from equifinal.results.diagnostics import RHAT_LIMIT, Row
from equifinal.results.meaning import COMBINATION, NOISE, PARAMETER, QUANTITY, Finding, Meaning
from equifinal.words.conformity import CONFORMS, UNJUDGED, discord_sentence
from equifinal.words.diagnostics import concern_sentence, sampler_notes
from equifinal.words.meaning import (
    bits_text,
    driven_by,
    rounded,
    sentence,
    shrinkage_text,
    spread,
    value_text,
    weakest_sentence,
)
from equifinal.words.next_step import next_lines, next_step
from equifinal.words.terms import footnote

if TYPE_CHECKING:
    from rich.table import Table

    from equifinal.studies.fit import Fit

# title: what of the summary, and how it is written
FULL = {
    "mean": ("mean", ".4g"),
    "sd": ("sd", ".4g"),
    "5%": ("q5", ".4g"),
    "50%": ("q50", ".4g"),
    "95%": ("q95", ".4g"),
    "ESS bulk": ("ess_bulk", ",.0f"),
    "ESS tail": ("ess_tail", ",.0f"),
    "ESS/s": ("ess_per_second", ",.0f"),
    "IACT": ("iact", ".1f"),
    "MCSE/SD": ("mcse_over_sd", ".2%"),
    "R-hat": ("rhat", ".3f"),
}
COMPACT = {title: FULL[title] for title in ("mean", "sd", "5%", "95%", "ESS bulk", "R-hat")}
COLOURS = {"data": "green", "weak": "yellow", "prior": "red"}


def summary_page(meaning: Meaning, rows: Mapping[str, Row], width: int) -> Any:
    """Lay out a fit for a terminal; a narrow one gets fewer columns, but never truncated numbers."""
    from rich.console import Console, Group
    from rich.text import Text

    parts: list[Any] = [Text(f"What the data said: {meaning.problem.name}", style="bold"), Text()]
    known = meaning.of_kind(COMBINATION)
    if known:
        parts += [Text("The data determine"), _combinations(known), Text()]
    wide = Console(width=1000)
    for columns in (WIDE, MIDDLE, NARROW):
        table = _parameters(meaning, rows, columns)
        if wide.measure(table).maximum <= width:
            break
    parts += [table, Text(footnote(columns), style="dim")]
    if bounded := [f for f in meaning.findings if f.bounded and f.verdict == GLOBALLY]:
        parts += [Text(), *(Text(sentence(meaning, finding)) for finding in bounded)]
    if worst := weakest_sentence(meaning):
        parts += [Text(), Text(worst)]
    return Group(*parts)


def _combinations(known: list[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for finding in known:
        words = value_text(finding) + (", barely informed" if finding.weak else ", only bounded" * finding.bounded)
        colour = COLOURS["weak" if finding.weak or finding.bounded else "data"]
        table.add_row(Text(f"  {finding.name}"), Text(f"= {words}", style=colour))
    return table


WIDE = ("mean", "sd", "5%", "50%", "95%", "bits", "shrinkage", "ESS bulk", "R-hat", "identifiable", "driven by")
MIDDLE = ("mean", "sd", "5%", "95%", "bits", "R-hat", "driven by")
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
        table.add_row(Text(meaning.problem.title(finding.name)), *(cells[title] for title in columns))
    return table


def _cells(finding: Finding, row: Row | None) -> dict[str, Any]:
    from rich.text import Text

    rhat = math.nan if row is None else row["rhat"]
    ess = math.nan if row is None else row["ess_bulk"]
    sure = finding.verdict == GLOBALLY and not (finding.weak or finding.bounded)
    colour = COLOURS["prior" if finding.verdict == NOT else "data" if sure else "weak"]
    verdict = {GLOBALLY: "yes", NOT: "no"}.get(finding.verdict, "up to alternatives")
    return {
        "mean": Text(rounded(finding.mean, finding.sd)),
        "sd": Text(spread(finding.sd) if finding.sd > 0 else f"{finding.sd:.2g}"),
        **{f"{q}%": Text(rounded(finding.quantile(q / 100), finding.sd, finding.mean)) for q in (5, 50, 95)},
        "shrinkage": Text(shrinkage_text(finding.shrinkage).replace("over 0.99", ">0.99") or "-"),
        "bits": Text(bits_text(finding.information.bits).removesuffix(" bits").replace("over ", ">") or "-"),
        "ESS bulk": Text("-" if math.isnan(ess) else f"{ess:,.0f}"),
        "R-hat": Text("-" if math.isnan(rhat) else f"{rhat:.3f}", style="red" if rhat > RHAT_LIMIT else ""),
        "identifiable": Text("noise" if finding.kind == NOISE else verdict, style=colour),
        "driven by": Text(driven_by(finding), style=colour),
    }


def fit_json(done: Fit) -> dict[str, Any]:
    """The data of a fit with its warnings as sentences."""
    sentences = [*map(concern_sentence, done.concerns), *map(discord_sentence, done.discords)]
    return done.to_json() | {"warnings": sentences, "next": next_step(done.data, done.concerns) or None}


def show_fit(done: Fit, verbose: bool = False) -> None:
    """Print what the data said, what the run cost, warnings, and where the results are; verbosely, all diagnostics."""
    from rich.console import Console
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=120)
    attributes = done.data.attrs
    if done.meaning is not None:
        _print_uncut(console, summary_page(done.meaning, done.summary, console.width))
        console.print()
    if done.meaning is None or verbose:
        table = summary_table(done, FULL)
        if Console(width=1000).measure(table).maximum > console.width:
            table = summary_table(done, COMPACT)
        _print_uncut(console, table)
        console.print(Text(footnote(column.header for column in table.columns), style="dim"))
    per_chain = done.data.posterior.sizes["draw"]
    console.print(
        f"{attributes['sampler']}: {done.data.posterior.sizes['chain']} x {per_chain:,} draws, "
        f"{diagnostics.acceptance(done.data):.1%} accepted, seed {attributes['seed']}",
        highlight=False,
    )
    console.print(
        f"{attributes['solves']:,} ODE solves ({attributes['failed_solves']:,} failed); compiled in "
        f"{attributes['compile_seconds']:.1f} s, warm-up {attributes['warmup_seconds']:.1f} s, "
        f"sampling {attributes['sampling_seconds']:.1f} s",
        highlight=False,
    )
    notes = [*json.loads(attributes["notes"]), *sampler_notes(done.data)]
    for line in notes:
        console.print(line, highlight=False)
    if any("k-hat" in line for line in notes):
        console.print(Text(footnote(["k-hat"]), style="dim"))
    if attributes["resumed_at"] >= 0:
        console.print(f"resumed at iteration {attributes['resumed_at']:,}", highlight=False)
    for concern in done.concerns:
        console.print("[yellow]![/]", Text(concern_sentence(concern)), highlight=False)
    for line in next_lines(done.data, done.concerns, done.summary):
        console.print(Text(f"  {line}"), highlight=False, soft_wrap=True)
    if not done.concerns:
        console.print("[green]the diagnostics show nothing wrong with these draws[/]", highlight=False)
    for discord in done.discords:
        console.print("[yellow]![/]", Text(discord_sentence(discord)), highlight=False)
    if done.meaning is not None and not done.discords:
        unusable = any(concern.serious for concern in done.concerns)
        console.print(UNJUDGED if unusable else f"[green]{CONFORMS}[/]", highlight=False)
    if done.report is not None:
        console.print(Text(f"report:  {done.report}"), highlight=False, soft_wrap=True)
    console.print(Text(f"results: {done.path}   (open with arviz.from_netcdf)"), highlight=False, soft_wrap=True)


def _print_uncut(console: Any, shown: Any) -> None:
    """Print without truncating numbers: a terminal narrower than a table wraps its lines."""
    from rich.console import Console

    width = max(console.width, _table_width(shown))
    Console(width=width, soft_wrap=True).print(shown) if width > console.width else console.print(shown)


def _table_width(shown: Any) -> int:
    """Measure the widest table in it."""
    from rich.console import Console, Group
    from rich.table import Table

    parts = shown.renderables if isinstance(shown, Group) else [shown]
    return max((Console(width=1000).measure(p).maximum for p in parts if isinstance(p, Table)), default=0)


def summary_table(done: Fit, columns: Mapping[str, tuple[str, str]]) -> Any:
    return rows_table(done.summary, columns, f"Posterior of {done.data.attrs['problem']}")


def rows_table(rows: Mapping[str, Row], columns: Mapping[str, tuple[str, str]], title: str) -> Any:
    """Rows of a summary; an R-hat beyond its limit is red."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        cells = ["-" if math.isnan(row[key]) else format(row[key], style) for key, style in columns.values()]
        if row["rhat"] > diagnostics.RHAT_LIMIT:
            cells[-1] = f"[red]{cells[-1]}[/]"
        table.add_row(name, *cells)
    return table
