"""Identifiability over the shared collection of models with known answers: right, wrong or not finished, and
how fast.

    uv run python benchmarks/identifiability.py [words in model names ...]

The collection is read from ``../shared`` next to the checkout, or from the folder in EQUIFINAL_SHARED.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from equifinal.algebra.arithmetic.budget import SECOND, Budget
from equifinal.algebra.generators.expressing import same_field
from equifinal.identifiability.analysis import analyse
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import names, to_text
from equifinal.language.model import Model
from equifinal.language.parser import parse_expression

WORDS = {"global": "globally", "local": "locally", "non": "not"}


def collection() -> list[dict[str, Any]]:
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("EQUIFINAL_SHARED", root.parent / "shared"))
    path = folder / "identifiability" / "models.json"
    if not path.exists():
        sys.exit(f"{path} is not there; set EQUIFINAL_SHARED to the folder with identifiability/models.json")
    return json.loads(path.read_text())["models"]


def model_of(entry: dict[str, Any]) -> Model:
    lines = [f"{x}' = {e}" for x, e in entry["states"].items()]
    lines += [f"{y} = {e}" for y, e in entry["outputs"].items()]
    lines += [f"{x}(0) = {e}" for x, e in entry["ic"].items() if e is not None]
    return Model.parse("\n".join(lines), list(entry["outputs"]), inputs=entry["inputs"])


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


def main() -> None:
    wanted = sys.argv[1:]
    seconds: list[float] = []
    verdicts: Counter[tuple[str, str]] = Counter()
    print(f"{'model':42} {'family':9} {'verdict':9} {'seconds':>8}  r D  method")
    for entry in collection():
        if wanted and not any(word in entry["name"] for word in wanted):
            continue
        model = model_of(entry)
        began = time.perf_counter()
        result = analyse(model)
        elapsed = time.perf_counter() - began
        verdict, reason = judge(entry, model, result)
        seconds.append(elapsed)
        verdicts[entry["family"], verdict] += 1
        method = result.certificate["method"]
        print(
            f"{entry['name'][:42]:42} {entry['family']:9} {verdict:9} {elapsed:8.3f}  "
            f"{result.fibre_dimension} {result.fibre_degree}  {method}{'; ' if reason else ''}{reason}",
            flush=True,
        )
    print()
    for family in ("ic", "core", "extended"):
        counts = {v: n for (f, v), n in sorted(verdicts.items()) if f == family}
        if counts:
            print(f"{family:9} " + ", ".join(f"{v} {n}" for v, n in counts.items()))
    print(f"median {statistics.median(seconds):.3f} s, longest {max(seconds):.1f} s, all {sum(seconds):.0f} s")


if __name__ == "__main__":
    main()
