"""Published PEtab problems, one line each: what is read, log likelihoods here and of their own simulations, verdicts.

    uv run benchmarks/collection.py FOLDER [--analyse SECONDS] [--fit SECONDS] [--only NAME ...]

FOLDER holds one folder for each problem, as the benchmark collection has them (Benchmark-Models-PEtab). Every problem
runs in a process of its own, so that none can stop the others. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

COLUMNS = (
    "problem",
    "states",
    "parameters",
    "experiments",
    "data",
    "log likelihood here",
    "of its simulations",
    "analysis",
    "fit",
    "CPU seconds",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--analyse", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--fit", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="for each problem")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(line(Path(given.one), given.analyse, given.fit)))
        return
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * len(COLUMNS))
    for folder in sorted(path for path in given.folder.iterdir() if path.is_dir()):
        files = sorted(folder.glob(f"{folder.name}.yaml")) or sorted(folder.glob("*.yaml"))
        if not files or (given.only and folder.name not in given.only):
            continue
        command = [sys.executable, __file__, str(given.folder), "--one", str(files[0])]
        command += ["--analyse", str(given.analyse), "--fit", str(given.fit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=given.limit, check=False)
            found = (
                json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"analysis": done.stderr[-200:]}
            )
        except subprocess.TimeoutExpired:
            found = {"analysis": f"out of time ({given.limit:g} s)"}
        row = {"problem": folder.name, **found}
        print("| " + " | ".join(str(row.get(column, "")).replace("|", "/") for column in COLUMNS) + " |", flush=True)


def line(path: Path, analyse_for: float, fit_for: float) -> dict[str, object]:
    """Everything about one problem."""
    from equifinal.errors import EquifinalError
    from equifinal.formats.load import load
    from equifinal.posterior.nominal import at_nominal

    start = time.process_time()
    row: dict[str, object] = {}
    try:
        problem = load(path)
        row["states"], row["parameters"] = len(problem.model.states), len(problem.parameters)
        row["experiments"] = len(problem.experiments)
        row["data"] = sum(experiment.size for experiment in problem.experiments)
        found = at_nominal(problem)
        row["log likelihood here"] = "none" if found is None else f"{found.log_likelihood:.4f}"
        row["of its simulations"] = _of_simulations(path, problem)
        if analyse_for:
            row["analysis"] = _analysed(problem, analyse_for)
        if fit_for:
            row["fit"] = _fitted(problem, fit_for)
    except EquifinalError as error:
        row["analysis"] = f"refused: {str(error)[:160]}"
    row["CPU seconds"] = f"{time.process_time() - start:.1f}"
    return row


def _of_simulations(path: Path, problem: object) -> str:
    """The log likelihood with the published simulations in the place of the outputs."""
    import numpy as np

    from equifinal.formats.petab.reading import Read
    from equifinal.posterior.posterior import Posterior

    tables = sorted(path.parent.glob("simulatedData*.tsv"))
    if len(tables) != 1:
        return ""
    listed = list(csv.DictReader(tables[0].read_text().splitlines(), delimiter="\t"))
    rows = {_key(row): row for row in listed}
    posterior = Posterior(problem)  # type: ignore[arg-type]
    theta = np.array([[problem.nominal[name] for name in posterior.parameters]])  # type: ignore[attr-defined]
    outputs = [values.copy() for values in posterior.outputs(theta).values]
    for one, likelihood, values in zip(Read(path).assembled, posterior.likelihoods, outputs, strict=True):
        for seen in one.seen:
            column = likelihood.experiment.solved.outputs.index(seen.output)
            for row in seen.rows:
                simulated = rows.get(_key(row.row.cells))
                if simulated is None and row.row.line - 2 < len(listed):
                    same = listed[row.row.line - 2]
                    simulated = same if _key(same)[:4] == _key(row.row.cells)[:4] else None
                if simulated is None:
                    return "other rows"
                at = int(np.flatnonzero(likelihood.times == row.time)[0])
                values[0, at, column] = float(simulated["simulation"])
    parts = zip(posterior.likelihoods, outputs, strict=True)
    total = sum(float(one.log_likelihood(values, theta, np.empty((0, 0)))[0]) for one, values in parts)
    return f"{total:.4f}" if math.isfinite(total) else "not finite"


def _key(cells: Mapping[str, str]) -> tuple[object, ...]:
    """What a row of data or of simulations is about; the two tables may be in another order."""
    columns = ("observableId", "preequilibrationConditionId", "simulationConditionId", "observableParameters")
    return (float(cells["time"]), *((cells.get(column) or "").strip() for column in columns))


def _analysed(problem: object, seconds: float) -> str:
    from equifinal.identifiability.analysis import analyse

    models = [experiment.analysed for experiment in problem.experiments]  # type: ignore[attr-defined]
    found = analyse(models, time_limit=seconds)
    freedoms = f"{found.fibre_dimension} freedom{'' if found.fibre_dimension == 1 else 's'}"
    known = sum(verdict != "not" for verdict in found.parameters.values())
    return f"{freedoms}, {known} of {len(found.parameters)} identifiable ({found.scope})"


def _fitted(problem: object, seconds: float) -> str:
    from equifinal.results.diagnostics import concerns, summarise
    from equifinal.studies.sample import sample

    data = sample(problem, max_time=seconds, progress=False)  # type: ignore[arg-type]
    rows = summarise(data)
    least = min(min(row["ess_bulk"], row["ess_tail"]) for row in rows.values())  # type: ignore[type-var]
    found = concerns(data, rows)
    sound = "sound" if not found else f"{len(found)} concern{'s' if len(found) > 1 else ''}"
    return f"{data.attrs['sampler']}, {least:.0f} effective draws, {sound}"


if __name__ == "__main__":
    main()
