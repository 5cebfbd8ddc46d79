"""Experiments: a model under certain conditions, and what was observed of it, when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.language.expression import TIME, Expression, names
from equifinal.language.model import Model
from equifinal.problem.noise import Noise, Sides, is_declared, text_of
from equifinal.problem.noise import censored as censored_at

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth value
class InputSeries:
    """A known input given at knots: ``linear`` between them or a ``step`` at each; held outside them."""

    times: Array
    values: Array
    interpolation: str = "linear"

    def __post_init__(self) -> None:
        times, values = _column(self.times, "times"), _column(self.values, "values")
        if times.size == 0 or times.shape != values.shape:
            raise DataError(
                f"an input needs as many values as times, and at least one; there are {values.size} and {times.size}"
            )
        if not (np.isfinite(times).all() and np.isfinite(values).all()):
            raise DataError("an input's times and values must be finite")
        if (np.diff(times) <= 0).any():
            raise DataError("an input's times must increase")
        if self.interpolation not in ("linear", "step"):
            hint = did_you_mean(str(self.interpolation), ("linear", "step"))
            raise DataError(f"interpolation must be 'linear' or 'step', not '{self.interpolation}'{hint}")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, eq=False, init=False)
class Observations:
    """What was observed of one output.

    Parameters
    ----------
    output
        Its name.
    times, values
        Numbers; times may repeat (replicates), NaN is missing. The text ``"<50"`` is a value of which no more is known
        than that it is less than 50, ``">1000"`` one that is more than 1000: censored.
    noise
        How values scatter around the output. Where its arguments or limits are by row, they are those of these rows.
    increment
        Whether a value is what was added to the output since the previous row (the first: since time 0), as
        surveillance counts new cases.
    censored
        Instead of text, for each row whether its value is a limit below (-1) or above (1) which it lies, or not (0).
    limits
        ``below`` and ``above`` of each row, where they are not those of the noise.

    Attributes
    ----------
    times, values
        In order of time, missing values left out. A value that is beyond a limit of the noise is the limit.
    censored
        Whether the value is a limit: -1, 0 or 1.
    below, above
        The limits of each row, infinite where there is none: those of the noise, unless the row has one of its own.
    previous
        For an increment, the time since when each value counts; else NaN.
    """

    output: str
    times: Array
    values: Array
    censored: Sides
    below: Array
    above: Array
    previous: Array
    noise: Noise
    increment: bool

    def __init__(
        self,
        output: str,
        times: Sequence[float] | Array,
        values: Sequence[float | str] | Array,
        noise: Noise,
        *,
        increment: bool = False,
        censored: Sequence[int] | Sides | None = None,
        limits: Mapping[str, Sequence[float]] | None = None,
    ):
        t = _column(times, f"times of '{output}'")
        y, sides = _readings(values, f"values of '{output}'", censored)
        if t.shape != y.shape:
            raise DataError(f"output '{output}' has {t.size} times but {y.size} values")
        if np.isnan(t).any() or (t == -np.inf).any():  # infinity is the steady state that is reached in the end
            raise DataError(f"output '{output}': every time must be a number, or infinity for the steady state")
        if increment and (t < 0).any():
            raise DataError(f"output '{output}' is an increment, which counts from time 0; found time {t.min():g}")
        if np.isinf(y).any():
            raise DataError(f"output '{output}' has an infinite value at time {t[np.isinf(y)][0]:g}")
        if increment and not np.isnan(y[t == 0]).all():
            raise DataError(
                f"output '{output}' is an increment, so it cannot have a value at time 0, when nothing has accumulated"
            )
        order = np.argsort(t, kind="stable")
        t, y, sides = t[order], y[order], sides[order]
        previous = np.full(t.size, np.nan)
        if increment:
            distinct = np.unique(t)
            previous = np.concatenate([[0.0], distinct[:-1]])[np.searchsorted(distinct, t)]
        seen = ~np.isnan(y)
        y, sides = y[seen], sides[seen]
        noise = noise.at_rows(order[seen], t.size, output)
        given = {key: np.asarray(getattr(noise, key)) for key in ("below", "above")}
        if limits is not None:
            given = {key: _column(column, f"limits of '{output}'")[order][seen] for key, column in limits.items()}
        below, above = np.where(sides < 0, y, given["below"]), np.where(sides > 0, y, given["above"])
        if not (below < above).all():
            raise DataError(f"output '{output}' has a row in which 'below' is not less than 'above'")
        fields = {"output": output, "times": t[seen], "previous": previous[seen], "noise": noise}
        for key, value in (fields | {"increment": increment, "below": below, "above": above}).items():
            object.__setattr__(self, key, value)
        self._set(np.where(sides < 0, -np.inf, np.where(sides > 0, np.inf, y)))

    def with_values(self, values: Array) -> Observations:
        """The same times, noise and, for increments, previous times, with other values, censored at the same limits."""
        found = copy(self)
        found._set(np.array(values, float))
        return found

    def _set(self, values: Array) -> None:
        found, sides = censored_at(values, self.below, self.above)
        self.noise.check_values(np.concatenate([found, self.above]), self.output, self.below)
        object.__setattr__(self, "values", found)
        object.__setattr__(self, "censored", sides)


SIDES = {"<": -1, ">": 1}


def reading(text: str) -> tuple[float, int]:
    """A number or limit as text, ``"<50"``, and its side; a `ValueError` for anything else."""
    side = SIDES.get(text.strip()[:1], 0)
    try:
        number = float(text.strip()[1:] if side else text)
    except ValueError:
        raise ValueError(text) from None
    if "_" in text or not np.isfinite(number):
        raise ValueError(text)
    return number, side


def _readings(values: Any, what: str, sides: Any) -> tuple[Array, Sides]:
    """Values and their sides."""
    if sides is not None:
        column = _column(values, what)
        given = np.asarray(sides, dtype=np.int8)
        if given.shape != column.shape or not np.isin(given, (-1, 0, 1)).all():
            raise DataError(f"{what}: 'censored' must be -1, 0 or 1 for each of them")
        return column, given
    texts = not isinstance(values, np.ndarray) and isinstance(values, Sequence)
    if not texts or not any(isinstance(v, str) for v in values):
        column = _column(values, what)
        return column, np.zeros(column.shape, np.int8)
    try:
        pairs = [reading(v) if isinstance(v, str) else (v, 0) for v in values]
    except ValueError as error:
        raise DataError(f"{what} must be numbers, or limits such as '<50'; found '{error}'") from None
    return _column([v for v, _ in pairs], what), np.array([side for _, side in pairs], np.int8)


def _column(values: Any, what: str) -> Array:
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} must be numbers") from None
    if column.ndim != 1:
        raise DataError(f"{what} must be a flat list of numbers")
    return column


@dataclass(frozen=True, eq=False)
class Experiment:
    """A model with its own constants and initial values, its inputs, and what was observed.

    Attributes
    ----------
    model
        As it holds in this experiment (see `Model.vary`).
    observations
        At most one entry per output; one without values only says how the output scatters.
    inputs
        A series for every input of the model; empty for an analysis without data.
    """

    model: Model
    observations: tuple[Observations, ...] = ()
    inputs: Mapping[str, InputSeries] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for entry in self.observations:
            if entry.output not in self.model.outputs:
                hint = did_you_mean(entry.output, self.model.outputs)
                raise DataError(f"{self._where}observations of '{entry.output}', which is not an output{hint}")
            if entry.output in seen:
                raise DataError(
                    f"{self._where}output '{entry.output}' has two sets of observations; merge them into one"
                )
            seen.add(entry.output)
            if entry.times.size and entry.times[0] < 0 and self.model.onset is None:
                raise DataError(
                    f"{self._where}output '{entry.output}' is observed at time {entry.times[0]:g}; the model starts at "
                    "time 0, unless an onset is given (start)"
                )
        object.__setattr__(self, "observations", tuple(map(self._resolved, self.observations)))
        for name in self.inputs:
            if name not in self.model.inputs:
                raise DataError(
                    f"{self._where}'{name}' is not an input of the model{did_you_mean(name, self.model.inputs)}"
                )
        missing = [name for name in self.model.inputs if name not in self.inputs]
        if self.size and missing:
            raise DataError(f"{self._where}input '{missing[0]}' has no values; give them under [inputs]")

    @property
    def _where(self) -> str:
        return f"experiment '{self.name}': " if self.name else ""

    def _resolved(self, entry: Observations) -> Observations:
        try:
            noise = entry.noise.about(entry.output, self.model, entry.increment)
        except DataError as error:
            raise DataError(f"{self._where}output '{entry.output}': {error}") from None
        if noise is entry.noise:
            return entry
        found = copy(entry)
        object.__setattr__(found, "noise", noise)
        return found

    @cached_property
    def noise_expressions(self) -> Mapping[str, Expression]:
        """Noise arguments that are expressions, by their text."""
        return {text_of(e): e for entry in self.observations for e in entry.noise.expressions}

    @cached_property
    def noise_parameters(self) -> tuple[str, ...]:
        """Parameters that the noise names, in expressions or by themselves."""
        alone = [p for entry in self.observations for p in entry.noise.parameters]
        within = [n for e in self.noise_expressions.values() for n in names(e) if not is_declared(n, self.model)]
        return tuple(dict.fromkeys([*alone, *within]))

    @cached_property
    def solved(self) -> Model:
        """The model with all that the solver computes, outputs first and then noise arguments that are expressions."""
        return _observing(self.model, self.noise_expressions)

    @cached_property
    def analysed(self) -> Model:
        """The model with all that the likelihood sees, besides the noise's own parameters.

        Those are noise arguments in which there is something of the model other than outputs, inputs, constants,
        parameters and time: a state that nobody measures, say, which the scatter of the data betrays.
        """
        known = {TIME, *self.model.outputs, *self.model.inputs, *self.model.constants}
        hidden = {
            text: e
            for text, e in self.noise_expressions.items()
            if any(is_declared(n, self.model) and n not in known for n in names(e))
        }
        return _observing(self.model, hidden)

    @property
    def size(self) -> int:
        """Number of observations."""
        return sum(entry.values.size for entry in self.observations)

    def times(self) -> Array:
        """Every time at which something was observed, in order."""
        return np.unique(np.concatenate([np.zeros(0), *(entry.times for entry in self.observations)]))

    def grid(self) -> Array:
        """Every time at which some output is needed, in order; an increment needs two."""
        wanted = [t for entry in self.observations for t in (entry.times, entry.previous[~np.isnan(entry.previous)])]
        return np.unique(np.concatenate(wanted)) if wanted else np.zeros(0)

    def needed(self) -> NDArray[np.bool_]:
        """Which outputs of `solved` the data need at which times of `grid`, (times, outputs).

        Elsewhere an output may be undefined, as a share of nothing is.
        """
        times, outputs = self.grid(), self.solved.outputs
        found = np.zeros((times.size, len(outputs)), dtype=bool)
        for entry in self.observations:
            rows = np.isin(times, np.concatenate([entry.times, entry.previous[~np.isnan(entry.previous)]]))
            for name in (entry.output, *map(text_of, entry.noise.expressions)):
                found[rows, outputs.index(name)] = True
        return found


def _observing(model: Model, more: Mapping[str, Expression]) -> Model:
    """The model with further outputs, each defined by an expression that is its name."""
    new = {text: e for text, e in more.items() if text not in model.outputs}
    if not new:
        return model
    defined = {text: e for text, e in new.items() if not is_declared(text, model)}
    unknown = [n for e in new.values() for n in names(e) if not is_declared(n, model)]
    return replace(
        model,
        parameters=tuple(dict.fromkeys([*model.parameters, *unknown])),
        definitions={**model.definitions, **defined},
        outputs=(*model.outputs, *new),
    )


def unknowns(experiments: Iterable[Experiment]) -> tuple[str, ...]:
    """Every unknown of the experiments together: model parameters first, then noise parameters."""
    experiments = tuple(experiments)
    model = dict.fromkeys(p for e in experiments for p in e.model.parameters)
    noise = dict.fromkeys(p for e in experiments for p in e.noise_parameters)
    return tuple(model | noise)
