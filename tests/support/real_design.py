"""What an experiment as it really is determines: sensitivities through all that happens, by SciPy, in numbers alone.

Nothing of the analysis or the engine is used but the model's own expressions, evaluated with dual numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from equifinal.language.expression import TIME, Expression, evaluate
from equifinal.language.lowering import without_conditions
from equifinal.language.model import Model

RTOL, ATOL = 1e-12, 1e-14
CLEAR = 1e3  # between singular values that count and those that do not
SMALL, NONE = 1e-8, 1e-10  # singular values of scaled columns that do not count, and that are nothing but error


class Dual:
    """A number with its gradient."""

    __slots__ = ("gradient", "value")

    def __init__(self, value: float, gradient: np.ndarray):
        self.value, self.gradient = value, gradient

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.gradient + other.gradient)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.value * other.gradient + other.value * self.gradient)

    def __truediv__(self, other: Dual) -> Dual:
        q = self.value / other.value
        return Dual(q, (self.gradient - q * other.gradient) / other.value)

    def __pow__(self, n: int) -> Dual:
        return Dual(self.value**n, n * self.value ** (n - 1) * self.gradient)


def _call(function: str, arguments: Sequence[Dual]) -> Dual:
    a = arguments[0]
    x, g = a.value, a.gradient
    match function:
        case "exp":
            return Dual(np.exp(x), np.exp(x) * g)
        case "log":
            return Dual(np.log(x), g / x)
        case "sin":
            return Dual(np.sin(x), np.cos(x) * g)
        case "cos":
            return Dual(np.cos(x), -np.sin(x) * g)
        case "tan":
            return Dual(np.tan(x), (1 + np.tan(x) ** 2) * g)
        case "tanh":
            return Dual(np.tanh(x), (1 - np.tanh(x) ** 2) * g)
        case "power":
            n = arguments[1]
            value = x**n.value
            slope = n.value * x ** (n.value - 1) * g
            return Dual(value, slope + (value * np.log(x) * n.gradient if n.gradient.any() else 0))
        case "abs":
            return Dual(abs(x), np.sign(x) * g)
        case "max":
            return max(arguments, key=lambda d: d.value)
        case "min":
            return min(arguments, key=lambda d: d.value)
        case "piecewise":
            for k in range(0, len(arguments) - 1, 2):
                if arguments[k + 1].value != 0:
                    return arguments[k]
            return arguments[-1]
    raise ValueError(function)


class Experiment:
    """A model at numbers."""

    def __init__(self, model: Model, values: Mapping[str, float], names: Sequence[str]):
        self.model, self.names = without_conditions(model), tuple(names)
        self.states = (*self.model.states, *self.model.levels)
        self.d, self.n = len(names), len(self.states)
        width = self.n + self.d
        self.fixed = {c: Dual(float(v), np.zeros(width)) for c, v in model.constants.items()}
        for i, name in enumerate(names):
            self.fixed[name] = Dual(values[name], np.eye(width)[self.n + i])

    def at(self, expressions: Sequence[Expression], t: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values, and gradients by states and parameters."""
        width = self.n + self.d
        table: dict[str, Any] = {**self.fixed, TIME: Dual(t, np.zeros(width))}
        table |= {s: Dual(x[i], np.eye(width)[i]) for i, s in enumerate(self.states)}

        def number(value: Fraction) -> Dual:
            return Dual(float(value), np.zeros(width))

        found = [evaluate(e, table, number, _call) for e in expressions]
        return np.array([f.value for f in found]), np.array([f.gradient for f in found]).reshape(-1, width)

    def rate(self, t: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, g = self.at(self.model.rhs, t, x)
        more = len(self.model.levels)
        return np.concatenate([f, np.zeros(more)]), np.concatenate([g, np.zeros((more, g.shape[1]))])

    def _moved(self, t: float, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        f, g = self.rate(t, x)
        return np.concatenate([f, (g[:, : self.n] @ s + g[:, self.n :]).ravel()])

    def sensitivities(self, end: float, count: int) -> np.ndarray:
        """Sensitivities of all outputs at times up to the end, a row each."""
        model = self.model
        zero = np.zeros(self.n)
        start, start_slope = self.at([model.start_time], 0.0, zero)
        t, dt = float(start[0]), start_slope[0, self.n :]
        begin = model.start if model.before is None else model.before.start
        x, g = self.at([*begin, *model.first_levels], t, zero)
        s = g[:, self.n :]
        if model.before is not None:
            x, s = self._rest(x, s)
        rows = [self._seen(t, x, s)] if model.onset is not None else []
        jumps = []
        for k, event in enumerate(model.jumps):
            time, slope = self.at([event.time], 0.0, zero)
            late = float(time[0]) > t
            jumps.append((max(float(time[0]), t), k, event, slope[0, self.n :] if late else dt))
        rows += [self._seen(t, x, s)]
        jumps.sort(key=lambda j: (j[0], j[1]))
        s = s - np.outer(self.rate(t, x)[0], dt)
        times = np.linspace(t, end, count)
        for at, _, event, slope in [*jumps, (end, 0, None, None)]:
            at = min(at, end)
            if at > t:
                inside = times[(times > t) & (times <= at)]
                grid = np.unique(np.concatenate([inside, [at]]))
                solved = solve_ivp(
                    lambda u, z: self._moved(u, z[: self.n], z[self.n :].reshape(self.n, self.d)),
                    (t, at),
                    np.concatenate([x, s.ravel()]),
                    method="DOP853",
                    t_eval=grid,
                    rtol=RTOL,
                    atol=ATOL,
                )
                if solved.status != 0:
                    raise FloatingPointError(solved.message)
                for u, z in zip(solved.t, solved.y.T, strict=True):
                    rows.append(self._seen(u, z[: self.n], z[self.n :].reshape(self.n, self.d)))
                x, s, t = z[: self.n], z[self.n :].reshape(self.n, self.d), at
            if event is not None and at < end:
                earlier = self.at(self.model.observed, t, x)[0]
                x, s = self._jumped(event, slope, t, x, s)
                rows.append(self._seen(t, x, s))
                if np.abs(self.at(self.model.observed, t, x)[0] - earlier).max() > 1e-9:
                    rows.append(slope[None, :])  # an output that jumps shows when
        return np.concatenate(rows)

    def _jumped(
        self, event: Any, slope: np.ndarray, t: float, x: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        f = self.rate(t, x)[0]
        values, g = self.at(list(event.sets.values()), t, x)
        new, s = x.copy(), s + np.outer(f, slope)
        after = s.copy()
        for i, name in enumerate(event.sets):
            k = self.states.index(name)
            new[k] = values[i]
            after[k] = g[i, : self.n] @ s + g[i, self.n :]
        return new, after - np.outer(self.rate(t, new)[0], slope)

    def _seen(self, t: float, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        _, g = self.at(self.model.observed, t, x)
        return g[:, : self.n] @ s + g[:, self.n :]

    def _rest(self, x: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = self.model.before
        assert before is not None
        own = Experiment(before, {n: d.value for n, d in self.fixed.items() if n in self.names}, self.names)
        n = len(before.states)
        levels_x, levels_s = x[n:], s[n:]
        solved = solve_ivp(
            lambda u, z: own.at(before.rhs, 0.0, z)[0], (0, 1e4), x[:n], method="LSODA", rtol=1e-10, atol=1e-12
        )
        _, g = own.at(before.rhs, 0.0, solved.y[:, -1])
        jacobian = g[:, :n]
        u, w, _ = np.linalg.svd(jacobian)
        kept = u[:, w < 1e-9 * w[0]].T  # totals that never change
        rest = fsolve(
            lambda z: np.concatenate([(u[:, w >= 1e-9 * w[0]].T @ own.at(before.rhs, 0.0, z)[0]), kept @ (z - x[:n])]),
            solved.y[:, -1],
            xtol=1e-14,
        )
        _, g = own.at(before.rhs, 0.0, rest)
        matrix = np.concatenate([g[:, :n], kept])
        right = np.concatenate([-g[:, n:], kept @ s[:n]])
        slope = np.linalg.lstsq(matrix, right, rcond=None)[0]
        return np.concatenate([rest, levels_x]), np.concatenate([slope, levels_s])


@dataclass(frozen=True)
class Numbers:
    """Rank of a design, and which parameters it determines; `clear` if the singular values leave no doubt."""

    rank: int
    identifiable: frozenset[str]
    clear: bool


def numeric_rank(
    models: Sequence[Model],
    draw: Callable[[np.random.Generator], dict[str, float]],
    end: float,
    *,
    seed: int = 0,
    points: int = 2,
    count: int = 60,
) -> Numbers:
    """The largest rank over random parameters, and what is determined there."""
    rng = np.random.default_rng(seed)
    names = tuple(dict.fromkeys(n for m in models for n in m.parameters))
    best = Numbers(-1, frozenset(), False)
    for _ in range(points):
        values = draw(rng)
        rows = np.concatenate([Experiment(m, values, names).sensitivities(end, count) for m in models])
        rows = rows * np.array([values[n] for n in names])
        size = np.linalg.norm(rows, axis=0)
        scaled = rows / np.where(size > 1e-10 * size.max(initial=0), size, np.inf)
        _, w, v = np.linalg.svd(scaled, full_matrices=True)
        w = np.concatenate([w, np.zeros(len(names) - len(w))]) / max(w[0], 1e-300)
        rank = int((w > SMALL).sum())
        clear = rank in (0, len(names)) or (w[rank] < NONE and w[rank - 1] / max(w[rank], 1e-16) > CLEAR)
        moved = np.linalg.norm(v[rank:], axis=0) > 1e-4
        found = Numbers(rank, frozenset(n for n, m in zip(names, moved, strict=True) if not m), bool(clear))
        if (found.rank, found.clear) > (best.rank, best.clear):
            best = found
    return best
