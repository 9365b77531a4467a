"""The one way kernels are compiled, and the few machine instructions that Numba does not name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

__all__ = ["count_bits", "count_bits_of_eight", "jit", "lowest_bit", "prefetch"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter lock, and keep the result on disk where a cache can be written."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder can be written for the cache: compile anew in each process
        return njit(nogil=True)(function)


@intrinsic
def count_bits(typingctx: Any, word: Any) -> Any:
    """Return the number of set bits in a word (``popcnt``; LLVM vectorises it)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.ctpop(args[0]), ir.IntType(64))

    return types.int64(types.uint64), codegen


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """Return the position of the lowest set bit in a word that has one (``tzcnt``)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined_for_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(args[0], undefined_for_zero)

    return types.int64(types.uint64), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, position: Any) -> Any:
    """Ask the cache for ``array[position]`` ahead of its use; never faults and changes nothing."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        data = context.make_array(array_type)(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [pointer.type],
            ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag]),
        )
        read, keep_in_all_caches, data_cache = (ir.Constant(flag, value) for value in (0, 3, 1))
        builder.call(function, [pointer, read, keep_in_all_caches, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def count_bits_of_eight(typingctx: Any, row: Any, mask: Any, position: Any) -> Any:
    """Count the bits that are set in both of two vectors, in the eight words from `position` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        eight = ir.VectorType(word, 8)

        def load(kind: Any, array: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            pointer = builder.bitcast(builder.gep(data, [args[2]]), eight.as_pointer())
            return builder.load(pointer, align=word.width // 8)

        both = builder.and_(load(signature.args[0], args[0]), load(signature.args[1], args[1]))
        # Written out, because llvmlite knows no names of intrinsics for vectors.
        count = get_or_insert_function(builder.module, ir.FunctionType(eight, [eight]), "llvm.ctpop.v8i64")
        add = get_or_insert_function(builder.module, ir.FunctionType(word, [eight]), "llvm.vector.reduce.add.v8i64")
        return builder.call(add, [builder.call(count, [both])])

    return types.int64(row, mask, types.intp), codegen
