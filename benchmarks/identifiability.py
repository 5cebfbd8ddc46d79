"""Identifiability over collections of models: right, wrong or not finished, and how fast.

    uv run --with symident python benchmarks/identifiability.py [--table FILE] [words in model names ...]

First the shared collection of models with known answers, read from ``../shared`` next to the checkout or from the
folder in EQUIFINAL_SHARED; then `hard_models.json`, whose answers are not known, so that a model is done (``global``)
or not (``local``); last, compartments whose rates may stand in any order. CPU seconds of ours (the least of three
analyses where that is less than one), of symident where that is installed (its local analysis, in the same run), and
those published for StructuralIdentifiability.jl, measured on another machine. There is no time limit, so that answers
do not depend on what else the machine does: the default effort ends what is too large. ``--table`` writes the table in
docs/scoreboard.md.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import statistics
import sys
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import names, to_text
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression
from tests.support.fields import same_field

# Dong, Goodbrake, Harrington and Pogudin (2023): seconds on a Xeon, for parameters' identifiability
PUBLISHED = {
    "Pharm": "152",
    "PK2": "131",
    "SEAIJRC Covid model": "85",
    "QY": "49",
    "MAPK model (5 outputs)": "48",
    "HighDimNonLin": "20.6",
    "SIWR original": "13.7",
    "MAPK model (6 outputs)": "8.0",
    "Fujita": "2.5",
    **dict.fromkeys(["SEUIR", "SIR 19", "NFkB", "QWWC", "LeukaemiaLeon2021"], "none"),
}
LONGEST = 60  # CPU seconds for symident
REPEATS, BRIEF = 3, 1.0  # of an analysis of so many CPU seconds at most: others on the machine only add to them
WORDS = {"global": "globally", "local": "locally", "non": "not"}


def collection() -> list[dict[str, Any]]:
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("EQUIFINAL_SHARED", root.parent / "shared"))
    path = folder / "identifiability" / "models.json"
    if not path.exists():
        sys.exit(f"{path} is not there; set EQUIFINAL_SHARED to the folder with identifiability/models.json")
    return json.loads(path.read_text())["models"]


def model_of(entry: dict[str, Any]) -> Model:
    lines = [f"{name} = {e}" for name, e in entry.get("definitions", {}).items()]
    lines += [f"{x}' = {e}" for x, e in entry["states"].items()]
    lines += [f"{y} = {e}" for y, e in entry["outputs"].items() if y != e]
    lines += [f"{x}(0) = {e}" for x, e in entry["ic"].items() if e is not None]
    constants = entry.get("constants", {})
    return Model.parse("\n".join(lines), list(entry["outputs"]), inputs=entry["inputs"], constants=constants)


def judge(entry: dict[str, Any], model: Model, result: Identifiability) -> tuple[str, str]:
    """``right``, ``wrong`` or ``time-out`` with a reason, comparing fields and not lists."""
    for name, word in (entry["expected_status"] or {}).items():
        found = result.parameters.get(name)
        if result.scope == "local" and (found == "not") == (word == "non"):
            continue
        if found != WORDS[word]:
            return "wrong", f"{name} is {word}, not {found}"
    if result.scope == "local" or not result.complete:
        return "time-out", "local only" if result.scope == "local" else "generators incomplete"
    combinations = list(result.combinations)
    expected = [parse_expression(text) for text in entry["expected_identifiable"]]
    if entry["scope"] == "params":
        rates = {n for e in (*model.rhs, *model.observed) for n in names(e)}
        combinations = [c for c in combinations if set(names(c)) <= rates]
    extra, missing = same_field(combinations, expected, model.parameters, Budget(60 * SECOND))
    if extra or missing:
        shown = ", ".join(to_text(f) for f in (*extra, *missing))
        return "wrong", f"too much: {len(extra)}, too little: {len(missing)}: {shown}"[:150]
    if entry.get("fibre_degree") not in (None, result.fibre_degree):
        return "right", f"degree {result.fibre_degree}, elsewhere {entry['fibre_degree']}"
    return "right", ""


def hard_models() -> list[dict[str, Any]]:
    entries = json.loads((Path(__file__).parent / "hard_models.json").read_text())["models"]
    return [{"ic": {}} | entry | {"family": "hard"} for entry in entries]


def compartments() -> list[dict[str, Any]]:
    """Models whose rates may stand in any order, with a dose in the first compartment and one that is observed."""
    found = []
    for n in (6, 8, 12, 20, 40):
        chain = {"x1": "-k1*x1"} | {f"x{i}": f"k{i - 1}*x{i - 1} - k{i}*x{i}" for i in range(2, n + 1)}
        others = range(2, n + 1)
        centre = "-e*x1 " + " ".join(f"- a{i}*x1 + b{i}*x{i}" for i in others)
        mammillary = {"x1": centre} | {f"x{i}": f"a{i}*x1 - b{i}*x{i}" for i in others}
        cycle = chain | {"x1": f"k{n}*x{n} - k1*x1 - e*x1"}
        for kind, states, seen in (("chain", chain, n), ("mammillary", mammillary, 1), ("cycle", cycle, 1)):
            start = {x: "1" if x == "x1" else "0" for x in states}
            name = f"{kind} of {n} compartments"
            parts = {"outputs": {f"x{seen}": f"x{seen}"}, "inputs": [], "ic": start, "family": "hard"}
            found.append({"name": name, "states": states} | parts)
    return found


def cpu_seconds() -> float:
    """Of this process and of its children, in one of which an analysis runs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def beside(model: Model) -> str:
    """What symident's local analysis takes, if it is there and can read the model. It evaluates text: only ours."""
    try:
        import symident
    except ImportError:
        return "-"
    numbers = {name: f"({value})" for name, value in model.constants.items()}
    began = cpu_seconds()
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        states = {x: _plain(e, numbers) for x, e in zip(model.states, model.rhs, strict=True)}
        outputs = {y: _plain(e, numbers) for y, e in zip(model.outputs, model.observed, strict=True)}
        symident.detect(symident.Model(states, {f"{y}_seen": e for y, e in outputs.items()}))
    except Exception as error:
        return f"> {LONGEST}" if isinstance(error, TimeoutError) else type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return f"{cpu_seconds() - began:.2f}"


def _too_long(*_: Any) -> None:
    raise TimeoutError


def _plain(expression: Any, numbers: dict[str, str]) -> str:
    text = to_text(expression).replace("^", "**")
    for name, value in numbers.items():
        text = re.sub(rf"\b{name}\b", value, text)
    return text


COLUMNS = ("model", "e", "x", "θ", "y", "answer", "r", "D", "CPU s", "symident", "published")


def measure(entry: dict[str, Any]) -> tuple[dict[str, str], str, str, float]:
    """A row of the table, the verdict with its reason, and CPU seconds."""
    name = entry["name"].removeprefix("sijl_bench_").replace("_", " ") if entry["family"] != "hard" else entry["name"]
    model = model_of(entry)
    experiments = [model.vary(constants=values) for values in entry.get("experiments", [{}])]
    elapsed = inf
    for _ in range(REPEATS):
        began = cpu_seconds()
        result = analyse(experiments, time_limit=inf)
        elapsed = min(elapsed, cpu_seconds() - began)
        if elapsed > BRIEF:
            break
    answer = result.scope
    if answer == "global" and not result.complete:
        answer += ", generators incomplete"
    if entry["family"] == "hard":
        verdict, reason = "local" if answer == "local" else "global", result.unfinished
    else:
        verdict, reason = judge(entry, model, result)
    degree = str(result.fibre_degree) if answer == "global" else f"at most {result.fibre_degree}"
    numbers = (len(experiments), len(model.states), len(result.parameters), len(model.outputs))
    cells = (name, *map(str, numbers), answer, str(result.fibre_dimension), "?" if answer == "local" else degree)
    row = (*cells, f"{elapsed:.2f}", beside(model), PUBLISHED.get(name, ""))
    reason = "; ".join(filter(None, (result.certificate["method"], reason)))
    return dict(zip(COLUMNS, row, strict=True)), verdict, reason, elapsed


def main() -> None:
    wanted = sys.argv[1:]
    table = Path(wanted[1]) if wanted[:1] == ["--table"] else None
    wanted = wanted[2:] if table else wanted
    seconds: list[float] = []
    verdicts: Counter[tuple[str, str]] = Counter()
    if table:
        table.write_text(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n")
    for entry in (*collection(), *hard_models(), *compartments()):
        if wanted and not any(word in entry["name"] for word in wanted):
            continue
        row, verdict, reason, elapsed = measure(entry)
        seconds.append(elapsed)
        verdicts[entry["family"], verdict] += 1
        print(*row.values(), verdict, reason, sep="; ", flush=True)
        if table:
            with table.open("a") as out:
                print(f"| {' | '.join(row.values())} |", file=out)
    print()
    for family in ("ic", "core", "extended", "hard"):
        counts = {v: n for (f, v), n in sorted(verdicts.items()) if f == family}
        if counts:
            print(f"{family:9} " + ", ".join(f"{v} {n}" for v, n in counts.items()))
    print(f"{len(seconds)} models, median {statistics.median(seconds):.2f} CPU s, ", end="")
    print(f"longest {max(seconds):.1f} s, all {sum(seconds):.0f} s")


if __name__ == "__main__":
    main()
