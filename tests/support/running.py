"""Runs compared and interrupted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equifinal.samplers.running.run import Draws
from equifinal.samplers.running.under_way import Update


def assert_same_draws(a: Draws, b: Draws) -> None:
    """To the last bit, with what was counted on the way."""
    np.testing.assert_array_equal(a.theta, b.theta)
    for mine, theirs in zip((*a.chunk, *a.tally), (*b.chunk, *b.tally), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def interrupt_after(updates: int) -> Callable[[Update], None]:
    """A display of progress that presses Ctrl-C."""
    seen = []

    def display(update: Update) -> None:
        seen.append(update)
        if len(seen) == updates:
            raise KeyboardInterrupt

    return display
