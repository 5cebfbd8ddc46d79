"""What samplers do between ODE solves, beside one ODE solve of HIV, on one core.

    uv run python benchmarks/sampler_costs.py

Moves along the fibre of the geometric sampler, and estimates of p_C(c) of the pseudo-marginal one, for SI and HIV near
the posterior. `samplers.py` prints this as well.
"""

from __future__ import annotations

import numpy as np
from timing import best_seconds

from equifinal import ode
from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.geometric import loops as kernel
from equifinal.samplers.geometric import sampler as geometric
from equifinal.samplers.geometric.scaled_fibre import equipment
from equifinal.samplers.points.law import Moments
from equifinal.samplers.protocol import Task
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal
from equifinal.samplers.running.run import RunSettings, run
from equifinal.samplers.searching.climbing import search

LANES = 2000
BATCH = 200  # values of c for which p_C is estimated at once


def seconds_of_a_solve(rng: np.random.Generator) -> float:
    hiv = Posterior(load(example_path("hiv")))
    (likelihood,) = hiv.likelihoods
    truth = np.array([2.4e-5, 0.01, 0.5, 3.0, 10.0, 1000.0]) * np.exp(0.02 * rng.standard_normal((LANES, 6)))
    work = likelihood.system, likelihood.arguments(truth), likelihood.times
    return best_seconds(lambda: ode.simulate(*work, threads=1, **likelihood.settings), 20) / LANES


def seconds_of_moves(posterior: Posterior, fibre: Fibre, rng: np.random.Generator) -> tuple[float, float]:
    """For all moves along the fibre of an iteration, and how many steps each has."""
    settings = geometric.Settings()
    rngs = [np.random.default_rng(i) for i in range(4)]
    start = np.stack([search(posterior, rng).position for rng in rngs])
    state = geometric.begin(Task(posterior, fibre, settings), start).state
    for iteration in range(3000):
        state, _ = geometric.step(Task(posterior, fibre, settings, 3000), state, rngs, iteration)
    position, prior = (np.repeat(part, LANES // 4, axis=0) for part in (state.position, state.log_prior))
    sizes, numbers = (np.repeat(part, LANES // 4) for part in geometric._steps(state, settings))
    d, moves = position.shape[1], settings.fibre_moves
    normals, uniforms = rng.standard_normal((1 + moves, LANES, d)), rng.random((LANES, 1 + 2 * moves))
    counts, along = np.zeros((LANES, kernel.COUNTS), np.int64), np.empty(LANES)
    tools = equipment(fibre, True, False)

    def sweep() -> None:
        kernel.sweep(
            *(*tools, kernel.Weights(), position.copy(), prior.copy(), sizes, numbers),
            *(normals, uniforms, along, counts),
        )

    return best_seconds(sweep, 20) / LANES, float(numbers.mean())


def seconds_of_an_estimate(posterior: Posterior, fibre: Fibre, rng: np.random.Generator) -> float:
    """In batches of c from a short run; the law of points is that of its first chain."""
    short = RunSettings("pseudo-marginal", warmup=1000, draws=BATCH, seed=1)
    theta = run(posterior, short, fibre=fibre).theta
    c = fibre.xi(theta.reshape(-1, theta.shape[2])[rng.permutation(theta.shape[0] * BATCH)[:BATCH]])
    tool = pseudo_marginal.estimator(fibre, pseudo_marginal.Settings())
    points = np.stack([tool.uniforms(rng) for _ in range(BATCH)])
    learned = Moments(np.zeros((BATCH, 0)), np.zeros((BATCH, 0, 0)))  # nothing: the fibres of both are curves
    return best_seconds(lambda: tool.estimate(c, points, learned), 20) / BATCH


def main() -> None:
    rng = np.random.default_rng(0)
    moves, points = geometric.Settings().fibre_moves, pseudo_marginal.Settings().aux
    solve = seconds_of_a_solve(rng)
    print(f"one ODE solve of HIV: {1e6 * solve:.1f} us")
    for name in ("si", "hiv"):
        problem = load(example_path(name))
        posterior, fibre = Posterior(problem), fibre_of(problem)
        spent, steps = seconds_of_moves(posterior, fibre, rng)
        print(
            f"{moves} moves along the fibre of {name}, of {steps:.1f} steps as warm-up chose: "
            f"{1e6 * spent:.1f} us, {spent / solve:.2f} of that solve (bar: 2)"
        )
        spent = seconds_of_an_estimate(posterior, fibre, rng)
        print(
            f"one estimate of p(c) of {name} from {points} points: "
            f"{1e6 * spent:.1f} us, {spent / solve:.2f} of that solve (bar: 1)"
        )


if __name__ == "__main__":
    main()
