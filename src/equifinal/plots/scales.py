"""Which axis is logarithmic, and how numbers are written along it: one rule for all figures.

An axis is logarithmic if everything on it is positive and

- the noise of the output, or the prior of the parameter, is given on a logarithmic scale (lognormal, ...), or
- what is shown spans more than two decades.

Numbers are written out, or as 2×10⁶; there is no factor at the end of an axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equifinal.prediction.predict import Band
from equifinal.problem.problem import Problem

DECADES = 100.0
DEEPEST = 1e-5  # of the largest value: what lies lower on a logarithmic axis is left out
TAILS = (0.02, 0.98)  # what of a distribution counts for its span
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def spans_decades(values: ArrayLike) -> bool:
    """Whether numbers are positive and span more than two decades."""
    shown = np.asarray(values, float)
    shown = shown[np.isfinite(shown)]
    return bool(shown.size and shown.min() > 0 and shown.max() / shown.min() > DECADES)


def quantity_is_logarithmic(problem: Problem, name: str, *draws: NDArray[np.float64]) -> bool:
    """Whether a parameter, quantity or combination is shown on a logarithmic axis, given its draws to be shown."""
    finite = [values[np.isfinite(values)] for values in draws]
    finite = [values for values in finite if values.size]
    if not finite or min(float(values.min()) for values in finite) <= 0:
        return False
    prior = problem.priors.get(name)
    if prior is not None and prior.family.startswith("log"):
        return True
    return any(spans_decades(np.quantile(values, TAILS)) for values in finite)


def trajectory_is_logarithmic(problem: Problem, band: Band) -> bool:
    """Whether an output, by its noise and its data, or a state, by its band, is shown on a logarithmic axis."""
    experiment = next(e for e in problem.experiments if e.name == band.experiment)
    entry = next((o for o in experiment.observations if o.output == band.name), None)
    if entry is None or not entry.values.size:
        return bool(band.quantiles.min() > 0) and spans_decades(band.quantiles[2])
    if (entry.values <= 0).any():
        return False
    return entry.noise.record.support.word == "positive" or spans_decades(entry.values)


def number_text(value: float, low: float = 1e-3, high: float = 1e5) -> str:
    """A number beside an axis: written out from ``low`` to ``high``, else as 2×10⁶."""
    value = float(f"{value:.6g}")
    if value == 0 or low <= abs(value) < high:
        text = np.format_float_positional(value, precision=6, fractional=False, trim="-")
    else:
        digits, _, power = f"{value:.5e}".partition("e")
        digits = digits.rstrip("0").rstrip(".")
        lead = {"1": "", "-1": "-"}.get(digits, f"{digits}×")
        text = f"{lead}10{str(int(power)).translate(_RAISED)}"
    return text.replace("-", "\N{MINUS SIGN}")


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, or 1 and 3 times these, or within a decade round numbers."""
    from matplotlib.ticker import MaxNLocator

    if high / low < 12:
        even = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [float(t) for t in even if low <= t <= high and t > 0]
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    for digits in ((1,), (1, 3)):
        ticks = [d * 10.0**k for k in range(first, last + 1) for d in digits]
        ticks = [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
        if len(ticks) >= 3:
            break
    return ticks[:: -(-len(ticks) // most)]


def dress(axis: Any, logarithmic: bool, low: float, high: float, most: int = 5) -> None:
    """Give an axis of matplotlib its limits, its scale and its numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axes, name = axis.axes, axis.axis_name
    if logarithmic:
        getattr(axes, f"set_{name}scale")("log")
        ticks = log_ticks(low, high, most)
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        # along one axis numbers are written in one way
        limits = (1e-1, 1e4) if ticks and (ticks[-1] >= 1e5 or ticks[0] < 1e-3) else (1e-3, 1e5)
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, *limits)))
    else:
        axis.set_major_locator(MaxNLocator(most))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    getattr(axes, f"set_{name}lim")(low, high)


def dress_to_fit(axis: Any, logarithmic: bool, most: int = 5) -> None:
    """The same with the limits that what is drawn asks for."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if not logarithmic:
        axis.set_major_locator(MaxNLocator(most))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
        return
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    low, high = getattr(axis.axes, f"get_{axis.axis_name}lim")()
    dress(axis, True, max(low, high * DEEPEST), high, most)


def reach(values: NDArray[np.float64], logarithmic: bool, room: float = 0.04) -> tuple[float, float]:
    """Limits around nearly all draws, with some room."""
    low, high = (float(q) for q in np.quantile(values, [0.0005, 0.9995]))
    if logarithmic and low > 0 and high > low:
        factor = (high / low) ** room
        return low / factor, high * factor
    if not high > low:
        width = 0.5 * max(abs(low), 1e-9)
        return low - width, high + width
    return low - room * (high - low), high + room * (high - low)
