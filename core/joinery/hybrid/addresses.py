"""Memory by its address, for kernels that read from many Arrow buffers at once.

A kernel can be given a few arrays, not a hundred of them: it is given their addresses. Whoever keeps an address keeps
the buffer (`pieces.Pieces`), and nothing here looks whether that is so.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_PREFETCH = [ir.IntType(8).as_pointer(), *(ir.IntType(32),) * 3]


def _i64(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.int64(types.int64), generate


def _i32(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(32).as_pointer())
        return builder.sext(builder.load(pointer, align=1), ir.IntType(64))

    return types.int64(types.int64), generate


def _u8(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), generate


def _copy(_typing: Any, _to: Any, _source: Any, _nbytes: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        to, source = (builder.inttoptr(address, cgutils.voidptr_t) for address in args[:2])
        cgutils.raw_memcpy(builder, to, source, args[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _fetch(_typing: Any, _address: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        number = ir.IntType(32)
        pointer = builder.inttoptr(args[0], _PREFETCH[0])
        kind = ir.FunctionType(ir.VoidType(), _PREFETCH)
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [_PREFETCH[0]], kind)
        builder.call(instruction, [pointer, number(0), number(3), number(1)])  # to read, keep in every level, data
        return context.get_dummy_value()

    return types.void(types.int64), generate


i64_at: Any = intrinsic(_i64)
"""The 8 bytes at an address, as a number."""
i32_at: Any = intrinsic(_i32)
u8_at: Any = intrinsic(_u8)
copy: Any = intrinsic(_copy)
"""copy(to, source, nbytes): addresses both."""
fetch: Any = intrinsic(_fetch)
"""Ask the processor for the cache line of an address before it is needed."""
