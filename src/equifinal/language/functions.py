"""The functions that expressions may call, and their values for numbers and arrays.

``sqrt``, ``ln``, ``log10``, ``log2`` and ``pow`` are other ways of writing these. ``before(a)`` and ``until(a)``, which
conditions on time are read as, are 1 while t < a and t <= a, and 0 from then on; ``piecewise(v1, c1, v2, c2, ..., v)``
is the first value whose condition is not 0, or else the last. ``above(x)`` is 1 where x > 0 and 0 elsewhere, a step
that states may take at times which nobody knows before the model is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Function(NamedTuple):
    """How many arguments a function takes, at least and at most, and its value for arrays."""

    least: int
    most: int | None
    of_arrays: Callable[..., Any] | None


def _piecewise(*arguments: Any) -> Any:
    value = arguments[-1]
    for at in range(len(arguments) - 3, -1, -2):
        value = np.where(np.asarray(arguments[at + 1]) != 0, arguments[at], value)
    return value


FUNCTIONS: dict[str, Function] = {
    "exp": Function(1, 1, np.exp),
    "log": Function(1, 1, np.log),
    "sin": Function(1, 1, np.sin),
    "cos": Function(1, 1, np.cos),
    "tan": Function(1, 1, np.tan),
    "tanh": Function(1, 1, np.tanh),
    "arctan": Function(1, 1, np.arctan),
    "abs": Function(1, 1, np.abs),
    "floor": Function(1, 1, np.floor),
    "min": Function(2, None, lambda *values: np.minimum.reduce(np.broadcast_arrays(*values))),
    "max": Function(2, None, lambda *values: np.maximum.reduce(np.broadcast_arrays(*values))),
    "power": Function(2, 2, lambda base, exponent: np.power(np.asarray(base, float), exponent)),
    "above": Function(1, 1, lambda x: np.where(np.asarray(x) > 0, 1.0, 0.0)),
    "piecewise": Function(3, None, _piecewise),
    "before": Function(1, 1, None),  # of time, which numbers and arrays know nothing of
    "until": Function(1, 1, None),
}

CONDITIONS = ("before", "until")


def call_on_arrays(function: str, arguments: Sequence[Any]) -> Any:
    """The value of a function for numbers or arrays; NaN or infinity where it is not defined."""
    of_arrays = FUNCTIONS[function].of_arrays
    if of_arrays is None:
        raise ValueError(f"'{function}' is a condition on time, which has no value by itself")
    with np.errstate(all="ignore"):
        return of_arrays(*arguments)
