"""Whether anything has become slower: a small tracked set, each against a reference in the same run.

    uv run python benchmarks/history.py                  measures, and compares with what is stored
    uv run python benchmarks/history.py --keep           and stores it in benchmarks/history.json
    uv run python benchmarks/history.py --plant solve    with a fifth more work planted: must be seen

Work and its reference (code that never changes: a Runge-Kutta loop in Numba, or fractions in Python) take turns; the
result is the median of the ratios of their CPU times, so that a slow or busy machine changes both. A piece counts
as slower if its ratio is 1.15 times the stored one or more: halfway between nothing and a regression of 20%, on a
logarithmic scale, is 1.1, and medians of 15 scatter by a few percent. What was slower is measured again before it is
said, and then the exit code is 1. Counts (ODE solves of a fit) are exact and compared as they are.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import equifinal
from equifinal.examples import example_path
from equifinal.posterior.posterior import Posterior
from equifinal.studies.sample import sample

STORE = Path(__file__).with_suffix(".json")
TURNS, REPEATS, SLOWER = 15, 5, 1.15
Work = Callable[[], object]


@njit
def _steps(number: int) -> float:
    """SI epidemics by the classical Runge-Kutta method."""
    x, h = 0.01, 0.001
    for _ in range(number):
        k1 = x * (1 - x) - 0.3 * x
        y = x + 0.5 * h * k1
        k2 = y * (1 - y) - 0.3 * y
        y = x + 0.5 * h * k2
        k3 = y * (1 - y) - 0.3 * y
        y = x + h * k3
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + y * (1 - y) - 0.3 * y)
    return x


def compiled_reference() -> object:
    return _steps(300_000)


def python_reference() -> object:
    total, text = Fraction(0), {}
    for k in range(1, 2_000):
        total += Fraction(k % 7, k % 11 + 1)
        text[f"x{k}"] = str(total.numerator % 1000)
    return total, len(text)


def tracked() -> dict[str, tuple[Work, Work]]:
    """What is measured, and against what; all of it compiled and warm."""
    si, hiv = Posterior(equifinal.load("si")), Posterior(equifinal.load("hiv"))
    theta = {id(one): one.sample_prior(np.random.default_rng(1), 400) for one in (si, hiv)}
    text = example_path("signalling")
    problem = equifinal.load("hiv")
    return {
        "solve": (lambda: hiv.log_likelihood(theta[id(hiv)]), compiled_reference),
        "gradient": (lambda: hiv.expand(theta[id(hiv)][:60]), compiled_reference),
        "density": (lambda: [si.log_likelihood(theta[id(si)][:1]) for _ in range(300)], compiled_reference),
        "analyse": (lambda: equifinal.analyse(problem), python_reference),
        "load": (lambda: [equifinal.load(text) for _ in range(3)], python_reference),
    }


def ratio(work: Work, reference: Work, times: int = REPEATS) -> float:
    """The median of ratios of CPU times that were taken in turns; each is of several repetitions."""
    work(), reference()
    found = []
    for _ in range(TURNS):
        began = time.process_time()
        for _ in range(times):
            work()
        between = time.process_time()
        for _ in range(REPEATS):
            reference()
        found.append((between - began) / (time.process_time() - between))
    return float(np.median(found))


def times_of(name: str, plant: str) -> int:
    """With an error planted, six repetitions count as five."""
    return REPEATS + 1 if name == plant else REPEATS


def counts() -> dict[str, int]:
    """ODE solves of fits with a fixed seed, which no machine changes."""
    return {
        name: int(sample(equifinal.load(name), draws=500, seed=1, progress=False, predictive=False).attrs["solves"])
        for name in ("si", "hiv")
    }


def measure(plant: str) -> dict[str, Any]:
    ratios = {name: ratio(*pair, times_of(name, plant)) for name, pair in tracked().items()}
    return {"date": str(date.today()), "version": equifinal.__version__, "machine": machine(), "ratios": ratios}


def machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}"


def main() -> int:
    given = argparse.ArgumentParser()
    given.add_argument("--keep", action="store_true")
    given.add_argument("--plant", default="", help="the name of a piece that is to look a fifth slower")
    asked = given.parse_args()
    stored = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []
    made = measure(asked.plant) | {"solves": counts()}
    before = next((entry for entry in reversed(stored) if entry["machine"] == made["machine"]), None)
    slower = []
    for name, value in made["ratios"].items():
        known = before["ratios"].get(name) if before else None
        if known and value > SLOWER * known:  # once more: a machine may have hiccups
            value = made["ratios"][name] = ratio(*tracked()[name], times_of(name, asked.plant))
        change = f"{value / known:6.2f} times what is stored" if known else "   nothing is stored"
        print(f"{name:10}{value:9.3f}{change}", flush=True)
        slower += [name] if known and value > SLOWER * known else []
    for name, number in made["solves"].items():
        known = before["solves"].get(name) if before else None
        print(f"{name:10}{number:9,} solves" + (f", {known:,} stored" if known else ""))
        slower += [f"solves of {name}"] if known and number > 1.2 * known else []
    if asked.keep:
        STORE.write_text(json.dumps([*stored, made], indent=1) + "\n", encoding="utf-8")
    if slower:
        print(f"slower: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
