"""Predictions of a run as a table, for ``equifinal predict``: one row for each trajectory and time."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, IdentifiabilityError, did_you_mean
from equifinal.fibre.of_problem import fibre_of
from equifinal.prediction.dependence import determined_trajectories
from equifinal.prediction.predict import (
    DRAWS,
    LEVELS,
    Band,
    Check,
    Predictions,
    check,
    posterior_rows,
    prior_rows,
)
from equifinal.prediction.predict import predict as predict_bands
from equifinal.randomness import seed_of
from equifinal.results.store import identifiability_of, problem_of
from equifinal.showing import Shown
from equifinal.words.trajectories import BADGES, precision_text

if TYPE_CHECKING:
    from arviz import InferenceData


@dataclass(frozen=True, eq=False, repr=False)
class PredictionTable(Shown):
    """Bands, whether each of them is identifiable, and checks against the data.

    ``determined`` maps (experiment, name) to True, False or None (not known).
    """

    predictions: Predictions
    bands: tuple[Band, ...]
    determined: Mapping[tuple[str, str], bool | None]
    checks: tuple[Check, ...]
    prior: bool

    def __repr__(self) -> str:
        return repr(self.predictions)

    def to_dataframe(self) -> Any:
        """The rows of the table as a pandas `DataFrame`."""
        from pandas import read_csv

        return read_csv(io.StringIO(self.to_csv()), keep_default_na=False, na_values=[""])

    def to_csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        levels = [f"{level * 100:g}%" for level in LEVELS]
        several = any(b.experiment for b in self.bands)
        start = ["experiment"] * several + ["name", "kind", "identifiable", "time", "mean"]
        writer.writerow([*start, *levels, *(f"observed {level}" for level in levels)])
        for band in self.bands:
            verdict = {True: "yes", False: "no", None: "unknown"}[self.determined.get((band.experiment, band.name))]
            for t in range(band.times.size):
                seen = [""] * len(LEVELS) if band.observed is None else [_cell(v) for v in band.observed[:, t]]
                row = [band.experiment] * several + [band.name, band.kind, verdict, f"{band.times[t]:.10g}"]
                writer.writerow([*row, f"{band.mean[t]:.8g}", *(f"{v:.8g}" for v in band.quantiles[:, t]), *seen])
        return buffer.getvalue()

    def to_json(self) -> dict[str, Any]:
        return {
            "draws": self.predictions.draws,
            "failed": self.predictions.failed,
            "from": "prior" if self.prior else "posterior",
            "levels": list(LEVELS),
            "trajectories": [
                {
                    "experiment": b.experiment,
                    "name": b.name,
                    "kind": b.kind,
                    "identifiable": self.determined.get((b.experiment, b.name)),
                    "times": b.times.tolist(),
                    "mean": b.mean.tolist(),
                    "quantiles": b.quantiles.tolist(),
                    "observed": None if b.observed is None else [[_finite(v) for v in row] for row in b.observed],
                }
                for b in self.bands
            ],
            "checks": [
                {
                    "experiment": c.experiment,
                    "output": c.output,
                    "observations": int(c.values.size),
                    "inside_50": c.inside_50,
                    "inside_90": c.inside_90,
                    "residuals": c.residuals.tolist(),
                }
                for c in self.checks
            ],
        }

    def words(self) -> list[str]:
        """Say of each trajectory whether it is identifiable and how well known, and of each output how it fits."""
        lines = []
        for band in self.bands:
            verdict = self.determined.get((band.experiment, band.name))
            told = ", ".join(text for text in (BADGES[verdict], precision_text(band)) if text)
            lines.append(f"{_place(band)} ({band.kind}): {told}")
        unseen = {(b.experiment, b.name) for b in self.bands if b.observed is None}
        for c in self.checks:
            where = f"{c.output} [{c.experiment}]" if c.experiment else c.output
            lines.append(
                f"check of {where}: {c.inside_50:.0%} of {c.values.size} observations inside the 50% band, "
                f"{c.inside_90:.0%} inside the 90% band, largest residual {c.largest:.1f} standard deviations"
            )
            if c.increment and (c.experiment, c.output) in unseen:
                lines.append(f"{where} is observed by its increments: to predict new ones, give the `times` of reports")
        if self.predictions.failed:
            lines.append(
                f"{self.predictions.failed} of {self.predictions.draws} draws could not be solved and are left out"
            )
        return lines


def bands_table(bands: Sequence[Band]) -> Any:
    """Which trajectories there are, and how well each is known."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "kind", "times", "precision"):
        table.add_column(title)
    for band in bands:
        table.add_row(_place(band), band.kind, f"{band.times[0]:g} to {band.times[-1]:g}", precision_text(band))
    return table


def _cell(value: float) -> str:
    return f"{value:.8g}" if math.isfinite(value) else ""


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _place(band: Band) -> str:
    return f"{band.name} [{band.experiment}]" if band.experiment else band.name


def predict(
    data: InferenceData,
    *,
    times: Sequence[float] | np.ndarray | None = None,
    until: float | None = None,
    states: Sequence[str] | None = None,
    draws: int = DRAWS,
    prior: bool = False,
    seed: int | None = None,
    rng: Any = None,
) -> PredictionTable:
    """Predict bands of all outputs, and of the states named, within and beyond the data.

    Parameters
    ----------
    data
        Results of `sample`, or of `load_results`.
    times, until
        When to predict: these times, or an even grid up to the last one; a quarter beyond the data unless given.
    states
        Names of states; None for all, an empty list for none.
    draws
        How many to take from the results.
    prior
        Draw from the prior instead.
    seed, rng
        Of the noise on new observations: a whole number, or a `numpy.random.Generator`.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> found = equifinal.predict(data, until=30, states=["S"])
    >>> [band.name for band in found.bands]
    ['cases', 'S']
    """
    seed = seed_of(seed, rng) or 0
    problem = problem_of(data)
    if isinstance(seed, bool) or seed < 0:
        raise DataError(f"`seed` must not be negative, not {seed}")
    known = list(dict.fromkeys(x for e in problem.experiments for x in (*e.model.states, *e.model.trajectories)))
    for name in states or ():
        if name not in known:
            raise DataError(f"'{name}' is not a state{did_you_mean(name, known)} (states: {', '.join(known)})")
    theta = prior_rows(problem, draws, seed) if prior else posterior_rows(data, problem, draws)
    predictions = predict_bands(problem, theta, times=times, until=until, seed=seed)
    bands = tuple(b for b in predictions.bands if b.kind == "output" or states is None or b.name in states)
    analysis, fibre = None, None  # what nobody knows is no reason not to predict
    with suppress(IdentifiabilityError):
        analysis = identifiability_of(data)
        fibre = fibre_of(problem, analysis=analysis)
    verdicts = determined_trajectories(problem, fibre, posterior_rows(data, problem), analysis)
    checks = () if prior else tuple(check(problem, theta, seed=seed))
    return PredictionTable(predictions, bands, verdicts, checks, prior)
