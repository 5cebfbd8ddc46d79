r"""Noise parameters, integrated out for each trajectory: no value of theirs needs an ODE solve.

A parameter s of the noise that the model does not have changes how data scatter around a trajectory m, never the
trajectory. It stands for itself among the combinations. So, with c the other combinations,

    l(c) = integral of L(m, s) p(s) ds,     estimated without bias by the mean of L(m, s_j) p(s_j)/g(s_j), s_j ~ g,

and a point s_j chosen with probability proportional to its weight stands for s given c: the same device by which
`estimator` integrates theta along a fibre, from which it differs in that the weights need m first. The number of
dimensions that a proposal has to get right goes down by as many as there are such parameters.

Parameters that no observation has in common are independent given m. So they fall into groups, each with points of its
own, and l is a product: with f = L p and z the centre of the law,

    l = f(z) prod over groups a of integral of f(s_a, z elsewhere)/f(z) ds_a.

The law g belongs to m. It is centred where L(m, s) p(s) is highest, found by Newton's method from a point that is the
same for all m, and as wide as the curvature there says. In the axes of that curvature its coordinates are independent
Student t with 4 degrees of freedom, whose quantiles have a closed form (Shaw 2006, Journal of Computational Finance 9).
Points are randomly shifted lattices. All this is in sampling coordinates u of s.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.fibre import Fibre
from equifinal.language.expression import Name, names
from equifinal.machine.compiled import compiled
from equifinal.posterior.posterior import Outputs, Posterior
from equifinal.problem.prior import from_theta, log_prior, to_theta
from equifinal.samplers.points.lattice import lattice, shifted
from equifinal.samplers.proposals.log_sums import log_sums

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

POINTS = (4, 8, 16, 32)  # numbers of points that are tried
TRIALS = 32  # estimates for each of some trajectories, to see how noisy they are
HIGHEST = 3.0  # estimate beside the mean of all: one that is too high holds a chain for long
STEPS = 60  # of Newton's method, at the most
CLOSE = 0.1  # a step, in standard deviations, that is taken for the last
RADIUS = 2.0  # of a first step; this and what follows in units of the posterior's width
DIFFERENCE = 0.1  # for derivatives
LEAST_CURVATURE = 0.05
WIDER = 1.1  # than the curvature says: a law should have the heavier tails


class Integrated(NamedTuple):
    """M points of the noise parameters (n, M, k) for n trajectories; for each group, the log of their weights
    (n, groups, M), which sum up to factors of l(c); and what they add to log L.

    Without noise parameters there is one group with one point, whose weight is L.
    """

    values: Array
    log_weight: Array
    log_likelihood: Array

    @property
    def log_mean(self) -> Array:
        """log of the estimate of l(c)."""
        n, groups, number = self.log_weight.shape
        found = log_sums(self.log_weight.reshape(n * groups, number)).reshape(n, groups)
        total = found[:, 0].copy()
        for part in found.T[1:]:
            total += part
        return total


class NoiseIntegral:
    """Estimates of l(c).

    Parameters
    ----------
    start
        u (k,) from which Newton's method goes.
    scale
        (k,) how wide the posterior of u is, more or less.
    number
        M, points for each trajectory.

    Attributes
    ----------
    columns
        Where the noise parameters are in theta.
    groups
        Which of them (indices) belong together.
    log_prior_at_start
        log density of u there.
    """

    def __init__(self, posterior: Posterior, parameters: tuple[str, ...], start: Array, scale: Array, number: int):
        self.posterior = posterior
        self.parameters = parameters
        self.start = start
        self.scale = scale
        k = len(parameters)
        self.number: int = number if parameters else 1
        self.columns: NDArray[np.int64] = np.array([posterior.parameters.index(name) for name in parameters], np.int64)
        self._pairs = _pairs(posterior, parameters) if parameters else np.empty((0, 2), np.int64)
        self.groups: list[Integers] = _groups(k, self._pairs)
        self._group_of = np.zeros(k, np.int64)
        self.base: NDArray[np.float64] = np.empty((self.number, k))
        for g, own in enumerate(self.groups):
            self._group_of[own], self.base[:, own] = g, lattice(self.number, len(own))
        self._table = np.ascontiguousarray(posterior.table[self.columns])
        self._stencil = _stencil(k, self._pairs)
        self._bounds = self._support() if parameters else np.empty((2, 0))
        self.log_prior_at_start: float = float(self._log_prior(start[None])[1][0])

    def uniforms(self, rng: np.random.Generator, number: int) -> Array:
        """(number, M, k), for as many estimates."""
        return shifted(self.base, rng.random((number, 1, len(self.parameters))))

    def integrate(self, theta: Array, uniforms: Array) -> tuple[Integrated, Integers, Integers]:
        """Integrate over the noise parameters, whatever they are in theta (n, d); count solves and failures."""
        if not self.parameters:
            values, solves, failures = self.posterior.log_likelihood(theta)
            weight = values[:, None, None]
            return Integrated(np.empty((len(theta), 1, 0)), weight, weight.copy()), solves, failures
        found = self.posterior.outputs(theta)
        return self.along(found, theta, uniforms), found.solves, found.failures

    def along(self, found: Outputs, theta: Array, uniforms: Array) -> Integrated:
        """The same where trajectories are known."""
        n, number, k = uniforms.shape
        groups = len(self.groups)
        centre, factor = self.law(found, theta)
        z, log_g = _points(centre, factor, uniforms, self._group_of, groups)
        everywhere = np.repeat(centre[:, None], groups * number, axis=1)
        for g, own in enumerate(self.groups):
            everywhere[:, g * number : (g + 1) * number, own] = z[:, :, own]
        made = self._evaluated(found, theta, everywhere)
        log_likelihood, prior = (part.reshape(n, groups, number) for part in made)
        with np.errstate(invalid="ignore"):
            if groups > 1:
                at_centre = self._evaluated(found, theta, centre[:, None])
                log_likelihood[:, 1:] -= at_centre[0][:, :, None]
                prior[:, 1:] -= at_centre[1][:, :, None]
            log_weight = log_likelihood + prior - log_g - math.log(number)
        log_weight[:, 0] += float(np.sum(np.log(self.scale)))
        values = to_theta((self.start + self.scale * z).reshape(-1, k), self._table)[0].reshape(z.shape)
        return Integrated(values, np.where(np.isfinite(log_weight), log_weight, -np.inf), log_likelihood)

    def law(self, found: Outputs, theta: Array) -> tuple[Array, Array]:
        """Centres (n, k) in units of scale around start, and Cholesky factors (n, k, k) of the curvature there.

        A step that leads downhill is taken again, shorter. What is found for a trajectory does not depend on others.
        """
        z = np.clip(np.zeros((len(theta), len(self.parameters))), *self._bounds)
        value, gradient, factor = self._expanded(found, theta, z)
        radius, active = np.full(len(theta), RADIUS), np.arange(len(theta))
        for _ in range(STEPS):
            there = np.clip(z[active] + _newton(gradient[active], factor[active], radius[active]), *self._bounds)
            going = _lengths(factor[active], there - z[active]) > CLOSE
            z[active[~going]] = there[~going]
            active, there = active[going], there[going]
            if not active.size:
                break
            now = self._expanded(found.at(active), theta[active], there)
            better = now[0] >= value[active]
            radius[active] = np.where(better, 4.0 * radius[active], 0.25 * np.abs(there - z[active]).max(axis=1))
            moved = active[better]
            z[moved], value[moved], gradient[moved], factor[moved] = there[better], *(part[better] for part in now)
        return z, factor

    def _expanded(self, found: Outputs, theta: Array, z: Array) -> tuple[Array, Array, Array]:
        """log L p at points z (n, k), its gradient, and factors of minus its curvature."""
        log_likelihood, prior = self._evaluated(found, theta, z[:, None] + self._stencil)
        values = log_likelihood + prior
        return values[:, 0], *_expanded(values, self._pairs, z.shape[1])

    def _evaluated(self, found: Outputs, theta: Array, z: Array) -> tuple[Array, Array]:
        """log L and log density of u at points z (n, m, k)."""
        n, m, k = z.shape
        s, prior = self._log_prior(np.ascontiguousarray(self.start + self.scale * z).reshape(-1, k))
        rows = np.repeat(theta, m, axis=0)
        rows[:, self.columns] = s
        return self.posterior.log_likelihood_of(found, rows).reshape(n, m), prior.reshape(n, m)

    def _log_prior(self, u: Array) -> tuple[Array, Array]:
        s, log_slope = to_theta(u, self._table)
        return s, log_prior(s, self._table) + log_slope

    def _support(self) -> Array:
        """Its ends in z, so far inside that differences can be taken."""
        with np.errstate(divide="ignore"):
            ends = np.sort(from_theta(np.ascontiguousarray(self._table[:, 5:7].T), self._table), axis=0)
        low, high = (ends - self.start) / self.scale
        bounded = np.isfinite(low) & np.isfinite(high)
        middle = 0.5 * np.where(bounded, low, 0.0) + 0.5 * np.where(bounded, high, 0.0)  # if there is no room for that
        return np.array([np.minimum(low + 2 * DIFFERENCE, middle), np.maximum(high - 2 * DIFFERENCE, middle)])


def nothing(posterior: Posterior) -> NoiseIntegral:
    """No parameter is integrated out."""
    return NoiseIntegral(posterior, (), np.empty(0), np.empty(0), 1)


def apart(posterior: Posterior, fibre: Fibre) -> tuple[str, ...]:
    """Noise parameters that stand for themselves, and are in no other combination."""
    functions = (*fibre.combinations.independent, *fibre.combinations.labels)
    alone = [f.name for f in fibre.combinations.independent if isinstance(f, Name)]
    used = [name for f in functions if not isinstance(f, Name) for name in names(f)]
    return tuple(name for name in posterior.noise_only if name in alone and name not in used)


def fitted(
    posterior: Posterior,
    parameters: tuple[str, ...],
    start: Array,
    scale: Array,
    found: Outputs,
    theta: Array,
    good: float,
    rng: np.random.Generator,
) -> NoiseIntegral:
    """Choose the integral for trajectories like those of theta; it is over nothing where it would be too noisy.

    As few points are taken as make the relative variance of l less than ``good``, and no estimate far too high.
    """
    n = len(theta)
    repeated = found.at(np.repeat(np.arange(n), TRIALS))
    for number in POINTS:
        made = NoiseIntegral(posterior, parameters, start, scale, number)
        points = made.uniforms(rng, n * TRIALS)
        log_l = made.along(repeated, np.repeat(theta, TRIALS, axis=0), points).log_mean.reshape(n, TRIALS)
        with np.errstate(invalid="ignore"):
            ratio = np.exp(log_l - log_sums(log_l)[:, None]) * TRIALS
        if np.isfinite(ratio).all() and np.var(ratio) < good and ratio.max() < HIGHEST:
            return made
    return nothing(posterior)


def _pairs(posterior: Posterior, parameters: tuple[str, ...]) -> Integers:
    """Find the pairs of noise parameters that some observation shares; for others, mixed derivatives vanish."""
    found: set[tuple[int, ...]] = set()
    for experiment in posterior.problem.experiments:
        for entry in experiment.observations:
            own = sorted({parameters.index(name) for name in entry.noise.parameters if name in parameters})
            found.update(combinations(own, 2))
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _groups(k: int, pairs: Integers) -> list[Integers]:
    """Indices that pairs connect; one group without any if there are none."""
    label = np.arange(k)
    for _ in range(k):
        for a, b in pairs:
            label[[a, b]] = min(label[a], label[b])
    return [np.flatnonzero(label == g) for g in np.unique(label)] or [np.empty(0, np.int64)]


def _stencil(k: int, pairs: Integers) -> Array:
    """Where derivatives look: here, to both sides along each axis, and along the diagonal of each pair."""
    axes = np.eye(k)
    moves = [np.zeros(k)]
    for direction in (*axes, *(axes[i] + axes[j] for i, j in pairs)):
        moves += [DIFFERENCE * direction, -DIFFERENCE * direction]
    return np.array(moves)


# Loops, because what NumPy computes for a row may depend on how many rows there are.


@compiled
def _expanded(values, pairs, k):
    """Gradients, and factors of minus the curvature, made positive, from values (n, stencil)."""
    n = values.shape[0]
    gradient, factor = np.zeros((n, k)), np.zeros((n, k, k))
    for i in range(n):
        here = values[i, 0]
        for a in range(k):
            above, below = values[i, 1 + 2 * a], values[i, 2 + 2 * a]
            slope, bend = (above - below) / (2.0 * DIFFERENCE), (2.0 * here - above - below) / DIFFERENCE**2
            gradient[i, a] = slope if math.isfinite(slope) else 0.0
            factor[i, a, a] = max(bend, LEAST_CURVATURE) if math.isfinite(bend) else 1.0
        for p in range(pairs.shape[0]):
            a, b, at = pairs[p, 0], pairs[p, 1], 1 + 2 * k + 2 * p
            sides = values[i, 1 + 2 * a] + values[i, 2 + 2 * a] + values[i, 1 + 2 * b] + values[i, 2 + 2 * b]
            mixed = (sides - 2.0 * here - values[i, at] - values[i, at + 1]) / (2.0 * DIFFERENCE**2)
            if math.isfinite(mixed):
                factor[i, b, a] = mixed
        _factorise(factor[i])
    return gradient, factor


@compiled
def _factorise(matrix):
    """Cholesky in place, of the lower half; of the diagonal alone if the whole is not positive enough."""
    k = matrix.shape[0]
    diagonal = np.empty(k)
    for a in range(k):
        diagonal[a] = matrix[a, a]
    positive = True
    for a in range(k):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            if a > b:
                matrix[a, b] = total / matrix[b, b]
            elif total > 0.01 * diagonal[a]:
                matrix[a, a] = math.sqrt(total)
            else:
                positive = False
                matrix[a, a] = 1.0
    if not positive:
        for a in range(k):
            for b in range(a):
                matrix[a, b] = 0.0
            matrix[a, a] = math.sqrt(diagonal[a])


@compiled
def _newton(gradient, factor, radius):
    """Steps H^-1 g, none of their coordinates longer than the radius."""
    n, k = gradient.shape
    step = gradient.copy()
    for i in range(n):
        for a in range(k):
            for b in range(a):
                step[i, a] -= factor[i, a, b] * step[i, b]
            step[i, a] /= factor[i, a, a]
        _back(factor[i], step[i])
        longest = 0.0
        for a in range(k):
            longest = max(longest, abs(step[i, a]))
        if longest > radius[i]:
            for a in range(k):
                step[i, a] *= radius[i] / longest
    return step


@compiled
def _lengths(factor, step):
    """Measure steps in standard deviations of the law: the longest of their coordinates in its axes."""
    n, k = step.shape
    found = np.zeros(n)
    for i in range(n):
        for a in range(k):
            total = 0.0
            for b in range(a, k):
                total += factor[i, b, a] * step[i, b]
            found[i] = max(found[i], abs(total))
    return found


@compiled
def _back(factor, x):
    """Solve factor^T y = x in place."""
    k = x.shape[0]
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            x[a] -= factor[b, a] * x[b]
        x[a] /= factor[a, a]


@compiled
def _points(centre, factor, uniforms, group_of, groups):
    """Points z (n, M, k) by uniforms, and the log of their density in each group (n, groups, M)."""
    n, number, k = uniforms.shape
    z, log_g = np.empty((n, number, k)), np.zeros((n, groups, number))
    for i in range(n):
        for j in range(number):
            for a in range(k):
                t = student_4(uniforms[i, j, a])
                own = math.log(0.375 * factor[i, a, a] / WIDER) - 2.5 * math.log1p(0.25 * t * t)
                log_g[i, group_of[a], j] += own
                z[i, j, a] = WIDER * t
            _back(factor[i], z[i, j])  # groups do not mix: the factor has nothing between them
            for a in range(k):
                z[i, j, a] += centre[i, a]
    return z, log_g


@compiled
def student_4(p: float) -> float:
    """The quantile of Student's t with 4 degrees of freedom."""
    root = math.sqrt(4.0 * p * (1.0 - p))
    t = 2.0 * math.sqrt(max(0.0, math.cos(math.acos(min(1.0, root)) / 3.0) / root - 1.0))
    return t if p > 0.5 else -t
