"""The command to run next after a run that something is wrong with: exact, and nothing that was asked for is lost."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equifinal.results.diagnostics import Concern, Row

if TYPE_CHECKING:
    from arviz import InferenceData

MOST_DRAWS = 1_000_000  # of a chain; where more would be needed another sampler is the better advice
OWN_SAMPLERS = ("", "auto")
BY_ANOTHER_SEED = ("chains disagree", "never moved", "low acceptance", "missed tails", "long stay", "cannot be judged")


def changed_settings(data: InferenceData, concerns: Sequence[Concern]) -> dict[str, Any] | None:
    """What to ask for instead, by the names of `sample`'s arguments; None leaves an argument out.

    None as a whole if no other settings would help: an interrupted run is simply resumed, and a model that cannot fit
    or be solved needs to be changed itself.
    """
    asked, kinds = asked_for(data), {concern.kind: concern for concern in concerns}
    change: dict[str, Any] = {}
    if any(kind in kinds for kind in BY_ANOTHER_SEED):
        if asked.get("sampler", "") not in OWN_SAMPLERS:
            # the choice made by itself knows more than one that fails, and its settings with it
            change |= {"sampler": None, "warmup": None, "aux": None}
        else:
            change["seed"] = int(data.attrs.get("seed", 0)) + 1
    if few := kinds.get("few effective draws"):
        draws = math.ceil(few.numbers["factor"] * data.posterior.sizes["draw"])
        if draws <= MOST_DRAWS:
            change["draws"] = draws
        elif asked.get("sampler", "") not in OWN_SAMPLERS:
            change["sampler"] = None
    if (noisy := kinds.get("noisy estimates")) and "sampler" not in change:
        change["aux"] = int(noisy.numbers["points"])
    if "one chain" in kinds or "few chains" in kinds:
        change["chains"] = 4
    return change or None


def asked_for(data: InferenceData) -> dict[str, Any]:
    """The settings that the user gave, without what followed from them; empty for results of older versions."""
    asked = json.loads(data.attrs.get("asked", "{}"))
    options = asked.pop("options", None) or {}
    return asked | ({"aux": options["aux"]} if "aux" in options else {})


def next_step(data: InferenceData, concerns: Sequence[Concern]) -> str:
    """The command, or the call in Python where the run was made there; empty if nothing is to be done."""
    kinds = {concern.kind for concern in concerns}
    source, folder = str(data.attrs.get("source", "")), str(data.attrs.get("folder", ""))
    if "interrupted" in kinds:
        return _command(source, folder, asked_for(data)) if source else ""
    if kinds & {"misfit", "failed solves"} and source:
        where = shlex.quote(folder or "RUN")
        return f"equifinal predict {where} --prior --plot prior.png"
    change = changed_settings(data, concerns)
    if change is None:
        return ""
    wanted = {k: v for k, v in (asked_for(data) | change).items() if v is not None}
    if source:
        return _command(source, folder, wanted, "--overwrite")
    aux = wanted.pop("aux", None)
    if aux is not None:
        wanted["options"] = {"aux": aux}
    return f"sample(problem, {', '.join(f'{k}={v!r}' for k, v in wanted.items())})"


def _command(source: str, folder: str, settings: Mapping[str, Any], *flags: str) -> str:
    parts = ["equifinal", "fit", shlex.quote(source)]
    for name, value in settings.items():
        parts += [f"--{name.replace('_', '-')}", shlex.quote(str(value))]
    return " ".join([*parts, *(["--out", shlex.quote(folder)] if folder else []), *flags])


def least_effective(rows: Mapping[str, Row]) -> tuple[str, float]:
    """The parameter or quantity with the fewest effective draws, and how many; an empty name if none is known."""
    known = {n: min(r["ess_bulk"], r["ess_tail"]) for n, r in rows.items() if not math.isnan(r["ess_bulk"])}
    worst = min(known, key=lambda name: known[name], default="")
    return worst, known.get(worst, math.nan)


def next_lines(data: InferenceData, concerns: Sequence[Concern], rows: Mapping[str, Row]) -> list[str]:
    """Which parameter is sampled worst and what to run next; nothing for a run without concerns."""
    if not concerns:
        return []
    worst, ess = least_effective(rows)
    lines = [f"fewest effective draws: {worst}, {ess:,.0f}"] if worst else []
    step = next_step(data, concerns)
    return [*lines, f"next: {step}"] if step else lines
