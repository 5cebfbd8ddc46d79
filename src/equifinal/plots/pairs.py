"""Draws of parameters against each other, with the fibre through the posterior mean: what no data can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, EquifinalError, did_you_mean
from equifinal.fibre import Fibre
from equifinal.identifiability.verdicts import NOT
from equifinal.plots import scales
from equifinal.plots.marginals import density, density_grid
from equifinal.plots.scales import quantity_is_logarithmic
from equifinal.plots.style import COLOURS, FIBRE, MUTED, POSTERIOR, new_figure, shortened, styled
from equifinal.prediction.predict import posterior_rows
from equifinal.results.meaning import NOISE, PARAMETER, Meaning, interpret

if TYPE_CHECKING:
    from arviz import InferenceData

Array = np.ndarray
MOST, CLOUD, CURVE, SURFACE = 5, 1500, 300, 250
SIDE = 1.35  # inches
CLOUD_COLOUR = COLOURS[4]  # pixels do not change with the page: seen on white and on black
CAPTION = "orange: parameters with the same output (a fibre)"
NARROW_CAPTION = "orange:\nparameters with\nthe same output\n(a fibre)"
NOTE: dict[str, Any] = {"ha": "right", "va": "top", "fontsize": 8, "color": FIBRE}


def plot_pairs(data: InferenceData, *, names: Sequence[str] | None = None, meaning: Meaning | None = None) -> Any:
    """Scatter of pairs of parameters below a diagonal of marginals, and the fibre through the posterior mean.

    Parameters
    ----------
    names
        Which parameters; by default those that move along the fibre, at most five.
    meaning
        From `interpret`, if it was made already.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_pairs(data, names=["beta", "gamma"])
    """

    meaning = interpret(data) if meaning is None else meaning
    shown = _checked(names, meaning) if names is not None else _interesting(meaning)
    problem = meaning.problem
    theta = posterior_rows(data, problem, CLOUD)
    every = posterior_rows(data, problem, 20_000)
    columns = [problem.parameters.index(name) for name in shown]
    curves = fibre_through_mean(meaning.fibre, problem.parameters, every)
    n = len(shown)
    logarithmic = {k: quantity_is_logarithmic(problem, problem.parameters[k], every[:, k]) for k in columns}
    priors = {k: problem.priors[problem.parameters[k]] for k in columns}
    with styled():
        figure = new_figure(figsize=(SIDE * n + 0.5, SIDE * n + 0.3), layout="constrained")
        for i in range(n):
            for j in range(i + 1):
                axes, x, y = figure.add_subplot(n, n, i * n + j + 1), columns[j], columns[i]
                if i == j:
                    _marginal(axes, every[:, x], logarithmic[x], (priors[x].lower, priors[x].upper))
                else:
                    _cell(axes, theta, x, y, curves)
                    scales.dress(axes.yaxis, logarithmic[y], *scales.reach(every[:, y], logarithmic[y]), most=3)
                scales.dress(axes.xaxis, logarithmic[x], *scales.reach(every[:, x], logarithmic[x]), most=3)
                _labels(axes, [problem.title(name) for name in shown], i, j, n)
        if curves:
            figure.text(0.99, 0.99, CAPTION if n > 2 else NARROW_CAPTION, **NOTE)
    return figure


def _checked(names: Sequence[str], meaning: Meaning) -> list[str]:
    known = [f.name for f in meaning.of_kind(PARAMETER, NOISE)]
    for name in names:
        if name not in known:
            raise DataError(f"'{name}' is not a parameter{did_you_mean(name, known)} (parameters: {', '.join(known)})")
    if len(names) < 2:
        raise DataError("a pair plot needs at least two parameters")
    return list(names)


def _interesting(meaning: Meaning) -> list[str]:
    """Unidentifiable ones first, then those that the data inform least."""
    parameters = meaning.of_kind(PARAMETER, NOISE)
    if len(parameters) < 2:
        raise DataError("a pair plot needs at least two parameters")
    ranked = sorted(parameters, key=lambda f: (f.verdict != NOT, np.nan_to_num(f.information.bits, nan=np.inf)))
    free = [f for f in ranked if f.verdict == NOT]
    chosen = (free if len(free) >= 2 else ranked)[:MOST]
    return [f.name for f in parameters if f in chosen]  # in the order of the problem


def fibre_through_mean(fibre: Fibre | None, parameters: Sequence[str], theta: Array) -> list[Array]:
    """Pieces of the fibre over the posterior mean of the combinations, each rows of parameters in order along it.

    A curve is given as curves; a surface, and a few separate points, as one row a piece. Empty where there is no
    freedom, or where the fibre is not known.
    """
    if fibre is None or (fibre.dimension == 0 and fibre.chart.degree == 1):
        return []
    order = [list(parameters).index(name) for name in fibre.names]
    back = [fibre.names.index(name) for name in parameters]
    c = fibre.xi(theta[:, order])
    fine = np.isfinite(c).all(axis=1)
    middle, spread = c[fine].mean(axis=0), c[fine].std(axis=0)
    near = int(np.argmin((((c[fine] - middle) / np.where(spread > 0, spread, 1.0)) ** 2).sum(axis=1)))
    centre = theta[fine][near : near + 1][:, order]
    try:
        if fibre.dimension != 1:
            points = fibre.search(centre[0], SURFACE if fibre.dimension else 12).theta
            return [row[None, back] for row in points]
        labels = fibre.labels(centre) if fibre.combinations.labels else None
        return [piece[:, back] for piece in _curves(fibre, fibre.xi(centre), labels)]
    except EquifinalError:
        return []


def _curves(fibre: Fibre, c: Array, labels: Array | None) -> list[Array]:
    support = fibre.support(c, labels)
    prior = fibre.priors[fibre.free[0]]
    pieces: list[Array] = []
    for low, high in support.intervals[0, : support.found[0]]:
        ends = prior.cdf(np.array([low, high]))
        inside = 0.5 - 0.5 * np.cos(np.pi * (np.arange(CURVE) + 0.5) / CURVE)
        free = prior.quantile(ends[0] + (ends[1] - ends[0]) * inside)[:, None]
        roots = fibre.points(free, c, labels)
        for k in range(roots.theta.shape[1]):
            there = (roots.status == 0) & (k < roots.found)
            # where the number of solutions changes the k-th is another one: a new piece
            breaks = np.flatnonzero(np.diff(roots.found) != 0) + 1
            parts = np.split(np.arange(len(free)), breaks)
            pieces += [roots.theta[part[there[part]], k] for part in parts if there[part].sum() > 1]
    return pieces


def _marginal(axes: Any, draws: Array, logarithmic: bool, bounds: tuple[float, float]) -> None:
    grid = density_grid(draws, logarithmic, bounds)
    height = density(draws, grid, logarithmic, bounds)
    axes.fill_between(grid, 0, height, color=POSTERIOR, alpha=0.35, lw=0)
    axes.plot(grid, height, color=POSTERIOR, lw=1)
    axes.set(yticks=[], ylim=(0, 1.1))
    axes.spines["left"].set_visible(False)


def _cell(axes: Any, theta: Array, x: int, y: int, curves: list[Array]) -> None:
    axes.plot(theta[:, x], theta[:, y], ".", color=CLOUD_COLOUR, ms=1.8, alpha=0.55, mew=0, rasterized=True)
    points = [piece for piece in curves if len(piece) == 1]
    for piece in curves:
        if len(piece) > 1:
            axes.plot(piece[:, x], piece[:, y], "-", color=FIBRE, lw=1.3)
    if points:
        cloud = np.vstack(points)
        axes.plot(cloud[:, x], cloud[:, y], ".", color=FIBRE, ms=2.5 if len(points) > 20 else 5, mew=0)


def _labels(axes: Any, titles: Sequence[str], i: int, j: int, n: int) -> None:
    axes.tick_params(labelsize=7, length=2, colors=MUTED)
    if i == n - 1:
        axes.set_xlabel(shortened(titles[j], 18))
    else:
        axes.tick_params(labelbottom=False)
    if j == 0 and i > 0:
        axes.set_ylabel(shortened(titles[i], 18))
    elif i != j:
        axes.tick_params(labelleft=False)
