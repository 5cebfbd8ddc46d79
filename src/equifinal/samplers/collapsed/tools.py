"""Which points on a fibre: how many, in which chart, by which law.

The fibre's own chart is the best for the prior as a whole, and its law suits most fibres. But on the fibres that the
data leave, another chart may need a tenth of the points: where its free coordinates are bounded by the prior alone,
say, and all that is solved for then stays inside its bounds. Or several charts, mixed, each describe what the others
do not. So where the fibre's own chart needs many points, others are tried, at modes of the posterior.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError, SamplingError
from equifinal.fibre import Fibre
from equifinal.samplers.collapsed.settings import POINTS, Settings
from equifinal.samplers.marginal.target import AnyEstimator
from equifinal.samplers.points.estimator import Estimator, log_variance
from equifinal.samplers.points.law import Moments
from equifinal.samplers.points.mixing import charts_to_mix
from equifinal.samplers.pseudo_marginal import sampler as pseudo_marginal

Array = NDArray[np.float64]

LITTLE_NOISE = 0.02  # variance of log hat p_C that is good enough,
NO_NOISE = 1e-9  # and that of a law from which a single point tells as much as many
FEW = 64  # points: if the fibre's own chart needs no more, no other is tried
OTHERS, BEST = 12, 3  # charts that are tried, and of these (with each law) how many with more points


class Way(NamedTuple):
    """Charts, by their free coordinates, and a law of points in them; none of them: as the settings have it."""

    charts: tuple[tuple[str, ...], ...]
    law: str


class Enough(NamedTuple):
    """A number of points, a way, and the variance of log hat p_C with them."""

    number: int
    way: int
    noise: float

    @property
    def is_enough(self) -> bool:
        return self.noise < (LITTLE_NOISE if self.number > 1 else NO_NOISE)


class Tools:
    """Estimators of p_C for a fibre and settings: with so many points, in one way or another."""

    fibre: Fibre
    settings: Settings
    numbers: tuple[int, ...]
    ways: list[Way]

    def __init__(self, fibre: Fibre, settings: Settings):
        self.fibre, self.settings = fibre, settings
        self.numbers = (1, *POINTS) if settings.aux is None else (int(settings.aux),)
        self.ways = [Way((), "")]
        asked = settings.charts or settings.partition != "volume" or settings.law != "auto"
        if not fibre.dimension or len(self.numbers) == 1 or asked:
            return
        if fibre.dimension > 1:
            self.ways += [Way((fibre.free,), "prior")]
            self.ways += [Way((free,), law) for free in fibre.other_partitions[:OTHERS] for law in ("prior", "auto")]
        if (mixed := charts_to_mix(fibre)) and self.settings.roots == "sum":
            self.ways.append(Way(mixed, "auto"))

    def make(self, number: int, way: int) -> AnyEstimator:
        """The estimator of a number of points and a way."""
        charts, law = self.ways[way]
        settings = replace(self.settings, aux=int(number))
        if len(charts) > 1:
            settings = replace(settings, law=law, charts=charts)
        elif charts:
            settings = replace(settings, law=law, partition="volume" if charts[0] == self.fibre.free else charts[0])
        return pseudo_marginal.estimator(self.fibre, settings)

    def enough(self, c: Array, moments: Moments, rng: np.random.Generator) -> Enough:
        """As few points as make log hat p_C nearly free of noise over c (n, q), on average, in the best way.

        A single one if it is free of it altogether.
        """
        few = [number for number in self.numbers if number <= FEW] or [self.numbers[0]]
        found = self.at_least(few[0], 0, c, moments, rng, few[-1])
        if found.is_enough or len(self.ways) == 1:
            more = [number for number in self.numbers if number > found.number]
            return found if found.is_enough or not more else self.at_least(more[0], 0, c, moments, rng)
        tried = [self._tried(few[-1], way, c, moments, rng) for way in range(len(self.ways))]
        best = sorted((one for one in tried if math.isfinite(one.noise)), key=lambda one: one.noise)[:BEST]
        for number in self.numbers[1:]:
            for way in [one.way for one in best] or [0]:
                found = self._tried(number, way, c, moments, rng)
                if found.is_enough:
                    return found
        return found

    def at_least(
        self, number: int, way: int, c: Array, moments: Moments, rng: np.random.Generator, most: float = math.inf
    ) -> Enough:
        """The same in one way, from so many points on."""
        found = Enough(number, way, math.inf)
        for more in self.numbers:
            if number <= more <= most:
                found = self._tried(more, way, c, moments, rng)
                if found.is_enough:
                    break
        return found

    def _tried(self, number: int, way: int, c: Array, moments: Moments, rng: np.random.Generator) -> Enough:
        """How noisy log hat p_C is over c, on average."""
        try:
            tool = self.make(number, way)
        except (IdentifiabilityError, SamplingError):
            if way == 0:
                raise
            return Enough(number, way, math.inf)
        if way and isinstance(tool, Estimator) and any(one.chart.kind == "general" for one in tool.charts):  # slow
            return Enough(number, way, math.inf)
        n, trials = len(c), max(16, 100 // len(c))
        repeated = Moments(*(np.repeat(part, n * trials, axis=0) for part in moments))
        points = tool.many_uniforms(rng, n * trials)
        log_p = tool.estimate(np.repeat(c, trials, axis=0), points, repeated).log_p.reshape(n, trials)
        noise = float(log_variance(log_p).mean())
        return Enough(tool.number, way, noise)
