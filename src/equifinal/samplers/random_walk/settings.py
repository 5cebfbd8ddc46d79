"""Options of the random walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError

Array = NDArray[np.float64]
WARMUP = 5000


@dataclass(frozen=True)
class Settings:
    """Options of the random walk.

    Attributes
    ----------
    covariance
        A fixed proposal covariance in sampling coordinates: one variance for all, one for each parameter, or a matrix.
        Left out, it is learned in warm-up.
    target
        The acceptance that warm-up aims at.
    swap
        Whether to analyse the model for root swaps; a fibre that is given is used in any case.
    """

    covariance: Any = None
    target: float = 0.27
    swap: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.swap, bool):
            raise DataError(f"random-walk option 'swap' must be true or false, not {self.swap!r}")
        if not isinstance(self.target, (int, float)) or not 0 < self.target < 1:
            raise DataError(f"random-walk option 'target' must lie between 0 and 1, not {self.target!r}")
        if isinstance(self.covariance, np.ndarray):  # plain lists print in full
            object.__setattr__(self, "covariance", self.covariance.tolist())

    @property
    def needs_fibre(self) -> bool:
        return self.swap

    def factor(self, dimension: int) -> Array | None:
        """The Cholesky factor of the fixed covariance, or ``None``."""
        if self.covariance is None:
            return None
        try:
            given = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            raise DataError("random-walk option 'covariance' must be a number, a list of numbers or a matrix") from None
        if given.ndim < 2:
            if given.size not in (1, dimension):
                raise DataError(f"random-walk option 'covariance' has {given.size} numbers for {dimension} parameters")
            given = np.diag(np.broadcast_to(given, dimension))
        if given.shape != (dimension, dimension):
            raise DataError(f"random-walk option 'covariance' must be {dimension} by {dimension}, not {given.shape}")
        if not np.isfinite(given).all() or not np.array_equal(given, given.T):
            raise DataError("random-walk option 'covariance' must be finite and symmetric")
        try:
            return np.linalg.cholesky(given)
        except np.linalg.LinAlgError:
            raise DataError("random-walk option 'covariance' must be positive definite") from None
