"""Posteriors of several samplers over each other: they should be one curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.plots.marginals import density
from equifinal.plots.style import COLUMN, colours, shortened, styled

if TYPE_CHECKING:
    from arviz import InferenceData

MOST = 12


def plot_agreement(runs: Mapping[str, InferenceData], *, names: Sequence[str] | None = None) -> Any:
    """The posterior density of each parameter, a curve for each run.

    Parameters
    ----------
    runs
        Results by name, such as ``{"collapsed": ..., "random-walk": ...}``.
    names
        Which parameters and quantities; by default the first twelve.
    """
    from matplotlib.figure import Figure

    if not runs:
        raise DataError("there are no runs to compare")
    known = [str(name) for name in next(iter(runs.values())).posterior.data_vars]
    for name in names or ():
        if name not in known:
            raise DataError(
                f"these results have no '{name}'{did_you_mean(name, known)} (they have: {', '.join(known)})"
            )
    shown = list(names) if names is not None else known[:MOST]
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    with styled():
        figure = Figure(figsize=(COLUMN * columns, 1.6 * rows), layout="constrained")
        for k, name in enumerate(shown):
            axes = figure.add_subplot(rows, columns, k + 1)
            for (label, data), colour in zip(runs.items(), colours(len(runs)), strict=True):
                draws = np.asarray(data.posterior[name].values, float).reshape(-1)
                draws = draws[np.isfinite(draws)]
                if draws.size > 1 and np.ptp(draws) > 0:
                    low, high = (float(q) for q in np.quantile(draws, [0.001, 0.98]))
                    grid = np.linspace(low, high, 140)
                    axes.plot(grid, density(draws, grid), color=colour, lw=1.3, label=shortened(label))
            axes.set(yticks=[], xlabel=shortened(name, 40), ylim=(0, 1.12))
            axes.spines["left"].set_visible(False)
            if k == 0:
                axes.legend(fontsize=7, handlelength=1.2, loc="best")
    return figure
