"""Counts: what the records of Poisson and negative binomial noise call, for numbers and for limits.

Below a limit of 50 is a count of 49 or less, above a limit of 1000 one of 1001 or more. With k the last count of the
lower part and variance m + a m^2,

    d P(Y <= k)/dm = -(1 + a k)/(1 + a m) P(Y = k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.problem.noise_laws import LARGE, beta_fraction, beyond, log_complement

Array = NDArray[np.float64]
Arguments = tuple[float, float, float]

ALMOST_ZERO = 1e-6  # below zero, where rounding in the solver may put a count
ROUNDING = 1e-14  # of the terms that cancel in the density of a count
SMALL = 1e-17  # a term that adds nothing
STEP = 1e-4  # relative, for slopes by overdispersion


@compiled
def log_factorial(y: float) -> float:
    return math.lgamma(y + 1.0)


@compiled
def _none_expected(y: float, m: float) -> float:
    """An expected count of zero allows only zero; what cannot be expected allows nothing."""
    return 0.0 if y == 0.0 and -ALMOST_ZERO < m <= 0.0 else -np.inf


@compiled
def _log_count(y: float, log_y: float, m: float, log_m: float, a: float) -> float:
    """The log probability of a count y, with log y! and log m; Poisson for a = 0."""
    if not 0.0 < m < np.inf:
        return _none_expected(y, m)
    k = 1.0 / a if a > 0.0 else np.inf
    if not math.isfinite(k):
        return y * log_m - m - log_y
    if k > LARGE:  # Stirling's series for lgamma(y + k) - lgamma(k) - y log(k), which goes over into Poisson
        growth = (k + y - 0.5) * math.log1p(y / k) - y + (1.0 / (k + y) - 1.0 / k) / 12.0
    else:
        growth = math.lgamma(y + k) - math.lgamma(k) - y * math.log(k)
    return growth - log_y + y * log_m - (y + k) * math.log1p(a * m)


@compiled
def _last_below(limit: float, side: int) -> float:
    """The last count of the lower part: what is below a limit is less, what is above it is more."""
    return math.ceil(limit) - 1.0 if side < 0 else math.floor(limit)


@compiled
def _log_tail(last: float, side: int, m: float, a: float) -> float:
    """log P(Y <= last) or, for side 1, log P(Y > last); from the smaller of the two, which loses no digits."""
    if last < 0.0 or not 0.0 < m < np.inf:
        possible = -ALMOST_ZERO < m < np.inf and (last < 0.0) == (side > 0)
        return 0.0 if possible else -np.inf
    if a * last > 1.0:
        log_p, lower = _log_tail_by_fraction(last, m, a)
    else:
        log_p, lower = _log_tail_by_sum(last, m, a)
    log_p = min(log_p, 0.0)
    return log_p if lower == (side < 0) else log_complement(log_p)


@compiled
def _log_tail_by_sum(last: float, m: float, a: float) -> tuple[float, bool]:
    """Add up the lower tail, if that is said, or the upper one, from its largest term on: about sqrt(last) terms."""
    total, term = 1.0, 1.0
    lower = last < m
    y = last if lower else last + 1.0
    log_first = _log_count(y, log_factorial(y), m, math.log(m), a)
    while y > 0.0 and term > SMALL * total:
        if lower:
            term *= y * (1.0 + a * m) / (m * (1.0 + a * (y - 1.0)))
            y -= 1.0
        else:
            term *= m * (1.0 + a * y) / ((y + 1.0) * (1.0 + a * m))
            y += 1.0
        total += term
    return log_first + math.log(total), lower


@compiled
def _log_tail_by_fraction(last: float, m: float, a: float) -> tuple[float, bool]:
    """The incomplete beta function: P(Y <= k) = I_p(1/a, k + 1), p = 1/(1 + a m); for a that is not small."""
    k, others = 1.0 / a, a * m / (1.0 + a * m)
    log_first = _log_count(last, log_factorial(last), m, math.log(m), a) + math.log(others * (1.0 + a * last))
    if 1.0 - others < (k + 1.0) / (k + last + 3.0):
        return log_first + math.log(beta_fraction(k, last + 1.0, 1.0 - others)), True
    return log_first + math.log(k / (last + 1.0) * beta_fraction(last + 1.0, k, others)), False


@compiled
def _count_slopes(y: float, side: int, m: float, a: float) -> tuple[float, float]:
    """d log p/dm and the information on m; nothing where m is no expected count."""
    if not 0.0 < m < np.inf:
        return 0.0, 0.0
    growth = 1.0 + a * m
    most = 1.0 / (m * growth)
    if side == 0:
        return (y - m) * most, most
    last = _last_below(y, side)
    if last < 0.0:
        return 0.0, 0.0
    # dP(Y <= k)/dm = -(1 + a k)/(1 + a m) P(Y = k)
    log_f = _log_count(last, log_factorial(last), m, math.log(m), a) + math.log((1.0 + a * last) / growth)
    hazard = math.exp(log_f - _log_tail(last, side, m, a))
    found = beyond(-side, hazard, side * ((last - m) * most - a / growth), most)
    return found.slope, found.location


# --- what the records call ---


@compiled
def poisson(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    return _log_count(y, log_y, m, log_m, 0.0)


@compiled
def poisson_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    return _log_tail(_last_below(y, side), side, m, 0.0)


@compiled
def poisson_expansion(
    y: float,
    log_y: float,
    side: int,
    m: float,
    log_m: float,
    a: Arguments,
    width: int,
    score: Array,
    information: Array,
) -> bool:
    score[:], information[:] = 0.0, 0.0
    score[0], information[0, 0] = _count_slopes(y, side, m, 0.0)
    return 0.0 < m < np.inf


@compiled
def poisson_bound(y: float, log_y: float, a: Arguments) -> float:
    if not y > 0.0:
        return 0.0
    return poisson(y, log_y, y, math.log(y), a) + ROUNDING * y * (abs(math.log(y)) + 1.0)


def simulate_poisson(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    usable, mean = _expected(m)
    return np.where(usable, rng.poisson(mean).astype(float), np.nan)


def _expected(m: Array) -> tuple[NDArray[np.bool_], Array]:
    """Where m can be an expected count, and a count that a Poisson law can be asked for."""
    usable = np.isfinite(m) & (m > -ALMOST_ZERO)
    return usable, np.where(usable, np.clip(m, 0.0, 1e15), 0.0)


@compiled
def negative_binomial(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    if not 0.0 < m < np.inf:
        return _none_expected(y, m)
    return _log_count(y, log_y, m, log_m, a[0]) if 0.0 < a[0] < np.inf else -np.inf


@compiled
def negative_binomial_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    usable = 0.0 < a[0] < np.inf or not 0.0 < m < np.inf
    return _log_tail(_last_below(y, side), side, m, a[0]) if usable else -np.inf


@compiled
def negative_binomial_expansion(
    y: float,
    log_y: float,
    side: int,
    m: float,
    log_m: float,
    a: Arguments,
    width: int,
    score: Array,
    information: Array,
) -> bool:
    if not (0.0 < m < np.inf and 0.0 < a[0] < np.inf):
        return False
    score[:], information[:] = 0.0, 0.0
    score[0], information[0, 0] = _count_slopes(y, side, m, a[0])
    if width == 1:
        return True
    above, below = a[0] * (1.0 + STEP), a[0] * (1.0 - STEP)
    if side == 0:
        change = _log_count(y, log_y, m, log_m, above) - _log_count(y, log_y, m, log_m, below)
    else:
        last = _last_below(y, side)
        change = _log_tail(last, side, m, above) - _log_tail(last, side, m, below)
    score[1] = change / (2.0 * STEP * a[0])
    information[1, 1] = score[1] * score[1]
    return True


@compiled
def negative_binomial_bound(y: float, log_y: float, a: Arguments) -> float:
    if not y > 0.0:
        return 0.0
    slack = abs(math.log(y)) + 1.0 + math.log1p(abs(a[0]) * y)
    return negative_binomial(y, log_y, y, math.log(y), a) + ROUNDING * y * slack


def simulate_negative_binomial(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    usable, mean = _expected(m)
    shape = np.where(a[0] > 0, a[0], 1.0)
    mean = np.clip(np.nan_to_num(rng.gamma(1.0 / shape, shape * mean)), 0.0, 1e15)
    return np.where(usable & (a[0] > 0), rng.poisson(mean).astype(float), np.nan)
