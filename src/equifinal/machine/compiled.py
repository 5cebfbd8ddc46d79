"""Numba when it is needed.

Importing Numba costs more than reading and checking a problem, so that it is imported when a compiled function is first
called, not where it is defined. Machine code is kept between runs (`equifinal.machine.kept`), not by Numba: its own
cache does not see an edit in another module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, update_wrapper
from typing import Any, TypeVar

OPTIONS: dict[str, str | bool] = {"error_model": "numpy", "nogil": True}

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

        from equifinal.machine.kept import KeptOverloads

        dispatcher = numba.njit(**OPTIONS)(self.function)
        dispatcher._cache = KeptOverloads(self.function)
        return dispatcher

    @property
    def compiled_from(self) -> Sequence[Callable[..., Any]]:
        return (self.function,)

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

    @property
    def compiled_from(self) -> Sequence[Callable[..., Any]]:
        return [python for function in self.functions for python in getattr(function, "compiled_from", (function,))]

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
