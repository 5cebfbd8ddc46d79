"""Which coordinates of a fibre are free, and the chart that solves for the others.

Among partitions that are nearly as good as the best by volume (see `partition`), that with fewest roots is taken, and
one that can be solved step by step before one that needs the general solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.arithmetic.budget import SECOND, Budget, TooLarge
from equifinal.algebra.elimination.triangular import NoTriangularForm, Triangular
from equifinal.algebra.generators.levels import Levels
from equifinal.errors import IdentifiabilityError, did_you_mean
from equifinal.fibre.chart import Chart, TriangularChart
from equifinal.fibre.combinations import Combinations
from equifinal.fibre.homotopy import GeneralChart
from equifinal.fibre.partition import rank_revealing, ranked, tangent_bases

Array = NDArray[np.float64]

GOOD = 0.5  # share of the best score from which on few roots and closed forms decide
TRIED = 12  # partitions
WORK = 20 * SECOND  # for finding charts symbolically


class Form(NamedTuple):
    """A partition, how many complex roots it has (0: not known), and its symbolic solution if there is one."""

    free: tuple[str, ...]
    degree: int
    found: Triangular | None

    @property
    def largest(self) -> int:
        return max((step.degree for step in self.found.steps), default=1) if self.found else 0


@dataclass(frozen=True, eq=False)
class ChartMaker:
    """Charts for the fibres of some combinations.

    Attributes
    ----------
    levels
        Of all functions that are constant on fibres, which tell what partitions are valid.
    bounds
        (d, 2): the support of each coordinate.
    """

    combinations: Combinations
    levels: Levels
    constants: Mapping[str, Fraction]
    bounds: Array

    @property
    def names(self) -> tuple[str, ...]:
        return self.combinations.names

    def chart(
        self, partition: str | Sequence[str], jacobians: Callable[[], Array], prior_draws: Array, budget: Budget
    ) -> Chart:
        """The chart of a partition by name, or of ``"volume"`` or ``"qr"``, which look at Jacobians of full rank."""
        if partition == "volume":
            form = self._best(jacobians(), budget)
        else:
            form = self.form(self._free(partition, jacobians), budget)
        if form.found is None:
            return GeneralChart(self.combinations, form.free, form.degree, self.bounds, prior_draws)
        return TriangularChart(self.combinations, form.free, form.found.steps, form.degree, self.bounds)

    def form(self, free: Sequence[str], budget: Budget) -> Form:
        """How many roots there are, and how to find them step by step if that was found."""
        independent = self.combinations.independent
        degree = Levels(independent, self.constants, self.names).count(free, budget)
        dependent = [n for n in self.names if n not in free]
        try:
            found = Triangular(independent, self.constants, self.names, dependent, budget.part(3 * SECOND))
        except (NoTriangularForm, TooLarge):
            return Form(tuple(free), degree, None)
        return Form(tuple(free), degree or found.degree, found)

    def _best(self, jacobians: Array, budget: Budget) -> Form:
        scored = ranked(tangent_bases(jacobians))
        if not scored:
            raise IdentifiabilityError("the combinations are dependent everywhere in the prior's support")
        best: tuple[tuple[Any, ...], Form] | None = None
        for value, columns in [s for s in scored if s[0] >= GOOD * scored[0][0]][:TRIED]:
            if best is not None and budget.left < WORK / 2:
                break
            form = self.form(tuple(self.names[k] for k in columns), budget)
            key = (form.found is None, form.degree or np.inf, form.largest > 2, -value)
            if best is None or key < best[0]:
                best = key, form
            if best[0][:2] == (False, 1):
                break
        assert best is not None
        return best[1]

    def _free(self, partition: str | Sequence[str], jacobians: Callable[[], Array]) -> tuple[str, ...]:
        """Free coordinates that a user names, or asks to be found by QR; checked."""
        if partition == "qr":
            free = tuple(self.names[k] for k in rank_revealing(jacobians()))
            if not self.levels.is_valid(free):
                raise IdentifiabilityError(
                    f"the partition by rank-revealing QR ({', '.join(free)} free) is not valid: the combinations do "
                    "not determine the other parameters; use partition 'volume'"
                )
            return free
        if isinstance(partition, str):
            raise IdentifiabilityError(
                f"partition must be 'volume', 'qr' or names of parameters, not '{partition}'"
                f"{did_you_mean(partition, ('volume', 'qr'))}"
            )
        free = tuple(partition)
        for name in free:
            if name not in self.names:
                raise IdentifiabilityError(
                    f"unknown parameter '{name}' among the free coordinates{did_you_mean(name, self.names)} "
                    f"(parameters: {', '.join(self.names)})"
                )
        dimension = len(self.names) - self.combinations.rank
        if len(free) != dimension or not self.levels.is_valid(free):
            raise IdentifiabilityError(
                f"({', '.join(free)}) cannot be the free coordinates: the {self.combinations.rank} independent "
                f"combinations must determine the others, so {dimension} of the parameters that move along the fibre "
                "are needed"
            )
        return free
