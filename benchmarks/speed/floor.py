"""The floors: ``floor.c`` and ``dijkstra.c``, compiled here and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.graph import Graph

_FOLDER = Path(__file__).parent.parent


def compile_floor(folder: Path, name: str = "floor") -> Path:
    """Compile the bare traversal, or the bare shortest paths ("dijkstra"), with ``gcc -O3``."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("The floor is written in C, and neither gcc nor cc is on the PATH")
    library = folder / f"{name}.so"
    source = _FOLDER / f"{name}.c"
    command = [compiler, "-O3", "-shared", "-fPIC", "-pthread", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def traverse(library: Path, graph: Graph, sources: IntArray, hops: int, threads: int) -> int:
    """Walk from every source; return how many (source, node) pairs were reached."""
    function = ctypes.CDLL(str(library)).traverse
    function.restype = ctypes.c_int64
    rows, start = _rows(graph), np.ascontiguousarray(sources, dtype=np.int64)
    nodes, count = ctypes.c_int64(graph.num_nodes), ctypes.c_int64(start.size)
    return int(function(*map(_pointer, rows), nodes, _pointer(start), count, hops, threads))


def settle(library: Path, graph: Graph, sources: IntArray, radius: float, threads: int) -> int:
    """Find the shortest paths from every source up to a radius; return how many (source, node) pairs were reached."""
    function = ctypes.CDLL(str(library)).settle
    function.restype = ctypes.c_int64
    rows, start = _rows(graph), np.ascontiguousarray(sources, dtype=np.int64)
    lengths = np.ascontiguousarray(graph.lengths, dtype=np.float64)
    nodes, count = ctypes.c_int64(graph.num_nodes), ctypes.c_int64(start.size)
    arrays = map(_pointer, (*rows, lengths))
    return int(function(*arrays, nodes, _pointer(start), count, ctypes.c_double(radius), threads))


def _rows(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(graph.indptr, dtype=np.int64), np.ascontiguousarray(graph.indices, dtype=np.int32)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
