"""Different parameters, one output."""

from __future__ import annotations

from typing import Any

import numpy as np

from equifinal.language.expression import TIME
from equifinal.plots import scales
from equifinal.plots.style import FAINT, INK, MARKERS, MUTED, colours, new_figure, shortened, styled
from equifinal.prediction.equivalents import Equivalents


def plot_equivalents(equivalents: Equivalents) -> Any:
    """The outputs of all vectors over each other, and where in its prior each parameter is.

    Returns
    -------
    A matplotlib figure.

    Examples
    --------
    >>> import equifinal
    >>> found = equifinal.equivalents(equifinal.load("si"), n=3)
    >>> figure = equifinal.plot_equivalents(found)
    """

    shown = [k for k, moves in enumerate(equivalents.moving) if moves] or list(range(len(equivalents.fibre.names)))
    panels = list(equivalents.differences)
    columns = 1 if len(panels) <= 3 else 2 if len(panels) <= 8 else 3
    rows = -(-len(panels) // columns)
    below = len(panels) > 1  # the parameters go under several panels, beside a single one
    height = 0.9 + 0.3 * len(shown)
    with styled():
        if below:
            figure = new_figure(figsize=(8.2, min(1.9 * rows + height, 30)), layout="constrained")
            grid = figure.add_gridspec(rows + 1, columns, height_ratios=[1.9] * rows + [height])
            places = [grid[k // columns, k % columns] for k in range(len(panels))]
            rest = grid[rows, :]
        else:
            figure = new_figure(figsize=(8.2, max(2.8, min(height, 30))), layout="constrained")
            grid = figure.add_gridspec(1, 2, width_ratios=[1, 1.05])
            places, rest = [grid[0, 0]], grid[0, 1]
        for place, (experiment, output) in zip(places, panels, strict=True):
            _outputs(figure.add_subplot(place), equivalents, experiment, output)
        _parameters(figure.add_subplot(rest), equivalents, shown)
        n = len(equivalents.theta)
        title = f"{n} parameter vectors, one output" if n > 1 else "One parameter vector"
        figure.suptitle(
            title if equivalents.agree else "Outputs differ: not equivalent", x=0.01, ha="left", fontsize=11
        )
    return figure


def _outputs(axes: Any, equivalents: Equivalents, experiment: str, output: str) -> None:
    at = next(i for i, t in enumerate(equivalents.trajectories[0]) if t.experiment == experiment)
    n = len(equivalents.theta)
    palette = colours(n)
    for k in reversed(range(n)):  # the widest lies lowest
        curve = equivalents.trajectories[k][at]
        width = 1.0 + 4.0 * k / max(n - 1, 1)
        axes.plot(curve.times, curve.outputs[output], color=palette[k], lw=width, solid_capstyle="butt")
    for entry in equivalents.problem.experiments[at].observations:
        if entry.output == output and not entry.increment and entry.values.size:
            look = {"color": INK, "ms": 3.5, "mec": "white", "mew": 0.5, "zorder": 9}
            for side, marker in MARKERS.items():
                own = entry.censored == side
                if own.any() or not side:
                    axes.plot(entry.times[own], entry.values[own], marker, label=None if side else "data", **look)
            axes.legend(loc="best", handletextpad=0.2)
    problem, values = equivalents.problem, np.concatenate([line.get_ydata() for line in axes.lines])
    known = next((o for o in problem.experiments[at].observations if o.output == output), None)
    positive = known is not None and known.noise.record.support.word == "positive" and values.min() > 0
    scales.dress_to_fit(axes.yaxis, positive or scales.spans_decades(values))
    scales.dress_to_fit(axes.xaxis, False)
    axes.set(xlabel=shortened(problem.title(TIME), 40), ylabel=shortened(problem.title(output), 30))
    if experiment:
        axes.set_title(shortened(experiment, 40))


def _parameters(axes: Any, equivalents: Equivalents, shown: list[int]) -> None:
    priors = list(equivalents.fibre.priors.values())
    height = np.arange(len(shown))[::-1]
    axes.hlines(height, 0, 1, color=FAINT, lw=4, zorder=1)
    palette = colours(len(equivalents.theta))
    for k, theta in reversed(list(enumerate(equivalents.theta))):
        position = [float(priors[j].cdf(theta[j])) for j in shown]
        axes.plot(position, height, "-", color=palette[k], lw=0.8, alpha=0.6, zorder=2)
        size, edge = (6.5, INK) if k == 0 else (5, "white")
        axes.plot(position, height, "o", color=palette[k], ms=size, mec=edge, mew=0.7, zorder=3 + (k == 0))
    for y, j in zip(height, shown, strict=True):
        low, high = equivalents.theta[:, j].min(), equivalents.theta[:, j].max()
        text = (
            f"{scales.number_text(low)} to {scales.number_text(high)}"
            if equivalents.moving[j]
            else scales.number_text(low)
        )
        axes.text(1.04, y, text, va="center", ha="left", fontsize=8, color=MUTED)
    axes.set_yticks(height, [shortened(equivalents.problem.title(equivalents.fibre.names[j])) for j in shown])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.6, len(shown) - 0.4), xlabel="quantile in the prior (ringed: as given)")
    axes.set_title("what changes" if equivalents.moving.any() else "no other was found")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
