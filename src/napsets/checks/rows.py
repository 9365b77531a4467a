"""Checking compressed sparse rows that came from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError

__all__ = ["check_rows", "check_symmetry"]

_CHECKED_AT_ONCE = 1 << 20  # edges; bounds what a check needs beside the graph


def check_rows(indptr: IntArray, indices: npt.NDArray[Any]) -> None:
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


def check_symmetry(indptr: IntArray, indices: npt.NDArray[Any], directed: bool) -> None:
    """Refuse rows of an undirected graph in which an edge stands in one direction only."""
    if directed or indices.size == 0:
        return
    from napsets.kernels.csr import one_way_edge

    source, target = one_way_edge(indptr, indices)
    if source >= 0:
        raise InvalidInputError(
            f"`indices` must hold every edge of an undirected graph in both rows; {source} → {target} has no way back. "
            f"Pass directed=True to follow edges one way, or make the graph with Graph.from_scipy or "
            f"Graph.from_edge_index, which add the way back."
        )
