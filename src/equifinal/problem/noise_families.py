"""The families of noise: a record each, and nothing elsewhere that knows one from another.

With m the model's output and y an observation,

    normal             y ~ N(m, s^2),            s^2 = sd^2 + (relative m)^2
    student-t          y ~ m + s t_df,           s^2 = scale^2 + (relative m)^2
    lognormal          log y ~ N(log m, sdlog^2)
    poisson            y ~ Poisson(m)
    negative-binomial  y has mean m and variance m + overdispersion m^2

A new family is a new record with its functions, which loops over observations call by the family's code, its place
in `FAMILIES`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import by_code, compiled
from equifinal.problem.families import Argument, NoiseFamily, Sum, Support

Array = NDArray[np.float64]
Arguments = tuple[float, float, float]

LARGE = 1e5
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
ROUNDING = 1e-14  # of the terms that cancel in the density of a count
ALMOST_ZERO = 1e-6  # below zero, where rounding in the solver may put a count

POSITIVE = Support("positive", lambda y: y > 0)
COUNTS = Support("counts", lambda y: (y >= 0) & (y == np.round(y)))


# --- normal and Student's t: a location and a scale, part of which may be relative ---


@compiled
def _scale(additive: float, relative: float, m: float) -> float:
    """s, or NaN where it is none."""
    s = math.sqrt(additive * additive + relative * relative * m * m)
    return s if s > 0.0 and additive >= 0.0 and relative >= 0.0 and math.isfinite(s) else np.nan


@compiled
def _normal(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[0], a[1], m)
    if not s > 0.0:
        return -np.inf
    z = (y - m) / s
    return -0.5 * z * z - math.log(s) - HALF_LOG_2_PI


@compiled
def _normal_slope(y: float, m: float, a: Arguments) -> tuple[float, float]:
    variance = a[0] * a[0] + a[1] * a[1] * m * m
    if not (variance > 0.0 and math.isfinite(m)):
        return 0.0, 0.0
    growth = a[1] * a[1] * m / variance  # d log s/dm
    return (y - m) / variance + ((y - m) ** 2 / variance - 1.0) * growth, 1.0 / variance + 2.0 * growth * growth


@compiled
def _normal_bound(y: float, log_y: float, a: Arguments) -> float:
    if a[1] > 0.0 and not a[0] * a[0] > 0.0:
        return np.inf  # the scale goes to zero with m
    # s is never below its additive part, so leaving the relative one out gives a bound, if not the least
    s = _scale(a[0], 0.0, y)
    return -math.log(s) - HALF_LOG_2_PI if s > 0.0 else -np.inf


@compiled
def _square(y: float, log_y: float, m: float) -> float:
    return (y - m) ** 2


@compiled
def _of_squares(squares: float, log_y: float, n: int, a: Arguments) -> float:
    length = math.sqrt(squares)
    if not (length < np.inf and 0.0 < a[0] < np.inf):
        return -np.inf
    return -(0.5 * (length / a[0]) ** 2 + n * (math.log(a[0]) + HALF_LOG_2_PI) + log_y)


def _simulate_normal(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return m + np.sqrt(a[0] ** 2 + (a[1] * m) ** 2) * rng.standard_normal(m.shape)


@compiled
def _student_constant(df: float) -> float:
    if df > LARGE:  # the difference of lgamma would lose all digits
        return -HALF_LOG_2_PI - 0.25 / df
    return math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)


@compiled
def _student(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    s, df = _scale(a[1], a[2], m), a[0]
    if not (s > 0.0 and df > 0.0):
        return -np.inf
    z = (y - m) / s
    return _student_constant(df) - math.log(s) - 0.5 * (df + 1.0) * math.log1p(z * z / df)


@compiled
def _student_slope(y: float, m: float, a: Arguments) -> tuple[float, float]:
    df, variance = a[0], a[1] * a[1] + a[2] * a[2] * m * m
    if not (variance > 0.0 and math.isfinite(m)):
        return 0.0, 0.0
    z2 = (y - m) ** 2 / variance
    growth = a[2] * a[2] * m / variance
    weight = (df + 1.0) / (df + z2)
    slope = weight * (y - m) / variance + (weight * z2 - 1.0) * growth
    return slope, ((df + 1.0) / variance + 2.0 * df * growth * growth) / (df + 3.0)


@compiled
def _student_bound(y: float, log_y: float, a: Arguments) -> float:
    if a[2] > 0.0 and not a[1] * a[1] > 0.0:
        return np.inf
    s = _scale(a[1], 0.0, y)
    return _student_constant(a[0]) - math.log(s) if s > 0.0 and a[0] > 0.0 else -np.inf


def _simulate_student(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return m + np.sqrt(a[1] ** 2 + (a[2] * m) ** 2) * rng.standard_t(np.broadcast_to(a[0], m.shape))


# --- lognormal ---


@compiled
def _log(y: float) -> float:
    return math.log(y) if y > 0.0 else -np.inf


@compiled
def _lognormal(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    if not (0.0 < m < np.inf and a[0] > 0.0):
        return -np.inf
    z = (log_y - log_m) / a[0]
    return -0.5 * z * z - math.log(a[0]) - log_y - HALF_LOG_2_PI


@compiled
def _lognormal_slope(y: float, m: float, a: Arguments) -> tuple[float, float]:
    if not 0.0 < m < np.inf:
        return 0.0, 0.0
    precision = 1.0 / (a[0] * a[0])
    return precision * math.log(y / m) / m, precision / (m * m)


@compiled
def _lognormal_bound(y: float, log_y: float, a: Arguments) -> float:
    return -math.log(a[0]) - log_y - HALF_LOG_2_PI if a[0] > 0.0 else -np.inf


@compiled
def _log_square(y: float, log_y: float, m: float) -> float:
    return (log_y - math.log(m)) ** 2 if m > 0.0 else np.inf


def _simulate_lognormal(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return np.exp(np.log(m) + a[0] * rng.standard_normal(m.shape))


# --- counts ---


@compiled
def _log_factorial(y: float) -> float:
    return math.lgamma(y + 1.0)


@compiled
def _none_expected(y: float, m: float) -> float:
    """An expected count of zero allows only zero; what cannot be expected allows nothing."""
    return 0.0 if y == 0.0 and -ALMOST_ZERO < m <= 0.0 else -np.inf


@compiled
def _poisson(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    if not 0.0 < m < np.inf:
        return _none_expected(y, m)
    return y * log_m - m - log_y


@compiled
def _poisson_slope(y: float, m: float, a: Arguments) -> tuple[float, float]:
    return ((y - m) / m, 1.0 / m) if 0.0 < m < np.inf else (0.0, 0.0)


@compiled
def _poisson_bound(y: float, log_y: float, a: Arguments) -> float:
    if not y > 0.0:
        return 0.0
    return _poisson(y, log_y, y, math.log(y), a) + ROUNDING * y * (abs(math.log(y)) + 1.0)


def _simulate_poisson(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    usable, mean = _expected(m)
    return np.where(usable, rng.poisson(mean).astype(float), np.nan)


def _expected(m: Array) -> tuple[NDArray[np.bool_], Array]:
    """Where m can be an expected count, and a count that a Poisson law can be asked for."""
    usable = np.isfinite(m) & (m > -ALMOST_ZERO)
    return usable, np.where(usable, np.clip(m, 0.0, 1e15), 0.0)


@compiled
def _negative_binomial(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    shape = a[0]
    if not 0.0 < m < np.inf:
        return _none_expected(y, m)
    if not (shape > 0.0 and math.isfinite(shape)):
        return -np.inf
    k = 1.0 / shape
    if k > LARGE:  # Stirling's series for lgamma(y + k) - lgamma(k) - y log(k), which goes over into Poisson
        if not math.isfinite(k):
            return y * log_m - m - log_y
        growth = (k + y - 0.5) * math.log1p(y / k) - y + (1.0 / (k + y) - 1.0 / k) / 12.0
    else:
        growth = math.lgamma(y + k) - math.lgamma(k) - y * math.log(k)
    return growth - log_y + y * log_m - (y + k) * math.log1p(shape * m)


@compiled
def _negative_binomial_slope(y: float, m: float, a: Arguments) -> tuple[float, float]:
    if not 0.0 < m < np.inf:
        return 0.0, 0.0
    variance = m * (1.0 + a[0] * m)
    return (y - m) / variance, 1.0 / variance


@compiled
def _negative_binomial_bound(y: float, log_y: float, a: Arguments) -> float:
    if not y > 0.0:
        return 0.0
    slack = abs(math.log(y)) + 1.0 + math.log1p(abs(a[0]) * y)
    return _negative_binomial(y, log_y, y, math.log(y), a) + ROUNDING * y * slack


def _simulate_negative_binomial(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    usable, mean = _expected(m)
    mean = np.clip(np.nan_to_num(rng.gamma(1.0 / a[0], a[0] * mean)), 0.0, 1e15)
    return np.where(usable, rng.poisson(mean).astype(float), np.nan)


# --- the records ---


FAMILIES: dict[str, NoiseFamily] = {
    "normal": NoiseFamily(
        arguments=(Argument("sd", default=0.0), Argument("relative", default=0.0)),
        one_of=("sd", "relative"),
        aliases=("gaussian",),
        log_density=_normal,
        slope_and_information=_normal_slope,
        bound=_normal_bound,
        simulate=_simulate_normal,
        sum=Sum(_square, _of_squares, lambda given: "relative" not in given),
    ),
    "student-t": NoiseFamily(
        arguments=(Argument("df"), Argument("scale", default=0.0), Argument("relative", default=0.0)),
        one_of=("scale", "relative"),
        aliases=("student_t", "t"),
        log_density=_student,
        slope_and_information=_student_slope,
        bound=_student_bound,
        simulate=_simulate_student,
    ),
    "lognormal": NoiseFamily(
        arguments=(Argument("sdlog"),),
        log_density=_lognormal,
        slope_and_information=_lognormal_slope,
        bound=_lognormal_bound,
        simulate=_simulate_lognormal,
        of_data=_log,
        of_output=_log,
        support=POSITIVE,
        sum=Sum(_log_square, _of_squares),
    ),
    "poisson": NoiseFamily(
        log_density=_poisson,
        slope_and_information=_poisson_slope,
        bound=_poisson_bound,
        simulate=_simulate_poisson,
        of_data=_log_factorial,
        of_output=_log,
        support=COUNTS,
    ),
    "negative-binomial": NoiseFamily(
        arguments=(Argument("overdispersion"),),
        aliases=("negative_binomial",),
        log_density=_negative_binomial,
        slope_and_information=_negative_binomial_slope,
        bound=_negative_binomial_bound,
        simulate=_simulate_negative_binomial,
        of_data=_log_factorial,
        of_output=_log,
        support=COUNTS,
    ),
}

# for compiled loops: functions of a family's code, and then as in the records
_records = tuple(FAMILIES.values())
log_density = by_code([family.log_density for family in _records])
slope_and_information = by_code([family.slope_and_information for family in _records])
bound = by_code([family.bound for family in _records])
of_output = by_code([family.of_output for family in _records])
sum_term = by_code([family.sum.term for family in _records])
sum_log_density = by_code([family.sum.log_density for family in _records])
