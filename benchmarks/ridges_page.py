"""The page that `ridges.py` writes: a table for each problem, and sentences that say who did better at what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
GOOD, ENOUGH = 1.01, 100  # R-hat up to which, and from how many on, effective draws mean what they say

HEAD = """# Scoreboard: right and fast on ridges

equifinal beside general samplers, each from its own package, with the **same likelihood** (equifinal's compiled solver,
and its exact gradients for those that use them), the same coordinates and four chains, for so many CPU seconds of
warm-up and draws together. Made by `benchmarks/ridges.py`.

- **Where they begin.** The other tools begin where equifinal's climbers end, and pay nothing for it. equifinal begins
  with prior draws, runs with default settings until it ends by itself (so that it may need less time than the others
  were given, or more), and pays for its search. Importing and compiling count for nobody.
- **Error** is the largest difference, over parameters, between the share of draws below the reference's 5%, 50% and 95%
  quantiles and 5%, 50% and 95%: 0.01 is good, 0.1 is a wrong answer. Under each table stands what the reference is;
  only where it is not a run of equifinal is it independent.
- **Effective draws** are the least of any parameter, in the bulk or in the tails. Where R-hat is above 1.01, or
  there are fewer than 100, they say little, and stand in brackets. No draws: warm-up (of samplers with gradients 3
  iterations for each second of the budget) did not end in time.
- **What this leaves out.** These tools can do much that equifinal cannot: models that are not ODEs, hierarchies,
  hundreds of parameters. Evaluations one by one, with or without gradients, cost a call from Python each beside the
  solve, and that is most of it where a solve is short; equifinal and emcee evaluate in batches. Under each table
  stands what an evaluation costs.
  One seed each, and short runs: differences of less than a factor of two say nothing. Every tool has its default
  settings but for what is said at the end. Where R-hat is huge, chains hardly left their starts in that time.
"""
OTHERS = """PyMC has no row of its own: it takes such a likelihood with its gradients as an operation of PyTensor, and
`pm.sample(nuts_sampler="nutpie")` hands that to nutpie, which has one.
"""


def _sound(row: Row) -> bool:
    return row["rhat"] is not None and row["rhat"] <= GOOD and row["ess"] >= ENOUGH


def _row(row: Row) -> str:
    rhat, who = row["rhat"], f"{row['tool']} {row['version']}"
    if rhat is None:
        return f"| {who} | {row['cpu']:.0f} | - | - | - | - | {row['note'] or 'no draws: warm-up did not end'} |"
    per_second = f"{row['ess'] / row['cpu']:,.1f}"
    ess = f"{row['ess']:,.0f}"
    if not _sound(row):
        ess, per_second = f"({ess})", f"({per_second})"
    exact = "{} = {:.4f}, exactly {:g}".format(*row["exact"]) if row.get("exact") else ""
    note = "; ".join(part for part in (row["note"], exact) if part)
    return f"| {who} | {row['cpu']:.0f} | {row['error']:.3f} | {ess} | {per_second} | {rhat:.3f} | {note} |"


def _who(rows: list[Row], own_reference: bool) -> str:
    """Who was best, whoever that is; nobody is by errors where the reference is a run of one of them."""
    right = [row for row in rows if _sound(row)]
    if not right:
        return "No tool has an R-hat of at most 1.01 and 100 effective draws here."
    fast = max(right, key=lambda row: row["ess"] / row["cpu"])
    near = min((row for row in rows if row["error"] is not None), key=lambda row: row["error"])
    wrong = [row["tool"] for row in rows if row["error"] is not None and row["error"] > 0.1]
    said = f"Most effective draws per CPU second, where chains agree: {fast['tool']}."
    said += "" if own_reference else f" Smallest error: {near['tool']}."
    if wrong:
        said += f" Off by more than 0.1: {', '.join(wrong)}."
    longer = [row for row in rows if row["cpu"] > 1.2 * row["budget"]]
    return said + "".join(f" {row['tool']} took {row['cpu'] / row['budget']:.1f} times the budget." for row in longer)


def write(
    found: Mapping[tuple[str, str], Row], page: Path, problems: Mapping[str, str], tools: Mapping[str, str]
) -> None:
    """``found`` has a row for each problem and tool, and what the reference of a problem is."""
    parts = [HEAD]
    rows = [row for (_, tool), row in found.items() if tool != "reference"]
    for name, what in problems.items():
        own = [row for row in rows if row["problem"] == name]
        parts.append(f"## {what}\n")
        if not own:
            parts.append("Not run yet.\n")
            continue
        own.sort(key=lambda row: -row["ess"] / row["cpu"] if _sound(row) else 0.0)
        table = ["| tool | CPU s | error | effective draws | per CPU s | R-hat | |", "|---|---|---|---|---|---|---|"]
        parts.append("\n".join([*table, *map(_row, own)]) + "\n")
        budgets = sorted({row["budget"] for row in own})
        given = " or ".join(f"{budget:g}" for budget in budgets)
        known = found[name, "reference"]
        costs = "alone {alone:.2g}, with its gradient {gradient:.2g}, in a batch {batch:.2g}".format(**known["costs"])
        own_reference = "equifinal" in known["how"]
        caveat = ", so that errors say little about equifinal" if own_reference else ""
        parts.append(f"{_who(own, own_reference)} Given: {given} CPU s. Reference: {known['how']}{caveat}.\n")
        parts.append(f"CPU milliseconds of an evaluation: {costs}.\n")
    parts.append("## What ran\n")
    parts.append("\n".join(f"- {tool}: {what}" for tool, what in tools.items()) + "\n")
    parts.append(OTHERS)
    for machine in sorted({f"{row['date']}, {row['machine']}, seed {row['seed']}" for row in rows}):
        parts.append(f"Measured on {machine}.\n")
    page.write_text("\n".join(parts), encoding="utf-8")
