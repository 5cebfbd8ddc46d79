"""Many runs of nasty problems: is a run that is called sound ever wrong?

    uv run python benchmarks/campaign.py [--seeds 20] [--log FILE] [PROBLEM ...]
    uv run python benchmarks/campaign.py --references [--effective N] [PROBLEM ...]
    uv run python benchmarks/campaign.py --show [--log FILE]

Every run of a problem of `nasty.py` has default settings and begins with prior draws. The shares of its draws below
the 1%, 5%, 50%, 95% and 99% quantiles of the reference are compared with these shares, for every parameter, in standard
errors of the run (by ArviZ's effective number of draws for this event) and of the reference together. Shares, because
a quantile itself has no standard error where it lies in a gap between modes. Runs are added to the log, a line each,
and those that are in it already are not made again.

References (`nasty_references.json`) are importance sampling without any Markov chain, in coordinates in which the prior
is standard normal: rounds from mixtures that are fitted to all weighted draws before, beside which a share of every
round comes from the prior itself, so that nothing the prior allows is out of reach; where draws of the prior are worth
enough by themselves, there is no mixture that could miss anything. They share the likelihood with the samplers, and
nothing else. The errors of quantiles come from the weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from nasty import NASTY

from equifinal.posterior.posterior import Posterior
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import import_arviz
from equifinal.results.diagnostics import concerns, summarise
from equifinal.samplers.proposals import mixture as mixtures
from equifinal.studies.sample import sample

REFERENCES = Path(__file__).parent / "nasty_references.json"
QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
FIRST, EACH, PRIOR_SHARE = 200_000, 60_000, 0.15  # draws of the reference
LEAST_ROUNDS, MOST_ROUNDS, EFFECTIVE = 3, 12, 60_000
PRIOR_ENOUGH, PRIOR_ROUNDS = 0.005, 40  # effective draws for each of the prior, for it to be used alone
COMPONENTS, FITTED = 16, 8_000


# --- references ---


def reference(problem: Problem, seed: int, enough: int = EFFECTIVE) -> dict[str, Any]:
    """Quantiles of each parameter, the errors of their probabilities, and log Z, by importance sampling."""
    rng, posterior = np.random.default_rng(seed), Posterior(problem)
    priors = [problem.priors[name] for name in posterior.parameters]

    def theta_of(z: np.ndarray) -> np.ndarray:
        return np.column_stack([prior.quantile(special.ndtr(z[:, j])) for j, prior in enumerate(priors)])

    z, log_l, log_weight = np.empty((0, len(priors))), np.empty(0), np.empty(0)
    laws: list[mixtures.Mixture | None] = []
    sizes: list[int] = []
    prior_alone, number = True, 0
    while number <= (PRIOR_ROUNDS if prior_alone else MOST_ROUNDS * enough / EFFECTIVE):
        law = None if prior_alone else _fitted(z, log_weight, rng)
        size = FIRST if prior_alone else EACH
        mine = rng.standard_normal((size, len(priors)))
        if law is not None:
            from_law = rng.random(size) >= PRIOR_SHARE
            mine[from_law] = law.sample(rng, int(from_law.sum()))
        laws.append(law)
        sizes.append(size)
        with np.errstate(all="ignore"):
            found = posterior.log_likelihood(theta_of(mine)).values
        z, log_l = np.concatenate([z, mine]), np.concatenate([log_l, np.where(np.isnan(found), -np.inf, found)])
        log_weight = log_l + _log_normal(z) - _log_mixed(z, laws, sizes)
        weight = np.exp(log_weight - log_weight.max())
        effective = float(weight.sum() ** 2 / (weight @ weight))
        if number >= LEAST_ROUNDS and effective > enough:
            break
        prior_alone, number = effective > PRIOR_ENOUGH * len(z) if prior_alone else False, number + 1
    theta, rows = theta_of(z), {}
    for j, name in enumerate(posterior.parameters):
        order = np.argsort(theta[:, j])
        ends = np.cumsum(weight[order]) / weight.sum()
        values = [float(theta[order[np.searchsorted(ends, q)], j]) for q in QUANTILES]
        # the error of a probability, and what it makes of the quantile
        errors = [_error(theta[:, j] <= value, weight) for value in values]
        around = [
            [float(theta[order[np.searchsorted(ends, np.clip(q + s * e, 0, ends[-2]))], j]) for s in (-1, 1)]
            for q, e in zip(QUANTILES, errors, strict=True)
        ]
        rows[name] = {"quantiles": values, "errors": [(high - low) / 2 for low, high in around]}
    return {"parameters": rows, "log_z": float(np.log(weight.mean()) + log_weight.max()), "effective": effective}


def _log_normal(z: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(z * z, axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi)


def _log_mixed(z: np.ndarray, laws: list[Any], sizes: list[int]) -> np.ndarray:
    """log density of all rounds together; a law that is None is the prior alone."""
    prior, total = _log_normal(z), np.full(len(z), -np.inf)
    for law, size in zip(laws, sizes, strict=True):
        own = prior
        if law is not None:
            own = np.logaddexp(np.log(PRIOR_SHARE) + prior, np.log1p(-PRIOR_SHARE) + law.log_density(z))
        total = np.logaddexp(total, np.log(size / sum(sizes)) + own)
    return total


def _fitted(z: np.ndarray, log_weight: np.ndarray, rng: np.random.Generator) -> mixtures.Mixture:
    """A mixture with long tails for weighted draws; while few of them have all the weight, for flatter weights."""
    power = 1.0
    while True:
        weight = np.exp(power * (log_weight - log_weight.max()))
        if weight.sum() ** 2 / (weight @ weight) > 1000 or power < 0.01:
            break
        power *= 0.8
    chosen = z[rng.choice(len(z), FITTED, p=weight / weight.sum())]
    covariance = np.cov(chosen.T).reshape(z.shape[1], -1)
    factor = 0.5 * np.linalg.cholesky(covariance + 1e-9 * np.eye(len(covariance)))
    start = mixtures.equal(chosen[rng.choice(len(chosen), COMPONENTS)], factor)
    floor = 1e-5 * covariance + 1e-9 * np.eye(len(covariance))
    made = mixtures.fit(chosen, np.ones(len(chosen)), start, floor, 0.001)
    return made._replace(df=np.full(len(made.share), 5.0), factor=1.1 * made.factor)


def _error(below: np.ndarray, weight: np.ndarray) -> float:
    share = float(weight[below].sum() / weight.sum())
    return float(np.sqrt(np.sum((weight * (below - share)) ** 2)) / weight.sum())


def make_references(names: list[str], enough: int) -> None:
    known = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.exists() else {}
    for name in names:
        began = time.process_time()
        made = reference(NASTY[name](), 1, enough)
        known[name] = made
        REFERENCES.write_text(json.dumps(_rounded(known), indent=1) + "\n", encoding="utf-8")
        print(f"{name:24}{made['effective']:10,.0f} effective draws, log Z {made['log_z']:9.3f}", end="")
        print(f"  {time.process_time() - began:6.1f} s", flush=True)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}")


# --- runs ---


def one_run(name: str, seed: int) -> dict[str, Any]:
    """How far from its reference each quantile is, in standard errors, and what the diagnostics say."""
    began = time.process_time()
    data = sample(NASTY[name](), seed=seed, progress=False)
    cpu = time.process_time() - began
    arviz, rows, found = import_arviz(), summarise(data), json.loads(data.attrs["findings"])
    exact = json.loads(REFERENCES.read_text(encoding="utf-8"))[name]
    scores = {}
    for parameter, known in exact["parameters"].items():
        draws = data.posterior[parameter].values
        for q, value in zip(QUANTILES, known["quantiles"], strict=True):
            below = (draws <= value).astype(float)
            effective = (
                1 / (1 / float(arviz.ess(below)) + 1 / exact["effective"]) if below.any() else exact["effective"]
            )
            scores[f"{parameter} {q:.0%}"] = (q - float(below.mean())) / np.sqrt(q * (1 - q) / effective)
    worst = max(scores, key=lambda key: abs(scores[key]))
    concerned = concerns(data, rows)
    return {
        "problem": name,
        "seed": seed,
        "concerns": [concern.kind for concern in concerned],
        "serious": any(concern.serious for concern in concerned),
        "worst": worst,
        "z": round(float(scores[worst]), 2),
        "ess": round(min(min(row["ess_bulk"], row["ess_tail"]) for row in rows.values())),
        "rhat": round(max(row["rhat"] for row in rows.values()), 4),
        "log_z": round(found.get("log_evidence", np.nan) - exact["log_z"], 3),
        "solves": int(data.attrs["solves"]),
        "cpu": round(cpu, 1),
        "notes": json.loads(data.attrs["notes"]),
    }


def show(log: Path) -> None:
    """For each problem, how many runs are called sound, and how far off the worst of these is."""
    runs = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    wrong = 0
    print(f"{'problem':24}{'runs':>5}{'sound':>6}{'|z| sound':>10}{'> 4':>4}{'> 5':>4}{'|z| others':>11}{'CPU s':>7}")
    for name in NASTY:
        own = [run for run in runs if run["problem"] == name]
        if not own:
            continue
        sound = [abs(run["z"]) for run in own if not run["concerns"]]
        others = [abs(run["z"]) for run in own if run["concerns"]]
        kinds = sorted({kind for run in own for kind in run["concerns"]})
        wrong += sum(z > 5 for z in sound)
        print(
            f"{name:24}{len(own):5}{len(sound):6}{max(sound, default=np.nan):10.1f}{sum(z > 4 for z in sound):4}"
            f"{sum(z > 5 for z in sound):4}{max(others, default=np.nan):11.1f}"
            f"{np.mean([run['cpu'] for run in own]):7.1f}  {', '.join(kinds)}"
        )
    print(f"{len(runs)} runs; called sound with a quantile more than 5 standard errors off: {wrong}")


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("problems", nargs="*", default=list(NASTY))
    given.add_argument("--seeds", type=int, default=20)
    given.add_argument("--log", type=Path, default=Path("campaign.jsonl"))
    given.add_argument("--references", action="store_true")
    given.add_argument("--effective", type=int, default=EFFECTIVE, help="draws of a reference")
    given.add_argument("--show", action="store_true")
    asked = given.parse_args()
    if asked.references:
        make_references(asked.problems, asked.effective)
        return
    done = set()
    if asked.log.exists():
        lines = asked.log.read_text(encoding="utf-8").splitlines()
        done = {(run["problem"], run["seed"]) for run in map(json.loads, lines)}
    for seed in range(1, asked.seeds + 1) if not asked.show else ():
        for name in asked.problems:
            if (name, seed) in done:
                continue
            try:
                made = one_run(name, seed)
            except Exception as error:  # a run that ends with an error is not called sound
                made = {
                    "problem": name,
                    "seed": seed,
                    "concerns": [f"{type(error).__name__}: {error}"],
                    "z": 0.0,
                    "cpu": 0.0,
                }
            with asked.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made) + "\n")
            print({key: value for key, value in made.items() if key != "notes"}, flush=True)
    show(asked.log)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
