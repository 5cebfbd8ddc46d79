"""The comparison as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from equifinal.studies.paper.cases import PUBLISHED_COLUMNS, CaseStudy
from equifinal.studies.paper.runs import COLUMNS, SETTINGS, MethodRun

# column: its title, and how it is written
TITLES = {
    "ess": ("ESS", ",.0f"),
    "ess_per_second": ("ESS/s", ",.1f"),
    "iact": ("IACT", ",.1f"),
    "mcse_over_sd": ("MCSE/SD %", ".2f"),
    "rhat": ("R-hat", ".3f"),
    "ess_per_solve": ("ESS/solve", ".5f"),
    "error": ("error", ".3f"),
}
Rows = Mapping[str, Mapping[str, float]]


def to_markdown(case: CaseStudy, runs: Sequence[MethodRun], tables: Sequence[Rows]) -> str:
    parts = []
    for setting in SETTINGS:
        chosen = [(run, table) for run, table in zip(runs, tables, strict=True) if run.setting == setting]
        if not chosen:
            continue
        first = chosen[0][0]
        chains = f"{first.theta.shape[0]} chains of " if first.theta.shape[0] > 1 else "one chain of "
        parts.append(f"### {case.name.upper()}, {setting}: {chains}{first.theta.shape[1]:,} draws\n")
        parts.append(_line(["method", "", *(title for title, _ in TITLES.values())]))
        parts.append(_line(["---", "---", *("---:" for _ in TITLES)]))
        for run, table in chosen:
            for k, (name, row) in enumerate(table.items()):
                method = f"**{run.method}**" if k == 0 else _facts(run)[k - 1] if k - 1 < len(_facts(run)) else ""
                parts.append(_line([method, name, *(_number(row[key], style) for key, (_, style) in TITLES.items())]))
        parts.append("")
    parts.append(
        f"ESS is of the mean; error: the largest difference between the draws' distribution function and that of the "
        f"reference posterior ({case.reference})."
    )
    return "\n".join(parts) + "\n"


def _facts(run: MethodRun) -> list[str]:
    return [
        f"{run.accepted:,} accepted ({100 * run.acceptance:.2f}%)",
        f"{run.solves:,} solves, {run.seconds:.1f} s",
    ]


def to_csv(runs: Sequence[MethodRun], tables: Sequence[Rows]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["setting", "method", "acceptance", "solves", "seconds", "quantity", *COLUMNS])
    for run, table in zip(runs, tables, strict=True):
        for name, row in table.items():
            head = [run.setting, run.method, f"{run.acceptance:.6g}", run.solves, f"{run.seconds:.3f}", name]
            writer.writerow([*head, *("" if math.isnan(row[key]) else f"{row[key]:.6g}" for key in COLUMNS)])
    return out.getvalue()


def to_document(case: CaseStudy, runs: Sequence[MethodRun], tables: Sequence[Rows]) -> dict[str, Any]:
    return {
        "case": case.name,
        "reference": case.reference,
        "runs": [
            {
                "setting": run.setting,
                "method": run.method,
                "chains": run.theta.shape[0],
                "draws": run.theta.shape[1],
                "accepted": run.accepted,
                "acceptance": run.acceptance,
                "solves": run.solves,
                "warmup_solves": run.warmup_solves,
                "seconds": run.seconds,
                "rows": {
                    name: {key: None if math.isnan(value) else value for key, value in row.items()}
                    for name, row in table.items()
                },
            }
            for run, table in zip(runs, tables, strict=True)
        ],
        "published": {
            method: {
                "acceptance": acceptance / 100,
                "rows": {name: dict(zip(PUBLISHED_COLUMNS, row, strict=True)) for name, row in table.items()},
            }
            for method, (acceptance, table) in case.published.items()
        },
    }


def to_json(case: CaseStudy, runs: Sequence[MethodRun], tables: Sequence[Rows]) -> str:
    return json.dumps(to_document(case, runs, tables), indent=1, allow_nan=False) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float, style: str) -> str:
    return "-" if math.isnan(value) else format(value, style)
