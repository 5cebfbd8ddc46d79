"""Options of the geometric sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from equifinal.errors import DataError, did_you_mean

PAPER: dict[str, str | float] = {
    "kernel": "composite",
    "transition": "paper",
    "step_size": 0.005,
    "steps": 20,
    "normal_sd": 0.8,
    "tangent_sd": 0.2,
    "scaled": False,
}
WARMUP = 5000


@dataclass(frozen=True)
class Settings:
    """Options of the geometric sampler.

    Attributes
    ----------
    kernel
        ``"separate"`` or ``"composite"``.
    transition
        ``"learned"``: a covariance of c learned in warm-up and pulled back; ``"paper"``: sds ``normal_sd`` across the
        fibre and ``tangent_sd`` along it, fixed.
    fibre_moves
        Moves along the fibre for each ODE solve (one if composite).
    step_size, steps
        Of RATTLE, in v; what is left out is adapted, with at most ``max_steps``. A size without a number of steps is
        the largest size.
    force
        Whether moves along the fibre follow the gradient of log p - log J: constrained Hamiltonian Monte Carlo.
    scaled
        Whether coordinates are divided by the prior's spread.
    fibre_target, transition_target
        The acceptance that warm-up aims at.
    """

    kernel: str = "separate"
    transition: str = "learned"
    fibre_moves: int = 4
    step_size: float | None = None
    steps: int | None = None
    max_steps: int = 10
    normal_sd: float = 0.8
    tangent_sd: float = 0.2
    force: bool = False
    scaled: bool = True
    fibre_target: float = 0.7
    transition_target: float = 0.3

    def __post_init__(self) -> None:
        for name, known in (("kernel", ("separate", "composite")), ("transition", ("learned", "paper"))):
            value = getattr(self, name)
            if value not in known:
                hint = did_you_mean(str(value), known)
                raise DataError(f"geometric option '{name}' must be {' or '.join(known)}, not {value!r}{hint}")
        for name in ("fibre_moves", "steps", "max_steps"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not whole and not (value is None and name == "steps"):
                raise DataError(f"geometric option '{name}' must be a whole number of at least 1, not {value!r}")
        for name in ("step_size", "normal_sd", "tangent_sd"):
            value = getattr(self, name)
            if not _positive(value) and not (value is None and name == "step_size"):
                raise DataError(f"geometric option '{name}' must be a positive number, not {value!r}")
        for name in ("fibre_target", "transition_target"):
            value = getattr(self, name)
            if not _positive(value) or not value < 1:
                raise DataError(f"geometric option '{name}' must lie between 0 and 1, not {value!r}")
        for name in ("force", "scaled"):
            if not isinstance(getattr(self, name), bool):
                raise DataError(f"geometric option '{name}' must be true or false, not {getattr(self, name)!r}")

    @property
    def needs_fibre(self) -> bool:
        return True


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf
