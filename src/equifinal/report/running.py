"""Sections on the run: its diagnostics, and how to repeat it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.plots import chains
from equifinal.report.rendering import Figures
from equifinal.results import diagnostics
from equifinal.words.diagnostics import concern_sentence, sampler_notes
from equifinal.words.next_step import least_effective, next_step

if TYPE_CHECKING:
    from arviz import InferenceData

MOST_CHAINS = 2
ASKED = ("sampler", "chains", "warmup", "draws", "thin", "ess", "max_solves", "max_time", "aux")  # by options of `fit`


def sampler(
    data: InferenceData, rows: Mapping[str, diagnostics.Row], concerns: list[diagnostics.Concern], figures: Figures
) -> dict[str, Any]:
    attributes = data.attrs
    names = sorted(rows, key=lambda name: np.nan_to_num(rows[name]["ess_bulk"], nan=-1.0))[:MOST_CHAINS]
    drawings = {"Trace": chains.plot_traces, "Ranks": chains.plot_ranks, "Autocorrelation": chains.plot_autocorrelation}
    panels = [
        [figures(f"{title} of {n}", lambda n=n, d=draw: d(data, names=[n])) for title, draw in drawings.items()]  # type: ignore[misc]
        for n in names
    ]
    keys = {"ess_bulk": ",.0f", "ess_tail": ",.0f", "iact": ".1f", "mcse_over_sd": ".2%", "rhat": ".3f"}
    return {
        "name": attributes["sampler"],
        "drawn": f"{data.posterior.sizes['chain']} chains of {data.posterior.sizes['draw']:,} draws",
        "accepted": f"{diagnostics.acceptance(data):.1%}",
        "solves": f"{int(attributes['solves']):,}",
        "failed": f"{int(attributes['failed_solves']):,}",
        "notes": [*json.loads(attributes.get("notes", "[]")), *sampler_notes(data)],
        "warnings": [concern_sentence(concern) for concern in concerns],
        "next": next_step(data, concerns),
        "worst": least_effective(rows)[0],
        "rows": [
            {"name": n, "cells": ["-" if r[k] != r[k] else format(r[k], f) for k, f in keys.items()]}
            for n, r in rows.items()
        ],
        "panels": panels,
        "left_out": len(rows) - len(names),
    }


def again(data: InferenceData) -> dict[str, Any]:
    attributes = data.attrs
    settings = json.loads(attributes["settings"])
    solver, options = settings.pop("solver"), settings.pop("options")
    # what was asked for and nothing else: all that a run decided by itself it decides again, for the same seed
    asked = json.loads(attributes.get("asked", "{}"))
    asked |= {key: value for key, value in (asked.get("options") or {}).items() if key == "aux"}
    file = shlex.quote(str(attributes.get("source", "")) or f"{attributes['problem']}.toml")
    given = "".join(
        f" --{key.replace('_', '-')} {shlex.quote(str(asked[key]))}" for key in ASKED if asked.get(key) is not None
    )
    command = f"equifinal fit {file} --seed {attributes['seed']}{given}"
    return {
        "settings": {"sampler": attributes["sampler"], "seed": attributes["seed"], **settings, **options},
        "solver": solver,
        "versions": json.loads(attributes["versions"]),
        "fingerprint": attributes["fingerprint"],
        "command": command,
        "folder": shlex.quote(str(attributes.get("folder", "RUN"))),
    }
