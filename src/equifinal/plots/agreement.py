"""Posteriors of several samplers over each other: they should be one curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.plots import scales
from equifinal.plots.marginals import OPEN, density, density_grid
from equifinal.plots.scales import quantity_is_logarithmic
from equifinal.plots.style import COLUMN, colours, new_figure, shortened, styled
from equifinal.results.store import problem_of

if TYPE_CHECKING:
    from arviz import InferenceData

MOST = 12
SHOWN = (0.005, 0.985)  # quantiles: a long tail leaves room for the rest


def plot_agreement(runs: Mapping[str, InferenceData], *, names: Sequence[str] | None = None) -> Any:
    """The posterior density of each parameter, a curve for each run.

    Parameters
    ----------
    runs
        Results by name, such as ``{"collapsed": ..., "random-walk": ...}``.
    names
        Which parameters and quantities; by default the first twelve.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_agreement({"first": data, "again": data}, names=["gamma"])
    """

    if not runs:
        raise DataError("there are no runs to compare")
    first = next(iter(runs.values()))
    problem, known = problem_of(first), [str(name) for name in first.posterior.data_vars]
    for name in names or ():
        if name not in known:
            raise DataError(
                f"these results have no '{name}'{did_you_mean(name, known)} (they have: {', '.join(known)})"
            )
    shown = list(names) if names is not None else known[:MOST]
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    with styled():
        figure = new_figure(figsize=(COLUMN * columns, 1.6 * rows), layout="constrained")
        for k, name in enumerate(shown):
            axes = figure.add_subplot(rows, columns, k + 1)
            every = np.concatenate([np.asarray(d.posterior[name].values, float).reshape(-1) for d in runs.values()])
            every = every[np.isfinite(every)]
            logarithmic = every.size > 1 and quantity_is_logarithmic(problem, name, every)
            prior = problem.priors.get(name)
            bounds = OPEN if prior is None else (prior.lower, prior.upper)
            for (label, data), colour in zip(runs.items(), colours(len(runs)), strict=True):
                draws = np.asarray(data.posterior[name].values, float).reshape(-1)
                draws = draws[np.isfinite(draws)]
                if draws.size > 1 and np.ptp(draws) > 0:
                    grid = density_grid(draws, logarithmic, bounds)
                    curve = density(draws, grid, logarithmic, bounds)
                    axes.plot(grid, curve, color=colour, lw=1.3, label=shortened(label))
            if every.size > 1:
                inner = every[(every >= np.quantile(every, SHOWN[0])) & (every <= np.quantile(every, SHOWN[1]))]
                scales.dress(axes.xaxis, logarithmic, *scales.reach(inner, logarithmic, room=0.05))
            axes.set(yticks=[], xlabel=shortened(problem.title(name), 40), ylim=(0, 1.12))
            axes.spines["left"].set_visible(False)
            if k == 0:
                place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": len(runs)}  # above all curves
                axes.legend(fontsize=7, handlelength=1.2, columnspacing=1.0, frameon=False, **place)
    return figure
