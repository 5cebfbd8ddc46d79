r"""What a law g_c of the free coordinates theta_I given c is, for the estimate of p_C(c).

Any law will do that is positive wherever the prior is and that depends on c alone, never on where the chain is: the
sampler is exact with each of them. How well it mixes depends on how even the weights p / (g_c |det dxi/dtheta_D|)
are.

A law of your own is a class made from a `Fibre` with the three members of `Law`; give the class itself as option
``law``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.problem.prior import Prior, log_prior

Array = NDArray[np.float64]


class Moments(NamedTuple):
    """Mean and covariance of (h(c), u), learned in warm-up and then frozen; a row for each c."""

    mean: Annotated[Array, "rows q+d"]
    covariance: Annotated[Array, "rows q+d q+d"]


class Drawn(NamedTuple):
    """theta_I (n, N, r) and log g_c of it (n, N); both NaN where there is nothing to draw."""

    free: Array
    log_density: Array


class Law(Protocol):
    """The law g_c of points on fibres.

    Attributes
    ----------
    width
        Number of uniforms per point.
    """

    width: int

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        """Points for each row of c (n, q) from uniforms (n, N, width): theta_I is a function of c and its uniforms."""
        ...

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        """log g_c of given theta_I (n, N, r); minus infinity where it is zero."""
        ...


class FreeLaw:
    """What most laws share: the priors of the free coordinates."""

    width: int
    priors: list[Prior]
    table: Array

    def __init__(self, fibre: Fibre):
        self.fibre = fibre
        self.width = fibre.dimension
        self.priors = [fibre.priors[name] for name in fibre.free]
        self.table = np.ascontiguousarray(fibre.table[fibre.chart.free])

    def log_prior(self, free: Array) -> Array:
        rows = np.ascontiguousarray(free).reshape(-1, free.shape[2])
        return log_prior(rows, self.table).reshape(free.shape[:2])


class PriorLaw(FreeLaw):
    """The prior's marginal of theta_I."""

    def draw(self, c: Array, uniforms: Array, moments: Moments) -> Drawn:
        free = np.empty((*uniforms.shape[:2], len(self.priors)))
        for k, prior in enumerate(self.priors):
            free[..., k] = prior.quantile(uniforms[..., k])
        return Drawn(free, self.log_prior(free))

    def log_density(self, c: Array, free: Array, moments: Moments) -> Array:
        return self.log_prior(free)
