"""What Numba lacks for code on bare pointers: offsets, calls by address, an atomic counter, bits of numbers.

Integrators work on pointers rather than arrays: model functions are called by address without any wrapping,
nothing is allocated or reference-counted, and the compiled code needs nothing from Numba when it is loaded
again.
"""

from __future__ import annotations

from typing import Any, Protocol

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Doubles: types.CPointer = types.CPointer(types.float64)
Integers: types.CPointer = types.CPointer(types.int64)


class DoublePointer(Protocol):
    """What `Doubles` are to those who read or write code on them."""

    def __getitem__(self, index: int, /) -> float: ...
    def __setitem__(self, index: int, value: float, /) -> None: ...


class IntegerPointer(Protocol):
    """Likewise `Integers`."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


def _shift(typing_context, pointer, count):
    """``pointer + count``, counted in entries."""

    def generate(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), generate


shift: Any = intrinsic(_shift)


def _doubles_at(typing_context, address):
    """The numbers at ``address``."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(Doubles))

    return Doubles(types.int64), generate


def _integers_at(typing_context, address):
    """The integers at ``address``."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(Integers))

    return Integers(types.int64), generate


doubles_at: Any = intrinsic(_doubles_at)
integers_at: Any = intrinsic(_integers_at)


def _bits_of(typing_context, number):
    """The bits of a number, as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _number_of(typing_context, bits):
    """The number that has these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


bits_of: Any = intrinsic(_bits_of)
number_of: Any = intrinsic(_number_of)


def _never_inline(typing_context):
    """Have the function that says so compiled once, not once more wherever it is called: compiling takes time."""

    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _always_inline(typing_context):
    """Have the function that says so compiled into its callers: structs are many arguments to hand over."""

    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


never_inline: Any = intrinsic(_never_inline)
always_inline: Any = intrinsic(_always_inline)


def _call(typing_context, address, x, p, u, dx, du, out):
    """Call the model function at ``address``."""

    def generate(context, builder, signature, arguments):
        double = ir.DoubleType().as_pointer()
        function = ir.FunctionType(ir.VoidType(), [double] * 6)
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, *[Doubles] * 6), generate


call: Any = intrinsic(_call)


def _call_on(typing_context, address, x, p, out):
    """Call the function at ``address`` on contiguous arrays; it has no other arguments."""

    def generate(context, builder, signature, arguments):
        double = ir.DoubleType().as_pointer()
        function = ir.FunctionType(ir.VoidType(), [double] * 6)
        data = [
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
        ]
        nothing = ir.Constant(double, None)
        pointers = [data[0], data[1], nothing, nothing, nothing, data[2]]
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(types.int64, x, p, out), generate


call_on: Any = intrinsic(_call_on)


def _take_next(typing_context, counter):
    """The counter's value, which is then one more; no two threads get the same."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", arguments[0], ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(Integers), generate


take_next: Any = intrinsic(_take_next)
