"""What is wrong with a run and what to do about it, and what its sampler did, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from equifinal.results.diagnostics import (
    Concern,
    ConcernKind,
    Row,
    concerns,
    count_moves,
    fibre_moves,
    findings,
    points_per_fibre,
    sampler_counts,
    summarise,
)

if TYPE_CHECKING:
    from arviz import InferenceData

K_LIMIT = 0.5  # beyond it importance weights may have no variance
MOST_NAMES = 6

SENTENCES: dict[ConcernKind, str] = {
    "interrupted": (
        "The run was interrupted after {draws:,} draws per chain. Run the same command again to resume it."
    ),
    "never moved": (
        "{names}: never moved. The proposals are too large or the starting point is far off; leave the covariance out "
        "so that warm-up learns it, or allow more warm-up."
    ),
    "cannot be judged": ("{names}: too few draws, or values too large, to judge their quality. Do not use them."),
    "chains disagree": (
        "R-hat is above {limit} for {names} (worst: {worst}, {rhat:.3f}): the chains disagree. Do not use these "
        "numbers; allow more draws and more warm-up, or take another sampler."
    ),
    "few effective draws": (
        "Fewer than {limit} effective draws per chain for {names} (fewest: {worst}, {ess:.0f} in total): this sampler "
        "needs about {factor:,} times as many draws."
    ),
    "one chain": "Only 1 chain: R-hat cannot be computed; run at least 4.",
    "few chains": "Only {chains} chains: R-hat says little; run at least 4.",
    "failed solves": (
        "{share:.0%} of the ODE solves failed: the posterior is cut off where they do. Narrow the priors, or raise "
        "max_steps or loosen rtol under [solver]."
    ),
    "low acceptance": (
        "Only {share:.2%} of the proposals were accepted: the chains hardly moved. Do not use these numbers; try "
        "another sampler, or another seed."
    ),
    "misfit": (
        "Even the best draw misses the data by {sd:.0f} standard deviations of the noise on average: the model cannot "
        "fit them within these priors, the noise is assumed too small, or the search did not find where it fits."
    ),
    "likelihood not constant": (
        "The log likelihood differs from what the sampler took it to be (by up to {gap:.2g}): it is not constant on "
        "the fibres. Do not use these numbers; the combinations given are too few, or the solver is too inaccurate "
        "(rtol under [solver])."
    ),
    "failed moves": (
        "{share:.0%} of the moves along the fibre failed: the draws are right, but fewer are effective. Use smaller "
        "steps (option step_size), or leave that option out so that warm-up chooses them."
    ),
    "noisy estimates": (
        "The estimates of p(c) are noisy (the variance of their logarithm is {variance:.1f}; about 1 is best), so that "
        "chains stand still: the draws are right, but few are effective. Use about {points:,} points (option aux), or "
        "another law of points (option law)."
    ),
    "infinitely noisy estimates": (
        "The estimates of p(c) are so noisy that their logarithm has no finite variance, and chains stand still: the "
        "draws are right, but few are effective. Use many more points (option aux), or another law of points (option "
        "law)."
    ),
    "zero estimates": (
        "{share:.0%} of the estimates of p(c) at the best draw are zero, because no point lies inside the prior's "
        "bounds. Use more points (option aux), or another law of points (option law)."
    ),
    "empty points": (
        "{share:.0%} of the points on fibres lie outside the prior's bounds: another law of points (option law), or "
        "other free coordinates (option partition), would waste fewer."
    ),
    "long stay": (
        "A chain stood still for {steps:,.0f} steps, far longer than its acceptance rate explains: the proposal does "
        "not fit the posterior's tails; try another seed, or another sampler."
    ),
    "long stay, noisy estimates": (
        "A chain stood still for {steps:,.0f} steps, far longer than its acceptance rate explains: the estimates of "
        "p(c) are noisy, so use more points (option aux)."
    ),
    "missed tails": (
        "A proposal had {highest:.0f} times the mean weight, and k-hat, the shape of the tail of all weights, is "
        "{k_hat:.2f}: the proposal misses a part of the posterior. Do not use these numbers, least of all quantiles "
        "near 0 and 1; try another seed."
    ),
}


def advise(data: InferenceData, summary: Mapping[str, Row] | None = None) -> list[str]:
    """What is wrong with a run, if anything, each with what to do about it, and at last what to run next.

    Parameters
    ----------
    data
        Results of `sample`.
    summary
        From `summarise`, if it was made already.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=50, sampler="random-walk", progress=False)
    >>> for sentence in equifinal.advise(data):
    ...     print(sentence)  # doctest: +SKIP
    """
    from equifinal.words.next_step import next_lines

    rows = summarise(data) if summary is None else summary
    found = concerns(data, rows)
    return [*map(concern_sentence, found), *next_lines(data, found, rows)]


def concern_sentence(concern: Concern) -> str:
    return SENTENCES[concern.kind].format(names=_shortened(concern.names), worst=concern.worst, **concern.numbers)


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def sampler_notes(data: InferenceData) -> list[str]:
    """What the sampler did besides accepting and rejecting: moves along fibres, swaps of roots, points on fibres."""
    notes, counts, moves = [], sampler_counts(data), fibre_moves(data)
    if moves:
        notes.append(_moves_along_fibres(moves))
    swaps, unresolved = counts.get("swapped", 0), counts.get("unresolved_roots", 0)
    if "swapped" in counts and (swaps or unresolved):
        doubt = f", {unresolved:,} left out because roots were uncertain" if unresolved else ""
        notes.append(f"between equivalent parameters: {swaps:,} swaps{doubt}")
    if counts.get("points", 0):
        notes += _points_on_fibres(data, counts)
    if undefined := counts.get("transition_undefined", 0):
        notes.append(f"across fibres: {undefined:,} proposals where the combinations are dependent or infinite")
    pointwise = getattr(data, "log_likelihood", None)
    if pointwise is not None and pointwise.sizes["draw"] < (kept := data.posterior.sizes["draw"]):
        some = f"{pointwise.sizes['draw']:,} of the {kept:,} draws of each chain"
        notes.append(f"log likelihood of single observations: kept for {some}, evenly taken, to save time and space")
    return notes


def _moves_along_fibres(moves: Mapping[str, int]) -> str:
    total = count_moves(moves)
    failed = {status: n for status, n in moves.items() if n and status not in ("ok", "accepted")}
    reasons = "".join(f", {n / total:.1%} {status.replace('_', ' ')}" for status, n in failed.items())
    accepted, rejected = moves["accepted"] / total, (moves["ok"] - moves["accepted"]) / total
    rest = f", {rejected:.1%} rejected" if rejected > 0 else ""
    return f"along the fibre: {total:,} moves, {accepted:.1%} accepted{rest}{reasons}"


def _points_on_fibres(data: InferenceData, counts: Mapping[str, int]) -> list[str]:
    measured, points, roots = findings(data), counts["points"], counts["roots"]
    variance = measured.get("log_estimate_variance", math.nan)
    per_fibre, empty = points_per_fibre(data), counts["empty_points"]
    notes = []
    if per_fibre > 1 or variance > 1e-12:
        several = f", {roots / max(1, points - empty):.2f} roots each" if roots > points - empty else ""
        notes.append(
            f"on each fibre: {per_fibre:,.0f} points, {empty / points:.1%} outside the prior's bounds{several}; "
            f"variance of log p(c), the estimated prior density of the combinations: {variance:.2g}"
        )
    solves = int(data.attrs["solves"]) - int(data.attrs["warmup_solves"])
    saved = counts["saved_solves"] / max(1, counts["saved_solves"] + solves)
    if saved > 0.001:
        notes.append(f"ODE solves saved, because nothing could be accepted there: {saved:.1%}")
    if "log_evidence" in measured:
        error, k_hat = measured["log_evidence_error"], measured["k_hat"]
        doubt = "" if k_hat < K_LIMIT or measured["lanes"] > 1 else f"; not reliable, because k-hat is {k_hat:.2f}"
        notes.append(f"log marginal likelihood: {measured['log_evidence']:.3f} (standard error {error:.2g}{doubt})")
    return notes
