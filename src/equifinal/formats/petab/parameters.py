"""The parameter table, of either version: what is estimated, nominal values, bounds and priors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from equifinal.errors import DataError, did_you_mean
from equifinal.formats.petab.tables import Row
from equifinal.problem.prior import Prior

LOG10 = math.log(10)
SCALES = ("lin", "log", "log10")


@dataclass(frozen=True)
class Parameter:
    """A row: an unknown with its prior, or a known number; `nominal` is None where none is given."""

    identifier: str
    nominal: float | None
    prior: Prior | None
    lower: float = -math.inf


# families of priors by the names of each version: how many numbers they take, and the prior that these give
_Made = dict[str, Any]
_Maker = Callable[..., _Made]
_LAPLACE: _Maker = lambda m, s: {"family": "laplace", "location": m, "scale": s}  # noqa: E731
_LOG_LAPLACE: _Maker = lambda m, s: {"family": "log-laplace", "location": m, "scale": s}  # noqa: E731
_NORMAL: _Maker = lambda m, s: {"family": "normal", "mean": m, "sd": s}  # noqa: E731
_LOG_NORMAL: _Maker = lambda m, s: {"family": "lognormal", "meanlog": m, "sdlog": s}  # noqa: E731
_UNIFORM: _Maker = lambda a, b: {"family": "uniform", "lower": a, "upper": b}  # noqa: E731
_LOG_UNIFORM: _Maker = lambda a, b: {"family": "loguniform", "lower": a, "upper": b}  # noqa: E731
FAMILIES: dict[str, tuple[int, _Maker]] = {
    "cauchy": (2, lambda m, s: {"family": "cauchy", "location": m, "scale": s}),
    "chisquare": (1, lambda df: {"family": "gamma", "shape": df / 2, "rate": 0.5}),
    "exponential": (1, lambda scale: {"family": "exponential", "rate": 1 / scale}),
    "gamma": (2, lambda shape, scale: {"family": "gamma", "shape": shape, "rate": 1 / scale}),
    "laplace": (2, _LAPLACE),
    "log-laplace": (2, _LOG_LAPLACE),
    "log-normal": (2, _LOG_NORMAL),
    "log-uniform": (2, _LOG_UNIFORM),
    "normal": (2, _NORMAL),
    "rayleigh": (1, lambda scale: {"family": "rayleigh", "scale": scale}),
    "uniform": (2, _UNIFORM),
}
FAMILIES_1: dict[str, tuple[int, _Maker]] = {
    "uniform": (2, _UNIFORM),
    "normal": (2, _NORMAL),
    "laplace": (2, _LAPLACE),
    "logNormal": (2, _LOG_NORMAL),
    "logLaplace": (2, _LOG_LAPLACE),
}
# on the scale of the parameter: of theta itself, of its natural, or of its decimal logarithm
ON_SCALE: dict[str, tuple[_Maker, _Maker]] = {
    "parameterScaleUniform": (_UNIFORM, lambda a, b: _LOG_UNIFORM(math.exp(a), math.exp(b))),
    "parameterScaleNormal": (_NORMAL, _LOG_NORMAL),
    "parameterScaleLaplace": (_LAPLACE, _LOG_LAPLACE),
}


def read_parameters(rows: Iterable[Row], *, version: int) -> dict[str, Parameter]:
    """Every parameter by its identifier.

    Raises
    ------
    DataError
        Naming file, row and column.
    """
    found: dict[str, Parameter] = {}
    for row in rows:
        identifier = row.identifier("parameterId")
        if identifier in found:
            raise DataError(f"{row.place}: parameter '{identifier}' appears twice")
        try:
            found[identifier] = _parameter(row, identifier, version)
        except DataError as error:
            known = str(error).startswith(row.file)
            raise error if known else DataError(f"{row.place}, parameter '{identifier}': {error}") from None
        except (ArithmeticError, ValueError):
            raise DataError(f"{row.place}, parameter '{identifier}': its prior has impossible arguments") from None
    return found


def _parameter(row: Row, identifier: str, version: int) -> Parameter:
    nominal = row.finite("nominalValue") if row.text("nominalValue") else None
    if not _is_estimated(row, version):
        if nominal is None:
            raise DataError(f"{row.place}: parameter '{identifier}' is not estimated and needs a nominalValue")
        return Parameter(identifier, nominal, None, nominal)
    lower, upper = (row.number(column) if row.text(column) else None for column in ("lowerBound", "upperBound"))
    if lower is None or upper is None:
        raise DataError(f"{row.place}: parameter '{identifier}' is estimated and needs lowerBound and upperBound")
    if not lower < upper:
        raise DataError(f"{row.place}: lowerBound ({lower:g}) must be below upperBound ({upper:g})")
    made = _prior_1(row, lower, upper) if version == 1 else _prior_2(row, lower, upper)
    bounds = {"lower": max(lower, made.pop("lower", -math.inf)), "upper": min(upper, made.pop("upper", math.inf))}
    finite = {name: value for name, value in bounds.items() if math.isfinite(value)}
    return Parameter(identifier, nominal, Prior(made.pop("family"), **finite, **made), bounds["lower"])


def _is_estimated(row: Row, version: int) -> bool:
    if version == 1:
        value = row.number("estimate")
        if value not in (0, 1):
            raise DataError(f"{row.place}, column 'estimate': expected 0 or 1, not {value:g}")
        return value == 1
    return row.one_of("estimate", ("true", "false")) == "true"


def _prior_1(row: Row, lower: float, upper: float) -> _Made:
    """Version 1: without a prior a parameter is uniform on its scale, between its bounds."""
    scale = row.one_of("parameterScale", SCALES, "lin")
    kind = row.text("objectivePriorType")
    if scale != "lin" and lower <= 0 and kind in ("", "parameterScaleUniform"):
        raise DataError(f"{row.place}: on scale {scale}, lowerBound must be positive, not {lower:g}")
    numbers = _numbers(row, "objectivePriorParameters")
    if not kind or (kind in ("uniform", "parameterScaleUniform") and not numbers):
        on_log = scale != "lin" and kind != "uniform"
        return _LOG_UNIFORM(lower, upper) if on_log else _UNIFORM(lower, upper)
    if kind in ON_SCALE:
        _check_count(row, kind, numbers, 2)
        plain, of_logarithm = ON_SCALE[kind]
        if scale == "lin":
            return plain(*numbers)
        return of_logarithm(*(x * LOG10 if scale == "log10" else x for x in numbers))
    return _made(row, kind, numbers, FAMILIES_1, (*FAMILIES_1, *ON_SCALE))


def _prior_2(row: Row, lower: float, upper: float) -> _Made:
    kind = row.text("priorDistribution")
    if not kind:
        return _UNIFORM(lower, upper)
    return _made(row, kind, _numbers(row, "priorParameters"), FAMILIES, tuple(FAMILIES))


def _made(
    row: Row, kind: str, numbers: Sequence[float], families: dict[str, tuple[int, _Maker]], known: Sequence[str]
) -> _Made:
    if kind not in families:
        raise DataError(f"{row.place}: '{kind}' is not a prior{did_you_mean(kind, known)} (known: {', '.join(known)})")
    count, make = families[kind]
    _check_count(row, kind, numbers, count)
    return make(*numbers)


def _check_count(row: Row, kind: str, numbers: Sequence[float], count: int) -> None:
    if len(numbers) != count:
        raise DataError(f"{row.place}: the prior '{kind}' takes {count} parameters, not {len(numbers)}")


def _numbers(row: Row, column: str) -> list[float]:
    return [row.as_number(part, column) for part in row.listed(column)]
