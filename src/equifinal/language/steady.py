"""Steady states as rational functions of the parameters, where there is one and only one of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import flint

from equifinal.language.expression import Expression, Name, Number, is_rational, names, negative, substitute, walk
from equifinal.language.model import Model
from equifinal.language.rational import (
    ZERO,
    added,
    linear_parts,
    multiplied,
    number,
    numerator,
    raised,
    simplified,
    terms_of,
)

MAX_SIZE = 2_000  # nodes of an equation: beyond, nobody waits for a fraction in lowest terms
MAX_GROWN = 10_000  # the same while states are solved for: from there on every step takes several times as long


def conserved_totals(states: Sequence[str], rates: Sequence[Expression]) -> list[dict[str, Fraction]]:
    """Weights of the states in sums that never change: a basis of the linear relations between their rates."""
    terms = [terms_of(numerator_over_common(rates, i)) for i in range(len(rates))]
    keys = list(dict.fromkeys(term for one in terms for term in one))
    if not keys:
        return [{state: Fraction(1)} for state in states]
    entries = [flint.fmpq(*one.get(key, Fraction(0)).as_integer_ratio()) for key in keys for one in terms]
    reduced, rank = flint.fmpq_mat(len(keys), len(states), entries).rref()
    pivots = [next(j for j in range(len(states)) if reduced[i, j] != 0) for i in range(rank)]
    found = []
    for free in (j for j in range(len(states)) if j not in pivots):
        weights = {states[free]: Fraction(1)}
        for i, pivot in enumerate(pivots):
            weight = -reduced[i, free]
            if weight != 0:
                weights[states[pivot]] = Fraction(int(weight.p), int(weight.q))
        found.append(weights)
    return found


def numerator_over_common(rates: Sequence[Expression], at: int) -> Expression:
    """A rate times all the denominators of the rates: a polynomial."""
    under = [raised_denominator(rate) for rate in rates]
    return simplified(multiplied(simplified(rates[at]), *dict.fromkeys(under)))


@lru_cache(maxsize=256)
def raised_denominator(rate: Expression) -> Expression:
    """The denominator of a rate in lowest terms."""
    over = numerator(rate)
    return number(1) if over == ZERO else simplified(multiplied(over, raised(rate, -1)))


def resting_equations(model: Model) -> list[Expression]:
    """Polynomials in states and parameters that vanish at rest: rates, and totals that keep their initial values."""
    constants = {name: Number(value) for name, value in model.constants.items()}
    rates = [substitute(rate, constants) for rate in model.rhs]
    starts = dict(zip(model.states, (substitute(e, constants) for e in model.start), strict=True))
    equations = [numerator(rate) for rate in rates]
    for weights in conserved_totals(model.states, rates):
        at_rest = [multiplied(number(w), Name(state)) for state, w in weights.items()]
        at_first = [multiplied(number(-w), starts[state]) for state, w in weights.items()]
        equations.append(numerator(added([*at_rest, *at_first])))
    return [equation for equation in equations if equation != ZERO]


def rational_steady_state(model: Model, *, positive: bool = True) -> Model | None:
    """The model with its steady state as initial values, and nothing before; None if that is not one rational function.

    States are solved for one after the other, each from an equation in which it is linear, with a coefficient of
    parameters only; so there is no other steady state, whatever the parameters.

    Parameters
    ----------
    positive
        Whether the steady state must be positive by its form, a quotient of sums of products, so that it is there for
        all positive parameters. A formula such as k*K/(V - k) has values where there is no steady state: an analysis
        may use it, a solver must not.
    """
    before = model.before
    if before is None or not all(map(is_rational, (*before.rhs, *before.start))):
        return None
    if any(_size(e) > MAX_SIZE for e in (*before.rhs, *before.start)):
        return None
    try:
        found = _solved(list(before.states), resting_equations(before))
    except ZeroDivisionError:
        return None
    if found is None or (positive and not all(map(_is_positive, found.values()))):
        return None
    constants = {name: Number(value) for name, value in before.constants.items()}
    for rate in before.rhs:
        try:
            if simplified(substitute(substitute(rate, constants), found)) != ZERO:
                return None
        except ZeroDivisionError:
            return None
    return replace(model, initial=found, before=None)


def _solved(states: list[str], equations: list[Expression]) -> dict[str, Expression] | None:
    found: dict[str, Expression] = {}
    while len(found) < len(states):
        step = _linear_step([s for s in states if s not in found], equations)
        if step is None:
            return None
        state, value = step
        found = {name: simplified(substitute(e, {state: value})) for name, e in found.items()} | {state: value}
        equations = [numerator(substitute(e, {state: value})) for e in equations]
        equations = [e for e in equations if e != ZERO]
        if any(_size(e) > MAX_GROWN for e in (*equations, *found.values())):
            return None
    return None if equations else {state: found[state] for state in states}


def _linear_step(states: list[str], equations: list[Expression]) -> tuple[str, Expression] | None:
    """A state that one of the equations gives as a function of others, the shortest equation first."""
    for equation in sorted(equations, key=_size):
        for state in states:
            parts = linear_parts(equation, state)
            if parts and not set(names(parts[0])) & set(states):
                return state, simplified(multiplied(negative(parts[1]), raised(parts[0], -1)))
    return None


def _size(expression: Expression) -> int:
    return sum(1 for _ in walk(expression))


def _is_positive(expression: Expression) -> bool:
    """Whether all numbers in a quotient of polynomials are positive, or it is zero."""
    return all(not isinstance(node, Number) or node.value >= 0 for node in walk(expression))
