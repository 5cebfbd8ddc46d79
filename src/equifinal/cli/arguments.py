"""Arguments that are more than a word or a number: parameter values, times, names of samplers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.problem.problem import Problem

MAX_TIMES = 1_000_000


def read_values(problem: Problem, given: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Read values from ``name=value`` texts; others are nominal or prior medians, also returned by themselves."""
    values: dict[str, float] = {}
    for text in given:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not equals:
            raise DataError(f"--at {text}: expected name=value")
        if name not in problem.parameters:
            hint = did_you_mean(name, problem.parameters)
            known = ", ".join(problem.parameters)
            raise DataError(f"--at {text}: '{name}' is not a parameter{hint} (parameters: {known})")
        try:
            values[name] = float(number)
        except ValueError:
            raise DataError(f"--at {text}: '{number}' is not a number") from None
    open_names = [name for name in problem.parameters if name not in values]
    without = [name for name in open_names if name not in problem.priors and name not in problem.nominal]
    if without:
        raise DataError(f"{', '.join(without)}: neither a value nor a prior is given; add --at {without[0]}=VALUE")
    assumed = {
        name: float(problem.nominal[name] if name in problem.nominal else problem.priors[name].quantile(0.5))
        for name in open_names
    }
    return {name: (values | assumed)[name] for name in problem.parameters}, assumed


def read_times(text: str) -> np.ndarray | None:
    """Read times from ``1,2,5`` or ``start:stop:step``; an empty text gives None."""
    if not text.strip():
        return None
    try:
        if ":" in text:
            start, stop, step = (float(part) for part in text.split(":"))
            count = (stop - start) / step
            if not (step > 0 and count >= 0):
                raise ValueError
            if count > MAX_TIMES:
                raise DataError(f"--times {text}: these are {count:.0f} times, but at most {MAX_TIMES} are allowed")
            return start + step * np.arange(math.floor(count + 1e-9) + 1)
        return np.array([float(part) for part in text.split(",")])
    except (ValueError, ZeroDivisionError, OverflowError):
        raise DataError(f"--times {text}: expected times such as 1,2,5 or start:stop:step such as 0:10:0.5") from None


def read_names(text: str) -> list[str]:
    """Read names from ``a,b,c``."""
    return [name.strip() for name in text.split(",") if name.strip()]
