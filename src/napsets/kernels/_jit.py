"""Compilation and caching of kernels, a sort, and a few machine instructions that Numba has no names for."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.cgutils import get_or_insert_function
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

#: A compiled function, as its callers see it.
Function = Callable[..., Any]

#: Kernels are never called from C.
_njit = partial(njit, nogil=True, no_cfunc_wrapper=True)

#: Messages that this process has shown already; each is shown once.
_printed: set[str] = set()


def jit(function: Function) -> Function:
    """Compile without the interpreter lock, and keep the result on disk where a cache can be written."""
    kernel = _njit()(function)
    with suppress(RuntimeError):  # no folder can be written for the cache: compile again in each process
        kernel._cache = _Cache(function)  # type: ignore[attr-defined]
    return kernel


def part(function: Function) -> Function:
    """Compile a function that only kernels call: it is cached with them, and takes less time to compile."""
    return _njit(no_cpython_wrapper=True)(function)


@part
def sort_in_place(values):
    """Sort numbers in ascending order (Shell, 1959); NumPy's own function takes over a second to compile."""
    gap = 1
    while 3 * gap < values.shape[0]:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.shape[0]):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


def inlined(function: Function) -> Function:
    """Compile a function into each kernel that calls it, where passing records would cost more than its work."""
    return _njit(forceinline=True)(function)


def _warning() -> type[Warning]:
    """Return the category of warnings: `NapsetsWarning`, where the kernels are used within the package."""
    package = sys.modules.get(__name__.partition(".")[0])
    return getattr(package, "NapsetsWarning", RuntimeWarning)


@lru_cache(maxsize=1)
def _newest_source() -> tuple[float, int]:
    """Return when a file of this folder was last changed, and the size of all of them."""
    with os.scandir(os.path.dirname(__file__)) as entries:
        sources = [entry.stat() for entry in entries if entry.name.endswith(".py")]
    return max(source.st_mtime for source in sources), sum(source.st_size for source in sources)


class _Cache(FunctionCache):
    """Numba's cache of one function; if it is damaged, or the disk is full, the function is compiled again.

    Numba looks at the file of the function alone, but what it calls may stand in any other file of this folder.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        file = self._cache_file
        file._source_stamp = (file._source_stamp, _newest_source())

    def load_overload(self, sig, target_context):
        """Return the compiled function for a signature, or None if the cache has none that can be used."""
        try:
            compiled = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            self._give_up("read", error)
            return None
        # Two processes that write at once may each number their results from 1, and overwrite the other's.
        return compiled if compiled is None or tuple(compiled.signature.args) == tuple(sig) else None

    def save_overload(self, sig, data):
        """Write a compiled function to the cache, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self._give_up("written", error)

    def _give_up(self, what: str, error: Exception) -> None:
        """Delete the cached entry of this function, which may be incomplete, and warn once per process."""
        try:
            os.unlink(self._cache_file._index_path)
        except OSError:
            self.disable()
        # What names a class that is no longer there was kept by another version, and is not damaged.
        if "cache" not in _printed and not isinstance(error, AttributeError | ImportError):
            _printed.add("cache")
            reason = str(error) or type(error).__name__
            warnings.warn(
                f"compiled kernels could not be {what} in {self.cache_path} ({reason}); they are compiled again in "
                "each process, which takes some seconds. If this comes again, empty that folder, free some space, or "
                "set NUMBA_CACHE_DIR to another.",
                _warning(),
                stacklevel=2,
            )


class _Announcer(event.Listener):
    """Logs once per process, to the logger "napsets", that kernels are compiled; those from the cache are not."""

    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if "compiling" not in _printed and kernel.__module__.startswith("napsets."):
            _printed.add("compiling")
            logging.getLogger("napsets").info("compiling kernels, once on this machine: this takes some seconds")

    def on_end(self, event):
        pass


event.register("numba:compile", _Announcer())


@intrinsic
def count_bits(typingctx, word):
    """Return the number of set bits in a word (``popcnt``; LLVM vectorises it)."""

    def codegen(context, builder, signature, args):
        return builder.zext(builder.ctpop(args[0]), ir.IntType(64))

    return types.int64(types.uint64), codegen


@intrinsic
def lowest_bit(typingctx, word):
    """Return the position of the lowest set bit in a word that has one (``tzcnt``)."""

    def codegen(context, builder, signature, args):
        undefined_for_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(args[0], undefined_for_zero)

    return types.int64(types.uint64), codegen


@intrinsic
def prefetch(typingctx, array, position):
    """Ask the cache for ``array[position]`` ahead of its use; never faults and changes nothing."""

    def codegen(context, builder, signature, args):
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
def count_bits_of_eight(typingctx, row, mask, position):
    """Count the bits that are set in both of two vectors, in the eight words from `position` on."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        eight = ir.VectorType(word, 8)

        def load(kind, array):
            data = context.make_array(kind)(context, builder, array).data
            pointer = builder.bitcast(builder.gep(data, [args[2]]), eight.as_pointer())
            return builder.load(pointer, align=word.width // 8)

        both = builder.and_(load(signature.args[0], args[0]), load(signature.args[1], args[1]))
        # Written out, because llvmlite knows no names of intrinsics for vectors.
        count = get_or_insert_function(builder.module, ir.FunctionType(eight, [eight]), "llvm.ctpop.v8i64")
        add = get_or_insert_function(builder.module, ir.FunctionType(word, [eight]), "llvm.vector.reduce.add.v8i64")
        return builder.call(add, [builder.call(count, [both])])

    return types.int64(row, mask, types.intp), codegen


@intrinsic
def frozen(typingctx, array):
    """Return a read-only view, so that functions that read arrays are compiled once, not twice."""

    def codegen(context, builder, signature, args):
        return impl_ret_borrowed(context, builder, signature.return_type, args[0])

    return array.copy(readonly=True)(array), codegen


@intrinsic
def borrowed(typingctx, record):
    """Return a record whose arrays belong to the caller, who keeps them for as long as the kernel runs.

    Numba counts references to arrays, with an atomic instruction wherever one is taken out of a record. In a kernel
    that handles a source in less than a microsecond that is a quarter of the time. These arrays have nothing to count.
    """
    fields = tuple(record) if isinstance(record, types.BaseTuple) else ()

    def codegen(context, builder, signature, args):
        value = args[0]
        for i, field in enumerate(fields):
            if isinstance(field, types.Array):
                owner = builder.extract_value(value, [i, 0])  # the first part of an array
                value = builder.insert_value(value, ir.Constant(owner.type, None), [i, 0])
        return value

    return record(record), codegen
