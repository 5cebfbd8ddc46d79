"""Five statements of the paper that do not hold as printed, each by a run of a minute or so.

    uv run python benchmarks/errata.py [1|2|3|4|5 ...]

1. Without the volume factor J in its acceptance the geometric sampler has another law than the posterior.
2. Without 1/J in the weights of the reconstruction, theta* has.
3. A local Gaussian around the chain's own last theta breaks the pseudo-marginal argument.
4. The stated tuning does not give the stated acceptance.
5. lambda*c/N is not identifiable in the HIV model, lambda*N/c is; and the posterior of lambda is not flat.

Where a mean is compared, its error is the Monte Carlo error of the run, and the exact value comes from quadrature.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from equifinal.examples import example_path
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.posterior.posterior import Posterior
from equifinal.prediction.simulate import simulate
from equifinal.results.arviz_lines import import_arviz
from equifinal.samplers.geometric import sampler as geometric
from equifinal.samplers.geometric.loops import Weights
from equifinal.samplers.proposals.log_sums import choose
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal
from equifinal.samplers.running.run import RunSettings, run
from equifinal.studies.paper.cases import case_study
from equifinal.studies.paper.runs import run_from
from equifinal.studies.paper.si_reference import si_parameter
from equifinal.studies.sample import sample

PRODUCT = """
[model]
equations = "z' = -z\\nz(0) = x*y"
outputs = ["z"]
[parameters]
x = { prior = "uniform", lower = 0.2, upper = 2, coordinate = "log" }
y = { prior = "uniform", lower = 0.5, upper = 4, coordinate = "log" }
[noise]
z = { family = "normal", sd = 1 }
[data]
time = [0]
z = [2]
"""


@contextmanager
def put(module, name: str, value):
    """One function or setting replaced, for as long as it lasts."""
    whole = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, whole)


def tell(what: str, draws: np.ndarray, exact: float) -> None:
    arviz = import_arviz()
    mean, error = draws.mean(), draws.std() / np.sqrt(float(arviz.ess(draws, method="mean")))
    rhat = float(arviz.rhat(draws))
    print(
        f"  {what:58} {mean:.4f} +- {error:.4f}   {(mean - exact) / error:7.1f} standard errors   R-hat {rhat:.3f}",
        flush=True,
    )


def product() -> tuple[Posterior, Fibre, float]:
    """x*y seen with noise, in an unequal box; and the exact posterior mean of x."""
    problem = loads(PRODUCT, name="product")
    x, y = np.linspace(0.2, 2, 2001), np.linspace(0.5, 4, 2001)
    weight = np.exp(-0.5 * (np.outer(x, y) - 2) ** 2).sum(axis=1)
    return Posterior(problem), fibre_of(problem), float(np.average(x, weights=weight))


def first() -> None:
    posterior = Posterior(load(example_path("si")))
    fibre, exact = fibre_of(posterior.problem), si_parameter("gamma").mean
    print(f"1. The geometric acceptance needs J. SI, mean of gamma; exact {exact:.4f}")
    for what, kernel, weights in (
        ("composite, as it should be", "composite", Weights()),
        ("composite without J", "composite", Weights(first_volume=0.0, second_volume=0.0)),
        ("separate moves, as they should be", "separate", Weights()),
        ("separate moves without J", "separate", Weights(fibre_volume=0.0)),
    ):
        with put(geometric, "WEIGHTS", weights):
            settings = RunSettings(
                sampler="geometric", chains=20, draws=5_000, seed=1, warmup=2000, options={"kernel": kernel}
            )
            tell(what, run(posterior, settings, fibre=fibre).theta[:, :, 2], exact)


def second() -> None:
    def lacking(geometry):
        """Reconstruction with weights that lack 1/J, J taken from `geometry`."""

        def reconstruct(state, uniforms, fibre):
            n, m, d = state.theta.shape
            flat = state.theta.reshape(-1, d)
            usable = np.isfinite(flat).all(axis=1)
            log_j = np.full(n * m, -np.inf)
            log_j[usable] = geometry(fibre, flat[usable]).log_volume
            log_weight = np.where(np.isfinite(state.log_weight), state.log_weight + log_j.reshape(n, m), -np.inf)
            at = fibre.to_coordinates(state.theta[np.arange(n), choose(log_weight, uniforms)])
            return state._replace(position=at)

        return reconstruct

    posterior = Posterior(load(example_path("si")))
    fibre, exact = fibre_of(posterior.problem), si_parameter("gamma").mean
    settings = RunSettings(sampler="pseudo-marginal", chains=20, draws=2_000, seed=1, warmup=1000)
    print(f"2. The reconstruction needs 1/J. SI, mean of gamma; exact {exact:.4f}")
    tell("with 1/J", run(posterior, settings, fibre=fibre).theta[:, :, 2], exact)
    for what, geometry in (
        ("without, on the log scale", lambda f, theta: f.geometry_in_coordinates(f.to_coordinates(theta))),
        ("without, in the parameters themselves", lambda f, theta: f.geometry(theta)),
    ):
        with put(pseudo_marginal, "_reconstruct", lacking(geometry)):
            tell(what, run(posterior, settings, fibre=fibre).theta[:, :, 2], exact)


def third() -> None:
    whole = pseudo_marginal.step

    def centred(posterior, state, rngs, settings, iteration, warmup, fibre=None):
        state = state._replace(mean=np.concatenate([state.h, state.position], axis=1))
        return whole(posterior, state, rngs, settings, iteration, warmup, fibre)

    posterior, fibre, exact = product()
    print(f"3. The local Gaussian must not follow the chain. x*y, mean of x; exact {exact:.4f}")
    for aux in (1, 4):
        options = {"law": "local", "aux": aux, "points": "iid"}
        settings = RunSettings(sampler="pseudo-marginal", chains=100, draws=4_000, seed=1, warmup=500, options=options)
        tell(f"{aux} points around an anchor", run(posterior, settings, fibre=fibre).theta[:, :, 0], exact)
        with put(pseudo_marginal, "step", centred):
            tell(f"{aux} points around the last theta", run(posterior, settings, fibre=fibre).theta[:, :, 0], exact)


def fourth() -> None:
    print("4. Acceptance with the stated tuning, 100,000 iterations begun at the true parameters")
    for name in ("si", "hiv"):
        case = case_study(name)
        posterior = Posterior(load(example_path(name)))
        fibre, start = fibre_of(posterior.problem), posterior.to_coordinates(case.truth[None])[0]
        for method, (published, _) in case.published.items():
            if method == "pseudo-marginal":
                continue  # its proposal is not stated
            sampler = method.replace(" ", "-")
            options = dict(case.literal[method])
            settings = RunSettings(sampler=sampler, chains=1, warmup=0, draws=100_000, seed=1, options=options)
            needed = fibre if method == "geometric" else None
            _, tally, _ = run_from(posterior, settings, needed, start)
            shown = f"{name.upper()}, {method}"
            print(f"  {shown:30} {int(tally.accepted.sum()):6} accepted; the paper: {published}%")


def fifth() -> None:
    print("5. What HIV data determine")
    problem = load(example_path("hiv"))
    truth = dict(zip(problem.parameters, map(float, case_study("hiv").truth), strict=True))
    (plain,) = simulate(problem, truth)
    for what, change in (
        ("lambda*N/c kept (lambda doubled, N halved)", {"lambda": 2 * truth["lambda"], "N": truth["N"] / 2}),
        ("lambda*c/N kept (lambda and N doubled)", {"lambda": 2 * truth["lambda"], "N": 2 * truth["N"]}),
    ):
        (other,) = simulate(problem, truth | change)
        print(f"  {what:45} largest change of V: {np.abs(other.outputs['V'] - plain.outputs['V']).max():12.6f}")
    drawn = sample(problem, seed=1, progress=False).posterior
    values = {name: drawn[name].values.ravel() for name in problem.parameters}
    for what, made in (
        ("lambda*N/c", values["lambda"] * values["N"] / values["c"]),
        ("lambda*c/N", values["lambda"] * values["c"] / values["N"]),
    ):
        low, high = np.quantile(made, [0.025, 0.975])
        print(f"  {what:12} 95% of the posterior between {low:.4g} and {high:.4g}: a factor of {high / low:.2f}")
    shares = [float(np.mean(values["lambda"] < x)) for x in (10, 20, 50)]
    m = truth["lambda"] * truth["N"]
    low, high = max(1, m / 5000), min(100, m / 100)
    law = [np.log(x / low) / np.log(high / low) for x in (10, 20, 50)]
    flat = [(x - low) / (high - low) for x in (10, 20, 50)]
    for what, row in (("draws", shares), ("density 1/lambda", law), ("flat density", flat)):
        print(f"  P(lambda < 10, 20, 50), {what:18}" + "".join(f"{x:8.3f}" for x in row))


DEMONSTRATIONS: dict[str, Callable[[], None]] = {"1": first, "2": second, "3": third, "4": fourth, "5": fifth}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for number in sys.argv[1:] or DEMONSTRATIONS:
        began = time.perf_counter()
        DEMONSTRATIONS[number]()
        print(f"   ({time.perf_counter() - began:.0f} s)\n", flush=True)
