"""The compiled integrator as a function pointer: kept, shipped, or compiled by Numba."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equifinal.errors import SolverError
from equifinal.machine import kept, native

_MATHS = {"exp", "log", "pow", "sqrt", "fabs", "memset", "memcpy", "memmove"}  # found in every process
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)  # two of Numba's own, and those of `solve_lanes`

_lock = threading.Lock()
_integrator: tuple[Callable[..., Any], native.Code] | None = None


def integrator() -> Callable[..., Any]:
    """`equifinal.ode.stepping.lanes.solve_lanes` as machine code. Calling it releases the interpreter lock."""
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
    return _integrator is not None or kept.is_there(entry_name())


def entry_name() -> str:
    """The integrator's name among kept code: another one for every change of its sources."""
    here = Path(__file__).parent
    sources = [here.parent / "machine" / "pointers.py", Path(__file__), *sorted((here / "stepping").glob("*.py"))]
    return kept.entry_name("integrator", *(source.read_bytes() for source in sources))


def _code() -> native.Code:
    name = entry_name()
    found = kept.find(name)
    if found is None:
        with native.uninterrupted():
            found = compiled_code()
            found = found._replace(code=native.emit_object(found.code))
        kept.keep(name, found)
    symbol, *outside = found.about.decode().split()
    if not {*outside} <= _MATHS:
        import numba  # noqa: F401  # makes the names known that its code may refer to
    return native.load_object(found.code, symbol)


def compiled_code() -> kept.Code:
    """Bitcode by Numba, with the name of its function and the names it needs."""
    import numba

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise SolverError("NUMBA_DISABLE_JIT is set, but the integrators must be compiled on a first run; unset it")
    from equifinal.ode.stepping import lanes, structs

    with _unoptimised():
        compiled = numba.njit(lanes.SIGNATURE, **structs.OPTIONS)(lanes.solve_lanes)
    assembly = compiled.inspect_llvm(lanes.SIGNATURE.args)
    overload: Any = compiled.overloads[lanes.SIGNATURE.args]
    bitcode, outside = native.optimised(assembly)
    return kept.Code(bitcode, " ".join([overload.fndesc.mangled_name, *outside]).encode())


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
