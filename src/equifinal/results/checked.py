"""Results that were read from a file, held to what was written there: names, axes, types and ranges.

Whoever reads results trusts them after this. What is not ours, for it has no problem in it, is left to ArviZ.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, EquifinalError
from equifinal.files import quoted
from equifinal.problem.problem import Problem
from equifinal.results.arviz_lines import datasets

if TYPE_CHECKING:
    from arviz import InferenceData

DRAWN = ("posterior", "sample_stats", "log_prior")  # groups of every run
MADE = ("log_likelihood", "posterior_predictive", "prior", "prior_predictive")  # of most
MOST = 2**64
# what a sampler finds out together: a name in its findings, others there, and counts
TOGETHER: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "log_estimate_variance": (("zero_estimates", "longest_stay"), ("points", "empty_points")),
    "fresh_draws": (("k_hat", "highest_weight"), ()),
}


def require_ours(data: InferenceData, problem: Problem) -> None:
    """Refuse results that no run of this problem has left.

    Raises
    ------
    DataError
        That says what is not as it was written.
    """
    groups = datasets(data)
    for name in DRAWN:
        if name not in groups:
            raise _wrong(f"group '{name}' is missing")
    kept = groups["posterior"]
    if not {"chain", "draw"} <= set(kept.sizes) or 0 in (kept.sizes["chain"], kept.sizes["draw"]):
        raise _wrong("there are no draws")
    for name in (*DRAWN, *MADE):
        for variable, values in groups[name].data_vars.items() if name in groups else ():
            if values.dims[:2] != ("chain", "draw") or values.dtype.kind != "f":
                raise _wrong(f"{quoted(str(variable))} in {name} must be numbers by chain and draw")
    for name in ("posterior", "log_prior"):
        _require_named(name, groups[name], (*problem.parameters, *(problem.quantities if name == "posterior" else ())))
    _require_named("sample_stats", groups["sample_stats"], ("lp", "log_like", "acceptance_rate"))
    for name in problem.parameters:
        if kept[name].ndim != 2 or not np.isfinite(kept[name].values).all():
            raise _wrong(f"the draws of '{name}' must be finite, one for each chain and draw")
    for name in problem.quantities:
        if kept[name].ndim != 2:
            raise _wrong(f"'{name}' must have one value for each chain and draw")
    chains = kept.sizes["chain"]
    for name in ("sample_stats", "log_prior"):
        if dict(groups[name].sizes) != {"chain": chains, "draw": kept.sizes["draw"]}:
            raise _wrong(f"{name} must have as many chains and draws as the posterior")
    _require_attributes(data.attrs, problem, chains)


def _require_named(group: str, found: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in found:
            raise _wrong(f"'{name}' is missing in {group}")


def _require_attributes(attributes: Mapping[str, Any], problem: Problem, chains: int) -> None:
    for name, right in ATTRIBUTES.items():
        if name not in attributes:
            raise _wrong(f"attribute '{name}' is missing")
        try:
            fine = right(attributes[name])
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError, OverflowError, EquifinalError):
            fine = False
        if not fine:
            raise _wrong(f"attribute '{name}' cannot be {quoted(str(attributes[name]))}")
    for name in ("source", "folder", "asked"):
        if not isinstance(attributes.get(name, ""), str):
            raise _wrong(f"attribute '{name}' must be text")
    if tuple(json.loads(attributes["parameters"])) != problem.parameters:
        raise _wrong("attribute 'parameters' does not name those of the problem")
    if np.size(attributes["acceptance"]) != chains:
        raise _wrong("attribute 'acceptance' must have a number for each chain")
    counts, findings = json.loads(attributes["counts"]), json.loads(attributes["findings"])
    for name, (needed, counted) in TOGETHER.items():
        if name in findings and not (set(needed) <= set(findings) and set(counted) <= set(counts)):
            raise _wrong(f"attributes 'findings' and 'counts' do not have all that belongs to {name}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return not isinstance(value, str) and int(value) == value and 0 <= int(value) < MOST


def _is_number(value: Any) -> bool:
    return not isinstance(value, str) and math.isfinite(float(value)) and float(value) >= 0


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST


def _table(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def fine(value: Any) -> bool:
        found = json.loads(value)
        return isinstance(found, dict) and all(map(right, found.values()))

    return fine


def _texts(value: Any) -> bool:
    found = json.loads(value)
    return isinstance(found, list) and all(map(_is_text, found))


def _settings(value: Any) -> bool:
    found = json.loads(value)
    numbers = [found[name] for name in ("chains", "warmup", "draws", "thin")]
    whole = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < MOST for n in numbers)
    return whole and found["thin"] > 0 and isinstance(found["options"], dict)


def _asked(value: Any) -> bool:
    found = json.loads(value)
    plain = (str, int, float, type(None))
    options = found.get("options") or {}
    return all(isinstance(v, plain) for v in (*(v for k, v in found.items() if k != "options"), *options.values()))


ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "sampler": _is_text,
    "seed": _is_count,
    "settings": _settings,
    "problem": _is_text,
    "fingerprint": _is_text,
    "parameters": _texts,
    "quantities": _texts,
    "solves": _is_count,
    "warmup_solves": _is_count,
    "failed_solves": _is_count,
    "iterations": _is_count,
    "acceptance": lambda value: bool(np.isfinite(np.asarray(value, float)).all()),
    "counts": _table(lambda number: _is_plain_number(number) and _is_count(number)),
    "findings": _table(lambda number: isinstance(number, (int, float))),
    "compile_seconds": _is_number,
    "warmup_seconds": _is_number,
    "sampling_seconds": _is_number,
    "interrupted": lambda value: int(value) in (0, 1),
    "likelihood_gap": _is_number,
    "misfit": _is_number,
    "notes": _texts,
    "asked": _asked,
    "versions": _table(_is_text),
}


def _wrong(what: str) -> DataError:
    return DataError(f"these results are not as a run has left them: {what}; run the fit again")
