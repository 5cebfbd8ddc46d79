"""Random stable models with states over many decades, and their solution by SciPy.

Models are networks of reactions with rates ``k x^a z^b u w^h/(K + w^h)``. The right-hand side and its derivatives are
written here once more, independently of the model's text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp

from equifinal.language.model import Model
from equifinal.ode import Inputs, System, Trajectories, compile_system

NOTHING = 1e-150  # what is smaller may underflow in products
FINE = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 181)])  # of the time span: where maxima are looked for


@dataclass(frozen=True)
class Reaction:
    rate: float
    powers: dict[int, int]
    change: dict[int, int]
    saturation: tuple[int, int, float] | None = None  # state, power, K
    driven: bool = False  # by the input

    def text(self, name: str) -> str:
        factors = [name, *(f"x{i}^{power}" for i, power in self.powers.items()), *["u"] * self.driven]
        if self.saturation:
            i, power, _ = self.saturation
            factors.append(f"x{i}^{power}/({name}_K + x{i}^{power})")
        return "*".join(factors)


@dataclass(frozen=True)
class Network:
    """Reactions among states that begin at ``start``, looked at at ``times``; an input that is 1 from ``on`` on."""

    family: str
    reactions: tuple[Reaction, ...]
    start: np.ndarray
    times: np.ndarray
    on: float
    sensitive: tuple[int, ...]  # reactions by whose rates derivatives are taken

    @property
    def driven(self) -> bool:
        return any(reaction.driven for reaction in self.reactions)

    @cached_property
    def text(self) -> str:
        lines = []
        for i, value in enumerate(self.start):
            terms = [
                f"{reaction.change[i]:+d}*{reaction.text(f'k{r}')}"
                for r, reaction in enumerate(self.reactions)
                if i in reaction.change
            ]
            lines += [f"x{i}' = {' '.join(terms) or '0*x0'}", f"x{i}(0) = {float(value)!r}"]
        return "\n".join(lines)

    @property
    def values(self) -> dict[str, float]:
        """All parameters and constants."""
        rates = {f"k{r}": reaction.rate for r, reaction in enumerate(self.reactions)}
        halves = {f"k{r}_K": reaction.saturation[2] for r, reaction in enumerate(self.reactions) if reaction.saturation}
        return rates | halves

    @cached_property
    def system(self) -> System:
        parameters = tuple(f"k{r}" for r in self.sensitive)
        constants = {name: value for name, value in self.values.items() if name not in parameters}
        states = [f"x{i}" for i in range(len(self.start))]
        model = Model.parse(self.text, states, constants=constants, inputs=["u"] if self.driven else [])
        return compile_system(model, parameters)

    @property
    def p(self) -> np.ndarray:
        return np.array([[self.values[name] for name in self.system.arguments]])

    @property
    def inputs(self) -> Inputs | None:
        return Inputs.step([0.0, self.on], [0.0, 1.0]) if self.driven else None

    # --- reference ----------------------------------------------------------------------------------------

    def field(self, on: bool) -> Callable:
        """z' for z = (x, dx/dk), as a function of t and z."""
        n, count = len(self.start), len(self.reactions)
        rates = np.array([0.0 if reaction.driven and not on else reaction.rate for reaction in self.reactions])
        powers, hill = np.zeros((count, n), dtype=np.int64), np.zeros((count, 3))
        changes = np.zeros((n, count))
        columns = np.full(count, -1)
        columns[list(self.sensitive)] = range(len(self.sensitive))
        for r, reaction in enumerate(self.reactions):
            for i, power in reaction.powers.items():
                powers[r, i] = power
            for i, amount in reaction.change.items():
                changes[i, r] = amount
            hill[r] = reaction.saturation or (0, 0, 1)
            if reaction.driven and not on:
                columns[r] = -1
        width = len(self.sensitive)
        return lambda _, z: _field(z, width, rates, powers, hill, changes, columns)

    def reference(self, method: str) -> tuple[np.ndarray, np.ndarray] | None:
        """(x, dx/dk) at the times, and the largest size of each entry on the way; None if SciPy gives up.

        Absolute tolerances are lowered until each is tiny beside the largest value of its own entry.
        """
        n, end = len(self.start), self.times[-1]
        start = np.concatenate([self.start, np.zeros(n * len(self.sensitive))])
        breaks = [0.0, self.on, end] if self.driven else [0.0, end]
        atol = np.full(len(start), 1e-12 * self.start.max() or 1e-12)
        for _ in range(40):
            z, largest, found = start, np.abs(start), np.full((len(self.times), len(start)), np.nan)
            for stretch, (lower, upper) in enumerate(pairwise(breaks)):
                inside = (self.times >= lower) & (self.times <= upper)
                moments = np.unique(np.concatenate([self.times[inside], lower + (upper - lower) * FINE, [upper]]))
                moments = moments[moments <= upper]
                solved = solve_ivp(
                    self.field(on=stretch > 0), (lower, upper), z, method, moments, rtol=1e-10, atol=atol
                )
                if not solved.success or not np.isfinite(solved.y).all():
                    return None
                largest = np.maximum(largest, np.abs(solved.y).max(axis=1))
                found[inside] = solved.y[:, np.searchsorted(moments, self.times[inside])].T
                z = solved.y[:, -1]
            enough = (largest == 0.0) | (atol <= 1e-10 * largest) | (atol <= NOTHING)
            if enough.all():
                return found, largest
            atol = np.where(enough, atol, np.maximum(1e-12 * largest, NOTHING))
        return None

    def errors(self, found: Trajectories, method: str) -> tuple[float, float]:
        """Largest error of any state, and of any sensitivity, in units of its own largest value.

        A sensitivity counts as no smaller than a millionth of the state divided by the parameter.
        """
        reference = self.reference(method)
        if reference is None:
            return np.inf, np.inf
        exact, largest = reference
        n, rates = len(self.start), np.array([self.reactions[r].rate for r in self.sensitive])
        solved = np.concatenate([found.states[0], found.state_sensitivities[0].reshape(len(self.times), -1)], axis=1)
        least = np.concatenate([np.zeros(n), (1e-6 * largest[:n, None] / rates).ravel()])
        errors = np.abs(solved - exact).max(axis=0) / np.maximum(np.maximum(largest, least), NOTHING)
        return float(errors[:n].max()), float(errors[n:].max())


@njit
def _field(z, width, rates, powers, hill, changes, columns):
    n, count = changes.shape
    out = np.zeros(n * (1 + width))
    slope = np.zeros(n)
    for r in range(count):
        saturated = int(hill[r, 0])
        top = z[saturated] ** hill[r, 1]
        bare = top / (hill[r, 2] + top) if hill[r, 1] > 0 else 1.0
        for i in range(n):
            bare *= z[i] ** powers[r, i]
        for i in range(n):
            slope[i] = 0.0
            if powers[r, i] > 0:
                slope[i] = powers[r, i] * z[i] ** (powers[r, i] - 1)
                for j in range(n):
                    if j != i:
                        slope[i] *= z[j] ** powers[r, j]
                if hill[r, 1] > 0:
                    slope[i] *= top / (hill[r, 2] + top)
        if hill[r, 1] > 0:
            part = hill[r, 2] * hill[r, 1] * z[saturated] ** (hill[r, 1] - 1) / (hill[r, 2] + top) ** 2
            for j in range(n):
                part *= z[j] ** powers[r, j]
            slope[saturated] += part
        for i in range(n):
            if changes[i, r] != 0.0:
                out[i] += changes[i, r] * rates[r] * bare
                for c in range(width):
                    change = bare if columns[r] == c else 0.0
                    for j in range(n):
                        change += rates[r] * slope[j] * z[n + j * width + c]
                    out[n + i * width + c] += changes[i, r] * change
    return out


def random_network(seed: int) -> Network:
    rng = np.random.default_rng(seed)
    family = str(rng.choice(list(FAMILIES)))
    reactions, start = FAMILIES[family](rng)
    n, end = len(start), 10 ** rng.uniform(-0.5, 2.5)
    on = 0.0
    if rng.random() < 0.3:  # something flows in from some time on
        on = end * rng.uniform(0.05, 0.6)
        reactions.append(Reaction(10 ** rng.uniform(-4, 2), {}, {int(rng.integers(n)): 1}, driven=True))
        if rng.random() < 0.5:
            start = np.zeros(n)
    scale = 10 ** rng.uniform(-6, 6) if rng.random() < 0.3 else 1.0
    sensitive = rng.choice(len(reactions), size=min(2, len(reactions)), replace=False)
    times = end * np.arange(1, 13) / 12 if rng.random() < 0.7 else end * np.geomspace(1e-3, 1, 12)
    return Network(family, tuple(reactions), start * scale, times, on, tuple(map(int, sorted(sensitive))))


def _decade(rng, low: float, high: float) -> float:
    return float(10 ** rng.uniform(low, high))


def _cascade(rng):
    """Each state makes the next, by a power of itself; all but the first start at zero."""
    n = int(rng.integers(3, 8))
    reactions = [Reaction(_decade(rng, -2, 1), {0: 1}, {0: -1})]
    for i in range(1, n):
        reactions.append(Reaction(_decade(rng, -4, 1), {i - 1: int(rng.choice(3, p=[0.5, 0.35, 0.15])) + 1}, {i: 1}))
        if rng.random() < 0.85:
            reactions.append(Reaction(_decade(rng, -2, 4), {i: 1}, {i: -1}))
    return reactions, np.eye(n)[0]


def _compartments(rng):
    n = int(rng.integers(2, 7))
    reactions = []
    for i in range(n):
        for j in rng.permutation(n)[:2]:
            if i != j:
                reactions.append(Reaction(_decade(rng, -4, 4), {i: 1}, {i: -1, int(j): 1}))
    reactions.append(Reaction(_decade(rng, -3, 1), {0: 1}, {0: -1}))
    start = np.zeros(n)
    start[int(rng.integers(n))] = 1.0
    return reactions, start


def _mass_action(rng):
    """Two and more become one: what there is does not grow."""
    n = int(rng.integers(3, 7))
    reactions = []
    for _ in range(int(rng.integers(n, 2 * n))):
        i, j, k = (int(a) for a in rng.integers(n, size=3))
        powers = {i: 1, j: 1} if i != j else {i: 2}
        change = {}
        for a, amount in ((i, -1), (j, -1), (k, 1)):
            change[a] = change.get(a, 0) + amount
        reactions.append(Reaction(_decade(rng, -3, 4), powers, {a: amount for a, amount in change.items() if amount}))
    for _ in range(n):
        i, j = (int(a) for a in rng.integers(n, size=2))
        reactions.append(Reaction(_decade(rng, -4, 2), {i: 1}, {i: -1, j: 1} if i != j else {i: -1}))
    start = np.where(rng.random(n) < 0.4, 10 ** rng.uniform(-3, 1, n), 0.0)
    start[0] = 1.0
    return reactions, start


def _saturating(rng):
    """Hill functions of the state before, linear losses."""
    n = int(rng.integers(2, 6))
    reactions = [Reaction(_decade(rng, -2, 1), {0: 1}, {0: -1})]
    for i in range(1, n):
        hill = (i - 1, int(rng.integers(1, 5)), _decade(rng, -8, 2))
        reactions.append(Reaction(_decade(rng, -6, 2), {}, {i: 1}, hill))
        reactions.append(Reaction(_decade(rng, -2, 3), {i: 1}, {i: -1}))
    return reactions, np.eye(n)[0]


def _spiral(rng):
    """A damped oscillation, and what follows its square and its product: states that cross zero."""
    damp, turn = _decade(rng, -2, 0.5), _decade(rng, -1, 1)
    reactions = [
        Reaction(damp, {0: 1}, {0: -1}),
        Reaction(damp, {1: 1}, {1: -1}),
        Reaction(turn, {1: 1}, {0: -1}),
        Reaction(turn, {0: 1}, {1: 1}),
        Reaction(_decade(rng, -6, 0), {0: 1, 1: 1}, {2: 1}),
        Reaction(_decade(rng, -2, 3), {2: 1}, {2: -1}),
        Reaction(_decade(rng, -6, 0), {2: 2}, {3: 1}),
        Reaction(_decade(rng, -2, 3), {3: 1}, {3: -1}),
        Reaction(1.0, {4: 2, 0: 1}, {4: -1}),  # a state that stays at zero
    ]
    return reactions, np.array([1.0, 0.0, 0.0, 0.0, 0.0])


FAMILIES = {
    "cascade": _cascade,
    "compartments": _compartments,
    "mass action": _mass_action,
    "saturating": _saturating,
    "spiral": _spiral,
}
