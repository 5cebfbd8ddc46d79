"""What every fit compiles, compiled by several processes on a machine's first run.

They put machine code into the same cache on disk, where a file is replaced as a whole or not at all. What is not there
when it is needed is compiled where it is needed: nothing but time depends on these processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from equifinal.ode.integrator import integrator, is_compiled
from equifinal.ode.simulate import processors

MOST_HELPERS = 3  # the integrator takes as long as everything else in three processes
LONGEST_WAIT = 120.0  # seconds; for the case that a process was suspended

# Functions in the order of their need, and their arguments: i and d are numbers, a digit is an array of doubles with so
# many axes, I and J are arrays of integers with one and two, B is one of truth values with two, o are observations.
AHEAD = (
    ("problem.prior.from_theta", "22"),
    ("fibre.combinations._with_slopes", "22"),
    ("fibre.combinations._geometry", "221iii"),
    ("problem.prior.to_theta", "22"),
    ("problem.prior.log_prior", "22"),
    ("posterior.observed.log_likelihood", "32o2"),
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
    ("samplers.proposals.mixture._sums", "2121221"),
    ("samplers.collapsed.batches._chosen", "3J2"),
    ("samplers.collapsed.batches._metropolis", "23J2"),
    ("samplers.collapsed.batches._added", "12"),
    ("samplers.collapsed.batches._stood", "JB"),
    ("posterior.observed.log_likelihood_bound", "32o"),
)


def compile_ahead() -> None:
    """On a machine's first run, compile the integrator and the functions, in as many processes as there are cores."""
    if is_compiled() or not sys.executable or getattr(sys, "frozen", False):
        return
    with TemporaryDirectory() as claims:
        helpers = []
        try:
            with suppress(OSError):  # then all is compiled here
                for _ in range(min(processors() - 1, MOST_HELPERS)):
                    helpers.append(_helper(claims))
            integrator()
            for function, letters in reversed(AHEAD):
                if claimed(claims, function):
                    compile_function(function, letters)
            for helper in helpers:
                with suppress(subprocess.TimeoutExpired):
                    helper.wait(LONGEST_WAIT)
        finally:
            for helper in helpers:
                helper.kill()
                helper.communicate()


def _helper(claims: str) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", __name__, claims], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere
    )


def claimed(claims: str, function: str) -> bool:
    """Whether a function is this process's to compile: the first to ask gets it."""
    try:
        os.close(os.open(os.path.join(claims, function), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def compile_function(function: str, letters: str) -> None:
    """Compile a function for arguments as in `AHEAD` and put it into the cache."""
    module, name = function.rsplit(".", 1)
    with suppress(Exception):  # it will be compiled, or fail, where it is needed
        getattr(import_module(f"equifinal.{module}"), name).dispatcher.compile(types_of(letters))


def types_of(letters: str) -> tuple[Any, ...]:
    """Numba's types for letters as in `AHEAD`."""
    from numba import from_dtype, types

    from equifinal.posterior.observed import OBSERVATION

    double, integer = types.float64, types.int64
    kinds = {str(axes): types.Array(double, axes, "C") for axes in range(1, 5)}
    kinds |= {"i": integer, "d": double, "I": types.Array(integer, 1, "C"), "J": types.Array(integer, 2, "C")}
    kinds |= {"B": types.Array(types.boolean, 2, "C"), "o": types.Array(from_dtype(OBSERVATION), 1, "C")}
    return tuple(kinds[letter] for letter in letters)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until nobody holds the other end
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for function, letters in AHEAD:
        if claimed(sys.argv[1], function):
            compile_function(function, letters)
