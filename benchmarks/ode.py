"""Accuracy, speed and start-up of the ODE engine, measured side by side with SciPy in one run.

    uv run python benchmarks/ode.py

Speed is time per solve: ours for a batch of scattered lanes, SciPy's ``solve_ivp(LSODA)`` with a Python
right-hand side for some of the same lanes. Errors are against a reference at tolerance 1e-12, in units of each output's
largest value. Reported times are the best of several rounds that alternate between the two.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "ode"))

from ode_problems import CASCADE, HIRES, HIV, SI, Problem, relative_error

from equifinal.ode import simulate

ROUNDS = 5
BARS = {"SI": 60, "HIV": 60, "HIRES": 15, "cascade": None}


def seconds(function, repeats: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - began) / repeats


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
    bar = BARS[problem.name]
    print(
        f"{problem.name:8} {system.n_states:3d} {1e6 * solve:9.1f} {1e6 * scipy:11.0f} "
        f"{scipy / solve:8.0f}x {f'>= {bar}x' if bar else '':>8} {sensitivities / solve:8.1f}x "
        f"{ours:10.1e} {theirs:10.1e} {agreement:10.1e} {int(plain.steps.mean()):6d} {int((plain.status != 0).sum()):6d}"
    )


def overhead() -> None:
    lanes, times = SI.lanes(4, 0.1), SI.times
    many = np.repeat(lanes, 1000, axis=0)
    call = min(seconds(lambda: simulate(SI.system, lanes, times, threads=1), 2000) for _ in range(ROUNDS))
    solves = min(seconds(lambda: simulate(SI.system, many, times, threads=1)) / 1000 for _ in range(ROUNDS))
    print(f"simulate on 4 lanes of SI: {1e6 * call:.1f} us, of which overhead {1e6 * (call - solves):.1f} us")


START_UP = """
import os, sys, time
began = time.perf_counter()
sys.path.insert(0, {tests!r})
from equifinal.model import Model
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
p = [[{{"beta": 2.4e-5, "rho": 0.01, "delta": 0.5, "c": 3.0, "lambda": 10.0, "N": 1000.0}}[k] for k in hiv.parameters] + [50.0]]
result = simulate(system, p, range(1, 31))
solved = time.perf_counter()
simulate(system, p, range(1, 31), sensitivities=True)
sensitive = time.perf_counter()
compile_system(hiv, hiv.parameters)
again = time.perf_counter()
assert result.status[0] == 0
print(f"import {{imported - began:6.2f}} s, compile {{compiled - imported:7.3f}} s, first solve {{1e3*(solved - compiled):6.2f}} ms, "
      f"first sensitivities {{1e3*(sensitive - solved):6.2f}} ms, same model again {{1e3*(again - sensitive):6.2f}} ms, "
      f"Numba {{'imported' if 'numba' in sys.modules else 'not imported'}}, SymPy {{'imported' if 'sympy' in sys.modules else 'not imported'}}")
"""


def start_up() -> None:
    script = START_UP.format(tests=sys.path[0])
    with tempfile.TemporaryDirectory() as cache:
        for what in ("first run on a machine", "new process"):
            print(f"{what:23}", end=" ", flush=True)
            subprocess.run([sys.executable, "-c", script], env={"EQUIFINAL_CACHE_DIR": cache}, check=True)


if __name__ == "__main__":
    print(
        "           states us/solve  SciPy us/solve  ratio      bar  sensit.   error  SciPy error  ref. check  steps failed"
    )
    measure(SI, 4000, 40)
    measure(HIV, 2000, 20)
    measure(HIRES, 500, 10)
    measure(CASCADE, 200, 4)
    print("bars: error at most 1e-5, sensitivities at most 8x a plain solve on SI and HIV\n")
    overhead()
    start_up()
