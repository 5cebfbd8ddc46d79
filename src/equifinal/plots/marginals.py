"""Prior against posterior on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import Name
from equifinal.plots import scales
from equifinal.plots.scales import quantity_is_logarithmic
from equifinal.plots.style import COLUMN, POSTERIOR, PRIOR, new_figure, shortened, styled
from equifinal.problem.problem import Problem
from equifinal.results.meaning import Finding, Meaning, interpret

if TYPE_CHECKING:
    from arviz import InferenceData

POINTS, KERNELS = 160, 4000
OPEN = (-np.inf, np.inf)
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

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_marginals(data, names=["gamma", "beta*N - gamma"])
    """

    meaning = interpret(data) if meaning is None else meaning
    known = [f.name for f in meaning.findings]
    for name in names or ():
        if name not in known:
            raise DataError(f"there is no '{name}'{did_you_mean(name, known)} (known: {', '.join(known)})")
    shown = [f for f in meaning.findings if names is None or f.name in names]
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    with styled():
        figure = new_figure(figsize=(COLUMN * columns, PANEL * rows), layout="constrained")
        for k, finding in enumerate(shown):
            axes = figure.add_subplot(rows, columns, k + 1)
            _marginal(axes, finding, meaning.problem)
            axes.set_xlabel(shortened(meaning.problem.title(finding.name), 40))
    return figure


def plot_marginal(finding: Finding, problem: Problem) -> Any:
    """One of them, small: a strip to stand beside a sentence."""

    with styled():
        figure = new_figure(figsize=(2.7, 0.95))
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
    logarithmic = quantity_is_logarithmic(problem, finding.name, finding.prior, finding.posterior)
    low, high = _range(finding, logarithmic)
    bounds = bounds_of(problem, finding)
    grid = np.geomspace(low, high, POINTS) if logarithmic else np.linspace(low, high, POINTS)
    prior = _prior_curve(finding, problem, grid, logarithmic)
    axes.fill_between(grid, 0, prior, color=PRIOR, alpha=0.35, lw=0)
    axes.plot(grid, prior, color=PRIOR, lw=1)
    inner = density_grid(finding.posterior, logarithmic, bounds)
    posterior = density(finding.posterior, inner, logarithmic, bounds)
    axes.fill_between(inner, 0, posterior, color=POSTERIOR, alpha=0.45, lw=0)
    axes.plot(inner, posterior, color=POSTERIOR, lw=1.3)
    scales.dress(axes.xaxis, logarithmic, low, high, most=4)


def _range(finding: Finding, logarithmic: bool) -> tuple[float, float]:
    """Where the prior and the posterior are."""
    before, after = np.quantile(finding.prior, [0.005, 0.995]), np.quantile(finding.posterior, [0.002, 0.998])
    if not logarithmic:  # a long tail would hide the rest
        centre = np.quantile(finding.prior, [0.05, 0.95])
        width = np.ptp(centre)
        before = np.clip(before, centre[0] - width, centre[1] + width)
    low, high = float(min(before[0], after[0])), float(max(before[1], after[1]))
    if not high > low:
        low, high = low - 0.5 * max(abs(low), 1e-9), high + 0.5 * max(abs(high), 1e-9)
    return low, high


def bounds_of(problem: Problem, finding: Finding) -> tuple[float, float]:
    """Between which values a quantity must be: known of a parameter, open for a function of several."""
    prior = problem.priors.get(finding.name) if isinstance(finding.expression, Name) else None
    return (-np.inf, np.inf) if prior is None else (prior.lower, prior.upper)


def _prior_curve(finding: Finding, problem: Problem, grid: np.ndarray, logarithmic: bool) -> np.ndarray:
    """Exact for a parameter, estimated for a function of several; per unit of the axis, scaled to height 1."""
    if isinstance(finding.expression, Name) and finding.name in problem.priors:
        values = np.exp(problem.priors[finding.name].log_density(grid))
        values = values * grid if logarithmic else values
        values = np.where(np.isfinite(values), values, 0.0)
        return values / values.max() if values.max() > 0 else values
    return density(finding.prior, grid, logarithmic)


def density_grid(draws: np.ndarray, logarithmic: bool, bounds: tuple[float, float] = OPEN) -> np.ndarray:
    """Where to estimate a density: from where it rises from zero, or from a bound that it touches, to the other end."""
    x = np.log(draws[draws > 0]) if logarithmic else draws
    low, high = (float(q) for q in np.quantile(x, [0.0005, 0.9995]))
    room = 3 * _bandwidth(x)
    ends = np.log(np.maximum(bounds, 1e-300)) if logarithmic else np.asarray(bounds)
    grid = np.linspace(max(low - room, ends[0]), min(high + room, ends[1]), POINTS)
    return np.exp(grid) if logarithmic else grid


def density(
    draws: np.ndarray, grid: np.ndarray, logarithmic: bool = False, bounds: tuple[float, float] | None = None
) -> np.ndarray:
    """A kernel estimate on a grid, scaled to height 1; on a logarithmic axis, of the logarithm.

    Mass is reflected at hard bounds, so that a density that ends there at some height does not seem to fall to zero
    before. Where bounds are not known, they are the smallest and the largest draw.
    """
    x, at = (np.log(draws[draws > 0]), np.log(grid)) if logarithmic else (draws, grid)
    if bounds is None or (logarithmic and bounds[0] <= 0 and np.isinf(bounds[1])):
        ends = (float(x.min()), float(x.max())) if bounds is None else OPEN
    else:
        ends = tuple(np.log(np.maximum(bounds, 1e-300))) if logarithmic else bounds
    width = _bandwidth(x)
    if not width > 0:
        return (np.abs(at - x.min()) <= np.abs(at - x.min()).min()).astype(float)
    ordered = np.sort(x)[:: max(1, x.size // KERNELS)]
    images = [ordered, *(2 * end - ordered for end in ends if np.isfinite(end))]
    values = np.zeros(at.size)
    for image in images:
        near = image[(image > at.min() - 6 * width) & (image < at.max() + 6 * width)]
        values += np.exp(-0.5 * ((at[:, None] - near) / width) ** 2).sum(axis=1)
    values[(at < ends[0]) | (at > ends[1])] = 0.0
    return values / values.max() if values.max() > 0 else values


def _bandwidth(x: np.ndarray) -> float:
    middle = float(np.ptp(np.quantile(x, [0.25, 0.75]))) / 1.34
    return 1.1 * min(float(x.std()), middle or float(x.std())) * x.size**-0.2
