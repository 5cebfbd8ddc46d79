"""Numba with a cache that can only help: missing, read-only or damaged, it costs a compilation and is no error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, without the interpreter lock; division by zero gives infinity or NaN, as in NumPy."""
    options = {"error_model": "numpy", "nogil": True}
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
        dispatcher._cache = _Forgiving(dispatcher._cache)
    except RuntimeError:  # there is no folder to put a cache in
        dispatcher = numba.njit(**options)(function)
    return dispatcher


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
