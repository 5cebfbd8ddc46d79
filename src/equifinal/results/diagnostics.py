"""How good the draws are: effective sample sizes, R-hat, Monte Carlo error, and advice in words.

IACT is the integrated autocorrelation time, draws / ESS of the mean: how many draws one independent draw costs.
References: Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from arviz import InferenceData

RHAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
FAILED_SHARE = 0.05
GAP_LIMIT = 1.0  # in log likelihood; the solver's own error is far smaller where chains have arrived
FAILED_MOVES = 0.3
LEAST_ACCEPTANCE, MISFIT_LIMIT = 0.005, 5.0
K_LIMIT = 0.5  # beyond it importance weights may have no variance
VARIANCE_LIMIT, ZERO_LIMIT, EMPTY_LIMIT, STAY_LIMIT = 2.0, 0.2, 0.95, 4.0

Row = Mapping[str, float]


def import_arviz() -> ModuleType:
    """ArviZ without its announcement of a coming version, which is not news to our user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def summarise(data: InferenceData) -> dict[str, Row]:
    """For every parameter and quantity of interest: moments, quantiles and diagnostics."""
    seconds = float(data.attrs.get("sampling_seconds", math.nan))
    return {str(name): summary_row(data.posterior[name].values, seconds) for name in data.posterior.data_vars}


def summary_row(draws: np.ndarray, seconds: float = math.nan) -> Row:
    """Summary of one quantity, draws (chains, draws)."""
    arviz = import_arviz()
    draws = np.asarray(draws, float)
    with np.errstate(invalid="ignore", over="ignore"):  # a quantity of interest may be infinite
        row = {"mean": float(draws.mean()), "sd": float(draws.std(ddof=1)) if draws.size > 1 else math.nan}
        row |= {f"q{q}": float(np.quantile(draws, q / 100)) for q in (5, 50, 95)}
    finite = np.isfinite(draws).all() and math.isfinite(row["sd"])
    usable = finite and np.ptp(draws) > 0 and draws.shape[1] >= 4
    if usable:
        ess_mean = float(arviz.ess(draws, method="mean"))
        row |= {
            "ess_bulk": float(arviz.ess(draws, method="bulk")),
            "ess_tail": float(arviz.ess(draws, method="tail")),
            "ess_per_second": float(arviz.ess(draws, method="bulk")) / seconds if seconds > 0 else math.nan,
            "iact": draws.size / ess_mean,
            "mcse_over_sd": 100 / math.sqrt(ess_mean),
            "rhat": float(arviz.rhat(draws, method="split")) if draws.shape[0] > 1 else math.nan,
        }
    else:
        names = ("ess_bulk", "ess_tail", "ess_per_second", "iact", "mcse_over_sd", "rhat")
        row |= dict.fromkeys(names, math.nan)
    return row


def advise(data: InferenceData, summary: Mapping[str, Row] | None = None) -> list[str]:
    """What is wrong with a run, if anything, each with what to do about it."""
    rows = summarise(data) if summary is None else summary
    chains, kept = data.posterior.sizes["chain"], data.posterior.sizes["draw"]
    found: list[str] = []
    if data.attrs.get("interrupted"):
        found.append(f"The run was interrupted: {kept} draws a chain were kept. Run the same command again to go on.")
    parameters = json.loads(data.attrs["parameters"]) if "parameters" in data.attrs else list(rows)
    stuck = [name for name in parameters if rows[name]["sd"] == 0]
    if stuck:
        found.append(
            f"{_list(stuck)}: never moved. The proposals are too large or the start is far off; leave "
            "the covariance out so that warm-up learns it, or give more warm-up."
        )
    unknown = [name for name in parameters if rows[name]["sd"] != 0 and math.isnan(rows[name]["ess_bulk"])]
    if unknown:
        found.append(
            f"{_list(unknown)}: too few draws, or values too large, to judge how good they are. Do not use them."
        )
    split = {name: row["rhat"] for name, row in rows.items() if row["rhat"] > RHAT_LIMIT}
    if split:
        worst = max(split, key=lambda name: split[name])
        found.append(
            f"R-hat is above {RHAT_LIMIT} for {_list(split)} (worst: {worst}, {split[worst]:.3f}): the chains "
            "disagree. Do not use these numbers; give more warm-up and draws, or check whether these parameters "
            "can be identified at all."
        )
    # where the chains disagree, the number of effective draws means nothing
    agreed = {name: row for name, row in rows.items() if not row["rhat"] > 1.1}
    least = {name: min(row["ess_bulk"], row["ess_tail"]) for name, row in agreed.items()}
    few = {name: ess for name, ess in least.items() if ess < ESS_PER_CHAIN * chains}
    if few:
        worst = min(few, key=lambda name: few[name])
        factor = math.ceil(ESS_PER_CHAIN * chains / max(few[worst], 1.0))
        found.append(
            f"Fewer than {ESS_PER_CHAIN} effective draws a chain for {_list(few)} (least: {worst}, {few[worst]:.0f} in "
            f"all): about {factor} times as many draws are needed for this sampler."
        )
    if chains < 4:
        found.append(f"Only {chains} chain{'s' * (chains > 1)}: R-hat says little; run at least 4.")
    solves, failed = int(data.attrs.get("solves", 0)), int(data.attrs.get("failed_solves", 0))
    if solves and failed / solves > FAILED_SHARE:
        found.append(
            f"{failed / solves:.0%} of the ODE solves failed: the posterior is cut off where they do. Narrow the "
            "priors, or raise max_steps or loosen rtol under [solver]."
        )
    if "acceptance" in data.attrs and acceptance(data) < LEAST_ACCEPTANCE:
        found.append(
            f"Only {acceptance(data):.2%} of the proposals were accepted: the chains hardly moved. Do not use these "
            "numbers; try another sampler, or another seed."
        )
    misfit = float(data.attrs.get("misfit", 0.0))
    if misfit > MISFIT_LIMIT:
        found.append(
            f"Even the best draw misses the data by {misfit:.0f} standard deviations of the noise on average: the "
            "model cannot fit them within these priors, the noise is taken too small, or the search did not find where "
            "it fits."
        )
    gap = float(data.attrs.get("likelihood_gap", 0.0))
    if gap > GAP_LIMIT:
        found.append(
            f"The log likelihood is not what the sampler took it to be (off by up to {gap:.2g}): it is not constant on "
            "the fibres. Do not use these numbers; the combinations given are too few, or the solver is too "
            "inaccurate (rtol under [solver])."
        )
    counts = _fibre_counts(data)
    lost = sum(counts.get(name, 0) for name in ("newton_failed", "not_reversible", "rank_deficient", "not_finite"))
    if counts and lost > FAILED_MOVES * _moves(counts):
        found.append(
            f"{lost / _moves(counts):.0%} of the moves along the fibre failed: the draws are right, but fewer are "
            "effective. Give smaller steps (option step_size), or leave it out so that warm-up finds it."
        )
    return [*found, *_advise_on_estimates(data)]


def _advise_on_estimates(data: InferenceData) -> list[str]:
    """On the pseudo-marginal sampler's estimates of p_C."""
    findings, counts = _findings(data), json.loads(data.attrs.get("counts", "{}"))
    if "log_estimate_variance" not in findings:
        return []
    found: list[str] = []
    variance, aux = findings["log_estimate_variance"], _points_each(data, counts)
    if variance > VARIANCE_LIMIT:
        much = f"about {math.ceil(aux * variance):,}" if math.isfinite(variance) else "many more"
        found.append(
            f"The estimates of p(c) are noisy (variance of their logarithm {variance:.1f}; about 1 is best), so that "
            f"chains stand still: the draws are right, but few are effective. Take {much} points (--aux), or "
            "another law of points (option law)."
        )
    zero = findings["zero_estimates"]
    if zero > ZERO_LIMIT:
        found.append(
            f"{zero:.0%} of the estimates of p(c) at the best draw are zero, for no point lies inside the prior's "
            "bounds: give more points (--aux), or another law of points (option law)."
        )
    empty = counts["empty_points"] / max(1, counts["points"])
    if empty > EMPTY_LIMIT:
        found.append(
            f"{empty:.0%} of the points on fibres lie outside the prior's bounds: another law of points (option law), "
            "or other free coordinates (option partition), would waste fewer."
        )
    draws = data.posterior.sizes["draw"]
    usual = math.log(max(draws, 2)) / max(acceptance(data), 1e-6)
    if findings["longest_stay"] > max(50.0, STAY_LIMIT * usual):
        found.append(
            f"A chain stood still for {findings['longest_stay']:,.0f} steps, far longer than its acceptance explains: "
            + (
                "the estimates of p(c) are noisy, so give more points (--aux)."
                if variance > 0.1
                else "the proposal does not fit the posterior's tails; try another seed, or another sampler."
            )
        )
    return found


def _findings(data: InferenceData) -> dict[str, float]:
    return json.loads(data.attrs.get("findings", "{}"))


def _points_each(data: InferenceData, counts: Mapping[str, int]) -> float:
    settings = json.loads(data.attrs["settings"])
    sampled = settings["chains"] * data.posterior.sizes["draw"] * settings["thin"]
    return counts["points"] / max(1, sampled)


def _fibre_counts(data: InferenceData) -> dict[str, int]:
    """What became of moves along fibres: each status and how often, and how many were accepted; empty if none."""
    counts = json.loads(data.attrs.get("counts", "{}"))
    found = {name.removeprefix("fibre_"): n for name, n in counts.items() if name.startswith("fibre_")}
    return found if any(found.values()) else {}


def _moves(counts: Mapping[str, int]) -> int:
    return sum(number for name, number in counts.items() if name != "accepted")


def moves_in_words(data: InferenceData) -> list[str]:
    """A line on moves along fibres, and one on swaps of roots, if there were any."""
    found, counts = [], _fibre_counts(data)
    if counts:
        lost = {name: n for name, n in counts.items() if n and name not in ("ok", "accepted")}
        reasons = "".join(f", {n / _moves(counts):.1%} {name.replace('_', ' ')}" for name, n in lost.items())
        share, rejected = counts["accepted"] / _moves(counts), (counts["ok"] - counts["accepted"]) / _moves(counts)
        rest = f", {rejected:.1%} rejected" if rejected > 0 else ""
        found.append(f"along the fibre: {_moves(counts):,} moves, {share:.1%} accepted{rest}{reasons}")
    every = json.loads(data.attrs.get("counts", "{}"))
    swaps, unresolved = every.get("swapped", 0), every.get("unresolved_roots", 0)
    if "swapped" in every and (swaps or unresolved):
        doubt = f", {unresolved:,} left out because roots were uncertain" if unresolved else ""
        found.append(f"between equivalent parameters: {swaps:,} swaps{doubt}")
    if every.get("points", 0):
        found += _points_in_words(data, every)
    if undefined := every.get("transition_undefined", 0):
        found.append(f"across fibres: {undefined:,} proposals where the combinations are dependent or infinite")
    return found


def _points_in_words(data: InferenceData, counts: Mapping[str, int]) -> list[str]:
    findings, points = _findings(data), counts["points"]
    several = f", {counts['roots'] / max(1, points - counts['empty_points']):.2f} roots each" if points else ""
    variance = findings.get("log_estimate_variance", math.nan)
    each, empty = _points_each(data, counts), counts["empty_points"] / points
    lines = []
    if each > 1 or variance > 1e-12:
        shown = several if counts["roots"] > points - counts["empty_points"] else ""
        lines.append(
            f"on each fibre: {each:,.0f} points, {empty:.1%} outside the bounds{shown}; "
            f"variance of log p(c): {variance:.2g}"
        )
    solves = int(data.attrs["solves"]) - int(data.attrs["warmup_solves"])
    spared = counts["saved_solves"] / max(1, counts["saved_solves"] + solves)
    if spared > 0.001:
        lines.append(f"ODE solves spared, as nothing could be accepted there: {spared:.1%}")
    if "log_evidence" in findings:
        error = findings["log_evidence_error"]
        doubt = f"; not reliable, k-hat is {findings['k_hat']:.2f}" if not findings["k_hat"] < K_LIMIT else ""
        lines.append(f"log marginal likelihood: {findings['log_evidence']:.3f} (standard error {error:.2g}{doubt})")
    return lines


def _list(names: Mapping[str, float] | list[str]) -> str:
    words = list(names)
    return ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")


def acceptance(data: InferenceData) -> float:
    """Share of proposals accepted after warm-up, over all chains."""
    return float(np.mean(data.attrs["acceptance"]))
