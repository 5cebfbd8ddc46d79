"""Posteriors like those of people's own models: 3 to 21 dimensions, elbows, weak directions; seeds beside each other.

    uv run python benchmarks/own_models.py [--seeds 4] [FILE or NAME ...]

Files are problem files, names those of `large_models.py`; left out, they are the files of the folder ``problems`` of
the shared data. Every run has default settings
and begins with prior draws. It shows CPU seconds (of all cores, without importing and compiling), ODE solves, the least
number of effective draws (bulk or tail) and the largest R-hat over parameters, log Z, and whether the diagnostics find
the draws sound. At the end of each problem stand the largest |z| between the shares of draws of two seeds, both called
sound, below their common 1%, 5%, 50%, 95% and 99% quantiles, and the spread of their log Z.

For posteriordb's ``one_comp_mm_elim_abs`` (``onecomp.toml``) the upper tail of K_m is compared with quadrature: a grid
in K_m, around whose values a grid in k_a and V_m is adapted, sigma being integrated on a third.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from large_models import LARGE

from equifinal.formats.load import load
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import import_arviz
from equifinal.results.diagnostics import concerns, summarise
from equifinal.studies.sample import sample
from tests.support.shared_folder import SHARED

QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
TAIL = {20: 0.01435, 40: 0.00441}  # of onecomp, by quadrature: P(K_m > 20), P(K_m > 40),
Q99 = 24.9  # and the 99% quantile


def loaded(path: Path) -> Problem:
    return LARGE[path.name]() if path.name in LARGE else load(path)


def one_run(path: Path, seed: int) -> dict[str, Any]:
    problem = loaded(path)
    began = time.process_time()
    data = sample(problem, seed=seed, progress=False)
    cpu = time.process_time() - began
    rows, found = summarise(data), json.loads(data.attrs["findings"])
    kinds = [concern.kind for concern in concerns(data, rows)]
    ess = min(min(row["ess_bulk"], row["ess_tail"]) for row in rows.values())
    log_z = found.get("log_evidence", np.nan)
    print(
        f"{path.stem:12}{seed:4}  {cpu:6.1f} s{data.attrs['solves']:10,} solves{ess:8,.0f} effective draws"
        f"  R-hat {max(row['rhat'] for row in rows.values()):.3f}  log Z {log_z:9.2f}"
        f" ({found.get('log_evidence_error', np.nan):.2f})  {', '.join(kinds) or 'sound'}",
        flush=True,
    )
    if path.stem == "onecomp":
        show_tail(data.posterior["K_m"].values)
    return {"data": data.posterior, "log_z": log_z, "sound": not kinds}


def show_tail(draws: np.ndarray) -> None:
    arviz, shown = import_arviz(), []
    for limit, exact in TAIL.items():
        above = (draws > limit).astype(float)
        error = np.sqrt(above.mean() * (1 - above.mean()) / arviz.ess(above, method="mean"))
        shown.append(f"P(K_m > {limit}) {above.mean():.4f}, z {(above.mean() - exact) / error:+.1f}")
    quantile, error = np.quantile(draws, 0.99), float(arviz.mcse(draws, method="quantile", prob=0.99))
    print(" " * 18 + "; ".join([*shown, f"99% quantile {quantile:.1f}, z {(quantile - Q99) / error:+.1f}"]))


def largest_z(one: Any, other: Any) -> float:
    """The largest difference between shares of draws below quantiles of both runs together, in standard errors.

    Shares, not quantiles, whose own standard errors are noisy in tails of few draws, and mean nothing in gaps.
    """
    arviz, worst = import_arviz(), 0.0
    for name in one.data_vars:
        both = [one[name].values, other[name].values]
        for q in QUANTILES:
            value = np.quantile(np.concatenate([draws.ravel() for draws in both]), q)
            below = [(draws <= value).astype(float) for draws in both]
            errors = [np.sqrt(q * (1 - q) / float(arviz.ess(part, method="mean"))) for part in below if np.ptp(part)]
            difference = abs(float(below[0].mean() - below[1].mean()))
            worst = max(worst, difference / float(np.linalg.norm(errors)))
    return worst


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("files", nargs="*", type=Path)
    given.add_argument("--seeds", type=int, default=4)
    asked = given.parse_args()
    files = asked.files or sorted((SHARED / "problems").glob("*.toml"))
    for path in files:
        sample(loaded(path), seed=0, draws=1, chains=1, sampler="random-walk", warmup=1, progress=False)  # compiled
        runs = [run for run in (one_run(path, seed) for seed in range(1, asked.seeds + 1)) if run["sound"]]
        pairs = [largest_z(a["data"], b["data"]) for a, b in itertools.combinations(runs, 2)]
        spread = np.ptp([run["log_z"] for run in runs]) if runs else np.nan
        worst = max(pairs, default=np.nan)
        print(f"{path.stem:12}{len(runs)} of {asked.seeds} sound; |z| at most {worst:.1f}; log Z within {spread:.2f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
