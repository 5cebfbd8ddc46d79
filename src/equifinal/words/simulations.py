"""Simulations as tables, for ``equifinal simulate``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from equifinal.errors import DataError
from equifinal.files import replace_file
from equifinal.prediction.simulate import simulate
from equifinal.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class SimulationTable:
    """The columns of one experiment, by name."""

    experiment: str
    columns: Mapping[str, np.ndarray]

    def to_csv(self) -> str:
        buffer = io.StringIO()
        if self.experiment:
            buffer.write(f"# {self.experiment}\n")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        for row in zip(*self.columns.values(), strict=True):
            writer.writerow([_cell(value) for value in row])
        return buffer.getvalue()

    def to_json(self) -> dict[str, Any]:
        return {"name": self.experiment, "columns": {k: [float(v) for v in c] for k, c in self.columns.items()}}


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def tables(
    problem: Problem, values: Mapping[str, float], times: np.ndarray | None, noise: bool, states: bool, seed: int
) -> list[SimulationTable]:
    """Solve every experiment: a table of its outputs, or of noisy observations of them, with the states if asked."""
    if seed < 0:
        raise DataError(f"`seed` must not be negative, not {seed}")
    rng = np.random.default_rng(seed) if noise else None
    made = []
    for trajectory in simulate(problem, values, times=times, rng=rng):
        if noise and not trajectory.observed:
            raise DataError("`noise` needs a [noise] table in the problem file")
        columns = {"time": trajectory.times}
        columns |= dict(trajectory.observed if noise else trajectory.outputs)
        columns |= {k: v for k, v in trajectory.states.items() if states and k not in columns}
        made.append(SimulationTable(trajectory.experiment, columns))
    return made


def write(made: Sequence[SimulationTable], out: Path) -> list[Path]:
    """One CSV file, or one for each experiment with its number in the name."""
    if out.is_dir() or not out.name:
        raise DataError(f"{out} is a folder, but `out` must name a file")
    several = len(made) > 1
    paths = [out.with_stem(f"{out.stem}-{i}") if several else out for i in range(1, len(made) + 1)]
    for table, path in zip(made, paths, strict=True):
        replace_file(path, partial(Path.write_text, data=table.to_csv(), encoding="utf-8"), "the table")
    return paths
