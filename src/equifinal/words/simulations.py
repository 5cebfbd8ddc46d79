"""Simulations as tables, for ``equifinal simulate``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    censored: Mapping[str, np.ndarray] = field(default_factory=dict)  # -1 and 1 where a number is a limit

    def to_csv(self) -> str:
        buffer = io.StringIO()
        if self.experiment:
            buffer.write(f"# {self.experiment}\n")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        columns = [self._cells(name) for name in self.columns]
        writer.writerows(zip(*columns, strict=True))
        return buffer.getvalue()

    def _cells(self, name: str) -> list[str]:
        numbers = [_cell(value) for value in self.columns[name]]
        if name not in self.censored:
            return numbers
        return [{0: "", -1: "<", 1: ">"}[int(side)] + n for side, n in zip(self.censored[name], numbers, strict=True)]

    def to_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.experiment}
        made["columns"] = {k: [float(v) for v in c] for k, c in self.columns.items()}
        if self.censored:
            made["censored"] = {k: [int(side) for side in sides] for k, sides in self.censored.items()}
        return made


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
        censored = {k: sides for k, sides in trajectory.censored.items() if sides.any()}
        made.append(SimulationTable(trajectory.experiment, columns, censored))
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
