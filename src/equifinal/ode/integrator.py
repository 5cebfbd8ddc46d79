"""The compiled integrator as a function pointer: from the cache, or compiled by Numba and put there."""

from __future__ import annotations

import ctypes
import importlib.metadata
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equifinal.errors import SolverError
from equifinal.machine import cache, native

_SOURCES = (
    *("layout", "structs", "field", "floors", "explicit", "stiff", "rodas5p", "output", "events", "control", "lanes"),
    "integrator",
)
_MATHS = {"exp", "log", "pow", "sqrt", "fabs", "memset", "memcpy", "memmove"}  # found in every process
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)  # two of Numba's own, and those of `solve_lanes`

_lock = threading.Lock()
_integrator: tuple[Callable[..., Any], native.Code] | None = None


def integrator() -> Callable[..., Any]:
    """`equifinal.ode.lanes.solve_lanes` as machine code. Calling it releases the interpreter lock."""
    global _integrator
    if _integrator is None:
        with _lock:
            if _integrator is None:
                code = _code()
                (address,) = code.addresses.values()
                _integrator = _PROTOTYPE(address), code
    return _integrator[0]


def is_compiled() -> bool:
    """Whether there is code for this machine already, so that there is little to wait for."""
    return _integrator is not None or cache.read(entry_name()) is not None


def entry_name() -> str:
    """The integrator's name in the cache: another one for every change of source, compiler or processor."""
    here = Path(__file__).parent
    sources = [here.parent / "machine" / "pointers.py", *(here / f"{source}.py" for source in _SOURCES)]
    return "integrator-" + cache.key(
        *(source.read_bytes() for source in sources),
        *(importlib.metadata.version(package) for package in ("numba", "llvmlite")),
        f"{sys.implementation.cache_tag} {native.machine()}",
    )


def _code() -> native.Code:
    name = entry_name()
    entry = cache.read(name)
    if entry is None:
        with native.uninterrupted():
            entry = _compile()
        cache.write(name, entry)
    symbol, outside, code = entry.split(b"\0", 2)
    if not {*outside.decode().split()} <= _MATHS:
        import numba  # noqa: F401  # makes the names known that its code may refer to
    return native.load_object(code, symbol.decode())


def _compile() -> bytes:
    """Object code by Numba, after the name of its function and the names it needs."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise SolverError("NUMBA_DISABLE_JIT is set, but the integrators must be compiled on a first run; unset it")
    from equifinal.ode import lanes, structs

    with _unoptimised():
        compiled = numba.njit(lanes.SIGNATURE, **structs.OPTIONS)(lanes.solve_lanes)
    assembly = compiled.inspect_llvm(lanes.SIGNATURE.args)
    overload: Any = compiled.overloads[lanes.SIGNATURE.args]
    symbol = overload.fndesc.mangled_name
    code, outside = native.emit_object(assembly)
    return b"\0".join([symbol.encode(), " ".join(outside).encode(), code])


@contextmanager
def _unoptimised() -> Iterator[None]:
    """Have Numba leave optimisation to us, once for the whole: function by function it takes twice as long."""
    from numba import config
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        cpu_target.target_context.codegen()  # made now, so that it is made for optimised code
        level = config.OPT
        config.OPT = type(level)(0)
        try:
            yield
        finally:
            config.OPT = level
