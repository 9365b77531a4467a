"""Reading edges: two columns of ids into a graph on the places 0..n−1."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.files.formats import TableFile, open_table
from napsets.files.ids import IdKind, NodeIds, UnknownIds, known_places
from napsets.graph import Graph

__all__ = ["read_edges"]


def read_edges(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    *,
    directed: bool = False,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    notes: list[str] | None = None,
) -> Graph:
    """Read a table with the columns ``source`` and ``target`` into a graph on the places of `nodes`.

    Parameters
    ----------
    path : path
        Parquet, CSV, JSON Lines or npz; npz may hold ``edge_index`` of shape (2, edges) instead.
    nodes : NodeIds
        The nodes; edges to any other are refused, or left out with `skip_unknown`.
    directed : bool
        As in `Graph.from_edge_index`.
    ids : {"auto", "integer", "string"}
        How to read ids.
    skip_unknown : bool
        Leave out edges that name a node outside `nodes`, and say so in `notes`.
    notes : list, optional
        Where that is said.
    """
    table = open_table("edges", path)
    table.require("source", "target")
    strangers = UnknownIds(table, nodes.name)
    ends = _read_ends(table, nodes, ids, strangers)
    strangers.settle(skip=skip_unknown, notes=notes)
    if strangers.rows:
        ends = ends[:, (ends >= 0).all(axis=0)]
    return Graph.from_edge_index(ends, num_nodes=len(nodes), directed=directed)


def _read_ends(table: TableFile, nodes: NodeIds, ids: IdKind, strangers: UnknownIds) -> npt.NDArray[Any]:
    dtype = np.int32 if len(nodes) < 2**31 else np.int64
    total = table.num_rows()
    parts = []
    whole = None if total is None else np.empty((2, total), dtype=dtype)
    filled = 0
    for batch in table.batches(["source", "target"]):
        part = (
            np.empty((2, batch.num_rows), dtype=dtype) if whole is None else whole[:, filled : filled + batch.num_rows]
        )
        for row, column in enumerate(("source", "target")):
            part[row] = known_places(table, batch, column, nodes, ids, strangers)
        parts.append(part)
        filled += batch.num_rows
    if whole is not None:
        return whole
    return np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=dtype)
