"""Accuracy, speed and start-up of the ODE engine, measured side by side with SciPy in one run.

    uv run python benchmarks/ode.py

Speed is time per solve: ours for a batch of integrated lanes, SciPy's ``solve_ivp(LSODA)`` with a Python
right-hand side for some of the same lanes. Errors are against a reference at tolerance 1e-12, in units of
each output's largest value. Reported times are the best of several rounds that alternate between the two.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from scipy.integrate import solve_ivp

from equifinal.language.model import Event, Model
from equifinal.language.parser import parse_expression
from equifinal.ode import compile_system, simulate
from tests.support.ode_problems import CASCADE, HIRES, HIV, SI, Problem, relative_error

ROUNDS = 5
N_DOSES = 10
BARS = {"SI": 60, "HIV": 60, "HIRES": 15, "cascade": None}
COLUMNS = (
    "model",
    "states",
    "us/solve",
    "SciPy",
    "ratio",
    "bar",
    "sens.",
    "error",
    "SciPy",
    "check",
    "steps",
    "failed",
)
WIDTHS = (8, 8, 10, 8, 8, 8, 8, 10, 10, 10, 7, 8)


def seconds(function, repeats: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - began) / repeats


def processor_seconds(function) -> float:
    """Of this process alone, whatever else the machine is doing."""
    began = time.process_time()
    function()
    return time.process_time() - began


def measure(problem: Problem, n_lanes: int, n_scipy: int) -> None:
    system, times = problem.system, problem.times
    lanes = problem.lanes(n_lanes, 0.1)
    plain = simulate(system, lanes, times)
    simulate(system, lanes, times, sensitivities=True)
    reference = simulate(system, lanes[:16], times, rtol=1e-12, atol=1e-15, max_steps=10**6, method="stiff")
    independent = problem.outputs(lanes[0], problem.scipy(lanes[0], "Radau", rtol=1e-11, atol=1e-14))
    agreement = relative_error(reference.outputs[0], independent)
    ours = max(relative_error(a, b) for a, b in zip(plain.outputs[:16], reference.outputs, strict=True))
    theirs = max(
        relative_error(problem.outputs(p, problem.scipy(p)), b)
        for p, b in zip(lanes[:4], reference.outputs, strict=False)
    )
    rounds = np.array(
        [
            (
                seconds(lambda: simulate(system, lanes, times)) / n_lanes,
                seconds(lambda: simulate(system, lanes, times, sensitivities=True)) / n_lanes,
                seconds(lambda: [problem.scipy(p) for p in lanes[:n_scipy]]) / n_scipy,
            )
            for _ in range(ROUNDS)
        ]
    )
    solve, sensitivities, scipy = rounds.min(axis=0)
    bar = f">= {BARS[problem.name]}x" if BARS[problem.name] else "-"
    cells = (
        *(
            problem.name,
            f"{system.n_states}",
            f"{1e6 * solve:.1f}",
            f"{1e6 * scipy:.0f}",
            f"{scipy / solve:.0f}x",
            bar,
        ),
        *(f"{sensitivities / solve:.1f}x", f"{ours:.1e}", f"{theirs:.1e}", f"{agreement:.1e}"),
        *(f"{plain.steps.mean():.0f}", f"{(plain.status != 0).sum()}"),
    )
    print(row(cells))


ORAL = Model.parse(
    "depot' = -ka*depot\ncentral' = ka*depot - k*central\ndepot(0) = 0\ncentral(0) = 0\nc = central/V",
    ["c"],
    parameters=["ka", "k", "V", "lag"],
).vary(
    events=[
        Event(parse_expression(f"{12 * i} + lag"), {"depot": parse_expression("depot + 100")}) for i in range(N_DOSES)
    ]
)
ORAL_AT, ORAL_TIMES = np.array([1.2, 0.15, 10.0, 0.7]), np.arange(2.0, 12.0 * N_DOSES + 1, 4.0)


def bateman(p: np.ndarray) -> np.ndarray:
    ka, k, V, lag = p
    since = np.maximum(ORAL_TIMES[:, None] - 12.0 * np.arange(N_DOSES) - lag, 0)
    return (100 * ka / (ka - k) / V * (np.exp(-k * since) - np.exp(-ka * since))).sum(axis=1)


def restarted(p: np.ndarray) -> np.ndarray:
    """The same by SciPy, which starts anew at each dose."""
    ka, k, V, lag = p.tolist()
    x, found = np.zeros(2), []
    borders = [0.0, *(12.0 * i + lag for i in range(N_DOSES)), ORAL_TIMES[-1] + 1e-9]
    for begin, end in pairwise(borders):
        here = ORAL_TIMES[(begin <= ORAL_TIMES) & (end > ORAL_TIMES)]
        part = solve_ivp(
            lambda t, x: [-ka * x[0], ka * x[0] - k * x[1]],
            (begin, end),
            x,
            "LSODA",
            np.append(here, end),
            rtol=1e-6,
            atol=1e-9,
        )
        found.extend(part.y[1, :-1] / V)
        x = part.y[:, -1] + [100.0, 0.0]
    return np.array(found)


def doses() -> None:
    """One compartment with ten oral doses after an unknown lag: processor time and errors of us and of SciPy."""
    system = compile_system(ORAL, ORAL.parameters)
    lanes = ORAL_AT * np.exp(0.1 * np.random.default_rng(0).normal(size=(20, 4)))
    exact = np.array([bateman(p) for p in lanes])

    def solved(**options):
        return simulate(system, lanes, ORAL_TIMES, threads=1, **options)

    def error(found: np.ndarray) -> float:
        return float((np.abs(found - exact).max(axis=1) / exact.max(axis=1)).max())

    ways = {
        "SciPy with restarts": lambda: restarted(lanes[0]),
        "rtol 1e-6": lambda: solved(),
        "rtol 1e-6 with sensitivities": lambda: solved(sensitivities=True),
        "rtol 1e-5": lambda: solved(rtol=1e-5),
    }
    errors = [error(np.array([restarted(p) for p in lanes]))]
    errors += [error(way().outputs[:, :, 0]) for way in list(ways.values())[1:]]
    times = np.min([[processor_seconds(way) for way in ways.values()] for _ in range(100)], axis=0)
    times[1:] /= len(lanes)
    print(f"one compartment, {N_DOSES} oral doses with lag; processor time, one thread (bar: 100x)")
    for name, seconds_each, wrong in zip(ways, times, errors, strict=True):
        print(f"{name:>30} {1e6 * seconds_each:8.1f} us {times[0] / seconds_each:6.0f}x   error {wrong:.1e}")
    print()


def row(cells) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def overhead() -> None:
    lanes, times = SI.lanes(4, 0.1), SI.times
    many = np.repeat(lanes, 1000, axis=0)
    call, solves = np.min(
        [
            (
                seconds(lambda: simulate(SI.system, lanes, times, threads=1), 200),
                seconds(lambda: simulate(SI.system, many, times, threads=1)) / 1000,
            )
            for _ in range(30)
        ],
        axis=0,
    )
    print(f"simulate on 4 lanes of SI: {1e6 * call:.1f} us, of which overhead {1e6 * (call - solves):.1f} us")


START_UP = """
import sys, time
began = time.perf_counter()
from equifinal.language.model import Model
from equifinal.ode import compile_system, simulate
imported = time.perf_counter()
hiv = Model.parse('''
T' = lambda - rho*T - beta*T*V
W' = beta*T*V - delta*W
V' = N*delta*W - c*V
T(0) = lambda/rho
W(0) = 0
V(0) = V0
''', ["V"], constants={{"V0": 50}})
system = compile_system(hiv, hiv.parameters)
compiled = time.perf_counter()
usual = {{"beta": 2.4e-5, "rho": 0.01, "delta": 0.5, "c": 3.0, "lambda": 10.0, "N": 1000.0}}
p = [[usual[name] for name in hiv.parameters] + [50.0]]
result = simulate(system, p, range(1, 31))
solved = time.perf_counter()
simulate(system, p, range(1, 31), sensitivities=True)
sensitive = time.perf_counter()
compile_system(hiv, hiv.parameters)
again = time.perf_counter()
assert result.status[0] == 0
print(f"import {{imported - began:.2f}} s, compile {{compiled - imported:.3f}} s, "
      f"first solve {{1e3 * (solved - compiled):.2f}} ms, "
      f"first sensitivities {{1e3 * (sensitive - solved):.2f}} ms, "
      f"same model again {{1e3 * (again - sensitive):.2f}} ms; imported:",
      ", ".join(name for name in ("numba", "sympy") if name in sys.modules) or "neither Numba nor SymPy")
"""


def start_up() -> None:
    script = START_UP.format()
    with tempfile.TemporaryDirectory() as cache:
        for what in ("first run on a machine", "new process"):
            print(f"{what:23}", end=" ", flush=True)
            subprocess.run([sys.executable, "-c", script], env={"EQUIFINAL_CACHE_DIR": cache}, check=True)


if __name__ == "__main__":
    print(row(COLUMNS))
    measure(SI, 4000, 40)
    measure(HIV, 2000, 20)
    measure(HIRES, 500, 10)
    measure(CASCADE, 200, 4)
    print("times in microseconds; check: how far the reference is from SciPy's Radau at 1e-11")
    print("bars: error at most 1e-5, sensitivities at most 8x a plain solve on SI and HIV\n")
    doses()
    overhead()
    start_up()
