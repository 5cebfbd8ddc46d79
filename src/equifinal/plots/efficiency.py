"""Several samplers side by side: effective draws per solve of the equations, and per second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equifinal.errors import DataError
from equifinal.plots.scales import number_text
from equifinal.plots.style import COLUMN, MUTED, colours, new_figure, shortened, styled
from equifinal.results.efficiency import efficiency

if TYPE_CHECKING:
    from arviz import InferenceData


def plot_efficiency(runs: Mapping[str, InferenceData]) -> Any:
    """Least effective draws per ODE solve and per second of sampling, a bar for each run.

    Parameters
    ----------
    runs
        Results by name, such as ``{"collapsed": ..., "random-walk": ...}``.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_efficiency({"first": data, "again": data})
    """

    if not runs:
        raise DataError("there are no runs to compare")
    measured = {name: efficiency(data) for name, data in runs.items()}
    with styled():
        figure = new_figure(figsize=(2 * COLUMN, 0.75 + 0.36 * len(measured)), layout="constrained")
        for k, (title, key) in enumerate((("per ODE solve", "per_solve"), ("per second", "per_second"))):
            axes = figure.add_subplot(1, 2, k + 1)
            _bars(axes, {name: (getattr(e, key), e.trusted) for name, e in measured.items()})
            axes.set_title(f"effective draws {title}", fontsize=9)
            axes.set_xlabel("logarithmic scale", fontsize=7.5, color=MUTED)
            if k:
                axes.set_yticklabels([])
    return figure


def _bars(axes: Any, values: Mapping[str, tuple[float, bool]]) -> None:
    from matplotlib.ticker import NullLocator

    usable = [v for v, _ in values.values() if v > 0 and math.isfinite(v)]
    low, high = (min(usable), max(usable)) if usable else (0.1, 1.0)
    palette = colours(len(values))
    for y, ((value, trusted), colour) in enumerate(zip(values.values(), palette, strict=True)):
        shown = value if value > 0 and math.isfinite(value) else low
        bar = axes.barh(y, shown - low / 3, left=low / 3, color=colour if trusted else "none", height=0.62)
        bar[0].set_edgecolor(colour)
        bar[0].set_hatch("" if trusted else "////")
        text = number_text(float(f"{value:.3g}")) if math.isfinite(value) else "not defined"
        text += "" if trusted else " (chains disagree)"
        axes.annotate(text, (shown, y), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set(xscale="log", xlim=(low / 3, high * 30), ylim=(len(values) - 0.5, -0.5))
    axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(values)), [shortened(name) for name in values])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_edgecolor(MUTED)
