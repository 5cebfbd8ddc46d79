"""Which sampler, and what determines its draws besides the posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.samplers import registry

if TYPE_CHECKING:
    from equifinal.problem.problem import Problem

MAX_DRAWS = 10**9


@dataclass(frozen=True)
class RunSettings:
    """What determines the draws, besides the posterior.

    Attributes
    ----------
    sampler
        Name of the sampler.
    chains, warmup, draws, thin
        Chains; iterations thrown away while the sampler adapts; iterations kept for each chain, as many as it takes
        (see ``ess``) if left out; and every how many iterations one is kept, so that a chain runs warmup + draws * thin
        iterations.
    ess, max_solves, max_time
        Where ``draws`` is not given, chains go on until every quantity has so many effective draws, in its bulk and in
        its tails, or until another look would take more than so many ODE solves (by default 5 million for each
        experiment). After so many seconds a run ends in any case, with what has been drawn.
    seed
        A whole number; the same seed gives the same draws.
    options
        Settings of the sampler itself.
    """

    sampler: str = "random-walk"
    chains: int = 4
    warmup: int = None  # type: ignore[assignment]  # as many as the sampler needs
    draws: int | None = None
    thin: int = 1
    ess: int = 400
    max_solves: int | None = None
    max_time: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        registry.require_known(self.sampler)
        if self.warmup is None and self.sampler != registry.AUTO:
            object.__setattr__(self, "warmup", registry.entry(self.sampler).settings.WARMUP)
        whole = {"chains": 1, "warmup": 0, "draws": 1, "thin": 1, "ess": 1, "max_solves": 1, "seed": 0}
        for name, least in whole.items():
            value = getattr(self, name)
            if value is None and name in ("warmup", "draws", "max_solves"):  # known when a run begins, or when it ends
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value < 2**63:
                raise DataError(f"sampling setting '{name}' must be a whole number of at least {least}, not {value!r}")
            object.__setattr__(self, name, int(value))
        seconds = self.max_time
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0):
            raise DataError(f"sampling setting 'max_time' must be a positive number of seconds, not {seconds!r}")
        if self.draws is not None and self.chains * self.draws > MAX_DRAWS:
            raise DataError(f"{self.chains} chains of {self.draws} draws cannot be kept; thin them with 'thin'")
        self.sampler_settings()

    def sampler_settings(self) -> Any:
        """The options of the sampler, checked."""
        make = registry.entry(self.sampler).settings.Settings
        known = [option.name for option in fields(make)]  # type: ignore[arg-type]
        for name in self.options:
            if name not in known:
                hint = did_you_mean(name, known)
                raise DataError(f"sampler '{self.sampler}' has no option '{name}'{hint} (it has: {', '.join(known)})")
        return make(**self.options)


def run_settings(problem: Problem, asked: Mapping[str, Any]) -> RunSettings:
    """Settings asked for, else the problem's own, else the defaults; options one by one."""
    own: dict[str, Any] = dict(problem.sampling)
    given = {key: value for key, value in asked.items() if value is not None}
    usual = own.get("sampler", "auto")
    if given.get("sampler", usual) != usual:
        own.pop("options", None)  # they are for another sampler
    chosen: dict[str, Any] = {"sampler": "auto"} | own | given
    for key in chosen:
        if key not in RunSettings.__dataclass_fields__:
            hint = did_you_mean(key, RunSettings.__dataclass_fields__)
            raise DataError(f"there is no sampling setting '{key}'{hint}")
    if not isinstance(chosen.get("options", {}), Mapping):
        raise DataError(f"sampling options must be a table, not {chosen['options']!r}")
    if isinstance(own.get("options"), Mapping) and "options" in given:
        chosen["options"] = {**own["options"], **given["options"]}
    return RunSettings(**chosen)
