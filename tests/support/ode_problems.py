"""Models that tests and benchmark share, with usual parameters, times and a Python right-hand side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp

from equifinal.language.expression import evaluate
from equifinal.language.model import Model
from equifinal.ode import System, compile_system


@dataclass(frozen=True)
class Problem:
    """A model at given parameters; ``rhs(t, x, *p)`` is written by hand, independently of the model text."""

    name: str
    model: Model
    parameters: dict[str, float]
    times: np.ndarray
    rhs: Callable[..., list[float]]

    @cached_property
    def system(self) -> System:
        return compile_system(self.model, tuple(self.parameters))

    @property
    def p(self) -> np.ndarray:
        """One lane: parameters, then constants."""
        return np.array([[*self.parameters.values(), *map(float, self.model.constants.values())]])

    def lanes(self, count: int, spread: float, seed: int = 0) -> np.ndarray:
        """Lanes with parameters integrated about the usual ones by a relative spread."""
        scatter = np.random.default_rng(seed).normal(size=(count, len(self.parameters)))
        lanes = np.repeat(self.p, count, axis=0)
        lanes[:, : len(self.parameters)] *= np.exp(spread * scatter)
        return lanes

    def start(self, p: np.ndarray) -> np.ndarray:
        return np.array(self._evaluate(self.model.start, p, {}), dtype=float)

    def outputs(self, p: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Outputs (T, n_outputs) from states (T, n_states)."""
        columns = dict(zip(self.model.states, states.T, strict=True))
        found = self._evaluate(self.model.observed, p, columns)
        return np.stack([np.broadcast_to(y, len(states)) for y in found], axis=1)

    def _evaluate(self, expressions, p, states):
        values = dict(zip(self.system.arguments, p, strict=True)) | states
        return [evaluate(expression, values, float) for expression in expressions]

    def scipy(self, p: np.ndarray, method: str = "LSODA", rtol: float = 1e-6, atol: float = 1e-9) -> np.ndarray:
        """States at the times by SciPy, (T, n_states)."""
        span = (0.0, self.times[-1])
        found = solve_ivp(
            self.rhs, span, self.start(p), method, self.times, args=tuple(p.tolist()), rtol=rtol, atol=atol
        )
        return found.y.T


def relative_error(found: np.ndarray, reference: np.ndarray) -> float:
    """Largest error of any output in units of that output's largest value; arrays (T, n_outputs)."""
    return float((np.abs(found - reference) / np.abs(reference).max(axis=0)).max())


def _si(t, x, beta, rho, gamma, i0, n):
    new = beta * x[0] * x[1] - gamma * x[1]
    return [-new, new]


SI = Problem(
    "SI",
    Model.parse(
        """
        S' = -beta*S*I + gamma*I
        I' =  beta*S*I - gamma*I
        cases = rho*I
        S(0) = N - I0
        I(0) = I0
        """,
        ["cases"],
        constants={"N": 10000},
    ),
    {"beta": 2.5e-4, "rho": 0.25, "gamma": 0.6, "I0": 40.0},
    np.arange(1.0, 11.0),
    _si,
)


def _hiv(t, x, beta, rho, delta, c, supply, burst, v0):
    infection = beta * x[0] * x[2]
    return [supply - rho * x[0] - infection, infection - delta * x[1], burst * delta * x[1] - c * x[2]]


HIV = Problem(
    "HIV",
    Model.parse(
        """
        T' = lambda - rho*T - beta*T*V
        W' = beta*T*V - delta*W
        V' = N*delta*W - c*V
        T(0) = lambda/rho
        W(0) = 0
        V(0) = V0
        """,
        ["V"],
        constants={"V0": 50},
    ),
    {"beta": 2.4e-5, "rho": 0.01, "delta": 0.5, "c": 3.0, "lambda": 10.0, "N": 1000.0},
    np.arange(1.0, 31.0),
    _hiv,
)


def _hires(t, y, k1, k2, k3, k4, k5, k6, k7, source, bind, y1, y8):
    bound = bind * y[5] * y[7]
    return [
        -k1 * y[0] + k2 * y[1] + k3 * y[2] + source,
        k1 * y[0] - (k2 + k3) * y[1],
        -(k3 + k1) * y[2] + k2 * y[3] + k5 * y[4],
        k3 * y[1] + k1 * y[2] - (k2 + k6) * y[3],
        -(k5 + k1) * y[4] + k2 * y[5] + k2 * y[6],
        -bound + k6 * y[3] + k1 * y[4] - k2 * y[5] + k6 * y[6],
        bound - k7 * y[6],
        -bound + k7 * y[6],
    ]


HIRES = Problem(
    "HIRES",
    Model.parse(
        """
        bound = bind*y6*y8
        y1' = -k1*y1 + k2*y2 + k3*y3 + source
        y2' = k1*y1 - (k2 + k3)*y2
        y3' = -(k3 + k1)*y3 + k2*y4 + k5*y5
        y4' = k3*y2 + k1*y3 - (k2 + k6)*y4
        y5' = -(k5 + k1)*y5 + k2*y6 + k2*y7
        y6' = -bound + k6*y4 + k1*y5 - k2*y6 + k6*y7
        y7' = bound - k7*y7
        y8' = -bound + k7*y7
        y1(0) = start1
        y2(0) = 0
        y3(0) = 0
        y4(0) = 0
        y5(0) = 0
        y6(0) = 0
        y7(0) = 0
        y8(0) = start8
        """,
        [f"y{i}" for i in range(1, 9)],
    ),
    {
        **{"k1": 1.71, "k2": 0.43, "k3": 8.32, "k4": 1.0, "k5": 0.035, "k6": 0.69, "k7": 1.81},
        **{"source": 0.0007, "bind": 280.0, "start1": 1.0, "start8": 0.0057},
    },
    np.linspace(0.0, 321.8122, 31)[1:],
    _hires,
)


def _robertson(t, y, k1, k2, k3):
    slow, fast, middle = k1 * y[0], k2 * y[1] * y[1], k3 * y[1] * y[2]
    return [-slow + middle, slow - middle - fast, fast]


ROBERTSON = Problem(
    "Robertson",
    Model.parse(
        """
        a' = -k1*a + k3*b*c
        b' = k1*a - k3*b*c - k2*b^2
        c' = k2*b^2
        a(0) = 1
        b(0) = 0
        c(0) = 0
        """,
        ["a", "b", "c"],
    ),
    {"k1": 0.04, "k2": 3e7, "k3": 1e4},
    np.array([0.4, 4.0, 40.0, 4e2, 4e3, 4e4]),
    _robertson,
)


def _van_der_pol(t, x, mu):
    return [x[1], mu * (1 - x[0] * x[0]) * x[1] - x[0]]


VAN_DER_POL = Problem(
    "van der Pol",
    Model.parse("x' = v\nv' = mu*(1 - x^2)*v - x\nx(0) = 2\nv(0) = 0", ["x"]),
    {"mu": 1e3},
    np.linspace(0.0, 2000.0, 21),
    _van_der_pol,
)

_LENGTH = 24
_SPEEDS = [10.0 ** (5 * ((7 * i) % _LENGTH) / _LENGTH) for i in range(_LENGTH)]  # 1 to 1e5, in no order


def _cascade(t, x, signal, on, off, km):
    found, above = [], signal
    for i in range(_LENGTH):
        found.append(_SPEEDS[i] * (on * above * (1 - x[i]) - off * x[i] / (km + x[i])))
        above = x[i]
    return found


CASCADE = Problem(
    "cascade",
    Model.parse(
        "\n".join(
            f"x{i}' = {speed!r}*(on*{above}*(1 - x{i}) - off*x{i}/(km + x{i}))\nx{i}(0) = 0"
            for i, (speed, above) in enumerate(zip(_SPEEDS, ["signal", *(f"x{i}" for i in range(23))], strict=True))
        ),
        ["x0", "x7", "x15", "x23"],
    ),
    {"signal": 1.0, "on": 1.0, "off": 0.3, "km": 0.5},
    np.linspace(0.0, 40.0, 21)[1:],
    _cascade,
)
