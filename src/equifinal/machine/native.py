"""LLVM assembly to machine code in this process.

The model's functions are assembled directly (`equifinal.machine.assembly`) and the integrators by Numba, once;
both end here. Object code of the integrators is kept on disk, so that a later run neither compiles them nor
imports Numba.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

_lock = threading.RLock()  # LLVM's compiler is used by one thread at a time
_loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()  # by assembly


@dataclass(frozen=True)
class Code:
    """Addresses of compiled functions by name; the machine code lives as long as this object."""

    addresses: dict[str, int]
    engine: Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C: inside LLVM's callbacks it would be printed and forgotten."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
    if came:
        raise KeyboardInterrupt


def address(array: Any) -> int:
    """Where an array's data begin; three times faster than asking NumPy, which matters for small batches."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, or empty
        return array.__array_interface__["data"][0]


def typed_pointers() -> bool:
    return llvm.llvm_version_info[0] < 17


def _target() -> Any:
    """Code generation for this processor, without liberties: every operation is rounded as written.

    Made anew for each use, as an execution engine takes its target with it when it goes.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


@cache
def triple() -> str:
    """The architecture and the system that code is for."""
    with _lock:
        return _target().triple


@cache
def machine() -> str:
    """What object code depends on besides its source."""
    with _lock:
        features = llvm.get_host_cpu_features().flatten()
        return f"{_target().triple} {llvm.get_host_cpu_name()} {features} {llvm.llvm_version_info}"


def compile_assembly(assembly: str, names: Iterable[str]) -> Code:
    """Compile a module, or hand back the code of an equal one compiled before."""
    with _lock, uninterrupted():
        code = _loaded.get(assembly)
        if code is None:
            module = llvm.parse_assembly(assembly)
            module.verify()
            engine = llvm.create_mcjit_compiler(module, _target())
            engine.finalize_object()
            code = Code({name: engine.get_function_address(name) for name in names}, engine)
            _loaded[assembly] = code
        return code


def optimised(assembly: str) -> tuple[bytes, list[str]]:
    """Bitcode of a module, optimised, and the names it expects to find outside."""
    with _lock:
        module = llvm.parse_assembly(assembly)
        passes = llvm.create_pass_builder(_target(), llvm.create_pipeline_tuning_options(speed_level=3))
        passes.getModulePassManager().run(module, passes)
        outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
        outside += [g.name for g in module.global_variables if g.is_declaration]
        return module.as_bitcode(), outside


def emit_object(bitcode: bytes) -> bytes:
    """Object code for this machine."""
    with _lock:
        target = _target()
        return target.emit_object(llvm.parse_bitcode(bitcode))


def load_object(code: bytes, name: str) -> Code:
    """Machine code from object code made earlier on the same kind of machine."""
    with _lock, uninterrupted():
        empty = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(empty, _target())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return Code({name: engine.get_function_address(name)}, engine)
