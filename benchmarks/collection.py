"""Published PEtab problems, one line each: size, log likelihood here and of their own simulations, verdict, fit.

    uv run benchmarks/collection.py FOLDER --out rows.json [--analyse SECONDS] [--fit SECONDS] [--only NAME ...]
    uv run benchmarks/collection.py --table rows.json

FOLDER holds one folder for each problem, as the benchmark collection has them (Benchmark-Models-PEtab). Every problem
runs in a process of its own, so that none can stop the others, and what it knew when its time was up is kept. Problems
that are in the file already are left alone unless named. The second form prints the table of docs/collection.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLUMNS = {
    "problem": "problem",
    "states": "states",
    "parameters": "parameters",
    "experiments": "experiments",
    "data": "data",
    "here": "log likelihood here",
    "published": "published",
    "import seconds": "import, CPU s",
    "analysis": "what ideal data determine",
    "fit": "fit",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--analyse", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--fit", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="of CPU, for each problem")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table:
        print_table(json.loads(given.table.read_text()))
    elif given.one:
        resource.setrlimit(resource.RLIMIT_CPU, (int(given.limit), int(given.limit) + 5))
        go_through(given.one, given.analyse, given.fit)
    else:
        collect(given)


def print_table(rows: Mapping[str, Mapping[str, Any]]) -> None:
    print("| " + " | ".join(COLUMNS.values()) + " |")
    print("|" + " --- |" * len(COLUMNS))
    for name in sorted(rows):
        row = {"problem": name, **rows[name]}
        print("| " + " | ".join(str(row.get(column, "")).replace("|", "/") for column in COLUMNS) + " |")


def collect(given: argparse.Namespace) -> None:
    """Every problem that is named, or not yet in the file, smallest first."""
    rows = json.loads(given.out.read_text()) if given.out.exists() else {}
    folders = [path for path in given.folder.iterdir() if path.is_dir()]
    for folder in sorted(folders, key=lambda folder: sum(file.stat().st_size for file in folder.glob("*.xml"))):
        files = sorted(folder.glob(f"{folder.name}.yaml")) or sorted(folder.glob("*.yaml"))
        wanted = folder.name in given.only if given.only else folder.name not in rows
        if not files or not wanted:
            continue
        command = [sys.executable, __file__, "--one", str(files[0])]
        command += ["--analyse", str(given.analyse), "--limit", str(given.limit), "--fit", str(given.fit)]
        found: dict[str, Any] = {}
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        failure = done.stderr.strip()[-200:] if done.returncode else ""
        if done.returncode == -signal.SIGXCPU:
            failure = f"not finished in {given.limit:g} CPU s"
        for part in done.stdout.splitlines():
            found |= json.loads(part)
        if failure:
            found[found.pop("doing", "fit")] = failure
        found.pop("doing", None)
        rows[folder.name] = {**rows.get(folder.name, {}), **found}
        given.out.write_text(json.dumps(rows, indent=1))
        print(folder.name, json.dumps(found), flush=True)


def go_through(path: Path, analyse_for: float, fit_for: float) -> None:
    """Everything about one problem, in lines of JSON as it becomes known."""
    from equifinal.errors import EquifinalError, IdentifiabilityError
    from equifinal.formats.load import load
    from equifinal.posterior.design import analysed
    from equifinal.posterior.nominal import at_nominal

    def tell(**known: object) -> None:
        print(json.dumps(known), flush=True)

    start, doing = time.process_time(), "here"
    try:
        tell(doing=doing)
        problem = load(path)
        tell(
            **{"import seconds": f"{time.process_time() - start:.1f}"},
            states=len(problem.model.states),
            parameters=len(problem.parameters),
            experiments=len(problem.experiments),
            data=sum(experiment.size for experiment in problem.experiments),
        )
        found = at_nominal(problem)
        tell(here="none" if found is None else f"{found.log_likelihood:.4f}", published=_of_simulations(path, problem))
        if analyse_for:
            doing = "analysis"
            tell(doing=doing)
            analysis = None
            try:
                analysis = analysed(problem, time_limit=analyse_for)
                tell(analysis=_verdict(analysis))
            except IdentifiabilityError as error:  # which is no reason not to fit
                tell(analysis=f"refused: {str(error)[:300]}")
            if fit_for:
                doing = "fit"
                tell(doing=doing)
                tell(fit=_fitted(problem, analysis, fit_for))
    except EquifinalError as error:
        tell(**{doing: f"refused: {str(error)[:300]}"})


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
    total = sum(float(one.log_likelihood(values, one.sums(values), theta)[0]) for one, values in parts)
    return f"{total:.4f}" if math.isfinite(total) else "not finite"


def _key(cells: Mapping[str, str]) -> tuple[object, ...]:
    """What a row of data or of simulations is about; the two tables may be in another order."""
    columns = ("observableId", "preequilibrationConditionId", "simulationConditionId", "observableParameters")
    return (float(cells["time"]), *((cells.get(column) or "").strip() for column in columns))


def _verdict(found: Any) -> str:
    """The answer of an analysis in a few words."""
    total, free = len(found.parameters), sum(verdict == "not" for verdict in found.parameters.values())
    unknown = sum(verdict == "unknown" for verdict in found.parameters.values())
    if unknown == total:
        return "not known" + (f"; {found.unfinished}" if found.unfinished else "")
    if found.fibre_dimension:
        words = f"{found.fibre_dimension} freedom{'' if found.fibre_dimension == 1 else 's'} among {free} of {total}"
    else:
        words = f"all {total} {'globally' if set(found.parameters.values()) == {'globally'} else 'at least locally'}"
    words += f", {unknown} unknown" if unknown else ""
    if found.design and found.design.is_clear and not found.design.enough:
        words += f"; these experiments {found.design.rank} of {found.design.expected} combinations"
    return words + (f"; {found.unfinished}" if found.unfinished else "")


def _fitted(problem: Any, analysis: Any, seconds: float) -> str:
    from equifinal.errors import SamplingError
    from equifinal.results.diagnostics import concerns, summarise
    from equifinal.studies.sample import sample

    start = time.process_time()
    try:
        data = sample(problem, analysis=analysis, progress=False, max_time=seconds)
    except SamplingError as error:
        if "before the preparation did" in str(error):
            return f"preparation not finished in {time.process_time() - start:.0f} CPU s"
        raise
    rows = summarise(data)
    least = min(min(row["ess_bulk"], row["ess_tail"]) for row in rows.values())
    found = concerns(data, rows)
    sound = "sound" if not found else "not sound: " + ", ".join(sorted({concern.kind for concern in found}))
    cost = f"{time.process_time() - start:.0f} CPU s"
    return f"{data.attrs['sampler']}, {least:.0f} effective draws, {cost}, {sound}"


if __name__ == "__main__":
    main()
