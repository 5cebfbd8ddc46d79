"""The laws that noise is made of: standard normal, Student's t and Laplace in z = (y - m)/s.

An observation has a side: 0 if it is a number, -1 if all that is known is that it lies below a limit, 1 above. Then its
likelihood is a probability, log F(z) or log F(-z), in which no digits are lost however far out the limit is.

What each law says of z, as `Slopes`: with psi = d log f/dz and h = f/F,

    side  0    slope psi,  information E[psi^2] on the location, E[(1 + z psi)^2] on log s;
    side -1    slope h,    information min(E[psi^2], max(h (h - psi), h^2)) on z itself,

the last being the observed information or the squared score, whichever is larger, and no more than a number would have
told: it is positive for every law, and right both for a limit that says nothing and for one that is far off.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equifinal.machine.compiled import compiled

LARGE = 1e5
ALMOST_NORMAL = 1e7  # degrees of freedom
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
LOG_2 = math.log(2.0)
FAR = -20.0  # from where on an asymptotic series has all digits


class Slopes(NamedTuple):
    """By z: the slope of the log likelihood, and the informations on location (or z) and on log s."""

    slope: float
    location: float
    scale: float


@compiled
def log_complement(log_p: float) -> float:
    """log(1 - p)."""
    if log_p > -LOG_2:
        p = -math.expm1(log_p)
        return math.log(p) if p > 0.0 else -np.inf
    return math.log1p(-math.exp(log_p))


@compiled
def beyond(side: int, hazard: float, psi: float, most: float) -> Slopes:
    """Slopes of log F; hazard and psi are those at the argument of F, which is -z above a limit."""
    information = min(most, max(hazard * (hazard - psi), hazard * hazard))
    return Slopes(hazard if side < 0 else -hazard, information, 0.0)


# --- standard normal ---


@compiled
def _mills_series(z: float) -> float:
    """-z F(z)/f(z) for z far below zero: 1 - 1/z^2 + 3/z^4 - ..."""
    total, term, step = 1.0, 1.0, 1.0 / (z * z)
    for n in range(1, 10):
        term *= -(2 * n - 1) * step
        total += term
    return total


@compiled
def normal_log_cdf(z: float) -> float:
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * ROOT_HALF))
    if z > FAR:
        return math.log(0.5 * math.erfc(-z * ROOT_HALF))
    return -0.5 * z * z - HALF_LOG_2_PI - math.log(-z) + math.log(_mills_series(z))


@compiled
def normal_slopes(z: float, side: int) -> Slopes:
    if side == 0:
        return Slopes(-z, 1.0, 2.0)
    z = z if side < 0 else -z
    if z > FAR:
        return beyond(side, math.exp(-0.5 * z * z - HALF_LOG_2_PI - normal_log_cdf(z)), -z, 1.0)
    return Slopes(math.copysign(-z / _mills_series(z), -side), 1.0, 0.0)


# --- Laplace, f(z) = exp(-|z|)/2 ---


@compiled
def laplace_log_cdf(z: float) -> float:
    return z - LOG_2 if z < 0.0 else math.log1p(-0.5 * math.exp(-z))


@compiled
def laplace_slopes(z: float, side: int) -> Slopes:
    if side == 0:
        return Slopes(0.0 if z == 0.0 else -math.copysign(1.0, z), 1.0, 1.0)
    z = z if side < 0 else -z
    hazard = 1.0 if z < 0.0 else 0.5 * math.exp(-z) / (1.0 - 0.5 * math.exp(-z))
    return beyond(side, hazard, 1.0 if z < 0.0 else -1.0, 1.0)


# --- Student's t ---


@compiled
def student_constant(df: float) -> float:
    if df > LARGE:  # the difference of lgamma would lose all digits
        return -HALF_LOG_2_PI - 0.25 / df
    return math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)


@compiled
def _log_stretch(t: float, df: float) -> float:
    """log(1 + t^2/df)."""
    u = abs(t) / math.sqrt(df)
    return math.log1p(u * u) if u < 1e100 else 2.0 * math.log(u)


@compiled
def student_log_density(t: float, df: float) -> float:
    return student_constant(df) - 0.5 * (df + 1.0) * _log_stretch(t, df)


@compiled
def beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method; for x < (a + 1)/(a + b + 2)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    found = d
    for n in range(1, 1_000_000):
        even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        found *= d * c
        odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        found *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return found


@compiled
def student_log_cdf(t: float, df: float) -> float:
    if df > ALMOST_NORMAL:  # Wallace 1959
        z = (8.0 * df + 1.0) / (8.0 * df + 3.0) * math.sqrt(df * _log_stretch(t, df))
        return normal_log_cdf(math.copysign(z, t))
    if t == 0.0:
        return -LOG_2
    return _student_log_lower(t, df) if t < 0.0 else log_complement(_student_log_lower(-t, df))


@compiled
def _student_log_lower(t: float, df: float) -> float:
    """By F(t) = -t f(t)/df times a fraction or (1 - I)/2, whichever converges, for t < 0."""
    log_f, stretch = student_log_density(t, df), math.exp(_log_stretch(t, df))
    x, a = 1.0 / stretch, 0.5 * df
    if x < (a + 1.0) / (a + 2.5):
        return math.log(-t) - math.log(df) + log_f + math.log(beta_fraction(a, 0.5, x))
    inside = -2.0 * t * math.exp(log_f) * beta_fraction(0.5, a, 1.0 - x)
    return math.log1p(-inside) - LOG_2


@compiled
def student_slopes(z: float, side: int, df: float) -> Slopes:
    most = (df + 1.0) / (df + 3.0)
    if side == 0:
        return Slopes(-(df + 1.0) * z / (df + z * z), most, 2.0 * df / (df + 3.0))
    z = z if side < 0 else -z
    hazard = math.exp(student_log_density(z, df) - student_log_cdf(z, df))
    return beyond(side, hazard, -(df + 1.0) * z / (df + z * z), most)
