"""What happens to a model, drawn as thin strips under a trajectory: inputs, doses, infusions, constants that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from equifinal.plots.scales import number_text
from equifinal.plots.style import INK, MUTED, colours, shortened
from equifinal.prediction.predict import Band
from equifinal.problem.data import InputSeries
from equifinal.problem.problem import Problem

MOST = 5
INFUSION = "infusion_"  # how `problem.doses` names what flows into a state

Strip = tuple[str, Callable[[Any], None]]


def strips(problem: Problem, band: Band) -> list[Strip]:
    """A label and a function that draws, for each thing that is known to happen in a trajectory's experiment."""
    experiment = next((e for e in problem.experiments if e.name == band.experiment), None)
    if experiment is None:
        return []
    found: list[Strip] = []
    palette = colours(max(1, len(experiment.inputs)))
    for colour, (name, series) in zip(palette, experiment.inputs.items(), strict=False):
        found.append((problem.title(name), _input(series, band, colour)))
    states = dict.fromkeys(m.name for m in band.moments if m.adds and m.name in experiment.model.states)
    for name in states:
        found.append((f"dose, {problem.title(name, unit=False)}", _doses(band, name)))
    for name, rows in band.levels.items():
        if len(rows) > 1:
            label = problem.title(name)
            if name.startswith(INFUSION):
                label = f"infusion, {problem.title(name.removeprefix(INFUSION), unit=False)}"
            found.append((label, _steps(band, rows)))
    return found[:MOST]


def changes(band: Band) -> list[float]:
    """Times at which something other than an addition happens: a switch, an onset, a condition on time."""
    return sorted({m.time for m in band.moments if not m.adds})


def draw(axes: Any, label: str, drawn: Callable[[Any], None]) -> None:
    """Draw a strip with its name on the left and its largest value on the right."""
    drawn(axes)
    low, high = axes.get_ylim()
    room = 0.12 * (high - low) or 1.0
    axes.set_ylim(low - (room if low < 0 else 0.0), high + room)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.set_ylabel(shortened(label, 18), rotation=0, ha="right", va="center", fontsize=7.5, color=INK)


def _largest(axes: Any, value: float) -> None:
    if np.isfinite(value):
        axes.annotate(
            number_text(float(f"{value:.3g}")), (1, 0.5), (3, 0), xycoords="axes fraction", textcoords="offset points",
            va="center", fontsize=7, color=MUTED, annotation_clip=False,
        )  # fmt: skip


def _input(series: InputSeries, band: Band, colour: Any) -> Callable[[Any], None]:
    def drawn(axes: Any) -> None:
        first, last = band.times[0], band.times[-1]
        inside = series.times[(series.times > first) & (series.times < last)]
        at = np.concatenate([[first], inside, [last]])
        if series.interpolation == "step":
            place = np.searchsorted(series.times, at, side="right") - 1
            axes.step(at, series.values[np.maximum(place, 0)], where="post", color=colour, lw=1.1)
        else:
            axes.plot(at, np.interp(at, series.times, series.values), color=colour, lw=1.1)
        _largest(axes, float(series.values.max()))

    return drawn


def _doses(band: Band, name: str) -> Callable[[Any], None]:
    own = [m for m in band.moments if m.adds and m.name == name]

    def drawn(axes: Any) -> None:
        heights = [m.value if np.isfinite(m.value) else 1.0 for m in own]
        axes.vlines([m.time for m in own], 0, heights, color=INK, lw=1.6 if len(own) < 60 else 0.7)
        axes.axhline(0, color=MUTED, lw=0.6)
        axes.set_ylim(min(0.0, *heights), max(0.0, *heights) or 1.0)
        _largest(axes, max((m.value for m in own), default=np.nan))

    return drawn


def _steps(band: Band, rows: np.ndarray) -> Callable[[Any], None]:
    def drawn(axes: Any) -> None:
        at = np.concatenate([[band.times[0]], rows[1:, 0], [band.times[-1]]])
        values = np.concatenate([rows[:, 1], rows[-1:, 1]])
        axes.fill_between(at, 0, values, step="post", color=MUTED, alpha=0.25, lw=0)
        axes.step(at, values, where="post", color=INK, lw=1.0)
        axes.set_ylim(min(0.0, float(values.min())), max(0.0, float(values.max())) or 1.0)
        _largest(axes, float(values.max()))

    return drawn
