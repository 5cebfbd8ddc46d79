"""Sections on trajectories: the fit over its data, residuals, and what was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.plots import strips
from equifinal.plots import trajectories as drawn
from equifinal.prediction.predict import Band, Check, Predictions
from equifinal.problem.problem import Problem
from equifinal.report.rendering import Figures
from equifinal.report.typeset import place
from equifinal.results.conformity import LEVEL
from equifinal.words.trajectories import BADGES, precision_text

if TYPE_CHECKING:
    pass

MOST_PANELS = 24
SIDE_BY_SIDE = (5.2, 2.6)  # inches of a panel
MOST_WIDE = 3  # trajectories that are each as wide as the page; more stand side by side


def output_figure(
    figures: Figures,
    label: str,
    problem: Problem,
    shown: Predictions,
    checks: list[Check],
    band: Band,
    count: int,
    prior: bool = False,
) -> Any:
    """An output over its data: as wide as the page where there are few, else one of several side by side."""

    def draw(size: tuple[float, float]) -> Any:
        return drawn.draw_outputs(
            problem, shown, checks, names=[band.name], experiments=[band.experiment], prior=prior, size=size
        )

    return figures.in_two_sizes(label, draw) if count <= MOST_WIDE else figures(label, lambda: draw(SIDE_BY_SIDE))


def fit(problem: Problem, shown: Predictions, checks: list[Check], figures: Figures) -> dict[str, Any]:
    outputs = [b for b in shown.bands if b.kind == "output"][:MOST_PANELS]
    panels = [
        output_figure(
            figures,
            f"Fit of {place(b.experiment, b.name)}: data, median, and bands of 50% and 90%",
            problem,
            shown,
            checks,
            b,
            len(outputs),
        )
        for b in outputs
    ]
    residuals = [
        figures(f"Residuals of {place(c.experiment, c.output)}", lambda c=c: drawn.draw_residuals(problem, [c]))  # type: ignore[misc]
        for c in checks[:MOST_PANELS]
    ]
    table = [
        {
            "output": place(c.experiment, c.output),
            "count": c.values.size,
            "inside_50": f"{c.inside_50:.0%}",
            "inside_90": f"{c.inside_90:.0%}",
            "largest": "-" if c.largest != c.largest else f"{c.largest:.1f}",
            "p_size": _p(c.p_size),
            "p_trend": _p(c.p_trend),
            "words": _check_words(c),
        }
        for c in checks
    ]
    return {
        "panels": panels,
        "wide": len(outputs) <= MOST_WIDE,
        "residuals": residuals,
        "table": table,
        "failed": shown.failed,
        "draws": shown.draws,
        "happens": any(strips.strips(problem, b) for b in outputs),
        "changes": any(strips.changes(b) for b in outputs),
        "limits": any(c.censored.any() for c in checks),
        "increments": any(c.increment for c in checks),
    }


def _p(value: float) -> str:
    return "-" if value != value else "< 0.001" if value < 0.001 else f"{value:.2g}"


def _check_words(checked: Check) -> str:
    """Say whether residuals could be chance, and whether the share inside the 90% band could, at the level of 1%."""
    from scipy.stats import binom

    if checked.p_trend < LEVEL:
        return "residuals follow each other: the model misses a trend"
    n, inside = checked.values.size, round(checked.inside_90 * checked.values.size)
    too_small = "the model misses something, or the noise is assumed too small"
    if checked.p_size < LEVEL:
        return f"residuals too large: {too_small}"
    if binom.cdf(inside, n, 0.9) < 0.01:
        return f"too few inside: {too_small}"
    counts = np.array_equal(checked.values, np.round(checked.values))  # then bands hold more than their share
    if n >= 20 and not counts and binom.cdf(round(checked.inside_50 * n) - 1, n, 0.5) > 0.999:
        return "more inside than chance explains: the noise may be assumed too large"
    return "as expected"


def states(problem: Problem, shown: Predictions, verdicts: Any, figures: Figures) -> list[dict[str, Any]]:
    panels = []
    for band in [b for b in shown.bands if b.kind != "output"][:MOST_PANELS]:
        verdict = verdicts.get((band.experiment, band.name))
        where = place(band.experiment, band.name)
        words = BADGES[verdict]
        picture = figures(
            f"Prediction of {where}, {words}",
            lambda b=band: drawn.draw_states(  # type: ignore[misc]
                problem, shown, verdicts, names=[b.name], experiments=[b.experiment], said=False
            ),
        )
        panels.append(
            {
                "place": where,
                "words": words,
                "tone": _tone(verdict),
                "precision": precision_text(band),
                "picture": picture,
            }
        )
    return panels


def _tone(verdict: bool | None) -> str:
    return "known" if verdict else "free" if verdict is False else "weak"
