r"""Parameters that may stand in any order: fibres with factorially many points, none of which is listed.

The rates of a chain of compartments whose outlet is observed may be exchanged in any order. Two bounds on the number of
points of a fibre meet there. From below: exchanges that leave every output unchanged generate symmetric groups, and the
orbit of a generic point has as many points as these have elements. From above: the Laplace transform of an output of a
linear model is a rational function, whose coefficients have the same values at all points of the fibre. That is an
equation for each of them. As many independent ones as there are unknowns have at most so many isolated zeros as the
theorem of Bezout allows, for their degrees in groups of unknowns. All points of the fibre are isolated ones, since a
point with the outputs of a generic point is generic itself. Where the bounds are equal, the fibre is the orbit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from math import factorial, inf, prod

import flint
import numpy as np

from equifinal.algebra.arithmetic.budget import Budget, TooLarge, matrix_steps
from equifinal.algebra.arithmetic.functions import values_and_gradients
from equifinal.algebra.arithmetic.local_rank import LocalAnalysis
from equifinal.algebra.arithmetic.polynomials import ring
from equifinal.algebra.arithmetic.residues import BadPrime
from equifinal.algebra.arithmetic.series import OutputSeries
from equifinal.algebra.elimination.ratios import Ratios
from equifinal.errors import IdentifiabilityError
from equifinal.identifiability.called import judged
from equifinal.identifiability.freedoms import AnyOrder
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, Identifiability
from equifinal.language.expression import Expression, Name, Power, Product, Sum, children, names, to_text
from equifinal.language.model import Model

FEW = 24  # points, which can be listed

Block = tuple[str, ...]
Classes = tuple[tuple[Block, ...], ...]  # blocks of as many parameters each, any two of which may change places


def any_order(models: Sequence[Model], local: LocalAnalysis, rng: random.Random, budget: Budget) -> Classes:
    """Classes of blocks such that the fibre is the orbit of the permutations in each of them.

    None if that is not shown, or if there are so few points that they can be listed.
    """
    if local.kernel or not all(map(_is_linear, models)):
        return ()
    try:
        classes = _classes(models, local, budget)
        count = orbit(classes)
        return classes if count > FEW and _bound(models, local, classes, rng, budget) == count else ()
    except (BadPrime, TooLarge):
        return ()


def in_any_order(
    known: Identifiability,
    classes: Classes,
    models: Sequence[Model],
    locals_: Sequence[LocalAnalysis],
    quantities: Mapping[str, Expression],
) -> Identifiability:
    """What is known locally, completed: the fibre is the orbit of permutations."""
    counts = {name: len(blocks) for blocks in classes for block in blocks for name in block}
    others = [exchange(locals_[0].point, *pair) for blocks in classes for pair in pairwise(blocks)]
    mistaken = prod(_mistake(models, local, classes) for local in locals_)

    def status(expression: Expression) -> tuple[str, int]:
        return (GLOBALLY, 1) if _has_one_value(expression, locals_[0], others) else (LOCALLY, 0)

    return replace(
        known,
        parameters={name: LOCALLY if name in counts else GLOBALLY for name in known.parameters},
        quantities={n: judged(q, status, random.Random(0))[0] for n, q in quantities.items()},
        alternatives=counts,
        combinations=(*(Name(n) for n in known.parameters if n not in counts), *symmetric_functions(classes)),
        fibre_degree=orbit(classes),
        scope="global",
        complete=True,
        freedoms=tuple(AnyOrder(blocks) for blocks in classes),
        error_probability=min(1.0, known.error_probability + mistaken),
        unfinished="",
        certificate=dict(known.certificate)
        | {
            "method": "permutations, and degrees of the coefficients of transforms",
            "candidates": orbit(classes),
            "moved_along_fibre": True,  # exchanges were compared
            "probable": ["exchanges change no output", "degrees of the coefficients of transforms"],
        },
    )


def orbit(classes: Classes) -> int:
    """How many points permutations make of one."""
    return prod(factorial(len(blocks)) for blocks in classes)


def exchange(point: Mapping[str, int], first: Block, second: Block) -> dict[str, int]:
    """The point with two blocks of coordinates exchanged."""
    other = dict(zip((*first, *second), (*second, *first), strict=True))
    return {name: point[other.get(name, name)] for name in point}


def _mistake(models: Sequence[Model], local: LocalAnalysis, classes: Classes) -> float:
    """At most so probable is it that one of the degrees was found too small: a leading coefficient that vanishes."""
    functions = sum(len(model.outputs) * (_orders(model) + 1) for model in models)
    lines = 2 + sum(len(blocks[0]) for blocks in classes)
    return functions * lines * max(map(_orders, models)) / local.prime


def _has_one_value(function: Expression, local: LocalAnalysis, others: Sequence[Mapping[str, int]]) -> bool:
    """Whether a function is the same at the point and at others."""
    array = np.array([[point[n] for n in local.names] for point in (local.point, *others)], dtype=np.int64)
    try:
        values, _ = values_and_gradients([function], {}, local.names, array, local.prime)
    except BadPrime:
        raise IdentifiabilityError(f"{to_text(function)} divides by zero for all parameters") from None
    return bool((values[0] == values[0][0]).all())


def symmetric_functions(classes: Classes) -> list[Expression]:
    """Generators of the functions that no permutation changes.

    Power sums of the first parameters of the blocks, and for every further one sums of its products with their powers,
    which give it by interpolation.
    """
    found: list[Expression] = []
    for blocks in classes:
        for k in range(1, len(blocks) + 1):
            found.append(Sum(tuple(_power(b[0], k) for b in blocks)))
        for slot in range(1, len(blocks[0])):
            found.append(Sum(tuple(Name(b[slot]) for b in blocks)))
            for k in range(1, len(blocks)):
                found.append(Sum(tuple(Product((_power(b[0], k), Name(b[slot]))) for b in blocks)))
    return found


def _power(name: str, exponent: int) -> Expression:
    return Name(name) if exponent == 1 else Power(Name(name), exponent)


def _is_linear(model: Model) -> bool:
    """In its states, with coefficients that do not change with time."""

    def degree(expression: Expression) -> float:
        match expression:
            case Name(name):
                return float(name in model.states)
            case Power(base, exponent):
                return 0 if degree(base) == 0 else degree(base) * exponent if exponent > 0 else inf
            case Product(factors):
                return sum(map(degree, factors))
        return max(map(degree, children(expression)), default=0)

    return not model.inputs and all(degree(e) <= 1 for e in (*model.rhs, *model.observed))


def _orders(model: Model) -> int:
    """Coefficients that determine an output: it obeys a linear recurrence, two of them one of the double length."""
    return 2 * (len(model.states) + 1)


def _series(model: Model, local: LocalAnalysis, points: Sequence[Mapping[str, int]], budget: Budget) -> np.ndarray:
    array = np.array([[point[name] for name in local.names] for point in points], dtype=np.int64)
    run = OutputSeries(model, local.names, array, {}, local.prime, tangents=False)
    run.extend(_orders(model), budget)
    return run.output_coefficients()


def _classes(models: Sequence[Model], local: LocalAnalysis, budget: Budget) -> Classes:
    """Blocks any two of which may be exchanged, single parameters first: if a and b may be, and b and c, then so may a
    and c.
    """
    single = _exchangeable([((a,), (b,)) for a, b in combinations(local.names, 2)], models, local, budget)
    left = {*local.names} - {name for blocks in single for (name,) in blocks}
    alike = {pair: None for model in models for pair in _alike(model) if left.issuperset((*pair[0], *pair[1]))}
    classes = (*single, *_exchangeable([*alike], models, local, budget))
    moved = [name for blocks in classes for block in blocks for name in block]
    return classes if len(moved) == len({*moved}) else ()


def _exchangeable(
    pairs: Sequence[tuple[Block, Block]], models: Sequence[Model], local: LocalAnalysis, budget: Budget
) -> Classes:
    points = [local.point, *(exchange(local.point, *pair) for pair in pairs)]
    same = np.ones(len(pairs), dtype=bool)
    for model in models:
        series = _series(model, local, points, budget)
        same &= (series[:, :, 1:] == series[:, :, :1]).all(axis=(0, 1))
    found: list[set[Block]] = []
    for pair, exchanged in zip(pairs, same, strict=True):
        if exchanged:
            found = [c for c in found if not c & {*pair}] + [{*pair}.union(*(c for c in found if c & {*pair}))]
    return tuple(tuple(sorted(c, key=lambda block: local.names.index(block[0]))) for c in found)


def _alike(model: Model) -> list[tuple[Block, Block]]:
    """The parameters of two states whose equations have the same names in the same places: what may be exchanged with
    the states.
    """
    parameters, found = {*model.parameters}, []
    own = [
        [n for e in (f, x) for n in names(e) if n in parameters] for f, x in zip(model.rhs, model.start, strict=True)
    ]
    for first, second in combinations(own, 2):
        if len(first) == len(second):
            moved = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
            if len(moved) > 1 and len({n for pair in moved for n in pair}) == 2 * len(moved):
                one, other = zip(*moved, strict=True)
                found.append((one, other))
    return found


def _bound(models: Sequence[Model], local: LocalAnalysis, classes: Classes, rng: random.Random, budget: Budget) -> int:
    """At most so many points has the fibre; 0 if no bound was found."""
    p, d = local.prime, len(local.names)
    slots = [{block[k] for block in blocks} for blocks in classes for k in range(len(blocks[0]))]
    rest = {*local.names}.difference(*slots)
    groups = [{*local.names}, *slots, rest]
    abscissae = [0, *rng.sample(range(1, p), max(map(_orders, models)) + 5)]
    lines = [
        [
            {n: (v + s * (n in group) * w) % p for (n, v), w in zip(local.point.items(), direction, strict=True)}
            for s in abscissae
        ]
        for group in groups
        for direction in [[rng.randrange(1, p) for _ in local.names]]
    ]
    found = [f for model in models for f in _invariants(model, local, lines, abscissae, budget)]
    rows, degrees = list[list[int]](), list[list[int]]()
    for degree, gradient in sorted(found):
        trial = [*rows, gradient]
        if flint.nmod_mat(len(trial), d, [v for row in trial for v in row], p).rank() == len(trial):
            rows, degrees = trial, [*degrees, degree]
    if len(rows) < d:
        return 0
    # unknowns in one group, or in one for every place in a block, with the rest by itself or beside one of them
    bounds = [prod(degree[0] for degree in degrees)]
    for beside in range(len(slots) + 1):
        sizes = [len(slot) + (k == beside) * len(rest) for k, slot in enumerate(slots)]
        apart = beside == len(slots)
        separate = [
            [g + (k == beside) * degree[-1] for k, g in enumerate(degree[1:-1])] + [degree[-1]] * apart
            for degree in degrees
        ]
        bounds.append(_bezout(separate, (*sizes, len(rest)) if apart else tuple(sizes)))
    return min(bounds)


def _bezout(degrees: Sequence[Sequence[int]], sizes: tuple[int, ...]) -> int:
    """How many isolated zeros polynomials can have that are of these degrees in groups of so many unknowns: the
    coefficient of prod x_g^size_g in the product of the sums of degree_g x_g.
    """
    total = {(0,) * len(sizes): 1}
    for row in degrees:
        new: dict[tuple[int, ...], int] = {}
        for exponents, c in total.items():
            for g, degree in enumerate(row):
                if degree and exponents[g] < sizes[g]:
                    key = (*exponents[:g], exponents[g] + 1, *exponents[g + 1 :])
                    new[key] = new.get(key, 0) + c * degree
        total = new
    return total.get(sizes, 0)


def _invariants(
    model: Model,
    local: LocalAnalysis,
    lines: Sequence[Sequence[Mapping[str, int]]],
    abscissae: Sequence[int],
    budget: Budget,
) -> list[tuple[list[int], list[int]]]:
    """Coefficients of the transforms of the outputs: degrees along the lines, and gradients at the point."""
    p, d = local.prime, len(local.names)
    array = np.array([[local.point[name] for name in local.names]], dtype=np.int64)
    run = OutputSeries(model, local.names, array, {}, p)
    run.extend(_orders(model), budget)
    slopes = run.output_jacobian()[0].reshape(len(model.outputs), -1, d)
    series = [_series(model, local, line, budget) for line in lines]
    found = []
    for k in range(len(model.outputs)):
        transforms = [[_transform(s[k, :, j], p) for j in range(len(abscissae))] for s in series]
        over, under = transforms[0][0]
        if over.is_zero():
            continue
        if any((a.degree(), b.degree()) != (over.degree(), under.degree()) for line in transforms for a, b in line):
            raise BadPrime
        values = [[[int(c) for c in (*b.coeffs()[1:], *a.coeffs())] for a, b in line] for line in transforms]
        gradients = _gradients(over, under, slopes[k], p, budget)
        if top := under.degree():  # the quotient of the highest coefficients may be simpler than both
            for row in (row for line in values for row in line):
                row.append(row[top - 1] * pow(row[-1], -1, p) % p)
            *_, last, quotient = values[0][0]
            pairs = zip(gradients[top - 1], gradients[-1], strict=True)
            gradients.append([(a - quotient * b) * pow(last, -1, p) % p for a, b in pairs])
        for i, gradient in enumerate(gradients):
            degrees = [_degree([row[i] for row in line], abscissae, p, budget) for line in values]
            if any(gradient) and None not in degrees:
                found.append(([int(degree or 0) for degree in degrees], gradient))
    return found


def _degree(values: Sequence[int], abscissae: Sequence[int], p: int, budget: Budget) -> int | None:
    if len(set(values)) == 1:
        return 0
    budget.spend(len(values) * matrix_steps(len(values), len(values)) / 3)
    return Ratios([], [], p, ring([""], p)).line_degree(values, abscissae)


def _transform(coefficients: np.ndarray, p: int) -> tuple[flint.nmod_poly, flint.nmod_poly]:
    """The series of the derivatives at time 0 as a fraction in lowest terms, whose denominator begins with 1."""
    derivatives, scale = [], 1
    for k, c in enumerate(coefficients):
        scale = scale * max(k, 1) % p
        derivatives.append(int(c) * scale % p)
    length = len(derivatives)
    before, over = flint.nmod_poly([0] * length + [1], p), flint.nmod_poly(derivatives, p)
    older, under = flint.nmod_poly([], p), flint.nmod_poly([1], p)
    while over.degree() >= length // 2:
        quotient = before // over
        before, over = over, before - quotient * over
        older, under = under, older - quotient * under
    if int(under[0]) == 0:
        raise BadPrime
    inverse = pow(int(under[0]), -1, p)
    return over * inverse, under * inverse


def _gradients(
    over: flint.nmod_poly, under: flint.nmod_poly, slopes: np.ndarray, p: int, budget: Budget
) -> list[list[int]]:
    """Gradients of the coefficients of the denominator and the numerator, from those of the series Y = over/under:
    Y*d(under) - d(over) = -under*dY.
    """
    length, d = slopes.shape
    n, m = under.degree(), over.degree() + 1
    budget.spend(matrix_steps(n + m, n + m + d) + (n + m) * (n + 1) * d)
    series = over * under.inverse_series_trunc(length)
    scale, rises = 1, []
    for k in range(n + m):
        scale = scale * max(k, 1) % p
        rises.append([scale * int(v) % p for v in slopes[k]])
    matrix, right = flint.nmod_mat(n + m, n + m, p), flint.nmod_mat(n + m, d, p)
    for k in range(n + m):
        for i in range(1, min(k, n) + 1):
            matrix[k, i - 1] = series[k - i]
        if k < m:
            matrix[k, n + k] = p - 1
        for j in range(d):
            right[k, j] = -sum(int(under[i]) * rises[k - i][j] for i in range(min(k, n) + 1)) % p
    try:
        solved = matrix.solve(right)
    except ZeroDivisionError:
        raise BadPrime from None
    return [[int(solved[i, j]) for j in range(d)] for i in range(n + m)]
