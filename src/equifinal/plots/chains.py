"""How the chains went: traces, ranks, autocorrelation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.plots import scales
from equifinal.plots.scales import quantity_is_logarithmic
from equifinal.plots.style import MUTED, colours, panels, shortened, styled
from equifinal.results.arviz_lines import autocorrelation
from equifinal.results.store import problem_of

if TYPE_CHECKING:
    from arviz import InferenceData

PANEL = 1.7  # inches high
SHOWN = 400  # points of a trace; more cannot be told apart at column width
BINS, LAGS, MOST = 20, 60, 12


def plot_traces(data: InferenceData, *, names: Sequence[str] | None = None) -> Any:
    """Draws of each chain in turn: they should look alike, and like noise.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_traces(data, names=["gamma"])
    """

    def draw(axes: Any, draws: np.ndarray) -> None:
        step = max(1, draws.shape[1] // SHOWN)
        at = np.arange(0, draws.shape[1], step)
        for row, colour in zip(draws, colours(len(draws)), strict=True):
            axes.plot(at, row[at], color=colour, lw=0.5, alpha=0.8)
        axes.set(xlabel="draw", xlim=(0, draws.shape[1]))

    return _panels(data, names, draw, str, scaled=True)


def plot_ranks(data: InferenceData, *, names: Sequence[str] | None = None) -> Any:
    """How the ranks among all draws fall in each chain: even, if the chains agree (Vehtari et al. 2021).

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_ranks(data, names=["gamma"])
    """

    def draw(axes: Any, draws: np.ndarray) -> None:
        ranks = np.argsort(np.argsort(draws.reshape(-1), kind="stable"), kind="stable").reshape(draws.shape)
        edges = np.linspace(0, draws.size, BINS + 1)
        expected = draws.shape[1] / BINS
        for row, colour in zip(ranks, colours(len(draws)), strict=True):
            counts = np.histogram(row, edges)[0] / expected
            axes.step(np.append(edges, edges[-1])[:-1] / draws.size, [*counts, counts[-1]], where="post", color=colour)
        axes.axhline(1.0, color=MUTED, lw=0.8, ls=":")
        axes.set(xlabel="rank among all draws", xlim=(0, 1), ylim=(0, max(2.0, axes.get_ylim()[1])))

    return _panels(data, names, draw, lambda title: f"{shortened(title, 14)}, frequency")


def plot_autocorrelation(data: InferenceData, *, names: Sequence[str] | None = None, lags: int = LAGS) -> Any:
    """How long a chain remembers: correlation between draws so many draws apart.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_autocorrelation(data, names=["gamma"], lags=30)
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or lags < 1:
        raise DataError(f"the number of lags must be a positive whole number, not {lags!r}")

    def draw(axes: Any, draws: np.ndarray) -> None:
        most = min(lags, draws.shape[1] - 1)
        for row, colour in zip(draws, colours(len(draws)), strict=True):
            values = autocorrelation(row)[: most + 1] if np.ptp(row) > 0 else np.ones(most + 1)
            axes.plot(np.arange(most + 1), values, color=colour, lw=0.9)
        axes.axhline(0.0, color=MUTED, lw=0.8, ls=":")
        axes.set(xlabel="lag", xlim=(0, max(most, 1)), ylim=(min(-0.1, axes.get_ylim()[0]), 1.02))

    return _panels(data, names, draw, lambda title: f"{shortened(title, 10)}, autocorr.")


def _panels(
    data: InferenceData,
    names: Sequence[str] | None,
    draw: Callable[[Any, np.ndarray], None],
    label: Callable[[str], str],
    scaled: bool = False,
) -> Any:
    problem = problem_of(data)
    known = [str(name) for name in data.posterior.data_vars]
    for name in names or ():
        if name not in known:
            raise DataError(
                f"these results have no '{name}'{did_you_mean(name, known)} (they have: {', '.join(known)})"
            )
    shown = list(names) if names is not None else known[:MOST]
    with styled():
        figure, places = panels(len(shown), PANEL)
        for axes, name in zip(places, shown, strict=True):
            draws = np.asarray(data.posterior[name].values, float)
            if np.isfinite(draws).all():
                draw(axes, draws)
                logarithmic = scaled and quantity_is_logarithmic(problem, name, draws.reshape(-1))
                scales.dress_to_fit(axes.yaxis, logarithmic, most=4)
                scales.dress_to_fit(axes.xaxis, False, most=4)
            else:
                axes.text(0.5, 0.5, "some draws are not finite", ha="center", va="center", transform=axes.transAxes)
            axes.set_ylabel(shortened(label(problem.title(name, unit=scaled)), 24))
    return figure
