"""Predictions from many draws: bands of outputs and of states that nobody measures, and checks against the data.

A band is the 5, 25, 50, 75 and 95% quantile over draws at each time: the middle two enclose 50%, the outer two 90%.
For an output there are two: of the output itself, and of a new observation of it, which scatters as the noise says.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal import ode
from equifinal.errors import DataError, SolverError
from equifinal.language.expression import evaluate, names
from equifinal.language.functions import call_on_arrays
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Model
from equifinal.posterior.likelihood import known_inputs
from equifinal.prediction.moments import Moment, level_steps, moments
from equifinal.prediction.simulate import check_times, somewhere_defined
from equifinal.problem.data import Experiment, Observations
from equifinal.problem.noise import Sides
from equifinal.problem.problem import Problem, SolverSettings
from equifinal.showing import Shown

if TYPE_CHECKING:
    from arviz import InferenceData

Array = NDArray[np.float64]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
DRAWS, CURVE = 1000, 121  # draws of a band, and times of a curve, unless told otherwise
BEYOND = 1.25  # how much further than the data a prediction goes by itself
MOST_EVENTS = 50  # around which a curve has more times
MAX_CELLS, CHECKED_CELLS = 200_000_000, 5_000_000  # numbers held at once


@dataclass(frozen=True, eq=False)
class Band:
    """One output, state, or quantity that depends on states, of one experiment.

    Attributes
    ----------
    kind
        ``"output"``, ``"state"`` or ``"quantity"``.
    quantiles
        Of the trajectory over the draws, a row for each of `LEVELS`.
    observed
        Of a new observation, likewise, censored at the limits of its noise; None for states, and for outputs whose
        noise is not known, or for rows of the data only. Of an output that is observed by its increments, of what is
        added since the time before, not a number at the first; None on a grid that nobody asked for.
    mean
        Of the trajectory.
    moments
        What happens to the model within the times; medians over the draws.
    levels
        What is constant between moments and changes there, by name: rows of a time and the value from then on.
    """

    experiment: str
    name: str
    kind: str
    times: Array
    mean: Array
    quantiles: Array
    observed: Array | None
    moments: tuple[Moment, ...] = ()
    levels: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Check:
    """The data of one output beside what the draws say such data would be.

    Attributes
    ----------
    expected
        Quantiles of the output (of its increments, where these are observed) at the times of the data.
    values, censored
        The data, and which of them are limits: see `Observations`.
    replicated
        Quantiles of new observations there, censored in the same way.
    residuals
        (observed - mean) / sd of the new observations: of order 1 where the model fits.
    ranks
        Share of the new observations that are less than each observation, with half of those that equal it.
    inside_50, inside_90
        Share of the observations inside the bands of new observations: near 0.5 and 0.9 where noise and model fit.
    p_size, p_trend
        Posterior predictive p-values: how often new observations have residuals whose squares, or whose products with
        their neighbours in time, add up to at least as much as those of the data. NaN where there are too few.
    """

    experiment: str
    output: str
    increment: bool
    times: Array
    values: Array
    censored: Sides
    expected: Array
    replicated: Array
    residuals: Array
    ranks: Array
    inside_50: float
    inside_90: float
    p_size: float
    p_trend: float

    @property
    def largest(self) -> float:
        """The largest residual; NaN if there is none."""
        finite = self.residuals[np.isfinite(self.residuals)]
        return float(np.abs(finite).max()) if finite.size else float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Shown):
    """Bands and how many of the draws could be solved."""

    bands: tuple[Band, ...]
    draws: int
    failed: int

    def __repr__(self) -> str:
        shown = ", ".join(dict.fromkeys(b.name for b in self.bands))
        return f"<Predictions of {shown} from {self.draws - self.failed} draws>"

    def named(self, name: str, experiment: str = "") -> Band:
        return next(b for b in self.bands if b.name == name and b.experiment == experiment)


def posterior_rows(data: InferenceData, problem: Problem, size: int = DRAWS) -> Array:
    """Parameter rows of the posterior, evenly taken from all chains."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise DataError(f"the number of draws must be a positive whole number, not {size!r}")
    missing = [name for name in problem.parameters if name not in data.posterior]
    if missing:
        raise DataError(f"these results have no draws of {', '.join(missing)}")
    # a draw of every chain in turn: then any stretch is a fair share of all of them
    columns = [data.posterior[name].values.T.reshape(-1) for name in problem.parameters]
    every = np.column_stack(columns)
    chosen = np.unique(np.linspace(0, len(every) - 1, min(int(size), len(every))).round().astype(int))
    return every[chosen]


def prior_rows(problem: Problem, size: int = DRAWS, seed: int = 0) -> Array:
    """Parameter rows of the prior."""
    uniforms = np.random.default_rng(seed).random((size, len(problem.parameters)))
    return np.column_stack([problem.priors[name].quantile(uniforms[:, j]) for j, name in enumerate(problem.parameters)])


def predict(
    problem: Problem,
    theta: Array,
    *,
    times: Sequence[float] | Array | None = None,
    until: float | None = None,
    seed: int = 0,
) -> Predictions:
    """Bands of every output and state of every experiment.

    Parameters
    ----------
    theta
        Parameters, one draw per row, in the order of ``problem.parameters``: see `posterior_rows` and `prior_rows`.
    times
        When to predict; left out, an even grid from 0 to `until`. For new increments, the times of reports.
    until
        The last time of that grid; left out, a quarter beyond the last observation.
    seed
        Of the noise on new observations.

    Raises
    ------
    SolverError
        If no draw could be solved.
    """
    theta = np.atleast_2d(np.asarray(theta, float))
    bands: list[Band] = []
    failed = np.zeros(len(theta), bool)
    rng = np.random.default_rng(seed)
    for experiment in problem.experiments:
        grid = prediction_times(experiment, times, until)
        _refuse_too_many(len(theta), grid.size, experiment)
        found = solve(experiment, problem.parameters, theta, grid, problem.solver, experiment.model.trajectories)
        fine = found.status == 0
        failed |= ~fine
        if not fine.any():
            where = f"experiment '{experiment.name}': " if experiment.name else ""
            raise SolverError(f"{where}no draw could be solved: {ode.Status(int(found.status[0])).message}")
        noises = {entry.output: entry for entry in experiment.observations}
        computed = noise_columns(experiment, found.outputs[fine])
        happens = moments(experiment.model, problem.parameters, theta, grid)
        levels = level_steps(experiment.model, problem.parameters, theta, happens)
        own: list[tuple[str, str, Array, Array | None]] = []

        for j, name in enumerate(experiment.model.outputs):
            curve, seen, entry = found.outputs[fine, :, j], None, noises.get(name)
            meant = entry is not None and (not entry.increment or (times is not None and grid.size > 1))
            if entry is not None and meant and not entry.noise.by_row:
                made = _seen(entry, curve, computed, problem, theta[fine], rng)
                seen = quantiles(np.clip(made, *entry.noise.general_limits))
            own.append((name, "output", curve, seen))
        for j, name in enumerate(experiment.model.states):
            if name not in experiment.model.outputs:
                own.append((name, "state", found.states[fine, :, j], None))
        for j, name in enumerate(experiment.model.trajectories, len(experiment.solved.outputs)):
            own.append((name, "quantity", found.outputs[fine, :, j], None))
        for name, kind, curve, seen in own:
            mean, around = _mean(curve), quantiles(curve)
            bands.append(Band(experiment.name, name, kind, grid, mean, around, seen, happens, levels))
    return Predictions(tuple(bands), len(theta), int(failed.sum()))


class Replicates(NamedTuple):
    """New observations of one output where it was observed, (draws, observations); ``solved`` says of which draws."""

    experiment: str
    entry: Observations
    mean: Array
    made: Array
    solved: NDArray[np.bool_]


def new_observations(problem: Problem, theta: Array, *, seed: int = 0) -> Iterator[Replicates]:
    """What draws would have been observed, output by output, at the times of the data and censored as these are.

    Raises
    ------
    SolverError
        If no draw could be solved.
    """
    theta = np.atleast_2d(np.asarray(theta, float))
    rng = np.random.default_rng(seed)
    for experiment in problem.experiments:
        if not experiment.size:
            continue
        grid = experiment.grid()
        found = solve(experiment, problem.parameters, theta, grid, problem.solver, needed=experiment.needed())
        fine = found.status == 0
        if not fine.any():
            raise SolverError(f"no draw could be solved: {ode.Status(int(found.status[0])).message}")
        for entry in experiment.observations:
            if not entry.values.size:
                continue
            curve = found.outputs[fine, :, experiment.model.outputs.index(entry.output)]
            at = np.searchsorted(grid, entry.times)
            mean = curve[:, at]
            if entry.increment:
                mean = mean - curve[:, np.searchsorted(grid, entry.previous)]
            computed = {k: v[:, at] for k, v in noise_columns(experiment, found.outputs[fine]).items()}
            made = _scattered(entry, mean, computed, problem, theta[fine], rng)
            yield Replicates(experiment.name, entry, mean, np.clip(made, entry.below, entry.above), fine)


def check(problem: Problem, theta: Array, *, seed: int = 0) -> list[Check]:
    """Posterior predictive checks of every output with data: how the data look among data that the draws would make."""
    theta = np.atleast_2d(np.asarray(theta, float))
    # of many observations a few draws tell as much
    most = max((experiment.size for experiment in problem.experiments), default=0)
    rows = theta[:: max(1, -(-len(theta) * most // CHECKED_CELLS))]
    return [_check(r.experiment, r.entry, r.mean, r.made) for r in new_observations(problem, rows, seed=seed)]


def _check(experiment: str, entry: Observations, mean: Array, made: Array) -> Check:
    bands, y = quantiles(made), entry.values
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle, sd = np.nanmean(made, axis=0), np.nanstd(made, axis=0)
        residuals = np.where(sd > 0, (y - middle) / sd, np.nan)  # where nothing scatters there is no measure
        others = (made - middle) / sd
    usable = np.isfinite(residuals) & np.isfinite(others).all(axis=0)
    p_size, p_trend = _p_values(residuals[usable], others[:, usable])
    return Check(
        experiment,
        entry.output,
        entry.increment,
        entry.times,
        y,
        entry.censored,
        quantiles(mean),
        bands,
        residuals,
        ranks=np.mean(made < y, axis=0) + 0.5 * np.mean(made == y, axis=0),
        inside_50=float(np.mean((bands[1] <= y) & (y <= bands[3]))),
        inside_90=float(np.mean((bands[0] <= y) & (y <= bands[4]))),
        p_size=p_size,
        p_trend=p_trend,
    )


def _p_values(residuals: Array, others: Array) -> tuple[float, float]:
    """Of residuals in order of time, beside those of new observations (a row for each draw)."""
    if residuals.size < 3 or len(others) < 20:
        return math.nan, math.nan
    size = (others**2).sum(axis=1) >= (residuals**2).sum()
    trend = (others[:, 1:] * others[:, :-1]).sum(axis=1) >= (residuals[1:] * residuals[:-1]).sum()
    return float(size.mean()), float(trend.mean())


def solve(
    experiment: Experiment,
    parameters: Sequence[str],
    theta: Array,
    times: Array,
    solver: SolverSettings,
    more: Iterable[str] = (),
    needed: NDArray[np.bool_] | None = None,
) -> ode.Trajectories:
    """Solve one experiment at rows of parameters: what it needs for its observations, and ``more`` trajectories.

    An output must be defined where it is ``needed``, (times, outputs); left out, it must be somewhere.
    """
    model = experiment.solved.with_outputs(more)
    system = ode.compile_system(model, model.parameters)
    columns = [list(parameters).index(name) for name in model.parameters]
    constants = np.array([float(value) for value in model.constants.values()])
    arguments = np.hstack([theta[:, columns], np.tile(constants, (len(theta), 1))])
    wanted = np.zeros((len(times), len(model.outputs)), dtype=bool) if needed is None else needed
    found = ode.simulate(system, arguments, times, inputs=known_inputs(experiment), wanted=wanted, **vars(solver))
    return found if needed is not None else somewhere_defined(found)


def noise_columns(experiment: Experiment, outputs: Array) -> dict[str, Array]:
    """Noise arguments that are expressions, (draws, times), by their text."""
    columns = experiment.solved.outputs
    return {text: outputs[:, :, columns.index(text)] for text in experiment.noise_expressions}


def quantiles(rows: Array) -> Array:
    """A row for each of `LEVELS`; what is not a number is left out, and where nothing is left there is none."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanquantile(rows, LEVELS, axis=0) if np.isnan(rows).any() else np.quantile(rows, LEVELS, axis=0)


def _mean(rows: Array) -> Array:
    """As `quantiles`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(rows, axis=0))


def prediction_times(experiment: Experiment, times: Sequence[float] | Array | None, until: float | None) -> Array:
    if times is not None:
        if until is not None:
            raise DataError("give either `times` or `until`, not both")
        grid = np.unique(np.asarray(times, float))
        check_times(grid, experiment)
        return grid
    if until is None:
        if not experiment.size:
            raise DataError("there are no data, so the prediction times must be given (`times` or `until`)")
        until = BEYOND * max(0.0, float(experiment.times()[-1])) or 1.0  # data at time 0 alone
    if isinstance(until, bool) or not np.isfinite(until) or until <= 0:
        raise DataError(f"the last prediction time (`until`) must be a positive number, not {until!r}")
    first = min(0.0, *experiment.times()[:1]) if experiment.size else 0.0  # before an onset times may be negative
    return _around_events(np.linspace(first, until, CURVE), experiment.model)


def _around_events(grid: Array, model: Model) -> Array:
    """The grid with times just before, after, and soon after events at known times, so that a curve shows its peaks."""
    lowered = without_conditions(model)
    constants = {name: float(value) for name, value in model.constants.items()}
    known = [event.time for event in lowered.jumps if set(names(event.time)) <= set(constants)]
    times = np.unique([float(evaluate(time, constants, float, call_on_arrays)) for time in known])
    times = times[(times >= grid[0]) & (times < grid[-1])]
    if not 0 < times.size <= MOST_EVENTS:
        return grid
    step = grid[1] - grid[0]
    around = times[:, None] + step * np.array([0.0, 1e-6, 0.1, 0.2, 0.4, 0.7])
    return np.unique(np.concatenate([grid, around[around <= grid[-1]]]))


def _refuse_too_many(lanes: int, times: int, experiment: Experiment) -> None:
    model = experiment.model
    width = len(model.states) + len(model.outputs) + len(model.trajectories)
    if lanes * times * width > MAX_CELLS:
        raise DataError(
            f"{lanes:,} draws at {times:,} times are more than can be held at once; ask for fewer times or draws"
        )


def _seen(
    entry: Observations,
    curve: Array,
    computed: Mapping[str, Array],
    problem: Problem,
    theta: Array,
    rng: np.random.Generator,
) -> Array:
    """New observations along a curve: around it, or around what it gains from one time to the next."""
    if not entry.increment:
        return _scattered(entry, curve, computed, problem, theta, rng)
    made = np.full(curve.shape, np.nan)
    later = {text: values[:, 1:] for text, values in computed.items()}
    made[:, 1:] = _scattered(entry, np.diff(curve, axis=1), later, problem, theta, rng)
    return made


def _scattered(
    entry: Observations,
    mean: Array,
    computed: Mapping[str, Array],
    problem: Problem,
    theta: Array,
    rng: np.random.Generator,
) -> Array:
    """New observations around the output, each row with its own noise parameters, before any is censored."""
    values = dict(zip(problem.parameters, theta.T[..., None], strict=True))
    return entry.noise.simulate(mean, values | dict(computed), rng)
