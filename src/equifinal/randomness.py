"""Where random numbers come from: a seed, or whatever NumPy makes a generator of (``rng``, as in SPEC 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from equifinal.errors import DataError


def seed_of(seed: int | None, rng: Any) -> int | None:
    """The seed to use: the one given, or one drawn from ``rng``; None if neither is given.

    ``rng`` is a `numpy.random.Generator`, or anything that `numpy.random.default_rng` makes one of. A whole number is
    taken as the seed itself, so that ``rng=7`` and ``seed=7`` are the same.
    """
    if rng is None:
        return seed
    if seed is not None:
        raise DataError("give either seed or rng, not both")
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return int(rng)
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise DataError(f"rng must be a seed or a numpy.random.Generator, not {type(rng).__name__}") from None
    return int(generator.integers(2**31))
