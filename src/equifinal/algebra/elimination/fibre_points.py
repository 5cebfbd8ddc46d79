r"""The fibre through a random point: every parameter vector with the same output, sliced to finitely many
points.

1. The local analysis gives r and the coordinates that may be fixed.
2. Elimination gives equations which hold on the whole fibre (never more than that).
3. Their zeros are finitely many candidates.
4. The output series at the candidates tells which of them are on the fibre.

Steps 2 and 3 can only produce too many candidates, and step 4 removes exactly those whose output differs. No
Wronskian condition and no assumption on the initial values is needed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import SECOND, Budget, TooLarge
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, enough_experiments, lengthen, random_point
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ring, coefficients_in, mapped, ring, value_at
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.algebra.elimination.conjugates import agreeing
from equifinal.algebra.elimination.input_output import Signals, StartValues, orders_needed, relation_rows
from equifinal.algebra.elimination.interpolation import Coefficients, simple_relations
from equifinal.algebra.elimination.quotient import NotFinite, Points
from equifinal.algebra.elimination.solve import System, determined
from equifinal.algebra.elimination.state_elimination import Elimination, Eliminator, GenericPoint, best_elimination
from equifinal.algebra.elimination.taylor import taylor_equations
from equifinal.language.expression import Name
from equifinal.language.model import Model

STAGES = (10, 60, 250, 1000)  # terms of the equations used first
FEW_SAMPLES = 40
MAX_SAMPLES = 4000
MAX_ORDERS = 1200  # of series, as many as an input-output equation has monomials


@dataclass
class FibreSlice:
    """The points of the fibre through `local.point` with the coordinates `fixed` held at their values."""

    local: LocalAnalysis
    free: tuple[str, ...]
    fixed: dict[str, int]
    points: Points
    candidates: int
    method: str
    steps: float = 0.0  # it took to find
    eliminations: list[Elimination] | None = None  # for other fibres with the same coordinates fixed at the same values

    @property
    def degree(self) -> int:
        return self.points.count


def only_the_point(local: LocalAnalysis) -> FibreSlice:
    """A slice of which nothing is known but the point that it goes through."""
    coordinates = tuple(flint.nmod_poly([local.point[n]], local.prime) for n in local.names)
    points = Points(local.prime, flint.nmod_poly([0, 1], local.prime), coordinates)
    return FibreSlice(local, local.names, {}, points, 1, "power series, local only")


def generic_solution(
    model: Model, local: LocalAnalysis, rng: random.Random, signals: dict[str, np.ndarray], budget: Budget
) -> GenericPoint:
    """A solution through a random state, for telling true factors from extraneous ones."""
    prime = local.prime
    states = random_point(model.states, prime, rng)
    starts = {x: f"{x} at time 0" for x in model.states}
    unbound = replace(model, initial={x: Name(name) for x, name in starts.items()}, quantities={})
    names = [*local.names, *starts.values()]
    array = np.array([[*(local.point[n] for n in local.names), *states.values()]], dtype=np.int64)
    run = OutputSeries(unbound, names, array, signals, prime, tangents=False)
    run.extend(len(model.states) + 3, budget)
    coefficients = run.output_coefficients()
    outputs = {y: coefficients[i, :, 0] for i, y in enumerate(model.outputs)}
    return GenericPoint(states, local.point, outputs | signals, prime)


def output_series(
    model: Model,
    local: LocalAnalysis,
    signals: dict[str, np.ndarray],
    orders: int,
    rng: random.Random,
    budget: Budget,
) -> np.ndarray:
    """Taylor coefficients of the outputs at the point, array (outputs, orders)."""
    lengthen(signals, orders, local.prime, rng)
    array = np.array([[local.point[name] for name in local.names]], dtype=np.int64).reshape(1, len(local.names))
    run = OutputSeries(model, local.names, array, signals, local.prime, tangents=False)
    run.extend(orders, budget)
    return run.output_coefficients()[:, :, 0]


class Experiment:
    """Equations for the fibre from one experiment."""

    def __init__(
        self,
        model: Model,
        local: LocalAnalysis,
        index: int,
        free: Sequence[str],
        fixed: dict[str, int],
        rng: random.Random,
    ):
        self.model = model
        self.local = local
        self.rng = rng
        self.signals: dict[str, np.ndarray] = local.inputs[index]
        self.free: list[str] = list(free)
        self.fixed = fixed
        self.equations: list[Polynomial] = []
        self.nonzero: list[Polynomial] = []
        self.into: Ring = ring(free, local.prime)

    def eliminate(self, whole: Budget) -> Elimination:
        budget = whole.part(min(6 * SECOND, whole.left / 6))
        lengthen(self.signals, len(self.model.states) + 4, self.local.prime, self.rng)
        generic = generic_solution(self.model, self.local, self.rng, self.signals, budget)
        return best_elimination(
            lambda order: Eliminator(self.model, self.free, self.fixed, self.local.prime, generic, budget, order=order),
            self.rng,
        )

    def signals_to(self, orders: int, budget: Budget) -> Signals:
        """Inputs and outputs along the solution, with all derivatives known to at least `orders`
        coefficients.
        """
        length = orders + len(self.model.states) + 2
        series = output_series(self.model, self.local, self.signals, length, self.rng, budget)
        coefficients = {y: series[i] for i, y in enumerate(self.model.outputs)}
        return Signals(coefficients | {u: v[:length] for u, v in self.signals.items()}, self.local.prime)

    def collect(self, elimination: Elimination, budget: Budget) -> None:
        """Equations from the input-output equations and from the links at time 0."""
        budget.spend(4 * sum(map(len, elimination.equations)))
        needed = [orders_needed(elimination, equation) for equation in elimination.equations]
        orders = min(max([self.local.order + 4, *needed]), MAX_ORDERS)
        signals = self.signals_to(orders, budget)
        if elimination.parameters:
            for equation in elimination.equations:
                rows, _, _ = relation_rows(elimination, equation, signals, orders, budget)
                self.equations += [self.into.from_dict(row) for row in rows]
        values = dict(zip(self.free, self.into.gens(), strict=True))
        values |= {name: self.into.constant(v) for name, v in self.fixed.items()}
        start = StartValues(self.model, elimination, signals, values, self.into)
        for state, link in elimination.links:
            self.equations.append(start.image(link, budget))
            self.nonzero.append(start.image(coefficients_in(link, state)[-1], budget))
        self.equations += [start.image(constraint, budget) for constraint in elimination.open]
        self.nonzero += start.denominators()

    def interpolate(self, samples: int, budget: Budget) -> list[Polynomial]:
        """Equations from the simplest coefficients of input-output equations too long to write out."""
        coefficients = Coefficients(self.model, self.free, self.fixed, self.local, self.rng)
        return simple_relations(
            coefficients,
            self.into,
            lambda orders: self.signals_to(orders, budget),
            budget,
            samples=samples,
            thorough=samples > FEW_SAMPLES,
        )

    def expand(self, whole: Budget) -> list[Polynomial]:
        """Equations from the first Taylor coefficients of the outputs, as many as are short."""
        budget = whole.part(min(10 * SECOND, whole.left / 2))
        target = self.target(self.local.order, budget)
        found, denominators = taylor_equations(
            self.model, self.free, self.fixed, self.signals, target, self.into, budget
        )
        self.nonzero += denominators
        return found

    def target(self, orders: int, budget: Budget) -> np.ndarray:
        return output_series(self.model, self.local, self.signals, orders, self.rng, budget)


def slice_fibre(
    models: Sequence[Model],
    local: LocalAnalysis,
    fixed_names: Sequence[str],
    rng: random.Random,
    budget: Budget,
    eliminations: list[Elimination] | None = None,
    degree: int = 1,
) -> FibreSlice:
    """All points of the fibre with the named coordinates fixed.

    Parameters
    ----------
    eliminations
        Those found for another fibre with the same coordinates fixed at the same values.
    degree
        How many points there are at least: those of other generic fibres. No more candidates than that need no
        confirmation.

    Raises
    ------
    TooLarge
        When elimination or the Groebner basis takes more than the budget allows.
    NotFinite
        When the equations found do not determine finitely many candidates.
    """
    fixed, began = {name: local.point[name] for name in fixed_names}, budget.spent
    enough = len(eliminations) if eliminations else enough_experiments(models, local, budget)
    try:
        few = budget.part(budget.left / 2) if enough < len(models) else budget
        fibre = _slice(models[:enough], local, fixed, rng, few, eliminations, degree)
    except (NotFinite, TooLarge):
        if enough == len(models):
            raise
        fibre = _slice(models, local, fixed, rng, budget, None, degree)
    else:
        later = [Experiment(m, local, i, fibre.free, fixed, rng) for i, m in enumerate(models) if i >= enough]
        fibre.points = _agreeing(later, local, fibre.free, fixed, fibre.points, degree, budget)
    fibre.steps = budget.spent - began
    return fibre


def _slice(
    models: Sequence[Model],
    local: LocalAnalysis,
    fixed: dict[str, int],
    rng: random.Random,
    budget: Budget,
    eliminations: list[Elimination] | None,
    degree: int,
) -> FibreSlice:
    try:
        return _by_elimination(models, local, fixed, rng, budget.part(0.85 * budget.left), eliminations, degree)
    except (NotFinite, TooLarge):
        return _by_taylor_coefficients(models, local, fixed, rng, budget, degree)


def _by_taylor_coefficients(
    models: Sequence[Model],
    local: LocalAnalysis,
    fixed: dict[str, int],
    rng: random.Random,
    budget: Budget,
    degree: int,
) -> FibreSlice:
    """Candidates from the first Taylor coefficients themselves."""
    free = [name for name in local.names if name not in fixed]
    experiments = [Experiment(model, local, i, free, fixed, rng) for i, model in enumerate(models)]
    found = [equation for experiment in experiments for equation in experiment.expand(budget)]
    found.sort(key=len)
    budget.spend(20 + len(free) * len(found) * sum(map(len, found)))
    point = [local.point[n] for n in free]
    nonzero = [e for experiment in experiments for e in experiment.nonzero]
    enough = next((n for n in range(1, len(found) + 1) if isolated(found[:n], point, local.prime)), None)
    if enough is None:
        raise NotFinite
    for count in (min(enough + 3, len(found)), len(found), enough):
        try:
            system = System(free, found[:count], nonzero, local.prime, fixed.values())
            candidates = system.solve(rng, budget.part(budget.left / 2))
            return confirmed(experiments, local, free, fixed, candidates, "Taylor coefficients", degree, budget)
        except (TooLarge, NotFinite):
            continue
    raise TooLarge


def _by_elimination(
    models: Sequence[Model],
    local: LocalAnalysis,
    fixed: dict[str, int],
    rng: random.Random,
    budget: Budget,
    eliminations: list[Elimination] | None,
    degree: int,
) -> FibreSlice:
    """Candidates from input-output equations, written out or interpolated."""
    kept: list[tuple[Polynomial, tuple[str, ...]]] = []  # relations found by interpolation, with their unknowns
    known: dict[str, int] = {}  # parameters already shown to have the same value on the whole fibre
    method, samples = "input-output equations", FEW_SAMPLES
    while True:
        free = [name for name in local.names if name not in fixed and name not in known]
        experiments = [Experiment(model, local, i, free, fixed | known, rng) for i, model in enumerate(models)]
        if eliminations is None or known:
            eliminations = [experiment.eliminate(budget) for experiment in experiments]
        for experiment, elimination in zip(experiments, eliminations, strict=True):
            experiment.collect(elimination, budget)
        if all(elimination.complete for elimination in eliminations):
            try:
                candidates = _solve(experiments, free, local.prime, rng, budget)
            except NotFinite:  # links may say nothing at time 0
                method = "input-output equations and Taylor coefficients"
                for experiment in experiments:
                    experiment.equations += experiment.expand(budget)
                candidates = _solve(experiments, free, local.prime, rng, budget)
            break
        method = "interpolated input-output equations"
        relations = [substituted(r, names, known, experiments[0].into, free, budget) for r, names in kept]
        for experiment, elimination in zip(experiments, eliminations, strict=True):
            if not elimination.complete:
                relations += experiment.interpolate(samples, budget)
        kept = [(r, tuple(free)) for r in relations if not r.is_zero()]
        relations = [r for r, _ in kept]
        found = determined(relations, free, local.prime, budget.part(budget.left / 2))
        if found:
            known |= found
            continue
        try:
            experiments[0].equations += relations
            candidates = _solve(experiments, free, local.prime, rng, budget.part(min(5 * SECOND, budget.left / 2)))
            break
        except (NotFinite, TooLarge):
            samples *= 3
            if samples > MAX_SAMPLES:
                raise
    everything = [name for name in local.names if name not in fixed]
    coordinates = dict(zip(free, candidates.coordinates, strict=True))
    coordinates |= {name: flint.nmod_poly([value], local.prime) for name, value in known.items()}
    candidates = Points(local.prime, candidates.modulus, tuple(coordinates[name] for name in everything))
    fibre = confirmed(experiments, local, everything, fixed, candidates, method, degree, budget)
    if not known and all(elimination.complete for elimination in eliminations):
        fibre.eliminations = eliminations
    return fibre


def substituted(
    relation: Polynomial, names: Sequence[str], known: dict[str, int], into: Any, free: Sequence[str], budget: Budget
) -> Polynomial:
    """A relation in earlier unknowns, with those put in that have become known."""
    gens = dict(zip(free, into.gens(), strict=True))
    return mapped(relation, [gens[n] if n in gens else into.constant(known[n]) for n in names], into, budget)


def isolated(equations: Sequence[Polynomial], point: Sequence[int], prime: int) -> bool:
    """Whether the Jacobian has full rank at the point, so that no curve of solutions goes through it."""
    rows = [[value_at(e.derivative(i), point) for i in range(len(point))] for e in equations if not e.is_zero()]
    if not point:
        return True
    return bool(rows) and flint.nmod_mat(len(rows), len(point), [v for r in rows for v in r], prime).rank() == len(
        point
    )


def _solve(
    experiments: Sequence[Experiment], free: Sequence[str], prime: int, rng: random.Random, budget: Budget
) -> Points:
    """Candidates from the shortest equations that leave finitely many; the series tells which are true."""
    equations = [e for experiment in experiments for e in experiment.equations]
    point = [experiments[0].local.point[n] for n in free]
    # what vanishes at this generic point of the fibre, as leading coefficients may at special initial values, vanishes
    # at all of them; what does not, at none
    nonzero = [e for experiment in experiments for e in experiment.nonzero if value_at(e, point)]
    longest = max(map(len, equations), default=0)
    for most in [*(m for m in STAGES if 2 * m < longest), longest]:
        chosen = [e for e in equations if len(e) <= most]
        limit = budget if most == longest else budget.part(budget.left / 3)
        try:
            limit.spend(20 + len(free) * sum(map(len, chosen)))
            if not isolated(chosen, point, prime):
                raise NotFinite
            return System(free, chosen, nonzero, prime, experiments[0].fixed.values()).solve(rng, limit)
        except (NotFinite, TooLarge):
            if most == longest:
                raise
    raise NotFinite


def confirmed(
    experiments: Sequence[Experiment],
    local: LocalAnalysis,
    free: Sequence[str],
    fixed: Any,
    candidates: Points,
    method: str,
    degree: int,
    budget: Budget,
) -> FibreSlice:
    points = _agreeing(experiments, local, free, fixed, candidates, degree, budget)
    return FibreSlice(local, tuple(free), fixed, points, candidates.count, method)


def _agreeing(
    experiments: Sequence[Experiment],
    local: LocalAnalysis,
    free: Sequence[str],
    fixed: Any,
    points: Points,
    degree: int,
    budget: Budget,
) -> Points:
    """Keep the candidates whose outputs agree, eight times as far as the rank needed if more than `degree` do."""
    orders = 2 * max(4 * local.order, local.least)
    for experiment in experiments:
        if points.count > degree:
            target = experiment.target(orders, budget)
            points = agreeing(points, free, fixed, experiment.model, experiment.signals, target, budget, enough=degree)
    return points


__all__ = ["Experiment", "FibreSlice", "slice_fibre"]
