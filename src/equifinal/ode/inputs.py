"""Known inputs u(t): doses, temperatures, interventions; piecewise linear in time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from equifinal.errors import SolverError


@dataclass(frozen=True, eq=False)
class Inputs:
    """Piecewise linear functions of time.

    On ``[breaks[k], breaks[k+1])`` the inputs are ``values[k] + slopes[k]*(t - breaks[k])``; from the last
    break on they stay at its values. They may jump at breaks, where the value is that from the right.
    Integrators step to every break and never across.

    Attributes
    ----------
    breaks
        Ascending times, the first at or before 0; shape (K,).
    values, slopes
        Shape (K, number of inputs). The last row of slopes has no effect.
    """

    breaks: np.ndarray
    values: np.ndarray
    slopes: np.ndarray

    def __post_init__(self) -> None:
        breaks = np.array(self.breaks, dtype=float)
        values, slopes = (np.array(a, dtype=float) for a in (self.values, self.slopes))
        if breaks.ndim != 1 or len(breaks) == 0 or not np.isfinite(breaks).all() or (np.diff(breaks) <= 0).any():
            raise SolverError("the breaks of inputs must be finite, ascending times, and at least one")
        if breaks[0] > 0:
            raise SolverError(f"inputs must be given from time 0 on; the first break is at {breaks[0]}")
        if values.ndim != 2 or values.shape != slopes.shape or len(values) != len(breaks):
            raise SolverError(
                "the values and slopes of inputs must have a row for each break and a column for each input"
            )
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            raise SolverError("values and slopes of inputs must be finite")
        for name, array in (("breaks", breaks), ("values", values), ("slopes", slopes)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @staticmethod
    def linear(times: ArrayLike, values: ArrayLike) -> Inputs:
        """Straight lines between points, held outside of them; values (K,) or (K, n_inputs)."""
        breaks, levels = _points(times, values)
        slopes = np.zeros_like(levels)
        slopes[:-1] = np.diff(levels, axis=0) / np.diff(breaks)[:, None]
        return _from_zero(breaks, levels, slopes)

    @staticmethod
    def step(times: ArrayLike, values: ArrayLike) -> Inputs:
        """Values held from their time to the next, the first also before; values (K,) or (K, n_inputs)."""
        breaks, levels = _points(times, values)
        return _from_zero(breaks, levels, np.zeros_like(levels))

    @cached_property
    def held_before(self) -> Inputs:
        """The same, but before the first break as they are there, and not continued along their slopes."""
        breaks = np.concatenate([self.breaks[:1] - 1.0, self.breaks])
        values = np.concatenate([self.values[:1], self.values])
        return Inputs(breaks, values, np.concatenate([np.zeros_like(self.slopes[:1]), self.slopes]))

    @cached_property
    def table(self) -> np.ndarray:
        """What the integrators read: a row for each break, its time, the values, the slopes."""
        table = np.concatenate([self.breaks[:, None], self.values, self.slopes], axis=1)
        table[-1, 1 + self.values.shape[1] :] = 0.0
        return table

    @cached_property
    def table_with_time(self) -> np.ndarray:
        """The same with time as one more input: at each break the break itself, with slope 1."""
        width, ones = self.values.shape[1], np.ones((len(self.breaks), 1))
        values, slopes = self.table[:, : 1 + width], self.table[:, 1 + width :]
        return np.concatenate([values, self.breaks[:, None], slopes, ones], axis=1)


def _points(times: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    breaks, levels = np.atleast_1d(np.array(times, dtype=float)), np.array(values, dtype=float)
    if levels.ndim < 2:
        levels = levels.reshape(-1, 1)
    if len(breaks) != len(levels):
        raise SolverError(f"inputs have {len(breaks)} times but {len(levels)} rows of values")
    if (np.diff(breaks) <= 0).any():
        raise SolverError("the times of inputs must be ascending")
    return breaks, levels


def _from_zero(breaks: np.ndarray, levels: np.ndarray, slopes: np.ndarray) -> Inputs:
    if len(breaks) and breaks[0] > 0:
        breaks = np.concatenate([[0.0], breaks])
        levels = np.concatenate([levels[:1], levels])
        slopes = np.concatenate([np.zeros_like(slopes[:1]), slopes])
    return Inputs(breaks, levels, slopes)
