r"""What the posteriors of `tests/support/targets.py` are, by code that shares nothing with the package but the data.

    uv run python benchmarks/references.py [TARGET ...]

Priors are SciPy's, likelihoods are written out here, equations are solved by the classical Runge-Kutta method with
fixed steps (the stiff one by a Rosenbrock method on a geometric grid, the linear one in closed form). Sampling is in
log theta, or in coordinates derived by hand in which fibres are straight: many replicates, each a population that goes
from prior draws to the posterior by tempering (sequential Monte Carlo) and then moves on by differential evolution
(ter Braak 2006, Statistics and Computing 16), one half of it by differences of the other half. Where two roots have
the same outputs, exchanging two coordinates leads from one to the other, and that is proposed too. Halfway through
what is thrown away, t laws are laid on clusters of all walkers and frozen, and from then on every other sweep proposes
from them. Given these laws replicates know nothing of each other, so that their spread is an honest standard error,
shares of modes included.

Writes `tests/support/references.json`: for each parameter mean, sd and quantiles with their errors, those of quantiles
as errors of the probability to lie below; and the largest change of the log likelihood when steps are halved.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy import special, stats
from scipy.cluster.vq import kmeans2

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.targets import TARGETS

REFERENCES = Path(__file__).parents[1] / "tests" / "support" / "references.json"
QUANTILES = (0.05, 0.5, 0.95)
REPLICATES, WALKERS = 32, 80
MOVES = 6  # sweeps at each temperature
CLUSTERS, DF = 8, 6.0  # of the laws that jumps are proposed from


class Logarithms:
    """Coordinates w = log theta; others derive from it."""

    swap: tuple[int, int] | None = None  # coordinates that may change places

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return np.log(theta)

    def backward(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """theta, and log |dtheta/dw|."""
        return np.exp(w), w.sum(axis=1)


@dataclass(frozen=True)
class Reference:
    """A posterior.

    Attributes
    ----------
    priors
        Of theta, by name.
    likelihood
        log likelihood of rows of theta, with steps shortened by a factor.
    coordinates
        What populations move in.
    sweeps, burn
        After tempering: kept, and before that thrown away.
    """

    priors: Mapping[str, Any]
    likelihood: Callable[[np.ndarray, float], np.ndarray]
    coordinates: Logarithms = field(default_factory=Logarithms)
    sweeps: int = 1000
    burn: int = 600


# --- solving ---


@njit
def runge_kutta(flow, start, parameters, times, step):
    """States (lanes, times, n) from (lanes, n) at time 0."""
    lanes, n = start.shape
    found = np.empty((lanes, len(times), n))
    k1, k2, k3, k4, at = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(lanes):
        z, p, now = start[i].copy(), parameters[i], 0.0
        for j in range(len(times)):
            steps = math.ceil((times[j] - now) / step)
            for _ in range(steps):
                h = (times[j] - now) / steps
                flow(z, p, k1)
                for m in range(n):
                    at[m] = z[m] + 0.5 * h * k1[m]
                flow(at, p, k2)
                for m in range(n):
                    at[m] = z[m] + 0.5 * h * k2[m]
                flow(at, p, k3)
                for m in range(n):
                    at[m] = z[m] + h * k3[m]
                flow(at, p, k4)
                for m in range(n):
                    z[m] += h / 6 * (k1[m] + 2 * k2[m] + 2 * k3[m] + k4[m])
            now = times[j]
            found[i, j] = z
    return found


@njit
def rosenbrock(parameters, times, ratio):
    """Robertson's reaction in B and C, A being the rest, by ROS2 (Verwer and others 1999); steps grow by a ratio."""
    gamma = 1 - 1 / math.sqrt(2)
    found = np.empty((parameters.shape[0], len(times), 2))
    for i in range(parameters.shape[0]):
        k1, k2, k3 = parameters[i, 0], parameters[i, 1], parameters[i, 2]
        b, c, now, h = 0.0, 0.0, 0.0, 1e-6
        for j in range(len(times)):
            while now < times[j]:
                last = now + 1.000001 * h >= times[j]
                size = times[j] - now if last else h
                g = gamma * size
                # I - g J
                m11, m12 = 1 + g * (k1 + k3 * c + 2 * k2 * b), g * (k1 + k3 * b)
                m21 = -2 * g * k2 * b
                det = m11 - m12 * m21
                f1, f2 = k1 * (1 - b - c) - k3 * b * c - k2 * b * b, k2 * b * b
                x1, x2 = (f1 - m12 * f2) / det, (m11 * f2 - m21 * f1) / det
                d, e = b + size * x1, c + size * x2
                f1, f2 = k1 * (1 - d - e) - k3 * d * e - k2 * d * d - 2 * x1, k2 * d * d - 2 * x2
                y1, y2 = (f1 - m12 * f2) / det, (m11 * f2 - m21 * f1) / det
                b, c = b + size * (1.5 * x1 + 0.5 * y1), c + size * (1.5 * x2 + 0.5 * y2)
                now = times[j] if last else now + size
                h *= ratio
            found[i, j, 0], found[i, j, 1] = b, c
    return found


@njit
def seir_flow(z, p, dz):  # p: b/N, a, g
    new = p[0] * z[0] * z[2]
    dz[0] = -new
    dz[1] = new - p[1] * z[1]
    dz[2] = p[1] * z[1] - p[2] * z[2]


@njit
def goodwin_flow(z, p, dz):  # p: a to f, power 4 or 10
    fourth = z[2] ** 4
    dz[0] = p[0] / (1 + (fourth if p[6] == 4 else fourth * fourth * z[2] ** 2)) - p[1] * z[0]
    dz[1] = p[2] * z[0] - p[3] * z[1]
    dz[2] = p[4] * z[1] - p[5] * z[2]


@njit
def chain_flow(z, p, dz):  # p: r, k, b, c, m, d, e, n
    dz[0] = z[0] * (p[0] - p[1] * z[0] - p[2] * z[1])
    dz[1] = z[1] * (p[3] * z[0] - p[4] - p[5] * z[2])
    dz[2] = z[2] * (p[6] * z[1] - p[7])


@njit
def prey_flow(z, p, dz):
    dz[0] = (p[0] - p[1] * z[1]) * z[0]
    dz[1] = (p[3] * z[0] - p[2]) * z[1]


@njit
def cholera_flow(z, p, dz):  # z: S, I, B
    new = p[0] * z[2] / (z[2] + 1e6) * z[0]
    dz[0] = -new
    dz[1] = new - p[1] * z[1]
    dz[2] = p[2] * z[1] - p[3] * z[2]


@njit
def sir_flow(z, p, dz):
    new = p[0] * z[0] * z[1] / 763
    dz[0] = -new
    dz[1] = new - p[1] * z[1]


# --- likelihoods ---


def observed(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times and values of each output."""
    (experiment,) = TARGETS[name]().experiments
    return [(entry.times, entry.values) for entry in experiment.observations]


def lognormal(y: np.ndarray, m: np.ndarray, s: np.ndarray | float) -> np.ndarray:
    """Summed over times; m (lanes, times)."""
    m = np.where(m > 0, m, np.nan)
    return stats.norm.logpdf(np.log(y), np.log(m), np.reshape(s, (-1, 1))).sum(axis=1)


def columns(*parts: Any) -> np.ndarray:
    """Side by side, numbers as often as there are rows."""
    rows = max(np.shape(part)[0] for part in parts if np.ndim(part))
    return np.ascontiguousarray(np.column_stack([np.full(rows, p) if np.ndim(p) == 0 else p for p in parts]))


def log_normal_prior(mean: float, sd: float) -> Any:
    return stats.lognorm(sd, scale=math.exp(mean))


def seir() -> Reference:
    ((t, y),) = observed("seir")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        b, a, g, rho, s0, e0, i0, r0, s = theta.T
        z = runge_kutta(seir_flow, columns(s0, e0, i0), columns(b / (s0 + e0 + i0 + r0), a, g), t, 0.25 / finer)
        return lognormal(y, rho[:, None] * z[:, :, 2], s)

    p = log_normal_prior
    priors = {"b": p(0, 0.7), "a": p(-1, 0.7), "g": p(-1.5, 0.7), "rho": stats.beta(2, 2), "S_0": p(6.5, 0.5)}
    priors |= {"E_0": p(2, 1), "I_0": p(2, 1), "R_0": p(5, 1), "s": p(-2, 1)}
    return Reference(priors, likelihood, SeirScales())


class SeirRoots(Logarithms):
    """log of b, a, g, a*S_0, a*(E_0 + I_0), I_0, s: without changing outputs, a and g may change places."""

    swap = (1, 2)

    def forward(self, theta: np.ndarray) -> np.ndarray:
        b, a, g, s0, e0, i0, s = theta.T
        return np.log(columns(b, a, g, a * s0, a * (e0 + i0), i0, s))

    def backward(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b, a, g, susceptible, infected, i0, s = np.exp(w).T
        s0, both = susceptible / a, infected / a
        return columns(b, a, g, s0, both - i0, i0, s), np.log(b * a * g * s0 * both * i0 * s)


class SeirScales(Logarithms):
    """log of b, a, g, rho, a*rho*S_0, a*rho*(E_0 + I_0), rho*I_0, b/(rho*N), s."""

    swap = (1, 2)

    def forward(self, theta: np.ndarray) -> np.ndarray:
        b, a, g, rho, s0, e0, i0, r0, s = theta.T
        whole = s0 + e0 + i0 + r0
        return np.log(columns(b, a, g, rho, a * rho * s0, a * rho * (e0 + i0), rho * i0, b / (rho * whole), s))

    def backward(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b, a, g, rho, susceptible, infected, seen, rate, s = np.exp(w).T
        s0, both, i0, whole = susceptible / (a * rho), infected / (a * rho), seen / rho, b / (rho * rate)
        theta = columns(b, a, g, rho, s0, both - i0, i0, whole - s0 - both, s)
        return theta, np.log(b * a * g * rho * s0 * both * i0 * whole * s)


def seir_roots() -> Reference:
    ((t, y),) = observed("seir_roots")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        b, a, g, s0, e0, i0, s = theta.T
        z = runge_kutta(seir_flow, columns(s0, e0, i0), columns(b, a, g), t, 0.25 / finer)
        return lognormal(y, z[:, :, 2], s)

    p = log_normal_prior
    priors = {"b": p(-6.5, 1), "a": p(-1, 0.7), "g": p(-1.5, 0.7), "S_0": p(6.5, 0.5), "E_0": p(2, 1), "I_0": p(2, 1)}
    return Reference(priors | {"s": p(-2, 1)}, likelihood, SeirRoots())


class TwoLosses(Logarithms):
    """log of k10 + k12, k21 + k20, k12*k21, k12, V, s."""

    def forward(self, theta: np.ndarray) -> np.ndarray:
        k10, k12, k21, k20, v, s = theta.T
        return np.log(columns(k10 + k12, k21 + k20, k12 * k21, k12, v, s))

    def backward(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, two, product, k12, v, s = np.exp(w).T
        k21 = product / k12
        return columns(one - k12, k12, k21, two - k21, v, s), np.log(one * two * k21 * k12 * v * s)


def pharmacokinetics() -> Reference:
    ((t, y),) = observed("pharmacokinetics")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        k10, k12, k21, k20, v, s = (part[:, None] for part in theta.T)
        one, two = k10 + k12, k21 + k20
        root = np.sqrt((one - two) ** 2 + 4 * k12 * k21)
        fast, slow = (one + two + root) / 2, (one + two - root) / 2
        amount = 100 * ((fast - two) * np.exp(-fast * t) + (two - slow) * np.exp(-slow * t)) / root
        return lognormal(y, amount / v, s)

    p = log_normal_prior
    priors = {"k10": p(-1, 1), "k12": p(-1, 1), "k21": p(-1, 1), "k20": p(-2, 1), "V": p(2, 1), "s": p(-2, 1)}
    return Reference(priors, likelihood, TwoLosses(), sweeps=2000)


def _goodwin(name: str, power: int, step: float, seen: tuple[int, ...]) -> Reference:
    data = observed(name)
    t = data[0][0]

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        at = columns(*theta[:, :6].T, float(power))
        z = runge_kutta(goodwin_flow, np.ascontiguousarray(theta[:, 6:9]), at, t, step / finer)
        return sum(lognormal(y, z[:, :, k], theta[:, 9]) for k, (_, y) in zip(seen, data, strict=True))

    p = log_normal_prior
    priors = {"a": p(1, 0.7), "b": p(-1, 0.7), "c": p(0, 0.7), "d": p(-1, 0.7), "e": p(-0.5, 0.7), "f": p(-1.5, 0.7)}
    priors |= {"x_0": p(0, 1), "y_0": p(-1, 1), "z_0": p(-1, 1), "s": p(-2, 1)}
    return Reference(priors, likelihood, Decays())


class Decays(Logarithms):
    """log of a, b, c, d, c*e, f, x_0, z_0, s, and e*y_0 - f*z_0: d and f may change places."""

    swap = (3, 5)

    def forward(self, theta: np.ndarray) -> np.ndarray:
        a, b, c, d, e, f, x0, y0, z0, s = theta.T
        return columns(np.log(columns(a, b, c, d, c * e, f, x0, z0, s)), e * y0 - f * z0)

    def backward(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b, c, d, product, f, x0, z0, s = np.exp(w[:, :9]).T
        e = product / c
        return columns(a, b, c, d, e, f, x0, (w[:, 9] + f * z0) / e, z0, s), np.log(a * b * c * d * f * x0 * z0 * s)


def goodwin() -> Reference:
    return _goodwin("goodwin", 10, 0.1, (0, 2))


def goodwin_unanalysed() -> Reference:
    return _goodwin("goodwin_unanalysed", 4, 0.15, (0,))


def food_chain() -> Reference:
    data = observed("food_chain")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        start = np.ascontiguousarray(theta[:, 9:12])
        z = runge_kutta(chain_flow, start, np.ascontiguousarray(theta[:, :8]), data[0][0], 0.125 / finer)
        z[:, :, 2] *= theta[:, 8, None]
        return sum(lognormal(y, z[:, :, k], theta[:, 12]) for k, (_, y) in enumerate(data))

    p = log_normal_prior
    priors = {"r": p(0, 0.7), "k": p(-1.5, 0.7), "b": p(-0.5, 0.7), "c": p(-0.5, 0.7), "m": p(-1, 0.7)}
    priors |= {"d": p(-0.5, 0.7), "e": p(-1, 0.7), "n": p(-1, 0.7), "w": p(0, 0.7)}
    return Reference(priors | {"x_0": p(0, 1), "y_0": p(0, 1), "z_0": p(0, 1), "s": p(-2, 1)}, likelihood)


def robertson() -> Reference:
    (t, first), (_, trace) = observed("robertson")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        z = rosenbrock(np.ascontiguousarray(theta[:, :3]), t, 1 + 0.03 / finer)
        s = theta[:, 3, None]
        left = 1 - z[:, :, 0] - z[:, :, 1]
        return (stats.norm.logpdf(first, left, s) + stats.norm.logpdf(trace, 1e4 * z[:, :, 0], s)).sum(axis=1)

    priors = {"k1": stats.loguniform(1e-3, 1), "k2": stats.loguniform(1e5, 1e9), "k3": stats.loguniform(1e2, 1e6)}
    return Reference(priors | {"s": stats.halfnorm(scale=0.2)}, likelihood, sweeps=1000)


def influenza() -> Reference:
    ((t, y),) = observed("influenza")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        beta, gamma, rho, i0, phi = theta.T
        z = runge_kutta(sir_flow, columns(763 - i0, i0), columns(beta, gamma), t, 0.1 / finer)
        m, size = np.maximum(rho[:, None] * z[:, :, 1], 1e-300), 1 / phi[:, None]
        return stats.nbinom.logpmf(y, size, size / (size + m)).sum(axis=1)

    p = log_normal_prior
    priors = {"beta": p(0.5, 1), "gamma": p(-0.7, 1), "rho": stats.beta(2, 1)}
    return Reference(priors | {"I0": p(0, 1), "phi": stats.expon(scale=0.2)}, likelihood)


def lynx_hare() -> Reference:
    (t, hare), (_, lynx) = observed("lynx_hare")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        start = np.ascontiguousarray(theta[:, 4:6])
        z = runge_kutta(prey_flow, start, np.ascontiguousarray(theta[:, :4]), t, 0.1 / finer)
        return lognormal(hare, z[:, :, 0], theta[:, 6]) + lognormal(lynx, z[:, :, 1], theta[:, 7])

    def normal(mean: float, sd: float) -> Any:
        return stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)

    p = log_normal_prior
    priors = {"alpha": normal(1, 0.5), "beta": normal(0.05, 0.05), "gamma": normal(1, 0.5), "delta": normal(0.05, 0.05)}
    priors |= {"hare_0": p(math.log(10), 1), "lynx_0": p(math.log(10), 1), "s_hare": p(-1, 1), "s_lynx": p(-1, 1)}
    return Reference(priors, likelihood)


def cholera() -> Reference:
    (t, counts), (_, bacteria) = observed("cholera")

    def likelihood(theta: np.ndarray, finer: float) -> np.ndarray:
        start = np.ascontiguousarray(np.tile([10_000.0, 0.0, 10_000.0], (len(theta), 1)))
        z = runge_kutta(cholera_flow, start, theta, t, 0.25 / finer)
        susceptible = np.concatenate([np.full((len(theta), 1), 10_000.0), z[:, :, 0]], axis=1)
        new = -np.diff(susceptible, axis=1)
        new = np.where(new > 0, new, np.nan)
        return stats.poisson.logpmf(counts, new).sum(axis=1) + lognormal(bacteria, z[:, :, 2], 0.15)

    h = stats.halfcauchy
    priors = {"beta": h(scale=2.5), "gamma": h(scale=1), "xi": h(scale=25), "delta": h(scale=1)}
    return Reference(priors, likelihood)


# --- sampling ---


class Population:
    """Replicates of walkers, (replicates, walkers, d), at a temperature."""

    def __init__(self, reference: Reference, rng: np.random.Generator):
        self.reference, self.rng = reference, rng
        self.laws = list(reference.priors.values())
        n = REPLICATES * WALKERS
        theta = np.column_stack([law.rvs(n, random_state=rng) for law in self.laws])
        self.u = reference.coordinates.forward(theta).reshape(REPLICATES, WALKERS, -1)
        self.prior, self.likelihood = self.densities(self.u)
        self.beta = 0.0

    def densities(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = u.reshape(-1, u.shape[-1])
        with np.errstate(all="ignore"):
            theta, volume = self.reference.coordinates.backward(flat)
            prior = sum(law.logpdf(theta[:, k]) for k, law in enumerate(self.laws)) + volume
        likelihood = np.full(len(flat), -np.inf)
        inside = np.isfinite(prior)
        with np.errstate(all="ignore"):
            likelihood[inside] = self.reference.likelihood(np.ascontiguousarray(theta[inside]), 1.0)
        likelihood[~np.isfinite(likelihood)] = -np.inf
        return prior.reshape(u.shape[:2]), likelihood.reshape(u.shape[:2])

    def temper(self) -> None:
        """Raise beta so that weights keep half of their worth, and resample within replicates."""
        low, high = self.beta, 1.0
        for _ in range(40):
            middle = (low + high) / 2 if self._worth(1.0) < 0.5 else 1.0
            if middle == 1.0:
                low = 1.0
                break
            low, high = (middle, high) if self._worth(middle) > 0.5 else (low, middle)
        beta = min(1.0, max(low, self.beta + 1e-7))
        log_weight = self._log_weight(beta)
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        for i in range(REPLICATES):
            marks = (np.arange(WALKERS) + self.rng.random()) / WALKERS
            chosen = np.minimum(np.searchsorted(np.cumsum(weight[i]), marks), WALKERS - 1)
            chosen = self.rng.permutation(chosen)
            for part in (self.u, self.prior, self.likelihood):
                part[i] = part[i, chosen]
        self.beta = beta

    def _log_weight(self, beta: float) -> np.ndarray:
        return np.where(np.isfinite(self.likelihood), (beta - self.beta) * self.likelihood, -np.inf)

    def _worth(self, beta: float) -> float:
        log_weight = self._log_weight(beta)
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        return float(np.median(weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1)) / WALKERS)

    def sweep(self) -> None:
        half = WALKERS // 2
        coordinates = self.reference.coordinates
        for mine, theirs in ((0, half), (half, 0)):
            at = slice(mine, mine + half)
            self._evolve(at, theirs)
            if coordinates.swap and self.rng.random() < 0.25:
                one_way, other = coordinates.swap
                swapped = self.u[:, at].copy()
                swapped[..., [one_way, other]] = swapped[..., [other, one_way]]
                self._metropolis(at, swapped)

    def _evolve(self, at: slice, theirs: int) -> None:
        """Differential evolution, half of the time in log theta."""
        half, d = WALKERS // 2, self.u.shape[2]
        shape = (REPLICATES, half)
        rows = np.arange(REPLICATES)[:, None]
        one = self.rng.integers(half, size=shape)
        two = (one + self.rng.integers(1, half, size=shape)) % half
        size = 2.38 / math.sqrt(2 * d) * np.exp(self.rng.uniform(-1.2, 0.2, shape))
        size = np.where(self.rng.random(shape) < 0.1, 1.0, size)[..., None]
        noise = 1e-5 * self.rng.standard_normal((*shape, d))
        if type(self.reference.coordinates) is Logarithms or self.rng.random() < 0.5:
            apart = self.u[rows, theirs + one] - self.u[rows, theirs + two]
            self._metropolis(at, self.u[:, at] + size * apart + noise)
            return
        backward = self.reference.coordinates.backward
        theta, volume = backward(self.u.reshape(-1, d))
        logs = np.log(theta).reshape(self.u.shape)
        volume = volume.reshape(self.u.shape[:2])[:, at]
        proposed = logs[:, at] + size * (logs[rows, theirs + one] - logs[rows, theirs + two]) + noise
        there = self.reference.coordinates.forward(np.exp(proposed.reshape(-1, d)))
        new_volume = backward(there)[1].reshape(shape)
        change = proposed.sum(axis=2) - new_volume - logs[:, at].sum(axis=2) + volume
        self._metropolis(at, there.reshape(*shape, d), change)

    def learn(self) -> None:
        """Freeze t laws on clusters of all walkers."""
        flat = self.u.reshape(-1, self.u.shape[2])
        centre, covariance = flat.mean(axis=0), np.cov(flat.T)
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, (flat - centre).T).T
        _, label = kmeans2(white, CLUSTERS, seed=self.rng, minit="++")
        laws = [(0.1, centre, 1.5 * factor)]
        for k in range(CLUSTERS):
            own = flat[label == k]
            if len(own) > 8 * flat.shape[1]:
                shape = 1.4 * np.cov(own.T) + 0.05 * covariance
                laws.append((len(own) / len(flat), own.mean(axis=0), np.linalg.cholesky(shape)))
        total = sum(law[0] for law in laws)
        self.proposals = [(share / total, centre, factor) for share, centre, factor in laws]

    def _log_proposal(self, u: np.ndarray) -> np.ndarray:
        flat = u.reshape(-1, u.shape[-1])
        d = flat.shape[1]
        parts = []
        for share, centre, factor in self.proposals:
            z = np.linalg.solve(factor, (flat - centre).T)
            log_det = np.log(np.diag(factor)).sum()
            parts.append(math.log(share) - log_det - 0.5 * (DF + d) * np.log1p((z**2).sum(axis=0) / DF))
        return special.logsumexp(parts, axis=0).reshape(u.shape[:-1])

    def jump(self) -> float:
        """Everyone proposes from the frozen laws; the share of those who went."""
        n, d = REPLICATES * WALKERS, self.u.shape[2]
        which = self.rng.choice(len(self.proposals), n, p=[law[0] for law in self.proposals])
        z = self.rng.standard_normal((n, d)) / np.sqrt(self.rng.chisquare(DF, (n, 1)) / DF)
        centres, factors = np.array([p[1] for p in self.proposals]), np.array([p[2] for p in self.proposals])
        proposed = (centres[which] + np.einsum("nij,nj->ni", factors[which], z)).reshape(self.u.shape)
        change = self._log_proposal(self.u) - self._log_proposal(proposed)
        return self._metropolis(slice(None), proposed, change)

    def _metropolis(self, at: slice, proposed: np.ndarray, extra: np.ndarray | float = 0.0) -> float:
        prior, likelihood = self.densities(proposed)
        with np.errstate(invalid="ignore"):
            change = prior - self.prior[:, at] + self.beta * (likelihood - self.likelihood[:, at]) + extra
        taken = np.log(self.rng.random(change.shape)) < np.where(np.isnan(change), -np.inf, change)
        self.u[:, at] = np.where(taken[..., None], proposed, self.u[:, at])
        self.prior[:, at] = np.where(taken, prior, self.prior[:, at])
        self.likelihood[:, at] = np.where(taken, likelihood, self.likelihood[:, at])
        return float(taken.mean())


def compute(reference: Reference, seed: int = 0, thin: int = 4) -> dict[str, Any]:
    population = Population(reference, np.random.default_rng(seed))
    rungs = 0
    while population.beta < 1:
        population.temper()
        rungs += 1
        for _ in range(MOVES):
            population.sweep()
    kept, went = [], []
    for i in range(reference.burn + reference.sweeps):
        if i == reference.burn // 2:
            population.learn()
        if i % 2 and i >= reference.burn // 2:
            went.append(population.jump())
        else:
            population.sweep()
        if i >= reference.burn and i % thin == 0:
            theta, _ = reference.coordinates.backward(population.u.reshape(-1, population.u.shape[2]))
            kept.append(theta.reshape(population.u.shape))
    theta = np.stack(kept, axis=1).reshape(REPLICATES, -1, population.u.shape[2])
    some = np.ascontiguousarray(theta[:, -20:].reshape(-1, theta.shape[2]))
    change = np.abs(reference.likelihood(some, 1.0) - reference.likelihood(some, 2.0)).max()
    found: dict[str, Any] = {}
    for k, name in enumerate(reference.priors):
        x = theta[:, :, k]
        quantiles = np.quantile(x, QUANTILES)
        below = np.array([(x <= q).mean(axis=1) for q in quantiles])
        found[name] = {
            "mean": x.mean(),
            "mean_error": error(x.mean(axis=1)),
            "sd": x.std(),
            "sd_error": error(x.std(axis=1)),
            "quantiles": list(quantiles),
            "probability_errors": [error(row) for row in below],
        }
    # of the mean of a replicate, in units of the posterior's variance
    shrink = (theta.mean(axis=1).var(axis=0, ddof=1) / theta.reshape(-1, theta.shape[2]).var(axis=0)).max()
    return {
        "how": f"{REPLICATES} replicates of {WALKERS} walkers: {rungs} temperatures of {MOVES} sweeps, "
        f"{reference.burn} sweeps thrown away, {reference.sweeps} kept; {np.mean(went):.0%} of jumps accepted",
        "effective": REPLICATES / shrink,
        "solver_error": change,
        "parameters": found,
    }


def error(by_replicate: np.ndarray) -> float:
    return float(by_replicate.std(ddof=1) / math.sqrt(len(by_replicate)))


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


REFERENCE: dict[str, Callable[[], Reference]] = {
    made.__name__: made
    for made in (
        *(seir, seir_roots, pharmacokinetics, goodwin, goodwin_unanalysed, food_chain, robertson),
        *(influenza, lynx_hare, cholera),
    )
}


def main(names: list[str]) -> None:
    for name in names or list(REFERENCE):
        began = time.perf_counter()
        made = rounded(compute(REFERENCE[name]()))
        made["data"] = rounded([list(map(float, y)) for _, y in observed(name)])
        everything = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
        everything[name] = made
        REFERENCES.write_text(json.dumps(dict(sorted(everything.items())), indent=1) + "\n")
        worst = max(max(row["probability_errors"]) for row in made["parameters"].values())
        print(
            f"{name:20} {time.perf_counter() - began:6.0f} s, {made['effective']:.0f} effective draws, worst error "
            f"of a probability {worst:.4f}, of the log likelihood {made['solver_error']:.1g}: {made['how']}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
