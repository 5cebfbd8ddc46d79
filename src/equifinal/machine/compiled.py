"""Numba when it is needed, with a cache that can only help.

Importing Numba costs more than reading and checking a problem, so that it is imported when a compiled function is first
called, not where it is defined. A cache that is missing, read-only or damaged costs a compilation and is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, without the interpreter lock; division by zero gives infinity or NaN, as in NumPy."""
    return _Compiled(function)  # type: ignore[return-value]


class _Compiled:
    """A function that Numba compiles when it is first called, from Python or from other such functions."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        update_wrapper(self, function)

    @cached_property
    def dispatcher(self) -> Any:
        import numba

        options = {"error_model": "numpy", "nogil": True}
        try:
            dispatcher = numba.njit(cache=True, **options)(self.function)
            dispatcher._cache = _Forgiving(dispatcher._cache)
        except RuntimeError:  # there is no folder to put a cache in
            dispatcher = numba.njit(**options)(self.function)
        return dispatcher

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.dispatcher(*arguments, **options)

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks of a global name in a function that it compiles."""
        return self.dispatcher._numba_type_

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.function.__module__, self.function.__qualname__)


def _named(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


def by_code(functions: Sequence[Callable[..., Any]]) -> Any:
    """Make a function of a code and arguments that calls ``functions[code]`` with them, for use in compiled functions.

    All of them take and return the same types. A code that there is not is taken for the last.
    """
    return _ByCode(functions)


class _ByCode:
    """An intrinsic of Numba that is made when a function that uses it is compiled."""

    def __init__(self, functions: Sequence[Callable[..., Any]]):
        self.functions = functions

    @cached_property
    def _numba_type_(self) -> Any:
        """What Numba asks of a global name in a function that it compiles."""
        from numba import typeof, types
        from numba.core import cgutils
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        functions = self.functions

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

        made = intrinsic(choose)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


class _Forgiving:
    """Numba's cache, without its errors: a damaged entry is no entry."""

    def __init__(self, cache: Any):
        self._cache = cache

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Numba names files by number: of two processes that compile for other types, one may find the other's."""
        try:
            found = self._cache.load_overload(signature, context)
            return found if found is None or found.signature.args == getattr(signature, "args", signature) else None
        except Exception:  # unpickling garbage raises nearly anything
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(Exception):
            self._cache.save_overload(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)
