"""Experiments: a model under certain conditions, and what was observed of it, when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.language.model import Model
from equifinal.problem.noise import Noise

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
        Numbers; times may repeat (replicates), NaN is missing.
    noise
        How values scatter around the output.
    increment
        Whether a value is what was added to the output since the previous row (the first: since time 0), as
        surveillance counts new cases.

    Attributes
    ----------
    times, values
        In order of time, missing values left out.
    previous
        For an increment, the time since when each value counts; else NaN.
    """

    output: str
    times: Array
    values: Array
    previous: Array
    noise: Noise
    increment: bool

    def __init__(
        self,
        output: str,
        times: Sequence[float] | Array,
        values: Sequence[float] | Array,
        noise: Noise,
        *,
        increment: bool = False,
    ):
        t, y = _column(times, f"times of '{output}'"), _column(values, f"values of '{output}'")
        if t.shape != y.shape:
            raise DataError(f"output '{output}' has {t.size} times but {y.size} values")
        if not np.isfinite(t).all():
            raise DataError(f"output '{output}': every time must be a finite number")
        if increment and (t < 0).any():
            raise DataError(f"output '{output}' is an increment, which counts from time 0; found time {t.min():g}")
        if np.isinf(y).any():
            raise DataError(f"output '{output}' has an infinite value at time {t[np.isinf(y)][0]:g}")
        if increment and not np.isnan(y[t == 0]).all():
            raise DataError(
                f"output '{output}' is an increment, so it cannot have a value at time 0, when nothing has accumulated"
            )
        noise.check_values(y, output)
        order = np.argsort(t, kind="stable")
        t, y = t[order], y[order]
        previous = np.full(t.size, np.nan)
        if increment:
            distinct = np.unique(t)
            previous = np.concatenate([[0.0], distinct[:-1]])[np.searchsorted(distinct, t)]
        seen = ~np.isnan(y)
        fields = {"output": output, "times": t[seen], "values": y[seen], "previous": previous[seen]}
        for key, value in (fields | {"noise": noise, "increment": increment}).items():
            object.__setattr__(self, key, value)

    def with_values(self, values: Array) -> Observations:
        """The same times, noise and, for increments, previous times, with other values."""
        found = copy(self)
        self.noise.check_values(values, self.output)
        object.__setattr__(found, "values", np.array(values, float))
        return found


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

    @property
    def noise_parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p for entry in self.observations for p in entry.noise.parameters))

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


def unknowns(experiments: Iterable[Experiment]) -> tuple[str, ...]:
    """Every unknown of the experiments together: model parameters first, then noise parameters."""
    experiments = tuple(experiments)
    model = dict.fromkeys(p for e in experiments for p in e.model.parameters)
    noise = dict.fromkeys(p for e in experiments for p in e.noise_parameters)
    return tuple(model | noise)
