"""How much work a search may do: counted, never timed, so that what is found does not depend on the machine.

Work is counted in steps, one of which takes somewhat less than a microsecond on an ordinary, quiet machine. Every stage
says how many steps a piece of work will take *before* it begins, from numbers of terms, points and entries alone. A
single call of flint cannot be interrupted, so what would go beyond the allowance is not begun.

A user's own time limit is something else. It ends everything, and is told.
"""

from __future__ import annotations

import time
from collections.abc import Sized
from math import comb, inf
from typing import Any

SECOND = 1.5e6  # steps that take about that long
MOST_TERMS = 300_000  # of a power


class TooLarge(Exception):
    """More work than is allowed: try another way, or say that it is too large."""


class OutOfTime(Exception):
    """The user's time limit has passed: try nothing else, and say so."""


class _Meter:
    """What a budget and all its parts have in common."""

    def __init__(self, seconds: float):
        self.spent = 0.0
        self.end = inf if seconds == inf else time.monotonic() + seconds
        self.expired = False


class Budget:
    """An allowance of steps.

    `part` gives a stage an allowance of its own inside this one, so that a costly method leaves something for another.

    Parameters
    ----------
    seconds
        The user's time limit; infinite where nobody asked for one, and then no clock is looked at.
    """

    def __init__(self, steps: float, seconds: float = inf):
        self._meter, self._end = _Meter(seconds), steps

    @property
    def left(self) -> float:
        return self._end - self._meter.spent

    @property
    def spent(self) -> float:
        """Steps spent on the whole, not on this part alone."""
        return self._meter.spent

    @property
    def expired(self) -> bool:
        """Whether the time limit has ended anything."""
        return self._meter.expired

    def spend(self, steps: float) -> None:
        """Announce work; raises `TooLarge` or `OutOfTime` where it must not begin."""
        meter = self._meter
        if meter.end < inf and time.monotonic() > meter.end:
            meter.expired = True
            raise OutOfTime
        if meter.spent + steps > self._end:
            raise TooLarge
        meter.spent += steps

    def part(self, steps: float) -> Budget:
        part = object.__new__(Budget)
        part._meter, part._end = self._meter, min(self._end, self._meter.spent + steps)
        return part

    def beside(self, steps: float) -> Budget:
        """An allowance of its own: what is spent there is not missing here, but the time limit is the same."""
        other = Budget(steps)
        other._meter.end = self._meter.end
        return other


# --- what flint takes, measured over the collection of models with known answers ---


def matrix_steps(rows: int, columns: int) -> float:
    """The echelon form of a dense matrix modulo a prime, and handing it over and back."""
    return rows * columns * (0.6 + min(rows, columns) / 2000)


def refuse_long_power(terms: int, exponent: int) -> None:
    """A power of a polynomial may have so many terms that not even memory holds them."""
    if terms > 1 and exponent > 1 and comb(terms + exponent - 1, exponent) > MOST_TERMS:
        raise TooLarge


def product_steps(a: Sized, b: Sized) -> float:
    return 3 + len(a) * len(b) / 12


def quotient_steps(a: Sized, b: Sized) -> float:
    """Division with remainder; most often there is none but the remainder."""
    return 3 + len(a) * (0.3 + len(b) / 100)


def terms_steps(polynomial: Any) -> float:
    """Taking a polynomial to pieces, or putting one together: flint hands over exponents one by one."""
    return len(polynomial) * (2 + polynomial.context().nvars() / 4)


def pieces_steps(polynomial: Sized) -> float:
    """The coefficients of powers of one variable, by division."""
    return 3 + len(polynomial) / 10


def divisor_steps(a: Sized, b: Sized) -> float:
    """The greatest common divisor of two sparse polynomials; most often there is none."""
    return 20 + 3 * (len(a) + len(b))


def factor_steps(polynomial: Sized) -> float:
    return 50 + 15 * len(polynomial)
