"""The collapsed sampler against emcee and the adapted random walk, on the same compiled likelihood, in one run.

    uv run --with emcee python benchmarks/collapsed.py

Efficiency is the least bulk ESS over all parameters and identifiable combinations: per ODE solve of the sampling phase,
and per CPU second of it (time of this process on all its cores, without compilation). emcee runs 64 walkers with its
differential-evolution and snooker moves (shares 0.8 and 0.2), from a ball around the mode, after a burn-in. The random
walk has a long warm-up. Where R-hat is above 1.01 an ESS says little, and the true one is less. Then what a cold start
to 4,000 effective draws on HIV costs.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.results.arviz_lines import import_arviz
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.protocol import Task
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.searching.climbing import search

WALKERS = 64
BARS = {"si": (0.6, 500, 20_000), "hiv": (0.45, 10, 10_000)}  # per solve, ratio to others, per CPU second


class Efficiency(NamedTuple):
    ess: float
    rhat: float
    per_solve: float
    per_second: float


def efficiency(theta: np.ndarray, fibre: Fibre, solves: int, seconds: float) -> Efficiency:
    """Of draws (chains, draws, d)."""
    arviz = import_arviz()
    chains, kept, d = theta.shape
    combinations = fibre.xi(theta.reshape(-1, d)).reshape(chains, kept, -1)
    columns = [*np.moveaxis(theta, 2, 0), *np.moveaxis(combinations, 2, 0)]
    ess = min(float(arviz.ess(column, method="bulk")) for column in columns)
    rhat = max(float(arviz.rhat(column)) for column in columns)
    return Efficiency(ess, rhat, ess / solves, ess / seconds)


def ours(posterior: Posterior, fibre: Fibre, seed: int = 1, draws: int = 10_000) -> tuple[Efficiency, int]:
    """And how many solves the preparation took."""
    settings = RunSettings(sampler="collapsed", seed=seed, draws=draws)
    plan = collapsed.prepare(Task(posterior, fibre, settings.sampler_settings()), seed)
    began = time.process_time()
    made = run(posterior, settings, fibre=fibre, plan=plan)
    seconds = time.process_time() - began
    solves = int((made.tally.solves - made.tally.warmup_solves).sum())
    return efficiency(made.theta, fibre, solves, seconds), int(made.tally.warmup_solves.sum())


def walk(posterior: Posterior, fibre: Fibre, draws: int) -> Efficiency:
    warm = RunSettings(sampler="random-walk", warmup=20_000, draws=1, seed=1)
    began = time.process_time()
    run(posterior, warm)
    before = time.process_time() - began
    began = time.process_time()
    made = run(posterior, RunSettings(sampler="random-walk", warmup=20_000, draws=draws, seed=1))
    seconds = time.process_time() - began - before
    return efficiency(made.theta, fibre, 4 * draws, seconds)


def ensemble(posterior: Posterior, fibre: Fibre, steps: int) -> Efficiency:
    import emcee

    rng = np.random.default_rng(1)
    mode = search(posterior, rng).position
    start = mode + 1e-3 * rng.standard_normal((WALKERS, len(mode)))

    def log_density(u: np.ndarray) -> np.ndarray:
        found = posterior.evaluate(u)
        return found.log_prior + found.log_likelihood

    moves = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)]
    sampler = emcee.EnsembleSampler(WALKERS, len(mode), log_density, moves=moves, vectorize=True)
    sampler.random_state = np.random.RandomState(1).get_state()
    state = sampler.run_mcmc(start, steps)
    sampler.reset()
    began = time.process_time()
    sampler.run_mcmc(state, steps)
    seconds = time.process_time() - began
    chain = np.swapaxes(sampler.get_chain(), 0, 1)
    theta = posterior.to_theta(chain.reshape(-1, len(mode))).reshape(chain.shape)
    return efficiency(theta, fibre, WALKERS * steps, seconds)


def compare(name: str) -> None:
    problem = load(example_path(name))
    posterior, fibre = Posterior(problem), fibre_of(problem)
    ours(posterior, fibre, draws=200)  # compiled and warm
    walk_draws, steps = (400_000, 8_000) if name == "si" else (100_000, 4_000)
    found = {"collapsed": ours(posterior, fibre)[0]}
    found["random walk"] = walk(posterior, fibre, walk_draws)
    found["emcee DE + snooker"] = ensemble(posterior, fibre, steps)
    per_solve, ratio, per_second = BARS[name]
    print(f"{name}: {'ESS':>27}{'R-hat':>9}{'ESS/solve':>12}{'ESS/CPU s':>12}")
    for label, row in found.items():
        print(f"  {label:22}{row.ess:10.0f}{row.rhat:9.3f}{row.per_solve:12.5f}{row.per_second:12.0f}")
    best = found["collapsed"]
    print(
        f"  per solve {best.per_solve:.2f} (bar {per_solve}), per CPU second {best.per_second:.0f} (bar {per_second})"
    )
    for label, row in list(found.items())[1:]:
        print(f"  collapsed / {label} per CPU second: {best.per_second / row.per_second:.0f}x (bar {ratio}x)")


def cold_start() -> None:
    problem = load(example_path("hiv"))
    posterior, fibre = Posterior(problem), fibre_of(problem)
    print("hiv, from prior draws to 4,000 effective draws (bar: under 12,000 solves)")
    for seed in range(1, 6):
        row, before = ours(posterior, fibre, seed)
        after = 4000 / row.per_solve
        print(f"  seed {seed}: {before} solves before, {after:.0f} after, {before + after:.0f} in all")


if __name__ == "__main__":
    for name in BARS:
        compare(name)
    cold_start()
