"""What `sampler="auto"` makes of harder targets with default settings, and whether it agrees with their references.

    uv run python benchmarks/targets.py [--sampler NAME] [--seeds 3] [TARGET ...]

Efficiency is the least bulk ESS over parameters and identifiable combinations, per ODE solve after warm-up. Solves
before it, the search for modes and proposals included, stand under "before". k-hat is that of the proposal, "-" where
another sampler was chosen. The last column is the largest |z| over the quantiles 0.05, 0.5 and 0.95 of all parameters;
with an ESS of less than some hundreds it says little.

Small targets with nasty posteriors, and many seeds of them, are in `nasty.py` and `campaign.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from equifinal.posterior.study import Study
from equifinal.results.arviz_lines import import_arviz
from equifinal.studies.sample import sample
from tests.support.stored_reference import stored, z_scores
from tests.support.targets import TARGETS


def row(name: str, sampler: str, seed: int) -> str:
    arviz = import_arviz()
    problem = TARGETS[name]()
    began = time.perf_counter()
    data = sample(problem, sampler=sampler, seed=seed, progress=False)
    wall = time.perf_counter() - began
    fibre, _ = Study(problem).coarsest_fibre
    draws = {key: data.posterior[key].values for key in problem.parameters}
    theta = np.stack([draws[key] for key in fibre.names], axis=2)
    xi = fibre.xi(theta.reshape(-1, theta.shape[2])).reshape(*theta.shape[:2], -1)
    columns = [*draws.values(), *np.moveaxis(xi, 2, 0)]
    ess = min(float(arviz.ess(column)) for column in columns)
    rhat = max(float(arviz.rhat(column)) for column in columns)
    solves = data.attrs["solves"] - data.attrs["warmup_solves"]
    notes = " ".join(json.loads(data.attrs["notes"]))
    k_hat = re.search(r"k-hat ([-\d.]+)", notes)
    scores = z_scores(draws, stored(name, problem))
    worst = max(scores, key=lambda key: np.abs(scores[key]).max())
    return (
        f"{name:20}{seed:3}  q {fibre.rank:2} r {fibre.dimension} K {fibre.chart.degree}  {data.attrs['sampler']:16}"
        f"{data.attrs['warmup_solves']:8}{np.mean(data.attrs['acceptance']):6.2f}{k_hat[1] if k_hat else '-':>7}"
        f"{ess:8.0f}{ess / solves:9.4f}{rhat:8.3f}{wall:7.0f} s{np.abs(scores[worst]).max():7.1f} ({worst})  {notes}"
    )


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("targets", nargs="*", default=list(TARGETS))
    given.add_argument("--sampler", default="auto")
    given.add_argument("--seeds", type=int, default=3)
    asked = given.parse_args()
    print(
        f"{'target':20}{'seed':>4} {'':14}{'sampler':16}{'before':>8}{'acc':>6}{'k-hat':>7}{'ESS':>8}{'/solve':>9}"
        f"{'R-hat':>8}{'wall':>7}  {'|z|':>7}"
    )
    for name in asked.targets:
        for seed in range(1, asked.seeds + 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    print(row(name, asked.sampler, seed), flush=True)
                except Exception as error:  # the others are still of interest
                    print(f"{name:20}{seed:3}  {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
