"""Right and fast on ridges: equifinal beside general samplers, with the same likelihood and the same CPU time.

    uv run --with emcee --with pints --with pypesto --with nutpie --with numpyro --with mici \
        python benchmarks/ridges.py [--budget 100] [--seed 1] [--tools a,b] [--again] [--log FILE] [PROBLEM ...]
    uv run python benchmarks/ridges.py --page        writes docs/ridges.md from what the log has

Every tool gets equifinal's compiled likelihood (and exact gradients, if it uses them) in the same unbounded
coordinates, four chains, and so many CPU seconds for warm-up and draws together. The other tools begin where
equifinal's climbers end, which costs them nothing: from prior draws most do not arrive. equifinal begins with prior
draws, and its search is paid for. Importing and compiling count for nobody.

Error: the largest difference, over parameters, between the share of draws below the exact 5%, 50% and 95% quantiles
and 5%, 50% and 95%. Where there is no exact result, quantiles come from importance sampling without any Markov chain
(`campaign.py`), and where that is not worth enough, from a long run of equifinal with another seed; the page says
which. Effective draws are the least of any parameter, in bulk or tails. Results go to a log, a line each; what is in it
is not run again, unless asked for by ``--again``: of a problem and a tool the last line counts.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from campaign import QUANTILES, reference
from nuts import Gradient, NoDensity
from own_models import SHARED, TAIL

from equifinal.formats.load import load
from equifinal.posterior.posterior import Posterior
from equifinal.results.diagnostics import concerns, mixing
from equifinal.samplers.searching.climbing import search
from equifinal.studies.paper.cases import case_study
from equifinal.studies.sample import sample

HERE = Path(__file__).parent
LOG, PAGE = HERE / "ridges.jsonl", HERE.parent / "docs" / "ridges.md"
CHAINS, LEVELS = 4, (0.05, 0.5, 0.95)
WARMUP_EACH = 3  # iterations of samplers with gradients for each second of the budget: a third to a half of it here
REFERENCE, ENOUGH = "reference", 5_000  # its name in the log; effective draws for importance sampling to be one
SHOWN = {
    "si": "SI epidemic, 4 parameters, 3 determined",
    "hiv": "HIV, 6 parameters, 5 determined",
    "mrna": "Transfected mRNA (M1a), 6 parameters, two exchangeable, onset unknown",
    "onecomp": "One compartment, Michaelis-Menten, 4 parameters, a long tail",
    "seir2": "SEIR in two groups, 9 parameters",
    "glv3": "Lotka-Volterra, 3 species, 13 parameters",
}
Chains = list[np.ndarray]  # of each chain, its draws in coordinates


class Clock:
    """CPU seconds of this process since it was made, and whether they are used up."""

    def __init__(self, budget: float):
        self.began, self.budget = time.process_time(), budget

    @property
    def used(self) -> float:
        return time.process_time() - self.began

    def over(self, share: float = 1.0) -> bool:
        return self.used > share * self.budget


class Density:
    """The posterior in coordinates, in batches or one by one; minus infinity where it cannot be solved."""

    def __init__(self, posterior: Posterior, starts: np.ndarray):
        self.posterior, self.starts, self.gradient = posterior, starts, Gradient(posterior)

    def many(self, u: np.ndarray) -> np.ndarray:
        made = self.posterior.evaluate(np.ascontiguousarray(np.atleast_2d(np.asarray(u, float))))
        found = made.log_prior + made.log_likelihood
        return np.where(np.isfinite(found), found, -np.inf)

    def one(self, u: np.ndarray) -> float:
        return float(self.many(u)[0])

    def slope(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            return self.gradient(u)
        except NoDensity:
            return -np.inf, np.zeros(len(u))


def emcee(density: Density, clock: Clock, seed: int) -> Chains:
    """Moves by differential evolution, as its authors advise for hard posteriors; each walker counts as a chain."""
    import emcee

    d = density.starts.shape[1]
    walkers = 4 * max(2 * d, 10)
    rng = np.random.default_rng(seed)
    begin = density.starts[np.arange(walkers) % CHAINS] + 0.01 * rng.standard_normal((walkers, d))
    moves = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)]
    sampler = emcee.EnsembleSampler(walkers, d, density.many, moves=moves, vectorize=True)
    state = begin
    while not clock.over():  # room is made for all iterations at once: few at a time
        state = sampler.run_mcmc(state, 50, skip_initial_state_check=True)
    kept = sampler.get_chain()[sampler.iteration // 2 :]  # (steps, walkers, d)
    return [kept[:, k] for k in range(walkers)]  # each a chain: the same of all tools but for their number


def pints(density: Density, clock: Clock, seed: int) -> Chains:
    """Haario and Bardenet's adaptive covariance, its default."""
    import pints

    np.random.seed(seed)  # noqa: NPY002, its own generator
    chains: Chains = []
    for k in range(CHAINS):
        sampler = pints.HaarioBardenetACMC(density.starts[k])
        sampler.set_initial_phase(True)
        draws: list[np.ndarray] = []
        while not clock.over((k + 1) / CHAINS):
            if len(draws) == 200 * len(density.starts[k]):
                sampler.set_initial_phase(False)
            told = sampler.tell(density.one(sampler.ask()))
            if told is not None:
                draws.append(told[0])
        chains.append(np.array(draws[len(draws) // 2 :]))
    return chains


def _pypesto(density: Density, clock: Clock, seed: int, make: Callable[[], Any]) -> Chains:
    import pypesto

    logging.getLogger("pypesto").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002, its own generator
    d = density.starts.shape[1]
    objective = pypesto.Objective(fun=lambda u: -density.one(u))
    problem = pypesto.Problem(objective, lb=np.full(d, -60.0), ub=np.full(d, 60.0))
    chains: Chains = []
    for k in range(CHAINS):
        sampler = make()
        sampler.initialize(problem, density.starts[k])
        while not clock.over((k + 1) / CHAINS):
            sampler.sample(100)
        trace = np.asarray(sampler.get_samples().trace_x)[0]
        chains.append(trace[len(trace) // 2 :])
    return chains


def pypesto_metropolis(density: Density, clock: Clock, seed: int) -> Chains:
    from pypesto.sample import AdaptiveMetropolisSampler

    return _pypesto(density, clock, seed, lambda: AdaptiveMetropolisSampler({"show_progress": False}))


def pypesto_tempering(density: Density, clock: Clock, seed: int) -> Chains:
    from pypesto.sample import AdaptiveMetropolisSampler, AdaptiveParallelTemperingSampler

    def make() -> Any:
        inner = AdaptiveMetropolisSampler({"show_progress": False})
        # all chains start where they are told to: by default a tenth of a draw between the bounds is added, and
        # bounds say nothing in unbounded coordinates
        options = {"show_progress": False, "warm_start_parallel_chains": 1.0}
        return AdaptiveParallelTemperingSampler(internal_sampler=inner, n_chains=5, options=options)

    return _pypesto(density, clock, seed, make)


def nutpie(density: Density, clock: Clock, seed: int) -> Chains:
    """NUTS with its low-rank metric."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    d = density.starts.shape[1]
    model = from_pyfunc(
        d,
        lambda: density.gradient,
        lambda *seeds: lambda u, **unused: {"u": np.asarray(u, float)},
        [np.dtype("float64")],
        [(d,)],
        ["u"],
        make_initial_point_fn=lambda number: density.starts[number % CHAINS],
    )
    options = {"low_rank_modified_mass_matrix": True, "progress_bar": False, "blocking": False}
    tune = max(100, min(1000, int(WARMUP_EACH * clock.budget)))
    running = nutpie.sample(model, draws=100_000, tune=tune, chains=CHAINS, cores=CHAINS, seed=seed, **options)
    while not clock.over():
        time.sleep(0.2)
    data = running.abort()
    found = data.posterior["u"].values
    return [chain[np.isfinite(chain).all(axis=1)] for chain in found]


def numpyro(density: Density, clock: Clock, seed: int) -> Chains:
    """NUTS with a dense metric and its own adaptation; the likelihood is called back from JAX, with its gradient."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer.hmc import hmc

    jax.config.update("jax_enable_x64", True)
    d = density.starts.shape[1]
    shapes = (jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((d,), jnp.float64))

    def called(u: Any) -> tuple[np.ndarray, np.ndarray]:
        value, slope = density.slope(np.asarray(u, float))
        return np.array(-value if np.isfinite(value) else np.inf), -slope

    @jax.custom_vjp
    def potential(u: Any) -> Any:
        return jax.pure_callback(called, shapes, u)[0]

    def forward(u: Any) -> Any:
        return jax.pure_callback(called, shapes, u)

    potential.defvjp(forward, lambda slope, g: (g * slope,))
    tune = max(100, min(1000, int(WARMUP_EACH * clock.budget)))
    chains: Chains = []
    for k in range(CHAINS):
        began = time.process_time()
        init, step = hmc(potential, algo="NUTS")
        options = {"num_warmup": tune, "rng_key": jax.random.PRNGKey(seed * 100 + k), "dense_mass": True}
        step = jax.jit(step)
        state = step(init(jnp.asarray(density.starts[k]), **options))
        state.z.block_until_ready()
        clock.began += time.process_time() - began  # compiling counts for nobody
        draws = []
        while not clock.over((k + 1) / CHAINS):
            state = step(state)
            if int(state.i) > tune:
                draws.append(np.asarray(state.z))
        chains.append(np.array(draws).reshape(-1, d))
    return chains


def mici(density: Density, clock: Clock, seed: int) -> Chains:
    """Hamiltonian Monte Carlo with dynamic trajectories, dual averaging and a learned diagonal metric."""
    import mici

    logging.disable(logging.CRITICAL)  # it says at length that it was interrupted
    rng = np.random.default_rng(seed)
    tune = max(100, min(1000, int(WARMUP_EACH * clock.budget)))
    chains: Chains = []
    for k in range(CHAINS):

        def slope(u: np.ndarray, share: float = (k + 1) / CHAINS) -> tuple[np.ndarray, float]:
            if clock.over(share):
                raise KeyboardInterrupt  # at which mici returns what it has
            value, found = density.slope(u)
            return -found, -value

        system = mici.systems.EuclideanMetricSystem(neg_log_dens=lambda u: -density.one(u), grad_neg_log_dens=slope)
        integrator = mici.integrators.LeapfrogIntegrator(system)
        sampler = mici.samplers.DynamicMultinomialHMC(system, integrator, rng)
        adapters = [mici.adapters.DualAveragingStepSizeAdapter(), mici.adapters.OnlineVarianceMetricAdapter()]
        found = sampler.sample_chains(
            tune,
            20_000,
            [density.starts[k]],
            adapters=adapters,
            display_progress=False,
            monitor_stats=[],
            trace_funcs=[lambda state: {"u": state.pos}],
        )
        draws = np.asarray(found.traces["u"][0])
        filled = np.isfinite(draws).all(axis=1) & (draws != 0).any(axis=1)
        chains.append(draws[filled])
    return chains


TOOLS: dict[str, tuple[Callable[[Density, Clock, int], Chains], str, str]] = {
    "emcee": (emcee, "emcee", "emcee, differential evolution and snooker moves"),
    "PINTS": (pints, "pints", "PINTS, Haario-Bardenet adaptive covariance"),
    "pyPESTO AM": (pypesto_metropolis, "pypesto", "pyPESTO, adaptive Metropolis"),
    "pyPESTO PT": (pypesto_tempering, "pypesto", "pyPESTO, adaptive parallel tempering, 5 temperatures with one start"),
    "nutpie": (nutpie, "nutpie", "nutpie (PyMC's fast NUTS), low-rank metric"),
    "NumPyro": (numpyro, "numpyro", "NumPyro, NUTS, dense metric"),
    "mici": (mici, "mici", "mici, dynamic HMC, diagonal metric"),
}


IMPORTED = {
    "emcee": ["emcee"],
    "pints": ["pints"],
    "pypesto": ["pypesto", "pypesto.sample"],
    "nutpie": ["nutpie", "nutpie.compiled_pyfunc"],
    "numpyro": ["jax", "jax.numpy", "numpyro.infer.hmc"],
    "mici": ["mici"],
}


def problem_of(name: str) -> Any:
    return load(SHARED / "problems" / f"{name}.toml" if (SHARED / "problems" / f"{name}.toml").exists() else name)


def reference_of(name: str, problem: Any) -> tuple[str, dict[str, list[float]]]:
    """How the quantiles were found, and what they are."""
    if name in ("si", "hiv"):
        case = case_study(name)
        marginals = {parameter: case.marginal(parameter, True) for parameter in problem.parameters}
        return case.reference, {key: [float(m.quantile(p)) for p in LEVELS] for key, m in marginals.items()}
    made = reference(problem, 1)
    if made["effective"] >= ENOUGH:
        columns = [QUANTILES.index(level) for level in LEVELS]
        found = {key: [row["quantiles"][k] for k in columns] for key, row in made["parameters"].items()}
        return f"importance sampling without a Markov chain, {made['effective']:,.0f} effective draws", found
    data = sample(problem, seed=1000, draws=40_000, progress=False, predictive=False)
    how = "a long run of equifinal" + ("" if not concerns(data) else ", which is not sound itself")
    return how, {key: [float(np.quantile(data.posterior[key].values, p)) for p in LEVELS] for key in problem.parameters}


def judged(name: str, theta: list[np.ndarray], parameters: list[str], known: dict[str, list[float]]) -> dict[str, Any]:
    """Of draws in parameters, chain by chain."""
    length = min((len(chain) for chain in theta), default=0)
    if length < 4:
        return {"draws": length * len(theta), "error": None, "ess": 0.0, "rhat": None}
    draws = np.array([chain[-length:] for chain in theta])
    mixed = [mixing(draws[:, :, j]) for j in range(len(parameters))]
    missed = {
        key: max(abs(float((draws[:, :, j] <= q).mean()) - p) for q, p in zip(known[key], LEVELS, strict=True))
        for j, key in enumerate(parameters)
    }
    found = {
        "draws": draws[:, :, 0].size,
        "error": max(missed.values()),
        "worst": max(missed, key=lambda key: missed[key]),
        "ess": min(ess for ess, _ in mixed),
        "rhat": max(rhat for _, rhat in mixed),
    }
    if name == "mrna":
        one, other = (draws[:, :, parameters.index(key)] for key in ("beta", "delta"))
        found["exact"] = ["P(beta < delta)", float((one < other).mean()), 0.5]
    if name == "onecomp":
        found["exact"] = ["P(K_m > 20)", float((draws[:, :, parameters.index("K_m")] > 20).mean()), TAIL[20]]
    return found


def ours(problem: Any, seed: int) -> tuple[list[np.ndarray], float, str]:
    """A run with default settings, which ends by itself."""
    began = time.process_time()
    data = sample(problem, seed=seed, progress=False, predictive=False)
    used = time.process_time() - began
    kinds = ", ".join(concern.kind for concern in concerns(data)) or "sound"
    chains = np.stack([data.posterior[key].values for key in problem.parameters], axis=2)
    return list(chains), used, kinds


def costs_of(density: Density) -> dict[str, float]:
    """CPU milliseconds of an evaluation: alone, with its gradient, and as one of a batch."""
    batch = np.tile(density.starts, (50, 1))
    asked = {
        "alone": lambda: [density.one(batch[k]) for k in range(20)],
        "gradient": lambda: [density.slope(batch[k]) for k in range(20)],
        "batch": lambda: density.many(batch),
    }
    found = {}
    for kind, work in asked.items():
        times = []
        for _ in range(6):  # the first compiles
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
        found[kind] = round(1000 * min(times) / (len(batch) if kind == "batch" else 20), 4)
    return found


def logged(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Of each problem and tool the last line."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["problem"], row["tool"]): row for row in rows}


def keep(path: Path, row: dict[str, Any]) -> None:
    row |= {"date": str(date.today()), "machine": machine()}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def run(name: str, tools: list[str], budget: float, seed: int, log: Path, again: bool) -> None:
    done = logged(log)
    wanted = [tool for tool in tools if again or (name, tool) not in done]
    if not wanted:
        return
    problem = problem_of(name)
    posterior = Posterior(problem)
    parameters = list(posterior.parameters)
    sample(problem, seed=0, draws=20, chains=1, progress=False, predictive=False)  # compiled
    starts = np.array([search(posterior, np.random.default_rng([seed, k])).position for k in range(CHAINS)])
    if (name, REFERENCE) not in done:
        how, known = reference_of(name, problem)
        costs = costs_of(Density(posterior, starts))
        keep(log, {"problem": name, "tool": REFERENCE, "how": how, "quantiles": known, "costs": costs})
        print({"problem": name, "reference": how, "costs": costs}, flush=True)
    known = logged(log)[name, REFERENCE]["quantiles"]
    for tool in wanted:
        note = ""
        if tool == "equifinal":
            theta, used, note = ours(problem, seed)
            package = "equifinal"
        else:
            sampler, package, _ = TOOLS[tool]
            density = Density(posterior, starts)
            density.slope(starts[0])
            density.many(np.tile(starts, (20, 1)))  # compiled
            for module in IMPORTED[package]:
                import_module(module)
            clock = Clock(budget)
            try:
                chains = sampler(density, clock, seed)
            except Exception as error:  # another tool's own: said in the table
                chains, note = [], f"{type(error).__name__}: {str(error)[:80]}"
            used = clock.used
            theta = [posterior.to_theta(np.ascontiguousarray(chain)) for chain in chains if len(chain)]
        row = {"problem": name, "tool": tool, "version": version(package), "budget": budget, "cpu": round(used, 1)}
        row |= judged(name, theta, parameters, known) | {"note": note, "seed": seed}
        keep(log, row)
        shown = {key: row.get(key) for key in ("problem", "tool", "cpu", "error", "ess", "rhat", "note")}
        print(shown, flush=True)


def machine() -> str:
    model = next((line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), "")
    return f"{model or platform.processor()}, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("problems", nargs="*", default=[])
    given.add_argument("--budget", type=float, default=100.0, help="CPU seconds for each tool and problem")
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--tools", default=",".join([*TOOLS, "equifinal"]))
    given.add_argument("--again", action="store_true", help="also what is in the log, as equifinal after a change")
    given.add_argument("--log", type=Path, default=LOG)
    given.add_argument("--page", action="store_true", help="write the page from the log")
    asked = given.parse_args()
    if asked.page:
        from ridges_page import write

        write(logged(asked.log), PAGE, SHOWN, {tool: entry[2] for tool, entry in TOOLS.items()})
        return
    for name in asked.problems or SHOWN:
        run(name, asked.tools.split(","), asked.budget, asked.seed, asked.log, asked.again)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
