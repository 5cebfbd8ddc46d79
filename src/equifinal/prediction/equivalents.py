"""Other parameters with the same output: found on the fibre, and shown by simulation to agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import DataError, SolverError
from equifinal.fibre import Fibre
from equifinal.fibre.of_problem import fibre_of
from equifinal.identifiability.analysis import analyse
from equifinal.language.expression import to_text
from equifinal.prediction.simulate import Trajectory, checked_values, simulate
from equifinal.problem.problem import Problem, SolverSettings
from equifinal.randomness import seed_of
from equifinal.showing import Shown

Array = NDArray[np.float64]

SOLVER: dict[str, Any] = {
    "rtol": 1e-9,
    "atol": 1e-12,
    "max_steps": 200_000,
}  # tighter than for a fit, so that agreement shows
CURVE = 200  # times of the curves, besides those asked for


@dataclass(frozen=True, eq=False, repr=False)
class Equivalents(Shown):
    """Parameter vectors with the same output.

    Attributes
    ----------
    theta
        One vector in each row, the given one first.
    trajectories
        For each vector, the trajectories of all experiments.
    differences
        For each experiment and output the largest difference from the first vector's, relative to its largest value.
    asked
        How many vectors were asked for.
    certain
        Whether all kinds of equivalents were looked for: not at special points, where there may be more.
    by_hand
        Whether a user gave the combinations.
    finer
        Whether the combinations are, or may be, finer than what data determine, so that others give the same output.
    unsolved
        Vectors at which the solver failed, with its reason; they are not among `theta`.
    """

    problem: Problem
    fibre: Fibre
    theta: Array
    trajectories: tuple[tuple[Trajectory, ...], ...]
    differences: Mapping[tuple[str, str], float]
    asked: int
    certain: bool
    by_hand: bool
    finer: bool
    unsolved: tuple[tuple[Array, str], ...] = ()

    def __repr__(self) -> str:
        return f"Equivalents({len(self.theta)} vectors, largest difference {self.largest_difference:.1e})"

    @property
    def agree(self) -> bool:
        """Whether the outputs are the same as far as the solver can tell."""
        return self.largest_difference < 1e3 * self.tolerance

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Which parameters differ between the vectors."""
        low, high = self.theta.min(axis=0), self.theta.max(axis=0)
        return high - low > 1e-9 * (np.abs(low) + np.abs(high))

    @property
    def tolerance(self) -> float:
        """The solver's relative tolerance, with which the differences are to be compared."""
        return float(SOLVER["rtol"])

    @property
    def largest_difference(self) -> float:
        return max(self.differences.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": list(self.fibre.names),
            "vectors": self.theta.tolist(),
            "combinations": {
                to_text(e): float(v)
                for e, v in zip(self.fibre.combinations.independent, self.fibre.xi(self.theta[:1])[0], strict=True)
            },
            "fibre_dimension": self.fibre.dimension,
            "certain": self.certain,
            "finer": self.finer,
            "agree": self.agree,
            "largest_difference": self.largest_difference,
            "differences": [{"experiment": e, "output": y, "relative": v} for (e, y), v in self.differences.items()],
        }


def equivalents(
    problem: Problem,
    at: Mapping[str, float] | None = None,
    n: int = 6,
    *,
    combinations: Sequence[str] = (),
    times: Sequence[float] | Array | None = None,
    seed: int | None = None,
    rng: Any = None,
    time_limit: float = 60.0,
    effort: float = 3.0,
) -> Equivalents:
    """Parameter vectors that give the same output as those at `at`, with the simulations that show it.

    Parameters
    ----------
    at
        Values of parameters; those left out are at their prior's median.
    n
        How many vectors, the given one included; fewer where there are fewer.
    combinations
        Identifiable combinations known by hand, instead of an analysis; they are checked.
    times
        When to compare the outputs; by default over the span of the data.
    seed
        The same seed gives the same vectors; 0 unless given.
    rng
        In place of ``seed``: a `numpy.random.Generator`, or anything that `numpy.random.default_rng` makes one of.
    time_limit, effort
        Of the analysis, as in `analyse`.

    Examples
    --------
    >>> import equifinal
    >>> found = equifinal.equivalents(equifinal.load("si"), n=3)
    >>> found.theta.shape
    (3, 4)
    """
    if not isinstance(problem, Problem):
        raise DataError(f"equivalents needs a Problem, such as equifinal.load(FILE) gives, not {problem!r:.60}")
    if not isinstance(at or {}, Mapping):
        raise DataError("'at' must map names of parameters to numbers")
    seed = seed_of(seed, rng) or 0
    given = checked_values(problem, at or {})
    grid = _grid(problem, times)
    limits: dict[str, Any] = {"time_limit": time_limit, "effort": effort, "seed": seed}
    analysis = None if combinations else analyse([e.model for e in problem.experiments], **limits)
    fibre = fibre_of(problem, combinations, outputs_only=True, analysis=analysis, **limits)
    values = {name: float(prior.quantile(0.5)) for name, prior in fibre.priors.items()} | given
    found = fibre.search(np.array([values[name] for name in fibre.names]), n, seed=seed)
    solver = SolverSettings(**SOLVER, method=problem.solver.method)
    careful = replace(problem, solver=solver)
    solved, curves, unsolved = [], [], []
    for row in found.theta:
        try:
            curves.append(tuple(simulate(careful, _named(fibre.names, row), times=grid)))
            solved.append(row)
        except SolverError as error:
            if not solved:
                raise SolverError(f"at the given parameters: {error}") from None
            unsolved.append((row, str(error)))
    return Equivalents(
        problem,
        fibre,
        np.array(solved),
        tuple(curves),
        _differences(curves),
        asked=n,
        certain=found.certain,
        by_hand=bool(combinations),
        finer=analysis is None or analysis.finer,
        unsolved=tuple(unsolved),
    )


def _named(names: Sequence[str], row: Array) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, row, strict=True)}


def _grid(problem: Problem, times: Sequence[float] | Array | None) -> Array:
    if times is None:
        every = np.unique(np.concatenate([e.times() for e in problem.experiments]))
        if not every.size:
            raise DataError("there are no data, so the times at which to compare the outputs must be given (`times`)")
    else:
        every = np.unique(np.atleast_1d(np.asarray(times, float)))
    early = any(e.model.onset is not None for e in problem.experiments)  # before time 0, too
    first = min(0.0, float(every[0])) if every.size and early else 0.0
    if not every.size or not np.isfinite(every).all() or every[0] < first or every[-1] <= first:
        raise DataError("times must be finite numbers, not negative and not all zero; the model starts at time 0")
    return np.unique(np.concatenate([np.linspace(first, every[-1], CURVE), every]))


def _differences(found: Sequence[Sequence[Trajectory]]) -> dict[tuple[str, str], float]:
    worst = {}
    for i, first in enumerate(found[0]):
        for name, values in first.outputs.items():
            size = max(float(np.abs(values).max()), 1e-300)
            largest = max(float(np.abs(other[i].outputs[name] - values).max()) for other in found)
            worst[first.experiment, name] = largest / size
    return worst
