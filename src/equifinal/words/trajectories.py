"""What is known of a trajectory, in a badge and a number.

The badge speaks of structure: whether parameters with the same output also have the same trajectory. The number speaks
of precision: the largest half width of the 90% band, in units of the largest value of the median.
"""

from __future__ import annotations

import numpy as np

from equifinal.prediction.predict import Band

BADGES: dict[bool | None, str] = {
    True: "identifiable",
    False: "depends on your prior",
    None: "not known whether identifiable",
}


def half_width(band: Band) -> float:
    """The largest half width of the 90% band, relative to the largest median; NaN where that is 0."""
    largest = float(np.nanmax(np.abs(band.quantiles[2]), initial=0.0))
    width = float(np.nanmax(band.quantiles[4] - band.quantiles[0], initial=0.0)) / 2
    return width / largest if largest > 0 and np.isfinite(width) else float("nan")


def precision_text(band: Band) -> str:
    """``90% band within ±12% of its largest value``; empty where there is no scale to measure by."""
    width = half_width(band)
    if np.isnan(width):
        return ""
    if width > 10:
        return "90% band over ±1000% of its largest value"
    shown = f"{width:.0%}" if width >= 0.0095 else f"{100 * width:.1g}%"
    return f"90% band within ±{shown} of its largest value"
