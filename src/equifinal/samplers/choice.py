"""Which sampler: the collapsed one if its proposal passes the gate, else the one that suits what stands in its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equifinal.errors import IdentifiabilityError, SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.collapsed.plan import TOO_NOISY, Plan

if TYPE_CHECKING:
    from equifinal.samplers.running.settings import RunSettings

Settings = collapsed.Settings
WARMUP = None  # it depends on what is chosen


class Choice(NamedTuple):
    """Settings with a sampler by name, what its preparation found, and why it was chosen."""

    settings: RunSettings
    plan: Plan | None
    reason: str


def choose(
    posterior: Posterior, settings: RunSettings, fibre: Fibre, report: Callable[[str], None] = lambda text: None
) -> Choice:
    """Try the collapsed sampler, and choose another one if it is refused."""
    options = settings.sampler_settings()
    plan: Plan | None = None
    try:
        plan = collapsed.prepare(posterior, options, fibre, settings.seed, report)
        refusal = plan.refusal
    except (SamplingError, IdentifiabilityError, np.linalg.LinAlgError) as error:
        refusal = str(error)
    if plan is not None and not refusal:
        modes = "one mode" if plan.modes == 1 else f"{plan.modes} modes"
        reason = f"collapsed: {modes}, and a proposal that fits ({plan.quality.in_words})"
        return Choice(replace(settings, sampler="collapsed"), plan, reason)
    if fibre.dimension == 0 and fibre.chart.degree > 1:
        why = f"{refusal}; in theta with swaps instead, as where roots meet their density is infinite"
        return _fallback("random-walk", {"swap": True}, settings, why)
    if plan is not None and plan.noise > TOO_NOISY:
        return _fallback("geometric", {}, settings, f"{refusal}; along fibres instead")
    kept = {name: value for name, value in settings.options.items() if value is not None}
    return _fallback("pseudo-marginal", kept, settings, f"{refusal}; an adaptive walk on the combinations instead")


def _fallback(sampler: str, options: dict[str, Any], settings: RunSettings, why: str) -> Choice:
    return Choice(replace(settings, sampler=sampler, options=options), None, f"{sampler}: {why}")
