"""How good the draws are: effective sample sizes, R-hat, Monte Carlo error, and what is wrong with a run.

IACT is the integrated autocorrelation time, draws / ESS of the mean: how many draws one independent draw costs.
References: Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Bayesian Analysis 16(2).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from equifinal.results.arviz_lines import ess, rhat
from equifinal.samplers.proposals.quality import is_noticed, longest_stay, misses_tails
from equifinal.showing import Shown

if TYPE_CHECKING:
    from arviz import InferenceData
    from pandas import DataFrame

RHAT_LIMIT = 1.01
ESS_PER_CHAIN, EACH_LANE = 100, 2
FAILED_SHARE = 0.05
GAP_LIMIT = 1.0  # in log likelihood; the solver's own error is far smaller where chains have arrived
FAILED_MOVES = 0.3
LEAST_ACCEPTANCE, MISFIT_LIMIT = 0.005, 5.0
VARIANCE_LIMIT, ZERO_LIMIT, EMPTY_LIMIT = 2.0, 0.2, 0.95

TOO_HIGH, FRESH_DRAWS = 2.0, 1000  # times a weight for which a run would be begun again; and draws, at least
EXTREMES, EXTREME_SHARE = (0.01, 0.99), 0.5  # quantiles that need a share of the effective draws wanted

Row = Mapping[str, float]
COLUMNS = ("mean", "sd", "q5", "q50", "q95", "ess_bulk", "ess_tail", "ess_per_second", "iact", "mcse_over_sd", "rhat")


class Summary(Shown, Mapping[str, Row]):
    """A table of moments, quantiles and diagnostics: a row for each parameter and quantity of interest.

    ``summary["k"]`` is a row, ``summary["k"]["rhat"]`` a number, ``summary.column("rhat")`` a column, and
    ``summary.to_dataframe()`` a pandas `DataFrame` with the same rows and columns:

    ==================  ================================================================================
    ``mean``, ``sd``    of the posterior
    ``q5 q50 q95``      quantiles: 5%, 50%, 95%
    ``ess_bulk``        effective draws for the centre of the distribution
    ``ess_tail``        effective draws for its 5% and 95% quantiles, whichever are fewer
    ``ess_per_second``  ``ess_bulk`` per second of sampling
    ``iact``            draws per independent draw
    ``mcse_over_sd``    Monte Carlo error of the mean divided by ``sd``: a ratio, not percent
    ``rhat``            disagreement of the chains: 1 is ideal, above 1.01 the draws should not be used
    ==================  ================================================================================

    A diagnostic is NaN where it cannot be told: of fewer than 4 draws, and of what does not vary.
    """

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = dict(rows)

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return COLUMNS

    def column(self, name: str) -> dict[str, float]:
        """One column, by parameter."""
        return {key: row[name] for key, row in self._rows.items()}

    def to_dataframe(self) -> DataFrame:
        """The same as a pandas `DataFrame`, with names as index."""
        from pandas import DataFrame

        return DataFrame.from_dict(self._rows, orient="index", columns=list(COLUMNS))

    def __repr__(self) -> str:
        return self.to_dataframe().to_string(float_format=lambda value: f"{value:.4g}")


def summarise(data: InferenceData) -> Summary:
    """Give moments, quantiles and diagnostics of every parameter and quantity of interest.

    Parameters
    ----------
    data
        Results of `sample`, or of `load_results`.

    Returns
    -------
    Summary
        A table with a row for each parameter and quantity.

    Examples
    --------
    >>> import equifinal
    >>> data = equifinal.sample(equifinal.load("si"), draws=100, progress=False)
    >>> table = equifinal.summarise(data)
    >>> table["gamma"]["rhat"] < 1.1
    True
    """
    seconds = float(data.attrs.get("sampling_seconds", math.nan))
    rows = {str(name): summary_row(data.posterior[name].values, seconds) for name in data.posterior.data_vars}
    return Summary(rows)


def summary_row(draws: np.ndarray, seconds: float = math.nan) -> Row:
    """Summary of one quantity, draws (chains, draws)."""
    draws = np.asarray(draws, float)
    with np.errstate(invalid="ignore", over="ignore"):  # a quantity of interest may be infinite
        row = {"mean": float(draws.mean()), "sd": float(draws.std(ddof=1)) if draws.size > 1 else math.nan}
        row |= {f"q{q}": float(np.quantile(draws, q / 100)) for q in (5, 50, 95)}
    finite = np.isfinite(draws).all() and math.isfinite(row["sd"])
    usable = finite and np.ptp(draws) > 0 and draws.shape[1] >= 4
    if usable:
        ess_mean, ess_bulk = ess(draws, "mean"), ess(draws, "bulk")
        row |= {
            "ess_bulk": ess_bulk,
            "ess_tail": ess(draws, "tail"),
            "ess_per_second": ess_bulk / seconds if seconds > 0 else math.nan,
            "iact": draws.size / ess_mean,
            "mcse_over_sd": 1 / math.sqrt(ess_mean),
            "rhat": split_rhat(draws),
        }
    else:
        names = ("ess_bulk", "ess_tail", "ess_per_second", "iact", "mcse_over_sd", "rhat")
        row |= dict.fromkeys(names, math.nan)
    return row


def mixing(draws: np.ndarray) -> tuple[float, float]:
    """Effective draws, in the bulk or in the tails, whichever are fewer, and R-hat of one quantity (chains, draws).

    For the 1% and 99% quantiles half as many will do. A quantity that does not vary does not lack any.
    """
    if not np.isfinite(draws).all() or np.ptp(draws) == 0 or draws.shape[1] < 4:
        return math.inf, 1.0
    least = min(ess(draws, method) for method in ("bulk", "tail"))
    return min(least, extreme_ess(draws) / EXTREME_SHARE), split_rhat(draws)


def extreme_ess(draws: np.ndarray) -> float:
    """Effective draws for the 1% or the 99% quantile, whichever are fewer: rare excursions to a tail count as few."""
    found = [ess(draws, "quantile", prob) for prob in EXTREMES]
    return min((number for number in found if not math.isnan(number)), default=math.inf)


def split_rhat(draws: np.ndarray) -> float:
    """R-hat between halves of chains; of one chain, between its halves."""
    if draws.shape[0] > 1:
        return rhat(draws, "split")
    return rhat(draws[0, -(draws.shape[1] // 2) * 2 :].reshape(2, -1), "identity")


ConcernKind = Literal[
    "interrupted",
    "never moved",
    "cannot be judged",
    "chains disagree",
    "few effective draws",
    "one chain",
    "few chains",
    "failed solves",
    "low acceptance",
    "misfit",
    "likelihood not constant",
    "failed moves",
    "noisy estimates",
    "infinitely noisy estimates",
    "zero estimates",
    "empty points",
    "long stay",
    "long stay, noisy estimates",
    "missed tails",
]


@dataclass(frozen=True)
class Concern:
    """Something that a reader of a run must know; `words.diagnostics` says it and what to do about it.

    Attributes
    ----------
    kind
        What it is.
    names, worst
        The parameters and quantities it is about, and the worst of them; empty if it is about the whole run.
    numbers
        The measurements that show it.
    serious
        Whether the draws must not be used.
    """

    kind: ConcernKind
    names: tuple[str, ...] = ()
    worst: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    serious: bool = False


def concerns(data: InferenceData, summary: Mapping[str, Row] | None = None) -> list[Concern]:
    """What is wrong with a run, if anything."""
    rows = summarise(data) if summary is None else summary
    return [*_on_draws(data, rows), *_on_solves(data), *_on_moves(data), *_on_estimates(data, rows)]


def _on_draws(data: InferenceData, rows: Mapping[str, Row]) -> Iterator[Concern]:
    chains, kept = data.posterior.sizes["chain"], data.posterior.sizes["draw"]
    if data.attrs.get("interrupted"):
        yield Concern("interrupted", numbers={"draws": kept})
    parameters = json.loads(data.attrs["parameters"]) if "parameters" in data.attrs else list(rows)
    if stuck := tuple(name for name in parameters if rows[name]["sd"] == 0):
        yield Concern("never moved", stuck, serious=True)
    if unjudged := tuple(n for n in parameters if rows[n]["sd"] != 0 and math.isnan(rows[n]["ess_bulk"])):
        yield Concern("cannot be judged", unjudged, serious=True)
    apart = {name: row["rhat"] for name, row in rows.items() if row["rhat"] > RHAT_LIMIT}
    if apart:
        worst = max(apart, key=lambda name: apart[name])
        yield Concern("chains disagree", tuple(apart), worst, {"limit": RHAT_LIMIT, "rhat": apart[worst]}, serious=True)
    # where the chains disagree, the number of effective draws means nothing
    agreed = {name: row for name, row in rows.items() if not row["rhat"] > 1.1}
    least = {name: min(row["ess_bulk"], row["ess_tail"]) for name, row in agreed.items()}
    for name, number in least.items():
        if math.isfinite(number):
            least[name] = min(number, extreme_ess(data.posterior[name].values) / EXTREME_SHARE)
    # lanes that never leave their starts would seem to give one for each
    lanes = findings(data).get("lanes", 1.0)
    limit = ESS_PER_CHAIN if lanes == 1 else max(ESS_PER_CHAIN, int(EACH_LANE * lanes))
    few = {name: number for name, number in least.items() if number < limit * chains}
    if few:
        worst = min(few, key=lambda name: few[name])
        factor = math.ceil(limit * chains / max(few[worst], 1.0))
        numbers = {"limit": limit, "ess": few[worst], "factor": factor}
        yield Concern("few effective draws", tuple(few), worst, numbers)
    if chains < 4:
        yield Concern("one chain" if chains == 1 else "few chains", numbers={"chains": chains})


def _on_solves(data: InferenceData) -> Iterator[Concern]:
    solves, failed = int(data.attrs.get("solves", 0)), int(data.attrs.get("failed_solves", 0))
    if solves and failed / solves > FAILED_SHARE:
        yield Concern("failed solves", numbers={"share": failed / solves})
    if "acceptance" in data.attrs and acceptance(data) < LEAST_ACCEPTANCE:
        yield Concern("low acceptance", numbers={"share": acceptance(data)}, serious=True)
    misfit = float(data.attrs.get("misfit", 0.0))
    if misfit > MISFIT_LIMIT:
        yield Concern("misfit", numbers={"sd": misfit}, serious=True)
    gap = float(data.attrs.get("likelihood_gap", 0.0))
    if gap > GAP_LIMIT:
        yield Concern("likelihood not constant", numbers={"gap": gap}, serious=True)


def _on_moves(data: InferenceData) -> Iterator[Concern]:
    moves = fibre_moves(data)
    failed = sum(moves.get(name, 0) for name in ("newton_failed", "not_reversible", "rank_deficient", "not_finite"))
    if moves and failed > FAILED_MOVES * count_moves(moves):
        yield Concern("failed moves", numbers={"share": failed / count_moves(moves)})


def _on_estimates(data: InferenceData, rows: Mapping[str, Row]) -> Iterator[Concern]:
    """The pseudo-marginal sampler's estimates of p_C, the prior density of the combinations."""
    measured, counts = findings(data), sampler_counts(data)
    # steps find the tails that fresh draws miss; and a few draws tell nothing of tails
    fresh = int(measured.get("fresh_draws", 0))
    if measured.get("lanes") == 1 and fresh >= FRESH_DRAWS:
        shape, highest = measured["k_hat"], measured["highest_weight"]
        if misses_tails(shape, highest, fresh, times=TOO_HIGH):
            yield Concern("missed tails", numbers={"k_hat": shape, "highest": highest}, serious=True)
    if "log_estimate_variance" not in measured:
        return
    variance, zero = measured["log_estimate_variance"], measured["zero_estimates"]
    if variance > VARIANCE_LIMIT and math.isinf(variance):
        yield Concern("infinitely noisy estimates")
    elif variance > VARIANCE_LIMIT:
        needed = math.ceil(points_per_fibre(data) * variance)
        yield Concern("noisy estimates", numbers={"variance": variance, "points": needed})
    if zero > ZERO_LIMIT:
        yield Concern("zero estimates", numbers={"share": zero})
    empty = counts["empty_points"] / max(1, counts["points"])
    if empty > EMPTY_LIMIT:
        yield Concern("empty points", numbers={"share": empty})
    stay = measured["longest_stay"]
    kept, thin = data.posterior.sizes, json.loads(data.attrs["settings"])["thin"]
    least = min((row["ess_bulk"] for row in rows.values() if math.isfinite(row["ess_bulk"])), default=math.inf)
    one_lane = measured.get("lanes", 1) == 1
    noticed = one_lane or is_noticed(stay, kept["chain"] * kept["draw"] * thin, least)
    if noticed and stay > longest_stay(kept["draw"], acceptance(data)):
        yield Concern("long stay, noisy estimates" if variance > 0.1 else "long stay", numbers={"steps": stay})


def findings(data: InferenceData) -> dict[str, float]:
    """What the sampler measured about itself."""
    return json.loads(data.attrs.get("findings", "{}"))


def sampler_counts(data: InferenceData) -> dict[str, int]:
    """How often the sampler met each thing that it counts."""
    return json.loads(data.attrs.get("counts", "{}"))


def points_per_fibre(data: InferenceData) -> float:
    """How many points were made in each iteration; not all iterations are shown."""
    return sampler_counts(data)["points"] / max(1, int(data.attrs["iterations"]))


def fibre_moves(data: InferenceData) -> dict[str, int]:
    """How many moves along fibres ended with each status, and how many were accepted; empty if there were none."""
    counts = sampler_counts(data)
    moves = {name.removeprefix("fibre_"): n for name, n in counts.items() if name.startswith("fibre_")}
    return moves if any(moves.values()) else {}


def count_moves(moves: Mapping[str, int]) -> int:
    return sum(number for status, number in moves.items() if status != "accepted")


def acceptance(data: InferenceData) -> float:
    """Share of proposals accepted after warm-up, over all chains."""
    return float(np.mean(data.attrs["acceptance"]))
