"""Calls of compiled functions by address, from compiled code, and arrays that cost nothing to pass on.

A function handed over as a value is part of the type of the kernel that calls it, which would be compiled anew for
each. An address is an integer: one kernel, compiled once, serves them all.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _call(typing_context, address, arrays):
    """Call ``int64 f(first*, second*, ...)`` at ``address`` with the data of a tuple of contiguous arrays."""
    if any(not isinstance(array, types.Array) or array.layout != "C" for array in arrays):
        return None

    def generate(context, builder, signature, arguments):
        structs = cgutils.unpack_tuple(builder, arguments[1])
        data = [context.make_array(t)(context, builder, a).data for t, a in zip(arrays, structs, strict=True)]
        function = ir.FunctionType(ir.IntType(64), [pointer.type for pointer in data])
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), data)

    return types.int64(types.int64, arrays), generate


call: Any = intrinsic(_call)


def _uncounted(typing_context, values):
    """The same tuple, its arrays no longer reference-counted: something else must keep them alive.

    Numba counts references with two atomic operations for each array and call, which cost more than a loop over a
    few entries.
    """

    def generate(context, builder, signature, arguments):
        items = cgutils.unpack_tuple(builder, arguments[0])
        for k, item_type in enumerate(values):
            if isinstance(item_type, types.Array):
                array = context.make_array(item_type)(context, builder, items[k])
                array.meminfo = ir.Constant(array.meminfo.type, None)
                items[k] = array._getvalue()
        return context.make_tuple(builder, values, items)

    return values(values), generate


uncounted: Any = intrinsic(_uncounted)
