"""Compressed sparse rows that came from elsewhere: checked, and brought to the types that searches use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_integers
from napsets.checks.frozen import sealed
from napsets.checks.lengths import check_lengths
from napsets.errors import InvalidInputError

__all__ = ["check_compressed", "id_dtype"]

_CHECKED_AT_ONCE = 1 << 20  # edges; bounds what a check needs in addition to the graph


def id_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """Return the type of node ids: int32 while they fit."""
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


def check_compressed(
    indptr: ArrayLike, indices: ArrayLike, directed: bool, lengths: ArrayLike | None
) -> tuple[IntArray, npt.NDArray[Any], FloatArray | None]:
    """Return compressed sparse rows that came from elsewhere, in the types that searches use, or refuse them.

    Lengths are a copy, sealed; the rows are copied where their type or layout is another.
    """
    offsets = check_integers("indptr", indptr).astype(np.int64, copy=False)
    columns = check_integers("indices", indices)
    nodes = offsets.size - 1
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != columns.size or (np.diff(offsets) < 0).any():
        raise InvalidInputError(
            f"`indptr` must ascend from 0 to the number of stored edges, {columns.size}; it does not"
        )
    if columns.size:
        low, high = int(columns.min()), int(columns.max())
        if low < 0 or high >= nodes:
            raise InvalidInputError(f"`indices` must hold ids from 0 to {nodes - 1}; got {low if low < 0 else high}")
    # One width for ids and for whatever is indexed by them, whatever width they came in.
    columns = np.ascontiguousarray(columns, dtype=id_dtype(nodes))
    _check_order(offsets, columns)
    _check_symmetry(offsets, columns, directed)
    if lengths is not None:
        lengths = sealed(check_lengths("lengths", lengths, columns.size))
        _check_both_ways(offsets, columns, lengths, directed)
    return np.ascontiguousarray(offsets), columns, lengths


def _check_order(indptr: IntArray, indices: npt.NDArray[Any]) -> None:
    """Refuse rows that are out of order, repeat a neighbour or name their own node: searches rely on it."""
    for start in range(0, indices.size, _CHECKED_AT_ONCE):
        stop = min(start + _CHECKED_AT_ONCE, indices.size)
        rows = np.searchsorted(indptr, [start, stop - 1], side="right") - 1
        bounds = np.clip(indptr[rows[0] : rows[1] + 2], start, stop)
        row = np.repeat(np.arange(rows[0], rows[1] + 1), np.diff(bounds))
        chunk = indices[start:stop]
        bad = chunk == row
        bad[1:] |= (chunk[1:] <= chunk[:-1]) & (row[1:] == row[:-1])
        if start > indptr[rows[0]]:  # the row began in the chunk before
            bad[0] |= indices[start] <= indices[start - 1]
        if bad.any():
            raise InvalidInputError(
                "`indices` must ascend within each row, without repeats and without the row's own node; "
                f"row {row[bad.argmax()]} does not (Graph.from_edge_index sorts, merges and drops)"
            )


def _check_symmetry(indptr: IntArray, indices: npt.NDArray[Any], directed: bool) -> None:
    """Refuse rows of an undirected graph in which an edge stands in one direction only."""
    if directed or indices.size == 0:
        return
    from napsets.kernels.csr import one_way_edge

    source, target = one_way_edge(indptr, indices)
    if source >= 0:
        raise InvalidInputError(
            f"`indices` must hold every edge of an undirected graph in both rows; {source} → {target} has no reverse "
            f"edge. Pass directed=True to follow edges one way, or make the graph with Graph.from_scipy or "
            f"Graph.from_edge_index, which add reverse edges."
        )


def _check_both_ways(indptr: IntArray, indices: npt.NDArray[Any], lengths: FloatArray, directed: bool) -> None:
    """Refuse lengths of an undirected graph that differ between an edge and its way back."""
    if directed:
        return
    from napsets.kernels.csr import reversed_rows

    back = reversed_rows(indptr, indices, lengths)[2]
    different = lengths != back
    if different.any():
        entry = int(different.argmax())
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        raise InvalidInputError(
            f"`lengths` must be the same both ways in an undirected graph; {row} → {indices[entry]} is not as long as "
            f"its way back. Pass directed=True, or make the graph with Graph.from_edge_index, which keeps the shorter."
        )
