"""A time limit that every stage asks."""

from __future__ import annotations

import time


class OutOfTime(Exception):
    """The time limit passed; whoever catches it reports what was shown until then."""


class Deadline:
    """A moment after which work must stop.

    `part` gives a stage its own, shorter limit, so that a slow method leaves time for another one.
    """

    def __init__(self, seconds: float):
        self.end = time.monotonic() + seconds

    def remaining(self) -> float:
        return self.end - time.monotonic()

    def check(self) -> None:
        if self.remaining() <= 0:
            raise OutOfTime

    def part(self, seconds: float) -> Deadline:
        return Deadline(min(seconds, max(self.remaining(), 0.0)))
