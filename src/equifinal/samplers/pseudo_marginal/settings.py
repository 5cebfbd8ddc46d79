"""Options of the pseudo-marginal sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from equifinal.errors import DataError, did_you_mean
from equifinal.samplers.points.names import LAWS, POINTS, ROOTS

MOST_POINTS = 100_000  # on a fibre: more would only take memory
PARTITIONS = ("volume", "qr", "by c")
TARGETS = {"walk": 0.27, "gradient": 0.5}  # proposals, and the acceptance that suits each
PAPER: dict[str, str | float] = {"aux": 128, "points": "iid", "law": "uniform", "roots": "one", "partition": "qr"}
WARMUP = 5000


@dataclass(frozen=True)
class Settings:
    """Options of the pseudo-marginal sampler.

    Attributes
    ----------
    aux
        N, the number of auxiliary points for each proposal.
    points
        ``"lattice"`` (randomly shifted) or ``"iid"``.
    law
        Of theta_I given c: ``"auto"``, or a name of `laws.LAWS`, or in Python a class such as those.
    roots
        ``"sum"`` over the roots of each point, or ``"one"`` of them times their number.
    partition
        ``"volume"``, ``"qr"``, ``"by c"`` (the best for each c), or the names of the free coordinates.
    charts
        Several sets of free coordinates, to be mixed.
    proposal
        Of c: ``"walk"``, with a covariance learned in warm-up, or ``"gradient"``, uphill, with the information at c.
    target
        The acceptance that warm-up aims at; left out, the one that suits the proposal.
    """

    sampler: ClassVar[str] = "pseudo-marginal"
    aux: int = 128
    points: str = "lattice"
    law: Any = "auto"
    roots: str = "sum"
    partition: Any = "volume"
    charts: Any = ()
    proposal: str = "walk"
    target: float = None  # type: ignore[assignment]  # as suits the proposal

    def __post_init__(self) -> None:
        if (
            isinstance(self.aux, bool)
            or not isinstance(self.aux, (int, np.integer))
            or not 1 <= self.aux <= MOST_POINTS
        ):
            raise DataError(
                f"{self.sampler} option 'aux' must be a whole number between 1 and {MOST_POINTS:,}, not {self.aux!r}"
            )
        object.__setattr__(self, "aux", int(self.aux))
        whole = {"points": POINTS, "roots": ROOTS, "law": ("auto", *LAWS), "partition": PARTITIONS}
        for name, known in (whole | {"proposal": tuple(TARGETS)}).items():
            value = getattr(self, name)
            free = (name == "law" and callable(value)) or (name == "partition" and _is_names(value))
            if not free and value not in known:
                hint = did_you_mean(str(value), known)
                also = {"law": " or a class", "partition": " or a list of names"}.get(name, "")
                raise DataError(
                    f"{self.sampler} option '{name}' must be {' or '.join(known)}{also}, not {value!r}{hint}"
                )
        if not isinstance(self.charts, (list, tuple)) or not all(map(_is_names, self.charts)) or len(self.charts) == 1:
            raise DataError(
                f"{self.sampler} option 'charts' must be several lists of names of free coordinates, such as "
                f"[['a'], ['b']], not {self.charts!r}"
            )
        if self.charts and self.partition != "volume":
            raise DataError(f"{self.sampler} options 'partition' and 'charts' exclude each other")
        if self.charts and self.roots == "one":
            raise DataError(f"{self.sampler} option 'roots' must be 'sum' with several charts, not 'one'")
        if self.target is None:
            object.__setattr__(self, "target", TARGETS[self.proposal])
        if not isinstance(self.target, (int, float)) or isinstance(self.target, bool) or not 0 < self.target < 1:
            raise DataError(f"{self.sampler} option 'target' must lie between 0 and 1, not {self.target!r}")

    @property
    def needs_fibre(self) -> bool:
        return True


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(name, str) for name in value)
