"""The fibre: what stands between the algebra and the samplers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.algebra.arithmetic.budget import Budget
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.generators.levels import Levels
from equifinal.errors import IdentifiabilityError, did_you_mean
from equifinal.fibre.chart import Chart, Roots
from equifinal.fibre.chart_maker import WORK, ChartMaker
from equifinal.fibre.combinations import Combinations, Geometry, Projection
from equifinal.fibre.partition import ranked, tangent_bases
from equifinal.fibre.spread import Equivalent, equivalents
from equifinal.fibre.support import Events, Support, events_of, support
from equifinal.fibre.weighted import Points, Weighted, points, weighted
from equifinal.identifiability.verdicts import Identifiability
from equifinal.language.expression import Expression, Name, names, to_text
from equifinal.language.parser import parsed_combination
from equifinal.problem.prior import Prior, from_theta, log_prior, prior_table, to_theta

Array = NDArray[np.float64]

DRAWS = 400  # of the prior, for averages


class Fibre:
    r"""All parameter vectors with the same values c of the combinations xi, inside the prior's support.

    Parameters
    ----------
    combinations
        Functions of the parameters, as text or expressions. The likelihood must be constant wherever they are:
        `Fibre.of` takes them from an analysis; `identifiability.constancy` checks others.
    priors
        A prior for every parameter, in the order of theta.
    constants
        Known numbers that the combinations contain by name.
    partition
        Which coordinates are theta_I: names; or ``"volume"`` (default), the set that maximises
        E[det_D^2/J^2] in sampling coordinates, among good ones that with fewest roots; or ``"qr"``, by
        rank-revealing QR of E[Dxi^T Dxi].

    Attributes
    ----------
    names
        The coordinates of theta.
    combinations
        `Combinations`: as many independent ones as their rank, and labels where these do not tell apart all
        branches.
    chart
        The chart of the partition.
    """

    names: tuple[str, ...]
    priors: dict[str, Prior]
    constants: dict[str, Fraction]
    functions: tuple[Expression, ...]
    table: Array
    bounds: Array
    spread: Array
    spread_in_coordinates: Array
    combinations: Combinations

    def __init__(
        self,
        combinations: Sequence[str | Expression],
        priors: Mapping[str, Prior],
        *,
        constants: Mapping[str, Any] | None = None,
        partition: str | Sequence[str] = "volume",
        _chosen: Sequence[int] | None = None,
    ):
        if isinstance(combinations, str):
            raise IdentifiabilityError("combinations must be a list of texts, such as ['a*b', 'b/c']")
        self.names = tuple(priors)
        self.priors = dict(priors)
        self.constants = {n: Fraction(v) for n, v in (constants or {}).items()}
        self.functions = tuple(parsed_combination(c) for c in combinations)
        self._check_names()
        self.table = prior_table(self.priors.values()).reshape(len(self.names), -1)
        self.bounds = np.ascontiguousarray(self.table[:, 5:7])
        quartiles = np.array([p.quantile([0.25, 0.75]) for p in self.priors.values()]).T
        self.spread = np.ptp(quartiles, axis=0)
        self.spread_in_coordinates = np.ptp(from_theta(np.ascontiguousarray(quartiles), self.table), axis=0)
        budget = Budget(WORK)
        try:
            self._levels = Levels(self.functions, self.constants, self.names)
        except BadPrime:
            raise IdentifiabilityError("a combination divides by zero for all parameters") from None
        self._chosen, self.combinations = self._independent(budget, _chosen)
        self._charts = ChartMaker(self.combinations, self._levels, self.constants, self.bounds)
        self.chart: Chart = self._charts.chart(partition, self._jacobians, self.prior_draws, budget)

    @staticmethod
    def of(result: Identifiability, priors: Mapping[str, Prior], *, kept: Sequence[str] = (), **options: Any) -> Fibre:
        """The fibre of an analysed model; parameters that it does not have stand for themselves, as do those in `kept`.

        For a likelihood, `kept` must hold every noise parameter: it matters even where the outputs do not determine it.

        Raises
        ------
        IdentifiabilityError
            If the combinations are not known to be complete, or a parameter has no prior.
        """
        if not result.complete:
            raise IdentifiabilityError(
                "the analysis did not find all identifiable combinations, so its fibres may hold parameters with "
                f"different outputs; allow {result.missing}, supply the combinations yourself, or use the random walk"
            )
        for name in result.parameters:
            if name not in priors:
                raise IdentifiabilityError(f"parameter '{name}' has no prior{did_you_mean(name, priors)}")
        own = [Name(n) for n in priors if n not in result.parameters or n in kept]
        own = [name for name in own if name not in result.combinations]
        return Fibre([*result.combinations, *own], priors, constants=result.constants, **options)

    def __reduce__(self) -> tuple[Any, ...]:  # machine code does not travel; the same partition is compiled again
        options: dict[str, Any] = {"constants": self.constants, "partition": self.free}
        options["_chosen"] = self._chosen  # c must mean the same everywhere, whatever rounding says of equal choices
        return partial(Fibre, self.functions, self.priors, **options), ()

    def identity(self) -> str:
        """What c, labels and theta_I mean; equal for equal fibres."""
        functions = [to_text(f) for f in (*self.combinations.independent, *self.combinations.labels)]
        return repr((functions, self.rank, sorted(self.constants.items()), self.free, self.bounds.tolist()))

    def __repr__(self) -> str:
        shown = ", ".join(to_text(e) for e in self.combinations.independent)
        return f"Fibre({shown}; free: {', '.join(self.free) or 'none'}; {self.chart.kind}, {self.chart.degree} roots)"

    # --- what it is ---

    @property
    def dimension(self) -> int:
        """Dimension r of each fibre."""
        return len(self.names) - self.combinations.rank

    @property
    def rank(self) -> int:
        """Number q of independent combinations."""
        return self.combinations.rank

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the free coordinates theta_I."""
        return tuple(self.names[k] for k in self.chart.free)

    # --- xi ---

    def xi(self, theta: Array) -> Array:
        """c = xi(theta), (n, q)."""
        return self.combinations.all_values(self._rows(theta))[:, : self.rank]

    def labels(self, theta: Array) -> Array:
        """Values of the functions that tell apart branches with the same c, (n, labels)."""
        return self.combinations.all_values(self._rows(theta))[:, self.rank :]

    def geometry(self, theta: Array) -> Geometry:
        """xi, Dxi, log J and status in theta."""
        return self.combinations.in_theta(self._rows(theta), self.spread)

    def geometry_in_coordinates(self, u: Array) -> Geometry:
        """The same in sampling coordinates."""
        return self.combinations.in_coordinates(self._rows(u), self.table, self.spread_in_coordinates)

    def project(self, u: Array, v: Array) -> Projection:
        """Vectors v at points u, both in sampling coordinates, split along and across the fibre."""
        return self.combinations.project(self._rows(u), self._rows(v), self.table, self.spread_in_coordinates)

    def to_coordinates(self, theta: Array) -> Array:
        return from_theta(self._rows(theta), self.table)

    def to_theta(self, u: Array) -> Array:
        return to_theta(self._rows(u), self.table)[0]

    def log_prior(self, theta: Array) -> Array:
        return log_prior(self._rows(theta), self.table)

    def contains(self, theta: Array) -> NDArray[np.bool_]:
        """Whether rows lie inside the prior's support."""
        theta = self._rows(theta)
        return np.all((self.bounds[:, 0] < theta) & (theta < self.bounds[:, 1]), axis=1)

    # --- charts ---

    def roots(self, free: Array, c: Array, labels: Array | None = None) -> Roots:
        """All points of the fibre over c in the prior's support with theta_I = free; see `TriangularChart.roots`."""
        free = _checked(free, self.dimension, "theta_I", self.free)
        c, labels = self._values(c, labels, len(free))
        return self.chart.roots(free, c, labels)

    def points(self, free: Array, c: Array, labels: Array | None = None) -> Points:
        """The same without determinants, which is several times faster on rational charts."""
        free = _checked(free, self.dimension, "theta_I", self.free)
        return points(self.chart, self.table, free, *self._values(c, labels, len(free)))

    def weighted(self, free: Array, c: Array) -> Weighted:
        """Roots at points theta_I (n, N, r), N for each of the values c (n, q), with ``log p(theta) - log |det|``.

        The same as `roots` and `log_prior` together, labels disregarded, and several times faster on rational charts.
        """
        free = np.ascontiguousarray(free, dtype=np.float64)
        if free.ndim != 3 or free.shape[2] != self.dimension:
            shown = f" ({', '.join(self.free)})" if self.free else ""
            raise IdentifiabilityError(
                f"theta_I must hold {self.dimension} numbers{shown} per point, and N points for each row of c, in "
                f"the shape (n, N, {self.dimension}), not {free.shape}"
            )
        c = _checked(c, self.rank, "c", map(to_text, self.combinations.independent))
        if len(c) != len(free):
            raise IdentifiabilityError(f"c must have {len(free)} rows, as many as theta_I has, not {len(c)}")
        return weighted(self.chart, self.table, free, c)

    def _rows(self, theta: Any) -> Array:
        return _checked(theta, len(self.names), "theta", self.names)

    def _values(self, c: Any, labels: Any, n: int) -> tuple[Array, Array | None]:
        c = _checked(c, self.rank, "c", map(to_text, self.combinations.independent))
        if labels is not None:
            labels = _checked(labels, len(self.combinations.labels), "labels", map(to_text, self.combinations.labels))
        for what, rows in (("c", c), ("labels", labels)):
            if rows is not None and len(rows) not in (1, n):
                raise IdentifiabilityError(f"{what} must have one row, or {n} as theta_I has, not {len(rows)}")
        return c, labels

    def support(self, c: Array, labels: Array | None = None) -> Support:
        """The intervals of theta_I over which M_c is inside the prior's support, for fibres of dimension 1."""
        if self.dimension != 1:
            raise IdentifiabilityError(
                f"only fibres of dimension 1 have intervals; this one has dimension {self.dimension}"
            )
        k = int(self.chart.free[0])
        c, labels = self._values(c, labels, len(_batch(c)))
        return support(self.chart, self._events, self.table, c, labels, self.bounds[k])

    @cached_property
    def _events(self) -> Events | None:
        form = self._charts.form(self.free, Budget(WORK)).found
        return events_of(form, self.free[0], self.bounds)

    def equivalents(self, theta: Array, n: int = 10, *, seed: int = 0) -> Array:
        """Parameter vectors with the same output as theta, spread over the admissible fibre and all its branches.

        Returns
        -------
        (n, d), `theta` first; fewer rows where the fibre has fewer points. At a special point (combinations dependent,
        roots meeting) there may be more than are found, and a warning says so.
        """
        found = self.search(theta, n, seed=seed)
        if not found.certain:
            warnings.warn("theta is a special point: there may be more equivalents than these", stacklevel=2)
        return found.theta

    def search(self, theta: Array, n: int, *, seed: int = 0) -> Equivalent:
        """The same, with a word on whether anything may be missing instead of a warning."""
        theta = self._rows(theta)
        if len(theta) != 1:
            raise IdentifiabilityError(f"give one parameter vector theta at a time, not {len(theta)}")
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise IdentifiabilityError(f"the seed must be a non-negative whole number, not {seed!r}")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise IdentifiabilityError(f"the number of parameter vectors must be a positive whole number, not {n!r}")
        if not np.isfinite(theta).all() or not self.contains(theta)[0]:
            off = next(k for k, x in enumerate(theta[0]) if not self.bounds[k, 0] < x < self.bounds[k, 1])
            raise IdentifiabilityError(
                f"{self.names[off]} = {theta[0, off]:g} is outside its prior's support "
                f"({self.bounds[off, 0]:g}, {self.bounds[off, 1]:g})"
            )
        values = self.combinations.all_values(theta)[0]
        for function, value in zip((*self.combinations.independent, *self.combinations.labels), values, strict=True):
            if not np.isfinite(value):
                used = [n for n in names(function) if n in self.names]
                shown = ", ".join(f"{n} = {theta[0, self.names.index(n)]:g}" for n in used)
                raise IdentifiabilityError(
                    f"{to_text(function)} is not a finite number at {shown}: choose other values"
                )
        return equivalents(self, theta, int(n), np.random.default_rng(seed))

    def partition_at(self, c: Array, labels: Array | None = None) -> tuple[str, ...]:
        """The free coordinates that would be best on the fibre over one c, a function of c alone.

        The score det_D^2/J^2 is averaged over the prior's conditional law on the fibre, by importance sampling from
        always the same points of theta_I.
        """
        free = self.prior_draws[:, self.chart.free]
        roots = self.roots(free, c, labels)
        there = np.arange(roots.theta.shape[1]) < roots.found[:, None]
        theta, log_det = roots.theta[there], roots.log_det[there]
        others = [k for k in range(len(self.names)) if k not in self.chart.free]
        log_weight = log_prior(np.ascontiguousarray(theta[:, others]), self.table[others]) - log_det
        found = self.geometry_in_coordinates(self.to_coordinates(theta)) if len(theta) else None
        if found is None or not (fine := (found.status == 0) & np.isfinite(log_weight)).any():
            return self.free
        weights = np.exp(log_weight[fine] - log_weight[fine].max())
        scored = ranked(tangent_bases(found.jacobian[fine]), weights)
        return tuple(self.names[k] for k in scored[0][1]) if scored else self.free

    def with_partition(self, partition: str | Sequence[str]) -> Fibre:
        """The same fibre in another chart."""
        return Fibre(
            self.functions,
            self.priors,
            constants=self.constants,
            partition=partition,
            _chosen=self._chosen,
        )

    @cached_property
    def other_partitions(self) -> list[tuple[str, ...]]:
        """Other sets of free coordinates than the chart's own, the best by volume first."""
        sets = [tuple(self.names[k] for k in free) for _, free in ranked(tangent_bases(self._jacobians()))]
        return [free for free in sets if free != self.free]

    @cached_property
    def prior_draws(self) -> Array:
        """Some points of the support, always the same."""
        rng = np.random.default_rng(0)
        uniforms = rng.random((DRAWS, len(self.names)))
        return np.column_stack([p.quantile(uniforms[:, k]) for k, p in enumerate(self.priors.values())])

    # --- construction ---

    def _check_names(self) -> None:
        if not self.names:
            raise IdentifiabilityError("a fibre needs at least one parameter")
        for name in self.constants:
            if name in self.priors:
                raise IdentifiabilityError(f"'{name}' is given both as a constant and as a parameter with a prior")
        for name, prior in self.priors.items():
            if not isinstance(prior, Prior):
                raise IdentifiabilityError(f"the prior of '{name}' must be a Prior, not {prior!r}")
        for function in self.functions:
            for name in names(function):
                if name not in self.priors and name not in self.constants:
                    raise IdentifiabilityError(
                        f"combination {to_text(function)} needs '{name}', which has no prior"
                        f"{did_you_mean(name, (*self.priors, *self.constants))}"
                    )

    def _independent(self, budget: Budget, chosen: Sequence[int] | None) -> tuple[tuple[int, ...], Combinations]:
        """Choose as many functions as the rank: those that tell apart the most, and of these the best conditioned."""
        choices, sufficient = self._levels.independent(budget.part(WORK / 2))
        if chosen is not None:
            choices = [tuple(chosen)]
        candidates = []
        for choice in choices:
            left = [] if sufficient else [f for j, f in enumerate(self.functions) if j not in choice]
            used = Combinations(self.names, [self.functions[j] for j in choice], left, self.constants)
            candidates.append((choice, used))
        if len(candidates) == 1:
            return candidates[0]
        u = from_theta(self.prior_draws, self.table)

        def conditioning(candidate: tuple[tuple[int, ...], Combinations]) -> float:
            return _conditioning(candidate[1].in_coordinates(u, self.table, self.spread_in_coordinates))

        return max(candidates, key=conditioning)

    def _jacobians(self) -> Array:
        """Compute Jacobians of full rank at prior draws, in sampling coordinates."""
        found = self.geometry_in_coordinates(from_theta(self.prior_draws, self.table))
        jacobians = found.jacobian[found.status == 0]
        if not len(jacobians):
            raise IdentifiabilityError("the combinations are dependent or infinite everywhere in the prior's support")
        return jacobians


def _conditioning(found: Geometry) -> float:
    """The mean log of J over the product of its rows' lengths: 0 for orthogonal gradients."""
    fine = found.status == 0
    if not fine.any():
        return -np.inf
    largest = np.abs(found.jacobian[fine]).max(axis=2)
    lengths = np.log(largest * np.linalg.norm(found.jacobian[fine] / largest[..., None], axis=2)).sum(axis=1)
    return float(np.mean(found.log_volume[fine] - lengths))


def _batch(rows: Any) -> Array:
    return np.atleast_2d(np.ascontiguousarray(rows, dtype=np.float64))


def _checked(rows: Any, width: int, what: str, names: Iterable[str]) -> Array:
    """Check shapes and types first, because compiled code would not."""
    rows = _batch(rows)
    if rows.ndim != 2 or rows.shape[1] != width:
        shown = ", ".join(names)
        raise IdentifiabilityError(
            f"{what} must hold {width} numbers{f' ({shown})' if shown else ''} per row; its shape is {rows.shape}"
        )
    return rows
