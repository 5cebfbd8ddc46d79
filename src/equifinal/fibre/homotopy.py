r"""Charts without a closed form: all complex roots by continuation, counted.

At a random complex point (theta_I, c) the system xi = c has as many roots as at almost every other, and their
number is known from the algebra. One root is known by construction; the others are found by monodromy: carried
along a loop of parameters, roots are permuted. From there every other point is reached along a straight line of
parameters, which almost surely meets no point where roots coincide, because those have real codimension two.
Paths are followed by a fourth-order Runge-Kutta predictor and Newton's corrector, all paths of all points
together. At the end there must be as many distinct roots as there are: where that fails another way is taken,
and if it still fails the point is reported as incomplete.

Reference: A. J. Sommese and C. W. Wampler, The Numerical Solution of Systems of Polynomials, 2005, ch. 7;
T. Duff et al., Solving polynomial systems via homotopy continuation and monodromy, IMA J. Numer. Anal. 39 (2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equifinal.errors import IdentifiabilityError
from equifinal.fibre.chart import Array, Roots, RootStatus
from equifinal.fibre.chart_loops import ACCURACY, CERTAIN, inside, matches, refine
from equifinal.fibre.combinations import Combinations
from equifinal.machine.compiled import compiled

Complex = NDArray[np.complex128]

LOOPS, ROUNDS = 8, 20  # of monodromy: how many at once, and how often before it gives up
ATTEMPTS = 4  # other ways to a point at which roots were lost
DISTINCT = 1e-5  # relative rounding error of a root beyond which it is not told from others
REAL = 1e-7  # largest relative imaginary part of what may be a real root


class GeneralChart:
    """A chart whose roots are followed from a random complex point.

    Parameters
    ----------
    degree
        The number of complex roots.
    examples
        (n, d): typical points, for the scale of each coordinate.
    """

    combinations: Combinations
    bounds: Array
    degree: int
    free: NDArray[np.int64]
    dependent: NDArray[np.int64]
    scale: NDArray[Any]

    kind = "general"

    def __init__(self, combinations: Combinations, free: Sequence[str], degree: int, bounds: Array, examples: Array):
        if degree < 1:
            raise IdentifiabilityError(
                "counting the parameter vectors with the same output is too large a computation, so some might be "
                "missed; give simpler combinations by hand"
            )
        self.combinations, self.degree, self.bounds = combinations, degree, np.ascontiguousarray(bounds)
        names = combinations.names
        self.free = np.array([names.index(n) for n in free], np.int64)
        self.dependent = np.array([k for k in range(len(names)) if k not in self.free], np.int64)
        self.scale = np.median(np.abs(examples), axis=0)
        self._start = self._monodromy(np.random.default_rng(0))

    # --- the system ---

    def _system(self, theta: Complex) -> tuple[Complex, Complex]:
        return self.combinations.complex_system(theta)

    def _newton(self, theta: Complex, c: Complex, times: int) -> tuple[Complex, Array]:
        """Refined points and the size of the last correction, relative to the coordinates."""
        theta = theta.copy()
        size = np.full(theta.shape[:-1], np.inf)
        for _ in range(times):
            values, jacobian = self._system(theta)
            step = _solve(jacobian[..., self.dependent], c - values)
            theta[..., self.dependent] += step
            own = np.abs(theta[..., self.dependent]) + 1e-3 * self.scale[self.dependent]
            size = np.max(np.abs(step) / own, axis=-1, initial=0.0)
        return theta, np.where(np.isfinite(size), size, np.inf)

    # --- following roots ---

    def _follow(
        self, theta: Complex, free0: Complex, c0: Complex, free1: Complex, c1: Complex, tolerance: float = 1e-4
    ) -> Complex:
        """Carry roots (n, d) from parameters (free0, c0) to (free1, c1), one path a row; NaN where a path is lost."""
        n = len(theta)
        theta = theta.copy()
        t, h = np.zeros(n), np.full(n, 0.05)
        going = np.ones(n, bool)
        for _ in range(3000):
            at = np.flatnonzero(going)
            if not at.size:
                break
            step = np.minimum(h[at], 1.0 - t[at])
            dfree, dc = free1[at] - free0[at], c1[at] - c0[at]
            new = self._predict(theta[at], t[at], step, free0[at], dfree, dc)
            t1 = t[at] + step
            new[:, self.free] = free0[at] + t1[:, None] * dfree
            target = c0[at] + t1[:, None] * dc
            before = new[:, self.dependent]
            new, last = self._newton(new, target, 2)
            own = np.abs(new[:, self.dependent]) + 1e-3 * self.scale[self.dependent]
            moved = np.max(np.abs(new[:, self.dependent] - before) / own, axis=1, initial=0.0)
            good = (moved < tolerance) & (last < 1e-6)
            theta[at[good]] = new[good]
            t[at[good]] = t1[good]
            h[at] = np.where(good, np.where(moved < 0.1 * tolerance, 1.6, 1.0) * step, 0.4 * step)
            theta[at[~good & (step < 1e-9)]] = np.nan
            going[at] = (t[at] < 1.0) & np.isfinite(theta[at]).all(axis=1)
        theta[going] = np.nan
        return theta

    def _predict(self, theta: Complex, t: Array, h: Array, free0: Complex, dfree: Complex, dc: Complex) -> Complex:
        """Runge and Kutta on dtheta_D/dt = -(dxi/dtheta_D)^-1 (dxi/dtheta_I dtheta_I/dt - dc/dt)."""

        def slope(point: Complex, time: Array) -> Complex:
            point = point.copy()
            point[:, self.free] = free0 + time[:, None] * dfree
            _, jacobian = self._system(point)
            drift = dc - np.einsum("nqr,nr->nq", jacobian[..., self.free], dfree)
            result = np.zeros_like(point)
            result[:, self.dependent] = _solve(jacobian[..., self.dependent], drift)
            return result

        step = h[:, None]
        k1 = slope(theta, t)
        k2 = slope(theta + 0.5 * step * k1, t + 0.5 * h)
        k3 = slope(theta + 0.5 * step * k2, t + 0.5 * h)
        k4 = slope(theta + step * k3, t + h)
        return theta + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def _monodromy(self, rng: np.random.Generator) -> tuple[Complex, Complex, Complex]:
        """A random point of parameters and all roots over it: theta_I (r), c (q), roots (degree, d)."""

        def somewhere() -> Complex:
            d = self.combinations.dimension
            return self.scale * np.exp(0.5 * rng.normal(size=d) + 2j * np.pi * rng.random(d))

        origin = somewhere()
        free, c = origin[self.free], self._system(origin)[0]
        home = np.concatenate([free, c])
        roots = origin[None]
        for _ in range(ROUNDS):
            if len(roots) == self.degree:
                return free, c, roots
            # many loops at once cost little more than one
            carried, place = np.tile(roots, (LOOPS, 1)), np.tile(home, (len(roots) * LOOPS, 1))
            for corner in range(3):
                points = [somewhere() for _ in range(LOOPS)]
                ends = [home if corner == 2 else np.concatenate([p[self.free], self._system(p)[0]]) for p in points]
                goal = np.repeat(np.array(ends), len(roots), axis=0)
                r = len(free)
                carried = self._follow(carried, place[:, :r], place[:, r:], goal[:, :r], goal[:, r:])
                place = goal
            for root in carried[np.isfinite(carried).all(axis=1)]:
                if self._distance(root, roots).min() > DISTINCT:
                    roots = np.vstack([roots, root[None]])
        raise IdentifiabilityError(
            f"only {len(roots)} of {self.degree} parameter vectors over a complex point were found, so some "
            "might be missed; give simpler combinations by hand"
        )

    def _distance(self, root: Complex, others: Complex) -> Array:
        own = np.abs(root) + 1e-3 * self.scale
        return np.max(np.abs(others - root) / own, axis=-1)

    # --- the chart ---

    def complex_roots(self, free: Array, c: Array) -> Complex:
        """Every complex root, (n, degree, d); NaN where one was lost."""
        free = np.atleast_2d(free).astype(complex)
        n, k = len(free), self.degree
        c = np.broadcast_to(np.atleast_2d(c), (n, self.combinations.rank)).astype(complex)
        found = np.full((n, k, self.combinations.dimension), np.nan + 0j)
        todo = np.arange(n)
        for attempt in range(ATTEMPTS):
            # another way, by way of a random point, and more carefully, lest a path jump to another
            start = self._detour(self._start, np.random.default_rng(attempt)) if attempt else self._start
            m = len(todo)
            ends = self._follow(
                np.tile(start[2], (m, 1)),
                np.broadcast_to(start[0], (m * k, len(self.free))),
                np.broadcast_to(start[1], (m * k, c.shape[1])),
                np.repeat(free[todo], k, axis=0),
                np.repeat(c[todo], k, axis=0),
                tolerance=1e-3 * 0.2**attempt,
            )
            ends, noise = self._newton(ends, np.repeat(c[todo], k, axis=0), 3)
            for i, reached, rounding in zip(todo, ends.reshape(m, k, -1), noise.reshape(m, k), strict=True):
                self._collect(found[i], reached, rounding)
            todo = todo[np.isnan(found[todo]).any(axis=(1, 2))]
            if not todo.size:
                break
        return found

    def _collect(self, found: Complex, reached: Complex, rounding: Array) -> None:
        """Add the roots that are not there yet, in place; `rounding` is what Newton's method leaves undecided."""
        count = int(np.isfinite(found).all(axis=1).sum())
        fine = np.isfinite(reached).all(axis=1) & (rounding < DISTINCT)
        for root, noise in zip(reached[fine], rounding[fine], strict=True):
            apart = max(100 * noise, 1e-9)
            if count < self.degree and (count == 0 or self._distance(root, found[:count]).min() > apart):
                found[count] = root
                count += 1

    def _detour(
        self, start: tuple[Complex, Complex, Complex], rng: np.random.Generator
    ) -> tuple[Complex, Complex, Complex]:
        k = self.degree
        point = self.scale * np.exp(0.5 * rng.normal(size=len(self.scale)) + 2j * np.pi * rng.random(len(self.scale)))
        goal = point[self.free], self._system(point)[0]
        here, there = ([np.broadcast_to(a, (k, len(a))) for a in place] for place in (start[:2], goal))
        return (*goal, self._follow(start[2], here[0], here[1], there[0], there[1]))

    def roots(self, free: Array, c: Array, labels: Array | None = None) -> Roots:
        """All real roots in the support, as `TriangularChart.roots` gives them."""
        free = np.ascontiguousarray(np.atleast_2d(free), float)
        c = np.ascontiguousarray(np.atleast_2d(c), float)
        wanted = np.zeros((1, 0)) if labels is None else np.ascontiguousarray(np.atleast_2d(labels), float)
        within = np.all((self.bounds[self.free, 0] < free) & (free < self.bounds[self.free, 1]), axis=1)
        n, d = len(free), self.combinations.dimension
        candidates = np.full((n, self.degree, d), np.nan + 0j)
        if within.any():
            rows = np.broadcast_to(c, (n, c.shape[1]))[within]
            candidates[within] = self.complex_roots(free[within], rows)
        lost = within & ~np.isfinite(candidates).all(axis=(1, 2))
        own = np.abs(candidates) + 1e-3 * self.scale
        slant = np.max(np.abs(candidates.imag) / own, axis=2, initial=0.0)
        real = slant <= REAL
        points = candidates.real.copy()
        points[:, :, self.free] = free[:, None]
        solved = _polish(
            points,
            real,
            self.dependent,
            self.bounds,
            self.combinations.address,
            self.combinations.rank,
            len(self.combinations.labels),
            c,
            wanted,
        )
        found = Roots(*solved)
        found.status[((slant > REAL) & (slant <= DISTINCT)).any(axis=1)] = RootStatus.UNRESOLVED
        found.status[lost] = RootStatus.INCOMPLETE
        return found


def _solve(a: Complex, b: Complex) -> Complex:
    """Batched linear solves; NaN where a matrix is singular or not finite."""
    fine = np.isfinite(a).all(axis=(-2, -1)) & np.isfinite(b).all(axis=-1)
    result = np.full(b.shape, np.nan + 0j)
    if fine.any():
        size = np.abs(a[fine]).max(axis=-1, keepdims=True)  # rows differ by orders of magnitude
        size[size == 0] = 1.0
        try:
            result[fine] = np.linalg.solve(a[fine] / size, (b[fine] / size[..., 0])[..., None])[..., 0]
        except np.linalg.LinAlgError:
            for i in np.argwhere(fine):
                at = tuple(i)
                try:
                    result[at] = np.linalg.solve(a[at], b[at])
                except np.linalg.LinAlgError:
                    continue
    return result


@compiled
def _polish(candidates, real, dependent, bounds, address, q, labels, c, wanted):
    n, most, d = candidates.shape
    theta = np.full((n, most, d), np.nan)
    log_det = np.full((n, most), np.nan)
    count, status = np.zeros(n, np.int64), np.zeros(n, np.int64)
    point, trial, out = np.empty(d), np.empty(d), np.empty((q + labels) * (1 + d))
    matrix, pivots, delta, scale = np.empty((q, q)), np.empty(q, np.int64), np.empty(q), np.empty(q)
    for i in range(n):
        own = c[min(i, c.shape[0] - 1)]
        labelled = wanted[min(i, wanted.shape[0] - 1)]
        for j in range(most):
            if not real[i, j]:
                continue
            point[:] = candidates[i, j]
            error, log, unsure = refine(
                point, trial, own, address, q, labels, dependent, out, matrix, pivots, delta, scale
            )
            if not error <= ACCURACY or log == -np.inf or unsure > CERTAIN:
                status[i] = 1
            if (
                error <= ACCURACY
                and log > -np.inf
                and inside(point, bounds, dependent)
                and matches(out, labelled, q, labels, point, dependent, error, matrix, pivots, delta, scale)
            ):
                theta[i, count[i]] = point
                log_det[i, count[i]] = log
                count[i] += 1
    return theta, log_det, count, status
