"""Options of the collapsed sampler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from equifinal.errors import DataError
from equifinal.samplers.pseudo_marginal import settings as pseudo_marginal

WARMUP = 64  # iterations: chains begin where importance sampling has been already
POINTS = (16, 32, 64, 128, 256, 512, 1024)  # numbers of points on a fibre that are tried


@dataclass(frozen=True)
class Settings(pseudo_marginal.Settings):
    """Options of the collapsed sampler: those of `pseudo_marginal.Settings` on points.

    Attributes
    ----------
    aux
        Points on a fibre for each proposal; left out, as few as make hat p_C nearly free of noise.
    """

    sampler: ClassVar[str] = "collapsed"
    aux: Any = None

    def __post_init__(self) -> None:
        if self.aux is not None:
            super().__post_init__()
        else:
            replace(self, aux=POINTS[0])
        if self.partition == "by c":
            raise DataError("the collapsed sampler has one partition for all c: take 'volume', 'qr' or names")
