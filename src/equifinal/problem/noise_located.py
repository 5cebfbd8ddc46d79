"""Families with a location and a scale: what their records call, for numbers and for limits.

All are one of the laws of `noise_laws` in z = (y - m)/s with s^2 = additive^2 + (relative m)^2, or in
z = (log y - log m)/s. With g = d log s,

    log p = log f(z) - log s (- log y),   d log p = psi dz - g,   dz = -dmu/s - z g,
    information = E[psi^2] dmu dmu^T/s^2 + E[(1 + z psi)^2] g g^T,

by m and the arguments; for a limit log p = log F(z), d log p = h dz, and the information is that on z times dz dz^T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.problem.noise_laws import (
    HALF_LOG_2_PI,
    LOG_2,
    Slopes,
    laplace_log_cdf,
    laplace_slopes,
    normal_log_cdf,
    normal_slopes,
    student_constant,
    student_log_cdf,
    student_slopes,
)

Array = NDArray[np.float64]
Arguments = tuple[float, float, float]

STEP = 1e-4  # relative, for slopes by degrees of freedom


@compiled
def _scale(additive: float, relative: float, m: float) -> float:
    """s, or NaN where it is none."""
    s = math.sqrt(additive * additive + relative * relative * m * m)
    return s if s > 0.0 and additive >= 0.0 and relative >= 0.0 and math.isfinite(s) else np.nan


@compiled
def _located(
    law: Slopes,
    side: int,
    z: float,
    s: float,
    of_location: float,
    of_scale: tuple[float, float, float, float],
    width: int,
    score: Array,
    information: Array,
) -> bool:
    """Slopes by z to slopes by m and the arguments, of log f(z) - log s or of log F(z).

    The location mu has the slope ``of_location`` by m, and log s the slopes ``of_scale`` by m and the arguments.
    """
    at_m = of_location / s
    for k in range(width):
        here = at_m if k == 0 else 0.0
        score[k] = -law.slope * (here + z * of_scale[k]) - (of_scale[k] if side == 0 else 0.0)
        for j in range(k + 1):
            there = at_m if j == 0 else 0.0
            if side == 0:
                found = law.location * here * there + law.scale * of_scale[k] * of_scale[j]
            else:
                found = law.location * (here + z * of_scale[k]) * (there + z * of_scale[j])
            information[k, j] = information[j, k] = found
    return True


@compiled
def _standard(y: float, m: float, s: float, side: int) -> float:
    """z, or for side 1 minus z."""
    return (m - y) / s if side > 0 else (y - m) / s


# --- normal ---


@compiled
def normal(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[0], a[1], m)
    if not s > 0.0:
        return -np.inf
    z = (y - m) / s
    return -0.5 * z * z - math.log(s) - HALF_LOG_2_PI


@compiled
def normal_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[0], a[1], m)
    return normal_log_cdf(_standard(y, m, s, side)) if s > 0.0 else -np.inf


@compiled
def normal_expansion(
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
    s = _scale(a[0], a[1], m)
    if not s > 0.0:
        return False
    z, square = (y - m) / s, s * s
    grows = (a[1] * a[1] * m / square, a[0] / square, a[1] * m * m / square, 0.0)
    return _located(normal_slopes(z, side), side, z, s, 1.0, grows, width, score, information)


@compiled
def normal_bound(y: float, log_y: float, a: Arguments) -> float:
    if a[1] > 0.0 and not a[0] * a[0] > 0.0:
        return np.inf  # the scale goes to zero with m
    # s is never below its additive part, so leaving the relative one out gives a bound, if not the least
    s = _scale(a[0], 0.0, y)
    return -math.log(s) - HALF_LOG_2_PI if s > 0.0 else -np.inf


@compiled
def square(y: float, log_y: float, m: float) -> float:
    return (y - m) ** 2


@compiled
def of_squares(squares: float, log_y: float, n: int, a: Arguments) -> float:
    length = math.sqrt(squares)
    if not (length < np.inf and 0.0 < a[0] < np.inf):
        return -np.inf
    return -(0.5 * (length / a[0]) ** 2 + n * (math.log(a[0]) + HALF_LOG_2_PI) + log_y)


def simulate_normal(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return m + _scales(a[0], a[1], m) * rng.standard_normal(m.shape)


def _scales(additive: Array, relative: Array, m: Array) -> Array:
    """s as in densities: NaN where an argument is negative."""
    return np.where((additive >= 0) & (relative >= 0), np.sqrt(additive**2 + (relative * m) ** 2), np.nan)


# --- Student's t ---


@compiled
def student(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    s, df = _scale(a[1], a[2], m), a[0]
    if not (s > 0.0 and df > 0.0):
        return -np.inf
    z = (y - m) / s
    return student_constant(df) - math.log(s) - 0.5 * (df + 1.0) * math.log1p(z * z / df)


@compiled
def student_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[1], a[2], m)
    return student_log_cdf(_standard(y, m, s, side), a[0]) if s > 0.0 and a[0] > 0.0 else -np.inf


@compiled
def student_expansion(
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
    s, df = _scale(a[1], a[2], m), a[0]
    if not (s > 0.0 and df > 0.0):
        return False
    z, square = (y - m) / s, s * s
    grows = (a[2] * a[2] * m / square, 0.0, a[1] / square, a[2] * m * m / square)
    _located(student_slopes(z, side, df), side, z, s, 1.0, grows, width, score, information)
    if width == 1:
        return True
    more, less = (df * (1.0 + STEP), a[1], a[2]), (df * (1.0 - STEP), a[1], a[2])
    if side == 0:
        change = student(y, log_y, m, log_m, more) - student(y, log_y, m, log_m, less)
    else:
        change = student_beyond(y, log_y, side, m, log_m, more) - student_beyond(y, log_y, side, m, log_m, less)
    score[1] = change / (2.0 * STEP * df)
    information[1, 1] = score[1] * score[1]  # its square has the right mean
    return True


@compiled
def student_bound(y: float, log_y: float, a: Arguments) -> float:
    if a[2] > 0.0 and not a[1] * a[1] > 0.0:
        return np.inf
    s = _scale(a[1], 0.0, y)
    return student_constant(a[0]) - math.log(s) if s > 0.0 and a[0] > 0.0 else -np.inf


def simulate_student(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    df = np.broadcast_to(a[0], m.shape)
    return m + _scales(a[1], a[2], m) * np.where(df > 0, rng.standard_t(np.where(df > 0, df, 1.0)), np.nan)


# --- Laplace ---


@compiled
def laplace(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[0], a[1], m)
    return -abs(y - m) / s - math.log(s) - LOG_2 if s > 0.0 else -np.inf


@compiled
def laplace_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    s = _scale(a[0], a[1], m)
    return laplace_log_cdf(_standard(y, m, s, side)) if s > 0.0 else -np.inf


@compiled
def laplace_expansion(
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
    s = _scale(a[0], a[1], m)
    if not s > 0.0:
        return False
    z, square = (y - m) / s, s * s
    grows = (a[1] * a[1] * m / square, a[0] / square, a[1] * m * m / square, 0.0)
    return _located(laplace_slopes(z, side), side, z, s, 1.0, grows, width, score, information)


@compiled
def laplace_bound(y: float, log_y: float, a: Arguments) -> float:
    if a[1] > 0.0 and not a[0] * a[0] > 0.0:
        return np.inf
    s = _scale(a[0], 0.0, y)
    return -math.log(s) - LOG_2 if s > 0.0 else -np.inf


def simulate_laplace(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return m + _scales(a[0], a[1], m) * rng.laplace(size=m.shape)


# --- the same on a logarithmic scale ---


@compiled
def log_or_none(y: float) -> float:
    return math.log(y) if y > 0.0 else -np.inf


@compiled
def _positive(m: float, s: float) -> bool:
    return 0.0 < m < np.inf and 0.0 < s < np.inf


@compiled
def lognormal(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    if not _positive(m, a[0]):
        return -np.inf
    z = (log_y - log_m) / a[0]
    return -0.5 * z * z - math.log(a[0]) - log_y - HALF_LOG_2_PI


@compiled
def _beyond_from_zero(side: int, m: float, s: float) -> float:
    """From an output of zero, or what rounding makes of one, everything lies below any limit."""
    return 0.0 if side < 0 and s > 0.0 and math.isfinite(m) else -np.inf


@compiled
def lognormal_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    if not _positive(m, a[0]):
        return _beyond_from_zero(side, m, a[0])
    return normal_log_cdf(_standard(log_y, log_m, a[0], side))


@compiled
def lognormal_expansion(
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
    if not _positive(m, a[0]):
        return False
    z, grows = (log_y - log_m) / a[0], (0.0, 1.0 / a[0], 0.0, 0.0)
    return _located(normal_slopes(z, side), side, z, a[0], 1.0 / m, grows, width, score, information)


@compiled
def lognormal_bound(y: float, log_y: float, a: Arguments) -> float:
    return -math.log(a[0]) - log_y - HALF_LOG_2_PI if a[0] > 0.0 else -np.inf


@compiled
def log_square(y: float, log_y: float, m: float) -> float:
    return (log_y - math.log(m)) ** 2 if m > 0.0 else np.inf


def simulate_lognormal(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return np.exp(np.log(m) + np.where(a[0] > 0, a[0], np.nan) * rng.standard_normal(m.shape))


@compiled
def log_laplace(y: float, log_y: float, m: float, log_m: float, a: Arguments) -> float:
    return -abs(log_y - log_m) / a[0] - math.log(a[0]) - LOG_2 - log_y if _positive(m, a[0]) else -np.inf


@compiled
def log_laplace_beyond(y: float, log_y: float, side: int, m: float, log_m: float, a: Arguments) -> float:
    if not _positive(m, a[0]):
        return _beyond_from_zero(side, m, a[0])
    return laplace_log_cdf(_standard(log_y, log_m, a[0], side))


@compiled
def log_laplace_expansion(
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
    if not _positive(m, a[0]):
        return False
    z, grows = (log_y - log_m) / a[0], (0.0, 1.0 / a[0], 0.0, 0.0)
    return _located(laplace_slopes(z, side), side, z, a[0], 1.0 / m, grows, width, score, information)


@compiled
def log_laplace_bound(y: float, log_y: float, a: Arguments) -> float:
    return -math.log(a[0]) - log_y - LOG_2 if a[0] > 0.0 else -np.inf


def simulate_log_laplace(m: Array, a: Sequence[Array], rng: np.random.Generator) -> Array:
    return np.exp(np.log(m) + np.where(a[0] > 0, a[0], np.nan) * rng.laplace(size=m.shape))
