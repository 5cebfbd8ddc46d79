r"""Input-output equations too long to write out: their simplest coefficients, by interpolation.

At numeric parameters elimination is fast: the polynomials contain derivatives of outputs only. So the
coefficients :math:`c_j(\theta)` of an input-output equation are functions that can be *evaluated*, though not
written down. Some of their ratios are simple; those are recovered from values at random points, and a few of
them usually determine the parameters. A ratio :math:`c_j/c_0` is identifiable when the monomials of the
equation satisfy no other linear relation along the solution than the equation itself (the Wronskian test),
which is checked for every equation used.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis, random_point
from equifinal.algebra.arithmetic.polynomials import Polynomial, Ring, grouped, value_at
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.algebra.elimination.input_output import Signals, taylor_matrix
from equifinal.algebra.elimination.ratios import Key, Ratios
from equifinal.algebra.elimination.state_elimination import Elimination, Eliminator, GenericPoint, best_elimination
from equifinal.language.expression import Name
from equifinal.language.model import Model

LARGE = 10**6
MAX_KEYS = 4000
LINE = 24  # points on a line, enough for degree 10
AXIS = 12  # points along one parameter, enough for degree 4
TRIED_PAIRS = 100
SPARE = 6
TRIES = 8  # pairs of coefficients with the same dependence
DEGREES = (
    (1, 0),
    (1, 1),
    (2, 0),
    (2, 1),
    (1, 2),
    (3, 0),
    (2, 2),
    (3, 1),
    (4, 0),
    (3, 2),
    (3, 3),
    (4, 2),
    (4, 4),
)


class Coefficients:
    """Coefficients of all input-output equations of a model as functions of the free parameters, by
    evaluation.
    """

    def __init__(
        self,
        model: Model,
        free: Sequence[str],
        fixed: Mapping[str, int],
        local: LocalAnalysis,
        rng: random.Random,
    ):
        self.model = model
        self.free: list[str] = list(free)
        self.fixed: dict[str, int] = dict(fixed)
        self.local = local
        self.rng = rng
        self.prime: int = local.prime
        self.plan: tuple[int, ...] = ()

    def _eliminated(self, parameters: Mapping[str, int], generic: GenericPoint, budget: Budget) -> Elimination:
        """Eliminate at one point, in the order found best at the first one."""

        def make(order: random.Random | None) -> Eliminator:
            return Eliminator(
                self.model,
                [],
                parameters,
                self.prime,
                generic,
                budget,
                resultant_limit=LARGE,
                order=order,
                plan=self.plan,
            )

        result = make(None).run() if self.plan else best_elimination(make, self.rng)
        self.plan = tuple(x for x, _ in result.links)
        return result

    def at(self, points: Sequence[Mapping[str, int]], budget: Budget) -> list[Elimination]:
        """Eliminations at numeric parameters, one for each point."""
        model, prime = self.model, self.prime
        starts = {x: f"{x} at time 0" for x in model.states}
        unbound = replace(model, initial={x: Name(name) for x, name in starts.items()}, quantities={})
        names = [*self.free, *self.fixed, *starts.values()]
        states = [random_point(model.states, prime, self.rng) for _ in points]
        array = np.array(
            [
                [*(point[n] for n in self.free), *self.fixed.values(), *state.values()]
                for point, state in zip(points, states, strict=True)
            ],
            dtype=np.int64,
        )
        signals = {u: np.array([self.rng.randrange(prime) for _ in range(len(model.states) + 4)]) for u in model.inputs}
        run = OutputSeries(unbound, names, array, signals, prime, tangents=False)
        run.extend(len(model.states) + 3, budget)
        coefficients = run.output_coefficients()
        found = []
        for i, (point, state) in enumerate(zip(points, states, strict=True)):
            parameters = {**point, **self.fixed}
            outputs = {y: coefficients[j, :, i] for j, y in enumerate(model.outputs)}
            generic = GenericPoint(state, parameters, outputs | signals, prime)
            result = self._eliminated(parameters, generic, budget)
            if not result.complete:
                raise TooLarge
            found.append(result)
        return found


def has_one_relation(elimination: Elimination, equation: Polynomial, signals: Signals, budget: Budget) -> bool:
    """Whether the equation is the only linear relation among its monomials along the solution (Wronskian
    test).
    """
    keys = list(grouped(equation, elimination.parameters))
    if len(keys) > MAX_KEYS:
        raise TooLarge
    orders = len(keys) + 2
    budget.spend(matrix_steps(len(keys), orders))
    matrix = taylor_matrix(elimination, keys, signals, orders, budget)
    return matrix.rank() == len(keys) - 1


def simple_relations(
    coefficients: Coefficients,
    into: Ring,
    signals_of_length: Any,
    budget: Budget,
    *,
    samples: int,
    thorough: bool,
) -> list[Polynomial]:
    """Equations for the parameters of the fibre from the simplest coefficient ratios of every input-output
    equation.

    Parameters
    ----------
    signals_of_length
        Gives the `Signals` along the actual solution to that many orders.
    samples
        Random points for interpolation; more of them allow less simple ratios.
    thorough
        Look for ratios of low degree, too, not only for those that depend on few parameters.
    """
    local, prime, rng = coefficients.local, coefficients.prime, coefficients.rng
    used = [q for q in coefficients.free if any(q in names for names in _names_in_motion(coefficients.model))]
    base = {q: local.point[q] for q in coefficients.free}
    moved = [{**base, q: rng.randrange(1, prime)} for q in used]
    scattered = [random_point(coefficients.free, prime, rng) for _ in range(samples)]
    direction = random_point(coefficients.free, prime, rng)
    abscissae = list(range(1, LINE + 1)) if thorough else []
    on_line = [{q: (base[q] + s * direction[q]) % prime for q in base} for s in abscissae]
    if thorough:
        on_line += [{**base, q: (base[q] + s) % prime} for q in used for s in range(1, AXIS + 1)]
    first, *rest = coefficients.at([base, *moved], budget)
    others = coefficients.at([*scattered, *on_line], budget)
    relations: list[Polynomial] = []
    for e, equation in enumerate(first.equations):
        groups = grouped(equation, [])
        keys = list(groups)
        if len(keys) < 2:
            continue
        tables = [_values(result.equations[e], keys) for result in (first, *rest, *others)]
        if any(table is None for table in tables):
            raise BadPrime
        if not has_one_relation(first, equation, signals_of_length(len(keys) + 2), budget):
            continue
        rows = np.array(tables, dtype=np.int64)
        ratios = Ratios(keys, coefficients.free, prime, into)
        labels = ratios.dependence(rows[0], rows[1 : len(used) + 1])
        positions = [coefficients.free.index(q) for q in used]
        sampled = rows[len(used) + 1 : len(used) + 1 + samples]
        if thorough:
            first_line = len(used) + 1 + samples
            line = rows[first_line : first_line + LINE]
            axes = [rows[first_line + LINE + k * AXIS : first_line + LINE + (k + 1) * AXIS] for k in range(len(used))]
            by_degree = ratios.low_degree_pairs(labels, line, abscissae, rng, budget)
            relations += _low_degree_relations(
                ratios, by_degree, positions, list(base.values()), rows[0], sampled, scattered, axes, budget
            )
        for which, pairs in ratios.simple_pairs(labels).items():
            which_free = tuple(positions[k] for k in which)
            distinct: dict[str, Polynomial] = {}
            for j, i in _spread(pairs, rng):
                budget.spend(10 * samples)
                column = [
                    int(a) * pow(int(b), -1, prime) % prime for a, b in zip(sampled[:, j], sampled[:, i], strict=True)
                ]
                fit = next(
                    (
                        f
                        for f in (ratios.fitted(which_free, column, scattered, d, budget) for d in DEGREES)
                        if f is not None
                    ),
                    None,
                )
                if fit is not None:
                    value = int(rows[0, j]) * pow(int(rows[0, i]), -1, prime) % prime
                    relation = fit[0] - fit[1] * value
                    if not relation.is_zero():
                        relation = relation / int(relation.coeffs()[0])
                        distinct[str(relation)] = relation
                if len(distinct) > len(which) + 1:
                    break
            relations += distinct.values()
    return relations


def _low_degree_relations(
    ratios: Ratios,
    pairs: Any,
    positions: Any,
    point: Any,
    base: Any,
    sampled: Any,
    scattered: Any,
    axes: Any,
    budget: Budget,
) -> list[Polynomial]:
    """Relations from the pairs of lowest degree: independent ones, and a few to spare."""
    prime = ratios.prime
    found: dict[str, Polynomial] = {}
    slopes: list[list[int]] = []
    spare, wanted = 0, len({k for _, which, _, _ in pairs for k in which})
    for degree, which, j, i in pairs[:TRIED_PAIRS]:
        budget.spend(10 * len(scattered) + 1000 * len(which))
        if len(slopes) == wanted and spare >= SPARE:
            break
        column = [int(a) * pow(int(b), -1, prime) % prime for a, b in zip(sampled[:, j], sampled[:, i], strict=True)]
        variables = [positions[k] for k in which]
        caps = {}
        for k in which:
            values = [
                int(a) * pow(int(b), -1, prime) % prime for a, b in zip(axes[k][:, j], axes[k][:, i], strict=True)
            ]
            caps[positions[k]] = ratios.line_degree(values, list(range(1, AXIS + 1))) or degree
        fit = None
        for lower in range(degree, -1, -1):  # the solution is not unique when one degree is lower
            for degrees in {(degree, lower), (lower, degree)}:
                fit = fit or ratios.fitted(variables, column, scattered, degrees, budget, caps)
            if fit is not None:
                break
        if fit is None:
            continue
        relation = fit[0] - fit[1] * (int(base[j]) * pow(int(base[i]), -1, prime) % prime)
        if relation.is_zero():
            continue
        relation = relation / int(relation.coeffs()[0])
        if str(relation) in found:
            continue
        row = [value_at(relation.derivative(k), point) for k in range(len(ratios.free))]
        trial = [*slopes, row]
        if flint.nmod_mat(len(trial), len(row), [v for r in trial for v in r], prime).rank() > len(slopes):
            slopes = trial
        elif spare < SPARE:
            spare += 1
        else:
            continue
        found[str(relation)] = relation
    return list(found.values())


def _values(equation: Polynomial, keys: Sequence[Key]) -> list[int] | None:
    """Coefficients in the order of `keys`; None if the monomials are others."""
    groups = grouped(equation, [])
    if set(groups) != set(keys):
        return None
    return [groups[key][()] for key in keys]


def _spread(pairs: list[tuple[int, int]], rng: random.Random) -> list[tuple[int, int]]:
    """Some of the pairs: the first and last, whose monomials are extreme and coefficients simple, and a few others."""
    chosen = [*pairs[:TRIES], *pairs[-TRIES // 2 :], *rng.sample(pairs, min(len(pairs), TRIES))]
    return list(dict.fromkeys(chosen))


def _names_in_motion(model: Model) -> list[tuple[str, ...]]:
    from equifinal.language.expression import names

    return [names(e) for e in (*model.rhs, *model.observed)]
