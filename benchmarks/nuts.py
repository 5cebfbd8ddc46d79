"""Beside NUTS: nutpie with our gradients and its low-rank metric, started at modes, on posteriors of `own_models.py`.

    uv run --with nutpie python benchmarks/nuts.py [--draws 1000] [--tune 1000] [--seed 1] [FILE or NAME ...]

Both get the same likelihood and the same coordinates. NUTS begins at the ends of our climbers, as from prior draws it
does not arrive. Its gradients are made one by one, which costs a call from Python each; so its time is also given as if
a gradient cost only what it does in a batch. Effective draws are the least of any parameter, bulk or tail; where R-hat
is above 1.01 they say little, and the true number is less. Last the largest |z| between 1%, 5%, 50%, 95% and 99%
quantiles of the two.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from own_models import SHARED, largest_z, loaded

from equifinal.posterior.posterior import Posterior
from equifinal.results.diagnostics import concerns, mixing
from equifinal.samplers.searching.climbing import search
from equifinal.studies.sample import sample

STEP = 1e-5  # of the prior's derivatives, in sampling coordinates


class NoDensity(Exception):
    """What nutpie takes for a divergence."""

    is_recoverable = True


class Gradient:
    """The log density in sampling coordinates with its gradient, and how often that was asked for."""

    def __init__(self, posterior: Posterior):
        self.posterior, self.asked = posterior, 0

    def __call__(self, u: np.ndarray, **unused: Any) -> tuple[float, np.ndarray]:
        self.asked += 1
        u = np.asarray(u, float)
        d = len(u)
        around = u + STEP * np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)])
        theta = self.posterior.to_theta(around)
        own = self._log_prior(around, theta)
        made = self.posterior.expand(theta[:1])
        slope = (theta[1 : d + 1] - theta[d + 1 :])[np.arange(d), np.arange(d)] / (2 * STEP)
        gradient = made.gradient[0] * slope + (own[1 : d + 1] - own[d + 1 :]) / (2 * STEP)
        value = float(own[0] + made.log_likelihood[0])
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            raise NoDensity
        return value, gradient

    def _log_prior(self, u: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """In sampling coordinates: with the slope of theta."""
        from equifinal.problem.prior import to_theta

        return self.posterior.log_prior(theta) + to_theta(np.ascontiguousarray(u), self.posterior.table)[1]


def by_nuts(posterior: Posterior, starts: np.ndarray, draws: int, tune: int, seed: int) -> tuple[Any, int, float]:
    """Draws as a dataset, gradients that were made, and CPU seconds; those of the warm-up included in both."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    gradient, d = Gradient(posterior), len(posterior.parameters)

    def expand(u: np.ndarray, **unused: Any) -> dict[str, np.ndarray]:
        theta = posterior.to_theta(np.asarray(u, float)[None])[0]
        return {name: np.array(theta[j]) for j, name in enumerate(posterior.parameters)}

    model = from_pyfunc(
        d,
        lambda: gradient,
        lambda *seeds: expand,
        [np.dtype("float64")] * d,
        [()] * d,
        list(posterior.parameters),
        make_initial_point_fn=lambda number: starts[number % len(starts)],
    )
    began = time.process_time()
    options = {"low_rank_modified_mass_matrix": True, "progress_bar": False, "save_warmup": False}
    data = nutpie.sample(model, draws=draws, tune=tune, chains=4, cores=1, seed=seed, **options)
    return data, gradient.asked, time.process_time() - began


def efficiency(dataset: Any) -> tuple[float, float]:
    """The least number of effective draws, and the largest R-hat."""
    found = [mixing(dataset[name].values) for name in dataset.data_vars]
    return min(ess for ess, _ in found), max(rhat for _, rhat in found)


def batched_cost(posterior: Posterior, theta: np.ndarray) -> float:
    """CPU seconds of a gradient in a batch."""
    posterior.expand(theta)
    began = time.process_time()
    for _ in range(5):
        posterior.expand(theta)
    return (time.process_time() - began) / 5 / len(theta)


def compare(path: Path, draws: int, tune: int, seed: int) -> None:
    problem = loaded(path)
    posterior = Posterior(problem)
    sample(problem, seed=0, draws=1, chains=1, sampler="random-walk", warmup=1, progress=False)  # compiled
    began = time.process_time()
    ours = sample(problem, seed=seed, progress=False)
    cpu = time.process_time() - began
    ess, rhat = efficiency(ours.posterior)
    kinds = ", ".join(concern.kind for concern in concerns(ours)) or "sound"
    what = f"{cpu:6.1f} CPU s, {ours.attrs['solves']:,} solves, {kinds}"
    print(f"{path.stem}: ours  {ess:7.0f} effective draws, R-hat {rhat:.3f}, {what}", flush=True)
    starts = np.array([search(posterior, np.random.default_rng([seed, chain])).position for chain in range(4)])
    made, gradients, seconds = by_nuts(posterior, starts, draws, tune, seed)
    theirs, worst = efficiency(made.posterior)
    divergent = int(made.sample_stats["diverging"].sum())
    cost = gradients * batched_cost(posterior, posterior.to_theta(starts[:1]).repeat(64, axis=0))
    print(
        f"{path.stem}: NUTS  {theirs:7.0f} effective draws, R-hat {worst:.3f}, {seconds:6.1f} CPU s"
        f" ({cost:.1f} if batched), {gradients:,} gradients, {divergent} divergences"
    )
    print(
        f"{path.stem}: ours / NUTS per CPU second {ess / cpu / (theirs / seconds):.1f}"
        f" ({ess / cpu / (theirs / cost):.1f} if batched); quantiles differ by at most |z| ="
        f" {largest_z(ours.posterior, made.posterior):.1f}",
        flush=True,
    )


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("files", nargs="*", type=Path)
    given.add_argument("--draws", type=int, default=1000)
    given.add_argument("--tune", type=int, default=1000)
    given.add_argument("--seed", type=int, default=1)
    asked = given.parse_args()
    files = asked.files or [SHARED / "problems" / f"{name}.toml" for name in ("seir2", "casc2", "glv3")]
    for path in files:
        compare(path, asked.draws, asked.tune, asked.seed)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
