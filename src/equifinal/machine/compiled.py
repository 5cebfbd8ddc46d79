"""Numba with a cache that can only help: missing, read-only or damaged, it costs a compilation and is no error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS = {"error_model": "numpy", "nogil": True}


def compiled(function: Function) -> Function:
    """Compile on first use, without the interpreter lock; division by zero gives infinity or NaN, as in NumPy."""
    try:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
        dispatcher._cache = _Forgiving(dispatcher._cache)
    except RuntimeError:  # there is no folder to put a cache in
        dispatcher = numba.njit(**OPTIONS)(function)
    return dispatcher


def by_code(functions: Sequence[Callable[..., Any]]) -> Any:
    """A function of a code and arguments that calls ``functions[code]`` with them; for use in compiled functions.

    All of them take and return the same types. A code that there is not is taken for the last.
    """

    def choose(typing_context, code, *arguments):
        kinds = [typeof(function) for function in functions]
        calls = [typing_context.resolve_function_type(kind, arguments, {}) for kind in kinds]

        def generate(context, builder, signature, values):
            given = cgutils.unpack_tuple(builder, values[1])
            result = cgutils.alloca_once(builder, context.get_value_type(signature.return_type))
            blocks = [builder.append_basic_block() for _ in functions]
            after = builder.append_basic_block()
            switch = builder.switch(values[0], blocks[-1])
            for i, (block, kind, call) in enumerate(zip(blocks, kinds, calls, strict=True)):
                switch.add_case(values[0].type(i), block)
                builder.position_at_end(block)
                function = context.get_function(kind, call)
                context.add_linking_libs(getattr(function, "libs", ()))
                builder.store(function(builder, given), result)
                builder.branch(after)
            builder.position_at_end(after)
            return builder.load(result)

        return calls[0].return_type(code, types.StarArgTuple.from_types(arguments)), generate

    return intrinsic(choose)


class _Forgiving:
    """Numba's cache, without its errors: a damaged entry is no entry."""

    def __init__(self, cache: Any):
        self._cache = cache

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return self._cache.load_overload(*arguments)
        except Exception:  # unpickling garbage raises nearly anything
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(Exception):
            self._cache.save_overload(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)
