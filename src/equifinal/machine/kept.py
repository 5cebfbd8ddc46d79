"""Machine code that is not compiled again: kept from an earlier run, or shipped with the package.

What Numba compiles is the same on every machine up to LLVM's bitcode, and bitcode takes a twentieth of the time to
become machine code. So a package is shipped with the bitcode of what most runs need (`ship`), in a folder of its own,
and what a run has made of it, or compiled itself, goes into the user's cache (`equifinal.machine.cache`). Entries of
both have names that depend on the code itself and on the compiler, and those of machine code on the processor: an entry
that does not fit has another name, and is not there.
"""

from __future__ import annotations

import importlib.metadata
import pickle
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from equifinal.machine import cache, native
from equifinal.machine.fingerprint import fingerprint

SHIPPED = Path(__file__).parent / "shipped" / str(sys.implementation.cache_tag)  # made by a build


class Code(NamedTuple):
    """Bitcode or object code, and what must be known to use it."""

    code: bytes
    about: bytes

    def packed(self) -> bytes:
        return len(self.about).to_bytes(8, "little") + self.about + self.code

    @classmethod
    def unpacked(cls, entry: bytes) -> Code:
        end = 8 + int.from_bytes(entry[:8], "little")
        return cls(entry[end:], entry[8:end])


@once
def compiler() -> str:
    """What bitcode depends on besides its source."""
    versions = [importlib.metadata.version(package) for package in ("numba", "llvmlite")]
    return " ".join([*versions, str(sys.implementation.cache_tag), native.triple()])


def entry_name(*parts: str | bytes) -> str:
    """A name for bitcode: another one for every change of source or compiler."""
    return cache.key(compiler(), *parts)


def find(name: str) -> Code | None:
    """Object code for this machine: as it was kept, or made from bitcode that was shipped."""
    entry = cache.read(_for_this_machine(name))
    if entry is not None:
        return Code.unpacked(entry)
    try:
        shipped = Code.unpacked(zlib.decompress((SHIPPED / name).read_bytes()))
        code = shipped._replace(code=native.emit_object(shipped.code))
    except (OSError, zlib.error, RuntimeError):  # not there, damaged, or not LLVM's
        return None
    keep(name, code)
    return code


def is_there(name: str) -> bool:
    """Whether nothing needs to be compiled for an entry."""
    return cache.read(_for_this_machine(name)) is not None or (SHIPPED / name).is_file()


def keep(name: str, code: Code) -> None:
    """Put object code into the cache of this machine."""
    cache.write(_for_this_machine(name), code.packed())


def ship(name: str, code: Code, folder: Path) -> None:
    """Put bitcode into a folder that is shipped."""
    (folder / name).write_bytes(zlib.compress(code.packed(), 9))


def _for_this_machine(name: str) -> str:
    return f"{name}-{cache.key(native.machine())}"


class KeptOverloads:
    """In place of the cache of one of Numba's dispatchers: what a function was compiled to, by its code and types."""

    cache_path = ""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.function)

    def name(self, signature: Any) -> str:
        """The name of the entry for a signature, or for a tuple of types of arguments."""
        return entry_name(self.fingerprint, str(tuple(getattr(signature, "args", signature))))

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What Numba asks for before it compiles. An entry that turns out to be unusable is no entry."""
        from numba.core.compiler import CompileResult

        with suppress(Exception):  # unpickling what another version wrote raises nearly anything
            found = find(self.name(signature))
            if found is not None:
                context.refresh()
                (name, bitcode), *others = pickle.loads(found.about)
                return CompileResult._rebuild(context, (name, "object", (found.code, bitcode)), *others)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """What Numba does after it has compiled."""
        with suppress(Exception):
            if not result.library.has_dynamic_globals:
                code, about = _reduced(result)
                keep(self.name(signature), Code(code, about))

    def ship(self, signature: Any, result: Any, folder: Path) -> None:
        """Put what was compiled into a folder that is shipped."""
        _, about = _reduced(result)
        _, _, bitcode = result.library.serialize_using_bitcode()
        ship(self.name(signature), Code(bitcode, about), folder)

    def flush(self) -> None:
        """Forget nothing: an entry cannot be out of date."""


def _reduced(result: Any) -> tuple[bytes, bytes]:
    """Object code, and the rest of what Numba has compiled, with bitcode for other functions to be linked with."""
    from numba.core.serialize import dumps

    (name, _, (code, bitcode)), *others = result._reduce()
    return code, dumps(((name, bitcode), *others))
