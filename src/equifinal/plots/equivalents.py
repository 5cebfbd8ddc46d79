"""Different parameters, one output."""

from __future__ import annotations

from typing import Any

import numpy as np

from equifinal.plots.style import COLOURS, FAINT, INK, MUTED, short, styled
from equifinal.same_output import Equivalents


def plot_equivalents(found: Equivalents) -> Any:
    """The outputs of all vectors over each other, and where in its prior each parameter is.

    Returns
    -------
    A matplotlib figure.
    """
    from matplotlib.figure import Figure

    shown = [k for k, moves in enumerate(found.moving) if moves] or list(range(len(found.fibre.names)))
    panels = list(found.differences)
    rows = len(panels)
    with styled():
        height = max(2.4 * rows, 1.1 + 0.32 * len(shown), 2.8)
        figure = Figure(figsize=(8.2, min(height, 30)), layout="constrained")
        grid = figure.add_gridspec(rows, 2, width_ratios=[1, 1.05])
        for row, (experiment, output) in enumerate(panels):
            _outputs(figure.add_subplot(grid[row, 0]), found, experiment, output, first=row == 0)
        _parameters(figure.add_subplot(grid[:, 1]), found, shown)
    return figure


def _outputs(axes: Any, found: Equivalents, experiment: str, output: str, *, first: bool) -> None:
    at = next(i for i, t in enumerate(found.trajectories[0]) if t.experiment == experiment)
    n = len(found.theta)
    for k in reversed(range(n)):  # the widest lies lowest
        curve = found.trajectories[k][at]
        width = 1.2 + 6.5 * k / max(n - 1, 1)
        axes.plot(curve.times, curve.outputs[output], color=COLOURS[k % len(COLOURS)], lw=width, solid_capstyle="butt")
    for entry in found.problem.experiments[at].observations:
        if entry.output == output and not entry.increment:
            axes.plot(entry.times, entry.values, "o", color=INK, ms=3, mec="white", mew=0.5, zorder=9, label="data")
            axes.legend(loc="best")
    if first:
        axes.set_title(f"{n} parameter vectors, one output" if n > 1 else "one parameter vector")
    axes.set(xlabel="time", ylabel=f"{experiment}: {output}" if experiment else output)


def _parameters(axes: Any, found: Equivalents, shown: list[int]) -> None:
    priors = list(found.fibre.priors.values())
    height = np.arange(len(shown))[::-1]
    axes.hlines(height, 0, 1, color=FAINT, lw=4, zorder=1)
    for k, theta in enumerate(found.theta):
        position = [float(priors[j].cdf(theta[j])) for j in shown]
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(position, height, "-", color=colour, lw=0.8, alpha=0.6, zorder=2)
        axes.plot(position, height, "o", color=colour, ms=5, mec="white", mew=0.6, zorder=3)
    for y, j in zip(height, shown, strict=True):
        low, high = found.theta[:, j].min(), found.theta[:, j].max()
        text = f"{short(low)} to {short(high)}" if found.moving[j] else short(low)
        axes.text(1.04, y, text, va="center", ha="left", fontsize=8, color=MUTED)
    axes.set_yticks(height, [found.fibre.names[j] for j in shown])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.6, len(shown) - 0.4), xlabel="place in the prior (quantile)")
    axes.set_title("what changes" if found.moving.any() else "nothing else gives this output")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
