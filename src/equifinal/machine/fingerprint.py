"""What machine code is made from: the code of a function, of all that it calls, and the constants that they name.

Two functions with the same fingerprint compile to the same machine code, wherever they stand and whenever their files
were written. Times and sizes of files say less: they miss an edit in another module, and see one in a comment.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

_SHARED = (math, np)  # their versions, which hardly matter, are part of the compiler's


def fingerprint(function: Callable[..., Any]) -> str:
    """The fingerprint of a Python function that Numba compiles."""
    digest = sha256()
    for piece in _pieces(function, set()):
        digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.hexdigest()


def _pieces(function: Callable[..., Any], seen: set[int]) -> Iterator[bytes]:
    if id(function) in seen:
        return
    seen.add(id(function))
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    yield repr((function.__module__, function.__qualname__, function.__defaults__, function.__kwdefaults__)).encode()
    for code in _codes(function.__code__):
        constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
        yield code.co_code
        yield repr((constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in sorted(names & function.__globals__.keys()):
        yield name.encode()
        yield from _of_value(function.__globals__[name], seen)
    for value in cells:
        yield from _of_value(value, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _of_value(value: Any, seen: set[int]) -> Iterator[bytes]:
    """What a name stands for: constants by value, compiled functions by their code, all else by its file."""
    if any(value is module for module in _SHARED):
        yield value.__name__.encode()
    elif isinstance(value, bool | int | float | complex | str | np.generic):
        yield repr(value).encode()
    elif isinstance(value, tuple):
        for item in value:
            yield from _of_value(item, seen)
    elif isinstance(value, np.ndarray):
        yield repr((value.shape, value.dtype)).encode() + value.tobytes()
    elif hasattr(value, "compiled_from"):
        for function in value.compiled_from:
            yield from _pieces(function, seen)
    else:
        yield _file_of(value)


def _file_of(value: Any) -> bytes:
    """The source of the module that a value comes from: of a module itself, a class, an intrinsic of Numba."""
    module = value if isinstance(value, ModuleType) else inspect.getmodule(inspect.unwrap(value))
    if module is None or module.__file__ is None:
        raise ValueError(f"no source is known of {value!r}")
    return Path(module.__file__).read_bytes()
