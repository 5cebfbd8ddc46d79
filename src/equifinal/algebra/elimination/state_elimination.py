r"""Input-output equations: states are eliminated one after the other, first wherever an equation is linear in
one.

The outputs start as constraints :math:`E_j = y_j - h_j(x)`. A state :math:`x_i` in a constraint :math:`E` is
solved for (or, where :math:`E` is not linear in it, eliminated by resultants), the other constraints are
freed of it, and :math:`E` itself is replaced by its time derivative, again freed of every eliminated state.
When no constraint contains a state the constraints are the input-output equations. What was used on the way
is kept: these *links* hold at every time, in particular at time 0, where they tie initial values to the data.

Every equation kept holds for every solution of the model, whatever the initial values: extraneous factors of
resultants are recognised because they do not vanish at a generic solution. So every zero of the true fibre
ideal is a zero of what is found here; the converse is not claimed and is not needed.

The idea of eliminating by projection is that of Dong, Goodbrake, Harrington and Pogudin, SIAM J. Appl.
Algebra Geom. 7 (2023); the arithmetic is modulo a prime, at parameters some of which are fixed numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equifinal.algebra.arithmetic.budget import (
    Budget,
    TooLarge,
    divisor_steps,
    factor_steps,
    pieces_steps,
    product_steps,
    quotient_steps,
    terms_steps,
)
from equifinal.algebra.arithmetic.polynomials import (
    Polynomial,
    Ratio,
    Ring,
    coefficients_in,
    divided_out,
    ring,
    to_ratio,
    used_variables,
    value_at,
)
from equifinal.algebra.arithmetic.resultants import resultant
from equifinal.algebra.elimination.true_factor import true_factor
from equifinal.language.model import Model

ORDERS = 8  # of elimination, tried where resultants are needed


@dataclass
class Elimination:
    """What elimination found.

    Variables of all polynomials are `names`: states, free parameters, derivatives of inputs, derivatives of
    outputs.
    """

    names: list[str]
    states: list[int]
    parameters: list[int]
    jets: dict[tuple[str, int], int]  # (output or input, order) -> variable
    equations: list[Polynomial] = field(default_factory=list)  # free of states
    open: list[Polynomial] = field(default_factory=list)  # constraints that still contain states
    links: list[tuple[int, Polynomial]] = field(default_factory=list)  # (eliminated state, constraint used)
    complete: bool = False


class Eliminator:
    """Elimination for one model at numeric values of some parameters, modulo a prime.

    Parameters
    ----------
    free
        The parameters that stay symbols; `fixed` gives residues for all others.
    generic
        Residues for the states and free parameters, and Taylor coefficients of inputs and outputs of the
        solution through them: the generic point at which extraneous factors are recognised.
    size_limit
        Polynomials with more terms are given up.
    """

    def __init__(
        self,
        model: Model,
        free: Sequence[str],
        fixed: Mapping[str, int],
        prime: int,
        generic: GenericPoint,
        budget: Budget,
        *,
        size_limit: int = 60_000,
        resultant_limit: int = 300_000,
        order: random.Random | None = None,
        plan: Sequence[int] = (),
    ):
        self.model = model
        self.budget = budget
        self.prime = prime
        self.size_limit = size_limit
        self.resultant_limit = resultant_limit
        self.order = order
        self.plan: tuple[int, ...] = tuple(plan)
        signals = [*model.inputs, *model.outputs]
        self.orders: int = len(model.states) + 1
        jets = [(signal, k) for signal in signals for k in range(self.orders + 1)]
        names = [*model.states, *free, *(f"{s}^({k})" for s, k in jets)]
        self.context: Ring = ring(names, prime)
        variables = self.context.gens()
        first_jet = len(model.states) + len(free)
        self.result: Elimination = Elimination(
            names=names,
            states=list(range(len(model.states))),
            parameters=list(range(len(model.states), first_jet)),
            jets={jet: first_jet + i for i, jet in enumerate(jets)},
        )
        values = dict(zip([*model.states, *free], variables, strict=False))
        values |= {name: self.context.constant(value) for name, value in fixed.items()}
        values |= {u: variables[self.result.jets[u, 0]] for u in model.inputs}
        self.flow: list[Ratio] = [to_ratio(f, values, model.constants, self.context) for f in model.rhs]
        self.constraints: list[Polynomial] = []
        for output, h in zip(model.outputs, model.observed, strict=True):
            ratio = to_ratio(h, values, model.constants, self.context)
            y = variables[self.result.jets[output, 0]]
            self.constraints.append(y * ratio.under - ratio.over)
        self.point: list[int] = generic.values(model.states, free, jets)
        self.vanishing: set[int] = set()  # derivatives of outputs that do not change with time

    def cost(self) -> float:
        """How hard the next elimination looks: 0 when all states are gone, grows with degree and length."""
        total = 0.0
        try:
            for constraint in self.result.open:
                left = self._states_in(constraint)
                following = self._freed(self._derivative(constraint), self.result.links)
                for x in left:
                    degree = max(int(constraint.degrees()[x]), int(following.degrees()[x]))
                    total += float(len(constraint) + len(following)) ** min(degree * len(left), 12)
        except TooLarge:
            return float("inf")
        return total

    def run(self, *, linear_only: bool = False) -> Elimination:
        """Eliminate all states, or as many as the budget and the limits of size allow.

        With `linear_only` it stops where no constraint is linear in a state.
        """
        result = self.result
        try:
            self.budget.spend(200 * len(result.states))
            while True:
                self._find_vanishing()
                result.equations = [c for c in self.constraints if not self._states_in(c)]
                result.open = [c for c in self.constraints if self._states_in(c)]
                if not result.open:
                    result.complete = True
                    return result
                self.budget.spend(sum(len(self._states_in(c)) * pieces_steps(c) for c in result.open))
                constraint, state = self._best()
                if linear_only and self.constraints[constraint].degrees()[state] > 1:
                    return result
                self._eliminate(constraint, state)
        except TooLarge:
            return result

    def _find_vanishing(self) -> None:
        """An input-output equation y' = 0 makes every derivative of y zero everywhere."""
        for constraint in self.constraints:
            variables = used_variables([constraint])
            if len(constraint) == 1 and len(variables) == 1 and not self._states_in(constraint):
                signal, order = next(jet for jet, i in self.result.jets.items() if i in variables)
                new = {i for (s, k), i in self.result.jets.items() if s == signal and k >= order} - self.vanishing
                if new:
                    self.vanishing |= new
                    self.constraints = [c if c is constraint else self._cleaned(c) for c in self.constraints]
                    self.result.links = [(x, self._cleaned(link)) for x, link in self.result.links]

    def _cleaned(self, polynomial: Polynomial) -> Polynomial:
        if not self.vanishing & used_variables([polynomial]):
            return polynomial
        self.budget.spend(terms_steps(polynomial))
        kept = {m: int(c) for m, c in polynomial.to_dict().items() if not any(m[i] for i in self.vanishing)}
        return self.context.from_dict(kept)

    def _states_in(self, polynomial: Polynomial) -> set[int]:
        return used_variables([polynomial]) & set(self.result.states)

    def _best(self) -> tuple[int, int]:
        """Constraint and state with the least degree, then the simplest leading coefficient, then the fewest
        terms.
        """
        ranked = []
        for c, constraint in enumerate(self.constraints):
            degrees = [int(k) for k in constraint.degrees()]
            for x in self._states_in(constraint):
                leading = coefficients_in(constraint, x)[-1] if degrees[x] == 1 else constraint
                ranked.append((degrees[x], not leading.is_constant(), len(constraint) * len(leading), x, c))
        done = len(self.result.links)
        if done < len(self.plan):
            planned = [r for r in ranked if r[3] == self.plan[done]]
            ranked = planned or ranked
        if self.order is not None:
            least = min(ranked)[0]
            *_, x, c = self.order.choice([r for r in ranked if r[0] == least])
        else:
            *_, x, c = min(ranked)
        return c, x

    def _eliminate(self, c: int, x: int) -> None:
        link = self.constraints[c]
        links = [*self.result.links, (x, link)]
        constraints = [
            self._freed(e, [(x, link)]) if e.degrees()[x] and i != c else e for i, e in enumerate(self.constraints)
        ]
        constraints[c] = self._freed(self._derivative(link), links)
        self.constraints, self.result.links = [e for e in constraints if not e.is_zero()], links

    def _derivative(self, polynomial: Polynomial) -> Polynomial:
        """Numerator of the time derivative along the flow, over the least common denominator of the rates."""
        shift = {self.result.jets[s, k]: self.result.jets.get((s, k + 1)) for s, k in self.result.jets}
        variables = self.context.gens()
        changing = [i for i, degree in enumerate(polynomial.degrees()) if degree]
        under = self._common_denominator([i for i in changing if i in self.result.states])
        total = self.context.constant(0)
        for i in changing:
            if len(total) > self.size_limit:
                raise TooLarge
            slope = polynomial.derivative(i)
            self.budget.spend(len(polynomial) + len(total) / 5)
            if i in shift:
                following = shift[i]
                if following is None:
                    raise TooLarge
                rate = variables[following] * under
            elif i in self.result.states:
                rate = self.flow[i].over * (under / self.flow[i].under)
            else:
                continue
            self.budget.spend(product_steps(slope, rate))
            total = total + slope * rate
        return self._cleaned(self._without(under, total))

    def _common_denominator(self, states: Sequence[int]) -> Polynomial:
        """Of the rates of these states."""
        total = self.context.constant(1)
        for state in states:
            under = self.flow[state].under
            self.budget.spend(divisor_steps(total, under))
            total = total * (under / total.gcd(under))
        return total

    def _freed(self, polynomial: Polynomial, links: Sequence[tuple[int, Polynomial]]) -> Polynomial:
        """A multiple of the polynomial's image without the eliminated states, freed of extraneous factors."""
        for x, link in links:
            if not polynomial.degrees()[x]:
                continue
            self.budget.spend(pieces_steps(polynomial) + pieces_steps(link))
            if link.degrees()[x] == 1:
                polynomial = self._substituted(polynomial, x, link)
            else:
                polynomial = true_factor(self._resultant(polynomial, link, x), self.point, self.prime, self.budget)
            if len(polynomial) > self.size_limit:
                raise TooLarge
            if polynomial.is_zero():
                break
        return polynomial

    def _substituted(self, polynomial: Polynomial, x: int, link: Polynomial) -> Polynomial:
        rest, leading = coefficients_in(link, x)
        parts = coefficients_in(polynomial, x)
        degree = len(parts) - 1
        if len(leading) ** degree * len(polynomial) > 50 * self.size_limit**2:
            raise TooLarge
        total, power = self.context.constant(0), self.context.constant(1)
        for k in range(degree, -1, -1):  # Horner in -rest/leading, multiplied by leading^degree
            self.budget.spend(product_steps(total, rest) + product_steps(parts[k], power))
            total = total * (-rest) + parts[k] * power
            power = power * leading
            if len(total) > 10 * self.size_limit:
                raise TooLarge
        return self._without(leading, total)

    def _without(self, divisor: Polynomial, total: Polynomial) -> Polynomial:
        """Divide by those factors of the divisor that vanish at no generic solution."""
        self.budget.spend(factor_steps(divisor))
        for factor in _factors(divisor):
            if value_at(factor, self.point):
                self.budget.spend(quotient_steps(total, factor))
                total = divided_out(total, factor)
        return total

    def _resultant(self, polynomial: Polynomial, link: Polynomial, x: int) -> Polynomial:
        total = resultant(polynomial, link, x, self.resultant_limit, self.budget)
        for leading in (coefficients_in(polynomial, x)[-1], coefficients_in(link, x)[-1]):
            total = self._without(leading, total)
        return total


def _factors(polynomial: Polynomial) -> list[Polynomial]:
    if polynomial.is_constant():
        return []
    if len(polynomial) > 200:
        return [polynomial]
    return [factor for factor, _ in polynomial.factor()[1]]


def best_elimination(make: Callable[[random.Random | None], Eliminator], rng: random.Random) -> Elimination:
    """Eliminate in the order that leaves the easiest resultant, if resultants are needed at all.

    Linear steps cost little, so some orders of them are tried before the first resultant is computed.
    """
    first = make(None)
    result = first.run(linear_only=True)
    if result.complete:
        return result
    candidates = [first]
    seen = {tuple(x for x, _ in result.links)}
    for _ in range(ORDERS):
        other = make(random.Random(rng.randrange(2**32)))
        links = tuple(x for x, _ in other.run(linear_only=True).links)
        if links not in seen:
            seen.add(links)
            candidates.append(other)
    best = min(candidates, key=lambda e: e.cost())
    best.order = None
    return best.run()


class GenericPoint:
    """A solution of the model at a random state and random parameters, as Taylor coefficients modulo a
    prime.
    """

    def __init__(
        self,
        states: Mapping[str, int],
        parameters: Mapping[str, int],
        signals: Mapping[str, np.ndarray],
        prime: int,
    ):
        self.states = states
        self.parameters = parameters
        self.signals = signals
        self.prime = prime

    def values(self, states: Sequence[str], free: Sequence[str], jets: Sequence[tuple[str, int]]) -> list[int]:
        """Derivatives, not Taylor coefficients: the k-th coefficient times k!."""
        factorial = [1]
        for k in range(1, 1 + max((k for _, k in jets), default=0)):
            factorial.append(factorial[-1] * k % self.prime)
        derivatives = [int(self.signals[s][k]) * factorial[k] % self.prime for s, k in jets]
        return [*(self.states[x] for x in states), *(self.parameters[q] for q in free), *derivatives]
