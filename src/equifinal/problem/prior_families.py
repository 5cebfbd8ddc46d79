"""The families of priors: a record each, made of ten kernels with a record each.

Half-normal, half-Cauchy, exponential and every truncated prior are a kernel with other numbers: three arguments at the
most, a normalising constant and an interval. Special functions are used rather than scipy.stats, whose import takes
longer than many a fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import by_code, compiled
from equifinal.problem.families import Argument, Kernel, PriorFamily, Untruncated

Array = NDArray[np.float64]

UNIFORM, LOGUNIFORM, NORMAL, LOGNORMAL, GAMMA, BETA, STUDENT, LAPLACE, LOGLAPLACE, RAYLEIGH = range(10)
_INF = math.inf
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@compiled
def _uniform(a: float, b: float, c: float, x: float) -> float:
    return 0.0


def _uniform_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    width = upper - lower
    return Untruncated(
        lambda x: (np.asarray(x) - lower) / width,
        lambda x: (upper - np.asarray(x)) / width,
        lambda q: lower + width * q,
        lambda q: upper - width * q,
        math.log(width),
    )


@compiled
def _loguniform(a: float, b: float, c: float, x: float) -> float:
    return -math.log(x)


def _loguniform_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    decades = math.log(upper / lower)
    return Untruncated(
        lambda x: np.log(np.asarray(x) / lower) / decades,
        lambda x: np.log(upper / np.asarray(x)) / decades,
        lambda q: lower * np.exp(decades * q),
        lambda q: upper * np.exp(-decades * q),
        math.log(decades),
    )


@compiled
def _normal(a: float, b: float, c: float, x: float) -> float:
    return -0.5 * ((x - a) / b) ** 2


def _normal_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    from scipy import special

    return Untruncated(
        lambda x: special.ndtr((x - a) / b),
        lambda x: special.ndtr((a - x) / b),
        lambda q: a + b * special.ndtri(q),
        lambda q: a - b * special.ndtri(q),
        math.log(b) + _HALF_LOG_2_PI,
    )


@compiled
def _lognormal(a: float, b: float, c: float, x: float) -> float:
    return -math.log(x) - 0.5 * ((math.log(x) - a) / b) ** 2


def _lognormal_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    from scipy import special

    return Untruncated(
        lambda x: special.ndtr((_log(x) - a) / b),
        lambda x: special.ndtr((a - _log(x)) / b),
        lambda q: np.exp(a + b * special.ndtri(q)),
        lambda q: np.exp(a - b * special.ndtri(q)),
        math.log(b) + _HALF_LOG_2_PI,
    )


def _log(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(x)


@compiled
def _gamma(a: float, b: float, c: float, x: float) -> float:
    return (a - 1.0) * math.log(x) - b * x


def _gamma_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    from scipy import special

    return Untruncated(
        lambda x: special.gammainc(a, b * x),
        lambda x: special.gammaincc(a, b * x),
        lambda q: special.gammaincinv(a, q) / b,
        lambda q: special.gammainccinv(a, q) / b,
        math.lgamma(a) - a * math.log(b),
    )


@compiled
def _beta(a: float, b: float, c: float, x: float) -> float:
    return (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x)


def _beta_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    from scipy import special

    return Untruncated(
        lambda x: special.betainc(a, b, x),
        lambda x: special.betaincc(a, b, x),
        lambda q: special.betaincinv(a, b, q),
        lambda q: special.betainccinv(a, b, q),
        float(special.betaln(a, b)),
    )


@compiled
def _student(a: float, b: float, c: float, x: float) -> float:
    return -0.5 * (c + 1.0) * math.log1p(((x - a) / b) ** 2 / c)


def _student_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    from scipy import special

    return Untruncated(
        lambda x: _student_cdf((x - a) / b, c),
        lambda x: _student_cdf((a - x) / b, c),
        lambda q: a + b * _student_quantile(q, c),
        lambda q: a - b * _student_quantile(q, c),
        float(special.betaln(0.5 * c, 0.5)) + 0.5 * math.log(c) + math.log(b),
    )


def _student_cdf(t: Any, df: float) -> Array:
    """Near the centre SciPy's own loses eight digits, all there are of a narrow interval."""
    from scipy import special

    t = np.asarray(t, float)
    with np.errstate(invalid="ignore", over="ignore"):
        half = 0.5 * special.betainc(0.5, 0.5 * df, t * t / (df + t * t))
        return np.where(t * t < df, 0.5 + np.copysign(half, t), special.stdtr(df, t))


def _student_quantile(q: Any, df: float) -> Array:
    from scipy import special

    q = np.asarray(q, float)
    y = special.betaincinv(0.5, 0.5 * df, np.minimum(2.0 * np.abs(q - 0.5), 0.5))
    central = np.copysign(np.sqrt(df * y / (1.0 - y)), q - 0.5)
    return np.where(np.abs(q - 0.5) < 0.25, central, special.stdtrit(df, q))


@compiled
def _laplace(a: float, b: float, c: float, x: float) -> float:
    return -abs(x - a) / b


def _laplace_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    return Untruncated(
        lambda x: _laplace_cdf((x - a) / b),
        lambda x: _laplace_cdf((a - x) / b),
        lambda q: a + b * _laplace_quantile(q),
        lambda q: a - b * _laplace_quantile(q),
        math.log(2.0 * b),
    )


def _laplace_cdf(z: Any) -> Array:
    half = 0.5 * np.exp(-np.abs(z))
    return np.where(np.asarray(z) < 0, half, 1.0 - half)


def _laplace_quantile(q: Any) -> Array:
    tail = _log(2.0 * np.minimum(q, 1.0 - np.asarray(q, float)))
    return np.where(np.asarray(q) < 0.5, tail, -tail)


@compiled
def _loglaplace(a: float, b: float, c: float, x: float) -> float:
    return -math.log(x) - abs(math.log(x) - a) / b


def _loglaplace_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    return Untruncated(
        lambda x: _laplace_cdf((_log(x) - a) / b),
        lambda x: _laplace_cdf((a - _log(x)) / b),
        lambda q: np.exp(a + b * _laplace_quantile(q)),
        lambda q: np.exp(a - b * _laplace_quantile(q)),
        math.log(2.0 * b),
    )


@compiled
def _rayleigh(a: float, b: float, c: float, x: float) -> float:
    return math.log(x) - 0.5 * (x / a) ** 2


def _rayleigh_law(a: float, b: float, c: float, lower: float, upper: float) -> Untruncated:
    return Untruncated(
        lambda x: -np.expm1(-0.5 * (np.asarray(x) / a) ** 2),
        lambda x: np.exp(-0.5 * (np.asarray(x) / a) ** 2),
        lambda q: a * np.sqrt(-2.0 * np.log1p(-np.asarray(q))),
        lambda q: a * np.sqrt(-2.0 * _log(q)),
        2.0 * math.log(a),
    )


KERNELS = {
    UNIFORM: Kernel(_uniform, _uniform_law),
    LOGUNIFORM: Kernel(_loguniform, _loguniform_law),
    NORMAL: Kernel(_normal, _normal_law),
    LOGNORMAL: Kernel(_lognormal, _lognormal_law),
    GAMMA: Kernel(_gamma, _gamma_law),
    BETA: Kernel(_beta, _beta_law),
    STUDENT: Kernel(_student, _student_law),
    LAPLACE: Kernel(_laplace, _laplace_law),
    LOGLAPLACE: Kernel(_loglaplace, _loglaplace_law),
    RAYLEIGH: Kernel(_rayleigh, _rayleigh_law),
}

# for compiled loops: the unnormalised log density by a kernel's code, its arguments, and x
log_kernel: Callable[..., Any] = by_code([kernel.log_density for kernel in KERNELS.values()])


_LOCATION, _SCALE = Argument("location", positive=False), Argument("scale")
_POSITIVE = (0.0, _INF)

FAMILIES: dict[str, PriorFamily] = {
    "uniform": PriorFamily(kernel=UNIFORM, needs_bounds=True),
    "loguniform": PriorFamily(kernel=LOGUNIFORM, support=_POSITIVE, needs_bounds=True),
    "normal": PriorFamily(kernel=NORMAL, arguments=(Argument("mean", positive=False), Argument("sd"))),
    "halfnormal": PriorFamily(
        kernel=NORMAL, arguments=(Argument("sd"),), kernel_arguments=lambda a: (0.0, a["sd"]), support=_POSITIVE
    ),
    "lognormal": PriorFamily(
        kernel=LOGNORMAL, arguments=(Argument("meanlog", positive=False), Argument("sdlog")), support=_POSITIVE
    ),
    "gamma": PriorFamily(kernel=GAMMA, arguments=(Argument("shape"), Argument("rate")), support=_POSITIVE),
    "exponential": PriorFamily(
        kernel=GAMMA, arguments=(Argument("rate"),), kernel_arguments=lambda a: (1.0, a["rate"]), support=_POSITIVE
    ),
    "chi-squared": PriorFamily(
        kernel=GAMMA,
        arguments=(Argument("df"),),
        kernel_arguments=lambda a: (0.5 * a["df"], 0.5),
        support=_POSITIVE,
        aliases=("chi_squared", "chisquared", "chi2"),
    ),
    "rayleigh": PriorFamily(kernel=RAYLEIGH, arguments=(_SCALE,), support=_POSITIVE),
    "laplace": PriorFamily(kernel=LAPLACE, arguments=(_LOCATION, _SCALE)),
    "loglaplace": PriorFamily(
        kernel=LOGLAPLACE, arguments=(_LOCATION, _SCALE), support=_POSITIVE, aliases=("log-laplace", "log_laplace")
    ),
    "beta": PriorFamily(kernel=BETA, arguments=(Argument("a"), Argument("b")), support=(0.0, 1.0)),
    "student-t": PriorFamily(
        kernel=STUDENT,
        arguments=(Argument("df"), _LOCATION, _SCALE),
        kernel_arguments=lambda a: (a["location"], a["scale"], a["df"]),
        aliases=("student_t", "student", "t"),
    ),
    "cauchy": PriorFamily(
        kernel=STUDENT, arguments=(_LOCATION, _SCALE), kernel_arguments=lambda a: (a["location"], a["scale"], 1.0)
    ),
    "halfcauchy": PriorFamily(
        kernel=STUDENT, arguments=(_SCALE,), kernel_arguments=lambda a: (0.0, a["scale"], 1.0), support=_POSITIVE
    ),
}
