"""Reading edges: two columns of ids, and one of weights, into a graph on the places 0..n−1."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray
from napsets.checks.compressed import WeightsAre, check_lengths
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, UnknownIds, id_column, known_places, one_width
from napsets.files.reading import PLAIN, Reading
from napsets.graph import Graph


def read_edges(
    path: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> Graph:
    """Read a table with the columns ``source`` and ``target`` into a graph on the places of `nodes`.

    `reading` says what a column ``weight`` means; by default it is not used, and `notes` says so.

    Parameters
    ----------
    path : path
        Parquet, CSV, JSON Lines or npz; npz may hold ``edge_index`` of shape (2, edges) instead.
    nodes : NodeIds
        The nodes; edges to any other are refused, or left out with ``skip_unknown``.
    reading : Reading
        How it is read.
    notes : list, optional
        A list to which notes for the user are added.
    """
    table = open_table("edges", path, reading)
    meaning = reading.weights_are
    table.require("source", "target", *([] if meaning is None else ["weight"]))
    if meaning is None and "weight" in table.columns and notes is not None:
        notes.append(
            f"the column weight of {table.path} is not used: say what it holds with --weights-are lengths or strengths"
        )
    strangers = UnknownIds(table, nodes.name)
    ends, weights = _read_columns(table, nodes, strangers, weighted=meaning is not None)
    strangers.settle(notes)
    if not ends.size and notes is not None:
        notes.append(f"{table.path} has no rows: no node has a neighbour")
    # Checked before edges are left out, so that a message names the row that the file has.
    lengths = None if meaning is None else _lengths(table, weights, meaning)
    if strangers.rows:
        known = (ends >= 0).all(axis=0)
        ends, lengths = ends[:, known], None if lengths is None else lengths[known]
    return Graph.from_edge_index(ends, num_nodes=len(nodes), directed=reading.directed, lengths=lengths)


def read_graph_around(
    edges: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> Graph:
    """Read the whole graph of an edges file; `nodes` keep their places, others come after them.

    The parameters are those of `read_edges`.
    """
    table = open_table("edges", edges, reading)
    table.require("source", "target")
    ends = ("source", "target")
    parts = [nodes.values]
    for batch in table.batches(ends):
        parts += [id_column(table, batch, column, like=nodes) for column in ends]
    everyone = NodeIds(arrow().chunked_array(one_width("edges", parts)).unique(), "edges")
    return read_edges(edges, everyone, reading, notes=notes)


def _read_columns(
    table: TableFile, nodes: NodeIds, strangers: UnknownIds, *, weighted: bool
) -> tuple[npt.NDArray[Any], FloatArray]:
    """Return the ends as places, of shape (2, edges), and the weights; none where they do not count."""
    dtype = np.int32 if len(nodes) < 2**31 else np.int64
    columns = ["source", "target", *(["weight"] if weighted else [])]
    total = table.num_rows()
    parts, weights = [np.empty((2, 0), dtype=dtype)], [np.empty(0)]
    whole = None if total is None else np.empty((2, total), dtype=dtype)
    filled = 0
    for batch in table.batches(columns):
        part = (
            np.empty((2, batch.num_rows), dtype=dtype) if whole is None else whole[:, filled : filled + batch.num_rows]
        )
        for row, column in enumerate(("source", "target")):
            part[row] = known_places(table, batch, column, nodes, strangers)
        if weighted:
            weights.append(_weights(table, batch.column("weight"), filled))
        if whole is None:
            parts.append(part)
        filled += batch.num_rows
    return np.concatenate(parts, axis=1) if whole is None else whole, np.concatenate(weights)


def _weights(table: TableFile, column: Any, first: int) -> FloatArray:
    types = arrow().types
    if not (types.is_floating(column.type) or types.is_integer(column.type)):
        raise FileFormatError(
            f"`edges` must hold numbers in its column weight; in {table.path} that column is {column.type}"
        )
    if column.null_count:
        raise FileFormatError(
            f"`edges` must have no empty cell; the column weight of {table.path} has some, among the rows from {first} "
            f"on. Fill them in, or drop those rows."
        )
    numbers: FloatArray = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _lengths(table: TableFile, weights: FloatArray, meaning: WeightsAre) -> FloatArray:
    try:
        return check_lengths("weight", weights, weights.size, weights_are=meaning)
    except InvalidInputError as error:
        raise FileFormatError(f"`edges` must have {meaning} in its column weight; in {table.path}, {error}") from error
