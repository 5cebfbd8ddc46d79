"""Which sampler: the collapsed one if its proposal passes the gate, else the one that suits what stands in its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from equifinal.errors import IdentifiabilityError, SamplingError
from equifinal.fibre import Fibre
from equifinal.posterior.posterior import Posterior
from equifinal.samplers.collapsed import sampler as collapsed
from equifinal.samplers.collapsed.plan import TOO_NOISY, Plan
from equifinal.samplers.protocol import Task
from equifinal.samplers.settings import RunSettings


class Choice(NamedTuple):
    """Settings with a sampler by name, what its preparation found, and why it was chosen."""

    settings: RunSettings
    plan: Plan | None
    reason: str


def choose(
    posterior: Posterior, settings: RunSettings, fibre: Fibre | None, report: Callable[[str], None] = lambda text: None
) -> Choice:
    """Try the collapsed sampler, and choose another one if it is refused."""
    assert fibre is not None
    plan: Plan | None = None
    try:
        task = Task(posterior, fibre, settings.sampler_settings(), thin=settings.thin)
        plan = collapsed.prepare(task, settings.seed, report)
        refusal = plan.refusal
    except (SamplingError, IdentifiabilityError, np.linalg.LinAlgError) as error:
        refusal = str(error)
    if plan is not None and not refusal:
        return Choice(settled(settings, "collapsed"), plan, f"collapsed: {plan.in_words}")
    if fibre.dimension == 0 and fibre.chart.degree > 1:
        name, why = "random-walk", "a walk in theta with swaps instead, as p(c) is infinite where roots meet"
    elif plan is not None and plan.noise > TOO_NOISY:
        name, why = "geometric", "moves along fibres instead"
    else:
        name, why = "pseudo-marginal", "an adaptive walk on the combinations instead"
    return Choice(settled(settings, name), None, f"{name}: {refusal}; {why}")


def settled(settings: RunSettings, sampler: str) -> RunSettings:
    """Give the settings that are meant when a sampler was chosen for ``auto``."""
    if sampler == settings.sampler:
        return settings
    options: dict[str, Any] = {name: value for name, value in settings.options.items() if value is not None}
    return replace(
        settings, sampler=sampler, options={"random-walk": {"swap": True}, "geometric": {}}.get(sampler, options)
    )
