"""The fit with its bands over the data, unobserved states, and residuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import TIME
from equifinal.plots.style import FAINT, INK, MARKERS, MUTED, POSTERIOR, PRIOR, colours, panels, shortened, styled
from equifinal.prediction.predict import Band, Check, Predictions, check, posterior_rows, predict, prior_rows
from equifinal.problem.problem import Problem
from equifinal.results.store import problem_of
from equifinal.words.trajectories import BADGES

if TYPE_CHECKING:
    from arviz import InferenceData

PANEL = 2.1  # inches high
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
) -> Any:
    """`plot_fit` from predictions already made."""
    bands = _chosen(shown, "output", names, experiments)
    checked = {(c.experiment, c.output): c for c in checks}
    colour = PRIOR if prior else POSTERIOR

    def draw(axes: Any, band: Band) -> None:
        _output(axes, band, checked.get((band.experiment, band.name)), colour)

    return _panels(bands, draw, partial(_title, problem, checked), problem)


def plot_states(
    data: InferenceData,
    *,
    names: Sequence[str] | None = None,
    experiments: Sequence[str] | None = None,
    until: float | None = None,
) -> Any:
    """States that are not outputs, with bands of 50% and 90%, each with a word on whether the data determine it."""
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
        _state(axes, band, verdicts.get((band.experiment, band.name)), said)

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
            _output(axes, band, checked.get((band.experiment, band.name)), PRIOR if prior else POSTERIOR)
        else:
            _state(axes, band, verdicts.get((band.experiment, band.name)), True)

    return _panels(bands, draw, partial(_title, problem, checked), problem)


def plot_residuals(data: InferenceData, *, names: Sequence[str] | None = None) -> Any:
    """Draw residuals: what the model leaves unexplained, in standard deviations of new observations."""
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

    return _panels(chosen, draw, lambda c: f"{shortened(c.output, 16)}, residual (sd)", problem)


def _output(axes: Any, band: Band, check: Check | None, colour: str) -> None:
    if check is not None and check.increment:
        _increments(axes, check, colour)
    else:
        _band(axes, band.times, band.quantiles if band.observed is None else band.observed, colour)
        axes.plot(band.times, band.quantiles[2], color=colour, lw=1.4)
    if check is not None:
        many = check.values.size > MANY
        colour, size, edge = (MUTED, 1.6, 0.0) if many else (INK, 3.2, 0.4)
        look = {"color": colour, "ms": size, "mew": edge, "mec": "white", "rasterized": many, "zorder": 9}
        for side, marker in MARKERS.items():
            own = check.censored == side
            if own.any() or not side:
                axes.plot(check.times[own], check.values[own], marker, **look)
        if not check.increment and band.times[-1] > 1.001 * check.times[-1]:
            axes.axvline(check.times[-1], color=MUTED, lw=0.8, ls=":")


def _state(axes: Any, band: Band, verdict: bool | None, said: bool) -> None:
    colour = PRIOR if verdict is False else POSTERIOR
    _band(axes, band.times, band.quantiles, colour)
    axes.plot(band.times, band.quantiles[2], color=colour, lw=1.4, ls="--" if verdict is False else "-")
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


def _increments(axes: Any, check: Check, colour: str) -> None:
    """Increments exist at the data's times only: bars rather than a curve."""
    times, first = np.unique(check.times, return_index=True)
    bands = check.replicated[:, first]
    wide = len(times) <= 60
    if len(times) > MANY:
        _band(axes, times, bands, colour)
        return
    axes.vlines(times, bands[0], bands[4], color=colour, alpha=0.30, lw=5 if wide else 2)
    axes.vlines(times, bands[1], bands[3], color=colour, alpha=0.45, lw=5 if wide else 2)
    axes.plot(times, check.expected[2, first], "_", color=colour, ms=7, mew=1.4)


def _moments(axes: Any, band: Band) -> None:
    """Ticks under the curve where something is added, and lines across it where something else changes."""
    for moment in band.moments if len(band.moments) <= MANY else ():
        if not moment.adds:
            axes.axvline(moment.time, color=MUTED, lw=0.7, ls=(0, (4, 3)), zorder=0)
    times = [moment.time for moment in band.moments if moment.adds]
    if not times:
        return
    look = {"marker": 6, "ls": "", "color": INK, "ms": 4.5 if len(times) < 30 else 2.5, "mew": 0, "clip_on": False}
    axes.plot(times, [0.0] * len(times), transform=axes.get_xaxis_transform(), zorder=10, **look)


def _inputs(axes: Any, problem: Problem, band: Band) -> Any:
    """A thin panel with the known inputs below the curve; the axes that are lowest."""
    experiment = next((e for e in problem.experiments if e.name == band.experiment), None)
    if experiment is None or not experiment.inputs:
        return axes
    thin = axes.inset_axes((0, -0.22, 1, 0.16), sharex=axes)
    if axes.figure.get_layout_engine() is None:  # margins that are fixed make room for it
        axes.figure.subplots_adjust(bottom=axes.figure.subplotpars.bottom + 0.15)
    first, last = band.times[0], band.times[-1]
    for colour, series in zip(colours(len(experiment.inputs)), experiment.inputs.values(), strict=True):
        inside = series.times[(series.times > first) & (series.times < last)]
        at = np.concatenate([[first], inside, [last]])
        if series.interpolation == "step":
            place = np.searchsorted(series.times, at, side="right") - 1
            thin.step(at, series.values[np.maximum(place, 0)], where="post", color=colour, lw=1)
        else:
            thin.plot(at, np.interp(at, series.times, series.values), color=colour, lw=1)
    thin.set_yticks([])
    thin.margins(y=0.15)
    shown = ", ".join(problem.title(name, unit=False) for name in experiment.inputs)
    thin.set_ylabel(shortened(shown, 8), rotation=0, ha="right", va="center", fontsize=7)
    axes.tick_params(labelbottom=False)
    return thin


def _panels(
    items: Sequence[Any], draw: Callable[[Any, Any], None], label: Callable[[Any], str], problem: Problem
) -> Any:
    """Make one panel for each item: a single one at column width, several side by side."""
    with styled():
        figure, places = panels(len(items), PANEL)
        for axes, item in zip(places, items, strict=True):
            draw(axes, item)
            axes.set_ylabel(shortened(label(item), 26))
            axes.margins(x=0.02)
            lowest = axes
            if isinstance(item, Band):
                _moments(axes, item)
                lowest = _inputs(axes, problem, item)
            lowest.set_xlabel(shortened(problem.title(TIME), 40))
            if item.experiment:
                axes.set_title(shortened(item.experiment, 30), fontsize=9)
    return figure
