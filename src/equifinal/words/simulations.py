"""Simulations as tables: what ``equifinal simulate`` reads from its arguments and prints."""

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

from equifinal.errors import DataError, did_you_mean
from equifinal.files import replace_file
from equifinal.prediction.simulate import simulate
from equifinal.problem.problem import Problem

MAX_TIMES = 1_000_000


@dataclass(frozen=True, eq=False)
class SimulationTable:
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


def read_values(problem: Problem, given: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Values from ``name=value`` texts; for the others the prior's median, returned apart as well."""
    values: dict[str, float] = {}
    for text in given:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not equals:
            raise DataError(f"--at {text}: expected name=value")
        if name not in problem.parameters:
            known = ", ".join(problem.parameters)
            raise DataError(
                f"--at {text}: '{name}' is not a parameter{did_you_mean(name, problem.parameters)} ({known})"
            )
        try:
            values[name] = float(number)
        except ValueError:
            raise DataError(f"--at {text}: '{number}' is not a number") from None
    open_names = [name for name in problem.parameters if name not in values]
    without = [name for name in open_names if name not in problem.priors]
    if without:
        raise DataError(f"no value and no prior for {', '.join(without)}: give --at {without[0]}=...")
    assumed = {name: float(problem.priors[name].quantile(0.5)) for name in open_names}
    return {name: (values | assumed)[name] for name in problem.parameters}, assumed


def read_times(text: str) -> np.ndarray | None:
    """Times from ``1,2,5`` or ``start:stop:step``; ``None`` for an empty text."""
    if not text.strip():
        return None
    try:
        if ":" in text:
            start, stop, step = (float(part) for part in text.split(":"))
            count = (stop - start) / step
            if not (step > 0 and count >= 0):
                raise ValueError
            if count > MAX_TIMES:
                raise DataError(f"--times {text}: that is {count:.0f} times; at most {MAX_TIMES} are handled")
            return start + step * np.arange(math.floor(count + 1e-9) + 1)
        return np.array([float(part) for part in text.split(",")])
    except (ValueError, ZeroDivisionError, OverflowError):
        raise DataError(f"--times {text}: expected times such as 1,2,5 or start:stop:step such as 0:10:0.5") from None


def tables(
    problem: Problem, values: Mapping[str, float], times: str, noise: bool, states: bool, seed: int
) -> list[SimulationTable]:
    if seed < 0:
        raise DataError(f"--seed must not be negative, not {seed}")
    rng = np.random.default_rng(seed) if noise else None
    found = []
    for trajectory in simulate(problem, values, times=read_times(times), rng=rng):
        if noise and not trajectory.observed:
            raise DataError("--noise needs a [noise] table in the problem file")
        columns = {"time": trajectory.times}
        columns |= dict(trajectory.observed if noise else trajectory.outputs)
        columns |= {k: v for k, v in trajectory.states.items() if states and k not in columns}
        found.append(SimulationTable(trajectory.experiment, columns))
    return found


def write(found: Sequence[SimulationTable], out: Path) -> list[Path]:
    """One CSV file, or one for each experiment with its number in the name."""
    if out.is_dir() or not out.name:
        raise DataError(f"--out {out} is a folder; give the name of a file")
    several = len(found) > 1
    paths = [out.with_stem(f"{out.stem}-{i}") if several else out for i in range(1, len(found) + 1)]
    for table, path in zip(found, paths, strict=True):
        replace_file(path, partial(Path.write_text, data=table.to_csv(), encoding="utf-8"), "the table")
    return paths
