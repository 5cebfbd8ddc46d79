"""What most fits compile, compiled by several processes: when the package is built, or else on a machine's first run.

A build ships bitcode (`equifinal.machine.kept`), from which a first run has machine code in a second or two. Where no
bitcode was shipped that fits, as after an edit or with another version of Numba, a first run compiles. What is not
there when it is needed is compiled where it is needed: nothing but time depends on these processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equifinal.machine import kept
from equifinal.ode.integrator import compiled_code, entry_name, integrator, is_compiled
from equifinal.ode.threads import processors

MOST_HELPERS = 3  # the integrator takes as long as everything else in three processes
LONGEST_WAIT = 120.0  # seconds; for the case that a process was suspended

# Functions in the order of their need, and their arguments: i and d are numbers, b is a truth value, a digit is an
# array of doubles with so many axes, I and J are arrays of integers with one and two, B is one of truth values with
# two, o are observations.
AHEAD = (
    ("problem.prior.from_theta", "22"),
    ("fibre.combinations._with_slopes", "22"),
    ("fibre.combinations._geometry", "221iii"),
    ("problem.prior.to_theta", "22"),
    ("problem.prior.log_prior", "22"),
    ("posterior.observed.sums", "3o"),
    ("posterior.observed.log_likelihood", "332o2"),
    ("fibre.combinations._all_values", "2iii"),
    ("samplers.coordinates.of_combinations._forward", "21I2"),
    ("posterior.observed.expand", "34I2o23"),
    ("samplers.coordinates.of_combinations._backward", "21I2"),
    ("fibre.support._positions", "II12dd"),
    ("fibre.weighted._direct", "iII232"),
    ("fibre.support._merged", "2B"),
    ("samplers.points.estimator._gathered", "33d"),
    ("samplers.proposals.mixture._draws", "1221231"),
    ("samplers.proposals.log_sums.choose", "21"),
    ("samplers.proposals.log_sums.log_sums", "2"),
    ("samplers.proposals.mixture._log_parts", "21231"),
    ("samplers.proposals.mixture._round", "211231"),
    ("samplers.collapsed.batches._chosen", "3J2"),
    ("samplers.collapsed.batches._metropolis", "23J2"),
    ("samplers.collapsed.batches._stood", "JB"),
    ("samplers.proposals.evidence.counted", "22d"),
    ("posterior.observed.log_likelihood_bound", "32o"),
    ("fibre.chart_loops.solve_points", "JIII2iiii222ib"),
    ("fibre.weighted._log_weights", "32I2"),
    ("samplers.marginal.noise_integral._points", "233Ii"),
    ("samplers.marginal.noise_integral._expanded", "2Ji"),
    ("samplers.marginal.noise_integral._newton", "231"),
    ("samplers.marginal.noise_integral._lengths", "32"),
    ("samplers.proposals.mixture._steps", "2112222231"),
    ("problem.families._nothing", "d"),
    ("problem.noise_located.log_or_none", "d"),
)
INTEGRATOR = "integrator"


def compile_ahead() -> None:
    """On a machine's first run, compile what was not shipped."""
    if not is_compiled() and sys.executable and not getattr(sys, "frozen", False):
        _compile_in_processes()


def ship(folder: Path) -> None:
    """Compile everything and put its bitcode into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        entry.unlink()
    _compile_in_processes(folder)


def _compile_in_processes(folder: Path | None = None) -> None:
    """Share the work with as many processes as there are cores."""
    with TemporaryDirectory() as claims:
        command = [sys.executable, "-m", __name__, claims, *([] if folder is None else [str(folder)])]
        helpers = []
        try:
            with suppress(OSError):  # then all is compiled here
                for _ in range(min(processors() - 1, MOST_HELPERS)):
                    nowhere = subprocess.DEVNULL
                    helpers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere))
            if claimed(claims, INTEGRATOR):
                _compile_integrator(folder)
            _compile_unclaimed(reversed(AHEAD), claims, folder)
            for helper in helpers:
                with suppress(subprocess.TimeoutExpired):
                    helper.wait(LONGEST_WAIT)
        finally:
            for helper in helpers:
                helper.kill()
                helper.communicate()


def _compile_integrator(folder: Path | None) -> None:
    if folder is None:
        integrator()
    else:
        kept.ship(entry_name(), compiled_code(), folder)


def _compile_unclaimed(functions: Iterable[tuple[str, str]], claims: str, folder: Path | None) -> None:
    for function, letters in functions:
        if claimed(claims, function):
            with suppress(Exception):  # it will be compiled, or fail, where it is needed
                compile_function(function, letters, folder)


def claimed(claims: str, task: str) -> bool:
    """Whether something is this process's to compile: the first to ask gets it."""
    try:
        os.close(os.open(os.path.join(claims, task), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def compile_function(function: str, letters: str, folder: Path | None = None) -> None:
    """Compile a function for arguments as in `AHEAD`, and ship it in a folder if there is one."""
    module, name = function.rsplit(".", 1)
    dispatcher = getattr(import_module(f"equifinal.{module}"), name).dispatcher
    arguments = types_of(letters)
    dispatcher.compile(arguments)
    if folder is not None:
        dispatcher._cache.ship(arguments, dispatcher.overloads[arguments], folder)


def types_of(letters: str) -> tuple[Any, ...]:
    """Numba's types for letters as in `AHEAD`."""
    from numba import from_dtype, types

    from equifinal.posterior.observed import OBSERVATION

    double, integer = types.float64, types.int64
    kinds = {str(axes): types.Array(double, axes, "C") for axes in range(1, 5)}
    kinds |= {
        "i": integer,
        "d": double,
        "b": types.boolean,
        "I": types.Array(integer, 1, "C"),
        "J": types.Array(integer, 2, "C"),
    }
    kinds |= {"B": types.Array(types.boolean, 2, "C"), "o": types.Array(from_dtype(OBSERVATION), 1, "C")}
    return tuple(kinds[letter] for letter in letters)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until nobody holds the other end
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _compile_unclaimed(AHEAD, sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
