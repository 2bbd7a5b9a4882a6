"""`prefetch(array, i)`: ask the processor for the cache line of array[i] before it is needed.

The join's time is cache misses on rows of the other window. Asking for the bucket of a tuple some tuples ahead, and
for the newest row of that bucket half-way, hides most of them (measured in docs/performance.md).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [args[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(instruction, [address, number(0), number(3), number(1)])  # to read, keep in every level, data
        return context.get_dummy_value()

    return signature, generate


prefetch: Any = intrinsic(_prefetch)
