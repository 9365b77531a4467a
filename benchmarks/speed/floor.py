"""The floor: ``floor.c``, compiled here and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.graph import Graph

__all__ = ["compile_floor", "traverse"]

_SOURCE = Path(__file__).parent.parent / "floor.c"


def compile_floor(folder: Path) -> Path:
    """Compile the bare traversal with ``gcc -O3``."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("The floor is written in C, and neither gcc nor cc is on the PATH")
    library = folder / "floor.so"
    command = [compiler, "-O3", "-shared", "-fPIC", "-pthread", str(_SOURCE), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def traverse(library: Path, graph: Graph, sources: IntArray, hops: int, threads: int) -> int:
    """Walk from every source; return how many (source, node) pairs were reached."""
    function = ctypes.CDLL(str(library)).traverse
    function.restype = ctypes.c_int64
    indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
    start = np.ascontiguousarray(sources, dtype=np.int64)

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    nodes, count = ctypes.c_int64(graph.num_nodes), ctypes.c_int64(start.size)
    return int(function(pointer(indptr), pointer(indices), nodes, pointer(start), count, hops, threads))
