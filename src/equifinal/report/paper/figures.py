"""The paper's figures for a case study: traces, ways of moving, autocorrelations and densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.plots.style import COLOURS, INK, MUTED, styled
from equifinal.studies.paper.cases import CaseStudy
from equifinal.studies.paper.marginal import Marginal
from equifinal.studies.paper.runs import MethodRun

Array = NDArray[np.float64]

METHOD_COLOURS = {
    "random walk": COLOURS[5],
    "geometric": COLOURS[1],
    "pseudo-marginal": COLOURS[2],
    "collapsed": COLOURS[0],
}
TRACE_POINTS, CLOUD, STEPS, LAGS = 4000, 3000, 40, 2000


def plot_traces(case: CaseStudy, runs: Sequence[MethodRun], marginals: dict[str, Marginal]) -> Any:
    """Draw traces, a row for each method and a column for each parameter; grey: 98% of the exact posterior."""
    from matplotlib.figure import Figure

    names = case.names[:1] + (case.shown[1],)
    with styled():
        figure = Figure(figsize=(8.2, 1.15 * len(runs) + 0.6), layout="constrained")
        grid = figure.subplots(len(runs), len(names), sharex=True, squeeze=False)
        for row, run in enumerate(runs):
            draws = run.theta[0]
            thin = max(1, len(draws) // TRACE_POINTS)
            for axes, name in zip(grid[row], names, strict=True):
                band = marginals[name].quantile(np.array([0.01, 0.99]))
                axes.axhspan(*band, color="#eeeeee", lw=0, zorder=0)
                at = np.arange(0, len(draws), thin)
                colour = METHOD_COLOURS[run.method]
                axes.plot(at, case.column(name, draws)[::thin], color=colour, lw=0.5, rasterized=True)
                axes.set_xlim(0, len(draws))
                axes.tick_params(labelsize=7)
                axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
                axes.yaxis.get_offset_text().set_fontsize(7)
                axes.set_ylabel(name, fontsize=8)
            grid[row][0].set_title(f"{run.method}: {_share(run.acceptance)} accepted", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("iteration after burn-in, first chain", fontsize=8)
    return figure


def plot_projections(case: CaseStudy, runs: Sequence[MethodRun]) -> Any:
    """Draw a panel for each method: some consecutive draws in the plane, with an exact fibre under them."""
    from matplotlib.figure import Figure

    x_name, y_name = case.plane
    log = case.name == "hiv"
    with styled():
        figure = Figure(figsize=(8.6, 2.55), layout="constrained")
        grid = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
        for axes, run in zip(grid, runs, strict=True):
            x, y = (case.column(name, run.theta[0]) for name in (x_name, y_name))
            thin = max(1, len(x) // CLOUD)
            axes.plot(*case.fibre_curve(), color="#cccccc", lw=5, solid_capstyle="round", zorder=1)
            colour = METHOD_COLOURS[run.method]
            axes.plot(x[::thin], y[::thin], ".", color=colour, ms=1.5, mew=0, alpha=0.35, zorder=2, rasterized=True)
            at = slice(len(x) // 2, len(x) // 2 + STEPS)
            axes.plot(x[at], y[at], "-", color=INK, lw=0.5, alpha=0.7, zorder=3)
            axes.plot(x[at], y[at], "o", color=colour, ms=3.2, mec=INK, mew=0.4, zorder=4)
            axes.set_title(run.method)
            axes.set_xlabel(x_name)
            if log:
                axes.set(xscale="log", yscale="log")
            axes.tick_params(labelsize=7)
        grid[0].set_ylabel(y_name)
    return figure


def plot_autocorrelations(case: CaseStudy, runs: Sequence[MethodRun]) -> Any:
    """Draw autocorrelations of what the paper calls identifiable and not identifiable, a line for each method."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(8.2, 2.6), layout="constrained")
        grid = figure.subplots(1, 2, sharey=True)
        for axes, name in zip(grid, case.shown[:2], strict=True):
            for run in runs:
                rho = autocorrelation(case.column(name, run.theta), LAGS)
                lags = np.unique(np.geomspace(1, len(rho) - 1, 120).astype(int))
                axes.plot(lags, rho[lags], color=METHOD_COLOURS[run.method], lw=1.5, label=run.method)
            axes.axhline(0, color=MUTED, lw=0.8)
            axes.set(xscale="log", xlabel="lag (iterations)", ylim=(-0.12, 1.02), title=name)
        grid[0].set_ylabel("autocorrelation")
        grid[0].legend(loc="upper right", fontsize=8)
    return figure


def plot_densities(case: CaseStudy, runs: Sequence[MethodRun], marginals: dict[str, Marginal]) -> Any:
    """Histograms of every method, and the exact marginal as a line."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(8.6, 2.7), layout="constrained")
        grid = figure.subplots(1, len(case.shown))
        for axes, name in zip(grid, case.shown, strict=True):
            exact = marginals[name]
            low, high = exact.quantile(np.array([0.0005, 0.9995]))
            room = 0.03 * (high - low)
            edges = np.linspace(low, high, 41)
            tops = [exact.density.max()]
            for run in runs:
                counts = np.histogram(case.column(name, run.theta), edges)[0] / run.theta[..., 0].size
                density = counts / np.diff(edges)
                tops.append(min(density.max(), 1.8 * exact.density.max()))
                axes.stairs(density, edges, color=METHOD_COLOURS[run.method], lw=1.2, label=run.method)
            axes.plot(exact.values, exact.density, color=INK, lw=1.4, label=f"exact ({case.reference})")
            axes.set(xlim=(low - room, high + room), ylim=(0, 1.1 * max(tops)), title=name, yticks=[])
            axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
            axes.tick_params(labelsize=7)
            axes.xaxis.get_offset_text().set_fontsize(7)
            axes.spines["left"].set_visible(False)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def autocorrelation(draws: Array, most: int) -> Array:
    """Average autocorrelations at lags 0, 1, ... over chains, around the common mean; ones where nothing moved."""
    centred = draws - draws.mean()
    n = draws.shape[1]
    lags = min(most, n - 1) + 1
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :lags].mean(axis=0) / (n - np.arange(lags))
    return covariance / covariance[0] if covariance[0] > 0 else np.ones(lags)


def _share(acceptance: float) -> str:
    return f"{acceptance:.0%}" if acceptance >= 0.01 else f"{acceptance:.3%}" if acceptance else "nothing"
