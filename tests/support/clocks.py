"""Clocks that run too fast: nothing that is computed may notice."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def hurry(change: Callable[[Any, str, Any], None], factor: float) -> None:
    """Let every clock run that many times too fast; `change` is `setattr`, or undoes itself as pytest's does."""
    for name in ("monotonic", "perf_counter", "time"):
        change(time, name, _hurried(getattr(time, name), factor))


def _hurried(clock: Callable[[], float], factor: float) -> Callable[[], float]:
    began = clock()
    return lambda: began + factor * (clock() - began)
