"""What a family of priors is, and a family of noise: the records that `prior_families` and `noise_families` fill."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, did_you_mean
from equifinal.machine.compiled import compiled

Array = NDArray[np.float64]


class Argument(NamedTuple):
    """An argument of a family, a number; without a default it must be given. Functions get it times its unit."""

    name: str
    positive: bool = True
    default: float | None = None
    unit: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Family:
    """How a family is called.

    Attributes
    ----------
    one_of
        Arguments of which at least one must be given, whatever their defaults.
    aliases
        Other names of the family.
    """

    arguments: tuple[Argument, ...] = ()
    one_of: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def check_names(self, who: str, given: Collection[str], also: Iterable[str] = ()) -> None:
        """Refuse arguments that are unknown or missing; ``also`` is what else can be given, for the advice."""
        known = [argument.name for argument in self.arguments]
        for name in given:
            if name not in known:
                takes = ", ".join([*known, *also]) or "no arguments"
                raise DataError(f"{who} has no argument '{name}'{did_you_mean(name, known)} (it takes: {takes})")
        needed = [(argument.name,) for argument in self.arguments if argument.default is None]
        for group in (*needed, self.one_of):
            if group and not any(name in given for name in group):
                raise DataError(f"{who} needs {' or '.join(repr(name) for name in group)}")


class Untruncated(NamedTuple):
    """A kernel's distribution on its whole support: probabilities below and above, their inverses, log integral."""

    cdf: Callable[[Any], Any]
    sf: Callable[[Any], Any]
    ppf: Callable[[Any], Any]
    isf: Callable[[Any], Any]
    log_integral: float


class Kernel(NamedTuple):
    """An unnormalised density.

    Attributes
    ----------
    log_density
        (a, b, c, x): its logarithm at x, a point inside the support; compiled.
    untruncated
        (a, b, c, lower, upper): its distribution; of the bounds only uniform kernels need to know.
    """

    log_density: Callable[[float, float, float, float], float]
    untruncated: Callable[[float, float, float, float, float], Untruncated]


@dataclass(frozen=True, kw_only=True)
class PriorFamily(Family):
    """A family of priors.

    Attributes
    ----------
    kernel, kernel_arguments
        What it is in terms of the kernels.
    support
        Its natural bounds.
    needs_bounds
        Whether it is a distribution only between bounds that are given.
    """

    kernel: int
    kernel_arguments: Callable[[Mapping[str, float]], tuple[float, ...]] = lambda a: tuple(a.values())
    support: tuple[float, float] = (-math.inf, math.inf)
    needs_bounds: bool = False


class Support(NamedTuple):
    """Which observations have any probability, in a word and as a test of each."""

    word: str
    allows: Callable[[Array], NDArray[np.bool_]]


NUMBERS = Support("numbers", np.isfinite)


class Sum(NamedTuple):
    """What makes observations with the same arguments quick: one sum is all that their density needs.

    Attributes
    ----------
    term
        (y, log_y, m): what is summed.
    log_density
        (sum of terms, sum of log_y, number of observations, a): of all of them together.
    holds
        (arguments given): whether this is so.
    """

    term: Callable[..., float]
    log_density: Callable[..., float]
    holds: Callable[[Mapping[str, Any]], bool] = lambda given: True


@compiled
def _nothing(x: float) -> float:
    return 0.0


@compiled
def _no_term(y: float, log_y: float, m: float) -> float:
    return np.nan


@compiled
def _no_sum(total: float, log_y: float, n: int, a: tuple[float, float, float]) -> float:
    return np.nan


NO_SUM = Sum(_no_term, _no_sum, lambda given: False)


@dataclass(frozen=True, kw_only=True)
class NoiseFamily(Family):
    """A family of noise. All functions but `simulate` are compiled; ``a`` are the arguments in order, three numbers.

    A side is -1 for an observation of which no more is known than that it lies below the limit y, 1 for one above it,
    and 0 for a number.

    Attributes
    ----------
    log_density
        (y, log_y, m, log_m, a): log p(y | m); minus infinity where the family is not defined.
    log_beyond
        (y, log_y, side, m, log_m, a): the log probability of an observation below or above the limit y.
    expansion
        (y, log_y, side, m, log_m, a, width, score, information): fills in the slopes of either by m (width 1), or by m
        and the arguments (width 4), and their expected products or a positive stand-in; whether the family is defined.
    bound
        (y, log_y, a): what log p(y | m) cannot exceed, whatever m.
    simulate
        (m, a, rng): observations around outputs m, against which a broadcasts; NaN where the family is not defined.
    of_data, of_output
        (y), (m): log_y and log_m, what a density needs of either alone, such as log y or log y!.
    support
        The observations that have any probability.
    sum
        A short cut, where there is one.
    """

    log_density: Callable[..., float]
    log_beyond: Callable[..., float]
    expansion: Callable[..., bool]
    bound: Callable[..., float]
    simulate: Callable[[Array, Sequence[Array], np.random.Generator], Array]
    of_data: Callable[[float], float] = _nothing
    of_output: Callable[[float], float] = _nothing
    support: Support = NUMBERS
    sum: Sum = NO_SUM


def family_name(name: str, families: Mapping[str, Family], what: str) -> str:
    """The name under which a family is listed."""
    for listed, family in families.items():
        if name == listed or name in family.aliases:
            return listed
    raise DataError(f"unknown {what} '{name}'{did_you_mean(str(name), families)} (known: {', '.join(families)})")
