"""A badge says structure, a number says precision."""

from __future__ import annotations

import numpy as np
import pytest

from equifinal.prediction.predict import Band
from equifinal.words.trajectories import BADGES, half_width, precision_text


def band(median: list[float], reach: list[float]) -> Band:
    middle, half = np.array(median), np.array(reach)
    rows = np.stack([middle - half, middle - half / 2, middle, middle + half / 2, middle + half])
    return Band("", "x", "state", np.arange(len(middle)), middle, rows, None)


@pytest.mark.parametrize(
    ("made", "width", "words"),
    [
        (band([0, 14_000], [0, 10_000]), 10 / 14, "90% band within ±71% of its largest value"),
        (band([1, 2], [0.02, 0.01]), 0.01, "90% band within ±1% of its largest value"),
        (band([1, 2], [2e-4, 0]), 1e-4, "90% band within ±0.01% of its largest value"),
        (band([1, -4], [80, 0]), 20, "90% band over ±1000% of its largest value"),
    ],
)
def test_precision(made: Band, width: float, words: str) -> None:
    assert half_width(made) == pytest.approx(width)
    assert precision_text(made) == words


def test_what_is_always_zero_has_no_scale() -> None:
    assert precision_text(band([0, 0], [1, 1])) == ""


def test_no_badge_speaks_of_data() -> None:
    """A wide band must not be called determined by them."""
    assert not any("determined" in words or "data" in words for words in BADGES.values())
