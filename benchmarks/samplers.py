"""Effective draws per second and per ODE solve, geometric sampler against random walk, side by side in one run.

    uv run python benchmarks/samplers.py

Efficiency is the least bulk ESS over all parameters and identifiable combinations, after warm-up: per second of
sampling, and per ODE solve spent there. The random walk is tuned: its covariance and scale are learned in a long
warm-up. Where R-hat is above 1.01 an ESS says little, and the true one is less. Then what moves along the fibre cost
beside one ODE solve of HIV, both on one core.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from timing import best_seconds

from equifinal import ode
from equifinal.diagnostics import import_arviz
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.io.toml import load
from equifinal.posterior import Posterior
from equifinal.problem_fibre import fibre_of
from equifinal.samplers import geometric
from equifinal.samplers import geometric_kernel as kernel
from equifinal.samplers.ground import equipment
from equifinal.samplers.run import RunSettings, run
from equifinal.samplers.search import search

MICI = 51.0  # effective draws a second of mici's constrained Hamiltonian Monte Carlo on SI, its geometry fed by hand
RUNS = {
    "random walk": {"sampler": "random-walk", "warmup": 50_000, "draws": 100_000, "thin": 4},
    "geometric": {"sampler": "geometric", "warmup": 5_000, "draws": 20_000},
    "geometric, force": {"sampler": "geometric", "warmup": 5_000, "draws": 20_000, "options": {"force": True}},
    "composite": {"sampler": "geometric", "warmup": 5_000, "draws": 20_000, "options": {"kernel": "composite"}},
}


class Efficiency(NamedTuple):
    ess: float
    rhat: float
    per_second: float
    per_solve: float


def measure(posterior: Posterior, fibre: Fibre, settings: dict[str, Any]) -> Efficiency:
    arviz = import_arviz()
    done = run(posterior, RunSettings(seed=1, **settings), fibre=fibre)
    chains, kept, d = done.theta.shape
    combinations = fibre.xi(done.theta.reshape(-1, d)).reshape(chains, kept, -1)
    columns = [*np.moveaxis(done.theta, 2, 0), *np.moveaxis(combinations, 2, 0)]
    ess = min(float(arviz.ess(column, method="bulk")) for column in columns)
    rhat = max(float(arviz.rhat(column)) for column in columns)
    solves = int((done.tally.solves - done.tally.warmup_solves).sum())
    return Efficiency(ess, rhat, ess / done.sampling_seconds, ess / solves)


def compare() -> None:
    problem = load(example_path("si"))
    posterior, fibre = Posterior(problem), fibre_of(problem)
    for settings in RUNS.values():  # compiled and warm
        run(posterior, RunSettings(**{**settings, "warmup": 20, "draws": 20}), fibre=fibre)
    print(f"SI, 4 chains from prior draws: {'ESS':>17}{'R-hat':>9}{'ESS/s':>9}{'ESS/solve':>12}")
    found = {}
    for name, settings in RUNS.items():
        found[name] = row = measure(posterior, fibre, settings)
        print(f"  {name:32}{row.ess:13.0f}{row.rhat:9.3f}{row.per_second:9.0f}{row.per_solve:12.5f}")
    walk, ours = found["random walk"], found["geometric"]
    print(f"geometric / random walk per ODE solve: {ours.per_solve / walk.per_solve:.0f}x (bar: 50x)")
    print(f"geometric / random walk per second:    {ours.per_second / walk.per_second:.0f}x")
    print(f"geometric / mici per second:           {ours.per_second / MICI:.0f}x (bar: 20x)\n")


def cost() -> None:
    lanes, settings = 2000, geometric.Settings()
    rng = np.random.default_rng(0)
    hiv = Posterior(load(example_path("hiv")))
    arm = hiv.arms[0]
    truth = np.array([2.4e-5, 0.01, 0.5, 3.0, 10.0, 1000.0]) * np.exp(0.02 * rng.standard_normal((lanes, 6)))
    work = arm.arguments(truth)
    solve = best_seconds(lambda: ode.simulate(arm.system, work, arm.times, threads=1, **arm.settings)) / lanes
    print(f"one ODE solve of HIV: {1e6 * solve:.1f} us")
    for name in ("si", "hiv"):
        problem = load(example_path(name))
        posterior, fibre = Posterior(problem), fibre_of(problem)
        rngs = [np.random.default_rng(i) for i in range(4)]
        start = np.stack([search(posterior, rng).position for rng in rngs])
        state = geometric.init(posterior, start, settings, fibre)
        for iteration in range(3000):
            state, _ = geometric.step(posterior, state, rngs, settings, iteration, 3000, fibre)
        position, prior = (np.repeat(part, lanes // 4, axis=0) for part in (state.position, state.log_prior))
        sizes, numbers = (np.repeat(part, lanes // 4) for part in geometric._steps(state, settings))
        d, moves = position.shape[1], settings.fibre_moves
        normals, uniforms = rng.standard_normal((1 + moves, lanes, d)), rng.random((lanes, 1 + 2 * moves))
        counts, along = np.zeros((lanes, kernel.COUNTS), np.int64), np.empty(lanes)
        tools = equipment(fibre, True, False)

        def sweep() -> None:
            kernel.sweep(
                *(*tools, kernel.Weights(), position.copy(), prior.copy(), sizes, numbers),  # noqa: B023
                *(normals, uniforms, along, counts),  # noqa: B023
            )

        spent = best_seconds(sweep) / lanes
        print(
            f"{moves} moves along the fibre of {name}, of {numbers.mean():.1f} steps as warm-up chose: "
            f"{1e6 * spent:.1f} us, {spent / solve:.2f} of that solve (bar: 2)"
        )


if __name__ == "__main__":
    compare()
    cost()
