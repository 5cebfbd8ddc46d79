"""Effective draws per second and per ODE solve, all samplers side by side in one run.

    uv run python benchmarks/samplers.py

Efficiency is the least bulk ESS over all parameters (theta) and over all identifiable combinations (c), after warm-up:
per second of sampling, and per ODE solve spent there. A least over parameters alone flatters a sampler where most of
their variance lies along fibres: so both are shown. The random walk is tuned: its covariance and scale are learned in
a long warm-up. Where R-hat is above 1.01 an ESS says little, and the true one is less. Then charts of a circle, one
against two; and what samplers do between ODE solves (`sampler_costs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import sampler_costs

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.results.arviz_lines import import_arviz
from equifinal.samplers.pseudo_marginal.settings import PAPER
from equifinal.samplers.running.run import RunSettings, run

MICI = 51.0  # effective draws a second of mici's constrained Hamiltonian Monte Carlo on SI, its geometry fed by hand
BARS = {"si": 0.3, "hiv": 0.04}  # least ESS over theta per ODE solve, pseudo-marginal
LENGTH = {"warmup": 5_000, "draws": 20_000}
RUNS: dict[str, dict[str, Any]] = {
    "random walk": {"sampler": "random-walk", "warmup": 50_000, "draws": 100_000, "thin": 4},
    "geometric": {"sampler": "geometric", **LENGTH},
    "geometric, force": {"sampler": "geometric", **LENGTH, "options": {"force": True}},
    "composite": {"sampler": "geometric", **LENGTH, "options": {"kernel": "composite"}},
    "pseudo-marginal": {"sampler": "pseudo-marginal", **LENGTH},
}
# on HIV rank-revealing QR leaves beta free, which is no chart
PUBLISHED = {"si": PAPER, "hiv": {**PAPER, "partition": "volume"}}
CIRCLE = """
[model]
equations = "z' = -z\\nz(0) = x^2 + y^2"
outputs = ["z"]
[parameters]
x = { prior = "uniform", lower = -1, upper = 0.7, coordinate = "identity" }
y = { prior = "normal", mean = 0.2, sd = 0.6, lower = -0.5 }
[noise]
z = { family = "normal", sd = 0.25 }
[data]
time = [0]
z = [0.6]
"""


class Efficiency(NamedTuple):
    theta: float  # least ESS
    c: float
    rhat: float
    seconds: float
    solves: int
    iterations: int

    @property
    def least(self) -> float:
        return min(self.theta, self.c)


def measure(posterior: Posterior, fibre: Fibre, settings: Mapping[str, Any]) -> Efficiency:
    arviz = import_arviz()
    done = run(posterior, RunSettings(seed=1, **settings), fibre=fibre)
    chains, kept, d = done.theta.shape
    combinations = fibre.xi(done.theta.reshape(-1, d)).reshape(chains, kept, -1)
    theta, c = np.moveaxis(done.theta, 2, 0), np.moveaxis(combinations, 2, 0)
    ess_theta, ess_c = (min(float(arviz.ess(column, method="bulk")) for column in part) for part in (theta, c))
    rhat = max(float(arviz.rhat(column)) for column in (*theta, *c))
    solves = int((done.tally.solves - done.tally.warmup_solves).sum())
    return Efficiency(ess_theta, ess_c, rhat, done.sampling_seconds, solves, int(done.tally.sampled.sum()))


def compare(name: str) -> dict[str, Efficiency]:
    problem = load(example_path(name))
    posterior, fibre = Posterior(problem), fibre_of(problem)
    published = {"sampler": "pseudo-marginal", **LENGTH, "options": PUBLISHED[name]}
    runs = {**RUNS, "pseudo-marginal, as published": published}
    for settings in runs.values():  # compiled and warm
        run(posterior, RunSettings(**{**settings, "warmup": 20, "draws": 20}), fibre=fibre)
    head = f"{name.upper()}, 4 chains from prior draws"
    print(f"{head:32}{'least ESS':>16}{'R-hat':>8}{'ESS/s':>15}{'ESS/solve':>20}")
    print(f"{'':32}{'theta':>8}{'c':>8}{'':8}{'theta':>8}{'c':>7}{'theta':>11}{'c':>9}")
    found = {}
    for title, settings in runs.items():
        found[title] = row = measure(posterior, fibre, settings)
        print(
            f"  {title:30}{row.theta:8.0f}{row.c:8.0f}{row.rhat:8.3f}"
            f"{row.theta / row.seconds:8.0f}{row.c / row.seconds:7.0f}"
            f"{row.theta / row.solves:11.5f}{row.c / row.solves:9.5f}",
            flush=True,
        )
    ours = found["pseudo-marginal"]
    print(f"pseudo-marginal: {ours.theta / ours.solves:.3f} effective draws per ODE solve (bar: {BARS[name]})\n")
    return found


def judge_geometric(found: Mapping[str, Efficiency]) -> None:
    """On SI, by the least over parameters and combinations."""
    walk, ours = found["random walk"], found["geometric"]
    solves = (ours.least / ours.solves) / (walk.least / walk.solves)
    per_second = ours.least / ours.seconds
    print(f"geometric / random walk per ODE solve: {solves:.0f}x (bar: 50x)")
    print(f"geometric / random walk per second:    {per_second / (walk.least / walk.seconds):.0f}x")
    print(f"geometric / mici per second:           {per_second / MICI:.0f}x (bar: 20x)\n")


def charts() -> None:
    """A circle cut by a box: where one chart's determinant vanishes, the other's does not."""
    problem = loads(CIRCLE, name="circle")
    posterior, fibre = Posterior(problem), fibre_of(problem)
    print("Circle, pseudo-marginal: effective draws per iteration, least over x, y and c")
    for aux, points in ((1, "iid"), (8, "iid"), (128, "lattice")):
        shown = []
        for options in ({"partition": ["x"]}, {"charts": [["x"], ["y"]]}):
            settings = {"sampler": "pseudo-marginal", **LENGTH, "options": {"aux": aux, "points": points, **options}}
            row = measure(posterior, fibre, settings)
            shown.append(row.least / row.iterations)
        print(f"  {aux:4} points ({points}): one chart {shown[0]:.3f}, two {shown[1]:.3f}", flush=True)
    print()


if __name__ == "__main__":
    judge_geometric(compare("si"))
    compare("hiv")
    charts()
    sampler_costs.main()
