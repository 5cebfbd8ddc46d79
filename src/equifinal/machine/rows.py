"""Compiled functions on rows of arrays, for what is computed in NumPy. Needs LLVM, but not Numba."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from equifinal.machine import native

_LOOP = """
define void @rows(i64 %function, P %x, i64 %nx, P %p, i64 %np, P %u, P %out, i64 %size, i64 %count) nounwind {
entry:
  %f = inttoptr i64 %function to FUNCTION
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_offset = mul i64 %i, %nx
  %p_offset = mul i64 %i, %np
  %out_offset = mul i64 %i, %size
  %x_row = getelementptr inbounds double, P %x, i64 %x_offset
  %p_row = getelementptr inbounds double, P %p, i64 %p_offset
  %out_row = getelementptr inbounds double, P %out, i64 %out_offset
  call void %f(P %x_row, P %p_row, P %u, P %u, P %u, P %out_row)
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
"""


@cache
def _loop() -> tuple[Any, native.Code]:
    pointer = function = "ptr"
    if native.typed_pointers():
        pointer, function = "double*", f"void ({', '.join(['double*'] * 6)})*"
    assembly = _LOOP.replace("FUNCTION", function).replace("P %", f"{pointer} %")
    code = native.compile_assembly(assembly, ["rows"])
    number = ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(None, *[number] * 9)
    return prototype(code.addresses["rows"]), code


def on_rows(function: int, x: np.ndarray, p: np.ndarray, u: np.ndarray, size: int) -> np.ndarray:
    """The results (rows, size) of the model function at an address, for rows of x and p and one u."""
    x, p, u = (np.ascontiguousarray(a, dtype=float) for a in (x, p, u))
    out = np.empty((len(p), size))
    if out.size:
        places = [native.address(a) for a in (x, p, u, out)]
        _loop()[0](function, places[0], x.shape[1], places[1], p.shape[1], *places[2:], size, len(p))
    return out
