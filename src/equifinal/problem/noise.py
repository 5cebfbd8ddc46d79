"""How observations scatter around the model's output: five families, compiled likelihoods, and simulation.

With m the model's output and y an observation,

    normal             y ~ N(m, s^2),            s^2 = sd^2 + (relative m)^2
    student-t          y ~ m + s t_df,           s^2 = scale^2 + (relative m)^2
    lognormal          log y ~ N(log m, sdlog^2)
    poisson            y ~ Poisson(m)
    negative-binomial  y has mean m and variance m + overdispersion m^2

Every argument is a number or the name of a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.language.parser import is_name
from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

NORMAL, STUDENT, LOGNORMAL, POISSON, NEGATIVE_BINOMIAL = range(5)
# what each argument is to the compiled functions: additive scale, relative scale, shape
SLOTS = {"sd": 0, "scale": 0, "sdlog": 0, "relative": 1, "df": 2, "overdispersion": 2}


@dataclass(frozen=True)
class Family:
    code: int
    arguments: tuple[str, ...]
    required: tuple[tuple[str, ...], ...]  # of each group at least one must be given


FAMILIES: dict[str, Family] = {
    "normal": Family(NORMAL, ("sd", "relative"), (("sd", "relative"),)),
    "student-t": Family(STUDENT, ("df", "scale", "relative"), (("df",), ("scale", "relative"))),
    "lognormal": Family(LOGNORMAL, ("sdlog",), (("sdlog",),)),
    "poisson": Family(POISSON, (), ()),
    "negative-binomial": Family(NEGATIVE_BINOMIAL, ("overdispersion",), (("overdispersion",),)),
}
ALIASES = {
    "gaussian": "normal",
    "student_t": "student-t",
    "t": "student-t",
    "negative_binomial": "negative-binomial",
}
COUNTS = (POISSON, NEGATIVE_BINOMIAL)
LARGE = 1e5
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
ROUNDING = 1e-14  # of the terms that cancel in the density of a count


@dataclass(frozen=True, init=False)
class Noise:
    """A noise family with its arguments: ``Noise("normal", sd=5)`` or ``Noise("normal", sd="sigma")``.

    Every argument is a positive number or the name of a parameter.
    """

    family: str
    arguments: Mapping[str, float | str]

    def __init__(self, family: str, /, **arguments: float | str):
        name = ALIASES.get(family, family)
        if name not in FAMILIES:
            hint = did_you_mean(str(family), FAMILIES)
            raise DataError(f"unknown noise family '{family}'{hint} (known: {', '.join(FAMILIES)})")
        rules = FAMILIES[name]
        for argument, value in arguments.items():
            if argument not in rules.arguments:
                hint = did_you_mean(argument, rules.arguments)
                takes = ", ".join(rules.arguments) or "no arguments"
                raise DataError(f"{name} noise has no argument '{argument}'{hint} (it takes: {takes})")
            if isinstance(value, str):
                usable = is_name(value)
            else:
                usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e300
            if not usable:
                raise DataError(
                    f"{name} noise: '{argument}' must be a positive number or the name of a parameter, not {value!r}"
                )
        for group in rules.required:
            if not any(argument in arguments for argument in group):
                raise DataError(f"{name} noise needs {' or '.join(repr(a) for a in group)}")
        object.__setattr__(self, "family", name)
        object.__setattr__(self, "arguments", {k: v if isinstance(v, str) else float(v) for k, v in arguments.items()})

    @property
    def code(self) -> int:
        return FAMILIES[self.family].code

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments that are estimated."""
        return tuple(value for value in self.arguments.values() if isinstance(value, str))

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name} = {value if isinstance(value, str) else format(value, 'g')}"
            for name, value in self.arguments.items()
        )
        return f"{self.family}({shown})" if shown else self.family

    def check_values(self, values: Array, output: str) -> None:
        """Refuse observations that the family gives no probability to."""
        seen = values[~np.isnan(values)]
        if self.code in COUNTS and ((seen < 0) | (seen != np.round(seen))).any():
            bad = seen[(seen < 0) | (seen != np.round(seen))][0]
            raise DataError(f"output '{output}' has {self.family} noise, so its data must be counts; found {bad:g}")
        if self.code == LOGNORMAL and (seen <= 0).any():
            raise DataError(
                f"output '{output}' has lognormal noise, so its data must be positive; found {seen[seen <= 0][0]:g}"
            )


# --- compiled ---


@compiled
def log_density(code: int, y: float, m: float, additive: float, relative: float, shape: float) -> float:
    """log p(y | m) of one observation; minus infinity where the family is not defined."""
    log_y, log_m = _logs(code, y, m)
    return _log_density(code, y, log_y, m, log_m, additive, relative, shape)


@compiled
def _logs(code: int, y: float, m: float) -> tuple[float, float]:
    """What a density needs that does not depend on its arguments: log y or log y!, and log m."""
    if code <= STUDENT or not m > 0.0:
        return 0.0, 0.0
    return math.log(y) if code == LOGNORMAL else math.lgamma(y + 1.0), math.log(m)


@compiled
def _log_density(
    code: int, y: float, log_y: float, m: float, log_m: float, additive: float, relative: float, shape: float
) -> float:
    if not math.isfinite(m):
        return -np.inf
    if code <= STUDENT:
        s = math.sqrt(additive * additive + relative * relative * m * m)
        if not (s > 0.0 and additive >= 0.0 and relative >= 0.0 and math.isfinite(s)):
            return -np.inf
        z = (y - m) / s
        if code == NORMAL:
            return -0.5 * z * z - math.log(s) - HALF_LOG_2_PI
        if not shape > 0.0:
            return -np.inf
        if shape > LARGE:  # the difference of lgamma would lose all digits
            constant = -HALF_LOG_2_PI - 0.25 / shape
        else:
            constant = math.lgamma(0.5 * (shape + 1.0)) - math.lgamma(0.5 * shape) - 0.5 * math.log(shape * math.pi)
        return constant - math.log(s) - 0.5 * (shape + 1.0) * math.log1p(z * z / shape)
    if code == LOGNORMAL:
        if not (m > 0.0 and additive > 0.0):
            return -np.inf
        z = (log_y - log_m) / additive
        return -0.5 * z * z - math.log(additive) - log_y - HALF_LOG_2_PI
    if not m > 0.0:
        # an expected count of zero allows only zero; rounding in the solver may put it just below
        return 0.0 if y == 0.0 and m > -1e-6 else -np.inf
    if code == POISSON:
        return y * log_m - m - log_y
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
def log_likelihood(
    outputs: NDArray[np.float64],
    theta: Array,
    y: Array,
    where: Indices,
    codes: Indices,
    slots: Indices,
    fixed: Array,
    pointwise: Array,
) -> Array:
    """The log likelihood of each row of theta.

    Parameters
    ----------
    outputs
        (lanes, times, outputs), from the solver.
    theta
        (rows, parameters): one row for each lane, or several that have its outputs in common.
    y, where, codes, slots, fixed
        A row an observation: its value; its output, time and previous time (-1: not an increment); its family; and
        for each of three arguments the parameter it is (-1: the number in ``fixed``).
    pointwise
        (rows, observations) to be filled, or of size zero.
    """
    rows = theta.shape[0]
    each = rows // max(1, outputs.shape[0])
    total = np.zeros(rows)
    keep = pointwise.size > 0
    arguments, ends = np.zeros(3), _ends(codes, slots, fixed)
    for lane in range(outputs.shape[0]):
        first, last = lane * each, (lane + 1) * each
        j = 0
        while j < y.size:
            code, end = codes[j], ends[j]
            if not keep and end > j + 1 and (code == LOGNORMAL or _is_plain(code, slots[j], fixed[j])):
                # the sum of squares is all that these families need
                squares, log_y = 0.0, 0.0
                for i in range(j, end):
                    m = _seen(outputs, lane, where[i])
                    if code == NORMAL:
                        squares += (y[i] - m) ** 2
                    else:
                        own = math.log(y[i])
                        squares += (own - math.log(m)) ** 2 if m > 0.0 else np.inf
                        log_y += own
                length = math.sqrt(squares)
                for i in range(first, last):
                    s = theta[i, slots[j, 0]] if slots[j, 0] >= 0 else fixed[j, 0]
                    if length < np.inf and 0.0 < s < np.inf:
                        total[i] -= 0.5 * (length / s) ** 2 + (end - j) * (math.log(s) + HALF_LOG_2_PI) + log_y
                    else:
                        total[i] = -np.inf
                j = end
                continue
            m = _seen(outputs, lane, where[j])
            log_y, log_m = _logs(code, y[j], m)
            for i in range(first, last):
                for k in range(3):
                    arguments[k] = theta[i, slots[j, k]] if slots[j, k] >= 0 else fixed[j, k]
                value = _log_density(code, y[j], log_y, m, log_m, arguments[0], arguments[1], arguments[2])
                total[i] += value
                if keep:
                    pointwise[i, j] = value
            j += 1
    return total


@compiled
def _seen(outputs, lane, where):
    """The output that an observation sees, or its increment."""
    m = outputs[lane, where[1], where[0]]
    return m - outputs[lane, where[2], where[0]] if where[2] >= 0 else m


@compiled
def _is_plain(code, slots, fixed):
    """Whether this is normal noise of one scale."""
    return code == NORMAL and slots[1] < 0 and fixed[1] == 0.0


@compiled
def _ends(codes, slots, fixed):
    """Find, for each observation, where the stretch of those with the same noise ends."""
    n = codes.size
    ends = np.empty(n, np.int64)
    for j in range(n - 1, -1, -1):
        same = j + 1 < n and codes[j] == codes[j + 1]
        for k in range(3):
            same = same and slots[j, k] == slots[j + 1, k] and fixed[j, k] == fixed[j + 1, k]
        ends[j] = ends[j + 1] if same else j + 1
    return ends


@compiled
def log_density_bound(code: int, y: float, additive: float, relative: float, shape: float) -> float:
    """An upper bound of log p(y | m) over all m, which is at m = y where there is no relative part."""
    if code <= LOGNORMAL:
        if code <= STUDENT and relative > 0.0 and not additive * additive > 0.0:
            return np.inf  # the scale goes to zero with m
        # s is never below its additive part, so leaving the relative one out gives a bound, if not the least
        return log_density(code, y, y, additive, 0.0, shape)
    if not y > 0.0:
        return 0.0
    slack = abs(math.log(y)) + 1.0
    if code == NEGATIVE_BINOMIAL:
        slack += math.log1p(abs(shape) * y)
    return log_density(code, y, y, 0.0, 0.0, shape) + ROUNDING * y * slack


@compiled
def log_likelihood_bound(theta: Array, y: Array, codes: Indices, slots: Indices, fixed: Array) -> Array:
    """What the log likelihood of each lane cannot exceed, whatever the outputs are; arguments as `log_likelihood`."""
    lanes = theta.shape[0]
    total = np.zeros(lanes)
    arguments = np.zeros(3)
    for i in range(lanes):
        for j in range(y.size):
            for k in range(3):
                arguments[k] = theta[i, slots[j, k]] if slots[j, k] >= 0 else fixed[j, k]
            total[i] += log_density_bound(codes[j], y[j], arguments[0], arguments[1], arguments[2])
    return total


def simulate_observation(
    code: int, m: Array, additive: Array, relative: Array, shape: Array, rng: np.random.Generator
) -> Array:
    """Draw observations around outputs m; NaN where the family is not defined there."""
    m = np.asarray(m, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        if code in (NORMAL, STUDENT):
            s = np.sqrt(additive**2 + (relative * m) ** 2)
            z = rng.standard_normal(m.shape) if code == NORMAL else rng.standard_t(shape, m.shape)
            return m + s * z
        if code == LOGNORMAL:
            return np.exp(np.log(m) + additive * rng.standard_normal(m.shape))
        usable = np.isfinite(m) & (m > -1e-6)
        mean = np.where(usable, np.clip(m, 0.0, 1e15), 0.0)
        if code == NEGATIVE_BINOMIAL:
            mean = rng.gamma(1.0 / np.asarray(shape), np.asarray(shape) * mean)
            mean = np.clip(np.nan_to_num(mean), 0.0, 1e15)  # what a Poisson law can be asked for
        return np.where(usable, rng.poisson(mean).astype(float), np.nan)
