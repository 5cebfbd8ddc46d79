"""The page on several samplers side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from equifinal.files import replace_file
from equifinal.plots.agreement import plot_agreement
from equifinal.plots.efficiency import plot_efficiency
from equifinal.plots.pairs import plot_pairs
from equifinal.report.rendering import Figures, render
from equifinal.results import diagnostics
from equifinal.studies.comparison import Comparison
from equifinal.words.diagnostics import concern_sentence
from equifinal.words.meaning import rounded, spread

MOST = 12
FAR = 4.0  # standard errors that chance alone rarely makes


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """The page as a file; it is either whole or as it was before."""
    text = comparison_page(comparison)
    return replace_file(path, lambda target: target.write_text(text, encoding="utf-8"), "the report")


def comparison_page(comparison: Comparison) -> str:
    """Cost, diagnostics and posteriors of several samplers as one HTML text."""
    runs = {name: done.data for name, done in comparison.fits.items()}
    figures, measured, apart = Figures(), comparison.efficiencies, comparison.disagreements()
    names = list(next(iter(comparison.fits.values())).summary)
    return render(
        "compare.html",
        name=comparison.problem.name,
        bars=figures("Effective draws per ODE solve and per second", lambda: plot_efficiency(runs)),
        samplers=[_sampler(done, measured[name], name) for name, done in comparison.fits.items()],
        refused=comparison.refused,
        posteriors=[
            {
                "name": name,
                "cells": [
                    f"{rounded(done.summary[name]['mean'], done.summary[name]['sd'])} "
                    f"({spread(done.summary[name]['sd']) if done.summary[name]['sd'] > 0 else '0'})"
                    for done in comparison.fits.values()
                ],
                "apart": f"{apart[name]:.1f}" if apart.get(name, math.nan) >= 0 else "-",
                "far": apart.get(name, 0.0) > FAR,
            }
            for name in names
        ],
        panels=[
            figures(f"Posterior of {name} by each sampler", lambda n=name: plot_agreement(runs, names=[n]))  # type: ignore[misc]
            for name in names[:MOST]
        ],
        pairs=[
            {
                "name": name,
                "figure": figures(f"Pairs of parameters, {name}", lambda d=done: plot_pairs(d.data, meaning=d.meaning)),  # type: ignore[misc]
            }
            for name, done in comparison.fits.items()
        ],
        verdict=_verdict(comparison, any(value > FAR for value in apart.values())),
    )


def _verdict(comparison: Comparison, far: bool) -> str:
    """Whether the samplers agree, said of those only whose draws can be used."""
    usable, runs = comparison.usable, comparison.fits
    if len(usable) < 2:
        return (
            f"{'Only one' if usable else 'None'} of these runs can be used, so nothing can be said of agreement; the "
            "diagnostics below tell what is wrong with the others."
        )
    who = "The samplers" if len(usable) == len(runs) else f"Of the runs that can be used ({', '.join(usable)}), all"
    if far:
        who = "The samplers" if len(usable) == len(runs) else f"The runs that can be used ({', '.join(usable)})"
        return f"{who} disagree by more than chance explains."
    return f"{who} agree within their Monte Carlo errors; what differs is the cost."


def _sampler(done: Any, measured: Any, name: str) -> dict[str, Any]:
    attributes = done.data.attrs
    ran = str(attributes["sampler"])
    return {
        "name": name if ran == name else f"{name} ({ran})",
        "drawn": f"{done.data.posterior.sizes['chain']} × {done.data.posterior.sizes['draw']:,}",
        "accepted": f"{diagnostics.acceptance(done.data):.1%}",
        "solves": f"{measured.solves:,}",
        "warmup": f"{int(attributes['warmup_solves']):,}",
        "seconds": f"{measured.seconds:.1f}",
        "ess": f"{measured.ess:,.0f}",
        "worst": measured.worst,
        "per_solve": f"{measured.per_solve:.2g}",
        "per_second": f"{measured.per_second:,.0f}",
        "rhat": f"{measured.rhat:.3f}",
        "trusted": measured.trusted,
        "warnings": [concern_sentence(concern) for concern in done.concerns],
    }
