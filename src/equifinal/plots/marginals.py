"""Prior against posterior on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import Name
from equifinal.plots.style import COLUMN, POSTERIOR, PRIOR, plain_log_ticks, short, shortened, styled
from equifinal.problem.problem import Problem
from equifinal.results.meaning import Finding, Meaning, interpret

if TYPE_CHECKING:
    from arviz import InferenceData

POINTS = 160
WIDE = 100.0  # an axis over more than this is logarithmic
PANEL = 1.5  # inches high


def plot_marginals(
    data: InferenceData, *, names: Sequence[str] | None = None, meaning: Meaning | None = None, columns: int = 2
) -> Any:
    """Prior and posterior of parameters, quantities and combinations, each curve scaled to the same height.

    Parameters
    ----------
    names
        Which; all by default. A combination is named by its text, such as ``beta*N - gamma``.
    meaning
        From `interpret`, if it was made already.
    """
    from matplotlib.figure import Figure

    meaning = interpret(data) if meaning is None else meaning
    known = [f.name for f in meaning.findings]
    for name in names or ():
        if name not in known:
            raise DataError(f"there is no '{name}'{did_you_mean(name, known)} (known: {', '.join(known)})")
    shown = [f for f in meaning.findings if names is None or f.name in names]
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    with styled():
        figure = Figure(figsize=(COLUMN * columns, PANEL * rows), layout="constrained")
        for k, finding in enumerate(shown):
            axes = figure.add_subplot(rows, columns, k + 1)
            _marginal(axes, finding, meaning.problem)
            axes.set_xlabel(shortened(meaning.problem.title(finding.name), 40))
    return figure


def plot_marginal(finding: Finding, problem: Problem) -> Any:
    """One of them, small: a strip to stand beside a sentence."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(2.7, 0.95))
        axes = figure.add_axes((0.05, 0.28, 0.90, 0.70))
        _marginal(axes, finding, problem)
        axes.tick_params(labelsize=7.5, length=2)
    return figure


def _marginal(axes: Any, finding: Finding, problem: Problem) -> None:
    axes.set(yticks=[], ylim=(0, 1.12))
    axes.spines["left"].set_visible(False)
    if not (finding.prior.size > 1 and finding.posterior.size > 1):
        axes.text(0.5, 0.5, "no finite values", ha="center", va="center", transform=axes.transAxes)
        return
    low, high, logarithmic = _range(finding)
    grid = np.geomspace(low, high, POINTS) if logarithmic else np.linspace(low, high, POINTS)
    prior = _prior_curve(finding, problem, grid, logarithmic)
    axes.fill_between(grid, 0, prior, color=PRIOR, alpha=0.35, lw=0)
    axes.plot(grid, prior, color=PRIOR, lw=1)
    # a grid of its own: the posterior may be narrower than a step of the other
    first, last = (float(q) for q in np.quantile(finding.posterior, [0.0005, 0.9995]))
    inner = np.geomspace(first, last, POINTS) if logarithmic and first > 0 else np.linspace(first, last, POINTS)
    posterior = density(finding.posterior, inner, logarithmic)
    axes.fill_between(inner, 0, posterior, color=POSTERIOR, alpha=0.45, lw=0)
    axes.plot(inner, posterior, color=POSTERIOR, lw=1.3)
    axes.set_xlim(low, high)
    if logarithmic:
        axes.set_xscale("log")
        plain_log_ticks(axes.xaxis, low, high)
    else:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(float(f"{value:.4g}"))))


def _range(finding: Finding) -> tuple[float, float, bool]:
    """Where the prior and the posterior are; a logarithmic axis where the prior spans decades."""
    before, after = np.quantile(finding.prior, [0.005, 0.995]), np.quantile(finding.posterior, [0.002, 0.998])
    ends = np.quantile(finding.prior, [0.02, 0.98])
    logarithmic = bool(min(before[0], after[0]) > 0 and ends[1] / ends[0] > WIDE)
    if not logarithmic:  # a long tail would hide the rest
        centre = np.quantile(finding.prior, [0.05, 0.95])
        reach = np.ptp(centre)
        before = np.clip(before, centre[0] - reach, centre[1] + reach)
    low, high = float(min(before[0], after[0])), float(max(before[1], after[1]))
    if not high > low:
        low, high = low - 0.5 * max(abs(low), 1e-9), high + 0.5 * max(abs(high), 1e-9)
    return low, high, logarithmic


def _prior_curve(finding: Finding, problem: Problem, grid: np.ndarray, logarithmic: bool) -> np.ndarray:
    """Exact for a parameter, estimated for a function of several; per unit of the axis, scaled to height 1."""
    if isinstance(finding.expression, Name) and finding.name in problem.priors:
        values = np.exp(problem.priors[finding.name].log_density(grid))
        values = values * grid if logarithmic else values
        values = np.where(np.isfinite(values), values, 0.0)
        return values / values.max() if values.max() > 0 else values
    return density(finding.prior, grid, logarithmic)


def density(draws: np.ndarray, grid: np.ndarray, logarithmic: bool = False) -> np.ndarray:
    """A kernel estimate on a grid, scaled to height 1; on a logarithmic axis, of the logarithm.

    Mass is reflected at the ends of the draws, so that a prior with an edge keeps it.
    """
    x, at = (np.log(draws[draws > 0]), np.log(grid)) if logarithmic else (draws, grid)
    low, high = np.quantile(x, [0.0, 1.0])
    centre = np.quantile(x, [0.25, 0.75])
    width = 1.1 * min(float(x.std()), float(np.ptp(centre)) / 1.34 or float(x.std())) * x.size**-0.2
    if not width > 0:
        return (np.abs(at - low) <= np.abs(at - low).min()).astype(float)
    inside = (low, high) if x.size < 50 else np.quantile(x, [0.001, 0.999])
    edges = np.linspace(inside[0], inside[1], 801)
    counts = np.histogram(x, edges)[0].astype(float)
    middles = 0.5 * (edges[1:] + edges[:-1])
    folded = np.concatenate([middles, 2 * inside[0] - middles, 2 * inside[1] - middles])
    weights = np.concatenate([counts, counts, counts])
    values = np.exp(-0.5 * ((at[:, None] - folded) / width) ** 2) @ weights
    values[(at < inside[0]) | (at > inside[1])] = 0.0
    return values / values.max() if values.max() > 0 else values
