"""Several samplers on one problem, under the same settings: do they agree, and what does each cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equifinal.errors import DataError, IdentifiabilityError, InterruptedRunError, SamplingError
from equifinal.posterior.study import Study
from equifinal.problem.problem import Problem
from equifinal.results.diagnostics import Row
from equifinal.results.efficiency import Efficiency, efficiency
from equifinal.samplers import registry
from equifinal.showing import Shown
from equifinal.studies import fit as fitting

DRAWS = 10_000  # of each chain, for all samplers, where none are asked for


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Fits by sampler, and the reasons of those that could not run."""

    problem: Problem
    fits: Mapping[str, fitting.Fit]
    refused: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join((*self.fits, *self.refused))} on {self.problem.name}>"

    @cached_property
    def efficiencies(self) -> dict[str, Efficiency]:
        """What each run achieved."""
        return {name: efficiency(done.data, done.summary) for name, done in self.fits.items()}

    @cached_property
    def usable(self) -> tuple[str, ...]:
        """The samplers whose draws nothing serious speaks against."""
        return tuple(name for name, done in self.fits.items() if not any(c.serious for c in done.concerns))

    def disagreements(self) -> dict[str, float]:
        """Find the largest difference between two samplers' means of each quantity, in units of its standard error.

        Only runs that can be used are compared; chance alone rarely makes it exceed 4. Empty if there are not two.
        """
        rows = [self.fits[name].summary for name in self.usable]
        if len(rows) < 2:
            return {}
        names = rows[0] if rows else {}
        return {name: max(_apart(a[name], b[name]) for a in rows for b in rows) for name in names}

    def to_json(self) -> dict[str, Any]:
        return {
            "samplers": {
                name: done.to_json()
                | {
                    "ess_per_solve": self.efficiencies[name].per_solve,
                    "ess_per_second": self.efficiencies[name].per_second,
                }
                for name, done in self.fits.items()
            },
            "refused": dict(self.refused),
            "usable": list(self.usable),
            "disagreements": self.disagreements(),
        }


def _apart(a: Row, b: Row) -> float:
    first, second = (row["sd"] * row["mcse_over_sd"] for row in (a, b))
    error = float(np.hypot(first, second))
    return abs(a["mean"] - b["mean"]) / error if error > 0 else float("nan")


def require_several(samplers: Sequence[str]) -> None:
    """Refuse fewer than two samplers, unknown ones, and one that is named twice."""
    if len(samplers) < 2:
        raise DataError(f"`samplers` must name at least two of {', '.join(registry.names())}")
    for name in samplers:
        registry.require_known(name)
        if list(samplers).count(name) > 1:
            raise DataError(f"sampler '{name}' is named twice (`samplers`)")


def compare(
    problem: Problem | Study,
    samplers: Sequence[str] = ("collapsed", "geometric", "random-walk"),
    settings: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    *,
    overwrite: bool = False,
    executor: Executor | None = None,
    progress: bool = True,
) -> Comparison:
    """Fit with each sampler into a folder of its own; one that cannot run is noted, and the others go on.

    Parameters
    ----------
    samplers
        At least two of them, by name.
    settings
        The same for all, such as ``{"draws": 500}``: see `sample`. 10,000 draws per chain unless given.
    folder
        Where results go, a folder for each sampler; NAME-compare unless given.
    overwrite
        Whether to replace results that are there.
    executor
        Any `concurrent.futures.Executor` (or dask client) to run chains in; the draws do not depend on it.
    progress
        Whether to show progress.

    Examples
    --------
    >>> import equifinal
    >>> both = equifinal.compare(equifinal.load("si"), ["collapsed", "random-walk"])  # doctest: +SKIP
    >>> both.usable  # doctest: +SKIP
    ('collapsed',)
    """
    require_several(samplers)
    study = Study.of(problem)
    settings = settings or {}
    folder = Path(f"{study.problem.name}-compare") if folder is None else Path(folder)
    fits: dict[str, fitting.Fit] = {}
    refused: dict[str, str] = {}
    for name in samplers:
        try:
            fits[name] = fitting.fit(
                study,
                {**settings, "draws": settings.get("draws") or DRAWS, "sampler": name},
                folder=folder / name,
                overwrite=overwrite,
                executor=executor,
                progress=progress,
            )
        except InterruptedRunError:
            raise
        except (SamplingError, IdentifiabilityError) as error:
            refused[name] = str(error)
        if name in fits and fits[name].interrupted:
            break
    if not fits:
        raise SamplingError("no sampler could run: " + "; ".join(f"{k}: {v}" for k, v in refused.items()))
    return Comparison(study.problem, fits, refused)
