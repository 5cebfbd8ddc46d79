"""Fresh data sets, one a seed: is the posterior always found, and are the ranks of the truth uniform?

    uv run python benchmarks/seeds.py [si|hiv] [data sets]

For each seed the truth is drawn from the prior, data are simulated, and the sampler that ``auto`` chooses runs from
prior draws. Where the truth has a much higher posterior density than every draw, the posterior was not found. The
rank of the truth among the draws must be uniform (Talts et al. 2018); the test is a chi-square of ten bins for each
parameter. `equifinal calibrate` says more about ranks; here it is the search that is looked at.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import numpy as np
from scipy import stats

from equifinal.examples import example_path
from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.posterior.study import Study
from equifinal.prediction.fresh_data import from_prior
from equifinal.problem.problem import Problem
from equifinal.samplers import choice as auto
from equifinal.samplers.running.run import RunSettings, run

BINS, DRAWS, THIN = 10, 1000, 2


def one(problem: Problem, fibre, seed: int) -> tuple[np.ndarray, bool, str, int]:
    """Ranks of the truth, whether the posterior was found, which sampler, and its solves."""
    made_up = from_prior(Posterior(problem), np.random.default_rng([seed, 11]))
    theta, posterior = made_up.theta, Posterior(made_up.problem)
    settings, plan, _ = auto.choose(posterior, RunSettings(sampler="auto", draws=DRAWS, thin=THIN, seed=seed), fibre)
    made = run(posterior, settings, fibre=fibre, plan=plan)
    truth = posterior.evaluate(posterior.to_coordinates(theta[None]))
    best = float((made.chunk.log_prior + made.chunk.log_likelihood).max())
    found = float((truth.log_prior + truth.log_likelihood)[0]) < best + len(theta)
    draws = made.theta.reshape(-1, len(theta))
    return np.mean(draws < theta, axis=0), found, settings.sampler, int(made.tally.solves.sum())


def main(name: str, number: int) -> None:
    problem = load(example_path(name))
    fibre, _ = Study(problem).coarsest_fibre
    ranks, missed, chosen, solves, began = [], [], Counter(), [], time.perf_counter()
    for seed in range(number):
        share, found, sampler, spent = one(problem, fibre, seed)
        ranks.append(share)
        chosen[sampler] += 1
        solves.append(spent)
        if not found:
            missed.append(seed)
    print(f"{name}: {number} data sets in {time.perf_counter() - began:.0f} s, median {np.median(solves):.0f} solves")
    print(f"  chosen: {dict(chosen)}; posterior not found: {missed or 'never'}")
    for j, parameter in enumerate(problem.parameters):
        counts = np.histogram(np.array(ranks)[:, j], bins=BINS, range=(0, 1))[0]
        print(f"  {parameter:8} ranks {counts.tolist()}, p = {stats.chisquare(counts).pvalue:.3f}")


if __name__ == "__main__":
    names = [sys.argv[1]] if len(sys.argv) > 1 else ["si", "hiv"]
    for each in names:
        main(each, int(sys.argv[2]) if len(sys.argv) > 2 else 100)
