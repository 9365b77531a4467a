"""Reading labels and lists of nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import FileFormatError
from napsets.files.classes import LabelsAre, class_indices
from napsets.files.formats import TableFile, arrow, open_table
from napsets.files.ids import IdKind, NodeIds, UnknownIds, known_places, looks_integer

__all__ = ["LabelRows", "read_label_rows", "read_labels", "read_labels_and_kind", "read_nodes", "refuse_repeated"]


def read_labels(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    class_names: Sequence[str] | None,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    labels_are: LabelsAre = "auto",
    notes: list[str] | None = None,
) -> tuple[IntArray, list[str]]:
    """Read a table with the columns ``node`` and ``label`` into one label for each of `nodes`.

    Parameters
    ----------
    path : path
        Parquet, CSV, JSON Lines or npz. A node that is not there, or whose label is an empty cell, NaN in a column
        of numbers, or −1 (unless a class is called so), is unlabelled.
    nodes : NodeIds
        The nodes.
    class_names : sequence of str or None
        The classes. With None, the distinct labels are the classes.
    ids, skip_unknown
        As in `read_edges`.
    labels_are : {"auto", "names", "indices"}
        What a label is: a class's name or its number from 0. With "auto": names where every label is one, numbers where
        none is; a mixture is refused. ``2.0`` is read as ``2`` where no class is called ``2.0``.
    notes : list, optional
        Where it is said what was left out, and how the labels were read.

    Returns
    -------
    labels : numpy.ndarray
        A class index for each of `nodes`, −1 where unlabelled.
    class_names : list of str
        The classes.
    """
    found = read_labels_and_kind(
        path, nodes, class_names, ids=ids, skip_unknown=skip_unknown, labels_are=labels_are, notes=notes
    )
    return found[:2]


def read_labels_and_kind(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    class_names: Sequence[str] | None,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    labels_are: LabelsAre = "auto",
    notes: list[str] | None = None,
) -> tuple[IntArray, list[str], bool]:
    """Do what `read_labels` does, and say whether labels are integers, so that they can come back as such.

    They are where every class is called by an integer and the file has numbers; or text that looks so, if it is CSV.
    """
    rows = read_label_rows(path, nodes, ids=ids, skip_unknown=skip_unknown, notes=notes)
    table, place = rows.table, rows.places
    codes, names = class_indices(table, rows.texts, class_names, labels_are, notes)
    integers = not rows.named and looks_integer(arrow().array(names, arrow().large_string()))
    unlabelled = int((codes < 0).sum())
    if unlabelled and notes is not None:
        notes.append(
            f"{unlabelled:,} of the {codes.size:,} rows of `labels` ({table.path}) have no label: an empty cell, NaN "
            f"or −1"
        )
    labels = np.full(len(nodes), -1, dtype=np.int64)
    labels[place[place >= 0]] = codes[place >= 0]
    return labels, names, integers


@dataclass(frozen=True, eq=False)
class LabelRows:
    """The rows of a file of labels.

    Attributes
    ----------
    table : TableFile
        The file.
    places : numpy.ndarray
        The place of each row's node, −1 where it is unknown and to be left out; no other is there twice.
    texts : pyarrow.Array
        Each row's label as text, null where there is none.
    named : bool
        Whether the file says that its labels are text.
    more : dict
        Further columns, each a list of Arrow arrays.
    """

    table: TableFile
    places: IntArray
    texts: Any
    named: bool
    more: dict[str, list[Any]]


def read_label_rows(
    path: str | os.PathLike[str],
    nodes: NodeIds,
    *,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    notes: list[str] | None = None,
    more: Sequence[str] = (),
) -> LabelRows:
    """Read the rows of a file of labels, with those of the columns `more` that it has; the rest as in `read_labels`."""
    pa = arrow()
    table = open_table("labels", path)
    table.require("node", "label")
    others: dict[str, list[Any]] = {column: [] for column in more if column in table.columns}
    strangers = UnknownIds(table, nodes.name)
    places, texts, named = [np.empty(0, dtype=np.int64)], [], False
    for batch in table.batches(["node", "label", *others]):
        places.append(known_places(table, batch, "node", nodes, ids, strangers))
        kind = batch.column("label").type
        named |= table.typed and not (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        texts.append(label_texts(table, batch.column("label")))
        for column, parts in others.items():
            parts.append(batch.column(column))
    strangers.settle(skip=skip_unknown, notes=notes)
    place = np.concatenate(places)
    refuse_repeated(table, nodes, place[place >= 0])
    column = pa.chunked_array(texts, type=pa.large_string()).combine_chunks()
    return LabelRows(table, place, column, named, others)


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
    strangers = UnknownIds(table, nodes.name)
    batches = table.batches(["node"])
    places = [known_places(table, batch, "node", nodes, ids, strangers) for batch in batches]
    strangers.settle(skip=skip_unknown, notes=notes)
    place = np.concatenate([np.empty(0, dtype=np.int64), *places])
    place = place[place >= 0]
    refuse_repeated(table, nodes, place)
    return place


def label_texts(table: TableFile, column: Any) -> Any:
    """Return labels as text, null where there is none: an empty cell, or NaN in a column of numbers."""
    pa = arrow()
    pc = pa.compute
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        # What pandas makes of integers with gaps: a number is written as it would be in a column of integers.
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
        integers = pc.if_else(whole, column, pa.scalar(0.0, column.type)).cast(pa.int64())
        column = pc.if_else(whole, integers.cast(pa.large_string()), column.cast(pa.large_string()))
    if pa.types.is_null(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise FileFormatError(
            f"`labels` must be class names or class numbers; the column label of {table.path} is {column.type}"
        )
    return column.cast(pa.large_string())


def refuse_repeated(table: TableFile, nodes: NodeIds, place: IntArray) -> None:
    """Refuse places that are there twice, by the ids that the table calls them."""
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
