"""Numba when it is needed, with a cache that can only help.

Importing Numba costs more than reading and checking a problem, so that it is imported when a compiled function is first
called, not where it is defined. A cache that is missing, read-only or damaged costs a compilation and is no error.
"""

from __future__ import annotations

from collections.abc import Callable
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
