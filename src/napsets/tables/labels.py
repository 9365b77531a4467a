"""Reading labels and lists of nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from napsets._check import IntArray
from napsets.errors import FileFormatError
from napsets.tables.formats import TableFile, arrow, open_table
from napsets.tables.ids import IdKind, NodeIds, UnknownIds, known_places

__all__ = ["class_indices", "read_labels", "read_nodes"]


def read_labels(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    class_names: Sequence[str] | None,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    notes: list[str] | None = None,
) -> tuple[IntArray, list[str]]:
    """Read a table with the columns ``node`` and ``label`` into one label for each of `nodes`.

    Parameters
    ----------
    path : path
        Parquet, CSV (plain or gzip) or npz. A node that is not there, or whose label is empty or −1, is unlabelled.
    nodes : NodeIds
        The nodes.
    class_names : sequence of str or None
        The classes; a label is a class's name, or, where some label is no name, its number from 0. With None, the
        distinct labels are the classes.
    ids, skip_unknown, notes
        As in `read_edges`.

    Returns
    -------
    labels : numpy.ndarray
        A class index for each of `nodes`, −1 where unlabelled.
    class_names : list of str
        The classes.
    """
    table = open_table("labels", path)
    table.require("node", "label")
    strangers = UnknownIds(table)
    places, texts = [np.empty(0, dtype=np.int64)], []
    for batch in table.batches(["node", "label"]):
        places.append(known_places(table, batch, "node", nodes, ids, strangers))
        texts.append(_label_texts(table, batch.column("label")))
    strangers.settle(skip=skip_unknown, notes=notes)
    pa = arrow()
    column = pa.chunked_array(texts, type=pa.large_string()).combine_chunks()
    codes, names = class_indices(table, column, class_names)
    place = np.concatenate(places)
    kept = place >= 0
    place, codes = place[kept], codes[kept]
    _refuse_repeated(table, nodes, place)
    labels = np.full(len(nodes), -1, dtype=np.int64)
    labels[place] = codes
    return labels, names


def read_nodes(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    notes: list[str] | None = None,
) -> IntArray:
    """Read a table with the column ``node`` into places among `nodes`, in the order of the file."""
    table = open_table("nodes", path)
    table.require("node")
    strangers = UnknownIds(table)
    batches = table.batches(["node"])
    places = [known_places(table, batch, "node", nodes, ids, strangers) for batch in batches]
    strangers.settle(skip=skip_unknown, notes=notes)
    place = np.concatenate([np.empty(0, dtype=np.int64), *places])
    place = place[place >= 0]
    _refuse_repeated(table, nodes, place)
    return place


def class_indices(table: TableFile, texts: Any, class_names: Sequence[str] | None) -> tuple[IntArray, list[str]]:
    """Turn labels as text into class indices: by name if every label is one, otherwise by number."""
    pa = arrow()
    pc = pa.compute
    if class_names is None:
        class_names = _in_order(pc.drop_null(texts).unique().to_pylist())
    distinct = pc.drop_null(texts).unique()
    names = pa.array([str(name) for name in class_names], pa.large_string())
    numbers = pa.array([str(y) for y in range(len(class_names))], pa.large_string())
    for known in (names, numbers):
        if pc.all(pc.is_in(distinct, value_set=known)).as_py() is not False:
            codes = pc.fill_null(pc.index_in(texts, value_set=known, skip_nulls=True), -1)
            return codes.to_numpy(zero_copy_only=False).astype(np.int64), [str(name) for name in class_names]
    odd = distinct.filter(pc.invert(pc.is_in(distinct, value_set=names))).to_pylist()
    shown = ", ".join(repr(name) for name in list(class_names)[:10]) + (", …" if len(class_names) > 10 else "")
    raise FileFormatError(
        f"`labels` must be class names ({shown}) or class numbers from 0 to {len(class_names) - 1}; {table.path} has "
        f"{len(odd)} others: {', '.join(repr(text) for text in odd[:10])}{', …' if len(odd) > 10 else ''}. "
        f"Name the columns of `probabilities` as the labels are named."
    )


def _label_texts(table: TableFile, column: Any) -> Any:
    """Return labels as text, null where there is none: an empty cell, an empty text, NaN or −1."""
    pa = arrow()
    pc = pa.compute
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        # What pandas makes of integers with gaps.
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        whole = pc.all(pc.equal(column, pc.floor(column))).as_py()
        if whole is False:
            raise FileFormatError(
                f"`labels` must be class names or numbers; the column label of {table.path} has parts"
            )
        column = column.cast(pa.int64())
    if pa.types.is_null(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise FileFormatError(
            f"`labels` must be class names or class numbers; the column label of {table.path} is {column.type}"
        )
    column = column.cast(pa.large_string())
    missing = pc.is_in(column, value_set=pa.array(["", "-1"], pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), column)


def _in_order(names: list[str]) -> list[str]:
    """Sort class names, numbers by value."""
    return sorted(names, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))


def _refuse_repeated(table: TableFile, nodes: NodeIds, place: IntArray) -> None:
    if place.size == 0:
        return
    counts = np.bincount(place, minlength=1)
    repeated = np.flatnonzero(counts > 1)
    if repeated.size:
        shown = ", ".join(repr(node) for node in nodes.take(repeated[:10]).to_pylist())
        raise FileFormatError(
            f"`{table.name}` must have each node once; {repeated.size:,} are in {table.path} more than once: {shown}"
            f"{', …' if repeated.size > 10 else ''}. Keep one row for each."
        )
