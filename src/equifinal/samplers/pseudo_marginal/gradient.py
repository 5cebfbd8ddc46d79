r"""Proposals of h = h(c) that go uphill, with the shape that the likelihood has where the chain is.

With g the gradient of log l by h and I its information, and s the spread of h under the prior, the proposal is

    h' ~ N(h + (eps^2/2) F F^T g, eps^2 F F^T),    F F^T = (I + diag(s)^-2)^-1,

the simplified manifold Langevin proposal (Girolami and Calderhead 2011, JRSS B 73). F is lower triangular, so that
h' = h + eps F (z + (eps/2) F^T g) with normals z; F^T g, the slope in units of the proposal, is cut to a length that it
rarely has near a mode. What the data do not determine is proposed with the prior's spread at the most.

A solve with sensitivities gives slope and information by theta, hence by the sampling coordinates u. As L is constant
along fibres, they are J^T g and J^T I J with J = dh/du, and with P = (J J^T)^-1 J

    g = P grad_u log L,    I = P I_u P^T.

Any F and slope are exact, if they belong to the state: the acceptance contains the density of the proposal both ways.
They are those at the root that the likelihood was computed at, and are kept until a proposal is accepted.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.machine.compiled import compiled
from equifinal.posterior.posterior import Posterior
from equifinal.problem.prior import MIRRORED, from_coordinate
from equifinal.samplers.coordinates.of_combinations import combination_coordinates

Array = NDArray[np.float64]

LONGEST = 3.0  # F^T g, in units of sqrt(q), about the length that it has near a mode


class Aim(NamedTuple):
    """log l (n,), F^T g (n, q), F (n, q, q), solves and failures (n,)."""

    log_likelihood: Array
    slope: Array
    factor: Array
    solves: NDArray[np.int64]
    failures: NDArray[np.int64]


class HasProposal(Protocol):
    @property
    def slope(self) -> Array: ...
    @property
    def factor(self) -> Array: ...


def aim(posterior: Posterior, fibre: Fibre, theta: Array) -> Aim:
    """The proposal at c = xi(theta); where it cannot be had, log l is minus infinity, and F as wide as the prior."""
    coordinates = combination_coordinates(fibre)
    found = posterior.expand(theta)
    u = fibre.to_coordinates(theta)
    geometry = fibre.geometry_in_coordinates(u)
    across = coordinates.jacobian(geometry.values, geometry.jacobian)
    slope, factor, fine = _aim(u, fibre.table, found.gradient, found.information, across, coordinates.spread)
    return Aim(np.where(fine, found.log_likelihood, -np.inf), slope, factor, found.solves, found.failures)


def log_odds(h: Array, new: Array, here: HasProposal, there: HasProposal, log_scale: Array) -> Array:
    """log q(h | h') - log q(h' | h)."""
    back = log_density(h, new, there.slope, there.factor, log_scale)
    return back - log_density(new, h, here.slope, here.factor, log_scale)


# Explicit loops, because the order of sums in array products may depend on how many chains there are.


@compiled
def propose(h: Array, slope: Array, factor: Array, log_scale: Array, normals: Array) -> Array:
    new = h.copy()
    for i in range(h.shape[0]):
        scale = math.exp(log_scale[i])
        for j in range(h.shape[1]):
            for k in range(j + 1):
                new[i, j] += scale * factor[i, j, k] * (normals[i, k] + 0.5 * scale * slope[i, k])
    return new


@compiled
def log_density(new: Array, h: Array, slope: Array, factor: Array, log_scale: Array) -> Array:
    """log q(new | h), without the factors of 2 pi and eps, which are the same both ways."""
    n, q = h.shape
    found, z = np.zeros(n), np.empty(q)
    for i in range(n):
        scale = math.exp(log_scale[i])
        for j in range(q):
            rest = (new[i, j] - h[i, j]) / scale
            for k in range(j):
                rest -= factor[i, j, k] * z[k]
            z[j] = rest / factor[i, j, j]
            found[i] -= math.log(factor[i, j, j])
        for j in range(q):
            found[i] -= 0.5 * (z[j] - 0.5 * scale * slope[i, j]) ** 2
    return found


@compiled
def _aim(u, table, gradient, information, across, spread):
    """F^T g, F, and whether they could be computed."""
    n, d = u.shape
    q = spread.size
    slope, factor = np.zeros((n, q)), np.zeros((n, q, q))
    fine = np.zeros(n, np.bool_)
    steps, g = np.empty(d), np.empty(q)
    for i in range(n):
        for k in range(d):
            kind = int(table[k, 7])
            steps[k] = math.exp(from_coordinate(u[i, k], kind, table[k, 8], table[k, 9])[1])
            if kind == MIRRORED:
                steps[k] = -steps[k]
        back = across[i].copy()  # P, rows of dtheta/dh along u, times dtheta/du
        fine[i] = _pseudo_inverse(back)
        for j in range(q):
            for k in range(d):
                back[j, k] *= steps[k] * spread[j]  # h in units of the prior's spread
        for j in range(q):
            g[j] = 0.0
            for k in range(d):
                g[j] += back[j, k] * gradient[i, k]
        precision = np.eye(q)
        for j in range(q):
            for k in range(d):
                part = 0.0
                for m in range(d):
                    part += back[j, m] * information[i, m, k]
                for m in range(j + 1):
                    precision[j, m] += part * back[m, k]
        fine[i] = fine[i] and _inverse_factor(precision, factor[i])
        length = 0.0
        for k in range(q):
            for j in range(k, q):
                slope[i, k] += factor[i, j, k] * g[j]
            length += slope[i, k] ** 2
        fine[i] = fine[i] and math.isfinite(length)
        shorter = min(1.0, LONGEST * math.sqrt(q / length)) if length > 0.0 else 1.0
        for j in range(q):
            slope[i, j] = slope[i, j] * shorter if fine[i] else 0.0
            for k in range(j + 1):
                if not fine[i]:
                    factor[i, j, k] = 1.0 if j == k else 0.0
                factor[i, j, k] *= spread[j]
    return slope, factor, fine


@compiled
def _pseudo_inverse(rows):
    """(J J^T)^-1 J in the place of J, by Cholesky's method; whether that is possible."""
    q, d = rows.shape
    lower = np.zeros((q, q))
    for j in range(q):
        for k in range(j + 1):
            total = 0.0
            for m in range(d):
                total += rows[j, m] * rows[k, m]
            for m in range(k):
                total -= lower[j, m] * lower[k, m]
            if j > k:
                lower[j, k] = total / lower[k, k]
            elif total > 0.0:
                lower[j, j] = math.sqrt(total)
            else:
                return False
    for m in range(d):
        for j in range(q):
            for k in range(j):
                rows[j, m] -= lower[j, k] * rows[k, m]
            rows[j, m] /= lower[j, j]
        for j in range(q - 1, -1, -1):
            for k in range(j + 1, q):
                rows[j, m] -= lower[k, j] * rows[k, m]
            rows[j, m] /= lower[j, j]
    return True


@compiled
def _inverse_factor(precision, factor):
    """The lower triangular F with F F^T = precision^-1, from its lower triangle; whether it is positive definite.

    precision = U U^T with U upper triangular, and F = U^-T: without an inverse of what may be nearly singular.
    """
    q = precision.shape[0]
    upper = np.zeros((q, q))
    for j in range(q - 1, -1, -1):
        for k in range(j, -1, -1):
            total = precision[j, k]
            for m in range(j + 1, q):
                total -= upper[j, m] * upper[k, m]
            if k < j:
                upper[k, j] = total / upper[j, j]
            elif total > 0.0 and math.isfinite(total):
                upper[j, j] = math.sqrt(total)
            else:
                return False
    for k in range(q):
        for j in range(k, q):
            total = 1.0 if j == k else 0.0
            for m in range(k, j):
                total -= upper[m, j] * factor[m, k]
            factor[j, k] = total / upper[j, j]
    return True
