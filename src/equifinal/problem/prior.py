"""Priors by name, and the monotone maps from parameters to the coordinates that samplers move in.

A prior is a family with its arguments, from `prior_families`, on an interval. A parameter theta is sampled as
u = t(theta), one of

    identity  u = theta            log    u = log(theta - a)
    mirrored  u = log(b - theta)   logit  u = log((theta - a) / (b - theta))

and the density of u is p(theta) |dtheta/du|.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.machine.compiled import compiled
from equifinal.problem.families import Untruncated, family_name
from equifinal.problem.prior_families import (
    FAMILIES,
    KERNELS,
    LAPLACE,
    LOGUNIFORM,
    NORMAL,
    STUDENT,
    UNIFORM,
    log_kernel,
)

Array = NDArray[np.float64]

IDENTITY, LOG, MIRRORED, LOGIT = range(4)
_INF = math.inf
COORDINATES = ("log", "logit", "identity")


@dataclass(frozen=True, init=False)
class Prior:
    """A proper one-dimensional prior by name: ``Prior("normal", mean=1, sd=0.5, lower=0)``.

    Parameters
    ----------
    family
        ``uniform``, ``loguniform`` (both on lower, upper), ``normal`` (mean, sd), ``halfnormal`` (sd), ``lognormal``
        (meanlog, sdlog), ``gamma`` (shape, rate), ``exponential`` (rate), ``chi-squared`` (df), ``rayleigh`` (scale),
        ``laplace`` (location, scale), ``loglaplace`` (location and scale of the logarithm), ``beta`` (a, b),
        ``student-t`` (df, location, scale), ``cauchy`` (location, scale) or ``halfcauchy`` (scale).
    lower, upper
        Bounds; any prior may be truncated to them.
    coordinate
        ``log``, ``logit`` or ``identity``: what samplers move in. By default logit on a bounded interval, log on a
        half-line, identity on the whole line. It changes how fast a sampler is, never the posterior.
    """

    family: str
    arguments: Mapping[str, float]
    lower: float
    upper: float
    coordinate: str

    def __init__(
        self,
        family: str,
        /,
        *,
        lower: float | None = None,
        upper: float | None = None,
        coordinate: str | None = None,
        **arguments: float,
    ):
        name = family_name(family, FAMILIES, "prior")
        record = FAMILIES[name]
        record.check_names(f"prior '{name}'", arguments, also=("lower", "upper", "coordinate"))
        numbers = {rule.name: _number(arguments[rule.name], rule.name, name) for rule in record.arguments}
        for rule in record.arguments:
            if rule.positive and numbers[rule.name] <= 0:
                raise DataError(f"prior '{name}': '{rule.name}' must be positive, not {numbers[rule.name]:g}")
        low, high = record.support
        if record.needs_bounds and (lower is None or upper is None):
            raise DataError(f"prior '{name}' needs finite bounds: give both 'lower' and 'upper'")
        if lower is not None:
            low = max(low, _number(lower, "lower", name))
        if upper is not None:
            high = min(high, _number(upper, "upper", name))
        if not low < high:
            raise DataError(f"prior '{name}': 'lower' ({low:g}) must be below 'upper' ({high:g})")
        if name == "loguniform" and low <= 0:
            raise DataError("prior 'loguniform': 'lower' must be positive")
        fields = {"family": name, "arguments": numbers, "lower": low, "upper": high}
        for field, value in (fields | {"coordinate": _coordinate(coordinate, low, high, name)}).items():
            object.__setattr__(self, field, value)
        if not math.isfinite(self.log_normaliser):
            raise DataError(f"prior '{self}' has no mass between its bounds")

    def __str__(self) -> str:
        shown = [f"{name} = {value:g}" for name, value in self.arguments.items()]
        natural = FAMILIES[self.family].support
        bounded = (self.lower, self.upper) != natural
        interval = f" on ({self.lower:g}, {self.upper:g})" if bounded else ""
        return f"{self.family}{'(' + ', '.join(shown) + ')' if shown else ''}{interval}"

    @cached_property
    def _kernel(self) -> tuple[int, float, float, float]:
        family = FAMILIES[self.family]
        a, b, c = (*family.kernel_arguments(self.arguments), 0.0, 0.0, 0.0)[:3]
        return family.kernel, a, b, c

    @cached_property
    def _untruncated(self) -> Untruncated:
        kernel, a, b, c = self._kernel
        return KERNELS[kernel].untruncated(a, b, c, self.lower, self.upper)

    @cached_property
    def _tail(self) -> tuple[bool, float, float]:
        """Probabilities at the bounds, from whichever end keeps them precise: (from above?, at lower, at upper)."""
        dist = self._untruncated
        from_above = bool(dist.cdf(self.lower) > 0.5)
        measure = dist.sf if from_above else dist.cdf
        return from_above, float(measure(self.lower)), float(measure(self.upper))

    @cached_property
    def log_normaliser(self) -> float:
        """log of the integral of the kernel over (lower, upper)."""
        _, at_lower, at_upper = self._tail
        mass = abs(at_upper - at_lower)
        return self._untruncated.log_integral + math.log(mass) if mass > 0 else -_INF

    def quantile(self, q: Any) -> Array:
        """The value below which a share ``q`` of the prior lies."""
        from_above, at_lower, at_upper = self._tail
        tail = at_lower + np.asarray(q, float) * (at_upper - at_lower)
        found = self._untruncated.isf(tail) if from_above else self._untruncated.ppf(tail)
        # a border has no mass, and a density may be infinite there
        return np.clip(found, np.nextafter(self.lower, _INF), np.nextafter(self.upper, -_INF))

    def cdf(self, x: Any) -> Array:
        from_above, at_lower, at_upper = self._tail
        measure = self._untruncated.sf if from_above else self._untruncated.cdf
        inside = np.clip(np.asarray(x, float), self.lower, self.upper)
        return (measure(inside) - at_lower) / (at_upper - at_lower)

    def mass(self, lower: Any, upper: Any) -> Array:
        """The probability of intervals inside the support, precise in the tails too."""
        _, at_lower, at_upper = self._tail
        return np.abs(np.subtract(*self._ends(lower, upper)[1:])) / abs(at_upper - at_lower)

    def between(self, lower: Any, upper: Any, share: Any) -> Array:
        """The value below which a share of the prior lies once it is truncated to (lower, upper)."""
        from_above, at_lower, at_upper = self._ends(lower, upper)
        tail = at_lower + np.asarray(share, float) * (at_upper - at_lower)
        found = np.where(from_above, self._untruncated.isf(tail), self._untruncated.ppf(tail))
        return np.clip(found, np.nextafter(lower, _INF), np.nextafter(upper, -_INF))

    def _ends(self, lower: Any, upper: Any) -> tuple[NDArray[np.bool_], Array, Array]:
        """Give the probability below each end of an interval, or above it for intervals in the upper half."""
        dist, lower, upper = self._untruncated, np.asarray(lower, float), np.asarray(upper, float)
        from_above = dist.cdf(lower) > 0.5
        return from_above, *(np.where(from_above, dist.sf(x), dist.cdf(x)) for x in (lower, upper))

    def __reduce__(self) -> tuple[Any, ...]:  # what is cached holds functions, which do not travel
        bounds = {"lower": self.lower, "upper": self.upper}
        finite = {name: value for name, value in bounds.items() if math.isfinite(value)}
        return partial(Prior, self.family, coordinate=self.coordinate, **finite, **self.arguments), ()

    def log_density(self, x: Any) -> Array:
        values = np.ascontiguousarray(x, float).reshape(-1, 1)
        return log_prior(values, prior_table([self])).reshape(np.shape(x))

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        return self.quantile(rng.random(size))

    def row(self) -> tuple[float, ...]:
        """What the compiled functions need: kernel, three arguments, normaliser, bounds, coordinate and its bounds."""
        return (*self._kernel, self.log_normaliser, self.lower, self.upper, *self._map)

    @property
    def _map(self) -> tuple[int, float, float]:
        if self.coordinate == "identity":
            return IDENTITY, 0.0, 0.0
        if self.coordinate == "logit":
            return LOGIT, self.lower, self.upper
        if math.isfinite(self.upper) and not math.isfinite(self.lower):
            return MIRRORED, 0.0, self.upper
        # on a bounded interval "log" is the logarithm itself, and the bounds cut it
        return LOG, 0.0 if math.isfinite(self.upper) else self.lower, 0.0


def _number(value: Any, argument: str, name: str) -> float:
    usable = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    try:
        number = float(value) if usable else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DataError(f"prior '{name}': '{argument}' must be a finite number, not {_short(value)}")
    return number


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else text[:40] + "..."


def _coordinate(asked: str | None, lower: float, upper: float, name: str) -> str:
    bounds = math.isfinite(lower) + math.isfinite(upper)
    if asked is None:
        return ("identity", "log", "logit")[bounds]
    if asked not in COORDINATES:
        raise DataError(
            f"unknown coordinate '{asked}'{did_you_mean(str(asked), COORDINATES)} (known: {', '.join(COORDINATES)})"
        )
    if asked == "logit" and bounds < 2:
        raise DataError(f"prior '{name}': coordinate 'logit' needs finite bounds")
    if asked == "log" and (bounds == 0 or (bounds == 2 and lower < 0)):
        raise DataError(f"prior '{name}': coordinate 'log' needs a parameter that is positive")
    return asked


# --- compiled, for all parameters of a batch at once ---


def prior_table(priors: Iterable[Prior]) -> Array:
    """Tabulate priors, one row for each parameter, for the functions below."""
    return np.array([p.row() for p in priors], dtype=np.float64)


@compiled
def log_prior(theta: Array, table: Array) -> Array:
    """log p(theta) for each row of theta; minus infinity outside the support."""
    total = np.zeros(theta.shape[0])
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            x, lower, upper = theta[i, j], table[j, 5], table[j, 6]
            kernel = int(table[j, 0])
            # a density may be infinite on its border, which has no mass
            regular = kernel in (UNIFORM, LOGUNIFORM, NORMAL, STUDENT, LAPLACE)
            on_border = not regular and x in (lower, upper)
            if not (lower <= x <= upper) or on_border or not math.isfinite(x):
                total[i] = -np.inf
                break
            total[i] += log_kernel(kernel, table[j, 1], table[j, 2], table[j, 3], x) - table[j, 4]
    return total


@compiled
def from_coordinate(v: float, kind: int, a: float, b: float) -> tuple[float, float]:
    """One parameter at coordinate v, and log |dtheta/dv|; the slope is negative for `MIRRORED` alone."""
    if not math.isfinite(v):
        return np.nan, -np.inf
    if kind == IDENTITY:
        return v, 0.0
    if kind == LOG:
        return a + math.exp(v), v
    if kind == MIRRORED:
        return b - math.exp(v), v
    shrunk = math.exp(-abs(v))
    share = 1.0 / (1.0 + shrunk)
    return a + (b - a) * (share if v >= 0 else shrunk * share), math.log(b - a) - abs(v) + 2.0 * math.log(share)


@compiled
def to_theta(u: Array, table: Array) -> tuple[Array, Array]:
    """theta = t^-1(u) for each row, and log |dtheta/du|."""
    theta = np.empty_like(u)
    log_jacobian = np.zeros(u.shape[0])
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            theta[i, j], slope = from_coordinate(u[i, j], int(table[j, 7]), table[j, 8], table[j, 9])
            log_jacobian[i] += slope
    return theta, log_jacobian


@compiled
def from_theta(theta: Array, table: Array) -> Array:
    """u = t(theta) for each row."""
    u = np.empty_like(theta)
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            x, kind, a, b = theta[i, j], int(table[j, 7]), table[j, 8], table[j, 9]
            if kind == IDENTITY:
                u[i, j] = x
            elif kind == LOG:
                u[i, j] = math.log(x - a)
            elif kind == MIRRORED:
                u[i, j] = math.log(b - x)
            else:
                u[i, j] = math.log((x - a) / (b - x))
    return u
