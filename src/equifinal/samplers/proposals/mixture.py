r"""Mixtures of Student t laws: proposals that are fitted to weighted draws and then frozen.

    q(x) = sum_k a_k t_nu(x; m_k, S_k),

fitted by expectation-maximisation for weighted draws (Peel and McLachlan 2000, Statistics and Computing 10), in which
a draw x has in component k the weight (nu + q) / (nu + delta_k(x)^2), so that far-off draws pull less.

A mixture proposes in two ways, both reversible for q, so that both are accepted with min(1, w(x') / w(x)), w = pi / q:
a fresh draw, and a step from x. The step chooses a component k with the probability that x came from it, and the scale
s of its t law given x, an inverse gamma law; then

    x' = m_k + sqrt(1 - rho^2) (x - m_k) + rho sqrt(s) L_k z,    z ~ N(0, I),

which given (k, s) is an autoregression that N(m_k, s S_k) is invariant for (the preconditioned Crank-Nicolson step of
Cotter, Roberts, Stuart and White 2013, Statistical Science 28, in a mixture of scales). A small rho is a walk with the
covariance that the posterior has around x; rho = 1 forgets x but for the component.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equifinal.machine.compiled import compiled
from equifinal.samplers.proposals.log_sums import choose, log_sums

Array = NDArray[np.float64]

ROUNDS = 60
LEAST_SHARE = 0.02  # of a component
DF = 12.0  # degrees of freedom of components that are fitted
LEAST_DENSITY = 1e-250  # beside the highest, that is not lost in rounding
NOTHING = 1e-8  # of a draw: a share of it that a component need not look at
BLOCK = 32  # points that are looked at together
GAIN = 1e-5  # of the mean log density: less is not worth another round


class Mixture(NamedTuple):
    """Shares (k,), centres (k, q), Cholesky factors (k, q, q) of scale matrices, and degrees of freedom (k,)."""

    share: Annotated[Array, "parts"]
    centre: Annotated[Array, "parts m"]
    factor: Annotated[Array, "parts m m"]
    df: Annotated[Array, "parts"]

    @property
    def dimension(self) -> int:
        return self.centre.shape[1]

    def log_density(self, x: Array) -> Array:
        return log_sums(self._log_parts(np.ascontiguousarray(x))[0])

    def _log_parts(self, x: Array) -> tuple[Array, Array]:
        """log of each component's part in the density at points x, and delta_k(x)^2, both (n, k)."""
        return _log_parts(x, self.share, self.centre, np.linalg.inv(self.factor), self.df)

    def sample(self, rng: np.random.Generator, number: int) -> Array:
        """Draws (number, q)."""
        return self.from_numbers(*self.numbers(rng, number))

    def numbers(self, rng: np.random.Generator, number: int) -> tuple[Array, Array, Array]:
        """What a draw or a step takes: a uniform, normals, and chi-squares.

        These have the degrees of freedom of each component, and in a last column as many as there are dimensions.
        """
        degrees = np.append(self.df, max(1, self.dimension))
        return (
            rng.random(number),
            rng.chisquare(degrees, (number, len(degrees))),
            rng.standard_normal((number, self.dimension)),
        )

    def from_numbers(self, uniforms: Array, chi_squares: Array, normals: Array) -> Array:
        return _draws(uniforms, chi_squares, normals, *self)

    def stepped(self, x: Array, rho: Array, uniforms: Array, chi_squares: Array, normals: Array) -> Array:
        """Where steps of lengths rho (n,) lead from x (n, q)."""
        x = np.ascontiguousarray(x)
        parts = self._log_parts(x)
        return _steps(x, rho, uniforms, chi_squares, normals, *parts, self.centre, self.factor, self.df)

    def joined(self, other: Mixture, share: float) -> Mixture:
        """Both, the other one with a share of the whole."""
        parts = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        share_both = np.concatenate([(1 - share) * self.share, share * other.share])
        return Mixture(*parts)._replace(share=share_both)


def single(centre: Array, covariance: Array, df: float) -> Mixture:
    factor = np.asarray(np.linalg.cholesky(covariance), np.float64)
    return Mixture(np.ones(1), centre[None], factor[None], np.full(1, df))


def equal(centre: Array, factor: NDArray[Any]) -> Mixture:
    """Components at the centres (k, q) with equal shares and one factor (q, q), to fit from."""
    k = len(centre)
    return Mixture(np.full(k, 1 / k), centre, np.repeat(factor[None], k, axis=0), np.full(k, DF))


def fit(
    x: Array,
    weights: Array,
    start: Mixture,
    floor: Array,
    least: float = LEAST_SHARE,
    gain: float = GAIN,
    belief: tuple[float, Array] | None = None,
) -> Mixture:
    """Expectation-maximisation from a first mixture.

    No scale matrix gets smaller than ``floor`` (q, q), and components with a share below ``least`` are dropped. With a
    ``belief``, a share of the draws and a scale matrix (q, q), each component is thought to have that matrix, as if so
    many draws had told so: a conjugate prior (Fraley and Raftery 2007, Journal of Classification 24).
    """
    if x.shape[1] == 0:
        return Mixture(*(part[:1] for part in start))._replace(share=np.ones(1))
    x, weights = np.ascontiguousarray(x), weights / weights.sum()
    mixture, before = start, -math.inf
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(mixture.factor)
        size, centre, scatter, now = _round(x, weights, mixture.share, mixture.centre, inverse, mixture.df)
        keep = size > least
        if not keep.all():
            kept = Mixture(*(part[keep] for part in mixture))
            mixture, before = kept._replace(share=kept.share / kept.share.sum()), -math.inf
            continue
        told = size
        if belief is not None:
            told, scatter = size + belief[0], scatter + belief[0] * belief[1]
        factor = np.linalg.cholesky(scatter / told[:, None, None] + floor)
        mixture = Mixture(size / size.sum(), centre, factor, mixture.df)
        if now - before < gain:
            break
        before = now
    return mixture


@compiled
def _log_parts(x, share, centre, inverse, df):
    n, q = x.shape
    parts = share.shape[0]
    found, squares = np.empty((n, parts)), np.empty((n, parts))
    block, own, z = np.zeros((q, BLOCK)), np.empty((parts, BLOCK)), np.empty(BLOCK)
    constants = _log_constants(share, inverse, df)
    for start in range(0, n, BLOCK):
        here = _take(x, start, block)
        _squares(block, centre, inverse, z, own)
        for i in range(here):
            for k in range(parts):
                squares[start + i, k] = own[k, i]
                found[start + i, k] = constants[k] - 0.5 * (df[k] + q) * math.log1p(own[k, i] / df[k])
    return found, squares


@compiled
def _take(x, start, block):
    """Points from start on, as columns of a block (q, BLOCK); their number."""
    here = min(BLOCK, x.shape[0] - start)
    for j in range(x.shape[1]):
        for i in range(here):
            block[j, i] = x[start + i, j]
    return here


@compiled
def _squares(block, centre, inverse, z, squares):
    """delta_k(x)^2 of the points of a block (q, BLOCK), for each component a row; z (BLOCK,) is for the way.

    The innermost loops go over points, so that a processor can do several of them at once.
    """
    parts, q = centre.shape
    for k in range(parts):
        own = squares[k]
        for i in range(BLOCK):
            own[i] = 0.0
        for j in range(q):
            for i in range(BLOCK):
                z[i] = 0.0
            for m in range(j + 1):
                x, entry, middle = block[m], inverse[k, j, m], centre[k, m]
                for i in range(BLOCK):
                    z[i] += entry * (x[i] - middle)
            for i in range(BLOCK):
                own[i] += z[i] * z[i]


@compiled
def _log_constants(share, inverse, df):
    """log of each component's part in the density at its centre."""
    found, q = np.log(share), inverse.shape[1]
    for k in range(share.shape[0]):
        nu = df[k]
        found[k] += math.lgamma(0.5 * (nu + q)) - math.lgamma(0.5 * nu) - 0.5 * q * math.log(nu * math.pi)
        for j in range(q):
            found[k] += math.log(inverse[k, j, j])
    return found


@compiled
def _powers(base, halves, found):
    """Multiply numbers by those of a base to the power of so many halves, which is lost: faster than by logarithms."""
    if halves % 2:
        for i in range(BLOCK):
            found[i] *= math.sqrt(base[i])
    rest = halves // 2
    while rest:
        if rest % 2:
            for i in range(BLOCK):
                found[i] *= base[i]
        for i in range(BLOCK):
            base[i] *= base[i]
        rest //= 2


@compiled
def _densities(squares, df, q, tops, z, own):
    """Parts (k, BLOCK) of components in the density, those at their centres being ``tops``."""
    for k in range(tops.shape[0]):
        mine, halves = own[k], int(df[k]) + q
        for i in range(BLOCK):
            z[i] = 1.0 / (1.0 + squares[k, i] / df[k])
            mine[i] = tops[k]
        if df[k] + q == halves:
            _powers(z, halves, mine)
        else:
            for i in range(BLOCK):
                mine[i] *= z[i] ** (0.5 * (df[k] + q))


@compiled
def _round(x, weights, share, centre, inverse, df):
    """Weight (k,), new centre (k, q), and scatter around it (k, q, q) of each component, and the mean log density.

    In plain loops: there are many small rounds, which threads of a matrix library slow down on a busy machine. And
    without logarithms where degrees of freedom are whole numbers: they would take most of the time.
    """
    n, q = x.shape
    parts = centre.shape[0]
    size, pulled, mean, scatter = np.zeros(parts), np.zeros(parts), np.zeros((parts, q)), np.zeros((parts, q, q))
    constants = _log_constants(share, inverse, df)
    highest = constants.max()
    tops = np.exp(constants - highest)
    block, z, apart = np.zeros((q, BLOCK)), np.empty(BLOCK), np.empty(q)
    squares, own, total = np.empty((parts, BLOCK)), np.empty((parts, BLOCK)), np.empty(BLOCK)
    mean_log = 0.0
    for start in range(0, n, BLOCK):
        here = _take(x, start, block)
        _squares(block, centre, inverse, z, squares)
        _densities(squares, df, q, tops, z, own)
        for i in range(BLOCK):
            total[i] = 0.0
        for k in range(parts):
            for i in range(BLOCK):
                total[i] += own[k, i]
        for i in range(here):
            level = highest
            if not total[i] > LEAST_DENSITY:  # too far from all of them for anything but logarithms
                level = -math.inf
                for k in range(parts):
                    own[k, i] = constants[k] - 0.5 * (df[k] + q) * math.log1p(squares[k, i] / df[k])
                    level = max(level, own[k, i])
                total[i] = 0.0
                for k in range(parts):
                    own[k, i] = math.exp(own[k, i] - level)
                    total[i] += own[k, i]
            mean_log += weights[start + i] * (level + math.log(total[i]))
        for k in range(parts):
            for i in range(here):
                responsible = own[k, i] / total[i]
                mine = weights[start + i] * responsible
                pull = mine * (df[k] + q) / (df[k] + squares[k, i])
                size[k] += mine
                pulled[k] += pull
                if responsible < NOTHING:
                    continue
                for j in range(q):
                    apart[j] = block[j, i] - centre[k, j]
                    pulled_apart = pull * apart[j]
                    mean[k, j] += pulled_apart
                    for m in range(j + 1):
                        scatter[k, j, m] += pulled_apart * apart[m]
    for k in range(parts):
        for j in range(q):
            for m in range(j + 1):
                scatter[k, j, m] -= mean[k, j] * mean[k, m] / pulled[k]
                scatter[k, m, j] = scatter[k, j, m]
        for j in range(q):
            mean[k, j] = centre[k, j] + mean[k, j] / pulled[k]
    return size, mean, scatter, mean_log


@compiled
def _draws(uniforms, chi_squares, normals, share, centre, factor, df):
    n, q = normals.shape
    x = np.empty((n, q))
    for i in range(n):
        k, before = 0, share[0]
        while k + 1 < share.shape[0] and uniforms[i] >= before:
            k += 1
            before += share[k]
        scale = math.sqrt(df[k] / chi_squares[i, k])
        for j in range(q):
            total = 0.0
            for m in range(j + 1):
                total += factor[k, j, m] * normals[i, m]
            x[i, j] = centre[k, j] + scale * total
    return x


@compiled
def _steps(x, rho, uniforms, chi_squares, normals, log_parts, squares, centre, factor, df):
    n, q = x.shape
    moved = np.empty((n, q))
    for i in range(n):
        k = choose(log_parts[i : i + 1], uniforms[i : i + 1])[0]
        keep = math.sqrt(1.0 - rho[i] * rho[i])
        # given x, the scale has q degrees of freedom more
        scale = rho[i] * math.sqrt((df[k] + squares[i, k]) / (chi_squares[i, k] + chi_squares[i, -1]))
        for j in range(q):
            total = 0.0
            for m in range(j + 1):
                total += factor[k, j, m] * normals[i, m]
            moved[i, j] = centre[k, j] + keep * (x[i, j] - centre[k, j]) + scale * total
    return moved
