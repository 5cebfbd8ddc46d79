"""Ranks of the truth: a histogram for each quantity, and below it how far their distribution is from uniform."""

from __future__ import annotations

from typing import Any

import numpy as np

from equifinal.plots.style import COLOURS, FAINT, INK, MUTED, new_figure, shortened, styled
from equifinal.studies.calibrate.findings import Calibration
from equifinal.studies.calibrate.rank_test import histogram_band, rank_band
from equifinal.words.calibration import p_text

FINE, DEPARTING = COLOURS[0], COLOURS[5]
BAND = 0.99
COLUMNS = 5
MOST_PANELS = 40


def plot_calibration(calibration: Calibration, title: str = "") -> Any:
    """Draw one panel for each quantity; what departs from uniform is in another colour.

    The grey band of a histogram holds a single bar with probability 99%, that of the curve below (share of ranks up
    to each rank, less what is expected) the whole curve.

    Returns
    -------
    A matplotlib figure.

    Examples
    --------
    >>> import equifinal
    >>> found = equifinal.calibrate(equifinal.load("si"), replicates=20)  # doctest: +SKIP
    >>> figure = equifinal.plot_calibration(found)  # doctest: +SKIP
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    names = list(calibration.names)
    if len(names) > MOST_PANELS:  # those that say most
        names = sorted(names, key=lambda name: calibration.adjusted[name])[:MOST_PANELS]
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    heading = title or f"{calibration.problem}, {calibration.sampler}: {len(calibration.ranks)} replicates"
    with styled():
        tight = ConstrainedLayoutEngine(h_pad=0.02, w_pad=0.03, hspace=0.02)
        figure = new_figure(figsize=(1.75 * columns + 0.4, 2.0 * rows + 0.6), layout=tight)
        heights = [part for row in range(rows) for part in ((1.25, 1.0, 0.08) if row < rows - 1 else (1.25, 1.0))]
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        for k, name in enumerate(names):
            row, column = divmod(k, columns)
            colour = DEPARTING if name in calibration.departing else FINE
            above = figure.add_subplot(grid[3 * row, column])
            _histogram(above, calibration, name, colour)
            below = figure.add_subplot(grid[3 * row + 1, column])
            _difference(below, calibration, name, colour, labelled=column == 0)
            last = k + columns >= len(names)
            below.set_xticks(
                [0, (calibration.most + 1) / 2, calibration.most + 1],
                ["0", "", f"{calibration.most}"] if last else [""] * 3,
            )
            if last:
                below.set_xlabel("rank of the truth", fontsize=8, labelpad=1)
        figure.suptitle(heading, x=0.01, ha="left", fontsize=11)
    return figure


def _bins(replicates: int, most: int) -> int:
    """The most that divide the ranks evenly and leave some eight in each."""
    fitting = [k for k in range(2, 26) if (most + 1) % k == 0 and k <= replicates / 8]
    return max(fitting, default=2 if most % 2 else 1)


def _histogram(axes: Any, calibration: Calibration, name: str, colour: str) -> None:
    ranks = calibration.ranks_of(name)
    bins = _bins(len(ranks), calibration.most)
    low, high = histogram_band(len(ranks), bins, BAND)
    axes.axhspan(low, high, color=FAINT, lw=0, zorder=0)
    axes.axhline(len(ranks) / bins, color=INK, lw=0.7, zorder=3)
    for edge in (low, high):
        axes.axhline(edge, color=INK, lw=0.7, ls=(0, (1, 2)), zorder=3)
    edges = np.linspace(0, calibration.most + 1, bins + 1)
    counts = np.histogram(ranks, edges)[0] if len(ranks) else np.zeros(bins)
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=colour, alpha=0.8, ec="white", lw=0.4, zorder=2)
    axes.set(xlim=(0, calibration.most + 1), ylim=(0, 1.12 * max(high, counts.max(initial=1))))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(shortened(name, 20), fontsize=9, color=INK, pad=3)
    label = f"p {p_text(calibration.adjusted[name])}"
    axes.text(1.0, 1.02, label, transform=axes.transAxes, ha="right", va="bottom", fontsize=7, color=colour, zorder=5)


def _difference(axes: Any, calibration: Calibration, name: str, colour: str, labelled: bool) -> None:
    ranks = calibration.ranks_of(name)
    n = max(len(ranks), 1)
    band = rank_band(n, calibration.most, BAND)
    at = np.concatenate([[0.0], band.points, [1.0]]) * (calibration.most + 1)
    counts = np.cumsum(np.bincount(ranks, minlength=calibration.most + 1))[:-1]
    difference = np.concatenate([[0.0], counts / n - band.points, [0.0]])
    lower = np.concatenate([[0.0], band.lower / n - band.points, [0.0]])
    upper = np.concatenate([[0.0], band.upper / n - band.points, [0.0]])
    axes.fill_between(at, lower, upper, color=FAINT, lw=0)
    axes.axhline(0, color=MUTED, lw=0.8)
    axes.plot(at, difference, color=colour, lw=1.3)
    reach = 1.15 * max(np.abs(lower).max(), np.abs(upper).max(), np.abs(difference).max(), 0.01)
    axes.set(xlim=(0, calibration.most + 1), ylim=(-reach, reach))
    tick = float(f"{0.8 * reach:.1g}")
    axes.set_yticks([-tick, 0, tick], [f"{-tick:g}".replace("-", "\N{MINUS SIGN}"), "0", f"{tick:g}"], fontsize=7)
    axes.tick_params(axis="both", length=2, pad=1.5, labelsize=7)
    if labelled:
        axes.set_ylabel("share \N{MINUS SIGN} expected", fontsize=7, labelpad=1)
