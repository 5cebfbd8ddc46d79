r"""How much data told about a quantity, and what kind of thing: judged on the prior's own scale.

With F the prior's distribution function, v = F(x) is uniform on (0, 1) before the data, whatever the units, and
whether a prior is given on a logarithmic scale or not. Let g be its density after them. Then

.. math::
    \text{bits} = \int g \log_2 g \, dv, \qquad \text{shrinkage} = 1 - 12 \operatorname{Var}_g(v):

the Kullback-Leibler divergence of the posterior from the prior (0: nothing was learned; halving the range that a
uniform prior allows is 1 bit), and the part of the spread that is gone. For a uniform prior that is the usual
1 - Var(posterior) / Var(prior).

Data often give a bound only. At the lower end of the prior, the *edge* is g there divided by the largest value of g; if
it is not small, the data do not say how small x is. Likewise at the upper end. So

    barely informed       bits < 0.3
    bounded above         the lower edge is at least 0.25, the upper one is not
    bounded below         the other way round
    determined            neither: smaller and larger values are both excluded

Ends are looked at on the scale of the posterior's own distance from them (a tenth of the median of v, or of 1 - v), so
that "5 +- 1" under a prior from 0 to a million is determined, and "less than 5" is not.

The entropy is estimated from the spacings of posterior quantiles (O. Vasicek, A test for normality based on sample
entropy, J. R. Statist. Soc. B 38, 1976).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BARELY = 0.3  # bits
OPEN_EDGE = 0.25  # of the largest density
BINS = 32
FAR = 1e-4  # a posterior whose median is that far in a tail of its prior
PILED, NEAR_END = 0.5, 0.1  # density at a bound, and where the median is, if a posterior presses against it

DETERMINED, BOUNDED_ABOVE, BOUNDED_BELOW, BARELY_INFORMED = (
    "determined",
    "bounded above",
    "bounded below",
    "barely informed",
)


@dataclass(frozen=True)
class Information:
    """What the data told about one quantity; see the module.

    Attributes
    ----------
    bits, shrinkage
        NaN where there is nothing to compare.
    lower_edge, upper_edge
        Density at the ends of the prior, in units of the largest.
    middle
        Median of v, the probability under the prior of values below the posterior's median.
    """

    bits: float
    shrinkage: float
    lower_edge: float
    upper_edge: float
    middle: float

    @property
    def kind(self) -> str:
        """``determined``, ``bounded above``, ``bounded below`` or ``barely informed``."""
        if not self.bits >= BARELY:
            return BARELY_INFORMED
        lower, upper = self.lower_edge >= OPEN_EDGE, self.upper_edge >= OPEN_EDGE
        if lower and upper:
            return BARELY_INFORMED
        return BOUNDED_ABOVE if lower else BOUNDED_BELOW if upper else DETERMINED

    @property
    def in_tail(self) -> bool:
        """Whether the posterior lies where its prior has almost no probability."""
        return self.middle < FAR or self.middle > 1 - FAR

    @property
    def presses_below(self) -> bool:
        """Whether the posterior piles up at the lower end of its prior's range."""
        return self.lower_edge >= PILED and self.middle < NEAR_END

    @property
    def presses_above(self) -> bool:
        """Whether it piles up at the upper end."""
        return self.upper_edge >= PILED and self.middle > 1 - NEAR_END


NONE = Information(math.nan, math.nan, math.nan, math.nan, math.nan)


def information(v: Array, rest: Array | None = None) -> Information:
    """What draws of v = F(x) say; ``rest`` is 1 - v, where that is known better than from v."""
    v = np.asarray(v, float)
    rest = 1.0 - v if rest is None else np.asarray(rest, float)
    usable = np.isfinite(v) & np.isfinite(rest)
    v, rest = v[usable], rest[usable]
    if v.size < 2:
        return NONE
    middle = float(np.median(v))
    near = v if middle <= 0.5 else rest  # where small numbers keep their digits
    return Information(
        bits=max(0.0, _bits(near)),
        shrinkage=1.0 - 12.0 * float(near.var()),
        lower_edge=_edge(v),
        upper_edge=_edge(rest),
        middle=middle if middle <= 0.5 else 1.0 - float(np.median(rest)),
    )


def _bits(v: Array) -> float:
    bins = min(BINS, max(2, v.size // 8))
    gaps = np.diff(np.quantile(v, np.linspace(0.0, 1.0, bins + 1)))
    return float(np.mean(np.log2(1.0 / (bins * np.maximum(gaps, 1e-300)))))


def _edge(v: Array) -> float:
    """Density near 0, on the scale of the median of v, in units of the largest density."""
    width = 0.1 * float(np.median(v))
    if not width > 0:
        return 1.0
    counts = np.bincount(np.minimum(v / width, 1000.0).astype(np.int64))[:1000]
    return float(np.sum(v < width) / counts.max())


def against_draws(prior: Array, posterior: Array) -> Information:
    """What the posterior says of a quantity whose prior is known from draws only."""
    before = np.sort(prior[np.isfinite(prior)])
    after = posterior[np.isfinite(posterior)]
    if before.size < 2 or before[0] == before[-1] or after.size < 2:
        return NONE
    below = (np.arange(before.size) + 0.5) / before.size
    return information(np.interp(after, before, below, left=0.5 / before.size, right=1 - 0.5 / before.size))
