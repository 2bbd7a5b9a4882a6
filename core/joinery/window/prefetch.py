"""`prefetch(array, i)`: ask the processor for the cache line of array[i] before it is needed.

The join's time is cache misses on rows of the other window. Asking for the bucket of a tuple some tuples ahead, and for
the newest row of that bucket half-way, hides most of them (measured in docs/performance.md).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """LLVM's prefetch for reading, into all cache levels."""
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        pointer = ir.IntType(8).as_pointer()
        address = builder.bitcast(builder.gep(data, [args[1]]), pointer)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind), [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return signature, generate
