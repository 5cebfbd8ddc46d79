"""The loops of `geometric`, where their mathematics is told: moves along fibres and across them, chain after chain.

Positions are sampling coordinates u; the geometry is computed in v = u/scale. Chains share nothing but room to work
in, so that a chain's moves do not depend on the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equifinal.machine.arrays import uncounted
from equifinal.machine.compiled import compiled
from equifinal.machine.pointers import call_on
from equifinal.problem.prior import log_prior, to_theta
from equifinal.samplers.geometric.rattle_loops import (
    OK,
    Array,
    Integers,
    Place,
    Rules,
    copy,
    dot,
    forth_and_back,
    make_tangential,
    survey,
)

LEFT_SUPPORT, BRANCH_CHANGED = 5, 6
STATUSES = 7  # columns of the counts, one a status; then
ACCEPTED, UNDEFINED, SWAPPED, UNRESOLVED = 7, 8, 9, 10
COUNTS = 11
LABEL_TOLERANCE = 1e-7


class Space(NamedTuple):
    """The fibre, as far as it is numbers, and room to work in."""

    scale: Array  # v = u/scale
    softening: Array  # h(c) = asinh(c/softening), the coordinates in which covariances are learned,
    single: Integers  # or h(c) = u_k where a combination is the parameter k, here; else -1
    table: Array  # of the priors
    address: int  # of xi, labels and their gradients in theta
    labels: int
    start: Array
    end: Array
    end_p: Array
    middle: Array
    normals: Array  # (q,)
    triangle: Array  # (q, q): D(h o xi) N^T
    u: Array  # (1, d)
    label: Array  # (labels,)
    out: Array


class Weights(NamedTuple):
    """How much of each correction enters: all 1 in an exact sampler. Tests leave one out, and must notice."""

    fibre_volume: float = 1.0  # log J in the acceptance of moves along the fibre
    transition_volume: float = 1.0  # log J in the density of pulled-back proposals
    first_volume: float = 1.0  # log J where the composite move goes along the fibre first
    second_volume: float = 1.0  # log J where it goes along the fibre last
    first_share: float = 0.5  # how often it goes along the fibre first


class Transition(NamedTuple):
    """Proposals across fibres, a row a chain; sds as logs."""

    pulled_back: bool
    factor: Array  # Cholesky factor of the covariance of h(c)
    log_normal: Array  # its scale, or the sd across the fibre
    log_tangent: Array  # the sd along the fibre


# --- one point ---


@compiled
def log_prior_at(space: Space, v: Array) -> float:
    """log p in sampling coordinates."""
    for k in range(v.size):
        space.u[0, k] = v[k] * space.scale[k]
    theta, log_slope = to_theta(space.u, space.table)
    return log_prior(theta, space.table)[0] + log_slope[0]


@compiled
def labels_at(space: Space, v: Array) -> Array:
    """Fill in ``space.out``: xi, labels and their gradients in theta; theta."""
    for k in range(v.size):
        space.u[0, k] = v[k] * space.scale[k]
    theta = to_theta(space.u, space.table)[0][0]
    call_on(space.address, theta, theta, space.out)
    return theta


@compiled
def same_labels(space: Space, q: int, v: Array, end: Array) -> bool:
    """Whether two points of a fibre have the same labels: far closer than branches are, far looser than rounding."""
    labels_at(space, v)
    for i in range(space.labels):
        space.label[i] = space.out[q + i]
    theta = labels_at(space, end)
    for i in range(space.labels):
        size = abs(space.out[q + i]) + abs(space.label[i])
        for k in range(theta.size):
            size += abs(space.out[q + space.labels + (q + i) * theta.size + k] * theta[k])
        if not abs(space.out[q + i] - space.label[i]) <= LABEL_TOLERANCE * size:
            return False
    return True


@compiled
def to_v(space: Space, u: Array, v: Array) -> None:
    for k in range(u.size):
        v[k] = u[k] / space.scale[k]


@compiled
def to_u(space: Space, v: Array, u: Array) -> None:
    for k in range(v.size):
        u[k] = v[k] * space.scale[k]


# --- along the fibre ---


@compiled
def move_along(
    rules: Rules, place: Place, space: Space, weights: Weights, v: Array, prior: float, eps: float, steps: int
) -> tuple[int, float, float]:
    """One move from v, the momentum in ``place``: a status, log of the acceptance ratio, and the end's log prior."""
    status, start, end, _ = forth_and_back(rules, place, v, eps, steps, space.end, space.end_p)
    if status != OK:
        return status, -np.inf, prior
    end_prior = log_prior_at(space, space.end)
    if not end_prior > -np.inf:
        return LEFT_SUPPORT, -np.inf, prior
    if space.labels > 0 and not same_labels(space, place.xi.size, v, space.end):
        return BRANCH_CHANGED, -np.inf, prior
    drop = (dot(place.p, place.p) - dot(space.end_p, space.end_p)) / 2
    return OK, end_prior - prior - weights.fibre_volume * (end - start) + drop, end_prior


@compiled
def sweep(
    rules: Rules,
    place: Place,
    space: Space,
    weights: Weights,
    position: Array,
    prior: Array,
    eps: Array,
    steps: Integers,
    normals: Array,
    uniforms: Array,
    acceptance: Array,
    counts: Integers,
) -> None:
    """Moves along the fibre, in place: normals (1 + moves, chains, d), uniforms (chains, 1 + 2 moves), first unused.

    Moves that fail, leave the support or change branches are rejected, and counted by their status.
    """
    rules, place, space = uncounted(rules), uncounted(place), uncounted(space)
    for i in range(len(position)):
        v, u = uncounted((space.start, position[i]))
        to_v(space, u, v)
        acceptance[i] = 0.0
        moves = len(normals) - 1
        for m in range(moves):
            copy(normals[1 + m, i], 1.0, place.p)
            # lengths vary, lest a closed fibre be traversed in a rhythm
            size = eps[i] * (0.75 + 0.5 * uniforms[i, 1 + 2 * m])
            status, log_ratio, end_prior = move_along(rules, place, space, weights, v, prior[i], size, steps[i])
            counts[i, status] += 1
            chance = math.exp(min(0.0, log_ratio))
            acceptance[i] += chance / moves
            if uniforms[i, 2 + 2 * m] < chance:
                counts[i, ACCEPTED] += 1
                copy(space.end, 1.0, v)
                to_u(space, v, u)
                prior[i] = end_prior


# --- across fibres ---


@compiled
def prepare(rules: Rules, place: Place, space: Space, transition: Transition, v: Array) -> tuple[int, float]:
    """Survey v, fill in the triangle T = D N^T, D = D(h o xi), so that D^+ = N^T T^-1; a status and log J of h o xi."""
    status, log_j = survey(rules, place, v)
    if status != OK:
        return status, log_j
    q = place.xi.size
    if transition.pulled_back:
        for i in range(q):
            k = space.single[i]
            if k >= 0:
                slope = space.scale[k] / place.jacobian[i, k]
            else:
                slope = 1.0 / math.hypot(place.xi[i], space.softening[i])
            log_j += math.log(abs(slope))
            for j in range(i + 1):
                space.triangle[i, j] = slope * dot(place.jacobian[i], place.normal[j])
    return status, log_j


@compiled
def propose(place: Place, space: Space, transition: Transition, chain: int, z: Array, v: Array, target: Array) -> None:
    """target = v + D(h o xi)^+ s L z_N + s_T Pi_T z with z_N = N z; or v + s_N Pi_N z + s_T Pi_T z."""
    q, d = place.normal.shape
    across, along = math.exp(transition.log_normal[chain]), math.exp(transition.log_tangent[chain])
    for i in range(q):
        space.normals[i] = dot(place.normal[i], z)
    for k in range(d):
        target[k] = z[k]
    make_tangential(place.normal, q, target)
    for k in range(d):
        target[k] = v[k] + along * target[k]
    if transition.pulled_back:
        factor = transition.factor[chain]
        for i in range(q - 1, -1, -1):
            total = 0.0
            for j in range(i + 1):
                total += factor[i, j] * space.normals[j]
            space.normals[i] = total
        for i in range(q):
            for j in range(i):
                space.normals[i] -= space.triangle[i, j] * space.normals[j]
            space.normals[i] /= space.triangle[i, i]
    for i in range(q):
        for k in range(d):
            target[k] += across * space.normals[i] * place.normal[i, k]


@compiled
def log_proposal(
    place: Place,
    space: Space,
    transition: Transition,
    weights: Weights,
    log_j: float,
    chain: int,
    v: Array,
    target: Array,
) -> float:
    """log q(target | v) but for a constant, where v was prepared.

    Pulled back, q is normal with covariance D^+ s^2 L L^T D^+T + s_T^2 Pi_T, D = D(h o xi), of which the determinant is
    proportional to 1/J^2.
    """
    q, d = place.normal.shape
    across, along = math.exp(transition.log_normal[chain]), math.exp(transition.log_tangent[chain])
    for k in range(d):
        space.end_p[k] = target[k] - v[k]
    for i in range(q):
        space.normals[i] = dot(place.normal[i], space.end_p)
    make_tangential(place.normal, q, space.end_p)
    total = -0.5 * dot(space.end_p, space.end_p) / along**2
    if transition.pulled_back:
        factor = transition.factor[chain]
        for i in range(q - 1, -1, -1):  # D (target - v) = T N (target - v)
            change = 0.0
            for j in range(i + 1):
                change += space.triangle[i, j] * space.normals[j]
            space.normals[i] = change
        for i in range(q):
            for j in range(i):
                space.normals[i] -= factor[i, j] * space.normals[j]
            space.normals[i] /= factor[i, i]
        total += weights.transition_volume * log_j
    for i in range(q):
        total -= 0.5 * (space.normals[i] / across) ** 2
    return total


@compiled
def cross(
    rules: Rules,
    place: Place,
    space: Space,
    transition: Transition,
    weights: Weights,
    chain: int,
    z: Array,
    v: Array,
    target: Array,
) -> tuple[int, float]:
    """A proposal from v; a status, and log q(v | target) - log q(target | v)."""
    status, log_j = prepare(rules, place, space, transition, v)
    if status != OK:
        return status, -np.inf
    propose(place, space, transition, chain, z, v, target)
    forth = log_proposal(place, space, transition, weights, log_j, chain, v, target)
    status, log_j = prepare(rules, place, space, transition, target)
    if status != OK:
        return status, -np.inf
    return OK, log_proposal(place, space, transition, weights, log_j, chain, target, v) - forth


@compiled
def transit(
    rules: Rules,
    place: Place,
    space: Space,
    transition: Transition,
    weights: Weights,
    position: Array,
    normals: Array,
    proposal: Array,
    log_ratio: Array,
    counts: Integers,
) -> None:
    """Transition proposals of all chains, and log of q backwards over q forwards; NaN and -inf if undefined."""
    rules, place, space, transition = uncounted(rules), uncounted(place), uncounted(space), uncounted(transition)
    for i in range(len(position)):
        u, z, target = uncounted((position[i], normals[i], proposal[i]))
        to_v(space, u, space.start)
        status, log_ratio[i] = cross(rules, place, space, transition, weights, i, z, space.start, space.middle)
        if status == OK:
            to_u(space, space.middle, target)
        else:
            counts[i, UNDEFINED] += 1
            copy(u, np.nan, target)


@compiled
def compose(
    rules: Rules,
    place: Place,
    space: Space,
    transition: Transition,
    weights: Weights,
    position: Array,
    normals: Array,
    momenta: Array,
    uniforms: Array,
    eps: Array,
    steps: Integers,
    result: tuple[Array, Array],
    along: Array,
    counts: Integers,
) -> None:
    """Composite proposals of all chains, and log of the acceptance ratio but for pi(u')/pi(u): both in ``result``.

    Along the fibre u -> w, then across w -> u':  q(w|u') J(u) N(p') / (q(u'|w) J(w) N(p));
    across u -> w, then along the fibre w -> u':  q(u|w) J(w) N(p') / (q(w|u) J(u') N(p)).

    ``uniforms`` (chains, 3), the first spared. ``along``: how likely the move along the fibre by itself were accepted.
    """
    proposal, log_ratio = result
    rules, place, space, transition = uncounted(rules), uncounted(place), uncounted(space), uncounted(transition)
    for i in range(len(position)):
        u, z, target = uncounted((position[i], normals[i], proposal[i]))
        copy(momenta[i], 1.0, place.p)
        size = eps[i] * (0.75 + 0.5 * uniforms[i, 1])
        to_v(space, u, space.start)
        along_first = uniforms[i, 2] < weights.first_share
        total, status, along[i] = 0.0, OK, 0.0
        if along_first:
            copy(space.start, 1.0, space.middle)
        else:
            status, total = cross(rules, place, space, transition, weights, i, z, space.start, space.middle)
        if status == OK:
            status, before, after, _ = forth_and_back(
                rules, place, space.middle, size, steps[i], space.end, space.end_p
            )
            counts[i, status] += 1
            volume = weights.first_volume if along_first else weights.second_volume
            drop = (dot(place.p, place.p) - dot(space.end_p, space.end_p)) / 2
            total += volume * (before - after) + drop
            if status == OK:
                gain = log_prior_at(space, space.end) - log_prior_at(space, space.middle) + before - after + drop
                along[i] = math.exp(min(0.0, gain)) if gain > -np.inf else 0.0
            if status == OK and along_first:
                copy(space.end, 1.0, space.middle)
                status, more = cross(rules, place, space, transition, weights, i, z, space.middle, space.end)
                total += more
                counts[i, UNDEFINED] += status != OK
        else:
            counts[i, UNDEFINED] += 1
        log_ratio[i] = total if status == OK else -np.inf
        if status == OK:
            to_u(space, space.end, target)
        else:
            copy(u, np.nan, target)


@compiled
def locate(
    rules: Rules, place: Place, space: Space, transition: Transition, position: Array, values: Array, log_size: Array
) -> None:
    """h(xi(u)) of all chains, and the log of the typical size of a pulled-back step, (det L / J)^(1/q); NaN if none."""
    rules, place, space, transition = uncounted(rules), uncounted(place), uncounted(space), uncounted(transition)
    q = place.xi.size
    for i in range(len(position)):
        u = uncounted((position[i],))[0]
        to_v(space, u, space.start)
        status, log_j = prepare(rules, place, space, transition, space.start)
        for j in range(q):
            k = space.single[j]
            values[i, j] = u[k] if k >= 0 else math.asinh(place.xi[j] / space.softening[j])
        total = -log_j
        for j in range(q):
            total += math.log(transition.factor[i, j, j])
        log_size[i] = total / q if status == OK and q > 0 else np.nan
