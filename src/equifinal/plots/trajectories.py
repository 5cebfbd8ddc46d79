"""The fit with its bands over the data, unobserved states, and residuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import TIME
from equifinal.plots import scales, strips
from equifinal.plots.scales import trajectory_is_logarithmic
from equifinal.plots.style import COLUMN, FAINT, INK, MARKERS, MUTED, POSTERIOR, PRIOR, new_figure, shortened, styled
from equifinal.prediction.predict import Band, Check, Predictions, check, posterior_rows, predict, prior_rows
from equifinal.problem.problem import Problem
from equifinal.results.store import problem_of
from equifinal.words.trajectories import BADGES

if TYPE_CHECKING:
    from arviz import InferenceData

PANEL, STRIP = 2.1, 0.26  # inches high
BEYOND, INNER_BEYOND = 3, 20  # how far bands of 90% and 50% are shown beyond the data, in widths of these
MANY = 300  # points are pixels rather than shapes, for a page of a bearable size


def plot_fit(
    data: InferenceData,
    *,
    names: Sequence[str] | None = None,
    experiments: Sequence[str] | None = None,
    until: float | None = None,
    prior: bool = False,
) -> Any:
    """Every output with the bands that enclose 50% and 90% of new observations, over the data.

    Parameters
    ----------
    names, experiments
        Which outputs, of which experiments; all by default.
    until
        The last time; by default a quarter beyond the data.
    prior
        Draw what the prior alone predicts instead.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_fit(data, until=20)
    >>> figure.savefig("fit.pdf")  # doctest: +SKIP
    """
    problem = problem_of(data)
    theta = prior_rows(problem) if prior else posterior_rows(data, problem)
    shown = predict(problem, theta, until=until)
    return draw_outputs(problem, shown, check(problem, theta), names=names, experiments=experiments, prior=prior)


def draw_outputs(
    problem: Problem,
    shown: Predictions,
    checks: Sequence[Check],
    *,
    names: Sequence[str] | None = None,
    experiments: Sequence[str] | None = None,
    prior: bool = False,
    size: tuple[float, float] | None = None,
) -> Any:
    """`plot_fit` from predictions already made; ``size`` is that of one panel in inches, without what happens below."""
    bands = _chosen(shown, "output", names, experiments)
    checked = {(c.experiment, c.output): c for c in checks}
    colour = PRIOR if prior else POSTERIOR

    def draw(axes: Any, band: Band) -> None:
        _output(axes, problem, band, checked.get((band.experiment, band.name)), colour)

    return _panels(bands, draw, partial(_title, problem, checked), problem, size=size, happening=True)


def plot_states(
    data: InferenceData,
    *,
    names: Sequence[str] | None = None,
    experiments: Sequence[str] | None = None,
    until: float | None = None,
) -> Any:
    """States that are not outputs, with bands of 50% and 90%, each with a word on whether the data determine it.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_states(data, names=["S"])
    """
    from equifinal.errors import IdentifiabilityError
    from equifinal.fibre.of_problem import fibre_of
    from equifinal.prediction.dependence import determined_trajectories
    from equifinal.results.store import identifiability_of

    problem = problem_of(data)
    theta = posterior_rows(data, problem)
    analysis = identifiability_of(data)
    try:
        fibre = fibre_of(problem, analysis=analysis)
    except IdentifiabilityError:
        fibre = None
    verdicts = determined_trajectories(problem, fibre, theta, analysis)
    return draw_states(problem, predict(problem, theta, until=until), verdicts, names=names, experiments=experiments)


def draw_states(
    problem: Problem,
    shown: Predictions,
    verdicts: Mapping[tuple[str, str], bool | None],
    *,
    names: Sequence[str] | None = None,
    experiments: Sequence[str] | None = None,
    said: bool = True,
) -> Any:
    """`plot_states` from predictions already made; the verdict is written in the panel unless it is said elsewhere."""
    bands = _chosen(shown, "state", names, experiments)

    def draw(axes: Any, band: Band) -> None:
        _state(axes, problem, band, verdicts.get((band.experiment, band.name)), said)

    return _panels(bands, draw, partial(_title, problem, {}), problem)


def draw_predictions(
    problem: Problem,
    bands: Sequence[Band],
    checks: Sequence[Check],
    verdicts: Mapping[tuple[str, str], bool | None],
    *,
    prior: bool = False,
) -> Any:
    """Outputs over their data, then states with their verdicts, in one figure."""
    checked = {(c.experiment, c.output): c for c in checks}

    def draw(axes: Any, band: Band) -> None:
        if band.kind == "output":
            _output(axes, problem, band, checked.get((band.experiment, band.name)), PRIOR if prior else POSTERIOR)
        else:
            _state(axes, problem, band, verdicts.get((band.experiment, band.name)), True)

    return _panels(bands, draw, partial(_title, problem, checked), problem, happening=True)


def plot_residuals(data: InferenceData, *, names: Sequence[str] | None = None) -> Any:
    """Draw residuals: what the model leaves unexplained, in standard deviations of new observations.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> figure = equifinal.plot_residuals(data)
    """
    problem = problem_of(data)
    return draw_residuals(problem, check(problem, posterior_rows(data, problem)), names=names)


def draw_residuals(problem: Problem, checks: Sequence[Check], *, names: Sequence[str] | None = None) -> Any:
    """`plot_residuals` from checks already made."""
    known = [c.output for c in checks]
    _require_known(names, known, "output with data")
    chosen = [c for c in checks if names is None or c.output in names]

    def draw(axes: Any, check: Check) -> None:
        axes.axhspan(-1.645, 1.645, color=FAINT, alpha=0.55, lw=0)
        axes.axhline(0, color=MUTED, lw=0.8)
        many = check.residuals.size > MANY
        if not many:
            axes.vlines(check.times, 0, check.residuals, color=POSTERIOR, lw=0.9)
        size = 1.2 if many else 3
        axes.plot(check.times, check.residuals, "o", color=POSTERIOR, ms=size, mew=0, rasterized=many)
        reach = max(2.6, 1.1 * float(np.nan_to_num(check.largest)))
        axes.set_ylim(-reach, reach)

    return _panels(
        chosen, draw, lambda c: f"{shortened(problem.title(c.output, unit=False), 13)}, residual (sd)", problem
    )


def _output(axes: Any, problem: Problem, band: Band, check: Check | None, colour: str) -> None:
    increments = check is not None and check.increment
    bands = band.quantiles if band.observed is None else band.observed
    if check is not None and increments:
        bands = _increments(axes, check, band, colour)
    else:
        _band(axes, band.times, bands, colour)
        axes.plot(band.times, band.quantiles[2], color=colour, lw=1.4)
    logarithmic = trajectory_is_logarithmic(problem, band)
    if check is None:
        scales.dress_to_fit(axes.yaxis, logarithmic)
        return
    many = check.values.size > MANY
    colour, size, edge = (MUTED, 1.6, 0.0) if many else (INK, 3.6, 0.5)
    look = {"color": colour, "ms": size, "mew": edge, "mec": "white", "rasterized": many, "zorder": 9}
    for side, marker in MARKERS.items():
        own = check.censored == side
        if own.any() or not side:
            axes.plot(check.times[own], check.values[own], marker, **(look | ({"ms": 1.4 * size} if side else {})))
    if not increments and band.times[-1] > 1.001 * check.times[-1]:
        axes.axvline(check.times[-1], color=MUTED, lw=0.8, ls=":")
    _heights(axes, check.values, bands, logarithmic)


def _heights(axes: Any, values: Any, bands: Any, logarithmic: bool) -> None:
    """Limits that hold the data, and the band as far as it does not make them invisible."""
    top, bottom = float(values.max()), float(values.min())
    above, below = float(np.nanmax(bands[4])), float(np.nanmin(bands[0]))
    # a band far beyond the data, as priors make it, is shown on a logarithmic axis, or cut
    logarithmic = logarithmic or (bottom > 0 and scales.spans_decades([top, max(top, above)]))
    if logarithmic:
        positive = bands[0][bands[0] > 0]
        low = max(min(bottom, float(positive.min()) if positive.size else bottom), bottom / 10)
        scales.dress(axes.yaxis, True, 0.8 * low, 1.25 * min(max(top, above), 1e4 * top))
        return
    width = max(top - bottom, abs(top), 1e-300)
    inner_top, inner_bottom = float(np.nanmax(bands[3])), float(np.nanmin(bands[1]))  # of the band of 50%
    highest = max(top + BEYOND * width, min(inner_top, top + INNER_BEYOND * width))
    lowest = min(bottom - BEYOND * width, max(inner_bottom, bottom - INNER_BEYOND * width))
    high, low = min(max(top, above), highest), max(min(bottom, below), lowest)
    room = 0.05 * (high - low) or 1.0
    scales.dress(axes.yaxis, False, low - room, high + room)


def _state(axes: Any, problem: Problem, band: Band, verdict: bool | None, said: bool) -> None:
    colour = PRIOR if verdict is False else POSTERIOR
    _band(axes, band.times, band.quantiles, colour)
    axes.plot(band.times, band.quantiles[2], color=colour, lw=1.4, ls="--" if verdict is False else "-")
    scales.dress_to_fit(axes.yaxis, trajectory_is_logarithmic(problem, band), most=4)
    if said:
        axes.text(0.99, 1.0, BADGES[verdict], transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5)


def _title(problem: Problem, checked: Mapping[tuple[str, str], Check], band: Band) -> str:
    found = checked.get((band.experiment, band.name))
    return ("new " if found is not None and found.increment else "") + problem.title(band.name)


def _require_known(asked: Sequence[str] | None, known: Sequence[str], what: str) -> None:
    for name in asked or ():
        if name not in known:
            raise DataError(f"there is no {what} '{name}'{did_you_mean(name, known)}")


def _chosen(
    shown: Predictions, kind: str, names: Sequence[str] | None, experiments: Sequence[str] | None
) -> list[Band]:
    bands = [b for b in shown.bands if (b.kind == "output") == (kind == "output")]
    _require_known(names, [b.name for b in bands], f"{'unobserved ' if kind == 'state' else ''}{kind}")
    _require_known(experiments, [b.experiment for b in bands], "experiment")
    bands = [b for b in bands if (names is None or b.name in names)]
    bands = [b for b in bands if experiments is None or b.experiment in experiments]
    if not bands:
        raise DataError(
            "every state is an output, so there is no other state to draw" if kind == "state" else "no such output"
        )
    return bands


def _band(axes: Any, times: Any, quantiles: Any, colour: str) -> None:
    axes.fill_between(times, quantiles[0], quantiles[4], color=colour, alpha=0.18, lw=0)
    axes.fill_between(times, quantiles[1], quantiles[3], color=colour, alpha=0.30, lw=0)


def _increments(axes: Any, check: Check, band: Band, colour: str) -> Any:
    """Increments exist at times of reports only: bars rather than a curve, those of the data and any asked for beyond.

    Returns what they span, for the limits of the axis.
    """
    times, first = np.unique(check.times, return_index=True)
    bands, middle = check.replicated[:, first], check.expected[2, first]
    if band.observed is not None:
        new = (band.times > times[-1]) & np.isfinite(band.observed).all(axis=0)
        times = np.concatenate([times, band.times[new]])
        bands = np.concatenate([bands, band.observed[:, new]], axis=1)
        middle = np.concatenate([middle, band.observed[2, new]])
    if len(times) > MANY:
        _band(axes, times, bands, colour)
        return bands
    wide = 5 if len(times) <= 60 else 2
    axes.vlines(times, bands[0], bands[4], color=colour, alpha=0.30, lw=wide)
    axes.vlines(times, bands[1], bands[3], color=colour, alpha=0.45, lw=wide)
    axes.plot(times, middle, "_", color=colour, ms=7, mew=1.4)
    if times[-1] > check.times[-1]:
        axes.axvline(check.times[-1], color=MUTED, lw=0.8, ls=":")
    return bands


def _panels(
    items: Sequence[Any],
    draw: Callable[[Any, Any], None],
    label: Callable[[Any], str],
    problem: Problem,
    *,
    size: tuple[float, float] | None = None,
    happening: bool = False,
) -> Any:
    """Make one panel for each item: a single one twice as wide as a column, several side by side in two columns.

    With ``happening``, inputs, doses and what else happens to the model are drawn under each trajectory.
    """

    below = [strips.strips(problem, item) if happening and isinstance(item, Band) else [] for item in items]
    columns = 1 if len(items) == 1 else 2
    width, height = size or ((2 * COLUMN, 2.6) if columns == 1 else (COLUMN, PANEL))
    if size is None and not happening:
        width = COLUMN
    rows = -(-len(items) // columns)
    deepest = max(map(len, below), default=0)
    with styled():
        figure = new_figure(figsize=(width * columns, (height + STRIP * deepest) * rows), layout="constrained")
        grid = figure.add_gridspec(rows, columns)
        for k, (item, own) in enumerate(zip(items, below, strict=True)):
            heights = [height, *[STRIP] * max(deepest, len(own))]
            cell = grid[k // columns, k % columns].subgridspec(len(heights), 1, height_ratios=heights, hspace=0.0)
            axes = figure.add_subplot(cell[0])
            draw(axes, item)
            axes.set_ylabel(shortened(label(item), 30))
            axes.margins(x=0.02)
            if isinstance(item, Band):
                for time in strips.changes(item)[:MANY]:
                    axes.axvline(time, color=MUTED, lw=0.7, ls=(0, (4, 3)), zorder=0)
            scales.dress_to_fit(axes.xaxis, False, most=8 if width > COLUMN else 5)
            axes.set_xlabel(shortened(problem.title(TIME), 40))
            for row, (name, drawn) in enumerate(own, start=1):
                strips.draw(figure.add_subplot(cell[row], sharex=axes), name, drawn)
                axes.tick_params(labelbottom=True)
            if item.experiment:
                axes.set_title(shortened(item.experiment, 30), fontsize=9)
    return figure
