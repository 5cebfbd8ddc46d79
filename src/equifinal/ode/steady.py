"""Steady states: the one that a lane comes to, exactly, and its derivatives.

Integration over ten times as long each time tells where a lane goes. Once it is so near a steady state that Newton's
method goes there in small steps, and that state is stable, Newton's method has the last word:

    f(x, p) = 0,    C x = C x0,

where rows of C are conserved totals (`equifinal.ode.conserved`). Each of these is solved for one state, x_F = C x0 -
C_P x_P, which leaves as many equations as unknowns, with the matrix

    R = J_PP - J_PF C_P.

By the implicit function theorem the sensitivities obey R S_P = -(df/dp)_P - J_PF C S0, S_F = C S0 - C_P S_P.

Everything is done lane by lane (stacks of small matrices), so that a lane's result does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equifinal.errors import SolverError
from equifinal.language.expression import TIME, names
from equifinal.machine.rows import on_rows
from equifinal.ode.stepping import layout

if TYPE_CHECKING:
    from equifinal.ode.compile import System

STRETCHES = 10.0 ** np.arange(0, 13)  # over which lanes are followed, one after another
NEAR = 1e-3  # of each state's size: how far Newton's method may go from where a lane has come to
CLOSE = 1e-10  # of each state's size: its last step at most
ITERATIONS = 30
UNSTABLE = 1e-12  # of the largest eigenvalue: growth beyond rounding
ESCAPED = 50.0  # time scales of growth after which a lane would have left an unstable state
SINGULAR = 1e-14
NOTHING = 1e-10  # of the largest state: the size that a state without any is taken to have

# states (B, n) after a stretch of time for lanes at some places, their status and their steps
Advance = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray, np.ndarray]]


Indices = list[int] | np.ndarray


class Rest(NamedTuple):
    """Steady states (B, n), their sensitivities (B, n, m) if asked for, and steps spent.

    ``reached`` says whether there is one, ``defined`` whether slopes are defined at all where a lane begins.
    """

    states: np.ndarray
    sensitivities: np.ndarray | None
    reached: np.ndarray
    defined: np.ndarray
    steps: np.ndarray


class _Equations(NamedTuple):
    """f = 0 and C x = C x0 for rows of parameters."""

    system: System
    u: np.ndarray
    free: list[int]
    others: list[int]
    laws: np.ndarray  # C

    def slopes(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        return on_rows(int(self.system._plain.entries[layout.RHS]), x, p, self.u, x.shape[1])[:, self.others]

    def jacobians(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        pattern, n = self.system._dynamics.jacobian, x.shape[1]
        entries = on_rows(int(self.system._plain.entries[layout.JACOBIAN]), x, p, self.u, len(pattern.rows))
        return _dense(entries, pattern.rows, pattern.columns, n, n)

    def reduced(self, jacobians: np.ndarray) -> np.ndarray:
        """R, the derivative of the slopes by the states that are not given by totals."""
        rows = jacobians[:, self.others]
        return rows[:, :, self.others] - _product(rows[:, :, self.free], self.laws[None, :, self.others])

    def completed(self, some: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """All entries (B, n, k), from those that are not given by totals and the totals."""
        whole = np.empty((len(some), self.laws.shape[1], some.shape[2]))
        whole[:, self.others] = some
        whole[:, self.free] = totals - _product(self.laws[None, :, self.others], some)
        return whole


@np.errstate(all="ignore")  # what is not finite is found out
def rest(
    system: System,
    p: np.ndarray,
    x0: np.ndarray,
    s0: np.ndarray | None,
    u: np.ndarray,
    advance: Advance,
    max_steps: int,
) -> Rest:
    """Steady states that lanes come to from x0 under constant inputs; nothing is left to happen to them."""
    equations = _equations(system, u)
    found, reached = np.full_like(x0, np.nan), np.zeros(len(p), dtype=bool)
    steps, sizes, x, previous = np.zeros(len(p), dtype=np.int64), np.abs(x0), x0.copy(), x0.copy()
    totals = _product(equations.laws[None], x0[:, :, None])
    defined = np.isfinite(x0).all(axis=1) & np.isfinite(equations.slopes(x0, p)).all(axis=1)
    going, stretch = np.flatnonzero(defined), 0.0
    for ahead in (*STRETCHES, 0.0):
        before, sizes[going] = x[going], np.maximum(sizes[going], np.abs(x[going]))
        known = np.maximum(sizes[going], NOTHING * sizes[going].max(axis=1, initial=0.0)[:, None])
        at, there = _newton(equations, before, p[going], totals[going], known)
        at[(before == 0.0) & (np.abs(at) <= CLOSE * known)] = 0.0  # rounding errors of what is not there
        still = _near(at, previous[going], known)
        there &= _stays(equations, at, p[going], np.where(still, stretch, 0.0))
        found[going[there]], reached[going[there]] = at[there], True
        going, stretch = going[~there], ahead
        if going.size == 0 or ahead == 0.0:
            break
        previous[going] = x[going]
        x[going], status, taken = advance(going, x[going], ahead)
        steps[going] += taken
        going = going[(status == 0) & (steps[going] < max_steps)]
    sensitivities = None
    if s0 is not None:
        sensitivities = np.full_like(s0, np.nan)
        sensitivities[reached], solvable = _derivatives(equations, found[reached], p[reached], s0[reached])
        reached[np.flatnonzero(reached)[~solvable]] = False
    return Rest(found, sensitivities, reached, defined, steps)


def initial_values(system: System, p: np.ndarray, sensitivities: bool) -> tuple[np.ndarray, np.ndarray]:
    """Initial values (B, n) of states and levels as the model has them, and derivatives (B, n, m), m = 0 without."""
    table = (system._with_sensitivities if sensitivities else system._plain).entries
    n, width = int(table[layout.N_STATES]), int(table[layout.N_SENSITIVITIES])
    nothing = np.zeros((1, 1))
    if not sensitivities:
        return on_rows(int(table[layout.START]), nothing[:, :0], p, nothing[0], n), np.zeros((len(p), n, 0))
    rows, columns = _pattern(table, layout.NNZ_START)
    entries = on_rows(int(table[layout.START_TANGENT]), nothing[:, :0], p, nothing[0], n + len(rows))
    return entries[:, :n].copy(), _dense(entries[:, n:], rows, columns, n, width)


def _equations(system: System, u: np.ndarray) -> _Equations:
    if any(TIME in names(e) for e in system._integrated.rhs):
        raise SolverError("a model whose equations contain time has no steady state")
    free, laws = system._totals
    return _Equations(system, u, free, [i for i in range(laws.shape[1]) if i not in free], laws)


def _newton(
    equations: _Equations, x: np.ndarray, p: np.ndarray, totals: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where Newton's method leads from x, and whether it came to an end near by."""
    at, others = x.copy(), equations.others
    last = np.zeros((len(x), len(others)))
    defined, going = np.ones(len(x), dtype=bool), np.arange(len(x))  # each lane goes on until it has come to an end
    for _ in range(ITERATIONS):
        here, scale = at[going], np.maximum(sizes[going], np.abs(at[going]))
        slopes = equations.slopes(here, p[going])
        absent = (here[:, others] == 0.0) & (slopes == 0.0)  # and stays so, even if nothing would take it away
        reduced = equations.reduced(equations.jacobians(here, p[going]))
        reduced = np.where(absent[:, :, None] | absent[:, None, :], np.eye(len(others)), reduced)
        step, solvable = _solve(reduced, -slopes[:, :, None], scale[:, others])
        at[going] = equations.completed(here[:, others, None] + step, totals[going])[:, :, 0]
        last[going], defined[going] = step[:, :, 0], solvable
        small = (np.abs(at[going] - here) <= 1e-3 * CLOSE * scale).all(axis=1)
        going = going[solvable & ~small]
        if going.size == 0:
            break
    close = (np.abs(last) <= CLOSE * np.maximum(sizes, np.abs(at))[:, others]).all(axis=1)
    return at, defined & close & _near(at, x, sizes) & np.isfinite(at).all(axis=1)


def _near(x: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return (np.abs(x - y) <= NEAR * np.maximum(sizes, np.abs(x))).all(axis=1)


def _stays(equations: _Equations, x: np.ndarray, p: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Whether a lane that has been near x for a stretch of time stays: x is stable, or would have been left by now."""
    reduced = equations.reduced(equations.jacobians(x, p))
    if reduced.shape[1] == 0:
        return np.ones(len(x), dtype=bool)
    usable = np.isfinite(reduced).all(axis=(1, 2))
    eigenvalues = np.linalg.eigvals(np.where(usable[:, None, None], reduced, 0.0))
    growth, largest = eigenvalues.real.max(axis=1), np.abs(eigenvalues).max(axis=1)
    return usable & ((growth <= UNSTABLE * largest) | (growth * stretch > ESCAPED))


def _derivatives(equations: _Equations, x: np.ndarray, p: np.ndarray, s0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    system, others = equations.system, equations.others
    table, jacobian = system._with_sensitivities.entries, system._dynamics.jacobian
    rows, columns = _pattern(table, layout.NNZ_FORCING)
    n, count = x.shape[1], len(jacobian.rows)
    entries = on_rows(int(table[layout.TANGENT]), x, p, equations.u, n + count + len(rows))
    jacobians = _dense(entries[:, n : n + count], jacobian.rows, jacobian.columns, n, n)
    by_p = _dense(entries[:, n + count :], rows, columns, n, s0.shape[2])
    totals = _product(equations.laws[None], s0)
    right = -by_p[:, others] - _product(jacobians[:, others][:, :, equations.free], totals)
    scale = np.maximum(np.abs(x[:, others]), np.finfo(float).tiny)
    some, solvable = _solve(equations.reduced(jacobians), right, np.where(scale > 1e-100, scale, 1.0))
    found = equations.completed(some, totals)
    return found, solvable & np.isfinite(found).all(axis=(1, 2))


def _solve(matrices: np.ndarray, right: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solutions (B, n, k) for unknowns of given sizes, and whether they are defined; nothing is raised for a few."""
    if matrices.shape[1] == 0:
        return np.zeros_like(right), np.ones(len(right), dtype=bool)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = matrices * scale[:, None, :]
    largest = np.abs(scaled).max(axis=2, keepdims=True)
    usable = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(right).all(axis=(1, 2)) & (largest > 0).all(axis=(1, 2))
    largest = np.where(usable[:, None, None], largest, 1.0)
    scaled = np.where(usable[:, None, None], scaled / largest, np.eye(matrices.shape[1]))
    left, values, across = np.linalg.svd(scaled)
    usable &= values[:, -1] > SINGULAR * values[:, 0]
    inverse = 1.0 / np.where(usable[:, None], values, 1.0)
    right = np.where(usable[:, None, None], right / largest, 0.0)
    turned = inverse[:, :, None] * _product(left.transpose(0, 2, 1), right)
    found = _product(across.transpose(0, 2, 1), turned)
    return scale[:, :, None] * found, usable


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of stacks of matrices, each summed in the same order, which BLAS does not promise for stacks of one."""
    total = np.zeros((len(a) if len(b) == 1 else len(b), a.shape[1], b.shape[2]))
    for j in range(a.shape[2]):
        total += a[:, :, j, None] * b[:, None, j]
    return total


def _pattern(table: np.ndarray, which: int) -> tuple[np.ndarray, np.ndarray]:
    """States and parameters of the entries of a derivative by parameters."""
    counts = table[layout.NNZ_JACOBIAN : layout.NNZ_START + 1]
    patterns = table[layout.PATTERNS :]
    begin, parameters = 2 * table[layout.NNZ_JACOBIAN : which].sum(), patterns[2 * counts.sum() :]
    rows, columns = patterns[begin : begin + 2 * table[which]].reshape(2, -1)
    return rows, parameters[columns]


def _dense(entries: np.ndarray, rows: Indices, columns: Indices, n: int, m: int) -> np.ndarray:
    whole = np.zeros((len(entries), n, m))
    whole[:, rows, columns] = entries
    return whole
